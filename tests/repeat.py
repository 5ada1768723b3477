"""Show that the tests say the same every time: `python tests/repeat.py --draws 100 --whole 5 --seeds 20 --busy 2`.

Runs the tests whose outcome rests on chance (marked `draws`, with a probability above 0) and the whole suite so many
times, and all tests but the examples with so many other seeds (`--seed-offset`), beside so many busy loops, and counts
what failed. The tests that rest on chance run `--times` times in each run of pytest, which starts servers once. What
follows `--` goes to pytest.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack

_BUSY = "while True: pass"


def _round(words: list[str], workers: int) -> tuple[str, list[str]]:
    """What pytest says at its end, and the tests that failed."""
    side_by_side = ["-n", str(workers), "--dist", "worksteal"]
    command = [sys.executable, "-m", "pytest", *side_by_side, "-q", "-rfE", *words]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", told.stdout, re.MULTILINE)
    if told.returncode and not failed:
        failed = [f"pytest ended with {told.returncode}"]
        print(told.stdout[-2000:], told.stderr[-2000:])
    return (told.stdout.strip().splitlines() or ["nothing"])[-1], failed


def _processor_time() -> float:
    """Seconds that children which have ended, and theirs, have used; the busy loops have not ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100, help="how often each test that rests on chance runs")
    parser.add_argument("--times", type=int, default=10, help="how often of that in one run of pytest")
    parser.add_argument("--whole", type=int, default=5, help="rounds of the whole suite")
    parser.add_argument("--seeds", type=int, default=0, help="rounds of all tests but examples, each with other seeds")
    parser.add_argument("--busy", type=int, default=2, help="busy loops beside them")
    parser.add_argument("--workers", type=int, default=6, help="processes that test, as WORKERS of the Makefile")
    options, rest = parser.parse_known_args()
    rest = [word for word in rest if word != "--"]
    failures: Counter[str] = Counter()
    with ExitStack() as stack:
        for _ in range(options.busy):
            loop = stack.enter_context(subprocess.Popen([sys.executable, "-c", _BUSY]))
            stack.callback(loop.kill)
        for name, rounds, words in (
            ("draws", -(-options.draws // options.times), ["--chance", f"--times={options.times}"]),
            ("whole", options.whole, []),
            ("seeds", options.seeds, ["tests", "--seed-offset={}"]),
        ):
            for number in range(1, rounds + 1):
                start, used = time.monotonic(), _processor_time()
                last, failed = _round([*(word.format(number) for word in words), *rest], options.workers)
                failures.update(failed)
                took, used = time.monotonic() - start, _processor_time() - used
                print(f"{name} {number} of {rounds}: {last} ({took:.0f} s, {used:.0f} s of processor time)", flush=True)
                for test in failed:
                    print(f"    {test}", flush=True)
    print(f"{sum(failures.values())} failures" + "".join(f"\n{n:5} {test}" for test, n in failures.most_common()))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

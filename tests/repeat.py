"""Show that the tests say the same every time: `python tests/repeat.py --draws 100 --whole 5 --seeds 20 --busy 2`.

Runs the tests whose outcome rests on chance (marked `draws`, with a probability above 0), the whole of `make test` and
all tests but the examples with other seeds (`--seed-offset`), each so many times, beside so many busy loops. Every
round prints one line when it ends: what pytest says, minutes, processor time and the tests that failed. The last lines
count failures over all rounds, also when the run is interrupted or ended half-way. What a round printed is kept in a
file. The tests that rest on chance run `--times` times in each run of pytest, which starts servers once. What follows
`--` goes to pytest.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NoReturn

TOP = Path(__file__).parents[1]
# Whatever ends this process, its loops end within a moment.
_BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    for _ in range(10**6): pass"
_LAST = re.compile(r"^=* ?(\d[\d,]* (?:passed|failed|error|skipped|deselected|xfailed).* in [\d.]+s.*?)(?: =+)?$", re.M)
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.M)


@dataclass
class Round:
    """One run of pytest or `make`: its name, what to call, and where its output goes."""

    name: str
    command: list[str]
    output: Path
    failed: list[str] = field(default_factory=list)

    def run(self) -> str:
        """Run it, and say in one line what came of it; the tests that failed follow, a line each."""
        start, used = time.monotonic(), _processor_time()
        with self.output.open("w", encoding="utf-8") as output:
            # A session of its own, so that it can be ended with all that it started.
            made = subprocess.Popen(self.command, cwd=TOP, stdout=output, stderr=output, start_new_session=True)
            try:
                code = made.wait()
            except BaseException:
                os.killpg(made.pid, signal.SIGTERM)
                made.wait()
                print(f"{self.name}: ended by hand after {_minutes(time.monotonic() - start)}", flush=True)
                raise
        text = self.output.read_text(encoding="utf-8", errors="replace")
        self.failed = _FAILED.findall(text)
        if code and not self.failed:
            self.failed = [f"{Path(self.command[0]).name} ended with {code}: see {self.output}"]
        last = (_LAST.findall(text) or ["no tests ran to the end"])[-1]
        took = f"{_minutes(time.monotonic() - start)}, {_processor_time() - used:.0f} s of processor time"
        count = f"{len(self.failed)} failures" if self.failed else "no failure"
        return "\n    ".join([f"{self.name}: {count}; {last} ({took})", *self.failed])


def rounds(options: argparse.Namespace, rest: list[str], folder: Path) -> list[Round]:
    """All rounds, in their order."""
    words = ["-q", "-rfE", *rest]
    pytest = [sys.executable, "-m", "pytest", "--forks", str(options.workers), *words]
    # make's own words for pytest, so that types and style are checked beside the tests as they are for everybody.
    make = ["make", "test", f"VENV={sys.prefix}", f"WORKERS={options.workers}", f"PYTEST_ARGS={shlex.join(words)}"]
    commands = {
        "draws": [[*pytest, "--chance", f"--times={options.times}"]] * -(-options.draws // options.times),
        "whole": [make] * options.whole,
        "seeds": [[*pytest, "tests", f"--seed-offset={number}"] for number in range(1, options.seeds + 1)],
    }
    return [
        Round(f"{name} {number} of {len(several)}", command, folder / f"{name}-{number}.txt")
        for name, several in commands.items()
        for number, command in enumerate(several, 1)
    ]


def _processor_time() -> float:
    """Seconds that children which have ended, and theirs, have used; the busy loops have not ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02} min"


def _ended(number: int, _: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt(signal.Signals(number).name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100, help="how often each test that rests on chance runs")
    parser.add_argument("--times", type=int, default=10, help="how often of that in one run of pytest")
    parser.add_argument("--whole", type=int, default=5, help="rounds of `make test`")
    parser.add_argument("--seeds", type=int, default=0, help="rounds of all tests but examples, each with other seeds")
    parser.add_argument("--busy", type=int, default=2, help="busy loops beside them")
    parser.add_argument("--workers", type=int, default=10, help="processes that test, as WORKERS of the Makefile")
    options, rest = parser.parse_known_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _ended)
    folder = Path(tempfile.mkdtemp(prefix="farthing-repeat-"))
    all_rounds = rounds(options, [word for word in rest if word != "--"], folder)
    print(f"{len(all_rounds)} rounds beside {options.busy} busy loops; their output is in {folder}", flush=True)
    failures: Counter[str] = Counter()
    ended = 0
    with ExitStack() as stack:
        for _ in range(options.busy):
            loop = stack.enter_context(subprocess.Popen([sys.executable, "-c", _BUSY]))
            stack.callback(loop.kill)
        try:
            for each in all_rounds:
                print(each.run(), flush=True)
                failures.update(each.failed)
                ended += 1
        except KeyboardInterrupt:
            pass
    print(f"{ended} of {len(all_rounds)} rounds ended, {failures.total()} failures")
    for test, count in failures.most_common():
        print(f"{count:5} {test}")
    return 0 if ended == len(all_rounds) and not failures else 1


if __name__ == "__main__":
    sys.exit(main())

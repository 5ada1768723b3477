"""The long run: `PYTHONPATH=tests python -m system.server.fuzzing [--cases 10000] [--seed N]`.

The tests try the same, shorter.
"""

from __future__ import annotations

import argparse
import random
import secrets
import tempfile
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from farthing.server.auth.api_tokens import ROLES
from system.server.fuzzing.people import WAYS
from system.server.fuzzing.run import Fault, Tally, run
from system.server.fuzzing.served import fuzzed

_SHOWN = 60  # faults that are written out


def main() -> None:
    """One run, with a table of what came back; the exit code says whether all was well."""
    parser = argparse.ArgumentParser(prog="python -m system.server.fuzzing")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=None, help="the cases of an earlier run")
    options = parser.parse_args()
    seed = secrets.randbits(32) if options.seed is None else options.seed
    console, start = Console(width=160), time.monotonic()
    with tempfile.TemporaryDirectory() as base:
        with fuzzed(Path(base), random.Random(seed)) as server, _bar(console) as bar:
            task = bar.add_task("cases", total=options.cases, faults=0)

            def show(tally: Tally) -> None:
                bar.update(task, completed=tally.cases, faults=len(tally.faults))
                if not console.is_terminal and tally.cases % 500 == 0:  # a bar is drawn on a terminal only
                    console.print(
                        f"{tally.cases:,} cases, {len(tally.faults)} faults, {time.monotonic() - start:.0f} s"
                    )

            tally = run(server, options.cases, random.Random(seed), progress=show)
        tally.faults += [Fault(("left", where), what) for where, what in server.traces().items()]
        size = sum(file.stat().st_size for file in server.logs.iterdir())
    report(console, tally)
    console.print(
        f"{tally.cases:,} cases (seed {seed}), {tally.unsent} could not be sent, {len(tally.faults)} faults, "
        f"{size / 1e6:.1f} MB of logs read, {time.monotonic() - start:.0f} s"
    )
    raise SystemExit(bool(tally.faults or tally.without_success()))


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
        TextColumn("{task.fields[faults]} faults"), console=console, refresh_per_second=1,
    )  # fmt: skip


def report(console: Console, tally: Tally) -> None:
    """Cases by operation and role, the statuses, how many of those who were let in got something, and the faults."""
    table = Table("operation", *ROLES, "others", "statuses", "got there", "faults", title="cases")
    wrong = Counter(fault.call for fault in tally.faults)
    for call in sorted({call for call, _, _ in tally.statuses}, key=lambda each: (each[1], each[0])):
        mine = {key: count for key, count in tally.statuses.items() if key[0] == call}
        by_role: Counter[str] = Counter()
        for (_, way, _), count in mine.items():
            by_role[(WAYS[way].role if way.split()[0] in ROLES else None) or "others"] += count
        statuses: Counter[int] = Counter()
        for (_, _, status), count in mine.items():
            statuses[status] += count
        share = tally.successes[call] / max(1, tally.admitted[call])
        table.add_row(
            " ".join(call),
            *(str(by_role[role]) for role in (*ROLES, "others")),
            " ".join(f"{status}:{count}" for status, count in sorted(statuses.items())),
            f"{share:.0%} of {tally.admitted[call]}",
            str(wrong[call] or ""),
        )
    console.print(table)
    totals: Counter[int] = Counter()
    for (_, _, status), count in tally.statuses.items():
        totals[status] += count
    console.print("statuses: " + ", ".join(f"{status}: {count:,}" for status, count in sorted(totals.items())))
    console.print("slowest:")
    for seconds, shown in sorted(tally.slowest.values(), reverse=True)[:4]:
        console.print(f"  {seconds:.1f} s: {shown}", markup=False, highlight=False)
    for call in tally.without_success():
        console.print(f"WRONG: no case of {' '.join(call)} got anywhere")
    seen: Counter[str] = Counter()
    for fault in tally.faults:
        key = f"{fault.call} {fault.words[:60]}"
        seen[key] += 1
        if seen[key] == 1 and len(seen) <= _SHOWN:
            console.print(f"WRONG: {fault}", markup=False, highlight=False)
    console.print(f"{len(seen)} kinds of faults")


if __name__ == "__main__":
    main()

"""Plans and releases of many statistics: `python -m benchmarks.many [--beside SRC] [--kinds K ...] [--statistics N]`.

    plan      from statistics to a plan whose cost is proven
    again     the same plan with another weight of one statistic; the median of a few
    refused   an error that the budget does not have is required, and what could be asked instead is found
    release   charged, run, recorded, answered

Each kind of statistic runs in a fresh process, after a small plan and release that load what is loaded once; the
seconds are those of the processor, engine included. `--beside` names the `src` folder of another version, which takes
turns with this one: both are shown as medians of `--rounds`, and this one as a part of the other. Plans of more than
`MOST_REFUSED` statistics are not asked for what they must refuse.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics as averages
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

TOP = Path(__file__).parents[1]
HERE = TOP / "src"
ROWS = 20_000
AGAIN = 5  # other weights
MOST_REFUSED = 30
PARTS = ("plan", "again", "refused", "release")
NUMBERS = {"age": (17, 90), "hours": (1, 99), "gain": (0, 50_000), "income": (0.0, 100_000.0)}
SIZES = {"sex": 2, "education": 16, "race": 5, "work": 8, "region": 50}
KINDS = ("counts", "tables", "means", "grouped means", "histograms", "medians", "variances", "sums", "mixture")


def schema() -> dict[str, Any]:
    """Four columns of numbers and five of categories."""
    return {**NUMBERS, **{name: [f"{name} {place}" for place in range(size)] for name, size in SIZES.items()}}


def conditions(seed: int = 3) -> Iterator[str]:
    """Conditions over one or two columns, no two alike."""
    draw, seen = random.Random(seed), set()
    while True:
        age, hours = draw.randint(18, 80), draw.randint(5, 90)
        condition = draw.choice(
            (
                f"age > {age}",
                f"hours >= {hours} and age < {age}",
                f"education = 'education {draw.randint(0, 15)}' and age > {age}",
                f"work in ('work 1', 'work {draw.randint(2, 7)}') or hours > {hours}",
                f"gain > {draw.randint(0, 49_000)}",
                f"sex = 'sex 0' and income < {draw.randint(1_000, 99_000)}",
            )
        )
        if condition not in seen:
            seen.add(condition)
            yield condition


def asked(kind: str, count: int) -> list[Any]:
    """So many statistics of one kind, each with a condition of its own."""
    import farthing as ft

    made, where = [], conditions()
    numbers, categories = list(NUMBERS), list(SIZES)
    for place in range(count):
        own = KINDS[place % (len(KINDS) - 1)] if kind == "mixture" else kind
        column, by, condition = numbers[place % len(numbers)], categories[place % len(categories)], next(where)
        statistics = {
            "counts": ft.count(where=condition),
            "tables": ft.count(by=by, where=condition),
            "means": ft.mean(column, where=condition),
            "grouped means": ft.mean(column, by=by, where=condition),
            "histograms": ft.histogram(column, bins=10, where=condition),
            "medians": ft.median(column, where=condition),
            "variances": ft.variance(column, where=condition),
            "sums": ft.sum(column, where=condition),
        }
        made.append(statistics[own])
    return made


def measure(kind: str, count: int) -> dict[str, float]:
    """The seconds of one plan, of what is asked of it, and of its release."""
    import pyarrow

    import farthing as ft
    from farthing.errors import Infeasible

    draw = random.Random(1)
    columns = {name: [draw.randint(int(low), int(high)) for _ in range(ROWS)] for name, (low, high) in NUMBERS.items()}
    labels = {name: [f"{name} {draw.randrange(size)}" for _ in range(ROWS)] for name, size in SIZES.items()}
    people = ft.dataset(pyarrow.table({**columns, **labels}), schema=schema())
    with tempfile.TemporaryDirectory() as folder:
        first = ft.Study(people, epsilon=1.0, delta=1e-9, ledger=f"{folder}/first.db", account="first")
        first.plan(ft.count(), ft.mean("age", by="sex"), ft.histogram("hours", bins=3), ft.median("gain")).release()
        study = ft.Study(people, epsilon=1.0, delta=1e-9, ledger=f"{folder}/study.db", account="people")
        statistics, start = asked(kind, count), time.process_time()
        plan = study.plan(*statistics)
        seconds, again = {"plan": time.process_time() - start}, []
        name = plan.statistics[0].name
        for weight in range(2, 2 + AGAIN):
            start = time.process_time()
            plan.weight(name, float(weight))
            again.append(time.process_time() - start)
        seconds["again"] = averages.median(again)
        if count <= MOST_REFUSED:
            within = plan.statistics[0].error() / 100
            start = time.process_time()
            with suppress(Infeasible):
                plan.require(name, within=within)
            seconds["refused"] = time.process_time() - start
        start = time.process_time()
        plan.release()
        seconds["release"] = time.process_time() - start
        first.close()
        study.close()
    return seconds


def in_fresh_process(source: Path, kind: str, count: int) -> dict[str, float]:
    """`measure` with the version in a folder."""
    command = [sys.executable, "-m", "benchmarks.many", "--statistics", str(count), "--task", kind]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(command, cwd=TOP, env=environment, capture_output=True, text=True, check=True)
    seconds: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return seconds


def main() -> None:
    """Measure in turns, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many", description="plans of many statistics")
    parser.add_argument("--beside", type=Path, help="the src folder of another version")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="of statistics; all by default")
    parser.add_argument("--statistics", type=int, default=300, help="how many")
    parser.add_argument("--rounds", type=int, default=1, help="in how many processes each; the median counts")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(measure(options.task, options.statistics)))
        return
    sources = [source.resolve() for source in (options.beside, HERE) if source is not None]
    for kind in options.kinds:
        rounds = [
            [in_fresh_process(source, kind, options.statistics) for source in sources] for _ in range(options.rounds)
        ]
        for part in (part for part in PARTS if part in rounds[0][0]):
            seconds = [averages.median(each[place][part] for each in rounds) for place in range(len(sources))]
            figures = "  ".join(f"{each:7.3f} s" for each in seconds)
            ratio = f"  {seconds[-1] / seconds[0]:5.2f}" if len(seconds) > 1 else ""
            print(f"{options.statistics} {kind:14} {part:8} {figures}{ratio}", flush=True)


if __name__ == "__main__":
    main()

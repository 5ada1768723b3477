"""A plan on a big table beside the same answers by a query written by hand, each in a fresh process.

`python -m benchmarks.tables [--rows N] [--units N]` makes a Parquet file in a temporary directory. The hand-written
query runs in two shapes, because DuckDB's own rewriting of "the first three of each" is sometimes the slower one, or
needs more memory than it may have; the faster counts.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.targets import Target

TOP = Path(__file__).parents[1]
KEPT = 3
MOST_MEGABYTES = 1024
MOST_RATIO = 1.3
PROMISED_FROM = 10_000_000  # rows; on small tables the milliseconds of making the SQL are what is measured
NAMES = {"farthing": "farthing", "by hand": "by hand", "window": "by hand, plain window"}
UNITS = {
    "person": f"units by number, {KEPT} rows kept",
    "name": f"units by text, {KEPT} rows kept",
    "": "one row a unit",
}
COLUMNS = ("unit", "who", "seconds", "cpu seconds", "peak MB")


def make_table(path: Path, rows: int, units: int) -> None:
    """Rows whose columns are hashes of their number: the same file every time, no memory needed."""
    import duckdb

    duckdb.connect().execute(
        f"""COPY (SELECT (hash(range) % {units})::BIGINT AS person,
                   'person-' || (hash(range) % {units}) AS name,
                   CASE WHEN hash(range, 1) % 2 = 0 THEN 'F' ELSE 'M' END AS sex,
                   (hash(range, 2) % 111)::INTEGER AS age,
                   10 + (hash(range, 3) % 50000) / 1000.0::DOUBLE AS bmi,
                   (hash(range, 4) % 250001)::DOUBLE AS income
            FROM range({rows})) TO '{path}' (FORMAT parquet)"""
    )


def by_hand(path: str, unit: str, shape: str) -> Callable[[], int]:
    """The same integers, with the same memory limit, as somebody who knows DuckDB would ask for them."""
    import duckdb

    folder = tempfile.mkdtemp()
    settings: dict[str, Any] = {
        "memory_limit": "512MiB",
        "temp_directory": folder,
        "preserve_insertion_order": "false",
    }
    tables = duckdb.connect(config=settings)
    if shape == "window":
        tables.execute("SET disabled_optimizers = 'top_n_window_elimination'")
    source = f"read_parquet('{path}')"
    if unit:
        source = f"""(SELECT * FROM (SELECT *, random() AS r FROM {source} WHERE {unit} IS NOT NULL)
            QUALIFY row_number() OVER (PARTITION BY {unit} ORDER BY r) <= {KEPT})"""
    sql = f"""SELECT sex, least(greatest(age, 0), 109) // 5 AS band, count(*),
            sum(floor(least(greatest(income, 0), 250000) / 0.25)::BIGINT),
            sum(floor(least(greatest(bmi, 10), 60) / 0.0001220703125)::BIGINT)
        FROM {source} GROUP BY ALL"""
    return lambda: sum(row[2] for row in tables.execute(sql).fetchall())


def by_farthing(path: str, unit: str) -> Callable[[], int]:
    """A plan of four statistics, in one pass."""
    import farthing as ft
    from farthing.data import Count, Histogram, Sum

    whose: dict[str, Any] = {"unit": unit, "max_rows": KEPT} if unit else {}
    schema = {"sex": ["F", "M"], "age": (0, 110), "bmi": (10.0, 60.0), "income": (0.0, 250_000.0)}
    people = ft.dataset(path, schema=schema, **whose)
    plan = {
        "people": Count(by="sex"),
        "ages": Histogram("age", cells=22),
        "income": Sum("income", grid=0.25),
        "bmi": Sum("bmi", grid=2**-13, by="sex"),
    }
    people.explain(plan)  # what Ibis loads at its first expression is loaded now
    return lambda: int(people.exact(plan)["people"].sum())


def measure(path: str, unit: str, who: str) -> dict[str, Any]:
    """One run, imports done before: seconds by the clock and of the processor, the peak of the whole process."""
    call = by_farthing(path, unit) if who == "farthing" else by_hand(path, unit, who)
    wall, cpu = time.perf_counter(), time.process_time()
    rows = call()
    seconds, processor = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "cpu": processor, "megabytes": peak, "rows": rows}


def in_fresh_process(path: Path, unit: str, who: str, cap: float) -> dict[str, Any]:
    """`measure` in a process of its own, or how it failed."""
    task = json.dumps({"path": str(path), "unit": unit, "who": who})
    command = [sys.executable, "-m", "benchmarks.tables", "--task", task]
    try:
        done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, timeout=cap, check=False)
    except subprocess.TimeoutExpired:
        return {"failure": f"stopped after {cap:.0f} s"}
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "Error" in line or "Exception" in line]
        return {"failure": (errors or ["died"])[0].rpartition(":")[0][-60:] or "died"}
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def runs(rows: int, units: int, cap: float, times: int, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Everybody with every kind of unit, in turn, `times` times; the best of each counts."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        say(f"making {rows:,} rows")
        make_table(path, rows, units)
        for unit in UNITS:
            own: dict[str, list[dict[str, Any]]] = {who: [] for who in NAMES if unit or who != "window"}
            for turn in range(times):
                for who in own:
                    say(f"{rows:,} rows, {UNITS[unit]}: {who}, {turn + 1} of {times}")
                    own[who].append(in_fresh_process(path, unit, who, cap))
            for who, answers in own.items():
                good = [answer for answer in answers if "failure" not in answer]
                best = min(good, key=lambda answer: float(answer["cpu"]), default=answers[0])
                found.append({"unit": unit, "who": who, **best})
    return found


def table_targets(found: list[dict[str, Any]], rows: int) -> list[Target]:
    """The promises, made for ten million rows: at most 1.3 times the query written by hand, and below 1 GiB."""
    judged = []
    for unit, kind in UNITS.items():
        mine = next((f for f in found if f["unit"] == unit and f["who"] == "farthing"), {})
        hands = [f["cpu"] for f in found if f["unit"] == unit and f["who"] != "farthing" and "cpu" in f]
        ratio = mine["cpu"] / min(hands) if hands and "cpu" in mine else None
        peak = mine.get("megabytes")
        what = f"{rows:,} rows, {kind}"
        for name, value, most, shown, promise in (
            ("over the query by hand", ratio, MOST_RATIO, f"{ratio or 0:.2f}×", f"at most {MOST_RATIO}×"),
            ("peak memory", peak, MOST_MEGABYTES, f"{peak or 0:,.0f} MB", "below 1 GiB"),
        ):
            if rows < PROMISED_FROM:
                promise = "(for the record)"
            met = None if value is None or rows < PROMISED_FROM else value <= most
            judged.append(Target(f"{what}: {name}", promise, "did not finish" if value is None else shown, met))
    return judged


def show_runs(console: Console, found: list[dict[str, Any]], rows: int) -> None:
    """One table of all runs."""
    table = Table(*COLUMNS, title=f"A plan on {rows:,} rows, in one run", title_justify="left", title_style="bold")
    for f in found:
        unit = UNITS[f["unit"]]
        if "failure" in f:
            table.add_row(unit, NAMES[f["who"]], "", "", f["failure"])
        else:
            figures = (f"{f['seconds']:.2f}", f"{f['cpu']:.2f}", f"{f['megabytes']:,.0f}")
            table.add_row(unit, NAMES[f["who"]], *figures, style="green" if f["who"] == "farthing" else None)
    console.print(table)


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description="plans on big tables")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--units", type=int, default=500_000)
    parser.add_argument("--times", type=int, default=3, help="runs of each; the best counts")
    parser.add_argument("--cap", type=float, default=600.0, help="seconds a run may take")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(measure(**json.loads(options.task))))
        return
    from benchmarks.report import show_targets

    console = Console() if sys.stdout.isatty() else Console(width=125)
    with console.status("starting") as status:
        found = runs(options.rows, options.units, options.cap, options.times, status.update)
    show_runs(console, found, options.rows)
    show_targets(console, table_targets(found, options.rows))


if __name__ == "__main__":
    main()

"""Durable charges a second, four clients at a time, from an empty ledger to a large one, beside raw inserts.

`python -m benchmarks.ledger [--sizes N ...] [--seconds S] [--only sqlite|postgres]`. Every client is a process with a
connection of its own, and every charge is on disk before it counts. The raw insert is the same number of bytes in one
table with nothing else around it, by the same four clients in the same run; the bare chain is the least that a chain of
entries needs, without prices, marks or checks (`benchmarks.ledger_floor`). Machines differ in how long a sync to disk
takes, and one machine from minute to minute: compare rows, not runs.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.ledger_filling import fill
from benchmarks.ledger_floor import bare_client, make_bare_tables, make_raw_table, raw_client
from benchmarks.targets import Target

TOP = Path(__file__).parents[1]
CLIENTS = 4
PROMISED_RATE = {"sqlite": 1_000, "postgres": 500}
NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
MOST_P99 = 10.0  # milliseconds
FLAT = 1.25  # p50 of one client at the largest ledger over the same at the empty one
COLUMNS = ("database", "entries", "what", "a second", "p50 ms", "p99 ms", "cpu ms", "p50 over raw")
WHAT = {
    "raw": "raw insert",
    "bare": "bare chain",
    "alone": "charge, one client alone",
    "charge": "charge",
    "answer": "charge and answer",
}
BUDGET, EPSILON = (100_000.0, 1e-9), 0.001


@dataclass(frozen=True)
class Load:
    """What four clients measured together; `rate` is None when it did not finish."""

    database: str
    entries: int
    what: str
    rate: float | None = None
    p50: float = 0.0
    p99: float = 0.0
    cpu: float = 0.0
    failure: str = ""

    def row(self, raw: Load | None) -> tuple[str, ...]:
        """The measurement as text."""
        start = (NAMES[self.database], f"{self.entries:,}", WHAT[self.what])
        if self.rate is None:
            return (*start, "failed", "", "", "", "")
        ratio = f"{self.p50 / raw.p50:.2f}×" if raw is not None and raw.rate else ""
        times = (f"{value:.2f}" for value in (self.p50, self.p99, self.cpu))
        return (*start, f"{self.rate:,.0f}", *times, ratio)


@dataclass(frozen=True)
class Opening:
    """How long it took to open, and so to verify, the ledger as the loads left it."""

    database: str
    entries: int
    seconds: float
    cpu: float


def measure_floor(url: str, seconds: float) -> dict[str, Any]:
    """The raw inserts of four clients, and on a server the bare chain: a file has no lock with a queue."""
    make_raw_table(url)
    found = {"raw": _figures(lambda: raw_client(url), seconds)}
    if url.startswith("postgresql"):
        make_bare_tables(url)
        found["bare"] = _figures(lambda: bare_client(url), seconds)
    return found


def measure_ledger(url: str, key: str | None, charges: int, seconds: float) -> dict[str, Any]:
    """Fill a ledger up to so many charges; then what four clients charge, and what they charge and answer."""
    from farthing.ledger import open_ledger

    with open_ledger(url, key=key, actor="bench") as ledger:
        entries = fill(ledger, charges, BUDGET, EPSILON)
        run = uuid.uuid4().hex[:8]

        def charge(client: int, n: int) -> None:
            ledger.charge("people", EPSILON, request_id=f"{run}-{os.getpid()}-{client}-{n}")

        def answer(client: int, n: int) -> None:
            made = ledger.charge("people", EPSILON, request_id=f"{run}-{client}-{n}-answered")
            ledger.release(made, '{"value": 1234}')

        return {
            "entries": entries,
            "alone": _figures(lambda: charge, seconds, clients=1),
            "charge": _figures(lambda: charge, seconds),
            "answer": _figures(lambda: answer, seconds),
        }


def measure_opening(url: str, key: str | None) -> dict[str, Any]:
    """How long it takes to open a ledger, which verifies all of it."""
    from farthing.ledger import open_ledger

    start, cpu = time.perf_counter(), time.process_time()
    with open_ledger(url, key=key, actor="bench") as ledger:
        seconds, own = time.perf_counter() - start, time.process_time() - cpu
        assert ledger.datasets() == ["people"]
    return {"seconds": seconds, "cpu": own}


def _figures(
    make: Callable[[], Callable[[int, int], None]], seconds: float, clients: int = CLIENTS
) -> dict[str, float]:
    times, cpu = _of_forks(make, seconds, clients)
    return {
        "rate": len(times) / seconds,
        "p50": 1e3 * times[len(times) // 2],
        "p99": 1e3 * times[int(0.99 * len(times))],
        "cpu": 1e3 * cpu / len(times),
    }


def _of_forks(
    make: Callable[[], Callable[[int, int], None]], seconds: float, clients: int
) -> tuple[list[float], float]:
    """The seconds of every call that every client finished in time, sorted; and the processor's, of all together."""
    gate, open_gate = os.pipe()
    waiting, ready = os.pipe()
    pipes = []
    for client in range(clients):
        reading, writing = os.pipe()
        if os.fork() == 0:
            status = 1
            try:
                os.close(open_gate)
                call = make()
                call(client, -1)  # connected and prepared before the clock starts
                os.write(ready, b".")
                os.close(ready)
                os.read(gate, 1)
                with os.fdopen(writing, "wb") as file:
                    file.write(_timed(call, client, seconds).tobytes())
                status = 0
            finally:
                os._exit(status)
        os.close(writing)
        pipes.append(reading)
    os.close(ready)
    for _ in range(clients):  # until each is ready; one that died is noticed below
        os.read(waiting, 1)
    os.close(waiting)
    os.close(open_gate)
    times, cpu = array("d"), 0.0
    for pipe in pipes:
        with os.fdopen(pipe, "rb") as file:
            found = file.read()
        if not found:
            raise RuntimeError("a client died")
        own = array("d")
        own.frombytes(found)
        cpu += own.pop()
        times.extend(own)
    for _ in range(clients):
        os.wait()
    return sorted(times), cpu


def _timed(call: Callable[[int, int], None], client: int, seconds: float) -> array[float]:
    times, n, cpu = array("d"), 0, time.process_time()
    start = time.perf_counter()
    end = start + seconds
    while start < end:  # at least once, however busy the machine
        call(client, n)
        times.append(time.perf_counter() - start)
        n += 1
        start = time.perf_counter()
    times.append(time.process_time() - cpu)  # the last number is the processor's time
    return times


def in_fresh_process(task: dict[str, Any], cap: float) -> dict[str, Any]:
    """A task in a process of its own, or how it failed."""
    command = [sys.executable, "-m", "benchmarks.ledger", "--task", json.dumps(task)]
    try:
        done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, timeout=cap, check=False)
    except subprocess.TimeoutExpired:
        return {"failure": f"stopped after {cap:.0f} s"}
    if done.returncode:
        return {"failure": (done.stderr.strip().splitlines() or ["died"])[-1][:60]}
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


@contextmanager
def _places(database: str, folder: Path) -> Iterator[Callable[[str], dict[str, Any]]]:
    """A function from a name to a fresh place of that name."""
    if database == "sqlite":
        yield lambda name: {"url": str(folder / f"{name}.db"), "key": None}
        return
    import psycopg

    sys.path.insert(0, str(TOP / "tests"))  # the same server as in the tests, but one that syncs
    module = importlib.import_module("backends.postgres_server")
    home = Path(tempfile.mkdtemp(prefix="farthing-bench-"))
    home.chmod(0o755)
    server = module.PostgresServer(home, durable=True)
    try:
        facts = server.start()
        secret = facts["passwords"]["postgres"]
        address = f"postgresql://postgres:{secret}@{facts['host']}:{facts['port']}/"

        def new(name: str) -> dict[str, Any]:
            with psycopg.connect(address + "postgres", autocommit=True) as administrator:
                administrator.execute(f"CREATE DATABASE bench_{name}")
            return {"url": address + f"bench_{name}", "key": str(folder / f"{name}.key")}

        yield new
    finally:
        server.stop()
        subprocess.run(["rm", "-rf", str(home)], check=False)


def loads(
    sizes: list[int], seconds: float, cap: float, say: Callable[[str], None], only: str | None = None
) -> Iterator[Load | Opening]:
    """Both databases, every size: the floor, charges, charges that are answered; then the opening of it all."""
    for database in [only] if only else list(NAMES):
        with tempfile.TemporaryDirectory() as name:
            try:
                with _places(database, Path(name)) as new:
                    yield from _loads_at(database, new, sizes, seconds, cap, say)
            except Exception as problem:  # no server here: the other database still counts
                yield Load(database, 0, "charge", failure=f"{type(problem).__name__}: {problem}"[:60])


def _loads_at(
    database: str, new: Callable[[str], dict[str, Any]], sizes: list[int], seconds: float, cap: float,
    say: Callable[[str], None],
) -> Iterator[Load | Opening]:  # fmt: skip
    ledger, entries = new("ledger"), 0
    for size in sizes:
        say(f"{NAMES[database]}: raw inserts")
        floor = in_fresh_process({"do": "floor", "url": new(f"raw{size}")["url"], "seconds": seconds}, cap)
        say(f"{NAMES[database]}: a ledger of {size:,} charges")
        found = in_fresh_process({"do": "ledger", **ledger, "charges": size, "seconds": seconds}, cap)
        entries = found.get("entries", size)
        for what in WHAT:
            source = floor if what in ("raw", "bare") else found
            if what != "bare" or what in source:
                figures = source.get(what, {"failure": source.get("failure", "died")})
                yield Load(database, entries, what, **figures)
        if "failure" in found:
            return
        # What the clients charged while they were measured is in it as well.
        entries += round(seconds * sum(found[what]["rate"] for what in ("alone", "charge", "answer", "answer")))
    say(f"{NAMES[database]}: opening about {entries:,} entries")
    opened = in_fresh_process({"do": "opening", **ledger}, cap)
    if "failure" not in opened:
        yield Opening(database, entries, opened["seconds"], opened["cpu"])


def ledger_targets(found: Sequence[Load | Opening]) -> list[Target]:
    """The promises: so many durable charges a second, none of them slow, and no slower as the ledger grows."""
    rows = []
    for database, name in NAMES.items():
        mine, alone = (
            [
                load
                for load in found
                if isinstance(load, Load) and (load.database, load.what) == (database, what) and load.rate
            ]
            for what in ("charge", "alone")
        )
        rate = min((load.rate for load in mine if load.rate), default=None)
        p99 = max((load.p99 for load in mine), default=None)
        least = PROMISED_RATE[database]
        what = f"{name}, {CLIENTS} clients"
        rows.append(
            Target(
                f"{what}: durable charges a second, the slowest size",
                f"at least {least:,}",
                "did not finish" if rate is None else f"{rate:,.0f}",
                None if rate is None else rate >= least,
            )
        )
        rows.append(
            Target(
                f"{what}: p99 of a charge, the slowest size",
                f"below {MOST_P99:g} ms",
                "did not finish" if p99 is None else f"{p99:.2f} ms",
                None if p99 is None else p99 < MOST_P99,
            )
        )
        if sum((load.database, load.what) == (database, "alone") for load in found if isinstance(load, Load)) == 1:
            continue  # one size says nothing about growing
        grown = alone[-1].p50 / alone[0].p50 if len(alone) > 1 else None
        size = f"{alone[-1].entries:,}" if alone else "many"
        rows.append(
            Target(
                f"{name}, one client: p50 at {size} entries over p50 at the start",
                f"at most {FLAT}×",
                "did not finish" if grown is None else f"{grown:.2f}×",
                None if grown is None else grown <= FLAT,
            )
        )
    return rows


def show_loads(console: Console, found: Sequence[Load | Opening]) -> None:
    """One table of all measurements."""
    title = f"The ledger under {CLIENTS} clients, in one run"
    table = Table(*COLUMNS, title=title, title_justify="left", title_style="bold")
    for i, column in enumerate(table.columns):
        column.justify, column.no_wrap = ("left" if i in (0, 2) else "right"), True
    raw: Load | None = None
    notes = []
    for load in found:
        if isinstance(load, Opening):
            speed = f"{1e6 * load.cpu / load.entries:.0f} µs of the processor an entry"
            notes.append(f"{NAMES[load.database]}: {load.entries:,} entries opened in {load.seconds:.1f} s, {speed}")
            continue
        raw = load if load.what == "raw" else raw
        table.add_row(*load.row(raw), style=None if load.what in ("raw", "bare") else "green")
        if load.failure:
            notes.append(f"{', '.join(load.row(None)[:3])}: {load.failure}")
    console.print(table)
    for note in notes:
        console.print(f"  {note}", style="dim", highlight=False)


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ledger", description="the ledger under load")
    parser.add_argument("--sizes", type=int, nargs="+", default=[0, 100_000, 1_000_000], help="charges before")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--only", choices=list(NAMES))
    parser.add_argument("--cap", type=float, default=1_800.0, help="seconds a step may take")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        task = json.loads(options.task)
        do = _TASKS[task.pop("do")]
        print(json.dumps(do(**task)))
        return
    from benchmarks.report import show_targets

    console = Console() if sys.stdout.isatty() else Console(width=125)
    with console.status("starting") as status:
        found = list(loads(options.sizes, options.seconds, options.cap, status.update, options.only))
    show_loads(console, found)
    show_targets(console, ledger_targets(found))


_TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "floor": measure_floor,
    "ledger": measure_ledger,
    "opening": measure_opening,
}


if __name__ == "__main__":
    main()

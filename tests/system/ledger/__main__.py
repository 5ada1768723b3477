"""The long runs: `PYTHONPATH=tests python -m system.ledger SCENARIO [--times N] [--only sqlite|postgres]`.

The tests run the same scenarios, shorter.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from backends.keeper import kept
from system.ledger.approvals import killed_deciding, raced_deciding
from system.ledger.checks import problems
from system.ledger.kills import killed
from system.ledger.nursery import nursery
from system.ledger.places import Place, postgres_place, sqlite_place
from system.ledger.race import EPSILON, raced, tally
from system.ledger.restarts import restarted

FITS = 200
KILLS_IN_A_LEDGER = 50


def run_races(new_place: Callable[[], Place], folder: Path, times: int) -> Iterator[str]:
    """32 processes against a budget for 200 charges, `times` times."""
    with nursery(folder) as clients:
        for n in range(times):
            place = new_place()
            place.prepare(FITS * EPSILON)
            said = raced(clients, place, folder, processes=32, attempts=10)
            found = problems(place, said, EPSILON, FITS)
            charged = tally(said)["charged"]
            yield f"race {n + 1}: {charged} charged" + ("" if charged == FITS else ", WRONG")
            yield from (f"race {n + 1}: {problem}, WRONG" for problem in found)


def run_kills(new_place: Callable[[], Place], folder: Path, times: int, variant: str) -> Iterator[str]:
    """`times` kills, in ledgers of 50 kills each."""
    with nursery(folder) as clients:
        for n in range(0, times, KILLS_IN_A_LEDGER):
            kills = min(KILLS_IN_A_LEDGER, times - n)
            found, said = killed(clients, new_place(), kills, random.Random(n), variant)
            answers = sum("request" in line for line in said)
            refused = sum("refused" in line for line in said)
            yield f"kills {n + 1} to {n + kills}: {answers} answers seen, {refused} refusals"
            yield from (f"kills {n + 1} to {n + kills}: {problem}, WRONG" for problem in found)


def run_approvals(new_place: Callable[[], Place], folder: Path, times: int) -> Iterator[str]:
    """`times` kills of those who approve and use requests, in ledgers of 50 kills each; then 32 racers."""
    with nursery(folder) as clients:
        for n in range(0, times, KILLS_IN_A_LEDGER):
            kills = min(KILLS_IN_A_LEDGER, times - n)
            found, used = killed_deciding(clients, new_place(), kills, random.Random(n))
            yield f"approvals, kills {n + 1} to {n + kills}: {used} used"
            yield from (f"approvals, kills {n + 1} to {n + kills}: {problem}, WRONG" for problem in found)
        found, used = raced_deciding(clients, new_place(), folder, racers=32)
        yield f"approvals, 32 racers: {used} used"
        yield from (f"approvals, 32 racers: {problem}, WRONG" for problem in found)


def run_restarts(times: int, folder: Path) -> Iterator[str]:
    """A PostgreSQL of its own, stopped at once `times` times under eight writers."""
    home = Path(tempfile.gettempdir()) / f"farthing-restarts-{time.time_ns()}"
    with kept("backends.postgres_server", home) as facts, nursery(folder) as clients:
        place = postgres_place(facts, folder)
        found, said = restarted(clients, place, home, times, 40 * times, random.Random(times))
        lost = sum("unavailable" in line for line in said)
        answers = sum("request" in line for line in said)
        yield f"{times} stops: {answers} answers, {lost} times unavailable"
        yield from (f"{problem}, WRONG" for problem in found)


def main() -> None:
    """One scenario, with a line for everything it finds; the exit code says whether all was well."""
    parser = argparse.ArgumentParser(prog="python -m system.ledger")
    parser.add_argument("scenario", choices=["race", "kills", "release-first", "approvals", "restarts", "flips"])
    parser.add_argument("--times", type=int)
    parser.add_argument("--only", choices=["sqlite", "postgres"])
    options = parser.parse_args()
    wrong, start = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        for line in _scenario(options.scenario, options.times, options.only, Path(name)):
            wrong += line.endswith("WRONG")
            print(line, flush=True)
    print(f"{wrong} wrong; {time.monotonic() - start:.0f} s")
    raise SystemExit(wrong > 0)


def _scenario(scenario: str, times: int | None, only: str | None, folder: Path) -> Iterator[str]:
    if scenario == "restarts":
        yield from run_restarts(times or 20, folder)
        return
    if scenario == "flips":
        from system.ledger.flips import run_flips

        yield from run_flips(folder, times or 2_000, random.Random(5))
        return
    for kind, new_place in _places(only, folder):
        if scenario == "race":
            found = run_races(new_place, folder, times or 20)
        elif scenario == "approvals":
            found = run_approvals(new_place, folder, times or 200)
        else:
            variant = "charge first" if scenario == "kills" else "release first"
            found = run_kills(new_place, folder, times or 500, variant)
        yield from (f"{kind}: {line}" for line in found)


def _places(only: str | None, folder: Path) -> Iterator[tuple[str, Callable[[], Place]]]:
    if only != "postgres":
        yield "sqlite", lambda: sqlite_place(folder)
    if only != "sqlite":
        home = Path(tempfile.gettempdir()) / f"farthing-long-run-{time.time_ns()}"
        with kept("backends.postgres_server", home) as facts:
            own: dict[str, Any] = facts
            yield "postgres", lambda: postgres_place(own, folder)


if __name__ == "__main__":
    main()

"""Which contender runs on which case, each in its own process and within a cap on its time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.cases import CASES, Case

TOP = Path(__file__).parents[1]
DEFAULT = 1e-4  # dp-accounting's own discretisation interval
COARSE = 1e-3
FINER = (1e-5, 1e-6, 1e-7)
GROWTH = 12  # a ten times finer interval costs dp-accounting about this much more time
QUICK_CASES = ("a", "a20", "c", "d100", "d1000", "e", "mix")


@dataclass(frozen=True)
class Result:
    """One line of the table."""

    case: str
    name: str
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def failure(self) -> str | None:
        """Why there is no number, in a few words."""
        return self.data.get("failure")

    @property
    def seconds(self) -> float:
        """Time of one call."""
        return float(self.data.get("seconds", float("inf")))


def ask(cap: float, python: str = sys.executable, **task: Any) -> dict[str, Any]:
    """Run one worker, in the environment of that `python`; one that takes longer than `cap` seconds is stopped.

    That is a result too.
    """
    command = [python, "-m", "benchmarks.worker", json.dumps(task)]
    # A session of its own: what the worker started, a Spark for example, is stopped with it.
    with subprocess.Popen(
        command, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            output, errors = process.communicate(timeout=cap)
        except subprocess.TimeoutExpired:
            return {"failure": f"stopped after {cap:.0f} s"}
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    lines = output.strip().splitlines()
    if process.returncode or not lines:
        last = (errors.strip().splitlines() or ["no output"])[-1]
        return {"failure": f"died ({process.returncode}): {last}"[:120]}
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def race(names: list[str], cap: float, say: Callable[[str], None], quick: bool = False) -> Iterator[Result]:
    """Every contender on every case; `say` is told what comes next; `quick` leaves out what is known to be slow."""
    for name in names:
        case = CASES[name]
        say(f"{case.title}: independent truth")
        yield Result(name, "truth", ask(10 * cap, what="truth", case=name))
        for label, contender, options in _ours():
            say(f"{case.title}: {label}")
            yield _measured(case, label, contender, options, 3 * cap)
        yield from _google(case, cap, say, FINER[:1] if quick else FINER)
        if case.k <= (100 if quick else 1_000) or (case.kind == "repeated" and not quick):
            say(f"{case.title}: prv-accountant")
            yield _measured(case, "prv-accountant ±0.01", "prv-accountant", {}, cap)


def _ours() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        ("farthing, proven", "farthing", {"proof": True}),
        ("farthing, proof=False", "farthing", {"proof": False}),
    ]


def _google(case: Case, cap: float, say: Callable[[str], None], finer: tuple[float, ...]) -> Iterator[Result]:
    """dp-accounting at its default interval, then at finer ones as long as the next may fit into the cap."""

    def at(interval: float, tree: bool = False) -> Result:
        label = f"dp-accounting, {interval:.0e}{', by tree' if tree else ''}".replace("e-0", "e-")
        say(f"{case.title}: {label}")
        return _measured(case, label, "dp-accounting", {"interval": interval, "tree": tree}, cap)

    distinct = case.kind == "distinct"
    if distinct and case.k > 100_000:
        yield at(COARSE, tree=True)  # a million objects: even a coarse interval may not finish
        return
    # One by one, the composed array grows with every step, so the time grows with the square of k: beyond a few
    # thousand charges it takes hours, and only the tree is tried.
    tried = None
    if not distinct or case.k <= 2_000:
        tried = at(DEFAULT)
        yield tried
    if distinct:
        tried = at(DEFAULT, tree=True)
        yield tried
    for interval in finer:
        if tried is None or tried.failure or tried.seconds * GROWTH > cap:
            return
        tried = at(interval, tree=distinct)
        yield tried


def _measured(case: Case, label: str, contender: str, options: dict[str, Any], cap: float) -> Result:
    return Result(case.name, label, ask(cap, what="measure", case=case.name, contender=contender, options=options))

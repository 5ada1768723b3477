"""A run that can be given up: in a thread of its own, with a time limit, and without its words if it fails.

Whoever waits is told a value or a reason. What was raised inside never comes out: its text, its context and the frames
of its traceback may hold numbers of private rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from farthing.errors import EngineError, FarthingError, InvalidData

PATIENCE = 0.05  # seconds between two looks
GRACE = 2.0  # seconds for an engine to stop before it is left to itself

Progress = Callable[[float], None]


class Stopped(BaseException):
    """Raised inside a run that nobody waits for any more, wherever it tells its progress."""


@dataclass(frozen=True)
class Outcome:
    """What a run came to: its text, or the reason why there is none and, if it is a safe one, the error."""

    text: str | None
    reason: str = ""
    error: FarthingError | None = None


def run_apart(work: Callable[[Progress], str], timeout: float | None, progress: Progress | None) -> Outcome:
    """What `work` comes to within `timeout` seconds; `progress` is called in the thread that waits.

    When the time is up, or the waiting thread is interrupted, the run is told to stop where it next tells its progress,
    which stops the query in the engine. A run that does not hear is left behind, and what it finds goes nowhere.

    >>> run_apart(lambda tell: "42", None, None).text
    '42'
    """
    outcomes: list[Outcome] = []
    done, stop = threading.Event(), threading.Event()
    share = [0.0]

    def tell(done_so_far: float) -> None:
        if stop.is_set():
            raise Stopped
        share[0] = done_so_far

    def run() -> None:
        try:
            outcomes.append(Outcome(work(tell)))
        except BaseException as problem:
            outcomes.append(_failed(problem))
        finally:
            done.set()

    deadline = None if timeout is None else time.monotonic() + timeout
    threading.Thread(target=run, name="farthing-run", daemon=True).start()
    try:
        while not done.wait(_pause(deadline)):
            if deadline is not None and time.monotonic() >= deadline:
                break
            if progress is not None:
                progress(share[0])
    except BaseException:  # Ctrl-C, or whoever listens has had enough
        stop.set()
        done.wait(GRACE)
        raise
    if not done.is_set():
        stop.set()
        done.wait(GRACE)
        return Outcome(None, f"stopped after {timeout:g} s")
    if progress is not None and outcomes[0].text is not None:
        progress(1.0)
    return outcomes[0]


def _pause(deadline: float | None) -> float:
    return PATIENCE if deadline is None else max(0.0, min(PATIENCE, deadline - time.monotonic()))


def _failed(problem: BaseException) -> Outcome:
    """The two errors that are made without private words come through, made anew; of others only the class."""
    if isinstance(problem, EngineError):
        error: FarthingError = EngineError(problem.engine, problem.kind, problem.way_out)
    elif isinstance(problem, InvalidData):
        error = InvalidData(problem.name, problem.rule, problem.way_out)
    else:
        return Outcome(None, f"the run ended with {type(problem).__name__}")
    return Outcome(None, str(error).rstrip("."), error)

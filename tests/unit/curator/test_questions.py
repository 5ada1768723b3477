"""A run can be given up, and nothing of what it raised comes out."""

from __future__ import annotations

import secrets
import threading
import time
import traceback
from collections.abc import Callable

import pytest

from farthing.curator.questions import run_apart
from farthing.errors import EngineError, InvalidData, InvalidValue

Progress = Callable[[float], None]


def raising(problem: BaseException) -> Callable[[Progress], str]:
    def work(tell: Progress) -> str:
        raise problem

    return work


@pytest.mark.parametrize("kind", [ValueError, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_of_a_failure_only_the_class_comes_out(kind: type[BaseException]) -> None:
    cell = secrets.token_hex(8)
    outcome = run_apart(raising(kind(cell)), None, None)
    assert outcome.text is None and outcome.error is None
    assert outcome.reason == f"the run ended with {kind.__name__}"


@pytest.mark.parametrize(
    "problem",
    [EngineError("duckdb", "IOException", "check the disk"), InvalidData("value", "must be finite")],
    ids=lambda problem: type(problem).__name__,
)
def test_safe_errors_come_out_without_their_past(problem: EngineError | InvalidData) -> None:
    cell = secrets.token_hex(8)

    def work(tell: Progress) -> str:
        private = cell  # noqa: F841 - a local of a frame that must not come out
        try:
            raise ValueError(cell)
        except ValueError:
            raise problem from None

    outcome = run_apart(work, None, None)
    assert type(outcome.error) is type(problem) and str(outcome.error) == str(problem)
    assert outcome.error is not problem and outcome.error.__context__ is None
    assert outcome.error.__traceback__ is None
    assert cell not in "".join(traceback.format_exception(outcome.error))


def test_an_error_that_shows_values_does_not_pass_for_a_safe_one() -> None:
    cell = secrets.token_hex(8)
    outcome = run_apart(raising(InvalidValue("value", cell, "must be small")), None, None)
    assert outcome.error is None and cell not in outcome.reason


def test_a_run_that_is_too_slow_is_told_to_stop() -> None:
    heard = threading.Event()

    def work(tell: Progress) -> str:
        try:
            while True:
                tell(0.5)
                time.sleep(0.01)
        except BaseException:
            heard.set()
            raise

    outcome = run_apart(work, 0.2, None)
    assert outcome.text is None and outcome.reason == "stopped after 0.2 s"
    assert heard.wait(600)


def test_a_run_that_does_not_hear_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farthing.curator.questions.GRACE", 0.1)
    go = threading.Event()

    def work(tell: Progress) -> str:
        assert go.wait(600)
        return "late"

    outcome = run_apart(work, 0.1, None)
    go.set()
    assert outcome.text is None and "stopped" in outcome.reason


def test_progress_is_heard_in_the_waiting_thread_and_ends_at_one() -> None:
    heard: list[tuple[float, str]] = []
    go = threading.Event()

    def listen(share: float) -> None:
        heard.append((share, threading.current_thread().name))
        go.set()

    def work(tell: Progress) -> str:
        tell(0.25)
        assert go.wait(600)
        return "done"

    assert run_apart(work, None, listen).text == "done"
    assert heard[-1][0] == 1.0
    assert {name for _, name in heard} == {threading.current_thread().name}


def test_an_interruption_of_the_waiting_thread_stops_the_run() -> None:
    stopped = threading.Event()

    def work(tell: Progress) -> str:
        try:
            while True:
                tell(0.5)
                time.sleep(0.01)
        finally:
            stopped.set()

    def listen(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_apart(work, None, listen)
    assert stopped.wait(600)

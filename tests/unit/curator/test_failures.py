"""Whatever fails after the charge, and wherever: the charge stays, and nothing is drawn twice or shown unrecorded."""

from __future__ import annotations

import secrets
import threading
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from asking import Rows, plan, released, spent, state_of
from farthing.curator import Curator
from farthing.curator import questions as recording
from farthing.data import connection, dataset
from farthing.data.engines.duckdb import quiet
from farthing.data.engines.engine import rows_of
from farthing.errors import AnswerForfeited, EngineError, LedgerUnavailable
from farthing.ledger import Ledger
from farthing.statistics.measurements import Measurements

# The charge itself


def test_a_charge_that_failed_can_be_asked_for_again(
    ledger: Ledger, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(LedgerUnavailable):
        patch.setattr(ledger, "charge", _failing)
        released(ledger)
    assert spent(ledger) == 0 and rows.reads == 0
    assert not released(ledger).repeated


@pytest.mark.parametrize("kind", [LedgerUnavailable, KeyboardInterrupt])
def test_a_charge_of_unknown_outcome_is_never_run_afterwards(
    ledger: Ledger, rows: Rows, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    """The charge was made and its answer got lost: whoever asks again cannot know that nobody drew."""
    with monkeypatch.context() as patch, pytest.raises(kind):
        patch.setattr(ledger, "charge", _done_and_failing(ledger.charge, kind))
        released(ledger)
    assert spent(ledger) == pytest.approx(0.25) and state_of(ledger) == "reserved"
    with pytest.raises(AnswerForfeited, match="Ask again under a new request id"):
        released(ledger)
    assert state_of(ledger) == "forfeited" and rows.reads == 0
    assert spent(ledger) == pytest.approx(0.25)


# The run


@pytest.mark.parametrize("kind", [ValueError, MemoryError, ZeroDivisionError, RuntimeError, SystemExit])
def test_what_a_run_raises_stays_inside_and_the_charge_stays(
    ledger: Ledger, rows: Rows, kind: type[BaseException]
) -> None:
    cell = secrets.token_hex(8)
    rows.then = _raising(kind(f"could not convert {cell}"))
    with pytest.raises(AnswerForfeited) as lost:
        released(ledger)
    assert lost.value.reason == f"the run ended with {kind.__name__}" and lost.value.request_id == "r-1"
    assert lost.value.__context__ is None
    kept = "".join(traceback.format_exception(lost.value)) + "".join(str(e.to_dict()) for e in ledger.entries())
    assert cell not in kept
    assert state_of(ledger) == "forfeited" and spent(ledger) == pytest.approx(0.25)


def test_a_forfeited_request_is_not_run_again_and_a_new_one_pays_again(ledger: Ledger, rows: Rows) -> None:
    rows.then = _raising(ValueError())
    with pytest.raises(AnswerForfeited):
        released(ledger)
    rows.then = lambda: None
    with pytest.raises(AnswerForfeited):
        released(ledger)
    assert rows.reads == 1
    assert not released(ledger, "r-2").repeated
    assert spent(ledger) == pytest.approx(0.5)


def test_the_death_of_the_engine_keeps_the_charge_and_names_the_engine(ledger: Ledger, rows: Rows) -> None:
    rows.then = _raising(EngineError("duckdb", "IOException", "check the disk"))
    with pytest.raises(AnswerForfeited, match="duckdb failed") as lost:
        released(ledger)
    assert isinstance(lost.value.__cause__, EngineError)
    assert state_of(ledger) == "forfeited" and spent(ledger) == pytest.approx(0.25)


def test_answers_that_are_no_whole_numbers_are_not_given(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Measurements, "run", lambda *_: {"people": np.array([1.5])})
    with pytest.raises(AnswerForfeited, match="must be whole numbers"):
        released(ledger)
    assert state_of(ledger) == "forfeited"


def test_ctrl_c_during_the_run_keeps_the_charge(ledger: Ledger, rows: Rows) -> None:
    go = threading.Event()

    def interrupt(share: float) -> None:
        go.set()
        raise KeyboardInterrupt

    rows.then = lambda: go.wait(600)
    with pytest.raises(KeyboardInterrupt) as stopped:
        released(ledger, progress=interrupt)
    assert "epsilon 0.25 was charged for request 'r-1' and stays spent" in stopped.value.__notes__[0]
    assert state_of(ledger) == "forfeited" and spent(ledger) == pytest.approx(0.25)
    with pytest.raises(AnswerForfeited):
        released(ledger)
    assert rows.reads == 1


def test_ctrl_c_just_after_the_charge_says_so_too(ledger: Ledger, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    charge = ledger.charge

    def interrupted(*words: Any, **more: Any) -> None:
        charge(*words, **more)
        raise KeyboardInterrupt

    monkeypatch.setattr(ledger, "charge", interrupted)
    with pytest.raises(KeyboardInterrupt) as stopped:
        released(ledger)
    assert "stays spent" in stopped.value.__notes__[0] and spent(ledger) == pytest.approx(0.25)
    assert rows.reads == 0


@pytest.mark.slow
def test_a_time_limit_stops_the_engine_and_keeps_the_charge(ledger: Ledger) -> None:
    """The table has 10^10 rows; DuckDB would count for minutes."""
    tables = connection()
    tables.raw_sql("CREATE VIEW long AS SELECT (a.range + b.range) % 110 AS age FROM range(100000) a, range(100000) b")
    with quiet():
        slow = dataset(tables.table("long"), schema={"age": (0, 110)})
    with pytest.raises(AnswerForfeited, match=r"stopped after 0\.3 s"):
        Curator(ledger).release(slow, plan(), ledger_name="survey", request_id="r-1", timeout=0.3)
    assert state_of(ledger) == "forfeited" and spent(ledger) == pytest.approx(0.25)
    engine = slow._base.source.engine
    assert rows_of(engine, "SELECT 42") == [(42,)]  # the long query has given back its turn


def test_an_answer_that_comes_too_late_is_never_given(
    ledger: Ledger, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farthing.curator.questions.GRACE", 0.05)
    go = threading.Event()
    rows.then = lambda: go.wait(600)
    with pytest.raises(AnswerForfeited, match="stopped after"):
        released(ledger, timeout=0.1)
    go.set()
    with pytest.raises(AnswerForfeited):
        released(ledger)
    assert ledger.stored("r-1").answer is None  # type: ignore[union-attr]


# The record


def test_a_ledger_that_is_away_for_a_moment_gets_the_same_answer_again(
    ledger: Ledger, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "PAUSES", (0.01,))
    texts: list[str] = []
    release = ledger.release

    def once(charge: Any, text: str) -> Any:
        texts.append(text)
        return release(charge, text) if len(texts) > 1 else _failing()

    monkeypatch.setattr(ledger, "release", once)
    assert not released(ledger).repeated
    assert rows.reads == 1 and texts[0] == texts[1]


def test_an_answer_that_could_not_be_recorded_is_not_given(
    ledger: Ledger, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "PAUSES", (0.01,))
    with monkeypatch.context() as patch, pytest.raises(LedgerUnavailable):
        patch.setattr(ledger, "release", _failing)
        released(ledger)
    assert state_of(ledger) == "reserved" and spent(ledger) == pytest.approx(0.25)
    with pytest.raises(AnswerForfeited):
        released(ledger)
    assert rows.reads == 1 and state_of(ledger) == "forfeited"


@pytest.mark.parametrize("kind", [LedgerUnavailable, KeyboardInterrupt])
def test_an_answer_that_was_recorded_is_found_again(
    ledger: Ledger, rows: Rows, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    """The answer is in the ledger and the caller never got it."""
    monkeypatch.setattr(recording, "PAUSES", ())
    with monkeypatch.context() as patch, pytest.raises(kind):
        patch.setattr(ledger, "release", _done_and_failing(ledger.release, kind))
        released(ledger)
    again = released(ledger)
    assert again.repeated and rows.reads == 1 and spent(ledger) == pytest.approx(0.25)


def test_a_request_given_up_elsewhere_is_not_answered(ledger: Ledger, rows: Rows) -> None:
    """Another process lost patience while this one was running."""

    def forfeit() -> None:
        stored = ledger.stored("r-1")
        assert stored is not None
        ledger.forfeit(stored.charge, "no patience")

    rows.then = forfeit
    with pytest.raises(AnswerForfeited, match="meanwhile"):
        released(ledger)
    assert ledger.stored("r-1").answer is None  # type: ignore[union-attr]


def test_what_is_made_of_the_numbers_is_recorded_with_them(ledger: Ledger) -> None:
    first = released(ledger, post_processing=lambda found: {"people": float(found["people"][0]) / 2})
    again = released(ledger, post_processing=lambda found: {"people": -1})
    assert first.finished == again.finished == {"people": first.answers["people"][0] / 2}


def test_numbers_that_were_paid_for_survive_a_fault_in_what_is_made_of_them(ledger: Ledger, rows: Rows) -> None:
    def broken(found: Any) -> Any:
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            released(ledger, post_processing=broken)
    assert state_of(ledger) == "released"
    again = released(ledger, post_processing=lambda found: {"n": int(found["people"][0])})
    assert again.repeated and rows.reads == 1 and again.finished == {"n": again.answers["people"][0]}


def _failing(*_: Any, **__: Any) -> Any:
    raise LedgerUnavailable("the disk is full")


def _done_and_failing(act: Callable[..., Any], kind: type[BaseException]) -> Callable[..., Any]:
    def acted(*arguments: Any, **named: Any) -> Any:
        act(*arguments, **named)
        raise kind("the connection was lost")

    return acted


def _raising(problem: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise problem

    return fail

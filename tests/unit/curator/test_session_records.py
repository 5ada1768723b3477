"""A session in a ledger is charged once, its rounds are begun by one process each, and it can be taken up anywhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from asking import the_people
from farthing.curator import Curator, session_records
from farthing.curator import curator as curating
from farthing.curator import questions as recording
from farthing.curator.session_records import LedgerJournal, Session, opened_once, stored_session
from farthing.data import dataset
from farthing.errors import (
    AnswerForfeited,
    BudgetExceeded,
    FarthingError,
    InvalidValue,
    LedgerUnavailable,
    NotAllowed,
)
from farthing.ledger import Ledger, open_ledger
from farthing.privacy import ApproxDP

SESSION = Session(ApproxDP(1.0), "alpha=0.01", 5, lambda _: None, {"alpha": 0.01})


def _journal(ledger: Ledger, session: Session = SESSION, **options: Any) -> LedgerJournal:
    settings = {"ledger_name": "survey", "request_id": "monday", **options}
    analyst = settings.pop("analyst", None)
    return LedgerJournal(Curator(ledger, analyst=analyst), the_people(), session, **settings)


def _opened(ledger: Ledger, **options: Any) -> LedgerJournal:
    journal = _journal(ledger, **options)
    journal.opening(lambda: {"start": [1, 2]})
    return journal


def _spent(ledger: Ledger) -> float:
    return ledger.budget("survey").spent_upper


def test_the_session_is_charged_before_anything_is_drawn_and_drawn_once(ledger: Ledger) -> None:
    seen: list[float] = []

    def draw() -> dict[str, Any]:
        seen.append(_spent(ledger))
        return {"start": [len(seen)], "kind": "cells"}

    first = _journal(ledger).opening(draw)
    assert first == _journal(ledger).opening(draw) == {"start": [1], "kind": "cells"}
    assert seen == [1.0] and _spent(ledger) == 1.0
    assert stored_session(Curator(ledger), "monday") == {"alpha": 0.01}


def test_an_opening_that_draws_nothing_is_charged_too(ledger: Ledger) -> None:
    assert _journal(ledger).opening(dict) == {} == _journal(ledger).opening(dict)
    assert _spent(ledger) == 1.0


def test_an_opening_that_fails_leaves_the_charge_and_none_of_its_words(ledger: Ledger) -> None:
    def draw() -> dict[str, Any]:
        raise ValueError("secret 4711")

    with pytest.raises(AnswerForfeited, match="ended with ValueError") as caught:
        _journal(ledger).opening(draw)
    assert "4711" not in str(caught.value) and caught.value.__cause__ is None
    assert _spent(ledger) == 1.0
    with pytest.raises(AnswerForfeited):
        _journal(ledger).opening(lambda: {"start": 1})
    with pytest.raises(AnswerForfeited):
        stored_session(Curator(ledger), "monday")


def test_an_opening_that_takes_too_long_is_given_up(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "GRACE", 0.05)
    go = threading.Event()
    with pytest.raises(AnswerForfeited, match="stopped after"):
        _journal(ledger, timeout=0.05).opening(lambda: {"late": go.wait(600)})
    go.set()
    assert _spent(ledger) == 1.0


def test_a_second_process_waits_for_the_opening_of_the_first(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curating, "_turn_of", lambda *_: curating._Turn())  # processes have no common lock
    drawing, found = threading.Event(), []

    def slowly() -> dict[str, Any]:
        drawing.set()
        time.sleep(0.3)
        return {"start": 7}

    worker = threading.Thread(target=lambda: found.append(_journal(ledger).opening(slowly)))
    worker.start()
    assert drawing.wait(600)
    assert stored_session(Curator(ledger), "monday") == {"alpha": 0.01}
    assert _journal(ledger).opening(dict) == {"start": 7}
    worker.join()
    assert found == [{"start": 7}]


def test_an_opening_whose_process_died_is_forfeited_when_patience_ends(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = _journal(ledger)
    ledger.charge("survey", SESSION.event, request_id="monday", digest=journal._digest)
    monkeypatch.setattr(session_records, "PATIENCE", 0.05)
    with pytest.raises(AnswerForfeited):
        journal.opening(dict)
    assert ledger.stored("monday").state == "forfeited"  # type: ignore[union-attr]


def test_a_round_belongs_to_whoever_begins_it_first(ledger: Ledger) -> None:
    one, other = _opened(ledger), _opened(ledger)
    assert one.begin(1) and not other.begin(1) and not one.begin(1)
    assert other.begin(2)
    with pytest.raises(InvalidValue, match="that this journal has begun"):
        other.end(1, {"sign": 1})
    one.end(1, {"sign": 1})
    assert other.history() == one.history() == [(1, {"sign": 1})]


def test_rounds_cost_nothing_on_a_spent_budget_and_never_exceed_what_was_paid_for(ledger: Ledger) -> None:
    journal = _opened(ledger)
    before = ledger.budget("survey")
    for number in range(1, 6):
        assert journal.begin(number)
        journal.end(number, {"sign": number})
    with pytest.raises(InvalidValue, match="must be at most 5"):
        journal.begin(6)
    after = ledger.budget("survey")
    assert (after.spent_upper, after.remaining) == (before.spent_upper, before.remaining)
    assert ledger.verify().ok


def test_rounds_are_begun_in_order(ledger: Ledger) -> None:
    journal = _opened(ledger)
    with pytest.raises(InvalidValue, match="must not come before"):
        journal.begin(3)
    assert journal.begin(1) and journal.begin(2)
    assert _opened(ledger).begin(3)  # a journal that has not looked yet finds what others began


def test_history_stands_in_the_order_of_recording_and_only_grows(ledger: Ledger) -> None:
    one, other = _opened(ledger), _opened(ledger)
    assert one.begin(1) and other.begin(2) and one.begin(3)
    one.end(3, {"k": "c"})
    seen = other.history()
    other.end(2, {"k": "b"})
    one.end(1, {"k": "a"})
    assert [number for number, _ in seen] == [3]
    assert one.history() == other.history() == [*seen, (2, {"k": "b"}), (1, {"k": "a"})]
    assert _opened(ledger).history() == one.history()


def test_history_seen_half_way_through_a_look_is_in_order(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Round 1 is looked at, then rounds 1 and 2 are recorded, then round 2 is looked at."""
    one, other = _opened(ledger), _opened(ledger)
    assert one.begin(1) and one.begin(2)
    stored = ledger.stored

    def between(request_id: str) -> Any:
        found = stored(request_id)
        if " round 1 " in request_id and found is not None and found.answer is None:
            one.end(1, {"k": "a"})
            one.end(2, {"k": "b"})
        return found

    monkeypatch.setattr(ledger, "stored", between)
    assert other.history() == [(1, {"k": "a"}), (2, {"k": "b"})]


@pytest.mark.parametrize("kind", [LedgerUnavailable, KeyboardInterrupt])
def test_a_look_that_fails_half_way_loses_no_round(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    """The ledger goes away at any question of a look that has found a record already."""
    for good in range(1, 5):
        name = f"day {good}"
        ledger.set_budget("survey", float(good))
        one, other = _opened(ledger, request_id=name), _opened(ledger, request_id=name)
        assert other.begin(1) and one.begin(2)
        other.end(1, {"k": "a"})
        left, stored = good, ledger.stored

        def failing(request_id: str, stored: Any = stored) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise kind("away")
            return stored(request_id)

        with monkeypatch.context() as broken, pytest.raises(kind):
            broken.setattr(ledger, "stored", failing)
            other.history()
        one.end(2, {"k": "b"})
        assert other.history() == one.history() == [(1, {"k": "a"}), (2, {"k": "b"})]


def test_a_round_that_was_left_is_spent_and_the_next_one_goes_on(ledger: Ledger) -> None:
    _opened(ledger).begin(1)  # and its process dies
    later = _opened(ledger)
    assert later.history() == [] and not later.begin(1) and later.begin(2)


def test_a_round_that_somebody_gave_up_is_not_shown(ledger: Ledger) -> None:
    journal = _opened(ledger)
    assert journal.begin(1)
    ledger.forfeit(ledger.stored(journal._request(1)).charge, "given up")  # type: ignore[union-attr]
    with pytest.raises(AnswerForfeited):
        journal.end(1, {"sign": 1})
    assert journal.history() == []


def test_a_round_is_recorded_once(ledger: Ledger) -> None:
    journal = _opened(ledger)
    journal.begin(1)
    journal.end(1, {"sign": 1})
    journal.end(1, {"sign": 1})
    with pytest.raises(InvalidValue):
        journal.end(1, {"sign": -1})
    assert journal.history() == [(1, {"sign": 1})]


def test_a_ledger_that_is_away_is_asked_again(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = _opened(ledger)
    monkeypatch.setattr(recording, "PAUSES", (0.01,))

    def away(*_: Any, **__: Any) -> Any:
        raise LedgerUnavailable("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(ledger, "charge", away)
        with pytest.raises(LedgerUnavailable):
            journal.begin(1)
    assert journal.begin(1)
    with monkeypatch.context() as broken:
        broken.setattr(ledger, "release", away)
        with pytest.raises(LedgerUnavailable):
            journal.end(1, {"sign": 1})
    assert journal.history() == []
    journal.end(1, {"sign": 1})
    assert journal.history() == [(1, {"sign": 1})]


# Before the charge: nothing changes


def _other_unit(ledger: Ledger) -> LedgerJournal:
    persons = dataset(pa.table({"age": [30], "person": [1]}), unit="person", max_rows=1, schema={"age": (0, 110)})
    return LedgerJournal(Curator(ledger), persons, SESSION, ledger_name="survey", request_id="monday")


def _refusing(_: Any) -> None:
    raise InvalidValue("sensitivity", 1, "must be at least 2")


@pytest.mark.parametrize(
    ("made", "rule"),
    [
        (_other_unit, "must be 'row, add-remove'"),
        (lambda ledger: _journal(ledger, ledger_name="nobody"), "nobody"),
        (lambda ledger: _journal(ledger, analyst="eve"), "there is no grant"),
        (lambda ledger: _journal(ledger, request_id="x" * 195), "1 to 200 printable characters"),
        (
            lambda ledger: _journal(ledger, Session(ApproxDP(1.0), "d", 5, _refusing)),
            "must be at least 2",
        ),
        (lambda ledger: _journal(ledger, Session(ApproxDP(1.5), "d", 5, lambda _: None)), "exceeds"),
    ],
    ids=["other unit", "unknown name", "no grant", "long name", "too sensitive", "too dear"],
)
def test_what_cannot_be_opened_is_refused_before_anything_is_charged(
    ledger: Ledger, made: Callable[[Ledger], LedgerJournal], rule: str
) -> None:
    with pytest.raises(FarthingError, match=rule):
        made(ledger).opening(lambda: pytest.fail("nothing may be drawn"))
    assert _spent(ledger) == 0.0 and ledger.budget("survey").count == 0


@pytest.mark.parametrize(
    "other",
    [
        Session(ApproxDP(1.0), "alpha=0.02", 5, lambda _: None),
        Session(ApproxDP(1.0), "alpha=0.01", 6, lambda _: None),
        Session(ApproxDP(0.5), "alpha=0.01", 5, lambda _: None),
    ],
    ids=["plan", "rounds", "price"],
)
def test_another_session_under_the_same_name_is_refused(ledger: Ledger, other: Session) -> None:
    _opened(ledger)
    count = ledger.budget("survey").count
    with pytest.raises(InvalidValue, match="was charged before for something else"):
        _journal(ledger, other).opening(dict)
    assert ledger.budget("survey").count == count


def test_an_analyst_opens_a_session_with_a_grant_and_others_cannot_use_it(ledger: Ledger, tmp_path: Path) -> None:
    ledger.grant("survey", "bob", 1.0)
    ledger.grant("survey", "eve", 1.0)
    with open_ledger(tmp_path / "study.db", actor="bob", role="analyst") as own:
        journal = _opened(own)
        assert journal.begin(1)
        journal.end(1, {"sign": 1})
    assert ledger.budget("survey", "bob").spent_upper == 1.0
    with (
        open_ledger(tmp_path / "study.db", actor="eve", role="analyst") as stranger,
        pytest.raises(FarthingError),
    ):
        _opened(stranger)
    assert ledger.budget("survey", "eve").spent_upper == 0.0


@pytest.mark.parametrize("session", ["owner's", "bob's"])
def test_nobody_can_take_the_rounds_of_a_session_away_or_record_something_as_theirs(
    ledger: Ledger, tmp_path: Path, session: str
) -> None:
    ledger.grant("survey", "bob", 1.0)
    ledger.grant("survey", "eve", 0.1)
    with (
        open_ledger(tmp_path / "study.db", actor="bob", role="analyst") as bob,
        open_ledger(tmp_path / "study.db", actor="eve", role="analyst") as eve,
    ):
        own = ledger if session == "owner's" else bob
        journal = _journal(own)
        journal.opening(lambda: {"start": eve.charge("survey", 0.0, request_id="between").sequence})
        seen = [entry.previous[:16] for entry in eve.entries()]  # the mark of the opening's charge among them
        for suffix in (
            "round 1",
            "round 1 ----------------",
            "round 2",
            *(f"round 1 {mark}" for mark in seen),
        ):
            eve.release(eve.charge("survey", 0.0, request_id=f"monday {suffix}"), '{"sign": 9}')
        with pytest.raises(NotAllowed):
            eve.stored("monday")  # from which the names of rounds follow
        assert journal.history() == [] and journal.begin(1)
        journal.end(1, {"sign": 1})
        assert _opened(own).history() == [(1, {"sign": 1})]


def test_no_round_is_begun_before_the_session_is_charged(ledger: Ledger) -> None:
    with pytest.raises(InvalidValue, match="must be that of a session that was opened"):
        _journal(ledger).begin(1)
    assert ledger.budget("survey").count == 0


def test_an_auditor_opens_nothing(ledger: Ledger, tmp_path: Path) -> None:
    with (
        open_ledger(tmp_path / "study.db", actor="ann", role="auditor") as reader,
        pytest.raises(NotAllowed),
    ):
        _opened(reader)
    assert _spent(ledger) == 0.0


def test_an_exhausted_budget_opens_nothing(ledger: Ledger) -> None:
    ledger.charge("survey", 0.25, request_id="r-1")
    with pytest.raises(BudgetExceeded):
        _opened(ledger)
    assert _spent(ledger) == 0.25


def test_the_id_of_something_else_is_no_session(ledger: Ledger) -> None:
    from asking import released

    released(ledger, "monday")
    with pytest.raises(InvalidValue, match="something else"):
        stored_session(Curator(ledger), "monday")


def test_whoever_is_overtaken_tries_again_and_a_failure_of_its_own_is_raised(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "study.db") as ledger:
        ledger.register("people", 1.0)
        tries: list[str] = []

        def overtaken() -> str:
            tries.append("once")
            if ledger.stored("session") is None:
                ledger.charge("people", 1.0, request_id="session")  # by the other process, in between
                raise InvalidValue("epsilon", 1.0, "exceeds the 0 left")
            return "resumed"

        def refused() -> str:
            tries.append("refused")
            raise InvalidValue("epsilon", 9.0, "exceeds the 0 left")

        assert opened_once(Curator(ledger), "session", overtaken) == "resumed"
        assert len(tries) == 2
        for request in ("session", "another"):  # one that was there before, and one that nobody opened
            with pytest.raises(InvalidValue):
                opened_once(Curator(ledger), request, refused)
        assert tries.count("refused") == 2

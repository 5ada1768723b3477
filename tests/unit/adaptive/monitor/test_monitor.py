"""A monitor without a ledger: rounds, alerts, muting, restarts, and what happens when a journal fails."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from typing import Any

import pytest

from farthing.adaptive.monitor import Monitor, MonitorPlan, Series, plan_monitor
from farthing.adaptive.session_journal import MemoryJournal
from farthing.errors import FarthingError, InvalidValue, LedgerUnavailable, SessionEnded
from farthing.mechanisms import threshold_session
from farthing.privacy import ApproxDP, Composed
from sources import TestSource

FAR = 10**6


def plan(series: int = 3, threshold: int = 0, **changed: Any) -> MonitorPlan:
    names = [Series(f"s{place}", "s") for place in range(series)]
    told: dict[str, Any] = {"alerts": 2, "steps": 10, "epsilon": 1.0, **changed}
    return plan_monitor(names, [threshold] * series, **told)


def monitor(values: Sequence[int], journal: Any = None, **changed: Any) -> Monitor:
    asked = plan(len(values), **changed)
    return Monitor(asked, lambda **_: list(values), journal or MemoryJournal())


def test_an_alert_ends_a_round_and_the_look_goes_on_with_the_next() -> None:
    watching = monitor([FAR, -FAR, FAR])
    look = watching.look()
    assert [alert.series for alert in look] == ["s0", "s2"]
    assert look.complete and bool(look)
    assert watching.alerts_left == 0
    assert all(abs(alert.above_by - FAR) < 1_000 for alert in look)


def test_when_the_last_alert_is_given_the_rest_is_unseen_and_the_next_look_refused() -> None:
    watching = monitor([FAR, FAR, FAR, -FAR])
    look = watching.look()
    assert [alert.series for alert in look] == ["s0", "s1"]
    assert look.unseen == ("s2", "s3")
    with pytest.raises(SessionEnded, match="all 2 rounds"):
        watching.look()
    assert [alert.series for alert in watching.alerts] == ["s0", "s1"]


def test_a_single_look_ends_with_its_first_alert_and_begins_no_other_round() -> None:
    watching = monitor([-FAR, FAR, FAR, -FAR])
    look = watching.look(single=True)
    assert [alert.series for alert in look] == ["s1"] and look.unseen == ("s2", "s3")
    assert watching.alerts_left == 1 and not watching.running
    assert [alert.series for alert in watching.look(single=True)] == ["s2"]


def test_looks_without_an_alert_use_nothing_up() -> None:
    watching = monitor([-FAR] * 3)
    assert not any(watching.look() for _ in range(50))
    assert watching.alerts_left == 2
    assert watching.look().step == 51


def test_a_series_that_was_reported_is_muted_unless_told() -> None:
    assert [len(watching.look()) for watching in [monitor([FAR, -FAR])] for _ in range(3)] == [1, 0, 0]
    heard = monitor([FAR, -FAR], mute=False, alerts=3)
    assert [len(heard.look()) for _ in range(3)] == [1, 1, 1]


def test_when_every_series_was_reported_nothing_is_read_and_no_round_begun() -> None:
    reads: list[int] = []
    asked = plan(1, alerts=3)
    watching = Monitor(asked, lambda **_: reads.append(1) or [FAR], MemoryJournal())  # type: ignore[func-returns-value]
    assert len(watching.look()) == 1
    assert watching.watched == []
    assert len(watching.look()) == 0
    assert reads == [1] and watching.alerts_left == 2 and not watching.running


def test_every_round_draws_its_own_threshold_and_every_question_its_own_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[object] = []

    def scripted(rate: object, bits: object) -> int:
        drawn.append(rate)
        return 0

    monkeypatch.setattr(threshold_session, "geometric", scripted)
    watching = monitor([-FAR, FAR, -FAR], mute=False, alerts=2)
    threshold, question = watching.plan.mechanism._rates
    watching.look()
    assert drawn == [threshold, question, question, threshold, question]
    watching.look()  # the second round goes on, gives its alert, and is the last
    assert drawn[5:] == [question, question]


def test_thresholds_are_those_of_the_series() -> None:
    asked = plan_monitor([Series("a", "a"), Series("b", "b")], [FAR, 3 * FAR], alerts=1, steps=1, epsilon=1.0)
    look = Monitor(asked, lambda **_: [2 * FAR, 2 * FAR], MemoryJournal()).look()
    assert [alert.series for alert in look] == ["a"]
    assert look[0].threshold == FAR
    assert abs(look[0].estimate - 2 * FAR) < 1_000


def test_a_monitor_opened_again_remembers_alerts_and_loses_the_running_round() -> None:
    journal = MemoryJournal()
    values = [FAR, -FAR]
    first = monitor(values, journal, alerts=3)
    assert len(first.look(step=4)) == 1
    assert len(first.look()) == 0  # the second round is running now
    again = monitor(values, journal, alerts=3)
    assert [(alert.series, alert.step) for alert in again.alerts] == [("s0", 4)]
    assert again.look(fresh=True).step == 6
    assert again.alerts_left == 1  # of three: one gave its alert, one is lost, one is running
    values[1] = FAR
    third = monitor(values, journal, alerts=3)
    with pytest.raises(SessionEnded):
        third.look(fresh=True)


def test_a_script_that_is_run_again_gets_its_looks_again_and_begins_no_round() -> None:
    journal, values = MemoryJournal(), [-FAR, FAR, -FAR]

    def script(looks: int) -> tuple[list[Any], int]:
        watching = monitor(values, journal, alerts=5, mute=False)
        found = [watching.look() for _ in range(looks)]
        assert [look.step for look in found] == list(range(1, looks + 1))
        return [(look.alerts, look.error, look.unseen) for look in found], journal.begun()

    first, begun = script(2)
    assert len(first[0][0]) == len(first[1][0]) == 1 and begun == 3
    values[1] = -FAR  # what the table has become changes nothing
    assert script(2) == (first, begun) and script(1) == (first[:1], begun)
    longer, after = script(3)  # it goes on where the first script ended
    assert longer[:2] == first and not longer[2][0] and after == begun + 1
    assert script(3) == (longer, after)


def test_only_the_same_look_is_repeated_and_a_number_names_one() -> None:
    journal, reads = MemoryJournal(), list[Any]()

    def opened() -> Monitor:
        def read(table: Any, where: Any) -> list[int]:
            reads.append(where)
            return [-FAR]

        return Monitor(plan(1, alerts=9), read, journal, lambda table, where: str(where))

    first = opened()
    assert [first.look(where=place).repeated for place in "aba"] == [False] * 3
    again = opened()
    assert [again.look(where=place).step for place in "baa"] == [2, 1, 3] and again.latest == 3
    assert again.look(where="c").step == 4 and reads == ["a", "b", "a", "c"]
    by_number = opened()
    assert by_number.look(where="a", step=3).repeated and not by_number.look(where="a", step=4).repeated
    assert opened().look(where="a", fresh=True).step == 5
    fresh = opened()
    assert [fresh.look(where="a", fresh=place == 1).repeated for place in range(3)] == [True, False, False]


def test_a_table_that_is_passed_in_is_looked_at_as_it_is() -> None:
    journal = MemoryJournal()

    def opened() -> Monitor:
        return Monitor(plan(1, alerts=9), lambda table, where: [FAR if table == "friday" else -FAR], journal)

    assert not opened().look("monday").alerts
    friday = opened().look("friday")
    assert friday.alerts and not friday.repeated
    assert opened().look("friday", step=1).repeated  # unless the number of an earlier look is asked for


def test_two_monitors_on_one_journal_never_give_more_than_the_alerts() -> None:
    journal = MemoryJournal()
    both = [monitor([FAR, FAR], journal, alerts=5, mute=False) for _ in range(2)]
    given = 0
    for turn in range(4):
        try:
            given += len(both[turn % 2].look())
        except SessionEnded:
            assert turn == 3
    assert given == len(journal.history()) == 5


class FailingJournal(MemoryJournal):
    """A journal that is away when told so."""

    away = ""

    def begin(self, round_number: int) -> bool:
        if self.away == "begin":
            raise LedgerUnavailable("away")
        return super().begin(round_number)

    def end(self, round_number: int, record: Any) -> None:
        if self.away == "end":
            raise LedgerUnavailable("away")
        if self.away == "lost":
            raise InvalidValue("round_number", round_number, "was given up")
        super().end(round_number, record)


def test_an_alert_that_cannot_be_recorded_is_shown_by_the_next_look() -> None:
    journal = FailingJournal()
    watching = monitor([FAR, -FAR], journal)
    journal.away = "end"
    for _ in range(2):
        with pytest.raises(LedgerUnavailable):
            watching.look()
    assert watching.alerts == []
    journal.away = ""
    assert [alert.series for alert in watching.look()] == ["s0"]
    assert watching.alerts_left == 1


def test_the_finding_of_a_round_that_was_given_up_is_never_shown() -> None:
    journal = FailingJournal()
    watching = monitor([FAR, -FAR], journal)
    journal.away = "lost"
    with pytest.raises(InvalidValue):
        watching.look()
    journal.away = ""
    assert [number for number, _ in journal.history()] == []
    assert len(watching.look()) == 1  # found again, in the second round, and paid for again
    assert watching.alerts_left == 0


def test_no_row_is_read_when_no_round_can_be_begun() -> None:
    journal, reads = FailingJournal(), []
    watching = Monitor(plan(1), lambda **_: reads.append(1) or [-FAR], journal)  # type: ignore[func-returns-value]
    journal.away = "begin"
    with pytest.raises(LedgerUnavailable):
        watching.look()
    assert not reads
    journal.away = ""
    watching.look()
    assert watching.alerts_left == 2


def test_a_read_that_fails_uses_nothing_up() -> None:
    def read(**_: Any) -> list[int]:
        raise OSError("away")

    watching = Monitor(plan(1), read, MemoryJournal())
    for _ in range(3):
        with pytest.raises(OSError, match="away"):
            watching.look()
    assert watching.alerts_left == 2


def test_the_error_holds_for_all_looks_and_grows_when_there_are_more() -> None:
    watching = monitor([-FAR], steps=2)
    errors = [watching.look().error for _ in range(40)]
    assert errors[0] == errors[1] == watching.plan.error
    assert errors[-1] == watching.plan.error_of(40) > watching.plan.error


@pytest.mark.slow
def test_monitors_keep_the_stated_confidence() -> None:
    """All series just beyond the error: no more false alarms than stated; noise of four times the width is seen."""
    asked, loose = (plan(4, alerts=1, steps=5, epsilon=e, confidence=0.8) for e in (0.5, 0.125))
    runs, source = 400, TestSource(5)
    for drawn in (asked, loose):
        failures = 0
        for _ in range(runs):
            watching = Monitor(drawn, lambda **_: [-asked.error - 1] * 4, MemoryJournal())
            watching._source = source
            failures += any(watching.look() for _ in range(5) if watching.alerts_left)
        # The mean is at most 80; 5 standard deviations are 40.
        assert (failures <= 120) == (drawn is asked)


def test_the_price_is_fixed_when_the_plan_is_made() -> None:
    pure = plan(alerts=4)
    assert pure.event == Composed(((ApproxDP(pure.round_epsilon), 4),))
    assert pure.round_epsilon == pytest.approx(0.25, rel=1e-8)
    assert pure.round_epsilon * 4 <= 1.0
    advanced = plan(alerts=400, delta=1e-9)
    assert advanced.round_epsilon > 1.5 / 400  # optimal composition, not a sum
    assert plan(monotone=True).error < plan().error < plan(l1_sensitivity=3).error


def test_chances_of_the_plan_agree_with_its_error() -> None:
    asked = plan(alerts=3, steps=20)
    assert asked.false_alarm(asked.error + 1) <= 0.05
    assert asked.miss(asked.error + 1) <= 0.05
    assert asked.false_alarm(0) == 1.0


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"alerts": 0}, "alerts"),
        ({"alerts": 2.5}, "alerts"),
        ({"steps": 0}, "steps"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"confidence": 1.0}, "confidence"),
        ({"mute": "yes"}, "mute"),
    ],
)
def test_bad_plans_are_refused_by_name(changed: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        plan(**changed)
    assert refused.value.name == named


def test_nothing_private_is_shown_or_carried_away(monkeypatch: pytest.MonkeyPatch) -> None:
    watching = monitor([7654321, -FAR])
    watching.look()
    assert "7654321" not in repr(watching) + str(watching.plan) + repr(watching.plan)
    with pytest.raises((TypeError, AttributeError)):
        pickle.dumps(watching)
    monkeypatch.setattr(threshold_session.os, "getpid", lambda: -1)  # as in a forked child
    with pytest.raises(FarthingError, match="of another process"):
        watching.look()

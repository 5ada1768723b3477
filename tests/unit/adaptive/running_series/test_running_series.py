"""A running series without a ledger: periods in turn, steps that stay, and what happens when a journal fails."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import pytest

from farthing.adaptive.monitor import Series
from farthing.adaptive.running_series import RunningSeries, RunningSeriesPlan, plan_running_series, running_series
from farthing.adaptive.session_journal import MemoryJournal
from farthing.errors import InvalidValue, LedgerUnavailable
from farthing.privacy.periods import Periods

REGIONS = [Series("north", "visits", ("north",)), Series("south", "visits", ("south",))]
TRUE = np.array([[500, 700, 600, 800, 900, 650], [50, 70, 60, 80, 90, 65]])


def plan(**changed: Any) -> RunningSeriesPlan:
    options: dict[str, Any] = {"epsilon": 1.0, "append_only": True, **changed}
    return plan_running_series(REGIONS, Periods.of("month", "2025-01", 6), **options)


def series(journal: Any = None, table: Any = TRUE, reads: list[int] | None = None, **changed: Any) -> RunningSeries:
    def read(table_now: Any, periods: int) -> Any:
        if reads is not None:
            reads.append(periods)
        return (table if table_now is None else table_now)[:, :periods]

    return RunningSeries(plan(**changed), lambda table, periods: read(table, periods), journal or MemoryJournal())


def test_each_period_is_released_once_and_asking_again_reads_nothing() -> None:
    reads: list[int] = []
    running = series(reads=reads)
    assert [step.period for step in running.update(until="2025-02")] == ["2025-01", "2025-02"]
    first = [step.total.values.tolist() for step in running.steps]
    assert running.update(until="2025-02") == () and reads == [2]
    assert [step.period for step in running.update()] == ["2025-03", "2025-04", "2025-05", "2025-06"]
    assert running.next is None and running.update() == () and reads == [2, 6]
    assert [step.total.values.tolist() for step in running.steps[:2]] == first


def test_answers_are_within_reach_of_the_truth_and_of_one_another() -> None:
    for changed in ({}, {"delta": 1e-4}, {"append_only": False, "delta": 1e-4}):
        running = series(**changed)
        running.update()
        for place, step in enumerate(running.steps):
            assert np.abs(step.total.values - TRUE[:, : place + 1].sum(axis=1)).max() < 400
            assert np.abs(step.count.values - TRUE[:, place]).max() < 600
        spring = running.sum("2025-03", date(2025, 5, 17))
        assert np.abs(spring.values - TRUE[:, 2:5].sum(axis=1)).max() < 600
        assert running.sum("2025-01", "2025-06").values.tolist() == running.steps[-1].total.values.tolist()


def test_a_period_that_is_not_over_is_refused_and_one_that_is_comes_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    running = series()
    monkeypatch.setattr(running_series, "_today", lambda: date(2025, 3, 31))
    with pytest.raises(InvalidValue, match="is not over before 2025-04-01"):
        running.update(until="2025-03")
    assert len(running.update()) == 2 and running.next == "2025-03"
    monkeypatch.setattr(running_series, "_today", lambda: date(2025, 4, 1))
    assert [step.period for step in running.update()] == ["2025-03"]
    with pytest.raises(InvalidValue, match="must be a period that was released"):
        running.sum("2025-01", "2025-04")
    with pytest.raises(InvalidValue, match="must be one of 2025-01 to 2025-06"):
        running.update(until="2026-01")


class Failing(MemoryJournal):
    """A journal that is away when the first step is recorded: before it is kept, or after."""

    def __init__(self, kept: bool) -> None:
        super().__init__()
        self._kept: bool | None = kept

    def record_once(self, round_number: int, draw: Callable[[], Any]) -> Any:
        kept, self._kept = self._kept, None
        if kept is None:
            return super().record_once(round_number, draw)
        draw()
        if kept:
            super().record_once(round_number, draw)
        raise LedgerUnavailable("away")


@pytest.mark.parametrize("kept", [True, False])
def test_a_step_whose_record_failed_is_recorded_once_and_never_lost(kept: bool) -> None:
    journal = Failing(kept)
    running = series(journal)
    with pytest.raises(LedgerUnavailable):
        running.update()
    before = journal.history()
    assert len(before) == kept
    assert len(running.update()) == 6 - kept and len(running.steps) == 6
    assert journal.history()[: len(before)] == before


def test_another_object_of_the_session_goes_on_where_the_first_stopped() -> None:
    journal = MemoryJournal()
    first, second = series(journal), series(journal)
    first.update(until="2025-03")
    assert [step.period for step in second.update(until="2025-05")] == ["2025-04", "2025-05"]
    assert [s.total.values.tolist() for s in first.steps] == [s.total.values.tolist() for s in second.steps]


def test_nothing_but_what_was_measured_is_recorded() -> None:
    journal = MemoryJournal()
    series(journal).update()
    assert all(set(record) == {"measured"} for _, record in journal.history())


@pytest.mark.parametrize(
    "wrong",
    [{"epsilon": 0.0}, {"rows": 0}, {"neighbours": "other"}, {"confidence": 1.0}, {"append_only": 1}, {"delta": 2.0}],
)
def test_wrong_arguments_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        plan(**wrong)


def test_a_plan_says_what_it_rests_on() -> None:
    assert "as long as rows are only added" in str(plan())
    assert "whatever is added, changed or removed" in str(plan(append_only=False))
    assert len(plan().to_dict()["total_errors"]) == 6

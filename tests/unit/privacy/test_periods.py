"""Periods: without gaps, without overlap, and called what people call them."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from farthing.errors import InvalidValue
from farthing.privacy.periods import EVERY, Every, Periods, period_of


@pytest.mark.parametrize("every", EVERY)
def test_every_day_lies_in_one_period(every: Every) -> None:
    periods = Periods.of(every, "2023-12-30", 30)
    day = periods.start
    while day < min(periods.edges[-1], periods.start + timedelta(days=1500)):
        place = periods.place(day)
        assert periods.edges[place] <= day < periods.edges[place + 1]
        assert period_of(day, every) == periods.edges[place]
        day += timedelta(days=1)
    assert len(set(periods.names)) == 30
    assert [periods.place(name) for name in periods.names] == list(range(30))


def test_a_period_is_over_on_the_day_after_its_last() -> None:
    months = Periods.of("month", "2024-01", 3)
    assert [
        months.over_by(day) for day in (date(2024, 1, 31), date(2024, 2, 1), date(2024, 3, 31), date(2030, 1, 1))
    ] == [
        0,
        1,
        2,
        3,
    ]


@pytest.mark.parametrize(
    "first", ["2024-13", "2024-00", "2024-W00", "2024-W54", "2024-02-30", "spring", "", None, 2024]
)
def test_what_is_no_period_is_refused(first: object) -> None:
    with pytest.raises(InvalidValue):
        Periods.of("month", first, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize(("every", "count"), [("fortnight", 3), ("month", 0), ("day", 1_501), ("month", 2.5)])
def test_lengths_and_numbers_are_checked(every: str, count: int) -> None:
    with pytest.raises(InvalidValue):
        Periods.of(every, "2024", count)
    with pytest.raises(InvalidValue):
        Periods("month", date(2024, 1, 2), 3)

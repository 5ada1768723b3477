"""Days, weeks, months, quarters and years: how a calendar cuts time into periods that do not overlap."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from typing import Literal, get_args

from farthing.errors import InvalidValue
from farthing.privacy.events import checked_count

__all__ = ["EVERY", "Every", "Periods", "period_of"]

Every = Literal["day", "week", "month", "quarter", "year"]
EVERY: tuple[Every, ...] = get_args(Every)
MOST_PERIODS = 1_500

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_SPELLED = re.compile(r"(\d{4})(?:-(?:Q([1-4])|W(\d\d)|(\d\d)(?:-(\d\d))?))?")


@dataclass(frozen=True)
class Periods:
    """So many periods, one after the other, without gaps: a day lies in one of them at most.

    Args:
        every: "day", "week" (from Monday), "month", "quarter" or "year".
        start: The first day of the first period.
        count: How many periods.

    Raises:
        InvalidValue: If `start` is not the first day of a period, or there are too many.

    >>> year = Periods.of("month", "2026-01", 12)
    >>> year.names[0], year.names[-1], year.edges[-1]
    ('2026-01', '2026-12', datetime.date(2027, 1, 1))
    >>> year.place("2026-03"), year.over_by(date(2026, 3, 1))
    (2, 2)
    """

    every: Every
    start: date
    count: int

    def __post_init__(self) -> None:
        _checked_every(self.every)
        if not 1 <= checked_count(self.count, "steps") <= MOST_PERIODS:
            raise InvalidValue("steps", self.count, f"must be a whole number from 1 to {MOST_PERIODS:,}")
        if self.start != period_of(self.start, self.every):
            raise InvalidValue("first", self.start.isoformat(), f"must be the first day of a {self.every}")
        if not self.start.year + self.count < 9999:
            raise InvalidValue("first", self.start.isoformat(), "must be a day of this age")

    @classmethod
    def of(cls, every: str, first: str | date, count: int) -> Periods:
        """Periods from the one that `first` names, or lies in, on.

        Args:
            every: How long each is.
            first: A day, or a text: "2026", "2026-Q1", "2026-03", "2026-W05" or "2026-03-31".
            count: How many.

        Returns:
            The periods.

        Raises:
            InvalidValue: If an argument is none of these.

        >>> Periods.of("quarter", date(2026, 5, 9), 2).names
        ('2026-Q2', '2026-Q3')
        """
        kind = _checked_every(every)
        return cls(kind, period_of(first if isinstance(first, date) else _read(first), kind), count)

    @cached_property
    def edges(self) -> tuple[date, ...]:
        """The first day of each period, and the day after the last one."""
        edges = [self.start]
        for _ in range(self.count):
            edges.append(_next(edges[-1], self.every))
        return tuple(edges)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each period is called: 2026-01-31, 2026-W05, 2026-01, 2026-Q1 or 2026."""
        return tuple(_name(day, self.every) for day in self.edges[:-1])

    def place(self, period: str | date) -> int:
        """The place of a period, from 0 on.

        Args:
            period: Its name, or a day that lies in it.

        Returns:
            Its place.

        Raises:
            InvalidValue: If it is none of these periods.
        """
        day = period_of(period if isinstance(period, date) else _read(period), self.every)
        if day not in self.edges[:-1]:
            raise InvalidValue("period", str(period), f"must be one of {self.names[0]} to {self.names[-1]}")
        return self.edges.index(day)

    def over_by(self, today: date) -> int:
        """How many of the periods are over on a day.

        Args:
            today: The day.

        Returns:
            The number of periods whose last day lies before it.
        """
        return sum(edge <= today for edge in self.edges[1:])

    def __str__(self) -> str:
        many = f"{self.count:,} {self.every}{'s' * (self.count > 1)}"
        return f"{many}, {self.names[0]}" + (f" to {self.names[-1]}" if self.count > 1 else "")


def period_of(day: date, every: Every) -> date:
    """The first day of the period that a day lies in.

    Args:
        day: The day.
        every: How long periods are.

    Returns:
        The first day.

    >>> period_of(date(2026, 8, 20), "quarter"), period_of(date(2026, 8, 20), "week")
    (datetime.date(2026, 7, 1), datetime.date(2026, 8, 17))
    """
    if every == "day":
        return date(day.year, day.month, day.day)
    if every == "week":
        return date(day.year, day.month, day.day) - timedelta(days=day.weekday())
    months = _MONTHS[every]
    return date(day.year, (day.month - 1) // months * months + 1, 1)


def _next(day: date, every: Every) -> date:
    if every in ("day", "week"):
        return day + timedelta(days=1 if every == "day" else 7)
    months = day.year * 12 + day.month - 1 + _MONTHS[every]
    return date(months // 12, months % 12 + 1, 1)


def _name(day: date, every: Every) -> str:
    if every == "week":
        year, week, _ = day.isocalendar()
        return f"{year}-W{week:02}"
    if every == "quarter":
        return f"{day.year}-Q{(day.month + 2) // 3}"
    return day.isoformat()[: {"day": 10, "month": 7, "year": 4}[every]]


def _read(text: object) -> date:
    """The first day of what a text names."""
    spelled = _SPELLED.fullmatch(text) if isinstance(text, str) else None
    if spelled is not None:
        year, quarter, week, month, day = (int(part) if part else None for part in spelled.groups())
        assert year is not None
        try:
            if week is not None:
                return date.fromisocalendar(year, week, 1)
            if quarter is not None:
                return date(year, 3 * quarter - 2, 1)
            return date(year, 1 if month is None else month, 1 if day is None else day)
        except ValueError:
            pass
    raise InvalidValue("period", text, "must be a day or a period", 'such as "2026-01", "2026-Q1" or "2026-01-31"')


def _checked_every(every: str) -> Every:
    if every not in EVERY:
        raise InvalidValue("every", every, f"must be one of {', '.join(EVERY)}")
    return every

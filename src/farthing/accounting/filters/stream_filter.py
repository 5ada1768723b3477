"""A filter for charges of many sizes: the clock, with prices that know how far the loss of a charge reaches."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from farthing.accounting.event_price import price_of
from farthing.accounting.filters.clock_filter import ClockFilter, affordable
from farthing.accounting.filters.stream_table import UNITS, StreamTable, stream_table
from farthing.errors import InvalidValue
from farthing.numerics.bounds import exact
from farthing.privacy import ApproxDP, DiscreteLaplaceNoise, Event, GaussianNoise, LaplaceNoise, RandomizedResponse
from farthing.privacy.events import checked_epsilon

__all__ = ["StreamFilter"]

_AHEAD = 4  # a Gaussian clock that keeps so many charges makes the next cost a twenty-fourth more than an endless one


@dataclass(frozen=True, repr=False)
class StreamFilter(ClockFilter):
    """Admits charges of different sizes, large and small in any order, while a clock lasts that knows their bounds.

    For streams of charges of which some are not small beside the budget. Of charges between 0.001 and 0.05 at (1, 1e-9)
    it admits 44 where ClockFilter admits 40 and 48 could have been fixed in advance; at (1, 1e-6) 63, where that admits
    62, RenyiFilter too, and 70 could have been fixed. Where all charges are small, or all are Gaussian noise,
    ClockFilter admits 2 to 3% more. It takes a little more than half a second to open.

    Args:
        epsilon: The epsilon of the whole budget.
        delta: The delta of the whole budget.
        leak: The part of delta set aside for the charges' own deltas; half by default. With pure charges pass 0.
        largest: The largest epsilon that many of the charges will have; a twentieth of the budget's by default. Charges
            above it are admitted too, at the price of Gaussian noise or by plain sums.

    Raises:
        InvalidValue: If a parameter is out of its range.

    >>> from farthing.accounting.filters import ClockFilter
    >>> stream, clock = StreamFilter(1.0, 1e-6, leak=0), ClockFilter(1.0, 1e-6, leak=0, equal_charges=False)
    >>> stream.admits(0.05, count=23), clock.admits(0.05, count=22)      # large charges
    (True, False)
    >>> stream.admits(0.01, count=545), clock.admits(0.01, count=558)    # small ones
    (False, True)

    Statement:
        See `stream_table`: a state of k units, a bonus and a Gaussian clock g. Charges whose epsilon is on the menu
        take units and the bonus, others take of g, for which units and last of all the bonus are exchanged as needed.
        Otherwise as ClockFilter: if on every path the charges' own deltas and their t sum to at most leak, and either
        the state pays for every charge or from the first charge that it could not pay on the plain sum of epsilons
        stays within epsilon, then all answers together are (epsilon, slack + leak)-DP.
    Source: Theorem 6 on the page docs/clock.md, written for farthing.
    Assumes: as ClockFilter; `largest` is chosen before the first answer.
    Direction: units are proven with a margin, prices are whole units, and everything else is rounded as in ClockFilter.
    Checked by: tests/theorems/test_stream_filter.py
    """

    PARTS: ClassVar[int] = UNITS

    equal_charges: bool = field(default=False, init=False)
    largest: float | None = None
    _units: int = field(default=0, init=False)
    _bonus: int = field(default=0, init=False)  # what of the clock is neither units nor bonus is Gaussian
    _table: StreamTable = field(default=StreamTable(), init=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        largest = self.epsilon / 20 if self.largest is None else checked_epsilon(self.largest)
        if not largest <= self.epsilon:
            raise InvalidValue("largest", self.largest, f"must be at most epsilon={self.epsilon!r}")
        table = stream_table(exact(self.epsilon), self._reduced_slack, largest, self.PARTS)
        self._set(largest=largest, _table=table)
        if table.menus:
            start = table.count * table.unit + table.bonus
            self._set(_clock=start, _start=start, _units=table.count, _bonus=table.bonus)

    def _largest_epsilon(self) -> float:
        return max(super()._largest_epsilon(), self._table.largest(self._units) if self._clock is not None else 0.0)

    @property
    def _whole_gaussian(self) -> int:
        """The Gaussian clock that there would be if all units and the bonus were exchanged."""
        assert self._clock is not None
        return self._clock - self._units % self._table.step * self._table.unit

    def _spend(self, event: Event, count: int) -> None:
        epsilon = _bound_of_loss(event)
        while count and epsilon and self._clock is not None:
            price = self._table.price(epsilon, self._units)
            if price is None:
                break
            left = self._clock - price * self._table.unit - self._bonus
            self._set(_units=self._units - price, _bonus=0, _clock=left)
            count -= 1
        super()._spend(event, count)

    def _gaussian(self, event: Event, count: int, leak: int) -> int:
        """The Gaussian part of the clock, after units were exchanged for what the event needs."""
        assert self._clock is not None
        if not self._units and not self._bonus:
            return self._clock
        step = affordable(event, self._whole_gaussian, leak)
        if step is not None:
            ahead = 0 if isinstance(event, GaussianNoise) else _AHEAD
            missing = (count + ahead) * step[1].clock - self._pocket
            blocks = max(0, -(-missing // (self._table.step * self._table.unit)))
            self._set(_units=self._units - min(blocks, self._units // self._table.step) * self._table.step)
        if step is None or affordable(event, self._pocket, leak) is None:  # it needs all that there is
            self._set(_clock=self._whole_gaussian, _units=0, _bonus=0)
        return self._pocket

    @property
    def _pocket(self) -> int:
        assert self._clock is not None
        return self._clock - self._units * self._table.unit - self._bonus


def _bound_of_loss(event: Event) -> Fraction | None:
    """The epsilon of an event that is priced as randomized response."""
    bounded = isinstance(event, ApproxDP | RandomizedResponse | LaplaceNoise | DiscreteLaplaceNoise)
    return price_of(event).epsilon if bounded else None

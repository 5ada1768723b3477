"""Private quantiles: the exponential mechanism over a public grid, scored by the distance in rank."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms.mechanism import Mechanism, checked_rows
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.ranked_intervals import drawn_point
from farthing.mechanisms.samplers.single_draws import Bits
from farthing.mechanisms.selection_scores import checked_confidence, least_gap
from farthing.mechanisms.weighted_choice import event_of_bounded_range
from farthing.numerics.bounds import rounded_up
from farthing.privacy import Event
from farthing.privacy.events import checked_count, checked_mechanism_epsilon, checked_real

NeighboringRelation = Literal["add-remove", "replace"]

_MOST_POINTS = 2**62


class GridQuantiles(Mechanism):
    """What one quantile and several of them share: the grid, and how a column of numbers is put on it."""

    __slots__ = ()
    epsilon: float
    lower: float
    upper: float
    grid: float
    max_rows: int
    neighbours: NeighboringRelation

    def _check(self, most_points: int) -> None:
        object.__setattr__(self, "epsilon", checked_mechanism_epsilon(self.epsilon))
        for name in ("lower", "upper", "grid"):
            number = checked_real(getattr(self, name), name)
            if not -math.inf < number < math.inf:
                raise InvalidValue(name, getattr(self, name), "must be a finite number")
            object.__setattr__(self, name, number)
        if not self.grid > 0:
            raise InvalidValue("grid", self.grid, "must be > 0", "it is the step between possible answers")
        if not self.lower <= self.upper:
            raise InvalidValue("upper", self.upper, f"must be at least lower={self.lower!r}")
        first, last = self._ends
        if not first <= last:
            raise InvalidValue("grid", self.grid, "must have a multiple between lower and upper")
        if not (last - first < most_points and max(abs(first), abs(last)) < _MOST_POINTS):
            raise InvalidValue("grid", self.grid, f"must leave at most {most_points:.3g} points", "use a coarser grid")
        object.__setattr__(self, "max_rows", positive_count(self.max_rows, "max_rows"))
        if self.neighbours not in ("add-remove", "replace"):
            raise InvalidValue("neighbours", self.neighbours, "must be 'add-remove' or 'replace'")

    @property
    def _ends(self) -> tuple[int, int]:
        """The first and the last point: whole multiples of the grid, decimals read as they are written."""
        step = decimal(self.grid)
        return math.ceil(decimal(self.lower) / step), math.floor(decimal(self.upper) / step)

    def _points(self, value: Any) -> NDArray[np.int64]:
        """Each row on its nearest point. Any rule that looks at one row alone is private; this one clamps.

        A missing row (NaN) is left out: refusing it would tell that it is there. Where rows are replaced, one that
        turns missing only leaves, which moves no loss farther than a replaced one may.
        """
        reals = checked_rows(value, "values")
        if reals.ndim != 1:
            raise InvalidData("values", "must be a list with one number for each row")
        reals = reals[~np.isnan(reals)]
        first, last = self._ends
        with np.errstate(over="ignore", under="ignore"):
            nearest = np.rint(np.clip(reals, self.lower, self.upper) / self.grid)
        # Twice: doubles near 2^62 are coarse, so a rounded bound may lie a little outside.
        return np.clip(np.clip(nearest, float(first), float(last)).astype(np.int64), first, last)

    def _as_number(self, point: int) -> float:
        return min(max(float(point * decimal(self.grid)), self.lower), self.upper)


@dataclass(frozen=True, slots=True)
class Quantile(GridQuantiles):
    """A point of the grid whose rank is near probability * rows: the smaller the distance in rank, the likelier.

    Args:
        probability: Which quantile, from 0 (the smallest) to 1 (the largest); 0.5 is the median.
        epsilon: The epsilon of one release, > 0.
        lower: The smallest value; rows below it are moved up to it.
        upper: The largest value; rows above it are moved down to it.
        grid: The step between possible answers.
        max_rows: How many rows one unit has at most.
        neighbours: "add-remove" if the number of rows is private, "replace" if it is public.

    Raises:
        InvalidValue: If a parameter is out of its range, or the grid has no point, or too many, between the bounds.

    Statement:
        For a point y let [#{x < y}, #{x <= y}] be the ranks it holds, n the number of rows, q the probability and
        loss(y) the distance from q n to those ranks. If a row joins or leaves, every loss moves by at most
        max(q, 1 - q); if a row is replaced, by at most 1. Choosing y with probability proportional to
        exp(-epsilon loss(y) / (2 max_rows s)), s that number, is epsilon-DP and epsilon-bounded-range when one unit has
        at most `max_rows` rows. n is private too.
    Source: Smith (2011), "Privacy-preserving statistical estimation with optimal convergence rates", Algorithm 2, over
        the reals. Here loss = max(0, A, B), A = #{x < y} - q n = (1 - q) #{x < y} - q #{x >= y} and
        B = q n - #{x <= y} = q #{x > y} - (1 - q) #{x <= y}: one more row moves A and B by 1 - q or q, up or down.
        Replacing keeps n and moves each count by at most 1. A maximum moves at most as its parts do; max_rows rows
        move it max_rows times as far; the rest is `ExponentialMechanism`.
    Assumes: the bounds and the grid are public and chosen without looking at the rows.
    Direction: exact sampling; the event is an upper bound (`event_of_bounded_range`).
    Checked by: tests/theorems/test_quantiles.py

    >>> import numpy as np
    >>> median = Quantile(0.5, epsilon=1.0, lower=0, upper=120, grid=1)
    >>> abs(median.release(np.repeat([30, 40, 50], 1000)) - 40) <= 1
    True
    >>> median.event
    BoundedRange(epsilon=1.0)
    >>> round(median.error(0.95), 2)
    7.73
    """

    probability: float
    epsilon: float
    lower: float
    upper: float
    grid: float
    max_rows: int = 1
    neighbours: NeighboringRelation = "add-remove"

    def __post_init__(self) -> None:
        checked_share(self.probability, "probability")
        self._check(_MOST_POINTS)

    @property
    def event(self) -> Event:
        """Cheaper than epsilon-DP alone, because the mechanism has bounded range."""
        return event_of_bounded_range(Fraction(self.epsilon))

    @property
    def rate(self) -> Fraction:
        """What one row of distance in rank costs a point, in the exponent."""
        q = decimal(self.probability)
        moved = Fraction(1) if self.neighbours == "replace" else max(q, 1 - q)
        return Fraction(self.epsilon) / (2 * self.max_rows * moved)

    def error(self, confidence: float) -> float:
        """With this probability the answer's rank is at most so many rows from the one asked for, whatever the data.

        Args:
            confidence: The probability that the rank is not farther away, between 0 and 1.

        Returns:
            The error, in rows.

        Raises:
            InvalidValue: If `confidence` is not between 0 and 1.
        """
        first, last = self._ends
        return rounded_up(least_gap(self.rate, last - first, checked_confidence(confidence)))

    def _answer(self, value: Any, source: Source) -> float:
        keys = np.sort(self._points(value))
        point = drawn_point(keys, *self._ends, decimal(self.probability), self.rate, Bits(source))
        return self._as_number(point)


def decimal(value: float) -> Fraction:
    """The number as it is written: 0.1 is a tenth here, so that steps of 0.1 fit into 1."""
    return Fraction(repr(float(value)))


def checked_share(value: object, name: str) -> float:
    """A quantile's place: from 0 (the smallest) to 1 (the largest)."""
    number = checked_real(value, name)
    if not 0 <= number <= 1:
        raise InvalidValue(name, value, "must be between 0 and 1", "0.5 is the median")
    return number


def positive_count(value: object, name: str) -> int:
    """A whole number, at least one."""
    number = checked_count(value, name)
    if not number >= 1:
        raise InvalidValue(name, value, "must be a whole number >= 1")
    return number

"""The grid that a quantile is chosen from: public points between the bounds of a column."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data import Integers, Reals
from farthing.data.aggregates.aggregate import MOST_CELLS
from farthing.data.schema import Domain
from farthing.errors import InvalidValue
from farthing.statistics.moments.moment_measurements import quoted

MOST_POINTS = 100_001
"""So fine that rounding a row to its nearest point matters less than the noise, up to millions of rows."""

FEWEST_POINTS = 50

FINE_POINTS = 5_001
"""Quantiles under several conditions share a choice as long as it leaves each so many points."""


@dataclass(frozen=True)
class QuantileGrid:
    """The multiples first * step .. last * step. A row counts at the point next to it.

    >>> grid = QuantileGrid.of("bmi", Reals(10.0, 60.0), groups=1)
    >>> float(grid.step), grid.points, grid.values[:3]
    (0.0005, 100001, array([10.    , 10.0005, 10.001 ]))
    >>> QuantileGrid.of("age", Integers(0, 110), groups=2).text is None
    True
    """

    column: str
    lower: float
    upper: float
    step: Fraction
    first: int
    last: int
    text: str | None  # how a row is put on the grid; None where its own whole number says it

    @classmethod
    def of(cls, column: str, domain: Domain, groups: int) -> QuantileGrid:
        """The finest grid of plain decimals (1, 2, 2.5 or 5 times a power of ten) that the groups leave room for."""
        if not isinstance(domain, Integers | Reals):
            raise InvalidValue("column", column, "must hold numbers", "a histogram can count it instead")
        most = min(MOST_POINTS, MOST_CELLS // groups)
        if most < FEWEST_POINTS:
            raise InvalidValue(
                "by",
                f"{groups:,} groups",
                f"must be at most {MOST_CELLS // FEWEST_POINTS:,} for a quantile",
                "use fewer or wider groups",
            )
        lower, upper = Fraction(repr(domain.lower)), Fraction(repr(domain.upper))
        whole = isinstance(domain, Integers)
        if lower == upper:
            raise InvalidValue("column", column, "must have bounds that differ", "its values are known")
        for step in _decimals((upper - lower) / most):
            if whole and step.denominator != 1:
                continue
            first, last = math.ceil(lower / step), math.floor(upper / step)
            if last - first < most:
                break
        text = None if whole and step == 1 else f"round({quoted(column)} / {float(step)!r})"
        return cls(column, float(lower), float(upper), step, first, last, text)

    @property
    def points(self) -> int:
        """How many points the grid has."""
        return self.last - self.first + 1

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The points in the units of the data, each the nearest double to its decimal."""
        numerators = np.arange(self.first, self.last + 1, dtype=np.float64) * self.step.numerator
        values = np.asarray(numerators / self.step.denominator)
        values.setflags(write=False)
        return values

    @property
    def derived(self) -> Any:
        """What `Dataset.derive` takes to put rows on the grid."""
        return self.text, (self.first, self.last)


def _decimals(least: Fraction) -> Any:
    """1, 2, 2.5, 5, 10 ... times powers of ten, from `least` up."""
    power = Fraction(10) ** math.floor(math.log10(least))
    while True:
        for digit in (Fraction(1), Fraction(2), Fraction(5, 2), Fraction(5)):
            if digit * power >= least / 2:
                yield digit * power
        power *= 10

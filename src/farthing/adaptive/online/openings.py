"""What a start measures, and at which price: all cells, and a few coarse tables that cells alone would blur."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from farthing.accounting import calibrate
from farthing.mechanisms import DiscreteGaussian, DiscreteLaplace
from farthing.mechanisms.base import rounded_up
from farthing.mechanisms.laws import DiscreteLaplaceLaw
from farthing.privacy.events import Composed, Event, GaussianNoise

_TOTAL = 0.05  # of the start's epsilon, for the number of rows
_TABLES = 0.4  # of the start's epsilon, for coarse tables where the domain is large
_MOST_PAIRS = 2**20
_BLUR = 2.0  # standard errors of half the cells that may be as large as the errors that rounds let pass


@dataclass(frozen=True, slots=True)
class Opening:
    """Noisy counts of all cells, and of all tables of `order` columns (the number of rows, if `order` is 0).

    >>> opening = Opening.chosen((2,) * 16, epsilon=0.5, delta=1e-9, sensitivity=1, errors=1000)
    >>> opening.order, opening.tables, opening.table_noise, opening.cell_epsilon
    (0, 1, 0.025, 0.475)
    >>> Opening.chosen((2,) * 20, epsilon=0.75, delta=1e-9, sensitivity=1, errors=700).order
    2
    """

    order: int
    tables: int
    table_cells: int
    table_noise: float
    """Epsilon of Laplace noise, or, for tables of columns and delta > 0, the multiplier of Gaussian noise."""
    cell_epsilon: float

    @classmethod
    def chosen(
        cls, shape: Sequence[int], epsilon: float, delta: float, sensitivity: int, errors: float
    ) -> Opening:
        """The opening for a domain: coarse tables are measured if half the cells together would be too noisy."""
        cells = math.prod(shape)
        own = epsilon - epsilon * _TOTAL
        variance = DiscreteLaplaceLaw(Fraction(sensitivity) / Fraction(own)).variance
        blurred = _BLUR * math.sqrt(cells * variance) / 2 > errors
        order = 0 if not blurred or len(shape) < 3 else 1 if delta == 0 else 2
        sizes = [math.prod(shape[axis] for axis in axes) for axes in _subsets(len(shape), order)]
        if order == 2 and sum(sizes) > _MOST_PAIRS:
            order, sizes = 1, list(shape)
        if order == 0:
            return cls(0, 1, 1, epsilon * _TOTAL, own)
        share = epsilon * _TABLES
        noise = share if delta == 0 else calibrate(lambda m: [GaussianNoise(m)], share, delta).parameter
        return cls(order, len(sizes), sum(sizes), noise, epsilon - share)

    def events(self, sensitivity: int, delta: float, cells: int) -> list[Event]:
        """What it costs."""
        return [self.of_tables(sensitivity, delta).event, self.of_cells(sensitivity, cells).event]

    def of_cells(self, sensitivity: int, cells: int) -> DiscreteLaplace:
        """The noise on all cells."""
        return DiscreteLaplace(self.cell_epsilon, sensitivity, cells=cells)

    def of_tables(self, sensitivity: int, delta: float) -> DiscreteLaplace | DiscreteGaussian:
        """The noise on all tables together: each of them moves by as much as the cells do, in l1 and so in l2."""
        if self.order == 0 or delta == 0:
            return DiscreteLaplace(self.table_noise, sensitivity * self.tables, cells=self.table_cells)
        l2 = rounded_up(Fraction(math.isqrt(self.tables * sensitivity**2 * 2**60 - 1) + 1, 2**30))
        return DiscreteGaussian(self.table_noise, l2, cells=self.table_cells)

    def subsets(self, axes: int) -> Iterator[tuple[int, ...]]:
        """The axes of the tables, in the order in which they are recorded."""
        return _subsets(axes, self.order)


def _subsets(axes: int, order: int) -> Iterator[tuple[int, ...]]:
    return itertools.combinations(range(axes), order)


def composed(events: Sequence[Event], rounds: Event, count: int) -> Composed:
    """The opening and the rounds as one event."""
    return Composed((*((event, 1) for event in events), (rounds, count)))

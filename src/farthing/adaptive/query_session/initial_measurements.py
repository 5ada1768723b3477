"""What a start measures, and at which price: all cells, and a few coarse tables that cells alone would blur."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from farthing.accounting import calibrate
from farthing.mechanisms import DiscreteGaussian, DiscreteLaplace
from farthing.numerics.bounds import rounded_up
from farthing.privacy.events import Composed, Event, GaussianNoise

_TOTAL = 0.05  # of the start's epsilon, for the number of rows of a small domain
_TABLES = 0.25  # of the start's epsilon, for coarse tables where they are worth it
_MOST_PAIRS = 2**20
_BLOCKS = 256
_SMALL = 4096  # cells, below which blocks of them are not worth a price of their own
_WORTH = 0.25  # of the variance that half the cells together have: what half of a coarse table may have


@dataclass(frozen=True, slots=True)
class Opening:
    """Noisy counts of all cells, and of coarse tables.

    These are all tables of `order` columns; if `order` is 0, a single table of blocks of cells along all columns.

    >>> opening = Opening.chosen((2,) * 16, epsilon=0.5, delta=1e-9, sensitivity=1)
    >>> opening.order, opening.tables, opening.table_cells, opening.cell_epsilon
    (2, 120, 480, 0.375)
    >>> opening = Opening.chosen((256, 256), epsilon=0.5, delta=1e-9, sensitivity=1)
    >>> opening.order, opening.table_noise, opening.cell_epsilon
    (0, 0.125, 0.375)
    >>> blocks_of((256, 256), opening.table_cells), blocks_of((7, 5), 1)
    ((4, 4), (3, 3))
    """

    order: int
    tables: int
    table_cells: int
    table_noise: float
    """Epsilon of Laplace noise, or, for tables of columns and delta > 0, the multiplier of Gaussian noise."""
    cell_epsilon: float

    @classmethod
    def chosen(cls, shape: Sequence[int], epsilon: float, delta: float, sensitivity: int) -> Opening:
        """The opening for a domain: coarse tables are measured where they say more than sums of noisy cells."""
        share = epsilon * _TABLES
        noise = share if delta == 0 else calibrate(lambda m: [GaussianNoise(m)], share, delta).parameter
        for order in (2, 1):
            opening = cls._of_order(order, shape, noise, epsilon - share)
            if opening is not None and opening._is_worth_it(len(shape), math.prod(shape), sensitivity, delta):
                return opening
        small = math.prod(shape) < _SMALL
        share = epsilon * (_TOTAL if small else _TABLES)
        steps = blocks_of(shape, 1 if small else _BLOCKS)
        blocks = math.prod(-(-size // 2**step) for size, step in zip(shape, steps, strict=True))
        return cls(0, 1, blocks, share, epsilon - share)

    @classmethod
    def _of_order(cls, order: int, shape: Sequence[int], noise: float, rest: float) -> Opening | None:
        if order >= len(shape):
            return None
        sizes = [math.prod(shape[axis] for axis in axes) for axes in _subsets(len(shape), order)]
        return cls(order, len(sizes), sum(sizes), noise, rest) if sum(sizes) <= _MOST_PAIRS else None

    def _is_worth_it(self, axes: int, cells: int, sensitivity: int, delta: float) -> bool:
        """Half of a column's values, from all tables that hold the column, beside the same from all cells."""
        holding = math.comb(axes - 1, self.order - 1)
        coarse = self.of_tables(sensitivity, delta).variance * self.table_cells / self.tables / holding
        return coarse <= _WORTH * self.of_cells(sensitivity, cells).variance * cells

    def events(self, sensitivity: int, delta: float, cells: int) -> list[Event]:
        """The events of all tables and cells, for an accountant."""
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


def blocks_of(shape: Sequence[int], most: int) -> tuple[int, ...]:
    """How often each axis is halved until there are at most so many blocks: the longest first."""
    left, steps = list(shape), [0] * len(shape)
    while math.prod(left) > most:
        longest = max(range(len(left)), key=left.__getitem__)
        left[longest] = -(-left[longest] // 2)
        steps[longest] += 1
    return tuple(steps)


def _subsets(axes: int, order: int) -> Iterator[tuple[int, ...]]:
    return itertools.combinations(range(axes), order)


def composed(events: Sequence[Event], rounds: Event, count: int) -> Composed:
    """The opening and the rounds as one event."""
    return Composed((*((event, 1) for event in events), (rounds, count)))

"""How uneven an interval of cells is: in whole rows, so that noise can be exact, and moved by one row by at most 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farthing.release.strategies.base import Integers

_STARTS = 4  # intervals of 2^k cells begin at every multiple of 2^k / 4


@dataclass(frozen=True, eq=False)
class IntervalFamily:
    """The intervals a partition may be made of: lengths are powers of two. Public; made of the number of cells."""

    cells: int

    @property
    def lengths(self) -> tuple[int, ...]:
        """1, 2, 4, ... up to the number of cells."""
        return tuple(1 << power for power in range(self.cells.bit_length()))

    def starts(self, length: int) -> Integers:
        """Where intervals of this length begin.

        >>> IntervalFamily(20).starts(16)
        array([0, 4])
        """
        return np.arange(0, self.cells - length + 1, max(1, length // _STARTS), dtype=np.int64)

    @property
    def edges(self) -> tuple[Integers, Integers]:
        """Starts and stops of all intervals, short ones first."""
        starts = [self.starts(length) for length in self.lengths]
        stops = [first + length for first, length in zip(starts, self.lengths, strict=True)]
        return np.concatenate(starts), np.concatenate(stops)


def unevenness(cells: Integers, family: IntervalFamily) -> Integers:
    """For every interval, how many rows must be added or removed to make its cells all equal. Private.

    Statement:
        c(I) = the least over whole numbers m of the sum over cells j in I of |x_j - m|, reached at a median. If x and
        x' differ by 1 in one cell j, then |c(I) - c'(I)| <= 1 for every I that holds j, and c(I) = c'(I) for others.
    Source: own derivation: |x_j - m| changes by at most 1 for every m, hence so does the least sum. (The mean in
        place of the median, as in Li, Hay, Miklau & Wang, arXiv:1410.0265, moves by up to 2.)
    Assumes: whole numbers; sums below 2^63.
    Direction: equality.
    Checked by: tests/theorems/test_dawa_costs.py

    >>> family = IntervalFamily(4)
    >>> unevenness(np.array([5, 5, 9, 1]), family)
    array([0, 0, 0, 0, 0, 4, 8, 8])
    """
    found = []
    for length in family.lengths:
        windows = np.lib.stride_tricks.sliding_window_view(cells, length)[family.starts(length)]
        ordered = np.sort(windows, axis=1)
        half = length // 2
        found.append(ordered[:, length - half :].sum(axis=1) - ordered[:, :half].sum(axis=1))
    return np.concatenate(found)

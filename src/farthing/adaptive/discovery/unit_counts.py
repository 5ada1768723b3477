"""How many units lie in each of many public cells, with noise; and the range of cells that are not empty.

Statement:
    A unit lies in one cell (in l1 = l of them if neighbours differ in more), so that discrete Laplace noise of scale
    l / epsilon on every count is epsilon-DP, and whatever is made of the noisy counts is. Let c be the number of cells
    and beta = 1 - confidence. A cell is *seen* if its noisy count is at least T, where noise alone reaches T with
    probability at most beta / (5000 c). The range reaches from the first seen cell to the last, and from each of them
    on to its neighbours outside, one after the other, while their noisy count is at least t, which noise alone reaches
    with probability at most p = 0.05. Then
    1. with probability at least 1 - beta / 5000 - 2 p^2 (0.995) no end of the range is more than one cell beyond every
       cell with units, and with 1 - beta / 5000 - 2 p^k none more than k - 1;
    2. a cell with at least `sure` units is in the range with probability at least 1 - beta.
Source: own derivation. 1: a union bound over the empty cells among those that are seen; and beyond the cells with
    units k empty ones in a row must reach t on one of the two sides. 2: noise is below T - `sure` with probability at
    most beta.
    A step too many makes a range two or two and a half times as wide, and later noise with it; a step too few clips
    a tail that may hold dozens of units. So p is large, and T high: a range that is far too wide costs most.
    The idea of a threshold over a grid of powers is that of Google's approximate bounds (Wilson et al.,
    arXiv:1909.01917); the second threshold is what lets a tail in, cell by cell, that no single test would find.
Assumes: cells fixed without looking at rows; noise independent of everything.
Direction: both thresholds are rounded up; neither has any part in the privacy of the counts.
Checked by: tests/theorems/test_unit_counts.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.adaptive.discovery.search_cells import SearchCells
from farthing.mechanisms import DiscreteLaplace

STEP_TOO_MANY = 0.05
"""p: the chance that a range is one step wider than its values, on each side."""


@dataclass(frozen=True)
class UnitCounts:
    """The noise on the counts of units in cells, and what can be read from them.

    Args:
        cells: The public cells.
        epsilon: What the counts cost.
        l1: How many cells neighbours may differ in.
        confidence: How often each of the two statements above holds.

    >>> from farthing.adaptive.discovery.search_cells import row_cells
    >>> counts = UnitCounts(row_cells(10**6), epsilon=0.1)
    >>> counts.seen, counts.beside, counts.sure
    (150, 24, 173)
    >>> counts.range_of(np.array([300, 80, 50, 23, 40, *[0] * 55]))
    (0, 2)
    """

    cells: SearchCells
    epsilon: float
    l1: int = 1
    confidence: float = 0.95

    @cached_property
    def mechanism(self) -> DiscreteLaplace:
        """Discrete Laplace noise on every count."""
        return DiscreteLaplace(self.epsilon, self.l1, cells=len(self.cells))

    @property
    def scale(self) -> float:
        """The scale of the noise on each count."""
        return self.mechanism.scale

    @property
    def seen(self) -> int:
        """T: the noisy count from which on a cell is taken to hold somebody."""
        return least_reached(self.scale, (1 - self.confidence) / (5000 * len(self.cells)))

    @property
    def beside(self) -> int:
        """t: the same for the one cell that is next to the range."""
        return least_reached(self.scale, STEP_TOO_MANY)

    @property
    def sure(self) -> int:
        """How many units a cell must hold to be in the range with the stated confidence."""
        return self.seen + least_reached(self.scale, 1 - self.confidence) - 1

    def range_of(self, noisy: NDArray[Any]) -> tuple[int, int] | None:
        """The first and the last cell of the range; None where no cell is seen.

        Args:
            noisy: The noisy counts.

        Returns:
            The places of the two cells.
        """
        seen = np.flatnonzero(noisy >= self.seen)
        if not len(seen):
            return None
        first, last = int(seen[0]), int(seen[-1])
        while first > 0 and noisy[first - 1] >= self.beside:
            first -= 1
        while last + 1 < len(noisy) and noisy[last + 1] >= self.beside:
            last += 1
        return first, last


def least_reached(scale: float, probability: float) -> int:
    """The least k >= 1 that discrete Laplace noise of this scale reaches with at most this probability.

    >>> least_reached(10.0, 0.05)
    24
    """
    ratio = math.exp(-1 / scale)  # P[noise >= k] = ratio^k / (1 + ratio)
    return max(1, math.ceil(scale * -math.log(probability * (1 + ratio)) + 1e-9))

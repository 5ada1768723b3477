"""The Haar wavelet: the total, and for every block of a halving tree the difference between its halves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from farthing.matrix.strategies.nested_blocks import BlockEstimator
from farthing.matrix.strategies.strategy import Floats, Integers, Level, Norm, Strategy, Variances
from farthing.matrix.strategies.tree_strategies import details_of
from farthing.matrix.workloads.workload import Workload


@dataclass(frozen=True)
class WaveletStrategy(Strategy):
    """Haar coefficients as whole numbers: left half less right half, for blocks of n, n/2, ... 2 cells, and the total.

    With even shares this is Privelet (Xiao, Wang & Gehrke, arXiv:0909.5530v1, section IV): their generalised
    sensitivity gives the differences of sums the same noise at every level. Cells are padded to a power of two.

    Args:
        size: How many cells there are.
        name: The name of the strategy.

    Statement:
        The coefficients of one level have disjoint supports, so a row moves one of them by 1. The rows of all levels
        are orthogonal, of squared norm s_l, the size of their blocks; the least-squares estimate is the inverse
        transform, and its precision for the details within blocks of s_l cells is s_l over the variance of level l.
    Source: own derivation from the orthogonality of the Haar basis.
    Assumes: noise of mean zero, independent, the same variance within a level.
    Direction: equality, up to rounding.
    Checked by: tests/theorems/test_strategy_trees.py

    >>> wavelet = WaveletStrategy(4)
    >>> wavelet.exact(np.array([1, 2, 3, 5]))
    [array([11]), array([-5]), array([-1, -2])]
    """

    size: int
    name: str = "wavelet"

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.size,)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of blocks, n to 1, all powers of two."""
        height = (self.size - 1).bit_length()
        return tuple(1 << power for power in range(height, -1, -1))

    @property
    def reach(self) -> int:
        """No coefficient holds more cells than there are."""
        return self.size

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The total, then the differences within blocks, coarse to fine."""
        details = [Level(f"differences in {size:,}", self.sizes[0] // size, 1, 1) for size in self.sizes[:-1]]
        return (Level("total", 1, 1, 1), *details)

    def exact(self, cells: Integers) -> list[Integers]:
        """All coefficients, from fine to coarse."""
        sums: Integers = np.zeros(self.sizes[0], dtype=np.int64)
        sums[: self.size] = np.ravel(cells)
        details: list[Integers] = []
        while len(sums) > 1:
            left, right = sums[0::2], sums[1::2]
            details.append(left - right)
            sums = left + right
        return [sums, *details[::-1]]

    def shares(self, workload: Workload, norm: Norm) -> Floats:
        """Each level is alone with its details: shares go with the cube root (l1) or square root (l2) of its need."""
        needs = details_of(workload, self.sizes) / self._norms
        shares = np.cbrt(needs) if norm == "l1" else np.sqrt(needs)
        return np.asarray(shares / np.sum(shares))

    def fit(self, variances: Variances) -> WaveletEstimator:
        return WaveletEstimator(self, self._norms / self.check_variances(variances))

    @property
    def _norms(self) -> Floats:
        return np.array([self.sizes[0], *self.sizes[:-1]], dtype=float)


class WaveletEstimator(BlockEstimator):
    """Least squares for the wavelet: the inverse transform."""

    def __init__(self, wavelet: WaveletStrategy, precisions: Floats) -> None:
        super().__init__(wavelet.size, wavelet.sizes, precisions)

    def coefficients(self, query: Floats) -> list[Floats]:
        """The inverse transform, transposed: half differences of the query over each block."""
        sums, details = self._padded(query), []
        for size in reversed(self.sizes[:-1]):
            left, right = sums[0::2], sums[1::2]
            details.append((left - right) / size)
            sums = left + right
        return [sums / self.sizes[0], *details[::-1]]

    def estimate(self, measured: Sequence[NDArray[np.generic]]) -> Floats:
        """Means of blocks, halved level by level; coefficients that were not measured count as zero."""
        means: Floats = np.zeros(1)
        if self.precisions[0] > 0:
            means = np.asarray(measured[0], dtype=float) / self.sizes[0]
        for level in range(1, len(self.sizes)):
            halves = np.repeat(means, 2)
            if self.precisions[level] > 0:
                slopes = np.asarray(measured[level], dtype=float) / self.sizes[level - 1]
                halves[0::2] += slopes
                halves[1::2] -= slopes
            means = halves
        return means[: self.cells]

"""Estimators that are diagonal over nested blocks: exact variances, level by level."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from farthing.matrix.strategies.strategy import Estimator, Floats, check_dense
from farthing.matrix.strategies.workload_energies import (
    energy,
    interval_energies,
    query_energies,
    squared_norms,
)
from farthing.matrix.workloads.interval_queries import Intervals
from farthing.matrix.workloads.workload import Workload

_AT_ONCE = 2**15
_NOTHING = 1e-11  # relative: an energy below this is rounding


class BlockEstimator(Estimator):
    """Cells whose estimate has the same precision for all details between two sizes of blocks.

    With P_j the averaging over blocks of sizes[j] cells (coarse to fine, each a multiple of the next), the covariance
    is sum_j (P_j - P_(j-1)) / precisions[j]. A precision of 0 says that nothing was measured there: queries that
    need it have infinite variance.
    """

    def __init__(self, cells: int, sizes: Sequence[int], precisions: Floats) -> None:
        self.cells = cells
        self.sizes = tuple(sizes)
        self.precisions = precisions

    def estimate(self, measured: Sequence[NDArray[np.generic]]) -> Floats:
        """The least-squares cells; each strategy has its own way down the levels."""
        raise AssertionError  # pragma: no cover - every subclass has one

    def total_variance(self, workload: Workload) -> float:
        """sum_j E_j / precision_j with E_j the workload's energy in the details of level j."""
        energies = np.array([energy(workload, size) for size in self.sizes])
        return float(self._summed(list(energies[:, None]))[0])

    def query_variances(self, workload: Workload) -> Floats:
        """The same sum for every query by itself."""
        workload._check_queries()
        if self.sizes == (1,):
            return np.asarray(squared_norms(workload) / self.precisions[0])
        if not isinstance(workload, Intervals):
            return self._summed([query_energies(workload, size) for size in self.sizes])
        starts, stops = workload.edges
        variances: Floats = np.empty(workload.queries)
        for first in range(0, workload.queries, _AT_ONCE):  # few enough to stay in the processor's cache
            here = slice(first, first + _AT_ONCE)
            variances[here] = self._summed([interval_energies(starts[here], stops[here], size) for size in self.sizes])
        return variances

    def variance(self, query: Floats) -> float:
        """The same sum for one more query."""
        padded = self._padded(query)
        energies = [np.sum(padded.reshape(-1, size).sum(axis=1) ** 2) / size for size in self.sizes]
        return float(self._summed([np.array([value]) for value in energies])[0])

    def times(self, query: Floats) -> Floats:
        """The covariance times a query, over the cells of all blocks; what was not measured counts as nothing."""
        padded = self._padded(query)
        product: Floats = np.zeros(0)
        before: Floats = np.zeros(0)
        for level, (size, precision) in enumerate(zip(self.sizes, self.precisions, strict=True)):
            means = padded.reshape(-1, size).sum(axis=1) / size
            branching = 1 if level == 0 else self.sizes[level - 1] // size
            detail = means if level == 0 else means - np.repeat(before, branching)
            scaled = detail / precision if precision > 0 else np.zeros_like(detail)
            product = scaled if level == 0 else np.repeat(product, branching) + scaled
            before = means
        return product

    def covariance(self) -> Floats:
        """Entry (a, b) collects the levels at which both cells lie in one block."""
        check_dense(self.cells)
        places = np.arange(self.cells)
        matrix: Floats = np.zeros((self.cells, self.cells))
        with np.errstate(divide="ignore"):
            inverse = 1.0 / self.precisions
        for level, size in enumerate(self.sizes):
            finer = inverse[level + 1] if level + 1 < len(self.sizes) else 0.0
            owner = places // size
            matrix += np.where(owner[:, None] == owner, (inverse[level] - finer) / size, 0.0)
        return matrix

    def _padded(self, query: Floats) -> Floats:
        padded: Floats = np.zeros(-(-self.cells // self.sizes[0]) * self.sizes[0])
        padded[: self.cells] = np.asarray(query, dtype=float).ravel()
        return padded

    def _summed(self, energies: list[Floats]) -> Floats:
        """The variance from the energies at every size, coarse to fine."""
        total: Floats = np.zeros(len(energies[0]))
        before: Floats = np.zeros(len(energies[0]))
        for precision, here in zip(self.precisions, energies, strict=True):
            detail = here - before
            if precision > 0:
                total += detail / precision
            else:
                total[detail > _NOTHING * here] = np.inf
            before = here
        return total

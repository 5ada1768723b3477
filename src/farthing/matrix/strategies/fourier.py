"""Fourier (Hadamard) coefficients for marginals and conjunctions of columns of two values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.inference.consistent_marginals import Subset, all_sums, closure, largest
from farthing.inference.joint_cells import nearest_joint
from farthing.inference.noise_terms import Floats
from farthing.matrix.strategies.marginal_strategy import marginal_tables
from farthing.matrix.strategies.strategy import (
    Estimator,
    Integers,
    Level,
    Norm,
    Strategy,
    Variances,
    check_dense,
)
from farthing.matrix.workloads.workload import Workload

_MOST_COLUMNS = 24


def transformed(cells: NDArray[np.generic]) -> NDArray[np.generic]:
    """The Walsh-Hadamard transform: entry t is the sum over cells c of cells[c] * (-1)^(bits that t and c share).

    >>> transformed(np.array([5, 1, 2, 2]))
    array([10,  4,  2,  4])
    """
    block = np.asarray(cells).ravel()
    for place in range(int(block.size).bit_length() - 1):
        pairs = block.reshape(-1, 2, 2**place)
        block = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).ravel()
    return block


class FourierStrategy(Strategy):
    """The coefficients that the marginals consist of, one level for each number of columns.

    Statement:
        For columns of two values let f_T = sum over cells c of x_c (-1)^(sum of c_i: i in T). The marginal of S is
            m_S(a) = 2^-|S| sum over T in S of f_T (-1)^(sum of a_i: i in T),
        and one row moves every f_T by exactly 1. Noise of variance v_j in the coefficients of j columns gives each
        cell of m_S the variance 4^-|S| sum_j C(|S|, j) v_j.
    Source: Barak, Chaudhuri, Dwork, Kale, McSherry & Talwar, PODS 2007, Theorem 3.1 and section 4, with a noise of its
        own for each number of columns.
    Assumes: columns of two values; independent noises.
    Direction: equality; whole numbers throughout.
    Checked by: tests/unit/matrix/strategies/test_fourier.py

    >>> from farthing.matrix.workloads import conjunctions
    >>> strategy = FourierStrategy(conjunctions((2, 2, 2), 2))
    >>> [(level.name, level.size, level.l1) for level in strategy.levels]
    [('total', 1, 1), ('1 column', 3, 3), ('2 columns', 3, 3)]
    """

    name = "fourier"

    def __init__(self, workload: Workload) -> None:
        self.shape = tuple(workload.shape)
        if not (set(self.shape) == {2} and len(self.shape) <= _MOST_COLUMNS):
            raise InvalidValue(
                "shape",
                self.shape,
                f'must be of at most {_MOST_COLUMNS} columns of two values for "fourier"',
                'use strategy="marginals"',
            )
        self.parts = closure(subset for subset, _ in _marginals_of(workload))

    @cached_property
    def groups(self) -> tuple[NDArray[np.int64], ...]:
        """For each level, where its coefficients stand in the transform."""
        last = len(self.shape) - 1
        most = len(self.parts[-1])
        return tuple(
            np.array(
                [sum(1 << (last - c) for c in part) for part in self.parts if len(part) == size],
                dtype=np.int64,
            )
            for size in range(most + 1)
        )

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The total, the single columns, the pairs and so on; each coefficient moves by 1."""
        names = ("total", "1 column", *(f"{size} columns" for size in range(2, len(self.groups))))
        return tuple(
            Level(name, len(group), len(group), len(group)) for name, group in zip(names, self.groups, strict=False)
        )

    @property
    def reach(self) -> int:
        """Every cell enters a coefficient once."""
        return self.cells

    def exact(self, cells: Integers) -> list[Integers]:
        """One transform, of which the levels take their coefficients."""
        coefficients = transformed(np.asarray(cells, dtype=np.int64))
        return [np.asarray(coefficients[group], dtype=np.int64) for group in self.groups]

    def shares(self, workload: Workload, norm: Norm) -> Floats:
        """In closed form: cube roots for Laplace noise, square roots for Gaussian noise."""
        energies: Floats = np.zeros(len(self.levels))
        for subset, square in _marginals_of(workload):
            for size in range(len(subset) + 1):
                energies[size] += square * math.comb(len(subset), size) / 2.0 ** len(subset)
        if norm == "l1":  # energy * (l1 / share)^2 under a fixed sum of shares
            roots = np.cbrt(energies * np.array([float(level.l1) ** 2 for level in self.levels]))
        else:  # energy * l2^2 / share
            roots = np.sqrt(energies * np.array([float(level.l2_squared) for level in self.levels]))
        return np.asarray(roots / roots.sum())

    def fit(self, variances: Variances) -> FourierEstimator:
        """The transform is its own inverse, up to a factor."""
        return FourierEstimator(self, self.check_variances(variances))


class FourierEstimator(Estimator):
    """Cells and variances from measured coefficients; coefficients that were not measured count as zero."""

    def __init__(self, strategy: FourierStrategy, variances: Floats) -> None:
        self._strategy = strategy
        self._variances = variances
        self._known: set[Subset] = set(strategy.parts)
        self.cells = strategy.cells

    def estimate(self, measured: Sequence[NDArray[np.generic]]) -> Floats:
        spectrum: Floats = np.zeros(self.cells)
        for group, numbers, variance in zip(self._strategy.groups, measured, self._variances, strict=True):
            if variance < math.inf:
                spectrum[group] = numbers
        return np.asarray(transformed(spectrum), dtype=float) / self.cells

    def total_variance(self, workload: Workload) -> float:
        """Cells times variance, table by table, importance weights included."""
        tables = marginal_tables(workload)
        if tables is None:
            return float(np.sum(self.query_variances(workload)))
        return math.fsum(square * 2.0 ** len(subset) * self._per_cell(subset) for subset, square in tables)

    def query_variances(self, workload: Workload) -> Floats:
        """One variance a table, repeated for its cells; of other workloads query by query."""
        tables = marginal_tables(workload)
        if tables is not None:
            return np.concatenate([np.full(2 ** len(own), self._per_cell(own)) for own, _ in tables])
        return np.array([self.variance(query) for query in workload.matrix()])

    def variance(self, query: Floats) -> float:
        """The query's own coefficients say how much of each noise it takes."""
        flat = np.asarray(query, dtype=float).ravel()
        coefficients = np.asarray(transformed(flat), dtype=float) / self.cells
        squares = [
            (float(np.sum(coefficients[group] ** 2)), float(variance))
            for group, variance in zip(self._strategy.groups, self._variances, strict=True)
        ]
        known = sum(square for square, variance in squares if variance < math.inf)
        if not known * self.cells >= float(np.sum(flat * flat)) * (1 - 1e-9):
            raise InvalidValue(
                "query",
                "of this kind",
                "must be a sum of cells of the measured marginals",
                "ask about columns of one marginal at a time",
            )
        return sum(square * variance for square, variance in squares if square)

    def nonnegative(self, measured: Sequence[NDArray[np.generic]]) -> Floats:
        """Cells >= 0 whose marginals are near the estimated ones; cell by cell nothing would be left of those."""
        estimate = self.estimate(measured)
        shape, parts = self._strategy.shape, self._strategy.parts
        tables = all_sums(estimate.reshape(shape), largest(parts))
        return nearest_joint(shape, tables, max(0.0, float(estimate.sum()))).ravel()

    def coefficients(self, query: Floats) -> list[Floats]:
        spectrum = np.asarray(transformed(np.asarray(query, dtype=float)), dtype=float) / self.cells
        return [spectrum[group] for group in self._strategy.groups]

    def covariance(self) -> Floats:
        """H V H / cells^2 as a dense matrix."""
        check_dense(self.cells)
        spread: Floats = np.zeros(self.cells)
        for group, variance in zip(self._strategy.groups, self._variances, strict=True):
            spread[group] = variance if variance < math.inf else 0.0
        # Entry (c, d) depends on which bits of c and d differ alone.
        row = np.asarray(transformed(spread), dtype=float) / float(self.cells) ** 2
        places = np.arange(self.cells)
        return np.asarray(row[places[:, None] ^ places[None, :]])

    def _per_cell(self, subset: Subset) -> float:
        if subset not in self._known:
            raise InvalidValue("workload", subset, "must be within the marginals that were planned")
        terms = (math.comb(len(subset), size) * self._variances[size] for size in range(len(subset) + 1))
        return float(sum(terms)) / 4.0 ** len(subset)


def _marginals_of(workload: Workload) -> list[tuple[Subset, float]]:
    tables = marginal_tables(workload)
    if tables is None:
        raise InvalidValue(
            "workload",
            type(workload).__name__,
            'must consist of marginals or conjunctions for "fourier"',
            'use strategy="optimised" for ranges and prefixes',
        )
    return tables

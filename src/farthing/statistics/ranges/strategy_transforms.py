"""What is measured instead of cells: whole-number combinations of them, with exact norms of their columns."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from farthing.data.aggregates.aggregate import MOST_ROWS
from farthing.data.stability import Sensitivity
from farthing.inference.linked_counts import Covariance
from farthing.matrix.strategies.nested_blocks import BlockEstimator
from farthing.matrix.strategies.strategy import Estimator, Norm, Strategy
from farthing.matrix.strategies.tree_strategies import TreeStrategy
from farthing.matrix.workloads.interval_queries import Identity
from farthing.matrix.workloads.workload import Workload

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_LINKED = 20_000
"""Up to so many cells are brought to agree with other counts of the same rows."""

_DENSE = 1_024  # cells up to which a whole covariance is at hand

FINEST_WEIGHT = 2**12
"""The largest weight of a level: weights are whole, so that what is measured is, and this close to what is best."""


@dataclass(frozen=True)
class Columns:
    """The largest norms of a column of a transform: how far one row in one cell moves the numbers, or further.

    `signed` says whether entries below zero may occur.
    """

    l0: int
    l1: int
    l2_squared: int
    linf: int
    signed: bool


class Transform(Protocol):
    """A linear map from whole cells to whole numbers."""

    @property
    def size(self) -> int:
        """How many numbers come out."""

    @property
    def columns(self) -> Columns:
        """The norms of its columns."""

    @property
    def digest(self) -> str:
        """A fingerprint of the map."""

    def apply(self, exact: Any) -> Integers:
        """The numbers of the exact cells; still private."""

    @property
    def numbers_count(self) -> int:
        """How many numbers are estimated from them that count all rows."""

    def numbers(self, measured: Integers) -> Floats:
        """The numbers that count all rows, estimated from what was measured."""

    @property
    def covariance(self) -> Covariance | None:
        """Their covariance at noise of variance 1; None where they are not determined."""

    def concentration(self, functions: Floats) -> float:
        """The largest share of a single measured number in linear functions of them; see `Slot.concentration`."""


def sensitivity_through(cells: Sensitivity, columns: Columns, size: int) -> Sensitivity:
    """How far one unit moves the numbers of a transform, from how far it moves the cells.

    Statement:
        Let x be a vector of counts to which every row adds 1 in one entry at most, and B a whole-number matrix with
        column norms at most c0, c1, c2 (l2), ci (largest entry). If neighbours differ by at most m rows added or
        removed, B x moves by at most m c1 in l1, m c2 in l2, m ci in every entry, and in m c0 entries. If they differ
        by at most m rows taken and m rows put in, B x moves by at most 2 m c1 in l1 and in 2 m c0 entries; in l2
        by at most m sqrt(2) c2 and in every entry by m ci where B has no entry below zero, by twice m c2 and m ci where
        it may have some.
    Source: triangle inequality over the rows that change; for a row that is replaced, |b - b'|^2 = |b|^2 + |b'|^2 -
        2 b.b', and b.b' >= 0 for columns without negative entries.
    Assumes: `cells` is the sensitivity of the counts: linf = m, and l1 = m (added or removed) or 2 m (replaced).
    Direction: upper bounds; tight where rows may share a cell and columns of the largest norm meet nowhere.
    Checked by: tests/contracts/test_strategy_slots.py

    >>> rows = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    >>> sensitivity_through(rows, Columns(l0=3, l1=6, l2_squared=14, linf=3, signed=False), 7)
    Sensitivity(l0=3, l1=6, l2_squared=14, linf=3)
    """
    rows, replaced = cells.linf, cells.l1 > cells.linf
    apart = 1 if not replaced else 4 if columns.signed else 2
    return Sensitivity(
        l0=min(size, cells.l1 * columns.l0),
        l1=cells.l1 * columns.l1,
        l2_squared=rows**2 * apart * columns.l2_squared,
        linf=rows * (2 if replaced and columns.signed else 1) * columns.linf,
    )


@dataclass(frozen=True, eq=False)
class StrategyTransform:
    """The levels of a strategy, each times a whole weight, for `groups` groups of cells that no row shares.

    Rows that lie in no cell are counted beside them: such a row moves one number by `others_weight`, no further than a
    row in a cell moves the levels. So they cost nothing, and every row is counted.
    """

    strategy: Strategy
    weights: tuple[int, ...]
    groups: int = 1
    places: Integers | None = None  # of the counted cells among all cells of all groups, -1 for other rows' cells
    others_weight: int = 0  # of the numbers of rows that lie in no cell, which follow after the levels

    @classmethod
    def weighted(
        cls, strategy: Strategy, workload: Workload, norm: Norm, finest: float = FINEST_WEIGHT
    ) -> StrategyTransform:
        """Weights that divide one noise over the levels as is best for a workload; the largest is about `finest`.

        Noise of one scale on all numbers is noise of scale 1 / weight on a level: under l1 a level's part of epsilon is
        its weight times its own l1 norm, under l2 its part of mu squared is the square of weight times l2 norm.
        """
        if len(strategy.levels) == 1:
            entry = largest_entry(strategy)
            heaviest = 2**62 // (MOST_ROWS * entry)  # what is measured stays within 64 bits
            return cls(strategy, (int(max(1, min(heaviest, round(finest / entry**0.5)))),))
        shares = np.asarray(strategy.shares(workload, norm), dtype=float)
        if norm == "l1":
            ideal = shares / np.array([float(level.l1) for level in strategy.levels])
        else:
            ideal = np.sqrt(shares / np.array([float(level.l2_squared) for level in strategy.levels]))
        weights = np.rint(ideal * (finest / ideal.max())).astype(int)
        return cls(strategy, tuple(int(weight) for weight in weights))

    @cached_property
    def measured(self) -> tuple[int, ...]:
        """The levels that have a weight."""
        return tuple(place for place, weight in enumerate(self.weights) if weight)

    @cached_property
    def _sizes(self) -> list[int]:
        return [self.strategy.levels[place].size for place in self.measured]

    @cached_property
    def others(self) -> int:
        """How many numbers there are for rows that lie in no cell."""
        return 0 if self.places is None or not self.others_weight else int((self.places < 0).sum())

    @property
    def _in_groups(self) -> int:
        return self.groups * sum(self._sizes)

    @property
    def size(self) -> int:
        """How many numbers are measured: in all groups, and of other rows."""
        return self._in_groups + self.others

    @cached_property
    def columns(self) -> Columns:
        """The norms of the levels' columns, added up; a row outside moves one number by no more."""
        parts = [(self.weights[place], self.strategy.levels[place]) for place in self.measured]
        outside = self.others_weight if self.others else 0
        return Columns(
            l0=sum(min(level.size, level.l1) for _, level in parts),  # whole entries: no more than their sum
            l1=max(outside, sum(weight * level.l1 for weight, level in parts)),
            l2_squared=max(outside**2, sum(weight**2 * level.l2_squared for weight, level in parts)),
            linf=max(outside, *(weight * math.isqrt(level.l2_squared) for weight, level in parts)),
            signed=not has_no_negative_entry(self.strategy),
        )

    def with_others(self, norm: Norm) -> StrategyTransform:
        """The same counting all other rows, too, as precisely as costs nothing under this norm."""
        columns = replace(self, others_weight=0).columns
        return replace(self, others_weight=columns.l1 if norm == "l1" else math.isqrt(columns.l2_squared))

    @cached_property
    def digest(self) -> str:
        """Of everything that decides the numbers."""
        entries = entries_of(self.strategy)
        probe = np.arange(1, self.strategy.cells + 1, dtype=np.int64) ** 2
        others = (self.others, self.others_weight) if self.others else ()
        facts = (self.strategy.name, self.strategy.shape, self.weights, self.groups, *others)
        digest = hashlib.sha256(repr(facts).encode())
        for level in [*self.strategy.exact(probe), () if entries is None else entries]:
            digest.update(np.asarray(level, dtype="<i8").tobytes())
        return digest.hexdigest()

    def apply(self, exact: Any) -> Integers:
        """The weighted levels of one group after the other, then the numbers of other rows."""
        cells = np.zeros(self.groups * self.strategy.cells, dtype=np.int64)
        counts = np.asarray(exact).reshape(-1)
        outside: Integers = np.zeros(0, dtype=np.int64)
        if self.places is None:
            cells[:] = counts
        else:
            cells[self.places[self.places >= 0]] = counts[self.places >= 0]
            if self.others:
                outside = counts[self.places < 0].astype(np.int64)
        # So that no sum leaves 64 bits, whatever an engine says; cutting off moves no two counts further apart.
        cells = np.clip(cells, 0, 2**62 // (max(self.weights) * max(1, self.strategy.reach)))
        levels_measured = []
        for group in cells.reshape(self.groups, -1):
            levels = self.strategy.exact(group)
            levels_measured += [self.weights[place] * np.asarray(levels[place]).reshape(-1) for place in self.measured]
        weight = max(self.others_weight, 1)
        return np.concatenate([*levels_measured, weight * np.clip(outside, 0, 2**62 // weight)])

    @cached_property
    def estimator(self) -> Estimator:
        """Least squares when every measured number has noise of variance 1."""
        with np.errstate(divide="ignore"):
            return self.strategy.fit(1.0 / np.asarray(self.weights, dtype=float) ** 2)

    def estimate(self, numbers: Integers) -> Floats:
        """The least-squares cells: groups x cells."""
        cells = np.empty((self.groups, self.strategy.cells))
        inside = np.asarray(numbers, dtype=float).reshape(-1)[: self._in_groups]
        for group, own in enumerate(inside.reshape(self.groups, -1)):
            cells[group] = self.estimator.estimate(self._levels(own)).reshape(-1)
        return cells

    @property
    def numbers_count(self) -> int:
        """All cells of all groups, then the numbers of other rows."""
        return self.groups * self.strategy.cells + self.others

    def numbers(self, measured: Integers) -> Floats:
        """The least-squares cells and the rows outside."""
        outside = np.asarray(measured, dtype=float).reshape(-1)[self._in_groups :]
        return np.concatenate([self.estimate(measured).reshape(-1), outside / max(self.others_weight, 1)])

    @cached_property
    def covariance(self) -> Covariance | None:
        """Of `numbers` at noise of variance 1; None where single cells are not determined, or are too many."""
        cells = self.strategy.cells
        if self.groups * cells > MOST_LINKED or not self._determined:
            return None
        rest = np.full(self.others, 1.0 / max(self.others_weight, 1) ** 2)
        estimator = self.estimator
        if isinstance(estimator, BlockEstimator):
            typical = estimator.total_variance(Identity(cells, "x")) / cells

            def times(rows: Floats) -> Floats:
                return np.array([estimator.times(row)[:cells] for row in rows]).reshape(-1, cells)

            return Covariance(
                times if cells > _DENSE else _by_matrix(estimator.covariance()), cells, self.groups, rest, typical
            )
        if cells > _DENSE:
            return None
        matrix = estimator.covariance()
        return Covariance(_by_matrix(matrix), cells, self.groups, rest, float(np.trace(matrix)) / cells)

    @property
    def _determined(self) -> bool:
        """Whether every cell is: two queries that no part of the cells is orthogonal to by chance."""
        cells = self.strategy.cells
        probe = np.sqrt(np.arange(2.0, cells + 2))
        return all(self.estimator.variance(query) < math.inf for query in (np.eye(1, cells)[0], probe))

    def concentration(self, functions: Floats) -> float:
        """Of up to 24 functions of `numbers`; groups and other rows have noises of their own."""
        if self.strategy.cells > _DENSE:
            return 1.0
        chosen = functions[np.unique(np.linspace(0, len(functions) - 1, min(24, len(functions))).astype(int))]
        inside = self.groups * self.strategy.cells
        cells = chosen[:, :inside].reshape(-1, self.strategy.cells)
        squares = np.einsum("ij,ij->i", cells @ self.estimator.covariance(), cells)
        fourths = np.zeros(len(cells))
        there = squares > 1e-12 * max(float(squares.max(initial=0.0)), 1e-300)  # of nothing there is no shape
        if there.any():
            fourths[there] = self.kurtosis(np.ascontiguousarray(cells[there].T)) * squares[there] ** 2
        fourths = fourths.reshape(len(chosen), -1).sum(axis=1)
        outside = (chosen[:, inside:] / max(self.others_weight, 1)) ** 2
        whole = squares.reshape(len(chosen), -1).sum(axis=1) + outside.sum(axis=1)
        fourths += (outside**2).sum(axis=1)
        known = whole > 1e-100
        return float(np.clip(fourths[known] / whole[known] ** 2, 0.0, 1.0).max(initial=0.0)) or 1.0

    def _levels(self, numbers: Floats) -> Sequence[Floats]:
        levels = [np.zeros(level.size) for level in self.strategy.levels]
        parts = np.split(numbers, np.cumsum(self._sizes)[:-1])
        for place, part in zip(self.measured, parts, strict=True):
            levels[place] = part / self.weights[place]
        return levels

    def kurtosis(self, queries: Floats) -> Floats:
        """Sum of c^4 over (sum of c^2)^2 for every query (a column): how much of its noise is a single number's.

        c are the coefficients of the measured numbers in the estimate of the query. Known where the covariance is, and
        not a number where single cells are not determined.
        """
        if not self.estimator.variance(np.eye(1, self.strategy.cells)[0]) < math.inf:
            return np.full(queries.shape[1], math.nan)
        solved = self.estimator.covariance() @ queries
        scale = 2.0**40 / max(float(np.abs(solved).max()), 1e-300)
        kurtoses = []
        for column in np.rint(solved.T * scale).astype(np.int64):
            levels = self.strategy.exact(column)
            kurtoses.append(
                np.concatenate([self.weights[place] * levels[place].reshape(-1) / scale for place in self.measured])
            )
        coefficients = np.array(kurtoses)
        squares = np.maximum((coefficients**2).sum(axis=1), 1e-300)
        return np.asarray((coefficients**4).sum(axis=1) / squares**2)


def _by_matrix(matrix: Floats) -> Callable[[Floats], Floats]:
    return lambda rows: np.asarray(rows @ matrix)


def entries_of(strategy: Strategy) -> Integers | None:
    """All entries of a strategy of one level that are not zero by its shape; None where they are not at hand."""
    own, weights = getattr(strategy, "own", None), getattr(strategy, "weights", None)
    if own is not None and weights is not None:  # cells beside sums: the whole matrix is mostly zeros
        return np.concatenate([own, weights])
    matrix = getattr(strategy, "matrix", None)
    return None if matrix is None else np.asarray(matrix).reshape(-1)


def largest_entry(strategy: Strategy) -> int:
    """A bound that no coefficient of the strategy exceeds."""
    entries = entries_of(strategy)
    if entries is not None:
        return int(np.abs(entries).max())
    return max(math.isqrt(level.l2_squared) for level in strategy.levels)


def has_no_negative_entry(strategy: Strategy) -> bool:
    """Whether all coefficients of a strategy are known to be zero or more."""
    entries = entries_of(strategy)
    if entries is not None:
        return bool(np.all(entries >= 0))
    return isinstance(strategy, TreeStrategy) or strategy.name == "identity"

"""Marginals as a strategy over an array of cells: residuals for Gaussian noise, weighted tables for Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.inference.consistent_marginals import Subset, all_sums, from_residuals, residual, summed
from farthing.inference.joint_cells import nearest_joint
from farthing.inference.noise_terms import Floats
from farthing.matrix.strategies.marginals import MarginalFit, MarginalPlan, plan_marginals
from farthing.matrix.strategies.marginals.marginal_plan import energies_of
from farthing.matrix.strategies.marginals.residual_noise import best_shares
from farthing.matrix.strategies.strategy import (
    Estimator,
    Integers,
    Level,
    Norm,
    Strategy,
    Variances,
    check_dense,
)
from farthing.matrix.workloads.interval_queries import Identity, Total
from farthing.matrix.workloads.marginal_workload import Marginals
from farthing.matrix.workloads.named_workloads import Product, Union
from farthing.matrix.workloads.workload import Workload


def marginal_tables(workload: Workload) -> list[tuple[Subset, float]] | None:
    """The marginals that a workload consists of, in its order, with the squares of their weights; None if of others.

    >>> from farthing.matrix.workloads import identity, marginals, prefix, product, total, union
    >>> marginal_tables(union(marginals((2, 3), way=1), product(identity(2), total(3)), weights=[1, 2]))
    [((0,), 1.0), ((1,), 1.0), ((0,), 4.0)]
    >>> marginal_tables(prefix(4)) is None
    True
    """
    if isinstance(workload, Marginals):
        return [(subset, 1.0) for subset in workload.subsets]
    if isinstance(workload, Identity):
        return [((0,), 1.0)]
    if isinstance(workload, Total):
        return [((), 1.0)]
    if isinstance(workload, Product):
        if not all(isinstance(factor, Identity | Total) for factor in workload.factors):
            return None
        axes = (axis for axis, factor in enumerate(workload.factors) if isinstance(factor, Identity))
        return [(tuple(axes), 1.0)]
    if isinstance(workload, Union):
        tables: list[tuple[Subset, float]] = []
        for part, weight in zip(workload.parts, workload.weights, strict=True):
            inner = marginal_tables(part)
            if inner is None:
                return None
            tables.extend((subset, square * weight**2) for subset, square in inner)
        return tables
    return None


@lru_cache(maxsize=8)
def marginal_strategy(workload: Workload, norm: Norm) -> MarginalStrategy:
    """The best strategy for a workload of marginals: the optimum for Gaussian noise, several tried for Laplace noise.

    >>> from farthing.matrix.workloads import marginals
    >>> strategy = marginal_strategy(marginals({"sex": 2, "age": 3}, way=1), "l2")
    >>> strategy.levels
    (Level(name='total', size=1, l1=1, l2_squared=1), Level(name='sex', size=1, l1=1, l2_squared=1),
     Level(name='age', size=3, l1=4, l2_squared=6))
    """
    weights: dict[Subset, float] = {}
    for subset, square in _tables(workload):
        weights[subset] = weights.get(subset, 0.0) + square
    sizes = dict(zip(workload.columns, workload.shape, strict=True))
    plan = plan_marginals(sizes, list(weights), norm=norm, weights=list(weights.values()))
    return MarginalStrategy(plan)


class MarginalStrategy(Strategy):
    """The levels of a `MarginalPlan`, measured on an array over all of its columns."""

    name = "marginals"

    def __init__(self, plan: MarginalPlan) -> None:
        self.plan = plan
        self.shape = plan.sizes
        self.made_for = plan.norm  # Laplace noise on dozens of residuals is slow to price, and poor

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """Those of the plan, named by their columns."""
        return tuple(
            replace(level.plain, name=" x ".join(self.plan.columns[c] for c in level.subset) or "total")
            for level in self.plan.levels
        )

    @property
    def reach(self) -> int:
        """The largest sum of absolute coefficients, over all cells, of a measured number."""
        return max(level.reach * (self.cells // math.prod(level.sizes)) for level in self.plan.levels)

    def exact(self, cells: Integers) -> list[Integers]:
        """The tables that the levels need, then the levels."""
        block = np.asarray(cells, dtype=np.int64).reshape(self.shape)
        return self.plan.measure_exact(all_sums(block, self.plan.tables_needed))

    def shares(self, workload: Workload, norm: Norm) -> Floats:
        """The best division over these levels."""
        tables = _tables(workload)
        subsets = [self.plan.live(subset) for subset, _ in tables]
        parts = self.plan.asked
        if not set(subsets) <= set(parts):
            raise InvalidValue("workload", type(workload).__name__, "must ask for planned marginals only")
        energies = energies_of(self.shape, subsets, [square for _, square in tables], parts)
        return best_shares(self.plan.levels, parts, energies, norm)

    def fit(self, variances: Variances) -> MarginalEstimator:
        """Least squares, residual by residual."""
        return MarginalEstimator(self.plan.fit(self.check_variances(variances)))


class MarginalEstimator(Estimator):
    """Cells and variances from measured residuals. What no marginal determines is spread evenly over the cells."""

    def __init__(self, fit: MarginalFit) -> None:
        self.tables = fit
        self.sizes = fit.plan.sizes
        self.cells = math.prod(self.sizes)

    def estimate(self, measured: Sequence[NDArray[np.generic]]) -> Floats:
        """The shortest cells that have the estimated marginals."""
        residuals = self.tables.residuals(measured)
        return from_residuals(self.sizes, residuals, tuple(range(len(self.sizes)))).ravel()

    def total_variance(self, workload: Workload) -> float:
        """The sum over the tables of cells times variance, importance weights included."""
        tables = marginal_tables(workload)
        if tables is None:
            return float(np.sum(self.query_variances(workload)))
        per_cell = {subset: self.tables.variance_per_cell(subset) for subset, _ in tables}
        return sum(square * self._size(subset) * per_cell[subset] for subset, square in tables)

    def query_variances(self, workload: Workload) -> Floats:
        """One variance a table, repeated for its cells; of other workloads query by query."""
        tables = marginal_tables(workload)
        if tables is not None:
            return np.concatenate([np.full(self._size(own), self.tables.variance_per_cell(own)) for own, _ in tables])
        return np.array([self.variance(query) for query in workload.matrix()])

    def variance(self, query: Floats) -> float:
        """The variance of one more query over all cells; refused where the marginals do not determine it."""
        everything = tuple(range(len(self.sizes)))
        block = np.asarray(query, dtype=float).reshape(self.sizes)
        known, total = 0.0, 0.0
        for part, variance in self.tables.residual_variances.items():
            if not variance < math.inf:
                continue
            own = residual(summed(block, everything, part))
            away = float(self.cells // self._size(part))
            size = float(np.sum(own * own)) / away
            known += size
            total += variance * size / away
        if not known >= float(np.sum(block * block)) * (1 - 1e-9):
            raise InvalidValue(
                "query",
                "of this kind",
                "must be a sum of cells of the measured marginals",
                "ask about columns of one marginal at a time",
            )
        return total

    def nonnegative(self, measured: Sequence[NDArray[np.generic]]) -> Floats:
        """Cells >= 0 whose marginals are near the estimated ones; cell by cell nothing would be left of those."""
        tables = self.tables.estimate(measured)
        total = max(0.0, float(next(iter(tables.values())).sum()))
        return nearest_joint(self.sizes, tables, total).ravel()

    def coefficients(self, query: Floats) -> list[Floats]:
        """How much each measured number counts in the answer, level by level."""
        plan, everything = self.tables.plan, tuple(range(len(self.sizes)))
        block = np.asarray(query, dtype=float).reshape(self.sizes)
        gains = {
            part: residual(summed(block, everything, part)) * (variance * self._size(part) / self.cells)
            for part, variance in self.tables.residual_variances.items()
            if variance < math.inf
        }
        coefficients = []
        for level, variance in zip(plan.levels, self.tables.variances.tolist(), strict=True):
            own: Floats = np.zeros(level.plain.size)
            if variance < math.inf:
                for part in plan.parts_of(level):
                    share = level.precision(part) / variance
                    own += level.residual_transposed(gains[part] * share, part)
            coefficients.append(own)
        return coefficients

    def covariance(self) -> Floats:
        """Residual by residual, as a dense matrix."""
        check_dense(self.cells)
        matrix: Floats = np.zeros((self.cells, self.cells))
        for part, variance in self.tables.residual_variances.items():
            if variance < math.inf:
                factor: Floats = np.ones((1, 1))
                for column, n in enumerate(self.sizes):
                    even = np.full((n, n), 1.0 / n)
                    factor = np.kron(factor, np.eye(n) - even if column in part else even / n)
                matrix += variance * factor
        return matrix

    def _size(self, subset: Subset) -> int:
        return math.prod(self.sizes[column] for column in subset)


def _tables(workload: Workload) -> list[tuple[Subset, float]]:
    tables = marginal_tables(workload)
    if tables is None:
        raise InvalidValue(
            "workload",
            type(workload).__name__,
            "must consist of marginals",
            'use strategy="optimised" for ranges and prefixes',
        )
    return tables

"""MarginalFit: least squares and variances as dense algebra has them, for both noises, to 1e-9."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.matrix.strategies.marginals import MarginalFit, MarginalPlan, plan_marginals

Floats = NDArray[np.float64]
CASES = [
    ((2, 3, 2), [(0, 1), (1, 2), (0, 2)]),
    ((4, 4, 3), [(0,), (1, 2)]),
    ((2, 2, 2, 2), list(combinations(range(4), 2))),
    ((3, 1, 4), [(0, 1), (1, 2)]),
]


def summing(sizes: tuple[int, ...], subset: tuple[int, ...]) -> Floats:
    """The dense matrix of one marginal."""
    matrix: Floats = np.ones((1, 1))
    for column, n in enumerate(sizes):
        matrix = np.asarray(np.kron(matrix, np.eye(n) if column in subset else np.ones((1, n))), float)
    return matrix


def dense_levels(plan: MarginalPlan) -> list[Floats]:
    everything = tuple(range(len(plan.sizes)))
    units = np.eye(math.prod(plan.sizes), dtype=np.int64)
    rows = [plan.measure_exact({everything: unit.reshape(plan.sizes)}) for unit in units]
    return [np.array([row[place] for row in rows], dtype=float).T for place in range(len(plan.levels))]


def some_variances(plan: MarginalPlan) -> Floats:
    return plan.unit_variances() * (1.0 + np.arange(len(plan.levels)) % 3)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize(("sizes", "subsets"), CASES)
def test_estimates_and_variances_are_those_of_dense_least_squares(
    sizes: tuple[int, ...], subsets: list[tuple[int, ...]], norm: Literal["l1", "l2"]
) -> None:
    plan = plan_marginals(sizes, subsets, norm=norm)
    variances = some_variances(plan)
    fit = plan.fit(variances)
    levels = dense_levels(plan)
    design = np.vstack([rows / math.sqrt(v) for rows, v in zip(levels, variances, strict=True)])
    covariance = np.linalg.pinv(design.T @ design, rcond=1e-12, hermitian=True)
    generator = np.random.default_rng(5)
    measured = [generator.normal(size=len(rows)) * 9 for rows in levels]
    scaled = [numbers / math.sqrt(v) for numbers, v in zip(measured, variances, strict=True)]
    cells = covariance @ design.T @ np.concatenate(scaled)
    tables = fit.estimate(measured)
    for subset in subsets:
        matrix = summing(sizes, subset)
        assert tables[subset].ravel() == pytest.approx(matrix @ cells, abs=1e-9)
        own = np.diag(matrix @ covariance @ matrix.T)
        assert fit.variance_per_cell(subset) == pytest.approx(own, rel=1e-9)
        query = generator.normal(size=len(matrix))
        shape = [sizes[column] for column in subset]
        expected = query @ matrix @ covariance @ matrix.T @ query
        assert fit.variance(subset, query.reshape(shape)) == pytest.approx(expected, rel=1e-9)
    everything = sum(np.trace(m @ covariance @ m.T) for m in (summing(sizes, s) for s in subsets))
    assert fit.total_variance == pytest.approx(everything, rel=1e-9)


def test_marginals_of_fewer_columns_come_for_free_and_agree() -> None:
    plan = plan_marginals((3, 4, 2), [(0, 1), (1, 2)])
    fit = plan.fit(some_variances(plan))
    generator = np.random.default_rng(6)
    measured = [generator.normal(size=level.plain.size) * 50 for level in plan.levels]
    tables = fit.estimate(measured, [(0, 1), (1, 2), (1,), ()])
    assert tables[(0, 1)].sum(axis=0) == pytest.approx(tables[(1,)], abs=1e-10)
    assert tables[(1, 2)].sum(axis=1) == pytest.approx(tables[(1,)], abs=1e-10)
    assert tables[(1,)].sum() == pytest.approx(float(tables[()]), abs=1e-10)
    assert fit.variance((0, 1), np.ones((3, 4))) == pytest.approx(fit.variance_per_cell(()), rel=1e-12)


def test_what_was_not_measured_is_refused() -> None:
    plan = plan_marginals({"sex": 2, "age": 4, "region": 3}, [("sex", "age"), ("age", "region")])
    fit = plan.fit(some_variances(plan))
    with pytest.raises(InvalidValue, match="columns='sex, region': must be within one of the marginals"):
        fit.variance_per_cell((0, 2))
    with pytest.raises(InvalidValue, match="must be within one of the marginals"):
        fit.estimate([np.zeros(level.plain.size) for level in plan.levels], [(0, 1, 2)])
    ignored = MarginalFit(plan, np.where(np.arange(len(plan.levels)) == 1, np.inf, 1.0))
    with pytest.raises(InvalidValue, match="columns='sex'"):
        ignored.variance_per_cell((0, 1))
    assert ignored.variance_per_cell((1, 2)) > 0

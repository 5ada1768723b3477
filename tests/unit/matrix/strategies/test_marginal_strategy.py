"""Marginals as a strategy over an array: the estimator against dense algebra, and what it refuses."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest

from farthing.errors import InvalidValue
from farthing.matrix.strategies.marginal_strategy import marginal_strategy
from farthing.matrix.strategies.strategy_noise import priced
from farthing.matrix.workloads import conjunctions, identity, marginals, prefix, product, total, union
from farthing.matrix.workloads.workload import Workload
from sources import TestSource

WORKLOADS: list[Workload] = [
    marginals((2, 3, 4), way=2),
    marginals((2, 1, 4), way=2, up_to=True),
    identity(5),
    union(marginals((3, 4), way=1), product(identity(3), total(4)), weights=[1.0, 2.0]),
]


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: f"{workload.shape}")
def test_estimator_is_dense_least_squares(workload: Workload, norm: Literal["l1", "l2"]) -> None:
    strategy = marginal_strategy(workload, norm)
    units = np.eye(workload.cells, dtype=np.int64)
    rows = [strategy.exact(unit) for unit in units]
    levels = [np.array([row[place] for row in rows]).T for place in range(len(strategy.levels))]
    for level, matrix in zip(strategy.levels, levels, strict=True):
        assert matrix.shape[0] == level.size
        assert np.abs(matrix).sum(axis=0).max() == level.l1
        assert (matrix**2).sum(axis=0).max() == level.l2_squared
        assert np.abs(matrix).sum(axis=1).max() <= strategy.reach
    variances = strategy.unit_variances(workload, norm)
    assert math.isclose(strategy.shares(workload, norm).sum(), 1.0)
    estimator = strategy.fit(variances)
    design = np.vstack([matrix / math.sqrt(v) for matrix, v in zip(levels, variances, strict=True)])
    covariance = np.linalg.pinv(design.T @ design, rcond=1e-12, hermitian=True)
    assert estimator.covariance() == pytest.approx(covariance, abs=1e-9 * np.abs(covariance).max())
    dense = workload.matrix()
    own = np.diag(dense @ covariance @ dense.T)
    assert estimator.query_variances(workload) == pytest.approx(own, rel=1e-9)
    assert estimator.total_variance(workload) == pytest.approx(np.sum(covariance * workload.gram()), rel=1e-9)
    assert estimator.variance(dense[0]) == pytest.approx(own[0], rel=1e-9)
    measured = [np.random.default_rng(3).normal(size=level.size) for level in strategy.levels]
    scaled = [numbers / math.sqrt(v) for numbers, v in zip(measured, variances, strict=True)]
    expected = covariance @ design.T @ np.concatenate(scaled)
    assert estimator.estimate(measured) == pytest.approx(expected, abs=1e-9)
    query = dense[-1]
    terms = zip(estimator.coefficients(query), measured, strict=True)
    assert sum(float(own @ numbers) for own, numbers in terms) == pytest.approx(query @ expected, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (1.0, 1e-9)])
def test_measured_error_is_the_predicted_one(epsilon: float, delta: float) -> None:
    workload = marginals((3, 4, 5, 2), way=2)
    strategy = marginal_strategy(workload, "l1" if delta == 0 else "l2")
    noise = priced(strategy, workload, epsilon, delta, "laplace" if delta == 0 else "gaussian")
    cells = np.random.default_rng(1).poisson(3.0, workload.cells)
    truth, source = workload.answers(cells), TestSource(5)
    squares = [
        float(np.sum((workload.answers(noise.estimator.estimate(noise.measure(cells, source))) - truth) ** 2))
        for _ in range(400)
    ]
    ratio = math.sqrt(np.mean(squares) / noise.total_variance(workload))
    spread = np.std(squares) / np.mean(squares) / 2 / math.sqrt(len(squares))
    assert abs(ratio - 1) < 5 * spread < 0.1
    assert abs(ratio / 0.9 - 1) > 5 * spread
    assert abs(ratio / 1.1 - 1) > 5 * spread


def test_conjunctions_are_the_cells_of_marginals_with_their_own_labels() -> None:
    workload = conjunctions({"smokes": 2, "region": 3}, 2)
    assert [workload.label(i) for i in (0, 5)] == ["smokes = 0 and region = 0", "smokes = 1 and region = 2"]
    assert marginal_strategy(workload, "l2").levels[-1].name == "smokes x region"


def test_what_marginals_do_not_determine_is_refused() -> None:
    workload = marginals((2, 3, 4), way=1)
    strategy = marginal_strategy(workload, "l2")
    estimator = strategy.fit(strategy.unit_variances(workload, "l2"))
    one_cell = np.zeros(24)
    one_cell[5] = 1.0
    with pytest.raises(InvalidValue, match="must be a sum of cells of the measured marginals"):
        estimator.variance(one_cell)
    with pytest.raises(InvalidValue, match="must be within one of the marginals"):
        estimator.query_variances(marginals((2, 3, 4), way=2))
    with pytest.raises(InvalidValue, match="must ask for planned marginals only"):
        strategy.shares(marginals((2, 3, 4), way=2), "l2")
    with pytest.raises(InvalidValue, match="must consist of marginals"):
        marginal_strategy(prefix(8), "l1")


def test_other_queries_over_one_marginal_are_answered() -> None:
    workload = marginals((4, 3), subsets=[(0, 1)])
    strategy = marginal_strategy(workload, "l2")
    estimator = strategy.fit(strategy.unit_variances(workload, "l2"))
    asked = product(prefix(4), total(3))
    assert estimator.query_variances(asked) == pytest.approx([3.0, 6.0, 9.0, 12.0])
    assert estimator.total_variance(asked) == pytest.approx(30.0)


@pytest.mark.slow
def test_cells_without_negative_ones_keep_the_marginals_near() -> None:
    """Few rows in many cells: clipping cell by cell would be far from every marginal."""
    workload = marginals((2, 3, 4, 5, 6), way=2)
    noise = priced(marginal_strategy(workload, "l2"), workload, 1.0, 1e-9, "gaussian")
    values = np.minimum(np.random.default_rng(4).geometric(0.6, (5, 2000)).T - 1, np.array(workload.shape) - 1)
    cells = np.bincount(np.ravel_multi_index(tuple(values.T), workload.shape), minlength=workload.cells)
    measured = noise.measure(cells, TestSource(3))
    truth = workload.answers(cells)
    found = noise.estimator.nonnegative(measured)
    errors = [float(np.linalg.norm(workload.answers(x) - truth)) for x in (noise.estimator.estimate(measured), found)]
    assert found.min() >= 0
    assert errors[1] <= errors[0] * 1.001


@pytest.mark.slow
def test_a_million_cells_are_a_matter_of_a_second() -> None:
    workload = marginals((10, 8, 6, 5, 4, 3, 2, 2, 7), way=2)
    strategy = marginal_strategy(workload, "l2")
    cells = np.arange(workload.cells) % 3
    estimator = strategy.fit(strategy.unit_variances(workload, "l2"))
    found = estimator.estimate(strategy.exact(cells))
    assert workload.answers(found) == pytest.approx(workload.answers(cells), rel=1e-9)

"""FourierStrategy: exact coefficients, exact variances, closed-form shares."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import hadamard
from scipy.optimize import minimize

from farthing.errors import InvalidValue
from farthing.matrix.strategies.fourier import FourierStrategy, transformed
from farthing.matrix.strategies.marginal_strategy import marginal_strategy
from farthing.matrix.strategies.strategy_noise import priced
from farthing.matrix.workloads import conjunctions, marginals, prefix
from sources import TestSource


def test_transform_is_the_hadamard_matrix() -> None:
    cells = np.arange(16) ** 2
    assert np.array_equal(transformed(cells), hadamard(16) @ cells)
    assert np.array_equal(transformed(transformed(cells)), 16 * cells)


def test_every_row_moves_every_coefficient_by_one() -> None:
    strategy = FourierStrategy(conjunctions((2,) * 4, 3))
    before = strategy.exact(np.arange(16))
    for cell in range(16):
        after = strategy.exact(np.arange(16) + (np.arange(16) == cell))
        for level, one, other in zip(strategy.levels, before, after, strict=True):
            assert len(one) == level.size == level.l1 == level.l2_squared
            assert np.array_equal(np.abs(other - one), np.ones(level.size))


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_estimator_is_dense_least_squares(norm: Literal["l1", "l2"]) -> None:
    workload = marginals((2,) * 4, subsets=[(0, 1), (1, 2, 3), (0,)])
    strategy = FourierStrategy(workload)
    rows = [np.concatenate(strategy.exact(unit)) for unit in np.eye(16, dtype=np.int64)]
    matrix = np.array(rows).T.astype(float)
    variances = strategy.unit_variances(workload, norm)
    each = np.concatenate([np.full(level.size, v) for level, v in zip(strategy.levels, variances, strict=True)])
    covariance = np.linalg.pinv((matrix.T / each) @ matrix, rcond=1e-12, hermitian=True)
    estimator = strategy.fit(variances)
    dense = workload.matrix()
    assert estimator.covariance() == pytest.approx(covariance, abs=1e-9 * covariance.max())
    expected = np.diag(dense @ covariance @ dense.T)
    assert estimator.query_variances(workload) == pytest.approx(expected, rel=1e-9)
    assert estimator.total_variance(workload) == pytest.approx(expected.sum(), rel=1e-9)
    assert [estimator.variance(query) for query in dense] == pytest.approx(expected, rel=1e-9)
    measured = np.random.default_rng(2).normal(size=len(matrix))
    cuts = np.cumsum([level.size for level in strategy.levels])[:-1]
    found = estimator.estimate(np.split(measured, cuts))
    assert found == pytest.approx(covariance @ (matrix.T / each) @ measured, abs=1e-9)
    terms = zip(estimator.coefficients(dense[0]), np.split(measured, cuts), strict=True)
    assert sum(float(own @ numbers) for own, numbers in terms) == pytest.approx(dense[0] @ found, abs=1e-9)
    cells = estimator.nonnegative(np.split(measured, cuts))
    assert cells.min() >= 0
    assert cells.sum() == pytest.approx(max(0.0, measured[0]))


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_shares_are_the_best_ones(norm: Literal["l1", "l2"]) -> None:
    workload = conjunctions((2,) * 6, 3)
    strategy = FourierStrategy(workload)

    def error(logits: NDArray[np.float64]) -> float:
        shares = np.exp(logits) / np.exp(logits).sum()
        if norm == "l1":
            variances = np.array([2.0 * level.l1**2 for level in strategy.levels]) / shares**2
        else:
            variances = np.array([float(level.l2_squared) for level in strategy.levels]) / shares
        return math.log(strategy.fit(variances).total_variance(workload))

    generic = minimize(error, np.zeros(4), method="BFGS")
    assert math.log(strategy.unit_error(workload, norm)) == pytest.approx(generic.fun, abs=1e-6)


def test_gaussian_coefficients_are_the_optimum_of_residuals() -> None:
    workload = conjunctions((2,) * 7, 3)
    ours = FourierStrategy(workload).unit_error(workload, "l2")
    assert ours == pytest.approx(marginal_strategy(workload, "l2").unit_error(workload, "l2"), rel=1e-9)


@pytest.mark.slow
def test_measured_error_is_the_predicted_one() -> None:
    workload = conjunctions((2,) * 6, 2)
    noise = priced(FourierStrategy(workload), workload, epsilon=0.5)
    assert noise.cost.upper <= 0.5
    cells = np.random.default_rng(1).poisson(4.0, 64)
    truth, source = workload.answers(cells), TestSource(9)
    squares = [
        float(np.sum((workload.answers(noise.estimator.estimate(noise.measure(cells, source))) - truth) ** 2))
        for _ in range(400)
    ]
    ratio = math.sqrt(np.mean(squares) / noise.total_variance(workload))
    spread = np.std(squares) / np.mean(squares) / 2 / math.sqrt(len(squares))
    assert abs(ratio - 1) < 5 * spread < 0.09
    assert abs(ratio / 0.9 - 1) > 5 * spread
    assert abs(ratio / 1.1 - 1) > 5 * spread


def test_refusals_say_what_to_use_instead() -> None:
    with pytest.raises(InvalidValue, match='columns of two values for "fourier"; use strategy="marginals"'):
        FourierStrategy(marginals((2, 3), way=1))
    with pytest.raises(InvalidValue, match='must consist of marginals or conjunctions for "fourier"'):
        FourierStrategy(prefix(2))
    workload = conjunctions((2, 2, 2), 1)
    estimator = FourierStrategy(workload).fit([1.0, 1.0])
    with pytest.raises(InvalidValue, match="must be a sum of cells of the measured marginals"):
        estimator.variance(np.eye(8)[0])
    with pytest.raises(InvalidValue, match="must be within the marginals that were planned"):
        estimator.total_variance(conjunctions((2, 2, 2), 2))

"""Optimised strategies: errors against dense algebra, gradients against differences, optima against the dual."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from farthing.matrix.strategies import Norm
from farthing.matrix.strategies.optimisation.gaussian_optimum import best_for_gaussian
from farthing.matrix.strategies.optimisation.initial_weights import gram_bands
from farthing.matrix.strategies.optimisation.p_identity_error import LaplaceError, Windows, descended
from farthing.matrix.strategies.optimisation.p_identity_strategy import CellsAndSums, on_grid
from farthing.matrix.strategies.optimisation.workload_optimum import (
    no_progress,
    optimised,
    optimised_product,
    products_in,
)
from farthing.matrix.workloads import (
    Workload,
    all_ranges,
    identity,
    marginals,
    prefix,
    product,
    ranges,
    total,
    union,
)

Table = NDArray[np.float64]


def random_ranges(n: int, count: int = 200) -> Workload:
    cells = np.sort(np.random.default_rng(n).integers(0, n, (count, 2)), axis=1)
    return ranges(n, np.stack([cells[:, 0], cells[:, 1] + 1], axis=1))


def some_windows(n: int, rows: int, seed: int = 0) -> tuple[Windows, Table]:
    draw = np.random.default_rng(seed)
    starts, lasts = np.sort(draw.integers(0, n, (rows, 2)), axis=1).T
    return Windows(n, starts, lasts + 1), draw.random(int(np.sum(lasts + 1 - starts)))


def laplace_error(workload: Workload, windows: Windows) -> LaplaceError:
    return LaplaceError(workload.gram_times, gram_bands(workload)[0], windows)


@pytest.mark.parametrize("make", [prefix, all_ranges, random_ranges, identity, total])
def test_the_error_of_cells_and_sums_is_that_of_the_dense_matrix(make: type) -> None:
    workload: Workload = make(13)
    windows, weights = some_windows(13, 5)
    stacked = np.vstack([np.eye(13), windows.dense(weights)])
    strategy = stacked / stacked.sum(axis=0)
    expected = np.trace(np.linalg.inv(strategy.T @ strategy) @ workload.gram())
    assert laplace_error(workload, windows).value(weights) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("make", [prefix, all_ranges, random_ranges])
def test_the_gradient_is_that_of_small_differences(make: type) -> None:
    workload: Workload = make(11)
    windows, weights = some_windows(11, 4, seed=3)
    error = laplace_error(workload, windows)
    _, gradient = error.value_and_gradient(weights)
    for place in range(len(weights)):
        step = np.zeros_like(weights)
        step[place] = 1e-5
        slope = (error.value(weights + step) - error.value(weights - step)) / 2e-5
        assert gradient[place] == pytest.approx(slope, rel=1e-5, abs=1e-6 * np.abs(gradient).max())


def test_without_sums_the_error_is_that_of_the_cells() -> None:
    empty = np.zeros(0, dtype=np.int64)
    value, gradient = laplace_error(prefix(9), Windows(9, empty, empty)).value_and_gradient(np.zeros(0))
    assert value == 45.0 and gradient.shape == (0,)


@pytest.mark.parametrize("n", [16, 32, 64])
@pytest.mark.parametrize("make", [prefix, all_ranges, random_ranges])
def test_gaussian_strategies_are_within_a_thousandth_of_the_semidefinite_optimum(make: type, n: int) -> None:
    """The claim is for the whole numbers that are measured, and the proof is the dual's bound."""
    workload: Workload = make(n)
    certified = best_for_gaussian(workload.gram())
    measured = optimised(workload, "l2").unit_error(workload, "l2")
    assert certified.least <= measured <= 1.001 * certified.least


def test_no_feasible_strategy_is_below_the_certified_least() -> None:
    gram = all_ranges(12).gram()
    least = best_for_gaussian(gram).least
    draw = np.random.default_rng(5)
    for rows in (12, 20, 40):
        for scale in (0.0, 0.1, 1.0):
            matrix = np.vstack([np.eye(12), scale * draw.standard_normal((rows, 12))])
            matrix /= np.linalg.norm(matrix, axis=0)
            assert np.trace(np.linalg.inv(matrix.T @ matrix) @ gram) >= least


@pytest.mark.parametrize("make", [prefix, all_ranges])
def test_a_generic_solver_finds_the_same_optimum(make: type) -> None:
    """Descent on the entries of a square matrix with normalised columns knows nothing of the dual."""
    gram: Table = make(16).gram()
    best = best_for_gaussian(gram)

    def error(flat: Table) -> tuple[float, Table]:
        entries = flat.reshape(16, 16)
        lengths = np.linalg.norm(entries, axis=0)
        matrix = entries / lengths
        inverse = np.linalg.inv(matrix.T @ matrix)
        pull = -2.0 * matrix @ inverse @ gram @ inverse
        slope = (pull - matrix * np.sum(pull * matrix, axis=0)) / lengths
        return float(np.trace(inverse @ gram)), slope.ravel()

    start = np.triu(np.full((16, 16), 0.2)) + np.eye(16)
    found, _ = descended(error, start.ravel(), steps=600, until=1e300)
    assert best.least <= found == pytest.approx(best.error, rel=2e-3)


def test_the_optimum_of_a_multiple_is_the_multiple_and_more_queries_cost_more() -> None:
    gram = prefix(20).gram()
    once, thrice = best_for_gaussian(gram), best_for_gaussian(3.0 * gram)
    more = best_for_gaussian(gram + all_ranges(20).gram())
    assert thrice.error == pytest.approx(3.0 * once.error, rel=1e-9)
    assert more.least > once.error


def test_the_optimum_is_known_where_nothing_can_be_shared_or_everything() -> None:
    alone = best_for_gaussian(identity(7).gram())
    assert alone.error == pytest.approx(7.0) and alone.least == pytest.approx(7.0)
    assert best_for_gaussian(np.array([[4.0]])).error == pytest.approx(4.0)
    together = best_for_gaussian(total(30).gram())  # one number is asked; it costs what one number costs
    assert together.least == pytest.approx(1.0, rel=1e-3)
    assert together.error == pytest.approx(1.0, rel=5e-3)
    few = best_for_gaussian(ranges(50, [(0, 10), (10, 30), (30, 50)]).gram())
    assert few.error == pytest.approx(3.0, rel=5e-3) and few.gap < 5e-3


def example() -> CellsAndSums:
    windows, weights = some_windows(10, 4, seed=7)
    return on_grid("example", np.linspace(0.2, 1.0, 10), windows, weights, "l1", bits=10)


def test_cells_that_no_query_holds_are_in_nobodys_way() -> None:
    alone = best_for_gaussian(prefix(8).gram())
    among = best_for_gaussian(ranges(20, [(5, stop) for stop in range(6, 14)]).gram())
    assert among.error == pytest.approx(alone.error, rel=1e-9) and among.gap < 1e-3
    assert np.allclose(np.diag(among.inner_products), 1.0)


def test_rounds_that_begin_worse_than_cells_alone_go_on() -> None:
    gram = ranges(64, [(3, 9), (5, 40), (8, 12), (30, 33), (31, 50), (2, 60)]).gram()
    assert best_for_gaussian(gram).error < 0.25 * np.trace(gram)


def test_least_squares_is_that_of_the_dense_matrix() -> None:
    strategy, workload = example(), all_ranges(10)
    dense = strategy.matrix.astype(float)
    covariance = 2.5 * np.linalg.inv(dense.T @ dense)
    estimator = strategy.fit([2.5])
    numbers = np.random.default_rng(1).standard_normal(len(dense)) * 1000
    query = np.random.default_rng(2).standard_normal(10)
    assert np.allclose(estimator.covariance(), covariance, rtol=1e-9, atol=1e-18)
    assert np.allclose(estimator.estimate([numbers]), np.linalg.lstsq(dense, numbers)[0], rtol=1e-9)
    assert estimator.total_variance(workload) == pytest.approx(np.sum(covariance * workload.gram()), rel=1e-9)
    rows = workload.matrix()
    expected = np.einsum("ij,jk,ik->i", rows, covariance, rows)
    assert np.allclose(estimator.query_variances(workload), expected, rtol=1e-9)
    assert estimator.variance(query) == pytest.approx(query @ covariance @ query, rel=1e-9)
    (coefficients,) = estimator.coefficients(query)
    assert np.allclose(coefficients, dense @ covariance @ query / 2.5, rtol=1e-9)


def test_sensitivities_are_the_largest_columns_of_what_is_measured() -> None:
    strategy = example()
    columns = [strategy.exact(unit)[0].tolist() for unit in np.eye(10, dtype=np.int64)]
    (level,) = strategy.levels
    assert np.array_equal(np.array(columns).T, strategy.matrix)
    assert level.l1 == max(sum(abs(entry) for entry in column) for column in columns)
    assert level.l2_squared == max(sum(entry**2 for entry in column) for column in columns)
    assert strategy.reach == np.abs(strategy.matrix).sum(axis=1).max()
    assert level.size == len(columns[0])


def test_squares_beyond_64_bits_are_added_exactly() -> None:
    windows = Windows(2, np.array([0, 0]), np.array([2, 2]))
    strategy = CellsAndSums("wide", np.array([1, 1]), windows, np.array([2**31, 1, 2**31, 2**31]))
    assert strategy.levels[0].l2_squared == 2 * 2**62 + 1


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_error_of_a_product_is_the_sum_of_products_over_its_parts(norm: Norm) -> None:
    workload = union(product(prefix(6), total(5)), product(identity(6), prefix(5)), weights=(1.0, 2.0))
    strategy = optimised_product(workload, norm, progress=no_progress, seconds=20.0)
    matrices = [factor.matrix.astype(float) for factor in strategy.factors]
    whole = np.kron(*matrices)
    covariance = np.linalg.inv(whole.T @ whole)
    expected = np.sum(covariance * workload.gram())
    assert strategy.fit([1.0]).total_variance(workload) == pytest.approx(expected, rel=1e-9)
    inverses = [np.linalg.inv(matrix.T @ matrix) for matrix in matrices]
    summed = sum(
        weight * np.prod([np.sum(c * own.gram()) for c, own in zip(inverses, axes, strict=True)])
        for weight, axes in products_in(workload)
    )
    assert summed == pytest.approx(expected, rel=1e-9)


def test_gaussian_products_are_as_good_as_the_optimum_over_all_cells() -> None:
    workload = product(prefix(6), all_ranges(5))
    least = best_for_gaussian(workload.gram()).least
    assert least <= optimised(workload, "l2").unit_error(workload, "l2") <= 1.001 * least


@pytest.mark.slow
def test_products_in_turn_do_no_worse_than_cells_on_marginals() -> None:
    workload = marginals((4, 5, 3), way=2)
    assert optimised(workload, "l2").unit_error(workload, "l2") <= workload.trace

"""Plans for marginals: predicted errors are measured errors, on domains that no table could hold."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from farthing.errors import InvalidData, InvalidValue
from farthing.matrix.strategies.marginals import MarginalPlan, plan_marginals
from farthing.mechanisms.samplers import discrete_gaussian_noise
from sources import TestSource

ADULT = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)  # the shape of a census table: 10^15 cells


def some_tables(plan: MarginalPlan, rows: int) -> dict[tuple[int, ...], NDArray[np.int64]]:
    generator = np.random.default_rng(7)
    values = np.column_stack([np.minimum(generator.geometric(0.2, rows) - 1, n - 1) for n in plan.sizes])
    tables = {}
    for subset in plan.tables_needed:
        shape = [plan.sizes[column] for column in subset]
        cells = np.ravel_multi_index(tuple(values[:, subset].T), shape)
        tables[subset] = np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
    return tables


def released(
    plan: MarginalPlan, tables: dict[tuple[int, ...], NDArray[np.int64]], mu: float, stretch: float = 1.0
) -> tuple[dict[tuple[int, ...], NDArray[np.float64]], NDArray[np.float64]]:
    """Tables estimated from discrete Gaussian noise, `stretch` times as wide as told, and the variances told."""
    source = TestSource(11)
    variances = plan.unit_variances() / mu**2
    noisy = [
        np.add(exact, discrete_gaussian_noise(Fraction(variance * stretch**2), exact.size, source))
        for exact, variance in zip(plan.measure_exact(tables), variances.tolist(), strict=True)
    ]
    return plan.fit(variances).estimate(noisy), variances


@pytest.fixture(scope="module")
def adult() -> tuple[MarginalPlan, dict[tuple[int, ...], NDArray[np.int64]]]:
    plan = plan_marginals(ADULT, list(combinations(range(14), 2)))
    return plan, some_tables(plan, 5_000)


def errors_over_predictions(
    plan: MarginalPlan, tables: dict[tuple[int, ...], NDArray[np.int64]], stretch: float
) -> float:
    estimates, variances = released(plan, tables, 0.2, stretch)
    squares = sum(float(np.sum((estimates[own] - tables[own]) ** 2)) for own in plan.subsets)
    return math.sqrt(squares / plan.fit(variances).total_variance)


@pytest.mark.slow
def test_measured_error_is_the_predicted_one_for_all_pairs_of_14_columns(
    adult: tuple[MarginalPlan, dict[tuple[int, ...], NDArray[np.int64]]],
) -> None:
    """148,137 cells; the ratio has a standard deviation of 0.3%, so 1.5% is alpha < 1e-6. 10% off is caught."""
    plan, tables = adult
    assert errors_over_predictions(plan, tables, 1.0) == pytest.approx(1.0, abs=0.015)
    assert errors_over_predictions(plan, tables, 0.9) < 0.95
    assert errors_over_predictions(plan, tables, 1.1) > 1.05


@pytest.mark.slow
def test_estimates_agree_across_marginals(
    adult: tuple[MarginalPlan, dict[tuple[int, ...], NDArray[np.int64]]],
) -> None:
    plan, tables = adult
    estimates, _ = released(plan, tables, 0.2)
    single: dict[int, NDArray[np.float64]] = {}
    for (first, second), table in estimates.items():
        for column, sums in ((first, table.sum(axis=1)), (second, table.sum(axis=0))):
            assert sums == pytest.approx(single.setdefault(column, sums), abs=1e-6)


def test_the_planned_total_error_is_that_of_the_closed_form() -> None:
    """At mu = 1 the total variance is (sum over T of sqrt(E_T c_T))^2, here summed anew."""
    plan = plan_marginals(ADULT, list(combinations(range(14), 2)))
    roots = 0.0
    for part in plan.asked:
        price = math.prod(1 - 1 / ADULT[c] for c in part)
        energy = 0.0
        for subset in plan.subsets:
            if set(part) <= set(subset):
                away = math.prod(ADULT[c] for c in subset if c not in part)
                energy += math.prod(ADULT[c] for c in subset) * price / away**2
        roots += math.sqrt(energy * price)
    assert plan.fit(plan.unit_variances()).total_variance == pytest.approx(roots**2, rel=1e-12)
    assert plan.shares.sum() == pytest.approx(1.0)


def test_weights_and_the_largest_error_move_noise_where_it_matters() -> None:
    subsets = [(0, 1), (2,)]
    plain = plan_marginals((6, 7, 3), subsets)
    heavy = plan_marginals((6, 7, 3), subsets, weights=[1.0, 100.0])
    even = plan_marginals((6, 7, 3), subsets, objective="max")
    fits = [plan.fit(plan.unit_variances()) for plan in (plain, heavy, even)]
    of_pairs, of_single = ([fit.variance_per_cell(own) for fit in fits] for own in subsets)
    assert of_single[1] < of_single[0]
    assert of_pairs[1] > of_pairs[0]
    assert max(of_pairs[2], of_single[2]) < max(of_pairs[0], of_single[0])
    assert of_pairs[2] == pytest.approx(of_single[2], rel=1e-3)


@pytest.mark.slow
def test_laplace_plans_take_the_best_family() -> None:
    """Contrasts for columns of two values, one table over few small columns, wider tables where they tell more."""
    many = plan_marginals((2,) * 14, list(combinations(range(14), 2)), norm="l1")
    assert all(level.contrasts == level.subset for level in many.levels)
    few = plan_marginals((2,) * 5, list(combinations(range(5), 2)), norm="l1")
    assert [level.subset for level in few.levels] == [(0, 1, 2, 3, 4)]
    mixed = plan_marginals((2, 3, 4, 5, 6, 7), list(combinations(range(6), 2)), norm="l1")
    assert any(len(level.subset) > 2 for level in mixed.levels)
    plain = 15 * 2 * 15**2  # a fifteenth of epsilon for each table
    assert mixed.fit(mixed.unit_variances()).total_variance < plain / 15 * 295


def test_columns_of_one_value_change_nothing() -> None:
    with_one = plan_marginals((3, 1, 4), [(0, 1), (1, 2)])
    without = plan_marginals((3, 4), [(0,), (1,)])
    assert with_one.shares == pytest.approx(without.shares)
    table: dict[tuple[int, ...], NDArray[np.int64]] = {
        (0, 1): np.array([[1], [2], [3]]),
        (1, 2): np.array([[1, 2, 3, 0]]),
    }
    measured = with_one.measure_exact(table)
    found = with_one.fit(with_one.unit_variances()).estimate(measured)
    assert found[(0, 1)] == pytest.approx(table[(0, 1)])
    assert found[(1, 2)] == pytest.approx(table[(1, 2)])


def test_tables_of_huge_counts_are_added_without_wrapping() -> None:
    plan = plan_marginals((2, 3), [(0,), (1,)])
    exact = plan.measure_exact({(0, 1): np.full((2, 3), 2**62)})
    assert exact[0] == [2**62]  # six times as many, clamped where mechanisms clamp


def test_refusals_say_what_to_do() -> None:
    with pytest.raises(InvalidValue, match="column='wage': must be one of sex, age"):
        plan_marginals({"sex": 2, "age": 4}, [("sex", "wage")])
    with pytest.raises(InvalidValue, match="must name each column once"):
        plan_marginals((2, 3), [(0, 0)])
    with pytest.raises(InvalidValue, match="must have at most 67,108,864 cells, not 1,000,000,000"):
        plan_marginals((1000, 1000, 1000), [(0, 1, 2)])
    with pytest.raises(InvalidValue, match="must hold at least one marginal"):
        plan_marginals((2, 3), [])
    with pytest.raises(InvalidValue, match="must be 1 finite numbers > 0"):
        plan_marginals((2, 3), [(0,)], weights=[math.nan])
    with pytest.raises(InvalidValue, match='must be "sum" or "max"'):
        plan_marginals((2, 3), [(0,)], objective="mean")  # type: ignore[arg-type]
    plan = plan_marginals((2, 3), [(0,), (1,)])
    with pytest.raises(InvalidValue, match=r"must have a table with the columns \(1,\)"):
        plan.measure_exact({(0,): np.array([1, 2])})
    with pytest.raises(InvalidData, match=r"must have the shape \(2,\) for the columns \(0,\)") as refusal:
        plan.measure_exact({(0,): np.array([77, 2, 3]), (1,): np.array([1, 2, 3])})
    assert "77" not in str(refusal.value)
    with pytest.raises(InvalidData, match="must be whole numbers, not float64"):
        plan.measure_exact({(0, 1): np.full((2, 3), 0.5)})
    with pytest.raises(InvalidValue, match="must be numbers > 0"):
        plan.fit([1.0, math.nan, 1.0])

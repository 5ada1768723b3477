"""best_division and most_even_weights: as good as a generic solver over all strategies, and never better than it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from farthing.matrix.strategies.marginals import plan_marginals
from farthing.matrix.strategies.marginals.residual_noise import best_division, cell_coefficients

Floats = NDArray[np.float64]


def gram(sizes: tuple[int, ...], subsets: Sequence[tuple[int, ...]], weights: list[float]) -> Floats:
    total = np.zeros((math.prod(sizes), math.prod(sizes)))
    for subset, weight in zip(subsets, weights, strict=True):
        own: Floats = np.ones((1, 1))
        for column, n in enumerate(sizes):
            own = np.asarray(np.kron(own, np.eye(n) if column in subset else np.ones((n, n))), float)
        total += weight * own
    return total


def dense_optimum(asked: Floats) -> float:
    """min tr(G (A'A)^-1) over all square A whose columns have norm at most 1: the matrix mechanism, by descent."""
    n = len(asked)

    def objective(flat: Floats) -> tuple[float, Floats]:
        raw = flat.reshape(n, n)
        norms = np.sqrt(np.sum(raw**2, axis=0))
        a = raw / norms
        inverse = np.linalg.inv(a.T @ a)
        value = float(np.sum(asked * inverse))
        slope = -2 * a @ inverse @ asked @ inverse
        slope = (slope - a * np.sum(a * slope, axis=0)) / norms
        return value, slope.ravel()

    start = np.eye(n) + 0.1 * np.random.default_rng(1).normal(size=(n, n))
    found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 400})
    return float(found.fun)


@pytest.mark.parametrize(
    ("sizes", "subsets", "weights"),
    [
        ((2, 3, 2), [(0, 1), (1, 2), (0, 2)], [1.0, 1.0, 1.0]),
        ((2, 3), [(0,), (1,), ()], [1.0, 5.0, 20.0]),
        ((4, 3), [(0,), (1,)], [1.0, 1.0]),
        ((4, 3), [(0, 1)], [1.0]),
        ((3, 3, 2), [(0, 1, 2), (0,)], [1.0, 3.0]),
    ],
)
def test_no_strategy_at_all_has_less_total_variance(
    sizes: tuple[int, ...], subsets: list[tuple[int, ...]], weights: list[float]
) -> None:
    plan = plan_marginals(sizes, subsets, weights=weights)
    fit = plan.fit(plan.unit_variances())
    cells = [math.prod(sizes[c] for c in subset) for subset in subsets]
    ours = sum(w * n * fit.variance_per_cell(s) for w, n, s in zip(weights, cells, plan.subsets, strict=True))
    generic = dense_optimum(gram(sizes, subsets, weights))
    assert ours <= generic * (1 + 1e-6)
    assert generic <= ours * 1.02


@pytest.mark.slow
def test_no_strategy_at_all_has_less_total_variance_on_48_cells() -> None:
    subsets = list(combinations(range(3), 2))
    plan = plan_marginals((4, 4, 3), subsets)
    ours = plan.fit(plan.unit_variances()).total_variance
    generic = dense_optimum(gram((4, 4, 3), subsets, [1.0] * 3))
    assert ours <= generic * (1 + 1e-6)
    assert generic <= ours * 1.02


def test_one_marginal_alone_is_measured_as_it_is() -> None:
    """Its cells then have the variance of a plain Gaussian count: 1 at mu = 1."""
    for sizes in ((7,), (2, 5), (3, 4, 2)):
        plan = plan_marginals(sizes, [tuple(range(len(sizes)))])
        assert plan.fit(plan.unit_variances()).variance_per_cell(plan.subsets[0]) == pytest.approx(1.0)


def test_total_variance_is_the_closed_form_and_shares_sum_to_one() -> None:
    energies, prices = np.array([3.0, 0.0, 2.0]), np.array([1.0, 0.5, 0.25])
    shares = best_division(energies, prices)
    assert shares.sum() == pytest.approx(1.0)
    assert shares[1] == 0
    kept = shares > 0
    found = np.sum(energies[kept] * prices[kept] / shares[kept])
    assert found == pytest.approx(np.sum(np.sqrt(energies * prices)) ** 2)
    for other in ([0.5, 0.0, 0.5], [0.7, 0.0, 0.3]):
        assert np.sum(energies[kept] * prices[kept] / np.array(other)[kept]) >= found - 1e-12


def generic_largest(sizes: tuple[int, ...], subsets: list[tuple[int, ...]], scales: list[float]) -> float:
    """min max scale * variance by a general solver over log variances of the residuals and the bound."""
    parts = list({part for s in subsets for k in range(len(s) + 1) for part in combinations(s, k)})
    a = cell_coefficients(sizes, subsets, parts).toarray() * np.array(scales)[:, None]
    prices = np.array([math.prod(1 - 1 / sizes[c] for c in part) for part in parts])

    def value(x: Floats) -> float:
        """Precisions exp(x), scaled to the budget; the log of a smooth maximum, sharp enough for 0.1%."""
        precision = np.exp(x - x.max())
        variances = a @ (1 / precision) * float(prices @ precision)
        top = variances.max()
        return float(np.log(top) + np.log(np.sum((variances / top) ** 2000)) / 2000)

    found = minimize(value, np.zeros(len(parts)), method="BFGS", options={"maxiter": 5000})
    return float(np.exp(found.fun))


@pytest.mark.parametrize(
    ("sizes", "subsets", "scales"),
    [
        ((2, 3, 2), [(0, 1), (1, 2), (0, 2)], [1.0, 1.0, 1.0]),
        ((2, 6, 3), [(0,), (1, 2)], [1.0, 1.0]),
        ((4, 4, 3), [(0, 1), (2,), ()], [1.0, 2.0, 0.3]),
    ],
)
def test_the_largest_variance_is_as_small_as_a_generic_solver_finds(
    sizes: tuple[int, ...], subsets: list[tuple[int, ...]], scales: list[float]
) -> None:
    plan = plan_marginals(sizes, subsets, weights=scales, objective="max")
    fit = plan.fit(plan.unit_variances())
    ours = max(w * fit.variance_per_cell(s) for w, s in zip(scales, plan.subsets, strict=True))
    generic = generic_largest(sizes, subsets, scales)
    assert ours <= generic * 1.002
    assert generic <= ours * 1.02


def test_more_marginals_never_make_the_others_more_exact() -> None:
    largest = 0.0
    for count in range(1, 7):
        plan = plan_marginals((2, 3, 4, 2), list(combinations(range(4), 2))[:count], objective="max")
        fit = plan.fit(plan.unit_variances())
        worst = max(map(fit.variance_per_cell, plan.subsets))
        assert worst >= largest * (1 - 1e-4)
        largest = worst

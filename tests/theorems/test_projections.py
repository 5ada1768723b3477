"""nearest_nonnegative, nonnegative_cells, nearest_increasing: the nearest points, never further from the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, isotonic_regression, minimize

from farthing.errors import InvalidValue
from farthing.inference import (
    LeastSquares,
    nearest_increasing,
    nearest_nonnegative,
    nonnegative_cells,
)
from farthing.inference.isotonic import _pooled, _pooled_at_once

Floats = NDArray[np.float64]
pairs = st.lists(st.tuples(st.floats(0, 1e6), st.floats(-1e3, 1e3), st.floats(0.1, 50)), min_size=1, max_size=30)


def apart(a: Floats, b: Floats, variances: Floats) -> float:
    return float(np.sqrt(np.sum((a - b) ** 2 / variances)))


@pytest.mark.slow
@given(pairs)
def test_nonnegative_never_moves_away_from_the_truth(cells: list[tuple[float, float, float]]) -> None:
    truth, noise, variances = (np.array(column) for column in zip(*cells, strict=True))
    measured = truth + noise
    for total in (None, float(truth.sum())):
        found = nearest_nonnegative(measured, total, variances)
        before = apart(measured, truth, variances)
        assert np.all(found >= 0)
        assert apart(found, truth, variances) <= before + 1e-9 * (1 + before + truth.max())
        if total is not None:
            assert found.sum() == pytest.approx(total, abs=1e-6)


@pytest.mark.slow
@given(pairs)
def test_increasing_never_moves_away_from_the_truth(cells: list[tuple[float, float, float]]) -> None:
    steps, noise, variances = (np.array(column) for column in zip(*cells, strict=True))
    truth = np.cumsum(steps)
    measured = truth + noise
    for least, most in ((-np.inf, np.inf), (0.0, float(truth[-1]))):
        found = nearest_increasing(measured, variances, least, most)
        before = apart(measured, truth, variances)
        assert np.all(np.diff(found) >= 0)
        assert found[0] >= least
        assert found[-1] <= most
        assert apart(found, truth, variances) <= before + 1e-9 * (1 + before + truth[-1])


def generic(raw: Floats, variances: Floats, constraint: LinearConstraint, bounds: list[tuple[float, float]]) -> Floats:
    """A general solver, for a few numbers."""
    found = minimize(
        lambda x: np.sum((x - raw) ** 2 / variances),
        np.clip(np.sort(raw), *np.array(bounds).T),
        jac=lambda x: 2 * (x - raw) / variances,
        bounds=bounds,
        constraints=[constraint],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return np.asarray(found.x)


@pytest.mark.parametrize("seed", range(8))
def test_projections_agree_with_a_general_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    raw, variances = rng.normal(1, 3, 6), rng.uniform(0.5, 4, 6)
    bounds = [(0.0, np.inf)] * 6
    total = LinearConstraint(np.ones((1, 6)), 7.0, 7.0)
    assert nearest_nonnegative(raw, 7.0, variances) == pytest.approx(generic(raw, variances, total, bounds), abs=1e-4)
    order = LinearConstraint(np.eye(6)[1:] - np.eye(6)[:-1], 0, np.inf)
    bounds = [(0.0, 2.0)] * 6
    assert nearest_increasing(raw, variances, 0, 2) == pytest.approx(generic(raw, variances, order, bounds), abs=1e-4)
    assert nearest_increasing(raw, variances) == pytest.approx(
        isotonic_regression(raw, weights=1 / variances).x, abs=1e-12
    )


@pytest.mark.parametrize("seed", range(6))
def test_nonnegative_cells_satisfy_the_conditions_of_an_optimum(seed: int) -> None:
    """No gradient pulls a positive cell, none pulls a zero cell up: necessary and enough in a convex problem."""
    rng = np.random.default_rng(seed)
    truth = rng.poisson(1.5, 24).astype(float)
    members = np.zeros(24, int), np.arange(24) % 4, np.arange(24)
    plan = LeastSquares(members, (4.0, 2.0, 9.0))
    exact = [np.bincount(places, truth) for places in members]
    measured = [values + rng.normal(0, v**0.5, len(values)) for values, v in zip(exact, plan.variances, strict=True)]
    found = nonnegative_cells(plan, measured)
    rows, weights = plan._design
    gradient = rows.T @ (weights * (rows @ found - np.concatenate(measured)))
    assert np.all(found >= 0)
    assert np.all(np.abs(gradient[found > 1e-9]) < 1e-6)
    assert np.all(gradient > -1e-6)
    metric = (rows.T * weights) @ rows
    plain = plan.estimate(measured)
    assert (found - truth) @ metric @ (found - truth) <= (plain - truth) @ metric @ (plain - truth) + 1e-9


def test_what_is_in_the_set_stays_where_it_is() -> None:
    assert nearest_nonnegative([1.0, 2.0, 0.0], 3.0).tolist() == [1, 2, 0]
    assert nearest_increasing([0.0, 0.0, 2.0], most=2.0).tolist() == [0, 0, 2]
    assert nearest_nonnegative([-1.0, -5.0], 0.0).tolist() == [0, 0]
    assert nearest_nonnegative([-1.0, -5.0], 4.0).sum() == pytest.approx(4.0)
    assert nearest_nonnegative([], 0.0).tolist() == nearest_increasing([]).tolist() == []


@pytest.mark.slow
def test_a_million_numbers_are_no_trouble() -> None:
    values = np.random.default_rng(0).normal(0, 1, 2**20)
    assert nearest_nonnegative(values, 1000.0).sum() == pytest.approx(1000)
    assert np.all(np.diff(nearest_increasing(values)) >= 0)


def test_long_sequences_are_pooled_like_short_ones() -> None:
    draw = np.random.default_rng(1)
    values, weights = np.cumsum(draw.normal(0.1, 5, 20_000)), draw.uniform(0.1, 9, 20_000)
    assert _pooled_at_once(values, weights) == pytest.approx(_pooled(values, weights), abs=1e-9)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_refused(bad: float) -> None:
    plan = LeastSquares((np.arange(1),), (1.0,))
    for call in (
        lambda: nearest_nonnegative([bad]),
        lambda: nearest_nonnegative([1.0], variances=bad),
        lambda: nearest_nonnegative([1.0], total=bad),
        lambda: nearest_increasing([bad]),
        lambda: nearest_increasing([1.0], variances=0.0),
        lambda: nearest_increasing([1.0], least=2.0, most=1.0),
        lambda: nonnegative_cells(plan, [[bad]]),
        lambda: nonnegative_cells(plan, [[1.0, 2.0]]),
    ):
        with pytest.raises(InvalidValue):
            call()

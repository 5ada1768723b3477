"""Projections onto convex sets, in the norm of the measurements: right at small sizes, never further from the truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import nnls

from farthing.errors import InvalidValue
from farthing.inference import (
    nearest_in_all,
    nearest_increasing,
    nearest_nonnegative,
    nonnegative_in_norm,
)
from farthing.inference.isotonic import nearest_increasing_in_norm

Floats = NDArray[np.float64]
seeds = st.integers(0, 2**32)


def problem(seed: int) -> tuple[Floats, Floats, Floats]:
    """A design, true cells of which many are zero, and noisy measurements."""
    draw = np.random.default_rng(seed)
    cells = int(draw.integers(1, 14))
    design = np.vstack([np.eye(cells), draw.integers(0, 2, (int(draw.integers(0, 8)), cells))])
    design *= 10.0 ** draw.uniform(-1, 1, (len(design), 1))
    truth = draw.poisson(1.0, cells) * draw.choice([0.0, 1.0, 20.0], cells)
    return design, truth, design @ truth + draw.normal(0, 2, len(design))


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_nonnegative_in_a_norm_is_the_dense_solution_and_never_further_away(seed: int) -> None:
    design, truth, measured = problem(seed)
    metric = design.T @ design
    plain = np.linalg.lstsq(design, measured, rcond=None)[0]
    found = nonnegative_in_norm(plain, lambda x: metric @ x, np.diag(metric), tolerance=1e-14)
    twin, _ = nnls(design, measured, maxiter=2_000)
    assert np.all(found >= 0)
    assert found == pytest.approx(twin, abs=1e-9 * (1 + np.abs(twin).max()))
    after, before = ((x - truth) @ metric @ (x - truth) for x in (found, plain))
    assert after <= before + 1e-9 * (1 + before)


def test_an_estimate_without_negative_cells_stays_where_it_is() -> None:
    assert nonnegative_in_norm([1.0, 0.0, 2.0], lambda x: x).tolist() == [1.0, 0.0, 2.0]
    assert nonnegative_in_norm([], lambda x: x).tolist() == []
    assert nonnegative_in_norm([-1.0, -2.0], lambda x: x).tolist() == [0.0, 0.0]


@pytest.mark.slow
def test_thousands_of_cells_meet_the_conditions_from_any_start() -> None:
    draw = np.random.default_rng(5)
    cells = 4_000
    blocks = draw.permutation(cells) // 40

    def precision(x: Floats) -> Floats:
        return x + 3.0 * np.bincount(blocks, x)[blocks] + np.sum(x)

    estimate = draw.poisson(0.3, cells) + draw.normal(0, 1, cells)
    for start in (None, np.zeros(cells)):
        found = nonnegative_in_norm(estimate, precision, start=start)
        gradient = precision(found - estimate)
        assert np.all(found >= 0)
        assert np.abs(np.minimum(found, gradient)).max() < 1e-6
        assert abs(found @ gradient) < 1e-3


def subspace(draw: np.random.Generator, inside: Floats) -> Callable[[Floats], Floats]:
    others = draw.normal(0, 1, (len(inside), len(inside) // 2))
    basis = np.linalg.qr(np.column_stack([inside, others]))[0]
    return lambda x: basis @ (basis.T @ x)


def hyperplane(total: float) -> Callable[[Floats], Floats]:
    return lambda x: x + (total - x.sum()) / len(x)


CONVEX = [
    "orthant",
    "simplex",
    "cone",
    "subspace",
    "orthant and cone",
    "simplex and cone",
    "subspace and orthant",
]


@settings(max_examples=12, deadline=None)
@given(seeds)
@pytest.mark.parametrize("name", CONVEX)
def test_no_projection_moves_away_from_a_truth_in_its_set(name: str, seed: int) -> None:
    draw = np.random.default_rng(seed)
    size = int(draw.integers(2, 9))
    truth = draw.poisson(2.0, size) + 0.5
    onto = subspace(draw, truth)
    if "cone" in name:
        truth = np.sort(truth)
    sets: dict[str, Callable[[Floats], Floats]] = {
        "orthant": nearest_nonnegative,
        "simplex": lambda x: nearest_nonnegative(x, total=float(truth.sum())),
        "cone": nearest_increasing,
        "subspace": onto,
    }
    asked = truth + draw.normal(0, 3, size)
    found = nearest_in_all(asked, [sets[part] for part in name.split(" and ")])
    before, after = np.linalg.norm(asked - truth), np.linalg.norm(found - truth)
    assert after <= before + 1e-9 * (1 + before)
    # The nearest point of a convex set: from there, no point of the set lies towards what was asked for.
    assert (asked - found) @ (truth - found) <= 1e-6 * (1 + before**2)
    if "simplex" not in name:  # cones: towards zero and away from it are both in the set
        assert abs((asked - found) @ found) <= 1e-6 * (1 + before**2)
    for part in name.split(" and "):  # it lies in every set, up to the tolerance of the rounds
        assert np.linalg.norm(sets[part](found) - found) <= 1e-6 * (1 + before)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_the_nearest_in_two_sets_is_the_nearest_known_in_one_step(seed: int) -> None:
    draw = np.random.default_rng(seed)
    asked, total = draw.normal(1, 3, int(draw.integers(1, 9))), float(draw.uniform(0.5, 9))
    found = nearest_in_all(asked, [hyperplane(total), nearest_nonnegative])
    assert found == pytest.approx(nearest_nonnegative(asked, total), abs=1e-9)
    assert nearest_in_all(asked, [nearest_increasing, lambda x: np.clip(x, 0, 2)]) == pytest.approx(
        nearest_increasing(asked, least=0.0, most=2.0), abs=1e-9
    )


def test_sets_without_a_common_point_and_bad_numbers_are_refused() -> None:
    with pytest.raises(InvalidValue, match="point in common"):
        nearest_in_all([1.0, 2.0], [hyperplane(-5.0), nearest_nonnegative], most_rounds=200)
    for call in (
        lambda: nearest_in_all([np.nan], [nearest_nonnegative]),
        lambda: nonnegative_in_norm([np.nan], lambda x: x),
        lambda: nonnegative_in_norm([1.0], lambda x: x, [0.0]),
        lambda: nonnegative_in_norm([1.0], lambda x: x, [1.0, 2.0]),
    ):
        with pytest.raises(InvalidValue):
            call()


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_increasing_in_a_norm_is_the_dense_solution_and_never_further_away(seed: int) -> None:
    """In differences of neighbours the same problem has no order but signs, which another solver knows."""
    draw = np.random.default_rng(seed)
    size = int(draw.integers(2, 12))
    differences = np.eye(size)[draw.integers(0, size, 15)] - np.eye(size)[draw.integers(0, size, 15)]
    differences[0] = np.eye(size)[-1] - np.eye(size)[0]
    metric = differences.T @ differences
    truth = np.cumsum(draw.poisson(0.7, size)).astype(float)
    asked = truth + draw.normal(0, 3, size)
    found = nearest_increasing_in_norm(asked, lambda x: metric @ x, np.diag(metric))
    assert np.all(np.diff(found) >= 0)
    steps = np.tri(size)[:, 1:]  # sums of the steps after the first number, which pulls nothing
    twin, _ = nnls(differences @ steps, differences @ asked, maxiter=2_000)
    least, reached = (np.linalg.norm(differences @ (x - asked)) for x in (steps @ twin, found))
    assert reached == pytest.approx(least, abs=1e-5 * (1 + least))
    before, after = (np.linalg.norm(differences @ (x - truth)) for x in (asked, found))
    assert after <= before + 1e-5 * (1 + before)


def test_increasing_sequences_stay_and_bad_weights_are_refused() -> None:
    assert nearest_increasing_in_norm([1.0, 2.0], lambda x: x, [1.0, 1.0]).tolist() == [1.0, 2.0]
    assert nearest_increasing_in_norm([2.0, 1.0], lambda x: x, [1.0, 1.0]) == pytest.approx([1.5, 1.5])
    for values, weights in (([np.nan], [1.0]), ([1.0], [0.0]), ([1.0], [np.nan]), ([1.0], [1.0, 1.0])):
        with pytest.raises(InvalidValue):
            nearest_increasing_in_norm(values, lambda x: x, weights)

"""consistent_marginals and nonnegative_marginals: the nearest tables, never further from the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import nnls

from farthing.errors import InvalidValue
from farthing.inference.consistent_marginals import (
    Tables,
    all_spread,
    all_sums,
    closure,
    consistent_marginals,
    nonnegative_marginals,
    rounded_marginals,
)
from farthing.inference.joint_cells import nearest_joint

Floats = NDArray[np.float64]
SIZES = (2, 3, 4)
SUBSETS = [(0, 1), (1, 2), (0, 2), (1,)]


def tables_of(cells: NDArray[Any], subsets: Sequence[tuple[int, ...]] = SUBSETS) -> Tables:
    axes = range(cells.ndim)
    return {own: cells.sum(axis=tuple(a for a in axes if a not in own)) for own in subsets}


def stacked(tables: Tables) -> Floats:
    return np.concatenate([tables[own].ravel() for own in sorted(tables)])


def noisy(truth: Tables, seed: int, scale: float) -> Tables:
    generator = np.random.default_rng(seed)
    return {own: table + generator.normal(size=table.shape) * scale for own, table in truth.items()}


def dense() -> Floats:
    units = np.eye(math.prod(SIZES)).reshape(-1, *SIZES)
    return np.array([stacked(tables_of(unit)) for unit in units]).T


def test_all_sums_are_plain_sums_and_all_spread_is_their_transpose() -> None:
    block = np.random.default_rng(1).integers(-9, 9, (2, 3, 4, 2))
    for subsets in ([(0, 1, 2, 3)], [()], [(1,), (3,)], closure([(0, 1), (1, 2, 3)]), [(0, 3), (2,), (1, 2)]):
        found = all_sums(block, subsets)
        assert list(found) == list(subsets)
        for subset, table in found.items():
            expected = block.sum(axis=tuple(axis for axis in range(4) if axis not in subset))
            assert np.array_equal(table, expected)
        weights = {own: np.arange(float(table.size)).reshape(table.shape) for own, table in found.items()}
        back = sum(float(np.sum(weights[own] * table)) for own, table in found.items())
        assert float(np.sum(all_spread(block.shape, weights) * block)) == pytest.approx(back)


def test_consistent_tables_are_the_dense_projection() -> None:
    start = noisy(tables_of(np.zeros(SIZES)), 3, 10.0)
    matrix = dense()
    expected = matrix @ np.linalg.lstsq(matrix, stacked(start), rcond=None)[0]
    assert stacked(consistent_marginals(start)) == pytest.approx(expected, abs=1e-9)
    again = consistent_marginals(consistent_marginals(start))
    assert stacked(again) == pytest.approx(expected, abs=1e-9)
    for table in consistent_marginals(start, total=100.0).values():
        assert table.sum() == pytest.approx(100.0)


def test_nonnegative_tables_are_the_nearest_ones() -> None:
    """Two tables that share one column and agree always come from cells >= 0, which a general solver finds."""
    subsets = [(0, 1), (1, 2)]
    truth = tables_of(np.random.default_rng(2).integers(0, 3, SIZES).astype(float), subsets)
    start = noisy(truth, 4, 6.0)
    units = np.eye(math.prod(SIZES)).reshape(-1, *SIZES)
    matrix = np.array([stacked(tables_of(unit, subsets)) for unit in units]).T
    cells, distance = nnls(matrix, stacked(start))
    found = nonnegative_marginals(start)
    assert np.linalg.norm(stacked(found) - stacked(start)) <= distance * (1 + 1e-3)
    assert stacked(found) == pytest.approx(matrix @ cells, abs=2e-3 * distance)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from([0.1, 3.0, 40.0]), st.booleans())
def test_projections_never_move_away_from_the_truth(seed: int, scale: float, known_total: bool) -> None:
    cells = np.random.default_rng(seed).poisson(2.0, SIZES) * 1.0
    truth = tables_of(cells)
    total = float(cells.sum()) if known_total else None
    start = noisy(truth, seed + 1, scale)
    agreed = consistent_marginals(start, total)
    found = nonnegative_marginals(start, total)
    errors = [np.linalg.norm(stacked(tables) - stacked(truth)) for tables in (start, agreed, found)]
    assert errors[1] <= errors[0] * (1 + 1e-12)
    assert errors[2] <= errors[1] * (1 + 1e-6)
    assert min(table.min() for table in found.values()) >= 0
    assert stacked(consistent_marginals(found)) == pytest.approx(stacked(found), abs=1e-9)
    if total is not None:
        assert found[(1,)].sum() == pytest.approx(total)


def test_tables_below_zero_throughout_become_zero() -> None:
    found = nonnegative_marginals({(0,): [-3.0, -1.0], (0, 1): [[-1.0, -2.0], [-5.0, 0.0]]})
    assert all(np.array_equal(table, np.zeros_like(table)) for table in found.values())


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from([0.3, 5.0, 1000.0]))
def test_whole_tables_agree_and_stay_near(seed: int, scale: float) -> None:
    cells = np.random.default_rng(seed).exponential(scale, SIZES)
    real = tables_of(cells, [(0, 1), (1, 2), (0, 2)])
    found = rounded_marginals(real)
    assert all(table.dtype == np.int64 and table.min() >= 0 for table in found.values())
    assert np.array_equal(found[(0, 1)].sum(axis=0), found[(1, 2)].sum(axis=1))
    assert np.array_equal(found[(0, 1)].sum(axis=1), found[(0, 2)].sum(axis=1))
    assert np.array_equal(found[(1, 2)].sum(axis=0), found[(0, 2)].sum(axis=0))
    assert abs(int(found[(0, 1)].sum()) - cells.sum()) <= 0.5 + 1e-6
    assert max(float(np.abs(found[own] - real[own]).max()) for own in real) < 3


def test_whole_tables_are_left_as_they_are() -> None:
    cells = np.random.default_rng(8).integers(0, 50, SIZES) * 1.0
    blurred = {own: table + 1e-10 * (-1) ** place for place, (own, table) in enumerate(tables_of(cells).items())}
    found = rounded_marginals(blurred)
    assert all(np.array_equal(found[own], table) for own, table in tables_of(cells).items())


def test_tables_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidValue, match="must agree with the others"):
        rounded_marginals({(0,): [1.0, 2.0], (0, 1): [[2.0, 0.0], [1.0, 1.0]]})
    with pytest.raises(InvalidValue, match="must not be negative"):
        rounded_marginals({(0,): [1.0, -2.0]})
    with pytest.raises(InvalidValue, match="increasing tuples"):
        consistent_marginals({(1, 0): [[1.0]]})
    with pytest.raises(InvalidValue, match="must be finite"):
        consistent_marginals({(0,): [1.0, math.nan]})
    with pytest.raises(InvalidValue, match="same number of values"):
        consistent_marginals({(0,): [1.0, 2.0], (0, 1): [[1.0], [2.0], [3.0]]})
    assert closure([]) == ((),)


def test_joint_cells_have_the_nearest_marginals() -> None:
    """A general solver with a heavy row for the total finds the same marginals."""
    truth = np.random.default_rng(2).integers(0, 3, SIZES).astype(float)
    start = noisy(tables_of(truth), 4, 6.0)
    total = float(truth.sum())
    heavy = 1e4
    matrix = np.vstack([dense(), heavy * np.ones(math.prod(SIZES))])
    cells, _ = nnls(matrix, np.append(stacked(start), heavy * total))
    found = nearest_joint(SIZES, start, total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total)
    ours, best = (np.linalg.norm(dense() @ x.ravel() - stacked(start)) for x in (found, cells))
    assert ours <= best * (1 + 1e-4)
    error = np.linalg.norm(stacked(tables_of(found)) - stacked(tables_of(truth)))
    assert error <= np.linalg.norm(stacked(start) - stacked(tables_of(truth)))


def test_joint_cells_of_true_marginals_have_them() -> None:
    truth = np.random.default_rng(3).integers(0, 30, SIZES).astype(float)
    found = nearest_joint(SIZES, tables_of(truth), float(truth.sum()))
    assert stacked(tables_of(found)) == pytest.approx(stacked(tables_of(truth)), rel=1e-2, abs=0.5)
    assert np.array_equal(nearest_joint((2, 3), {(0,): [-1.0, -2.0]}, 0.0), np.zeros((2, 3)))

"""RegularTree against dense solvers: least squares, none below zero, with and without a known total."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import nnls

from farthing.errors import InvalidValue
from farthing.inference import RegularTree, tree_least_squares

Floats = NDArray[np.float64]


@st.composite
def trees(draw: st.DrawFn) -> RegularTree:
    branchings = draw(st.lists(st.integers(2, 4), max_size=3))
    sizes = [1]
    for branching in branchings:
        sizes.insert(0, sizes[0] * branching)
    cells = draw(st.integers(1, 30))
    spreads = st.sampled_from([0.1, 1.0, 4.0, 50.0, np.inf])
    variances = [*(draw(spreads) for _ in branchings), draw(st.sampled_from([0.5, 2.0, 9.0]))]
    return RegularTree(cells, tuple(sizes), tuple(variances))


def dense(tree: RegularTree) -> tuple[Floats, Floats]:
    """The design over the padded cells, and the weights of its rows."""
    places = np.arange(tree.padded)
    rows = [places // size == np.arange(tree.padded // size)[:, None] for size in tree.sizes]
    weights = np.repeat(1.0 / np.array(tree.variances), [len(part) for part in rows])
    return np.vstack(rows).astype(float), weights


def measured_of(tree: RegularTree, seed: int, low: float = 0.5) -> tuple[list[Floats], Floats]:
    """True cells, few of them far from zero, and noisy sums of all blocks."""
    draw = np.random.default_rng(seed)
    truth = np.zeros(tree.padded)
    truth[: tree.cells] = draw.poisson(low, tree.cells) * draw.choice([0, 1, 10], tree.cells)
    numbers = [
        truth.reshape(-1, size).sum(axis=1) + draw.normal(0, min(variance, 1e3) ** 0.5, tree.padded // size)
        for size, variance in zip(tree.sizes, tree.variances, strict=True)
    ]
    return numbers, truth[: tree.cells]


@settings(max_examples=30, deadline=None)
@given(trees(), st.integers(0, 2**32))
def test_least_squares_is_the_dense_solution(tree: RegularTree, seed: int) -> None:
    measured, _ = measured_of(tree, seed)
    design, weights = dense(tree)
    root = np.sqrt(weights)
    twin = np.linalg.lstsq(design * root[:, None], np.concatenate(measured) * root, rcond=None)[0]
    assert tree.least_squares(measured) == pytest.approx(twin[: tree.cells], abs=1e-9)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(trees(), st.integers(0, 2**32))
def test_nonnegative_is_the_dense_solution_and_never_further_away(tree: RegularTree, seed: int) -> None:
    measured, truth = measured_of(tree, seed)
    design, weights = dense(tree)
    design, root = design[:, : tree.cells], np.sqrt(weights)
    twin, _ = nnls(design * root[:, None], np.concatenate(measured) * root, maxiter=3_000)
    found = tree.nonnegative(measured)
    assert np.all(found >= 0)
    assert found == pytest.approx(twin, abs=1e-9)
    metric = (design.T * weights) @ design
    plain = np.linalg.solve(metric, design.T @ (weights * np.concatenate(measured)))
    after, before = ((x - truth) @ metric @ (x - truth) for x in (found, plain))
    assert after <= before + 1e-9 * (1 + before)
    assert tree.nearest_nonnegative(found) == pytest.approx(found, abs=1e-9)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(trees(), st.integers(0, 2**32), st.sampled_from([0.0, 1e-3, 1.0, 7.0, 1e4]))
def test_with_a_total_one_slope_holds_all_positive_cells(tree: RegularTree, seed: int, total: float) -> None:
    """The gradient is the same for all positive cells and nowhere less: necessary and enough in a convex problem."""
    measured, _ = measured_of(tree, seed)
    design, weights = dense(tree)
    design = design[:, : tree.cells]
    found = tree.nonnegative(measured, total)
    assert np.all(found >= 0) and found.sum() == pytest.approx(total, rel=1e-12)
    gradient = design.T @ (weights * (design @ found - np.concatenate(measured)))
    scale = 1e-8 * (1 + np.abs(gradient).max())
    if total > 0:
        lowest = gradient.min()
        assert np.all(gradient[found > 1e-9 * total] <= lowest + scale)


def test_a_tree_of_blocks_is_a_tree_of_nodes() -> None:
    """The same numbers through the general two passes."""
    tree = RegularTree(8, (8, 4, 2, 1), (3.0, np.inf, 1.0, 2.0))
    measured, _ = measured_of(tree, 1)
    parents = np.array([-1] + [(node - 1) // 2 for node in range(1, 15)])
    variances = np.repeat(tree.variances, [1, 2, 4, 8])
    values, _ = tree_least_squares(parents, np.concatenate(measured), variances)
    assert tree.least_squares(measured) == pytest.approx(values[7:], abs=1e-12)


def test_precisions_give_the_tree_that_has_them() -> None:
    tree = RegularTree.of_precisions(12, (6, 3, 1), (10.0, 4.0, 1.0))
    assert tree is not None
    design, weights = dense(tree)
    metric = (design.T * weights) @ design
    assert np.linalg.eigvalsh(metric) == pytest.approx([1.0] * 8 + [4.0] * 2 + [10.0] * 2)
    assert RegularTree.of_precisions(12, (6, 3, 1), (4.0, 10.0, 1.0)) is None
    assert RegularTree.of_precisions(12, (6, 3, 1), (4.0, 1.0, 0.0)) is None
    assert RegularTree.of_precisions(4, (4, 1), (3.0, 3.0)) == RegularTree(4, (4, 1), (np.inf, 1 / 3))


def test_large_trees_meet_the_conditions_of_an_optimum() -> None:
    sizes = tuple(16**level for level in (4, 3, 2, 1, 0))
    tree = RegularTree(100_000, sizes, (2.0,) * 5)
    measured, _ = measured_of(tree, 3, low=0.2)
    found = tree.nonnegative(measured)
    assert tree.least_squares(measured).min() < -1
    cells = np.concatenate([found, np.zeros(tree.padded - tree.cells)])
    gradient = np.zeros(tree.padded)
    for size, own in zip(sizes, measured, strict=True):
        gradient += np.repeat(cells.reshape(-1, size).sum(axis=1) - own, size) / 2.0
    assert np.abs(np.minimum(found, gradient[: tree.cells])).max() < 1e-8


def test_degenerate_trees() -> None:
    one = RegularTree(1, (1,), (2.0,))
    assert one.least_squares([[3.0]]).tolist() == one.nonnegative([[3.0]]).tolist() == [3.0]
    assert one.nonnegative([[-3.0]]).tolist() == [0.0] and one.nonnegative([[-3.0]], 5.0).tolist() == [5.0]
    deep = RegularTree(4, (4, 2, 1), (1.0, 1.0, 1.0))
    assert deep.nonnegative([[-9.0], [-9.0, -9.0], [-9.0] * 4]).tolist() == [0.0] * 4
    assert deep.nonnegative([[4.0], [2.0, 2.0], [1.0] * 4]) == pytest.approx([1.0] * 4, rel=1e-14)
    unmeasured = RegularTree(2, (2, 1), (np.inf, 1.0))
    assert unmeasured.least_squares([[np.nan], [1.0, -2.0]]).tolist() == [1.0, -2.0]


@pytest.mark.parametrize(
    ("cells", "sizes", "variances"),
    [(4, (4, 2), (1.0, 1.0)), (4, (4, 3, 1), (1.0,) * 3), (4, (), ()), (0, (1,), (1.0,)), (4, (2, 1), (1.0,)),
     (4, (2, 1), (1.0, 0.0)), (4, (2, 1), (1.0, np.inf)), (4, (2, 1), (np.nan, 1.0))],
)  # fmt: skip
def test_what_is_no_tree_is_refused(cells: int, sizes: tuple[int, ...], variances: tuple[float, ...]) -> None:
    with pytest.raises(InvalidValue):
        RegularTree(cells, sizes, variances)


def test_measurements_that_do_not_fit_are_refused() -> None:
    tree = RegularTree(3, (2, 1), (1.0, 1.0))
    good = [[1.0, 2.0], [1.0, 2.0, 3.0]]  # cells beyond the last may be left out
    assert tree.least_squares(good).shape == (3,)
    for bad, call in itertools.product(
        ([[1.0, 2.0]], [[1.0], [1.0, 2.0, 3.0]], [[1.0, np.nan], [1.0, 2.0, 3.0]]),
        (tree.least_squares, tree.nonnegative),
    ):
        with pytest.raises(InvalidValue):
            call(bad)
    for total in (-1.0, np.nan, np.inf):
        with pytest.raises(InvalidValue):
            tree.nonnegative(good, total)
    with pytest.raises(InvalidValue):
        tree.nearest_nonnegative([1.0])

"""LeastSquares and tree_least_squares against a dense solver, and the best among unbiased estimates."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.inference import LeastSquares, tree_least_squares
from farthing.inference.least_squares import sums_matrix

Floats = NDArray[np.float64]


def random_plan(rng: np.random.Generator, cells: int) -> LeastSquares:
    members, variances = [np.arange(cells)], [float(rng.uniform(0.5, 9))]
    for _ in range(rng.integers(1, 4)):
        parts = int(rng.integers(1, cells + 1))
        places = np.concatenate([np.arange(parts), rng.integers(-1, parts, cells - parts)])
        members.append(rng.permutation(places))
        variances.append(rng.uniform(0.5, 9, parts) if rng.random() < 0.5 else float(rng.uniform(0.5, 9)))  # type: ignore[arg-type]
    return LeastSquares(tuple(members), tuple(variances))


def dense(plan: LeastSquares, numbers: Floats) -> Floats:
    """Another route: whitened rows to numpy's solver."""
    rows, weights = plan._design
    return np.asarray(np.linalg.lstsq(rows * np.sqrt(weights)[:, None], numbers * np.sqrt(weights), rcond=None)[0])


def test_estimates_agree_with_a_dense_solver() -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        plan = random_plan(rng, int(rng.integers(2, 40)))
        numbers = rng.normal(0, 100, plan.gain.shape[1])
        split = np.split(numbers, np.cumsum([len(sums_matrix(m)) for m in plan.members])[:-1])
        assert plan.estimate(split) == pytest.approx(dense(plan, numbers), abs=1e-9 * 100)


def test_no_unbiased_combination_has_less_variance() -> None:
    """Any other unbiased weights are G plus rows that measure nothing; they only add variance."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        plan = random_plan(rng, 8)
        rows, weights = plan._design
        assert plan.gain @ rows == pytest.approx(np.eye(8), abs=1e-9)
        nothing = np.eye(len(rows)) - rows @ np.linalg.pinv(rows)
        other = plan.gain + rng.normal(0, 1, plan.gain.shape) @ nothing
        assert other @ rows == pytest.approx(np.eye(8), abs=1e-8)
        best, worse = ((g**2 / weights).sum(axis=1) for g in (plan.gain, other))
        assert np.all(worse >= best - 1e-12)
        assert best == pytest.approx(np.diag(plan.covariance), rel=1e-9)


@pytest.mark.slow
def test_variances_and_coefficients_of_new_sums_are_those_of_simulated_errors() -> None:
    rng = np.random.default_rng(3)
    plan, asked = random_plan(rng, 12), np.array([0, 0, 1, 1, 1, -1, 2, 2, 2, 2, 0, 1])
    _, weights = plan._design
    noise = rng.normal(0, 1, (200_000, len(weights))) / np.sqrt(weights)
    errors = noise @ plan.coefficients_of(asked).T
    assert errors.var(axis=0) == pytest.approx(plan.variances_of(asked), rel=0.02)


def test_more_measurements_never_mean_more_variance() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        plan = random_plan(rng, 10)
        fewer = LeastSquares(plan.members[:-1], plan.variances[:-1])
        assert np.all(np.diag(plan.covariance) <= np.diag(fewer.covariance) + 1e-12)


def random_tree(rng: np.random.Generator, nodes: int, roots: int = 1) -> NDArray[np.int64]:
    return np.array([-1 if node < roots else int(rng.integers(0, node)) for node in range(nodes)])


def test_the_two_passes_on_a_tree_are_the_dense_solution() -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        nodes = int(rng.integers(1, 40))
        parents = random_tree(rng, nodes, roots=int(rng.integers(1, min(nodes, 3) + 1)))
        leaves = np.setdiff1d(np.arange(nodes), parents)
        members = np.zeros((nodes, len(leaves)))
        for column, leaf in enumerate(leaves):
            node = int(leaf)
            while node >= 0:
                members[node, column] = 1
                node = int(parents[node])
        variances, measured = rng.uniform(0.5, 9, nodes), rng.normal(0, 100, nodes)
        unmeasured = (rng.random(nodes) < 0.3) & ~np.isin(np.arange(nodes), leaves)
        variances[unmeasured] = np.inf
        root = 1 / np.sqrt(variances)
        cells = np.linalg.lstsq(members * root[:, None], np.where(unmeasured, 0, measured) * root, rcond=None)[0]
        covariance = np.linalg.inv((members.T * root**2) @ members)
        found, spread = tree_least_squares(parents, np.where(unmeasured, np.nan, measured), variances)
        assert found == pytest.approx(members @ cells, abs=1e-8)
        assert spread == pytest.approx(np.diag(members @ covariance @ members.T), rel=1e-9)


def test_a_tree_of_one_leaf_and_an_empty_tree_are_left_alone() -> None:
    assert [part.tolist() for part in tree_least_squares([-1], [3.0], [2.0])] == [[3.0], [2.0]]
    assert [part.tolist() for part in tree_least_squares([], [], [])] == [[], []]


def test_a_large_tree_is_quick_and_adds_up() -> None:
    leaves = 1 << 14
    parents = np.array([-1] + [(node - 1) // 2 for node in range(1, 2 * leaves - 1)])
    rng = np.random.default_rng(6)
    values, _ = tree_least_squares(parents, rng.normal(0, 10, len(parents)), np.full(len(parents), 2.0))
    sums = np.zeros_like(values)
    np.add.at(sums, parents[1:], values[1:])
    assert sums[: leaves - 1] == pytest.approx(values[: leaves - 1], abs=1e-8)


def test_what_does_not_fit_is_refused() -> None:
    pair = np.arange(2)
    for members, variances in (
        ((), ()),
        ((pair,), (1.0, 2.0)),
        ((pair, np.arange(3)), (1.0, 1.0)),
        ((pair,), (0.0,)),
        ((pair,), (float("nan"),)),
        ((np.arange(5000),), (1.0,)),
    ):
        with pytest.raises(InvalidValue):
            LeastSquares(members, variances)
    with pytest.raises(InvalidValue, match="2 numbers"):
        LeastSquares((pair,), (1.0,)).estimate([[1.0, 2.0, 3.0]])
    for parents, measured, variances in (
        ([-1, 5], [1, 2], [1, 1]),
        ([-1], [1, 2], [1, 1]),
        ([-1, 0], [1, 2], [1, -1]),
        ([-1, 0], [1, 2], [1, np.inf]),
        ([-2], [1], [1]),
    ):
        with pytest.raises(InvalidValue):
            tree_least_squares(parents, measured, variances)

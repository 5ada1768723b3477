"""The matrix mechanism: strategies given by whole matrices, and products of them, against dense algebra."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from farthing.errors import InvalidValue
from farthing.matrix.strategies import MatrixStrategy, Strategy
from farthing.matrix.strategies.kronecker import KroneckerStrategy, axis_workload, flattened
from farthing.matrix.strategies.optimisation.p_identity_error import Windows
from farthing.matrix.strategies.optimisation.p_identity_strategy import CellsAndSums
from farthing.matrix.strategies.strategy_registry import find
from farthing.matrix.strategies.tree_strategies import TreeStrategy
from farthing.matrix.workloads import (
    Workload,
    all_ranges,
    identity,
    marginals,
    prefix,
    product,
    total,
    union,
)

MANY_AXES: list[Workload] = [
    product(prefix(6), identity(4)),
    product(all_ranges(5), total(4)),
    union(product(prefix(6), total(4)), product(total(6), identity(4)), weights=[1, 2]),
    marginals((4, 3, 2), way=2),
    product(marginals((3, 2), way=1), prefix(4)),
]


def dense(strategy: Strategy) -> np.ndarray:
    return np.stack([strategy.exact(unit)[0] for unit in np.eye(strategy.cells, dtype=np.int64)], axis=1)


def check_against_dense(strategy: Strategy, workload: Workload) -> None:
    """Estimates, variances and sensitivities are those of the matrix that is really measured."""
    matrix = dense(strategy)
    level = strategy.levels[0]
    assert level.size == len(matrix)
    assert (level.l1, level.l2_squared) == (np.abs(matrix).sum(0).max(), (matrix**2).sum(0).max())
    assert strategy.reach >= np.abs(matrix).sum(1).max()
    random = np.random.default_rng(7)
    covariance = np.linalg.pinv(matrix.T @ matrix.astype(float)) * 3.0
    estimator = strategy.fit([3.0])
    asked = workload.matrix()
    assert np.allclose(estimator.query_variances(workload), np.diag(asked @ covariance @ asked.T))
    assert estimator.total_variance(workload) == pytest.approx(np.trace(covariance @ workload.gram()))
    values = random.normal(size=len(matrix))
    least_squares = np.linalg.lstsq(matrix.astype(float), values, rcond=None)[0]
    assert np.allclose(asked @ estimator.estimate([values]), asked @ least_squares, atol=1e-9)
    query = asked[-1]
    assert estimator.variance(query) == pytest.approx(query @ covariance @ query)
    coefficients = estimator.coefficients(query)
    assert coefficients is not None
    assert coefficients[0] @ values == pytest.approx(query @ least_squares)
    assert np.allclose(estimator.covariance(), covariance)


def test_a_matrix_equals_dense_least_squares() -> None:
    random = np.random.default_rng(2)
    for rows, cells in ((6, 6), (9, 6), (20, 11)):
        strategy = MatrixStrategy("matrix", random.integers(-4, 5, (rows, cells)))
        for workload in (prefix(cells), all_ranges(cells)):
            check_against_dense(strategy, workload)


@pytest.mark.parametrize("workload", MANY_AXES, ids=range(len(MANY_AXES)))
@pytest.mark.parametrize("name", ["tree", "wavelet", "hierarchical-3"])
def test_a_product_equals_dense_least_squares(name: str, workload: Workload) -> None:
    check_against_dense(find(name, workload, "l1"), workload)
    check_against_dense(find(name, workload, "l2"), workload)


def test_weights_on_a_grid_lose_next_to_nothing() -> None:
    weights = np.vstack([np.eye(8), np.tri(8) * 0.3])
    workload = prefix(8)
    exact = np.trace(np.linalg.inv(weights.T @ weights) @ workload.gram()) * np.abs(weights).sum(0).max() ** 2
    rounded = MatrixStrategy.on_grid("grid", weights, bits=20)
    assert rounded.unit_error(workload, "l1") / 2 == pytest.approx(exact, rel=1e-5)


def test_large_weights_keep_exact_sensitivities() -> None:
    large = np.full((3, 2), 2**31, dtype=np.int64)
    large[0, 1] -= 1
    level = MatrixStrategy("large", large).levels[0]
    assert level.l1 == 3 * 2**31 and level.l2_squared == 3 * 2**62
    assert level.l2**2 >= level.l2_squared
    with pytest.raises(InvalidValue, match="2\\^31"):
        MatrixStrategy("larger", large + 1)


def test_what_a_matrix_does_not_measure_is_refused_or_infinitely_wrong() -> None:
    sums = MatrixStrategy("sums", np.array([[1, 1, 0], [0, 0, 1]]))
    estimator = sums.fit([1.0])
    assert estimator.variance(np.array([1.0, 1.0, 0.0])) == pytest.approx(1.0)
    assert estimator.variance(np.array([1.0, 0.0, 0.0])) == np.inf
    assert estimator.total_variance(total(3)) == pytest.approx(2.0)
    for ask in (estimator.total_variance, estimator.query_variances):
        with pytest.raises(InvalidValue, match="does not measure enough"):
            ask(prefix(3))
    both = KroneckerStrategy("both", (sums, MatrixStrategy("cells", np.eye(2, dtype=np.int64))))
    blind = both.fit([1.0])
    assert blind.variance(np.kron([1.0, 1.0, 0.0], [1.0, 0.0])) == pytest.approx(1.0)
    assert blind.variance(np.kron([1.0, 0.0, 0.0], [1.0, 0.0])) == np.inf
    with pytest.raises(InvalidValue, match="does not measure enough"):
        blind.total_variance(product(prefix(3), identity(2)))


def test_counts_beyond_doubles_are_added_up_exactly() -> None:
    factor = MatrixStrategy("sums", np.array([[1, 1], [1, -1]]))
    both = KroneckerStrategy("both", (factor, factor))
    cells = np.array([2**60, 1, 0, 1], dtype=np.int64)
    assert both.exact(cells)[0].tolist() == [2**60 + 2, 2**60 - 2, 2**60, 2**60]


def test_a_flattened_tree_has_the_error_of_the_tree() -> None:
    workload = all_ranges(12)
    tree = TreeStrategy("tree", 12, (4, 1))
    for norm in ("l1", "l2"):
        matrix = flattened(tree, workload, norm, bits=16)  # type: ignore[arg-type]
        assert matrix.unit_error(workload, norm) == pytest.approx(  # type: ignore[arg-type]
            tree.unit_error(workload, norm),  # type: ignore[arg-type]
            rel=1e-4,
        )


def test_axes_are_asked_what_the_workload_asks_of_them() -> None:
    workload = union(product(prefix(6), total(4)), product(total(6), identity(4)))
    assert axis_workload(workload, 0).queries == 7
    assert axis_workload(workload, 1).queries == 5


def test_a_matrix_pickles_without_what_was_computed() -> None:
    strategy = MatrixStrategy("matrix", np.eye(5, dtype=np.int64))
    _ = strategy.pseudo_inverse
    again = pickle.loads(pickle.dumps(strategy))
    assert again.levels == strategy.levels and "pseudo_inverse" not in vars(again)


@pytest.mark.parametrize("matrix", [np.eye(2), np.zeros((0, 3), dtype=int), np.ones(3, dtype=int)])
def test_what_is_no_table_of_whole_numbers_is_refused(matrix: np.ndarray) -> None:
    with pytest.raises(InvalidValue, match="table of whole numbers"):
        MatrixStrategy("wrong", matrix)


@pytest.mark.parametrize("entry", [-(2**63), 2**31 + 1, -(2**31) - 1])
def test_entries_whose_size_is_no_int64_are_refused(entry: int) -> None:
    """The absolute value of the least int64 is negative: its column would look as if it moved nothing."""
    with pytest.raises(InvalidValue, match="at most 2"):
        MatrixStrategy("wrong", np.array([[entry, 0], [0, 1]], dtype=np.int64))
    with pytest.raises(InvalidValue, match="weights"):
        windows = Windows(2, np.array([0]), np.array([2]))
        CellsAndSums("wrong", np.array([1, 1]), windows, np.array([entry, 1], dtype=np.int64))

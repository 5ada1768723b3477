"""Published strategies beside their papers' own noise, written out with dense algebra."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from farthing.errors import InvalidValue
from farthing.matrix import answer_workload, workloads
from farthing.matrix.strategies.published_strategies import (
    EqualShareTree,
    Privelet,
    equal_hierarchical,
    queries_themselves,
)
from farthing.matrix.strategies.strategy_noise import priced
from farthing.matrix.strategies.strategy_registry import find

CELLS = 8
EPSILON = 0.01  # the discrete noise is then as wide as the continuous one, but for parts in 10^5


def prefix_error(rows: np.ndarray, scales: np.ndarray) -> float:
    """The total variance of all prefixes by generalised least squares from Laplace noise of these scales."""
    precision = rows.T @ np.diag(1 / (2 * scales**2)) @ rows
    W = np.tril(np.ones((CELLS, CELLS)))
    return float(np.trace(W @ np.linalg.inv(precision) @ W.T))


def test_Privelet_is_the_mechanism_of_the_paper() -> None:
    """Haar coefficients of means with noise (1 + log2 n) / (epsilon W), as the paper writes it."""
    rows, weights = [np.full(CELLS, 1 / CELLS)], [CELLS]
    size = CELLS
    while size > 1:
        for start in range(0, CELLS, size):
            row = np.zeros(CELLS)
            row[start : start + size // 2] = 1 / size  # half of the difference of two means
            row[start + size // 2 : start + size] = -1 / size
            rows.append(row)
            weights.append(size)
        size //= 2
    scales = (1 + math.log2(CELLS)) / (EPSILON * np.array(weights))
    # Its generalised sensitivity is 1 + log2 n: what one row moves, each in units of its weight.
    moved = np.abs(np.array(rows)).T @ np.array(weights, dtype=float)
    assert np.allclose(moved, 1 + math.log2(CELLS))
    price = priced(Privelet(CELLS), workloads.prefix(CELLS), EPSILON)
    assert price.total_variance(workloads.prefix(CELLS)) == pytest.approx(
        prefix_error(np.array(rows), scales), rel=1e-3
    )


@pytest.mark.parametrize("branching", [2, 8])
def test_EqualShareTree_divides_epsilon_evenly(branching: int) -> None:
    tree = equal_hierarchical(CELLS, branching)
    assert isinstance(tree, EqualShareTree)
    rows = np.array([np.isin(np.arange(CELLS) // size, block) for size in tree.sizes for block in range(CELLS // size)])
    scales = np.full(len(rows), len(tree.sizes) / EPSILON)
    found = priced(tree, workloads.prefix(CELLS), EPSILON).total_variance(workloads.prefix(CELLS))
    assert found == pytest.approx(prefix_error(rows.astype(float), scales), rel=1e-3)
    best = priced(find(f"hierarchical-{branching}", workloads.prefix(CELLS), "l1"), workloads.prefix(CELLS), EPSILON)
    assert best.total_variance(workloads.prefix(CELLS)) <= found * (1 + 1e-9)


def test_queries_themselves_have_noise_for_all_of_them() -> None:
    workload = workloads.prefix(CELLS)
    strategy = queries_themselves(workload)
    assert strategy.levels[0].l1 == CELLS  # the first cell is in every prefix
    found = priced(strategy, workload, EPSILON).total_variance(workload)
    assert found == pytest.approx(CELLS * 2 * (CELLS / EPSILON) ** 2, rel=1e-3)
    with pytest.raises(InvalidValue, match="whole coefficients"):
        queries_themselves(_Halved())  # type: ignore[arg-type]


class _Halved:
    shape = (2,)

    def matrix(self) -> np.ndarray:
        return np.array([[0.5, 0.5]])


@pytest.mark.draws(false_alarm=0, miss=0)
@pytest.mark.parametrize(
    "name", ["queries", "equal-hierarchical", "equal-hierarchical-4", "privelet", "dawa-published"]
)
def test_they_are_available_by_name_and_keep_the_budget(name: str) -> None:
    cells = np.arange(64)
    found = answer_workload(cells, workloads.prefix(64), epsilon=0.5, strategy=name)
    assert found.cost.upper <= 0.5 and found.answers.shape == (64,)
    assert found.strategy == {"equal-hierarchical": "equal-hierarchical-2"}.get(name, name)
    if name == "dawa-published":
        assert "0.25 went to choosing" in found.explain()


def test_published_sizes_grow_by_the_branching() -> None:
    assert all(coarse == 4 * fine for coarse, fine in pairwise(equal_hierarchical(64, 4).sizes))

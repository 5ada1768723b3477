"""Combinations of cells move no further than claimed: every neighbour of small tables, by brute force."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from farthing.data.stability import ADD_REMOVE, REPLACE, Sensitivity, sensitivity_of_rows
from farthing.matrix.strategies.marginals import plan_marginals
from farthing.matrix.strategies.matrix_strategy import MatrixStrategy
from farthing.matrix.strategies.tree_strategies import TreeStrategy
from farthing.matrix.strategies.wavelet import WaveletStrategy
from farthing.statistics.marginals.marginal_transforms import MarginalTransform
from farthing.statistics.ranges.strategy_transforms import StrategyTransform, sensitivity_through

SIGNED = MatrixStrategy("signed", np.array([[3, 1, 1, -3, 0], [-3, 1, 0, 3, 1], [0, 2, 2, 0, 1]]))
TRANSFORMS = {
    "tree": StrategyTransform(TreeStrategy("tree", 5, (4, 2, 1)), (7, 3, 5)),
    "wavelet": StrategyTransform(WaveletStrategy(5), (1, 4, 2, 3)),
    "two groups": StrategyTransform(TreeStrategy("tree", 3, (3, 1)), (2, 3), groups=2),
    "matrix": StrategyTransform(SIGNED, (2,)),
    "left out": StrategyTransform(TreeStrategy("tree", 4, (4, 2, 1)), (7, 0, 5)),
}
BESIDE = {
    f"{name}, other rows {norm}": replace(
        transform, places=np.concatenate([np.arange(transform.groups * transform.strategy.cells), [-1, -1]])
    ).with_others(norm)  # type: ignore[arg-type]
    for name, transform in TRANSFORMS.items()
    for norm in ("l1", "l2")
}


def _moves(columns: np.ndarray, rows: int, relation: str) -> Sensitivity:
    """The largest move of every norm over all neighbours: `rows` rows come (or go), or are exchanged for others."""
    cells = range(columns.shape[1])
    worst = [0, 0, 0, 0]
    for gone in itertools.combinations_with_replacement(cells, rows):
        for come in [()] if relation == ADD_REMOVE else itertools.combinations_with_replacement(cells, rows):
            move = np.abs(columns[:, list(gone)].sum(axis=1) - columns[:, list(come)].sum(axis=1))
            found = (np.count_nonzero(move), move.sum(), (move**2).sum(), move.max())
            worst = [max(a, int(b)) for a, b in zip(worst, found, strict=True)]
    return Sensitivity(*worst)


def _columns(transform: Any, cells: int) -> np.ndarray:
    """What one row in each cell adds to the numbers."""
    return np.array([transform.apply(cell) for cell in np.eye(cells, dtype=np.int64)]).T


def _no_more(found: Sensitivity, claimed: Sensitivity) -> bool:
    return all(getattr(found, norm) <= getattr(claimed, norm) for norm in ("l0", "l1", "l2_squared", "linf"))


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_no_neighbour_moves_the_numbers_further_than_claimed(name: str, relation: str) -> None:
    transform = TRANSFORMS[name]
    cells = transform.groups * transform.strategy.cells
    columns = _columns(transform, cells)
    for rows in (1, 2):
        counted = sensitivity_of_rows(cells, [(0, 1)], rows, relation)
        claimed = sensitivity_through(counted, transform.columns, transform.size)
        assert _no_more(_moves(columns, rows, relation), claimed)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_no_neighbour_moves_marginals_further_than_claimed(norm: Any, relation: str) -> None:
    sizes = (2, 3, 2)
    plan = plan_marginals(sizes, [(0, 1), (1, 2)], norm=norm, largest_table=6)
    transform = replace(MarginalTransform.weighted(plan), tables=((0, 1), (1, 2)))
    rows = []
    for cell in itertools.product(*map(range, sizes)):
        tables = [np.zeros((2, 3), dtype=np.int64), np.zeros((3, 2), dtype=np.int64)]
        tables[0][cell[0], cell[1]] = tables[1][cell[1], cell[2]] = 1
        rows.append(transform.apply(tables))
    columns = np.array(rows).T
    counted = sensitivity_of_rows(6, [(0, 1)], 1, relation)
    claimed = sensitivity_through(counted, transform.columns, transform.size)
    assert _no_more(_moves(columns, 1, relation), claimed)
    if relation == ADD_REMOVE:  # every row moves the numbers by as much as any other
        found = _moves(columns, 1, relation)
        assert (found.l1, found.l2_squared) == (claimed.l1, claimed.l2_squared)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("name", BESIDE)
def test_counting_other_rows_costs_nothing(name: str, relation: str) -> None:
    """Cells for rows that lie in no other move the numbers no further, in the norm that they are weighed for."""
    transform = BESIDE[name]
    norm = "l1" if name.endswith("l1") else "l2_squared"
    alone = replace(transform, others_weight=0)
    cells = transform.groups * transform.strategy.cells + 2
    assert transform.others == 2 and transform.size == alone.size + 2
    assert getattr(transform.columns, norm) == getattr(alone.columns, norm)
    columns = _columns(transform, cells)
    for rows in (1, 2):
        counted = sensitivity_of_rows(cells, [(0, 1)], rows, relation)
        claimed = sensitivity_through(counted, transform.columns, transform.size)
        assert _no_more(_moves(columns, rows, relation), claimed)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_counting_rows_that_are_in_no_table_costs_nothing(norm: Any, relation: str) -> None:
    sizes = (2, 3)
    plan = plan_marginals(sizes, [(0, 1)], norm=norm)
    alone = replace(MarginalTransform.weighted(plan), tables=((0, 1),))
    transform = alone.with_others((3, 4))
    assert transform.others_weight > 0
    key = "l1" if norm == "l1" else "l2_squared"
    assert getattr(transform.columns, key) == getattr(alone.columns, key)
    rows = []
    for cell in itertools.product(range(3), range(4)):  # the last of each is a missing value
        tables = [np.zeros(sizes, dtype=np.int64), np.zeros(3, dtype=np.int64), np.zeros(4, dtype=np.int64)]
        if cell[0] < 2 and cell[1] < 3:
            tables[0][cell] = 1
        else:
            tables[1][cell[0]] = tables[2][cell[1]] = 1
        rows.append(transform.apply(tables))
    columns = np.array(rows).T
    for count in (1, 2):
        counted = sensitivity_of_rows(6, [(0, 1)], count, relation)
        claimed = sensitivity_through(counted, transform.columns, transform.size)
        assert _no_more(_moves(columns, count, relation), claimed)


def test_claims_for_trees_are_tight() -> None:
    transform = TRANSFORMS["tree"]
    claimed = sensitivity_through(sensitivity_of_rows(5, [(0, 1)], 2, ADD_REMOVE), transform.columns, transform.size)
    found = _moves(_columns(transform, 5), 2, ADD_REMOVE)
    assert (found.l1, found.l2_squared, found.linf) == (claimed.l1, claimed.l2_squared, claimed.linf)
    assert not _no_more(found, replace(claimed, l1=claimed.l1 - 1))
    assert not _no_more(found, replace(claimed, l2_squared=claimed.l2_squared - 1))


def test_a_signed_matrix_taken_for_one_without_signs_would_be_caught() -> None:
    transform = TRANSFORMS["matrix"]
    assert transform.columns.signed
    counted = sensitivity_of_rows(5, [(0, 1)], 1, REPLACE)
    wrong = sensitivity_through(counted, replace(transform.columns, signed=False), transform.size)
    assert not _no_more(_moves(_columns(transform, 5), 1, REPLACE), wrong)

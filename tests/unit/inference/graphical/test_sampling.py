"""Rows are the model up to rounding: exact in the cliques but for fractions, nearly so across them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from farthing.inference.graphical.graphical_model import spread
from unit.inference.graphical.dense import SHAPES, SIZES, drawn_model


def counted(rows: NDArray[np.int64], subset: tuple[int, ...]) -> NDArray[np.int64]:
    found = np.zeros([SIZES[column] for column in subset], dtype=np.int64)
    np.add.at(found, tuple(rows[:, column] for column in subset), 1)
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_tables_of_rows_are_those_of_the_model_up_to_rounding(shape: str) -> None:
    model, _ = drawn_model(shape, total=5000.0)
    rows = model.rows(generator=np.random.default_rng(4))
    assert rows.shape == (5000, 5)
    for column in range(5):
        assert np.abs(counted(rows, (column,)) - model.marginal((column,))).max() < 6
    for clique in model.tree.cliques:
        apart = np.abs(counted(rows, clique.columns) - model.marginal(clique.columns))
        assert apart.max() < 6
    for subset in combinations(range(5), 2):  # rows drawn independently are beyond 0.012
        apart = np.abs(counted(rows, subset) - model.marginal(subset)).sum() / 2 / 5000
        assert apart < 0.006


def test_each_number_is_its_expectation_rounded_up_or_down_and_right_on_average() -> None:
    draw = np.random.default_rng(5)
    distributions = np.vstack([draw.dirichlet(np.full(7, 0.4), 3), np.eye(7)[2]])
    totals = np.array([11, 0, 1, 6])
    expected = distributions * totals[:, None]
    repeats = 50_000
    found = spread(np.tile(distributions, (repeats, 1)), np.tile(totals, repeats), draw).reshape(repeats, 4, 7)
    assert np.all(found.sum(axis=2) == totals)
    assert np.all(np.abs(found - expected) < 1 + 1e-9)
    # A fraction varies by at most 1/4; five standard errors of its mean, and a little.
    assert np.abs(found.mean(axis=0) - expected).max() < 5.5 * 0.5 / repeats**0.5


def test_the_same_generator_gives_the_same_rows_and_another_does_not() -> None:
    model, _ = drawn_model("circle")
    first, again, other = (model.rows(100, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert not np.array_equal(model.rows(100), model.rows(100))


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_few_rows_are_rows_too(count: int) -> None:
    model, _ = drawn_model("triples")
    rows = model.rows(count)
    assert rows.shape == (count, 5)
    assert np.all((rows >= 0) & (rows < SIZES))

"""Tables of any columns and counts of any conjunction are those of the whole table."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from farthing.errors import InvalidValue
from farthing.inference.graphical import Measured, fit_graphical
from unit.inference.graphical.dense import SHAPES, SIZES, drawn_model


@pytest.mark.parametrize("shape", SHAPES)
def test_every_table_is_a_sum_of_the_whole_table(shape: str) -> None:
    model, whole = drawn_model(shape)
    subsets = [s for size in range(6) for s in combinations(range(5), size)]
    for subset, table in model.marginals([*subsets, *permutations((4, 0, 2))]).items():
        away = tuple(column for column in range(5) if column not in subset)
        expected = whole.sum(axis=away).transpose([sorted(subset).index(column) for column in subset])
        assert table == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_queries_count_what_the_whole_table_counts(shape: str) -> None:
    model, whole = drawn_model(shape)
    draw = np.random.default_rng(1)
    for columns in [(), (1,), (0, 4), (4, 2, 1), (0, 1, 2, 3, 4)]:
        masks = {column: draw.random(SIZES[column]) < 0.6 for column in columns}
        chosen = np.ix_(*(masks.get(column, np.ones(size, bool)) for column, size in enumerate(SIZES)))
        assert model.query(masks) == pytest.approx(whole[chosen].sum(), rel=1e-9, abs=1e-9)
    weights = {0: [0.5, 2.0], 2: [1.0, -1.0, 0.0, 3.0]}
    expected = np.einsum("abcde,a,c->", whole, weights[0], weights[2])
    assert model.query(weights) == pytest.approx(expected)


def test_tables_agree_with_one_another() -> None:
    model, _ = drawn_model("circle")
    for subset in combinations(range(5), 3):
        for axis, column in enumerate(subset):
            away = tuple(other for other in range(3) if other != axis)
            assert model.marginal(subset).sum(axis=away) == pytest.approx(model.marginal((column,)), rel=1e-9)


@pytest.mark.slow
def test_domains_of_any_size_are_no_trouble_as_long_as_the_cliques_are_small() -> None:
    sizes = (1000,) * 40
    draw = np.random.default_rng(2)
    pairs = [Measured((c, c + 1), draw.normal(1, 1, (2, 2)), 1.0, [np.arange(1000) // 500] * 2) for c in (0, 1)]
    model = fit_graphical(sizes, pairs, 10.0, rounds=5)
    assert model.marginal((0, 39)).shape == (1000, 1000)
    assert model.query({column: np.arange(1000) < 500 for column in range(30, 40)}) == pytest.approx(10 / 2**10)
    with pytest.raises(InvalidValue, match="ask for fewer columns"):
        model.marginal((0, 5, 39))
    halves = [np.arange(1000) // 500] * 3
    with pytest.raises(InvalidValue, match="measure fewer or smaller sets"):
        fit_graphical(sizes, [Measured((0, 1, 2), np.ones((2, 2, 2)), 1.0, halves)], 10.0)


def test_columns_and_masks_that_are_none_are_refused() -> None:
    model, _ = drawn_model("chain")
    for call in (
        lambda: model.marginal((0, 0)),
        lambda: model.marginal((5,)),
        lambda: model.query({0: [True]}),
        lambda: model.query({7: [True]}),
        lambda: model.rows(-1),
        lambda: model.rows(10**12),
    ):
        with pytest.raises(InvalidValue):
            call()

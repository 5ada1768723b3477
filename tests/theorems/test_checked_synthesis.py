"""The price of a synthesis and its check: distances move no further than counts do."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accounting import compose
from farthing.adaptive.synthesis_validation import (
    MOST_SETS,
    CheckedSynthesis,
    checked_synthesis,
    distances,
    restored_synthesis,
)
from farthing.data import Sensitivity
from farthing.data.coded_rows import CodedAxis
from farthing.data.schema import Integers
from farthing.errors import InvalidValue

SIZES = (3, 2, 4)
SETS = [*((place,) for place in range(3)), *combinations(range(3), 2)]
rows = st.lists(st.tuples(*(st.integers(0, size - 1) for size in SIZES)), max_size=12)


def axes_of(sizes: tuple[int, ...]) -> list[CodedAxis]:
    return [CodedAxis(f"c{place}", Integers(0, size - 1)) for place, size in enumerate(sizes)]


def made(sizes: tuple[int, ...], epsilon: float, delta: float, moved: int = 1) -> CheckedSynthesis:
    return checked_synthesis(axes_of(sizes), Sensitivity(moved, moved, moved**2, moved), epsilon, delta)


def distances_by_hand(private: list[Any], synthetic: list[Any]) -> list[int]:
    found = []
    for columns in SETS:
        cells = {tuple(row[column] for column in columns) for row in (*private, *synthetic)}
        counts = [
            [sum(tuple(row[c] for c in columns) == cell for row in part) for part in (private, synthetic)]
            for cell in cells
        ]
        found.append(sum(abs(a - b) for a, b in counts))
    return found


def as_array(listed: list[Any]) -> Any:
    return np.array(listed, dtype=np.int64).reshape(-1, len(SIZES))


@pytest.mark.slow
@given(rows, rows, rows)
@settings(max_examples=25)
def test_distances_are_those_of_a_loop_and_move_no_further_than_rows_do(
    private: list[Any], more: list[Any], synthetic: list[Any]
) -> None:
    found = []
    for part in (private, [*private, *more]):
        counts = np.ones(len(part), dtype=np.int64)
        exact = distances(as_array(part), counts, as_array(synthetic), SETS, SIZES)
        assert exact.tolist() == distances_by_hand(part, synthetic)
        found.append(exact)
    change = np.abs(found[0] - found[1])
    assert change.max() <= len(more)
    assert np.sum(change**2) <= len(more) ** 2 * len(SETS)


def test_the_bound_is_reached() -> None:
    one, nothing = as_array([(0, 0, 0)]), as_array([])
    ones = np.ones(1, dtype=np.int64)
    assert distances(one, ones, nothing, SETS, SIZES).tolist() == [1] * len(SETS)
    assert distances(nothing, ones[:0], nothing, SETS, SIZES).tolist() == [0] * len(SETS)


def test_large_domains_give_the_same_distances() -> None:
    luck = np.random.default_rng(2)
    private, synthetic = luck.integers(0, 40, (300, 2)), luck.integers(0, 40, (200, 2))
    counts = luck.integers(1, 5, 300)
    dense, sparse = (distances(private, counts, synthetic, [(0, 1)], sizes) for sizes in ((40, 40), (2**20, 2**20)))
    assert dense.tolist() == sparse.tolist()


@pytest.mark.parametrize(
    ("sizes", "epsilon", "delta", "moved"),
    [
        ((5, 3, 2), 1.0, 1e-9, 1), ((5, 3), 0.1, 1e-6, 3), ((4, 4), 1.0, 0.0, 2), ((7,), 3.0, 1e-9, 1),
        ((7,), 3.0, 0.0, 1),
    ],
)  # fmt: skip
def test_both_cost_what_was_allowed_and_nearly_all_of_it(
    sizes: tuple[int, ...], epsilon: float, delta: float, moved: int
) -> None:
    question = made(sizes, epsilon, delta, moved)
    cost = compose([question.event]).epsilon_at(delta)
    assert cost.upper <= epsilon
    assert cost.upper >= 0.98 * epsilon
    count = len(sizes) + math.comb(len(sizes), 2)
    assert question.noise.cells == count
    if delta > 0:
        assert question.noise.l2_sensitivity >= moved * math.sqrt(count)
    else:
        assert question.noise.l1_sensitivity >= moved * count


@pytest.mark.slow
def test_more_budget_means_less_noise() -> None:
    noises = [made((5, 3, 2), epsilon, 1e-9).noise.standard_error for epsilon in (0.1, 0.5, 1.0, 4.0)]
    assert noises == sorted(noises, reverse=True)


def test_very_many_columns_are_checked_up_to_a_limit() -> None:
    question = made((2,) * 60, 1.0, 1e-9)
    assert question.noise.cells == MOST_SETS
    assert len(question.sets({"groups 0": np.array([0, 1])})) == MOST_SETS


@pytest.mark.slow
def test_a_stored_question_is_the_same_question() -> None:
    question = made((5, 3, 2), 1.0, 1e-9)
    again = restored_synthesis(question.stored())
    assert again.digest == question.digest and again.event == question.event


def test_without_a_budget_there_is_no_check() -> None:
    for epsilon in (0.0, math.nan):
        with pytest.raises(InvalidValue):
            made((5, 3), epsilon, 1e-9)

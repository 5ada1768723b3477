from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.errors import InvalidValue
from farthing.inference import rounded, rounded_tree


@pytest.mark.slow
@given(st.lists(st.floats(-1e6, 1e6), max_size=40))
def test_rounding_keeps_the_total_and_moves_nothing_by_one(values: list[float]) -> None:
    whole = rounded(values)
    assert abs(whole.sum() - np.sum(values)) <= 0.5 + 1e-6
    assert np.all(np.abs(whole - np.array(values)) < 1 + 1e-6)
    assert np.all(whole[np.array(values) >= 0] >= 0) if values else len(whole) == 0


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1000)), min_size=1, max_size=60))
def test_a_tree_adds_up_after_rounding(nodes: list[tuple[int, float]]) -> None:
    parents = np.array([-1] + [choice % place for place, (choice, _) in enumerate(nodes) if place])
    values = np.array([value for _, value in nodes])
    values[np.isin(np.arange(len(values)), parents)] = 0.0
    for node in range(len(values) - 1, 0, -1):
        values[parents[node]] += values[node]
    whole = rounded_tree(parents, values)
    sums = np.zeros(len(values), dtype=int)
    np.add.at(sums, parents[1:], whole[1:])
    inner = np.unique(parents[1:])
    assert np.all(sums[inner] == whole[inner])
    assert np.all(np.abs(whole - values) < 1 + 1e-6)
    assert np.all(whole >= 0)


@pytest.mark.slow
@given(st.lists(st.integers(0, 40).map(lambda quarters: quarters / 4), min_size=1, max_size=30), st.data())
def test_the_largest_remainders_go_up_and_the_first_among_equals_first(
    values: list[float], data: st.DataObject
) -> None:
    floors = [int(value) for value in values]
    missing = data.draw(st.integers(0, len(values)))
    order = sorted(range(len(values)), key=lambda place: floors[place] - values[place])  # stable
    twin = [floor + (place in order[:missing]) for place, floor in enumerate(floors)]
    assert rounded(values, total=sum(floors) + missing).tolist() == twin


def test_whole_numbers_stay_and_given_totals_are_met() -> None:
    assert rounded([3.0, 0.0, 5.0]).tolist() == [3, 0, 5]
    assert rounded([0.5, 0.5], total=0).tolist() == [0, 0]
    assert rounded([0.1 + 0.2, 0.7]).tolist() == [0, 1]


def test_totals_out_of_reach_and_trees_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(InvalidValue, match="total"):
        rounded([0.5, 0.5], total=5)
    with pytest.raises(InvalidValue, match="finite"):
        rounded([float("nan")])
    with pytest.raises(InvalidValue, match="add up"):
        rounded_tree([-1, 0, 0], [5.0, 1.0, 1.0])
    with pytest.raises(InvalidValue, match="before their children"):
        rounded_tree([1, -1], [1.0, 1.0])
    with pytest.raises(InvalidValue, match="each of the 2 nodes"):
        rounded_tree([-1, 0], [1.0])

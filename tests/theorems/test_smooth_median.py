"""median_sensitivity_at beside the definition: all data sets within t changes, all their neighbours."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

from farthing.mechanisms.smooth_median import Relation, median_sensitivity_at

TOP = 3
Data = tuple[int, ...]


def median(values: Data) -> int:
    return values[(len(values) + 1) // 2 - 1] if values else 0


@functools.cache
def neighbours(values: Data, relation: Relation) -> tuple[Data, ...]:
    removed = {values[:i] + values[i + 1 :] for i in range(len(values))}
    if relation == "replace":
        return tuple({tuple(sorted((*rest, v))) for rest in removed for v in range(TOP + 1)})
    return tuple(removed | {tuple(sorted((*values, v))) for v in range(TOP + 1)})


@functools.cache
def largest_local_sensitivity(values: Data, t: int, relation: Relation) -> int:
    """max over y within t changes of max over neighbours z of y of |median(y) - median(z)|."""
    if t == 0:
        return max((abs(median(values) - median(z)) for z in neighbours(values, relation)), default=0)
    return max(
        largest_local_sensitivity(values, t - 1, relation),
        *(largest_local_sensitivity(y, t - 1, relation) for y in neighbours(values, relation)),
    )


def data_sets(sizes: range) -> list[Data]:
    return [v for size in sizes for v in itertools.combinations_with_replacement(range(TOP + 1), size)]


def bound(values: Data, t: int, relation: Relation) -> int:
    return median_sensitivity_at(np.array(values, dtype=np.int64), 0, TOP, relation)(t)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_median_sensitivity_at_covers_the_definition(relation: Relation) -> None:
    """Equal under replace; under add-remove never below, and equal where there are values left to remove."""
    for values in data_sets(range(1, 6) if relation == "replace" else range(6)):
        for t in range(4):
            exact = largest_local_sensitivity(values, t, relation)
            found = bound(values, t, relation)
            assert found >= exact
            if relation == "replace" or len(values) > t:
                assert found == exact, (values, t)


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_a_neighbour_is_never_further_than_one_step(relation: Relation) -> None:
    for values in data_sets(range(1, 6) if relation == "replace" else range(6)):
        for other in neighbours(values, relation):
            for t in range(7):
                assert bound(values, t, relation) <= bound(other, t + 1, relation)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_the_bound_rises_to_the_whole_range(relation: Relation) -> None:
    values = tuple(sorted([1, 1, 2, 2, 3]))
    rises = [bound(values, t, relation) for t in range(12)]
    assert rises == sorted(rises) and rises[-1] == TOP


def test_removing_the_step_breaks_the_definition() -> None:
    """Power: a bound that looks one change too near misses some local sensitivity."""
    missed = [
        values
        for values in data_sets(range(1, 5))
        if bound(values, 0, "replace") < largest_local_sensitivity(values, 1, "replace")
    ]
    assert missed

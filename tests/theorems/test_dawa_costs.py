"""Costs of intervals: one row moves each of them by at most 1, tried on all neighbours of small histograms."""

from __future__ import annotations

from itertools import product

import numpy as np

from farthing.matrix.data_dependent.dawa import IntervalFamily, unevenness


def brute_force_cost(values: tuple[int, ...]) -> int:
    """The least number of rows added or removed, over all common values."""
    return min(sum(abs(value - level) for value in values) for level in range(max(values) + 1))


def test_sound_and_tight_no_neighbour_moves_a_cost_by_more_than_one() -> None:
    family = IntervalFamily(4)
    starts, stops = family.edges
    largest = 0
    for cells in product(range(3), repeat=4):
        here = unevenness(np.array(cells), family)
        for place in range(4):
            after = np.array(cells)
            after[place] += 1
            moved = np.abs(unevenness(after, family) - here)
            holds = (starts <= place) & (place < stops)
            assert moved.max() <= 1
            assert not moved[~holds].any()
            largest = max(largest, int(moved.max()))
    assert largest == 1


def test_costs_are_those_of_trying_every_common_value() -> None:
    generator = np.random.default_rng(3)
    for size in (1, 2, 3, 6, 8):
        family = IntervalFamily(size)
        cells = generator.integers(0, 12, size)
        found = unevenness(cells, family)
        for start, stop, cost in zip(*family.edges, found, strict=True):
            assert cost == brute_force_cost(tuple(cells[start:stop].tolist()))


def test_degenerate_equal_cells_cost_nothing_however_large() -> None:
    assert not unevenness(np.full(64, 2**40), IntervalFamily(64)).any()


def test_the_intervals_cover_every_histogram() -> None:
    for size in (1, 2, 3, 5, 17, 64, 100):
        starts, stops = IntervalFamily(size).edges
        assert np.array_equal(np.sort(starts[stops - starts == 1]), np.arange(size))
        assert stops.max() <= size

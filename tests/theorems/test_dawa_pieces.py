"""Roughness: one row moves it by at most 9, tried on all neighbours of small histograms and against all partitions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from farthing.matrix.data_dependent.bucket_refinement import drift, noisy_roughness, roughness
from farthing.matrix.data_dependent.dawa import IntervalFamily
from farthing.matrix.data_dependent.step_budget import Spending
from farthing.mechanisms import DiscreteLaplace
from sources import TestSource

WEIGHT = 8
SIZE = 4


def brute_force_drift(values: tuple[int, ...]) -> int:
    """In exact fractions, as the statement has it."""
    width = len(values)
    apart = [abs(sum(values[:t]) - Fraction(t * sum(values), width)) for t in range(width + 1)]
    return math.floor(max(apart))


def brute_force_roughness(values: tuple[int, ...], price: int) -> int:
    """The least over all partitions, found by trying each first interval."""
    if not values:
        return 0
    starts, stops = IntervalFamily(SIZE).edges
    offset = SIZE - len(values)
    found = []
    for stop in stops[starts == offset].tolist():
        piece = values[: stop - offset]
        uneven = min(sum(abs(value - level) for value in piece) for level in range(max(piece) + 1))
        own = WEIGHT * (brute_force_drift(piece) + price) + uneven
        found.append(own + brute_force_roughness(values[len(piece) :], price))
    return min(found)


@pytest.mark.parametrize("price", [0, 1, 3])
def test_sound_and_tight_no_neighbour_moves_roughness_by_more_than_nine(price: int) -> None:
    rough = {cells: roughness(np.array(cells), price) for cells in product(range(4), repeat=SIZE)}
    largest = 0
    for cells, here in rough.items():
        for place in range(SIZE):
            after = tuple(value + (place == j) for j, value in enumerate(cells))
            if after in rough:
                largest = max(largest, abs(rough[after] - here))
    assert largest <= WEIGHT + 1
    assert price == 0 or largest == WEIGHT + 1  # at no price every cell is a piece of its own, and nothing is rough


def test_roughness_is_that_of_trying_every_partition() -> None:
    generator = np.random.default_rng(3)
    for cells in generator.integers(0, 30, (60, SIZE)):
        assert roughness(cells, 2) == brute_force_roughness(tuple(cells.tolist()), 2)


def test_drift_is_that_of_exact_fractions() -> None:
    generator = np.random.default_rng(4)
    for size in (1, 2, 3, 6, 8):
        family = IntervalFamily(size)
        cells = generator.integers(0, 12, size)
        for start, stop, found in zip(*family.edges, drift(cells, family), strict=True):
            assert found == brute_force_drift(tuple(cells[start:stop].tolist()))


def test_monotone_in_the_price() -> None:
    cells = np.random.default_rng(5).poisson(np.repeat([3.0, 90.0], 32))
    assert np.all(np.diff([roughness(cells, price) for price in (0, 1, 5, 20, 100)]) >= 0)


def test_degenerate_even_empty_and_huge_histograms() -> None:
    for cells in (np.zeros(64), np.full(64, 7), np.full(64, 2**62)):
        assert roughness(cells.astype(np.int64), 5) == WEIGHT * 5
    tall = np.zeros(4096, dtype=np.int64)
    tall[1] = 2**62
    assert 0 < roughness(tall, 2**20) < 2**50  # no sum runs over


def test_the_noise_is_that_of_a_number_moved_by_nine() -> None:
    cells = np.repeat([10, 400], 32)
    found = noisy_roughness(cells, 5, Spending(0.5), Fraction(1, 10), TestSource(1))
    mechanism = found.noise.mechanism
    assert isinstance(mechanism, DiscreteLaplace)
    assert mechanism.epsilon == pytest.approx(0.05)
    assert mechanism.epsilon <= 0.05
    assert mechanism.scale == pytest.approx(9 / 0.05)
    assert found.deviation == pytest.approx(math.sqrt(2) * 9 / 0.05 / WEIGHT, rel=1e-3)
    assert abs(found.rows - roughness(cells, 5) / WEIGHT) < 20 * found.deviation

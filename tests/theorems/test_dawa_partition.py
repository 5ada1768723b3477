"""The partition is private: exact probabilities over all noises, against every way a row may move the costs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from farthing.matrix.data_dependent.dawa import IntervalFamily, cheapest_partition, partition
from sources import TestSource

Numbers = NDArray[np.int64]
FAR = 6
EPSILON = 2.0


def all_partitions(size: int, starts: Numbers, stops: Numbers) -> list[tuple[int, ...]]:
    """Every way to cover `size` cells with the intervals, by their places."""
    found: list[tuple[tuple[int, ...], int]] = [((), 0)]
    whole = []
    while found:
        used, reached = found.pop()
        if reached == size:
            whole.append(used)
            continue
        found += [((*used, place), int(stops[place])) for place in np.flatnonzero(starts == reached).tolist()]
    return whole


def probabilities(size: int, costs: Numbers, rate: float, bare: int = 0) -> NDArray[np.float64]:
    """The law of the cheapest partition over all noises of up to FAR steps; the first `bare` intervals get none."""
    starts, stops = IntervalFamily(size).edges
    steps = np.arange(-FAR, FAR + 1)
    weights = np.exp(-rate * np.abs(steps))
    weights /= weights.sum()
    noises = [np.zeros(1, dtype=np.int64) if place < bare else steps for place in range(len(starts))]
    sums = [
        sum(
            (noises[place] + costs[place]).reshape([-1 if axis == place else 1 for axis in range(len(starts))])
            for place in way
        )
        for way in all_partitions(size, starts, stops)
    ]
    winners = np.argmin(np.stack(np.broadcast_arrays(*sums)), axis=0)  # ties by a fixed order
    mass: NDArray[np.float64] = np.ones(())
    for noise in noises:
        mass = np.multiply.outer(mass, weights if len(noise) > 1 else np.ones(1))
    spread = np.broadcast_to(mass, winners.shape).ravel()
    return np.array([spread[winners.ravel() == way].sum() for way in range(len(sums))])


def largest_loss(size: int, rate: float, bare: int = 0) -> float:
    """The largest log ratio over some costs, and all ways in which a row of some cell may move them by 1."""
    starts, stops = IntervalFamily(size).edges
    generator, worst = np.random.default_rng(5), 0.0
    for _ in range(2):
        costs = np.where(stops - starts == 1, 1, generator.integers(0, 4, len(starts)))
        here = probabilities(size, costs, rate, bare)
        for cell in range(size):
            # The cost of a single cell is always 0, before its price.
            held = np.flatnonzero((starts <= cell) & (cell < stops) & (stops - starts > 1))
            for signs in product((-1, 1), repeat=len(held)):
                moved = costs.copy()
                moved[held] += signs
                there = probabilities(size, moved, rate, bare)
                likely = np.minimum(here, there) > 1e-3  # noise beyond FAR steps is left out here
                worst = max(worst, float(np.abs(np.log(here[likely] / there[likely])).max()))
    return worst


@pytest.mark.slow
def test_sound_no_partition_is_more_than_epsilon_times_likelier() -> None:
    assert largest_loss(3, EPSILON / 2) <= EPSILON + 0.01


@pytest.mark.slow
def test_tight_half_the_noise_would_not_do() -> None:
    assert largest_loss(3, EPSILON) > EPSILON


def test_single_cells_need_noise_though_their_cost_is_known() -> None:
    assert largest_loss(4, EPSILON / 2, bare=4) > EPSILON + 0.1


def test_the_search_finds_what_trying_all_partitions_finds() -> None:
    generator = np.random.default_rng(11)
    for size in (1, 2, 3, 4, 6, 8):
        starts, stops = IntervalFamily(size).edges
        ways = all_partitions(size, starts, stops)
        for _ in range(20):
            costs = generator.integers(-5, 9, len(starts))
            least = min(sum(int(costs[place]) for place in way) for way in ways)
            edges = cheapest_partition(size, starts, stops, costs)
            places = {(int(a), int(b)): i for i, (a, b) in enumerate(zip(starts, stops, strict=True))}
            pairs = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
            assert sum(int(costs[places[pair]]) for pair in pairs) == least


def test_equal_cells_stay_together_and_steps_are_found() -> None:
    cells = np.repeat([0, 4000, 300, 300], 32)
    found = [partition(cells, 0.5, 20.0, TestSource(seed)).tolist() for seed in range(20)]
    exact = sum({0, 32, 64} <= set(edges) for edges in found)
    assert exact >= 18
    assert max(len(edges) for edges in found) <= 10


def test_more_budget_finds_more_structure() -> None:
    cells = np.repeat([50, 90], 64)
    found = {
        epsilon: np.mean([64 in partition(cells, epsilon, 10.0, TestSource(seed)) for seed in range(20)])
        for epsilon in (0.002, 1.0)
    }
    assert found[1.0] >= 0.9 > found[0.002] + 0.3


def test_degenerate_one_cell_and_empty_histograms() -> None:
    assert partition(np.array([7]), 1.0, 1.0, TestSource(1)).tolist() == [0, 1]
    edges = partition(np.zeros(256, dtype=np.int64), 1.0, 2.0, TestSource(2))
    assert len(edges) <= 20

"""Cells moved to where none is below zero: nearest in the norm of the workload, and never further from the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from farthing.release.data_dependent.settling import settled
from farthing.release.workloads import Workload, all_ranges, identity, marginals, prefix, ranges

WORKLOADS = [prefix(24), all_ranges(24), identity(24)]


def distance(workload: Workload, a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(workload.times((a - b)[:, None])))


@settings(deadline=None, max_examples=60)
@given(seed=some.integers(0, 10**6), place=some.integers(0, 2), noise=some.floats(0.1, 100.0))
def test_sound_a_truth_above_zero_is_never_further_away(seed: int, place: int, noise: float) -> None:
    workload, generator = WORKLOADS[place], np.random.default_rng(seed)
    truth = generator.poisson(generator.gamma(0.3, 20, workload.cells)).astype(float)
    noisy = truth + generator.laplace(0, noise, workload.cells)
    found = settled(workload, noisy)
    assert found.min() >= -1e-9
    assert distance(workload, found, truth) <= distance(workload, noisy, truth) * (1 + 1e-9)


@pytest.mark.parametrize("workload", WORKLOADS, ids=["prefix", "all ranges", "identity"])
def test_tight_no_other_cells_above_zero_are_nearer(workload: Workload) -> None:
    """The conditions of the nearest point: the gradient is zero where cells are free, and nowhere below zero."""
    generator = np.random.default_rng(4)
    for _ in range(10):
        noisy = generator.normal(1.0, 5.0, workload.cells)
        found = settled(workload, noisy)
        gradient = workload.gram_times(found - noisy)
        scale = np.abs(workload.gram_times(noisy)).max()
        assert gradient.min() >= -1e-9 * scale
        assert abs(float(gradient @ found)) <= 1e-9 * scale * max(1.0, found.sum())


def test_other_workloads_get_the_nearest_of_several() -> None:
    generator = np.random.default_rng(5)
    for workload in (ranges(24, [(0, 5), (3, 20), (7, 24), (10, 12)]), marginals((4, 6), way=1)):
        noisy = generator.normal(0.0, 5.0, workload.cells)
        other = generator.uniform(0.0, 1.0, workload.cells)
        found = settled(workload, noisy, [other])
        assert found.min() >= -1e-9
        for rival in (np.maximum(noisy, 0.0), other):
            assert distance(workload, found, noisy) <= distance(workload, rival, noisy) + 1e-9


def test_degenerate_cells_that_are_above_zero_stay() -> None:
    cells = np.arange(24.0)
    for workload in WORKLOADS:
        np.testing.assert_allclose(settled(workload, cells), cells, atol=1e-9)


def test_sums_of_many_cells_do_not_come_up_with_their_noise() -> None:
    """Setting negative cells to zero would add about half the noise of every cell to the total."""
    generator = np.random.default_rng(6)
    workload = prefix(1024)
    noisy = generator.laplace(0, 10, 1024)
    assert abs(settled(workload, noisy).sum()) < 0.1 * np.maximum(noisy, 0.0).sum()

"""Cells moved to where none is below zero, quickly: as near as a long search, or nearly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from farthing.matrix.data_dependent.buckets import nonnegative_histogram
from farthing.matrix.workloads import Workload, all_ranges, identity, marginals, prefix, ranges
from farthing.matrix.workloads.nonnegative_histograms import nearest_in_answers

Floats = NDArray[np.float64]


def distance(workload: Workload, a: Floats, b: Floats) -> float:
    return float(np.linalg.norm(workload.times((a - b)[:, None])))


def test_closed_forms_are_the_nearest_cells() -> None:
    generator = np.random.default_rng(4)
    for workload in (prefix(24), all_ranges(24), identity(24)):
        noisy = generator.normal(1.0, 5.0, workload.cells)
        np.testing.assert_array_equal(nonnegative_histogram(workload, noisy), nearest_in_answers(noisy, workload))


def test_random_ranges_are_settled_about_as_near_as_by_a_search() -> None:
    generator = np.random.default_rng(5)
    ends = np.sort(generator.integers(0, 128, (400, 2)), axis=1) + np.array([0, 1])
    workload = ranges(128, ends)
    noisy = generator.poisson(3.0, 128) + generator.laplace(0.0, 10.0, 128)
    quick, best = nonnegative_histogram(workload, noisy), nearest_in_answers(noisy, workload)
    assert quick.min() >= 0.0
    assert distance(workload, quick, noisy) <= 1.05 * distance(workload, best, noisy)


def test_what_others_propose_is_weighed() -> None:
    generator = np.random.default_rng(6)
    workload = marginals((4, 6), way=1)
    noisy = generator.normal(0.0, 5.0, workload.cells)
    other = generator.uniform(0.0, 1.0, workload.cells)
    found = nonnegative_histogram(workload, noisy, [other])
    for rival in (np.maximum(noisy, 0.0), other):
        assert distance(workload, found, noisy) <= distance(workload, rival, noisy) + 1e-9


def test_sums_of_many_cells_do_not_come_up_with_their_noise() -> None:
    """Setting negative cells to zero would add about half the noise of every cell to the total."""
    noisy = np.random.default_rng(7).laplace(0, 10, 1024)
    assert abs(nonnegative_histogram(prefix(1024), noisy).sum()) < 0.1 * np.maximum(noisy, 0.0).sum()

"""The low bits of a released double say nothing about the value: 100,000 samples a side, and a bug they give away."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from farthing.mechanisms import DiscreteGaussian, DiscreteLaplace
from sources import TestSource

SAMPLES = 100_000
NEIGHBOURS = [(0.1, 1.1), (1 / 3, 1.0), (0.0, 5e-324), (2.0**40 + 0.1, 2.0**40 + 1.1)]


def lowest_set_bits(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The exponent of the lowest bit set in each double; zeros are left out."""
    mantissa, exponent = np.frexp(values[values != 0])
    whole = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    trailing = np.log2(whole & -whole).astype(np.int64)
    return np.asarray(exponent - 53 + trailing, np.int64)


def naive_laplace(value: float) -> NDArray[np.float64]:
    """Inverse-CDF Laplace noise in doubles: the bug."""
    rng = np.random.default_rng(5)
    return value + rng.laplace(0.0, 1.0, SAMPLES)


def released(mechanism: Any, value: float, seed: int) -> NDArray[np.float64]:
    return np.asarray(mechanism._answer(np.full(SAMPLES, value), TestSource(seed)))


@pytest.mark.parametrize("pair", NEIGHBOURS, ids=repr)
@pytest.mark.parametrize("grid", [2.0**-10, 2.0**-30, 1.0])
@pytest.mark.parametrize("make", [DiscreteLaplace, DiscreteGaussian])
def test_every_release_lies_on_the_public_grid_whatever_the_value(
    make: Any, grid: float, pair: tuple[float, float]
) -> None:
    mechanism = make(1.0, 1.0, grid=grid, cells=SAMPLES)
    for seed, value in enumerate(pair):
        assert lowest_set_bits(released(mechanism, value, seed)).min() >= np.log2(grid)


@pytest.mark.parametrize("make", [DiscreteLaplace, DiscreteGaussian])
def test_low_bits_are_as_frequent_on_one_side_as_on_the_other(make: Any) -> None:
    """Noise thousands of steps wide hides the value's own parity: the counts of each lowest bit are alike."""
    mechanism = make(1.0, 1.0, grid=2.0**-10, cells=SAMPLES)
    left, right = (lowest_set_bits(released(mechanism, value, 7 + i)) for i, value in enumerate((0.1, 1.1)))
    bits = np.arange(-10, -3)
    counts = np.array([[np.count_nonzero(side == bit) for bit in bits] for side in (left, right)], dtype=float)
    expected = counts.sum(axis=0) / 2
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert statistic < 48.3  # chi-square with 9 degrees of freedom (7 are used) at 1e-6 or less


def test_the_same_look_gives_naive_noise_away() -> None:
    left, right = (set(lowest_set_bits(naive_laplace(value)).tolist()) for value in (0.0, 1.0))
    assert min(left) < min(right)  # noise near 0 keeps bits that 1 + noise has rounded off

"""Noise distributions against their exact mass functions: the vector sampler, OpenDP's, and the scalar ones.

False-alarm rate 1e-10 a test; our sources are seeded as well, so a test that passes keeps passing. Each test of ours
also refuses draws whose scale is 0.9 or 1.1 times the right one; OpenDP has no seed, but draws enough that it would.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from farthing.mechanisms.samplers import (
    discrete_gaussian_noise,
    discrete_laplace_noise,
    opendp_samplers,
    single_draws,
)
from farthing.mechanisms.samplers.vector_draws import Distribution, Staircase
from sources import TestSource
from statistical.chi_square import SCALES, Bins, rejects

MANY, MANY_BINS = 150_000, 150
FEW, FEW_BINS = 20_000, 16
UNSEEDED = 40_000
ENDS = ("0.3", "3.7", "1000000")  # of slow draws: the narrowest, the widest and an ordinary one
DISTRIBUTIONS = ("laplace", "gaussian")
Draw = Callable[[Fraction, int], NDArray[np.int64]]


def vector(distribution: str) -> Draw:
    if distribution == "laplace":
        return lambda scale, size: discrete_laplace_noise(scale, size, TestSource(20261116))
    return lambda scale, size: discrete_gaussian_noise(scale**2, size, TestSource(20261117))


def scalar(distribution: str) -> Draw:
    def draw(scale: Fraction, size: int) -> NDArray[np.int64]:
        bits = single_draws.Bits(TestSource(20261118), block=4096)
        if distribution == "laplace":
            return np.array([single_draws.discrete_laplace(scale, bits) for _ in range(size)])
        return np.array([single_draws.discrete_gaussian(scale**2, bits) for _ in range(size)])

    return draw


def from_opendp(distribution: str) -> Draw:
    if distribution == "laplace":
        return opendp_samplers.discrete_laplace_noise
    return lambda scale, size: opendp_samplers.discrete_gaussian_noise(scale**2, size)


def check(distribution: str, draw: Draw, scale: Fraction, size: int, bins: int) -> None:
    """The right distribution passes; scales of 0.9 and 1.1 times it do not."""
    assert not rejects(distribution, float(scale), draw(scale, size), bins)
    for wrong in (Fraction(9, 10), Fraction(11, 10)):
        assert rejects(distribution, float(scale), draw(wrong * scale, size), bins)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("scale", SCALES)
def test_vector_noise_has_its_law_and_no_other_scale(distribution: str, scale: str) -> None:
    check(distribution, vector(distribution), Fraction(scale), MANY, MANY_BINS)


@pytest.mark.slow
@pytest.mark.draws(false_alarm=1e-10, miss=1e-10)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("scale", ENDS)
def test_opendp_noise_has_the_same_law(distribution: str, scale: str) -> None:
    """A scale a tenth off puts the statistic 6.9 deviations beyond the limit (below), where its left tail is thinner
    than a normal one's 3e-12."""
    sample = from_opendp(distribution)(Fraction(scale), UNSEEDED)
    assert not rejects(distribution, float(scale), sample, FEW_BINS)


@pytest.mark.slow
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("scale", ENDS)
def test_scalar_noise_has_the_same_law(distribution: str, scale: str) -> None:
    """Slow draws: the wrong scales, whose refusal is computed below for all, are drawn for one."""
    if scale == "3.7":
        check(distribution, scalar(distribution), Fraction(scale), FEW, FEW_BINS)
    else:
        assert not rejects(distribution, float(scale), scalar(distribution)(Fraction(scale), FEW), FEW_BINS)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("size", "bins", "beyond"), [(MANY, MANY_BINS, 15), (FEW, FEW_BINS, 3.7), (UNSEEDED, FEW_BINS, 6.9)]
)
def test_the_power_is_no_luck(distribution: str, scale: str, size: int, bins: int, beyond: float) -> None:
    """The statistic of a wrong scale is expected so many standard deviations beyond the limit."""
    right = float(scale)
    binned = Bins.of(distribution, right, size, bins)
    for wrong in (0.9 * right, 1.1 * right):
        mean, deviation = binned.expected_statistic(size, right, wrong)
        assert mean - beyond * deviation > binned.limit


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("scale", ["0.001", "0.05", "1099511627776", "72057594037927936"])
def test_extreme_scales_keep_their_law(distribution: str, scale: str) -> None:
    """Down to where noise is nearly always 0, up to the largest scale."""
    sample = vector(distribution)(Fraction(scale), MANY)
    if float(scale) < 0.1:
        assert not sample.any()
    else:
        assert not rejects(distribution, float(scale), sample, MANY_BINS)


@pytest.mark.parametrize("scale", ["1", "50", "100000"])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_neighbouring_cells_are_independent_and_signs_fair(distribution: str, scale: str) -> None:
    sample = vector(distribution)(Fraction(scale), MANY)
    for values in (sample.astype(float), np.abs(sample).astype(float)):
        for lag in (1, 2, 7):
            correlation = float(np.corrcoef(values[:-lag], values[lag:])[0, 1])
            assert abs(correlation) * MANY**0.5 < stats.norm.isf(1e-7)
    positive, negative = int((sample > 0).sum()), int((sample < 0).sum())
    assert stats.binomtest(positive, positive + negative).pvalue > 1e-6


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_low_bits_of_wide_noise_are_fair(distribution: str) -> None:
    """A block is 2**14 numbers long here: each of the 14 lowest bits is one of a uniform position."""
    sample = vector(distribution)(Fraction(10**6), MANY)
    for bit in range(14):
        assert stats.binomtest(int(((np.abs(sample) >> bit) & 1).sum()), MANY).pvalue > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("distribution", "scale"), [("laplace", "1"), ("laplace", "40"), ("gaussian", "2"), ("gaussian", "60")]
)
def test_few_bits_and_a_short_table_give_the_same_law(
    distribution: str, scale: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`Staircase` with words and a table so small that balls and the tail decide thousands of draws."""
    decided = {"block": 0, "tail": 0}
    whole = Staircase._decided

    def counted(self: Staircase, entry: int, *rest: object) -> int | None:
        decided["tail" if entry == self.table.blocks else "block"] += 1
        return whole(self, entry, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Staircase, "_decided", counted)

    def draw(right: Fraction, size: int) -> NDArray[np.int64]:
        chosen = Distribution.laplace(right) if distribution == "laplace" else Distribution.gaussian(right**2)
        short = Staircase.of(chosen, selection_bits=8, tail_bits=3, leading_bits=2, more_bits=1, resolution=4)
        return short.draw(size, TestSource(11))

    check(distribution, draw, Fraction(scale), FEW, FEW_BINS)
    assert decided["block"] > 2_000
    assert decided["tail"] > 2_000

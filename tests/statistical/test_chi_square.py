"""The tests' own masses beside exact sums, and the false-alarm rate of the statistic."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import stats

from statistical.chi_square import SCALES, Bins, upper_tails


def exact_upper_tail(distribution: str, scale: float, start: int) -> float:
    """P(N >= start), term by term at 30 digits."""
    with mpmath.workdps(30):
        s = mpmath.mpf(scale)

        def weight(n: int) -> mpmath.mpf:
            return mpmath.exp(-n / s) if distribution == "laplace" else mpmath.exp(-(mpmath.mpf(n) ** 2) / (2 * s**2))

        last = int(80 * scale) + 80
        total = 1 + 2 * mpmath.fsum(weight(n) for n in range(1, last))
        return float(mpmath.fsum(weight(n) for n in range(start, last)) / total)


@pytest.mark.parametrize("distribution", ["laplace", "gaussian"])
@pytest.mark.parametrize(("scale", "starts"), [(0.3, [1, 2]), (3.7, [1, 9, 20]), (20.0, [1, 30, 85])])
def test_tails_are_those_of_the_formula(distribution: str, scale: float, starts: list[int]) -> None:
    found = upper_tails(distribution, scale, np.array(starts))
    assert found == pytest.approx([exact_upper_tail(distribution, scale, n) for n in starts], rel=1e-9, abs=1e-25)


def test_the_integral_for_wide_gaussians_is_as_good_as_the_sum() -> None:
    scale, starts = 2000.0, np.array([1, 700, 3000, 9000])
    n = np.arange(25_000, dtype=np.float64)
    weights = np.exp(-(n**2) / (2 * scale**2))
    sums = [weights[start:].sum() / (2 * weights[1:].sum() + 1) for start in starts]
    assert upper_tails("gaussian", scale, starts) == pytest.approx(sums, rel=3e-7)


@pytest.mark.parametrize("distribution", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", SCALES)
def test_bins_hold_everything_and_each_enough(distribution: str, scale: str) -> None:
    bins = Bins.of(distribution, float(scale), 20_000, 16)
    masses = bins.masses(float(scale))
    assert masses.sum() == pytest.approx(1, abs=1e-12)
    assert masses.min() * 20_000 >= 20
    assert (np.diff(bins.edges) > 0).all()


def test_the_statistic_of_right_samples_follows_its_law() -> None:
    """500 samples straight from the masses: about as many above the median and the upper tenth as there should be."""
    bins = Bins.of("laplace", 3.7, 20_000, 16)
    masses = bins.masses(3.7)
    generator = np.random.default_rng(3)
    counts = generator.multinomial(20_000, masses, size=500)
    values = ((counts - 20_000 * masses) ** 2 / (20_000 * masses)).sum(axis=1)
    for share in (0.5, 0.1):
        above = int((values > stats.chi2.isf(share, len(masses) - 1)).sum())
        assert stats.binomtest(above, 500, share).pvalue > 1e-6

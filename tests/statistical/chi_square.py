"""Pearson's test against an exact mass function, with its false-alarm rate and its power.

The masses are summed here in floating point from the formula of the distribution, in no way that a sampler shares.
Relative errors of 1e-9 in a mass would not be seen by any test of this size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

ALPHA = 1e-10
SCALES = ("0.3", "1", "3.7", "100", "10000", "1000000")


def upper_tails(distribution: str, scale: float, starts: NDArray[np.int64]) -> NDArray[np.float64]:
    """P(N >= n) for each n >= 1 in `starts`, for a Laplace `scale` or a Gaussian standard deviation `scale`."""
    if distribution == "laplace":
        ratio = np.exp(-1.0 / scale)
        return np.exp(-starts / scale) / (1 + ratio)
    if scale > 1000:
        # The sum of a smooth function is its integral from half a step before the first term, up to a relative
        # error of about (n / scale)^2 / (24 scale^2).
        return stats.norm.sf((starts - 0.5) / scale)
    n = np.arange(int(11 * scale) + 40, dtype=np.float64)
    weights = np.exp(-(n**2) / (2 * scale**2))
    total = 2 * weights[1:].sum() + 1
    beyond = np.append(weights[::-1].cumsum()[::-1], 0.0)
    return beyond[np.minimum(starts, len(n))] / total


@dataclass(frozen=True)
class Bins:
    """Neighbouring integers put together: [-inf, edges[0]), [edges[0], edges[1]), ..., [edges[-1], inf)."""

    distribution: str
    edges: NDArray[np.int64]

    @classmethod
    def of(cls, distribution: str, scale: float, samples: int, most: int) -> Bins:
        """About `most` bins and a few in the far tails, symmetric, each with at least 20 of `samples` expected."""
        least, target = 20.0 / samples, 1.0 / most
        # Candidate borders are dense enough that every step between two of them is small against a bin.
        far = int(60 * scale) + 2
        starts = np.unique(np.concatenate([np.arange(1, 200), np.linspace(1, far, 60_000).astype(np.int64)]))
        tails = upper_tails(distribution, scale, starts)
        first = int(np.flatnonzero(1 - 2 * tails >= target)[0])  # the middle bin grows from {0} on both sides
        chosen = [first]
        while True:
            # A bin takes its share, or half of what is left: the far tail is looked at as well.
            left = float(tails[chosen[-1]])
            after = left - max(least, min(target, left / 2))
            place = max(int(np.searchsorted(-tails, -after)), chosen[-1] + 1)
            if place == len(tails) or tails[place] < least:
                break
            chosen.append(place)
        right = starts[chosen]
        return cls(distribution, np.concatenate([1 - right[::-1], right]))

    def masses(self, scale: float) -> NDArray[np.float64]:
        """The distribution's mass of each bin."""
        right = self.edges[len(self.edges) // 2 :]
        tails = upper_tails(self.distribution, scale, right)
        side = np.append(-np.diff(tails), tails[-1])
        return np.concatenate([side[::-1], [1 - 2 * tails[0]], side])

    def statistic(self, sample: NDArray[np.int64], scale: float) -> float:
        """Pearson's statistic of a sample against the distribution with `scale`."""
        counts = np.bincount(np.searchsorted(self.edges, sample, side="right"), minlength=len(self.edges) + 1)
        expected = self.masses(scale) * len(sample)
        assert expected.min() >= 19.9
        return float(((counts - expected) ** 2 / expected).sum())

    @property
    def limit(self) -> float:
        """The statistic exceeds this with probability ALPHA if the distribution is right."""
        return float(stats.chi2.isf(ALPHA, len(self.edges)))

    def expected_statistic(self, samples: int, scale: float, wrong: float) -> tuple[float, float]:
        """Mean and rough standard deviation of the statistic if the sample has the scale `wrong` instead."""
        p, q = self.masses(scale), self.masses(wrong)
        distance = samples * float(((q - p) ** 2 / p).sum())
        mean = float((q * (1 - q) / p).sum()) + distance
        # Counts are nearly normal: the variance of a quadratic form in them, its cross terms bounded by none.
        variance = 2 * float(((q / p) ** 2).sum()) + 4 * samples * float((q * (q - p) ** 2 / p**2).sum())
        return mean, variance**0.5


def rejects(distribution: str, scale: float, sample: NDArray[np.int64], most_bins: int) -> bool:
    """Whether the sample is refused as draws of the distribution, at ALPHA."""
    bins = Bins.of(distribution, scale, len(sample), most_bins)
    return bins.statistic(sample, scale) > bins.limit

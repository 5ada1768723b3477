"""Sums of many independent losses on a circle of grid cells, with a bound on every error.

Distributions are *tilted* before they are added: multiplied by exp(rate * loss) and normalised, so that the region a
query asks about holds most of the mass and absolute rounding errors are relative to the answer. The sum wraps around a
window; Chernoff bounds say how much can lie outside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from farthing.accounting.algorithms.grid_cells import Index
from farthing.accounting.loss_transforms import Array

Spectrum = NDArray[np.complex128]

ROUNDING = 2.0**-53
TRANSFORM_ERROR = 16.0
"""Error of one entry of a fast Fourier transform, in units of ROUNDING * log2(cells) * (sum of |inputs|)."""

FEW_TAPS = 24
"""Taps times count up to which repeated direct addition beats a transform."""

_TOGETHER = 2**16  # exponents that are computed at once
_SILENT = -80.0  # log of a transform value that cannot matter any more


@dataclass(frozen=True, eq=False)
class TiltedDistribution:
    """`count` copies of a distribution: mass[j] = weight[j] * exp(log_scale - rate * loss[j]), up or down to rounding.

    Weights too small to matter are dropped; `lost` bounds their sum.
    """

    index: Index
    loss: Array
    weight: Array
    log_scale: float
    count: int
    lost: float


class CircularSum(NamedTuple):
    """Cells of a wrapped sum, all >= 0.

    The truth differs by at most `relative` * value in each cell, and by a vector of errors whose largest entry is at
    most `absolute` and whose Euclidean norm is at most `norm`.
    """

    values: Array
    absolute: float
    norm: float
    relative: float

    def blur(self, weights: Array) -> float:
        """A bound on |sum of weights * errors|, relative errors aside."""
        flat = self.absolute * float(np.sum(weights))
        return min(flat, self.norm * _norm(weights) * (1 + 1e-9))


def _norm(values: Array) -> float:
    """The Euclidean norm, without the threads that a linear algebra library would wake up for it."""
    return math.sqrt(float(np.sum(values * values)))


def tilted(
    index: Index, loss: Array, log_mass: Array, rate: float, count: int, sign: float, loss_error: float = 0.0
) -> TiltedDistribution:
    """The distribution with masses exp(log_mass), tilted; weights are rounded up (sign 1) or down (sign -1).

    `loss_error` bounds the rounding of `loss`, beyond two units in its own last place.
    """
    exponent = log_mass + rate * loss
    finite = np.isfinite(exponent)
    if not finite.all():
        index, loss, log_mass, exponent = index[finite], loss[finite], log_mass[finite], exponent[finite]
    peak = float(np.max(exponent))
    log_scale = peak + math.log(float(np.sum(np.exp(exponent - peak))))
    # The argument is off by the rounding of its parts; each part is at most a few units of 2^-53 of its size.
    size = np.abs(log_mass) + np.abs(rate * loss) + abs(log_scale)
    error = 2.0**-48 + 2.0**-50 * size + rate * loss_error
    # Long before they underflow: subnormal numbers are slow, and so little cannot matter.
    significant = exponent - log_scale > -300.0
    weight = np.exp(exponent[significant] - log_scale) * np.maximum(1 + sign * error[significant], 0.0)
    lost = 1e-130 * (len(significant) - int(np.count_nonzero(significant)))
    return TiltedDistribution(index[significant], loss[significant], weight, log_scale, count, lost)


def lost_mass(distributions: Sequence[TiltedDistribution]) -> float:
    """A bound on the tilted mass of all sums with a dropped part; 2 pays for totals a little above 1."""
    return 2 * sum(distribution.count * distribution.lost for distribution in distributions)


def circular_sum(distributions: Sequence[TiltedDistribution], start: int, cells: int) -> CircularSum:
    """The distribution of the sum of all copies of all distributions, modulo `cells`, in cells start ... start + cells
    - 1.

    Statement:
        Let x^ be the transform of a distribution as computed, |x^ - x| <= e = C u log2(N) ||distribution||_1 at each
        frequency. Then the product of n_i-th powers is off by at most prod A_i^n_i * sum n_i e_i / A_i with A_i =
        |x_i^| + e_i, plus a relative 3 u (n_i + 1) for the multiplications; the inverse transform adds C u log2(N)
        times the mean modulus. In Euclidean norm a transform errs by C u log2(N) times the norm of its result, so that
        the errors of the sum also have norm at most sum n_i C u log2(N) ||distribution_i||_2, plus those of the
        multiplications and of the inverse.
    Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.6 and Theorem 24.2: every
        output is a sum over paths of log2(N) butterflies, each with a relative error below 8 u; we take C = 16.
        Telescoping |a^n - b^n| <= n max(|a|, |b|)^(n-1) |a - b|. Multiplying n times by squaring: (n - 1) sqrt(5) u.
    Assumes: weights >= 0; `cells` has no prime factor above 5; IEEE double arithmetic.
    Direction: two-sided, as `absolute` and `relative`.
    Checked by: tests/theorems/test_grid_fourier.py
    """
    dense = [distribution for distribution in distributions if len(distribution.index) * distribution.count > FEW_TAPS]
    if dense:
        values, absolute, norm = _transformed(dense, cells)
    else:
        values, absolute, norm = np.zeros(cells), 0.0, 0.0
        values[0] = 1.0
    relative = 2.0**-50
    for distribution in distributions:
        if len(distribution.index) * distribution.count > FEW_TAPS:
            continue
        # Positive terms only: errors stay relative, and earlier errors are averaged, not increased.
        total = max(1.0, float(np.sum(distribution.weight)) * (1 + 1e-12))
        for _ in range(distribution.count):
            values = _added_directly(values, distribution)
            relative += (len(distribution.index) + 2) * 2 * ROUNDING
            absolute, norm = absolute * total, norm * total
    base = sum(int(distribution.index[0]) * distribution.count for distribution in distributions)
    return CircularSum(np.roll(values, -((start - base) % cells)), absolute, norm, relative)


def _added_directly(values: Array, distribution: TiltedDistribution) -> Array:
    cells = len(values)
    out = np.zeros(cells)
    buffer = np.empty(cells)
    for place, weight in zip(
        ((distribution.index - distribution.index[0]) % cells).tolist(),
        distribution.weight.tolist(),
        strict=True,
    ):
        np.multiply(values, weight, out=buffer)
        out[place:] += buffer[: cells - place]
        if place:
            out[:place] += buffer[cells - place :]
    return out


def _transformed(distributions: Sequence[TiltedDistribution], cells: int) -> tuple[Array, float, float]:
    """The sum by fast Fourier transforms: its cells, and the largest entry and the norm of their errors."""
    unit = TRANSFORM_ERROR * ROUNDING * max(1.0, math.log2(cells))
    active = np.arange(cells // 2 + 1)
    product = np.ones(len(active), dtype=np.complex128)
    log_bound, doubt = np.zeros(len(active)), np.zeros(len(active))
    silent = norm = 0.0
    growth = 1.0  # totals a little above 1, raised to large counts
    for distribution in distributions:
        total = float(np.sum(distribution.weight))
        growth *= math.exp(min(300.0, distribution.count * max(0.0, math.log(total * (1 + 2 * unit)))))
        # bincount adds colliding cells in order; len / cells + 1 bounds how many collide.
        entry = unit + (len(distribution.index) // cells + 1) * ROUNDING
        place = (distribution.index - distribution.index[0]) % cells
        wrapped = np.asarray(np.bincount(place, weights=distribution.weight, minlength=cells), dtype=np.float64)
        norm += distribution.count * entry * _norm(wrapped)
        spectrum = np.fft.rfft(wrapped)[active]
        bound = np.abs(spectrum) + total * entry
        log_bound += distribution.count * np.log(bound)
        doubt += distribution.count * total * entry / bound + 3 * ROUNDING * (distribution.count + 1)
        loud = log_bound > _SILENT
        if not loud.all():
            silent = math.exp(_SILENT)
            active, spectrum, product = active[loud], spectrum[loud], product[loud]
            log_bound, doubt = log_bound[loud], doubt[loud]
        product *= _power(spectrum, distribution.count)
    full = np.zeros(cells // 2 + 1, dtype=np.complex128)
    full[active] = product
    size = np.abs(product)
    off = np.exp(log_bound) * doubt
    rest = 4 * silent * growth + 1e-290  # silent frequencies and underflow, in each cell
    absolute = (float(np.sum(off)) + unit * float(np.sum(size))) * 2.02 / cells + rest
    root = math.sqrt(2.0 / cells)
    multiplied = 3 * ROUNDING * sum(distribution.count + 1 for distribution in distributions) * _norm(size) * root
    norm = min(norm * growth + multiplied, _norm(off) * root)
    norm += unit * _norm(size) * root
    return np.maximum(np.fft.irfft(full, cells), 0.0), absolute, norm * 1.01 + rest * math.sqrt(cells)


def _power(base: Spectrum, count: int) -> Spectrum:
    """base ** count by repeated squaring: its error is known, that of a library power is not."""
    result = None
    while True:
        if count & 1:
            result = base if result is None else result * base
        count >>= 1
        if not count:
            return np.ones_like(base) if result is None else result
        base = base * base


class Tails(NamedTuple):
    """Chernoff's bound on a tilted sum: log P[sum >= x] <= level - rate * x, for several rates of either sign."""

    levels: Array
    rates: Array

    def top(self, exponent: float) -> float:
        """A loss that the sum exceeds with probability at most exp(-exponent)."""
        use = self.rates > 0
        return float(np.min((self.levels[use] + exponent) / self.rates[use]))

    def bottom(self, exponent: float) -> float:
        """A loss that the sum stays below with probability at most exp(-exponent)."""
        use = self.rates < 0
        return float(np.max((self.levels[use] + exponent) / self.rates[use]))

    def outside(self, bottom: float, top: float) -> float:
        """An upper bound of the probability of being outside [bottom, top]."""
        high = np.min(np.where(self.rates > 0, self.levels - self.rates * top, math.inf))
        low = np.min(np.where(self.rates < 0, self.levels - self.rates * bottom, math.inf))
        return math.exp(min(700.0, float(high))) + math.exp(min(700.0, float(low)))


def tails(distributions: Sequence[TiltedDistribution], floor: float, tilt: float) -> Tails:
    """Chernoff bounds for the sum of all copies, at rates that suit its spread (at least `floor`) and its tilt.

    A distribution that was tilted at a rate has tails of at least that rate, whatever its spread.
    """
    variance = 0.0
    means = []
    for distribution in distributions:
        total = float(np.sum(distribution.weight))
        mean = float(np.sum(distribution.weight * distribution.loss)) / total
        means.append(mean)
        variance += distribution.count * float(np.sum(distribution.weight * (distribution.loss - mean) ** 2)) / total
    spread = max(math.sqrt(variance), floor)
    spreads = np.array([0.7, 1.5, 2.5, 4.0, 5.5, 7.0, 9.0, 14.0]) / spread
    rates = np.concatenate([spreads, -spreads, np.array([0.5, -0.3, -0.6, -0.9]) * tilt])
    levels = np.zeros(len(rates))
    for distribution, mean in zip(distributions, means, strict=True):
        away = distribution.loss - mean
        reached = away[distribution.weight > 0]
        peaks = np.where(rates > 0, rates * np.max(reached), rates * np.min(reached))
        sums = np.empty(len(rates))
        some = max(1, _TOGETHER // len(away))
        for start in range(0, len(rates), some):  # rates at a time, so that arrays stay small
            own = slice(start, start + some)
            exponents = np.multiply.outer(rates[own], away)
            exponents -= peaks[own, None]
            np.clip(exponents, -200.0, 0.0, out=exponents)
            sums[own] = np.sum(distribution.weight * np.exp(exponents, out=exponents), axis=1)
        values = np.array([math.log(total) for total in sums.tolist()]) + peaks
        shifts = rates * mean
        levels += distribution.count * (values + shifts + 2.0**-45 * (1 + peaks + np.abs(shifts)))
    return Tails(levels, rates)

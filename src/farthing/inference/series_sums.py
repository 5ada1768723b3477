"""Sums of noise with no common lattice, some of it coarse: a Fourier series with its errors added up."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from farthing.inference.terms import (
    Floats,
    Parts,
    characteristic_function,
    chernoff_radius,
    variance_of,
    variance_of_parts,
)

_BLUR = 1e-3  # standard deviation of the blur over that of the sum
_REACH = 4.5  # a blur further out than this many of its deviations has probability 6.8e-6
_WRAPPED = 1e-7  # mass beyond the period
_SLACK = 6.9e-6 + _WRAPPED + 2e-6  # blur, wrapping, terms left out
_SHORTEST, _LONGEST_OVER_BLUR = 1 << 14, 30_000


@dataclass(frozen=True, eq=False)
class SeriesSum:
    """`within[j]` is at most P[|X| <= shift + j * spacing], by no more than the blur and 1e-5 of slack."""

    spacing: float
    shift: float
    within: Floats

    def tail(self, x: float) -> float:
        """P[|X| > x] or a little more."""
        j = math.floor((x - self.shift) / self.spacing)
        return float(1 - self.within[min(j, len(self.within) - 1)]) if j >= 0 else 1.0

    def error(self, confidence: float) -> float:
        """An e with P[|X| <= e] >= confidence, a few thousandths of a standard deviation too large."""
        j = int(np.searchsorted(self.within, confidence))
        return self.shift + self.spacing * j if j < len(self.within) else math.inf


def series_sum(parts: Parts) -> SeriesSum:
    """The law of the sum plus a small normal blur, from its cosine series over a period.

    With Z the blur, P[|X| <= x + z] >= P[|X + Z| <= x] - P[|Z| > z]. The blurred law has a density whose series
    converges, whatever the lattices of the terms.
    """
    deviation = math.sqrt(variance_of_parts(parts))
    period = chernoff_radius(parts, _WRAPPED) + 6 * _BLUR * deviation
    blur = max(_BLUR * deviation, period / _LONGEST_OVER_BLUR)
    highest = min([5.3 / blur, *(_frequency_limit(part, blur) for part in parts)])
    terms = math.ceil(highest * period / math.pi)
    points = max(_SHORTEST, 1 << (2 * terms).bit_length())
    k = np.arange(1, terms + 1)
    frequencies = np.asarray(math.pi / period * k, dtype=float)
    weights = np.zeros(points + 1, dtype=complex)
    blurred = characteristic_function(parts, frequencies) * np.exp(-((blur * frequencies) ** 2) / 2)
    # sum_k (2 / (pi k)) phi_k sin(pi k j / points) for all j at once
    weights[1 : terms + 1] = -1j * blurred / (math.pi * k)
    sines = np.fft.irfft(weights, 2 * points)[: points + 1] * 2 * points
    within = np.linspace(0, 1, points + 1) + sines - _SLACK
    return SeriesSum(
        period / points, _REACH * blur, np.maximum.accumulate(np.clip(within, 0.0, 1.0 - _SLACK))
    )


def _frequency_limit(part: tuple[str, float, float, int], blur: float) -> float:
    """Beyond it this term alone makes what is left of the series smaller than 1e-6."""
    kind, scale, size, count = part
    if kind == "normal":
        return math.sqrt(28 / count) / (size * scale)
    # The term's transform returns to 1 at multiples of 2 pi / size; from pi / size on the blur must have taken over.
    if size * 5.3 > math.pi * blur:
        return math.inf
    if kind == "gaussian":
        return math.pi / (size * scale) * math.sqrt(7 / count)
    # sin(y) >= 2 y / pi gives phi(u) <= c / u^2; the rest of the series is below (c / u^2)^count / (pi count).
    c = math.pi**2 / (2 * variance_of("laplace", scale) * size**2)
    return math.sqrt(c) * math.pow(1e6 / (math.pi * count), 1 / (2 * count))

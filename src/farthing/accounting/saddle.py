"""Where to put the line of integration, and how finely to sample it.

The curve D(x) = E[(1 - exp(x - L))_+] is a contour integral (engines/contour.py). The line runs through the saddle
point of the integrand, where |M(z) exp(-x z) / (z (z+1))| is smallest on the real axis: there the integral has no
cancellation, so its *relative* accuracy is that of the arithmetic, at delta = 0.1 and at 1e-300 alike.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from farthing.accounting.transforms import Array, Cumulants, Transform

_SMALLEST, _LARGEST = 1e-12, 1e18  # where c is looked for


class Saddle(NamedTuple):
    """The line z = c + i t, the loss x it belongs to, and the cumulants there."""

    c: float
    x: float
    at_c: Cumulants


def saddle_for_delta(transform: Transform, log_delta: float) -> Saddle:
    """The saddle whose first-order approximation of D(x) has the given logarithm.

    Both x and -log D grow with c, so one bisection on log c finds c, x and delta together.
    """
    low, high = math.log(_SMALLEST), math.log(_LARGEST)
    guess = 0.0
    for step in range(80):
        c = math.exp(guess)
        cumulants = transform.cumulants(c)
        if _log_delta(c, cumulants) > log_delta:
            low = guess
        else:
            high = guess
        if high - low < 1e-3:
            break
        # The first steps look around c = 1, where it mostly is; then plain bisection.
        guess = min(max(guess + (2.0 if low == guess else -2.0), low), high) if step < 3 else (low + high) / 2
        if not low < guess < high:
            guess = (low + high) / 2
    c = math.exp(high)
    cumulants = transform.cumulants(c)
    return Saddle(c, _loss(c, cumulants), cumulants)


def saddle_for_loss(transform: Transform, x: float) -> Saddle:
    """The saddle that belongs to the loss x."""
    low, high = math.log(_SMALLEST), math.log(_LARGEST)
    guess = 0.0
    for _ in range(80):
        c = math.exp(guess)
        if _loss(c, transform.cumulants(c)) < x:
            low = guess
        else:
            high = guess
        if high - low < 1e-3:
            break
        guess = (low + high) / 2
    c = math.exp(high)
    return Saddle(c, x, transform.cumulants(c))


def _loss(c: float, k: Cumulants) -> float:
    return k.first - 1 / c - 1 / (c + 1)


def _log_delta(c: float, k: Cumulants) -> float:
    """The saddle-point approximation of log D at the x that belongs to c."""
    curvature = k.second + 1 / c**2 + 1 / (c + 1) ** 2
    return k.value - _loss(c, k) * c - math.log(c) - math.log(c + 1) - 0.5 * math.log(2 * math.pi * curvature)


class Alias(NamedTuple):
    """A sampling period P of the loss, and the bound on what sampling adds, relative to exp(K(c) - c x)."""

    period: float
    bound: float


def alias_for(transform: Transform, saddle: Saddle, tolerance: float = 1e-18) -> float:
    """A period so long that the aliases of D are below `tolerance` of exp(K(c) - c x)."""
    left, right = _alias_candidates(transform, saddle)
    need = -math.log(tolerance)
    shortest_left = min((level + need) / rate for level, rate in left)
    shortest_right = min((level + need) / rate for level, rate in right)
    return max(shortest_left, shortest_right, 1e-300)


def alias_bound(transform: Transform, saddle: Saddle, x: float, period: float) -> float:
    """Upper bound of sum over m != 0 of exp(c m P) D(x + m P), relative to exp(K(c) - c x).

    Statement:
        Sampling the integrand at step 2 pi / P returns sum_m exp(c m P) D(x + m P). For any c1 in [0, c) and
        c2 > c the terms m < 0 and m > 0 are at most exp(K(c1) - c1 (x + m P) + c m P) and
        exp(K(c2) - c2 (x + m P) + c m P): two geometric series.
    Source: Poisson summation; D(x) <= M(s) exp(-s x) for s >= 0 (Chernoff), as (1 - exp(-u))_+ <= exp(s u).
    Assumes: M finite at c1 and c2; period > 0.
    Direction: upper bound. All terms are >= 0, so an upper bound of D needs none of this.
    Checked by: tests/theorems/test_contour.py
    """
    best = []
    for candidates in _alias_candidates(transform, saddle, x):
        bound = math.inf
        for level, rate in candidates:
            decay = -math.expm1(-rate * period)
            exponent = level - rate * period
            if decay > 0 and exponent < 700:
                bound = min(bound, math.exp(exponent) / decay * (1 + 1e-9))
        best.append(bound)
    return best[0] + best[1]


def _alias_candidates(
    transform: Transform, saddle: Saddle, x: float | None = None
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """(level, rate) pairs: the aliases one period away are below exp(level - rate * P)."""
    x = saddle.x if x is None else x
    c, here = saddle.c, saddle.at_c.value - saddle.at_c.error
    left = []
    for c1 in (0.0, 0.25 * c, 0.5 * c, 0.75 * c, 0.9 * c):
        k = transform.cumulants(c1)
        left.append((k.value + k.error - here + (c - c1) * x, c - c1))
    right = []
    width = 1 / math.sqrt(saddle.at_c.second + 1 / c**2)  # the tilted loss has about this inverse spread
    for gap in (width, 2 * width, 4 * width, 8 * width, 16 * width, 64 * width):
        k = transform.cumulants(c + gap)
        if math.isfinite(k.value):
            right.append((k.value + k.error - here - gap * x, gap))
    return left, right


def dyadic(value: float, bits: int = 20) -> float:
    """`value` rounded down to a few bits, so that integer multiples of it are exact doubles."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(math.floor(mantissa * 2**bits), exponent - bits)


def nodes(step: float, first: int, last: int) -> Array:
    """The sampling points first * step ... (last - 1) * step, exact when `step` is dyadic."""
    return np.arange(first, last, dtype=np.float64) * step

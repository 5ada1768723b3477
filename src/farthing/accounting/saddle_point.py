"""Where to put the line of integration, and how finely to sample it.

The curve D(x) = E[(1 - exp(x - L))_+] is a contour integral (engines/contour.py). The line runs through the saddle
point of the integrand, where |M(z) exp(-x z) / (z (z+1))| is smallest on the real axis: there the integral has no
cancellation, so its *relative* accuracy is that of the arithmetic, at delta = 0.1 and at 1e-300 alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from farthing.accounting.loss_transforms import Array, Cumulants, Transform

_SMALLEST, _LARGEST = 1e-12, 1e18  # where c is looked for


class Saddle(NamedTuple):
    """The line z = c + i t, the loss x it belongs to, and the cumulants there."""

    c: float
    x: float
    at_c: Cumulants


def saddle_for_delta(transform: Transform, log_delta: float) -> Saddle:
    """The saddle whose first-order approximation of D(x) has the given logarithm.

    Both x and -log D grow with c, so one search on log c finds c, x and delta together.
    """
    c = _crossing(lambda c: _log_delta(c, transform.cumulants(c)) > log_delta)
    cumulants = transform.cumulants(c)
    return Saddle(c, _loss(c, cumulants), cumulants)


def saddle_for_loss(transform: Transform, x: float) -> Saddle:
    """The saddle that belongs to the loss x."""
    c = _crossing(lambda c: _loss(c, transform.cumulants(c)) < x)
    return Saddle(c, x, transform.cumulants(c))


def _crossing(below: Callable[[float], bool]) -> float:
    """The c up to which `below` holds, to a few percent: any line is valid, the saddle's is only the best."""
    position, stride = 0.0, 1.5
    direction = 1 if below(1.0) else -1
    while _SMALLEST < math.exp(position) < _LARGEST:
        position += direction * stride
        stride *= 1.5
        if below(math.exp(position)) != (direction > 0):
            break
    low, high = sorted((position, position - direction * stride / 1.5))
    while high - low > 0.03:
        middle = (low + high) / 2
        if below(math.exp(middle)):
            low = middle
        else:
            high = middle
    return math.exp(high)


def _loss(c: float, k: Cumulants) -> float:
    return k.first - 1 / c - 1 / (c + 1)


def _log_delta(c: float, k: Cumulants) -> float:
    """The saddle-point approximation of log D at the x that belongs to c."""
    curvature = k.second + 1 / c**2 + 1 / (c + 1) ** 2
    return k.value - _loss(c, k) * c - math.log(c) - math.log(c + 1) - 0.5 * math.log(2 * math.pi * curvature)


@dataclass(frozen=True)
class Aliases:
    """What sampling at step 2 pi / P adds to D, bounded.

    Statement:
        Sampling the integrand at step 2 pi / P returns sum_m exp(c m P) D(x + m P). For any c1 in [0, c) and
        c2 > c the terms m < 0 and m > 0 are at most exp(K(c1) - c1 (x + m P) + c m P) and
        exp(K(c2) - c2 (x + m P) + c m P): two geometric series.
    Source: Poisson summation; D(x) <= M(s) exp(-s x) for s >= 0 (Chernoff), as (1 - exp(-u))_+ <= exp(s u).
    Assumes: M finite at c1 and c2; period > 0.
    Direction: upper bound. All terms are >= 0, so an upper bound of D needs none of this.
    Checked by: tests/theorems/test_contour.py

    `left` and `right` hold (K(c') - K(c), |c' - c|) for a few lines on either side.
    """

    left: tuple[tuple[float, float], ...]
    right: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, transform: Transform, saddle: Saddle) -> Aliases:
        """Evaluate the transform on a few lines beside the saddle's."""
        c, here = saddle.c, saddle.at_c.value - saddle.at_c.error
        width = 1 / math.sqrt(saddle.at_c.second + 1 / c**2)  # the tilted loss has about this inverse spread
        lines = np.array([0.0, 0.5 * c, 0.8 * c, c + 2 * width, c + 6 * width, c + 18 * width])
        levels = (transform.log_transform_upper(lines) - here).tolist()
        pairs = [(level, abs(line - c)) for level, line in zip(levels, lines.tolist(), strict=True)]
        left, right = pairs[:3], [pair for pair in pairs[3:] if math.isfinite(pair[0])]
        return cls(tuple(left), tuple(right))

    def period(self, x: float, tolerance: float) -> float:
        """A period so long that the aliases are below `tolerance` of exp(K(c) - c x)."""
        need = -math.log(tolerance)
        left = min((level + rate * x + need) / rate for level, rate in self.left)
        right = min((level - rate * x + need) / rate for level, rate in self.right)
        return max(left, right, 1e-300)

    def bound(self, x: float, period: float) -> float:
        """Upper bound of all aliases, relative to exp(K(c) - c x)."""
        total = 0.0
        for side, sign in ((self.left, 1), (self.right, -1)):
            best = math.inf
            for level, rate in side:
                decay, exponent = -math.expm1(-rate * period), level + sign * rate * x - rate * period
                slack = 2.0**-48 * (abs(level) + rate * (abs(x) + period))
                if decay > 0 and exponent < 700:
                    best = min(best, math.exp(exponent + slack) / decay)
            total += best
        return total * (1 + 1e-9)


def dyadic(value: float, bits: int = 20) -> float:
    """`value` rounded down to a few bits, so that integer multiples of it are exact doubles."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(math.floor(mantissa * 2**bits), exponent - bits)


def nodes(step: float, first: int, last: int) -> Array:
    """The sampling points first * step ... (last - 1) * step, exact when `step` is dyadic."""
    return np.arange(first, last, dtype=np.float64) * step

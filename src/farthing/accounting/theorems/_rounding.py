"""The ends of balls as the nearest floats on the safe side.

`farthing.numerics.balls` always steps one float outwards. Theorems state sums such as 3.0 exactly, so here the step
is taken only when it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint

_GOLDEN = (math.sqrt(5) - 1) / 2


def best_order(log_moment: Callable[[float], float], delta: float, improved: bool) -> float:
    """alpha near the minimum of either conversion, for log_moment(z) = z times the divergence of order 1 + z."""
    log_inverse = -math.log(delta)

    def price(log_z: float) -> float:
        z = math.exp(log_z)
        classic = (log_moment(z) + log_inverse) / z
        return classic - math.log1p(1 / z) - math.log1p(z) / z if improved else classic

    # A coarse look over many scales (alpha - 1 from 6e-6 to 2e16), then golden sections around the best.
    best = min((-12.0 + 0.5 * i for i in range(100)), key=price)
    low, high = best - 0.5, best + 0.5
    for _ in range(40):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, right) if price(left) <= price(right) else (left, high)
    return 1 + math.exp((low + high) / 2)


def rounded_up(ball: Any) -> float:
    """The least float known to be at least every point of the ball; inf when the ball says nothing."""
    if not ball.is_finite():
        return math.inf
    value = _nearest(ball.upper())
    # float() rounds to nearest, so it may have gone down.
    while not flint.arb(value) >= ball:
        value = math.nextafter(value, math.inf)
    return value


def rounded_down(ball: Any) -> float:
    """The largest float known to be at most every point of the ball; -inf when the ball says nothing."""
    if not ball.is_finite():
        return -math.inf
    value = _nearest(ball.lower())
    while not flint.arb(value) <= ball:
        value = math.nextafter(value, -math.inf)
    return value


def ball_of(fraction: Fraction) -> Any:
    """A ball around a rational number."""
    return flint.arb(flint.fmpq(fraction.numerator, fraction.denominator))


def ball_between(lower: float, upper: float) -> Any:
    """A ball that holds both ends."""
    return flint.arb(lower).union(flint.arb(upper))


def _nearest(ball: Any) -> float:
    """Near the middle of a very thin ball; a number too large for a float becomes an infinity of its sign."""
    try:
        return float(ball)
    except OverflowError:
        return math.inf if ball > 0 else -math.inf

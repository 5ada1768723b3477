"""The ends of balls as the nearest floats on the safe side.

`farthing.numerics.balls` always steps one float outwards. Theorems state sums such as 3.0 exactly, so here the step
is taken only when it is needed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import flint


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

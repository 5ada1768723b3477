"""From a curve with bounds to an epsilon with bounds: one-sided searches that stop only on a verified point."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

_SLACK = 2.0**-46  # comparisons of logarithms: the rounding of log and of the sums that made them


class Curve(NamedTuple):
    """A lower and an upper bound on log D(x) at one x."""

    low: float
    high: float


def least_epsilon(
    log_delta: Callable[[float], Curve],
    target_low: float,
    target_high: float,
    guess: float,
    slope: float,
    top: float,
) -> tuple[float, float]:
    """(lower, upper) around the least x >= 0 with D(x) <= target.

    `guess` is close to the answer and `slope` about -d log D / dx there; both only save steps. The upper end is
    a point where even the upper bound of D is at or below the target; the lower end one where even the lower bound of D
    is at or above it. D decreases, so the answer lies between. `top` is the largest loss: D(top) = 0.
    """
    slope = max(slope, 1e-12)
    log_delta = lru_cache(maxsize=4)(log_delta)  # both searches start at the guess
    guess = min(max(guess, 0.0), top)

    def excess_above(x: float) -> float:
        return log_delta(x).high + _SLACK * (1 + abs(target_low)) - target_low

    def excess_below(x: float) -> float:
        return log_delta(x).low - _SLACK * (1 + abs(target_high)) - target_high

    return _from_below(excess_below, guess, slope), _from_above(excess_above, guess, slope, top)


def _from_above(excess: Callable[[float], float], guess: float, slope: float, top: float) -> float:
    """The least x found with excess(x) <= 0; `top` is always one."""
    x, slope = _near_root(excess, guess, slope, top)
    step = 0.0
    for _ in range(200):
        value = excess(x)
        if value <= 0:
            return x
        if not x < top:
            break
        step = max(1.5 * step, 1.001 * value / slope if math.isfinite(value) else 0.0, 1.2e-16 * x, 1e-300)
        x = min(x + step, top)
    return top


def _from_below(excess: Callable[[float], float], guess: float, slope: float) -> float:
    """The largest x found with excess(x) >= 0; 0 is always allowed."""
    x, slope = _near_root(excess, guess, slope, math.inf)
    step = 0.0
    for _ in range(200):
        if x <= 0:
            return 0.0
        value = excess(x)
        if value >= 0:
            return x
        step = max(1.5 * step, -1.001 * value / slope if math.isfinite(value) else 0.0, 1.2e-16 * x, 1e-300)
        x = max(x - step, 0.0)
    return 0.0


def _near_root(excess: Callable[[float], float], x: float, slope: float, top: float) -> tuple[float, float]:
    """A few secant steps towards excess = 0, and the slope there."""
    before: tuple[float, float] | None = None
    for _ in range(12):
        value = excess(x)
        if not math.isfinite(value):
            break
        if before is not None and x != before[0]:
            secant = (before[1] - value) / (x - before[0])
            slope = secant if 0.01 * slope < secant < 100 * slope else slope
        step = value / slope
        if abs(step) < 2e-16 * x or (before is not None and abs(value) > abs(before[1]) / 2 and abs(step) < 1e-12 * x):
            break
        before, x = (x, value), min(max(x + step, 0.0), top)
    return x, slope

"""One-sided search on the proven curves: each epsilon returned was itself evaluated, so no root is trusted."""

from __future__ import annotations

import math
from collections.abc import Callable

from farthing.accounting.engines.grid_compose import Curves
from farthing.numerics import Bounds

_MOST_STEPS = 100


def last_above(
    curve: Callable[[float], float], target: float, guess: float, slope: float, close: float
) -> float:
    """An x >= 0 with curve(x) > target, within about `close` of the crossing; -inf when even curve(0) <= target.

    >>> x = last_above(lambda x: -x * x, -2.0, 1.0, 1.0, 1e-9)
    >>> x * x < 2.0 < (x + 1e-8) ** 2
    True
    """
    return _crossing(curve, target, guess, slope, close)[0]


def first_below(
    curve: Callable[[float], float], target: float, guess: float, slope: float, close: float
) -> float:
    """An x >= 0 with curve(x) <= target, within about `close` of the crossing; inf when none was found.

    >>> x = first_below(lambda x: -x * x, -2.0, 1.0, 1.0, 1e-9)
    >>> (x - 1e-8) ** 2 < 2.0 <= x * x
    True
    """
    return _crossing(curve, target, guess, slope, close, below=True)[1]


def _crossing(
    curve: Callable[[float], float],
    target: float,
    guess: float,
    slope: float,
    close: float,
    below: bool = False,
) -> tuple[float, float]:
    """Secant steps inside a bracket, each aimed a little to the wanted side of the crossing."""
    low, high = -math.inf, math.inf
    at_low = at_high = math.nan
    x, before, slow = max(guess, 0.0), math.inf, 0
    for step in range(_MOST_STEPS):
        excess = curve(x) - target
        if excess <= 0:
            high, at_high = x, excess
        else:
            low, at_low = x, excess
        width = high - low
        if width < math.inf and at_low > at_high > -math.inf:
            slope = (at_low - at_high) / width
        near = slope * close
        if high == 0.0 or width <= close or (-at_high <= near if below else at_low <= near):
            break
        # From the wanted side when that is known: it is the end that has to come closer.
        start, at = (high, at_high) if high < math.inf and (below or low == -math.inf) else (low, at_low)
        x = start + at / slope + (close if below else -close) / 2
        if width < math.inf:
            slow = slow + 1 if width > before / 2 else 0
            before = width
            if not low < x < high or slow > 2:
                x, slow = (low + high) / 2, 0
        else:
            # One side only: go at least a growing step in the other direction.
            stride = close * 3.0**step
            if math.isinf(high):
                x = max(x, low + stride)
            else:
                x = max(0.0, min(x, high - stride) if math.isfinite(x) else high - stride)
        if not x < 1e30:
            break
    return low, high


def epsilon_between(curves: Curves, log_delta: float, guess: float, tolerance: float) -> Bounds:
    """Bounds on the smallest epsilon >= 0 with D(epsilon) <= exp(log_delta)."""
    slope = curves.upper.rate + 0.5
    close = 1e-11 * max(1.0, abs(guess)) if curves.exact else tolerance / 500
    high = math.inf
    if curves.upper.log_infinite <= log_delta:
        high = first_below(curves.upper.log_delta, log_delta, guess, slope, close)
    # The lower curve says something only near the loss it was tilted for.
    start = min(max(high, guess - 3 / slope), guess + 3 / slope)
    low = last_above(curves.lower.log_delta, log_delta, start, slope, close)
    low = max(low, 0.0)
    # Splitting spreads a loss twice as much as merging narrows it, so the truth is nearer to the lower bound.
    return Bounds(low, high, low + (high - low) / 3 if math.isfinite(high) else math.nan)


def delta_from_logs(low: float, high: float, slack: float) -> Bounds:
    """Bounds on a probability from bounds on its logarithm.

    >>> delta_from_logs(-2.0, -1.0, 0.0).upper > math.exp(-1.0)
    True
    """
    lower = math.exp(min(low - slack, 0.0)) * (1 - 2.0**-50) if low > -math.inf else 0.0
    upper = min(1.0, math.exp(min(high + slack, 0.0)) * (1 + 2.0**-50)) if high > -math.inf else 0.0
    if high > -math.inf:
        upper = max(upper, 5e-324)  # what underflows is not zero
    return Bounds(min(lower, upper), upper, lower + (upper - lower) / 3)


def delta_between(curves: Curves, epsilon: float) -> Bounds:
    """Bounds on D(epsilon)."""
    return delta_from_logs(curves.lower.log_delta(epsilon), curves.upper.log_delta(epsilon), 2.0**-50)

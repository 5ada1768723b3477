"""From zero-concentrated DP to (epsilon, delta), the classic way."""

from __future__ import annotations

import math

import flint

from farthing.accounting.theorems._rounding import rounded_up
from farthing.numerics.balls import precision
from farthing.privacy.events import checked_delta, checked_epsilon


def epsilon_of_zcdp(rho: float, delta: float) -> float:
    """The epsilon at `delta` of any mechanism that is rho-zCDP.

    Statement:
        A rho-zCDP mechanism is (rho + 2 sqrt(rho ln(1 / delta)), delta)-DP for every 0 < delta < 1.
    Source: Bun & Steinke, arXiv:1605.02065v1, Proposition 1.3.
    Assumes: nothing more.
    Direction: an upper bound, rounded up; charge it. inf at delta = 0 (unless rho = 0).
    Checked by: tests/theorems/test_zcdp_conversion.py

    >>> round(epsilon_of_zcdp(0.5, 1e-6), 6)
    5.756522
    """
    rho, delta = checked_epsilon(rho, "rho"), checked_delta(delta)
    if rho == 0:
        return 0.0
    if delta == 0:
        return math.inf
    with precision(128):
        return rounded_up(rho + 2 * (-rho * flint.arb(delta).log()).sqrt())

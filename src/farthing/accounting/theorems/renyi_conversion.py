"""From Renyi to (epsilon, delta), the classic way."""

from __future__ import annotations

import math

import flint

from farthing.accounting.theorems._rounding import rounded_up
from farthing.accounting.theorems.renyi_of_pure import checked_order
from farthing.numerics.balls import precision
from farthing.privacy.events import checked_delta, checked_epsilon


def epsilon_of_renyi(alpha: float, divergence: float, delta: float) -> float:
    """The epsilon at `delta` of any mechanism that is (alpha, divergence)-RDP.

    Statement:
        An (alpha, r)-RDP mechanism is (r + ln(1 / delta) / (alpha - 1), delta)-DP for every 0 < delta < 1.
    Source: Mironov, arXiv:1702.07476v3, Proposition 3.
    Assumes: alpha > 1.
    Direction: an upper bound, rounded up; charge it. inf at delta = 0, except at alpha = inf, where r is enough.
    Checked by: tests/theorems/test_renyi_conversion.py

    >>> epsilon_of_renyi(11.0, 0.5, 1e-6)
    1.8815510557964275
    """
    alpha, divergence = checked_order(alpha), checked_epsilon(divergence, "divergence")
    delta = checked_delta(delta)
    if math.isinf(alpha):
        return divergence
    if delta == 0:
        return math.inf
    with precision(128):
        return rounded_up(divergence - flint.arb(delta).log() / (flint.arb(alpha) - 1))

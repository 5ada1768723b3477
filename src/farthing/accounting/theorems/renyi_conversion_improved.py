"""From Renyi to (epsilon, delta), the tighter way."""

from __future__ import annotations

import math

import flint

from farthing.accounting.theorems._rounding import rounded_up
from farthing.accounting.theorems.renyi_of_pure import checked_order
from farthing.numerics.balls import precision
from farthing.privacy.events import checked_delta, checked_epsilon


def epsilon_of_renyi_improved(alpha: float, divergence: float, delta: float) -> float:
    """The epsilon at `delta` of any mechanism that is (alpha, divergence)-RDP; never above the classic one.

    Statement:
        An (alpha, r)-RDP mechanism is (epsilon, delta)-DP for every 0 < delta < 1 with
            epsilon = max(0, r + ln(1 - 1 / alpha) - ln(alpha delta) / (alpha - 1)).
    Source: Canonne, Kamath & Steinke, arXiv:2004.00010v4, Proposition 12; the same bound is in Asoodeh, Liao,
        Calmon, Kosut & Sankar, arXiv:2001.05990v1, equation 20, and Balle, Barthe, Gaboardi, Hsu & Sato,
        arXiv:1905.09982, Theorem 21.
    Assumes: alpha > 1.
    Direction: an upper bound, rounded up; charge it. inf at delta = 0, except at alpha = inf, where r is enough.
    Checked by: tests/theorems/test_renyi_conversion.py

    >>> epsilon_of_renyi_improved(11.0, 0.5, 1e-6)
    1.5464513487122655
    """
    alpha, divergence = checked_order(alpha), checked_epsilon(divergence, "divergence")
    delta = checked_delta(delta)
    if math.isinf(alpha):
        return divergence
    if delta == 0:
        return math.inf
    with precision(128):
        order = flint.arb(alpha)
        # Where the formula is negative the hockey-stick curve is below delta already there, hence also at 0.
        return max(0.0, rounded_up(divergence + (-1 / order).log1p() - (order * delta).log() / (order - 1)))

"""From zero-concentrated DP to (epsilon, delta), the tighter way."""

from __future__ import annotations

import math

import flint

from farthing.accounting.theorems._orders import best_order
from farthing.accounting.theorems._rounding import rounded_up
from farthing.accounting.theorems.renyi_conversion_improved import epsilon_of_renyi_improved
from farthing.accounting.theorems.zcdp_conversion import epsilon_of_zcdp
from farthing.numerics.balls import precision
from farthing.privacy.events import checked_delta, checked_epsilon


def epsilon_of_zcdp_improved(rho: float, delta: float) -> float:
    """The epsilon at `delta` of any mechanism that is rho-zCDP; never above the classic one.

    Statement:
        A rho-zCDP mechanism is (alpha, alpha rho)-RDP for every alpha > 1, and so (epsilon, delta)-DP with
            epsilon = inf over alpha > 1 of alpha rho + ln(1 - 1 / alpha) - ln(alpha delta) / (alpha - 1).
    Source: Canonne, Kamath & Steinke, arXiv:2004.00010v4, Proposition 12 and the corollary that follows it.
    Assumes: nothing more.
    Direction: an upper bound, rounded up; charge it. Every order gives one, so a clumsy search costs budget, never
        privacy. inf at delta = 0 (unless rho = 0).
    Checked by: tests/theorems/test_zcdp_conversion.py

    >>> round(epsilon_of_zcdp_improved(0.5, 1e-6), 4)
    5.2215
    """
    rho, delta = checked_epsilon(rho, "rho"), checked_delta(delta)
    classic = epsilon_of_zcdp(rho, delta)
    if rho == 0 or math.isinf(classic):
        return classic
    alpha = best_order(lambda z: z * (z + 1) * rho, delta, improved=True)
    with precision(128):
        divergence = rounded_up(flint.arb(alpha) * rho)
    return min(classic, epsilon_of_renyi_improved(alpha, divergence, delta))

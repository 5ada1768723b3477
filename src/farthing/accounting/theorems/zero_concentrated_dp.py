"""From zero-concentrated DP to (epsilon, delta), the tighter way."""

from __future__ import annotations

import math

import flint

from farthing.accounting.theorems._pool import best_order, rounded_up
from farthing.accounting.theorems.renyi_dp import epsilon_of_renyi_improved
from farthing.numerics.bounds import precision
from farthing.privacy.events import checked_delta, checked_epsilon


def zcdp_of_pure(epsilon: float) -> float:
    """The rho of zero-concentrated DP that every `epsilon`-DP mechanism has.

    Args:
        epsilon: The epsilon of pure DP, >= 0.

    Returns:
        The rho, rounded up.

    Raises:
        InvalidValue: If `epsilon` is not a finite number >= 0.

    Statement:
        An epsilon-DP mechanism is (epsilon^2 / 2)-zCDP; under adaptive composition the rho add.
    Source: Bun & Steinke, arXiv:1605.02065v1, Proposition 1.4 and Lemma 1.7.
    Assumes: nothing more.
    Direction: an upper bound, rounded up by at most one unit in the last place.
    Checked by: tests/theorems/test_zcdp_of_pure.py

    >>> zcdp_of_pure(0.5)
    0.125
    """
    with precision(128):
        return rounded_up(flint.arb(checked_epsilon(epsilon)) ** 2 / 2)


def epsilon_of_zcdp(rho: float, delta: float) -> float:
    """The epsilon at `delta` of any mechanism that is rho-zCDP.

    Args:
        rho: The rho of zero-concentrated DP, >= 0.
        delta: The delta at which epsilon is stated.

    Returns:
        The epsilon, rounded up.

    Raises:
        InvalidValue: If an argument is out of its range.

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


def epsilon_of_zcdp_improved(rho: float, delta: float) -> float:
    """The epsilon at `delta` of any mechanism that is rho-zCDP; never above the classic one.

    Args:
        rho: The rho of zero-concentrated DP, >= 0.
        delta: The delta at which epsilon is stated.

    Returns:
        The epsilon, rounded up.

    Raises:
        InvalidValue: If an argument is out of its range.

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

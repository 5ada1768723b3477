"""Kairouz, Oh and Viswanath in closed form, for any charges."""

from __future__ import annotations

import math
from typing import Any

import flint
import numpy as np

from farthing.accounting.theorems._pool import Pool, read_pool
from farthing.accounting.theorems._rounding import rounded_down, rounded_up
from farthing.numerics.balls import precision
from farthing.privacy.events import checked_delta


def kov_heterogeneous_bound(charges: Any, delta_g: float, deltas: Any = None, counts: Any = None) -> float:
    """Epsilon of the composition at `delta_g`, by the closed form.

    Statement:
        For every delta' in [0, 1] the adaptive composition of (epsilon_i, delta_i)-DP mechanisms is
        (epsilon', 1 - (1 - delta') prod(1 - delta_i))-DP with epsilon' the least of
            sum epsilon_i,
            drift + sqrt(2 S ln(e + sqrt(S) / delta')),
            drift + sqrt(2 S ln(1 / delta')),
        S = sum epsilon_i^2, drift = sum epsilon_i (exp(epsilon_i) - 1) / (exp(epsilon_i) + 1).
        The constant inside the logarithm is e = 2.718..., not epsilon.
    Source: Kairouz, Oh & Viswanath, arXiv:1311.0776v4, Theorem 3.5.
    Assumes: parameters fixed before the first answer.
    Direction: an upper bound, rounded up; charge it. delta' is all of delta_g that the leaks leave; inf when the
        leaks alone are above delta_g.
    Checked by: tests/theorems/test_kov_heterogeneous.py

    Why the second term holds for every S: the loss exceeds drift + a + y with probability at most
    exp(-(a + y)^2 / 2S), so the tail integral is at most exp(-a^2 / 2S) / (1 + a / S); at the stated a the first
    factor is delta' / (e delta' + sqrt(S)), and (e delta' + sqrt(S)) (1 + a / S) >= sqrt(S) + sqrt(2) > 1.

    >>> round(kov_heterogeneous_bound([0.1, 0.05], 1e-6, deltas=[0, 1e-8], counts=[100, 20]), 6)
    5.954235
    """
    return kov_heterogeneous_of(read_pool(charges, deltas, counts), checked_delta(delta_g, "delta_g"))


def kov_heterogeneous_of(pool: Pool, delta_g: float) -> float:
    """The bound for charges already read."""
    with precision(128):
        slack = rounded_down(pool.left_by_product(delta_g))
        if not slack >= 0:
            return math.inf
        total = pool.epsilon_sum()
        squares, drift = pool.sum_of(np.square), pool.sum_of(lambda e: e * np.tanh(e / 2))
        if slack == 0 or math.isinf(squares) or math.isinf(drift):
            return total
        root = flint.arb(squares).sqrt()
        # Larger sums and a smaller slack only raise each term, so their safe sides give a safe answer.
        logs = [(flint.arb(1).exp() + root / slack).log(), (1 / flint.arb(slack)).log()]
        return min([total, *(rounded_up(drift + root * (2 * log).sqrt()) for log in logs)])

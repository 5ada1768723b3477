"""Kairouz, Oh and Viswanath in closed form, for k equal charges."""

from __future__ import annotations

import math

import flint

from farthing.accounting.theorems._pool import read_pool
from farthing.accounting.theorems._rounding import rounded_up
from farthing.numerics.balls import precision
from farthing.privacy.events import checked_count, checked_delta, checked_epsilon


def kov_homogeneous_bound(epsilon: float, k: int, delta_g: float, delta: float = 0.0) -> float:
    """Epsilon of k charges (epsilon, delta) at `delta_g`, by the closed form.

    Statement:
        For every delta' in [0, 1] the k-fold adaptive composition of (epsilon, delta)-DP mechanisms is
        (epsilon', 1 - (1 - delta)^k (1 - delta'))-DP with epsilon' the least of
            k epsilon,
            drift + epsilon sqrt(2 k ln(e + sqrt(k epsilon^2) / delta')),
            drift + epsilon sqrt(2 k ln(1 / delta')),
        drift = k epsilon (exp(epsilon) - 1) / (exp(epsilon) + 1).
        The constant inside the logarithm is e = 2.718..., not epsilon.
    Source: Kairouz, Oh & Viswanath, arXiv:1311.0776v4, Theorem 3.4.
    Assumes: k and the parameters fixed before the first answer.
    Direction: an upper bound, rounded up; charge it. delta' is all of delta_g that the leak leaves; inf when the
        leak alone is above delta_g.
    Checked by: tests/theorems/test_kov_homogeneous.py

    >>> round(kov_homogeneous_bound(0.1, 100, 1e-6), 6)
    5.756106
    >>> kov_homogeneous_bound(1.0, 3, 1e-6)
    3.0
    """
    epsilon, k = checked_epsilon(epsilon), checked_count(k, "k")
    delta_g, delta = checked_delta(delta_g, "delta_g"), checked_delta(delta)
    leaks = read_pool([0.0], [delta], [k])
    with precision(128):
        slack = leaks.left_by_product(delta_g)
        if not slack >= 0:
            return math.inf
        one, fold = flint.arb(epsilon), flint.arb(k)
        bounds = [fold * one]
        if slack > 0:
            drift = fold * one * (one / 2).tanh()
            for inside in (flint.arb(1).exp() + fold.sqrt() * one / slack, 1 / slack):
                bounds.append(drift + one * (2 * fold * inside.log()).sqrt())
        return min(rounded_up(bound) for bound in bounds)

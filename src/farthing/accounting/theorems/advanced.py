"""Advanced composition of Dwork, Rothblum and Vadhan: the square root of k enters the field."""

from __future__ import annotations

import math
from typing import Any

import flint
import numpy as np

from farthing.accounting.theorems._pool import Pool, read_pool
from farthing.accounting.theorems._rounding import rounded_up
from farthing.numerics.balls import precision
from farthing.privacy.events import checked_delta


def advanced_composition(charges: Any, delta_g: float, deltas: Any = None, counts: Any = None) -> float:
    """Epsilon of the composition at `delta_g`, after Dwork, Rothblum and Vadhan (2010).

    Statement:
        For every delta' > 0 the adaptive composition of k mechanisms that are (epsilon, delta)-DP is
        (epsilon', k delta + delta')-DP with
            epsilon' = epsilon sqrt(2 k ln(1 / delta')) + k epsilon (exp(epsilon) - 1).
        For unequal charges the sums of epsilon_i^2, of epsilon_i (exp(epsilon_i) - 1) and of delta_i take the places
        of k epsilon^2, k epsilon (exp(epsilon) - 1) and k delta.
    Source: Dwork, Rothblum & Vadhan, "Boosting and differential privacy", FOCS 2010, Theorem III.3 (equal charges);
        Dwork & Roth, "The algorithmic foundations of differential privacy", 2014, Theorem 3.20. The unequal form is
        the same Azuma argument, and follows from KOV15, arXiv:1311.0776v4, Theorem 3.5, third term, because
        (exp(epsilon) - 1) / (exp(epsilon) + 1) <= exp(epsilon) - 1 and the leaks multiply to less than their sum.
    Assumes: parameters fixed before the first answer; sum of deltas < delta_g.
    Direction: an upper bound, rounded up; charge it. The slack delta' is all of delta_g that the deltas leave.
        inf when they leave nothing.
    Checked by: tests/theorems/test_advanced.py

    >>> round(advanced_composition([0.1], 1e-6, counts=[100]), 6)
    6.308231
    >>> advanced_composition([0.1], 1e-6, deltas=[1e-6], counts=[2])
    inf
    """
    return advanced_of(read_pool(charges, deltas, counts), checked_delta(delta_g, "delta_g"))


def advanced_of(pool: Pool, delta_g: float) -> float:
    """The bound for charges already read."""
    slack = pool.left_by_sum(delta_g)
    if slack >= 0 and not len(pool.epsilons):
        return 0.0
    if not slack > 0:
        return math.inf
    drift = pool.sum_of(lambda e: e * np.expm1(e))
    if math.isinf(drift):
        return math.inf
    squares = flint.arb(pool.sum_of(np.square))
    # Larger sums and a smaller slack only raise the formula, so their safe sides give a safe answer.
    with precision(128):
        return rounded_up((2 * squares * (1 / flint.arb(slack)).log()).sqrt() + drift)

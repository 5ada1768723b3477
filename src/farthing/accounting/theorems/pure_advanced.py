"""The advanced bound with k epsilon^2 / 2, the one on posters."""

from __future__ import annotations

import math
from typing import Any

import flint
import numpy as np

from farthing.accounting.theorems._pool import Pool, read_pool
from farthing.accounting.theorems._rounding import rounded_down, rounded_up
from farthing.numerics.balls import precision
from farthing.privacy.events import checked_delta


def pure_advanced_composition(charges: Any, delta_g: float, deltas: Any = None, counts: Any = None) -> float:
    """Epsilon of the composition at `delta_g`: sum epsilon_i^2 / 2 + sqrt(2 ln(1 / delta') sum epsilon_i^2).

    Statement:
        The adaptive composition of epsilon_i-DP mechanisms is, for every delta' in (0, 1), (epsilon', delta')-DP with
            epsilon' = S / 2 + sqrt(2 S ln(1 / delta')),   S = sum of epsilon_i^2,
        which for k equal charges reads k epsilon^2 / 2 + epsilon sqrt(2 k ln(1 / delta')). If the mechanisms also
        leak, being (epsilon_i, delta_i)-DP, the same epsilon' holds at 1 - (1 - delta') prod(1 - delta_i).
    Source: Bun & Steinke, arXiv:1605.02065v1: epsilon-DP is (epsilon^2 / 2)-zCDP (Proposition 1.4), zCDP adds
        (Lemma 1.7), and rho-zCDP is (rho + 2 sqrt(rho ln(1 / delta)), delta)-DP (Proposition 1.3). Leaks: Murtagh &
        Vadhan, Theory of Computing 14(8), 2018 (arXiv:1507.03113), Theorem 1.5, whose left side has no delta_i.
    Assumes: parameters fixed before the first answer (only the leaks need this: without them the bound also holds
        for a fixed S when the epsilon_i are chosen adaptively).
    Direction: an upper bound, rounded up; charge it. delta' is all of delta_g that the leaks leave; inf when they
        leave nothing.
    Checked by: tests/theorems/test_pure_advanced.py

    >>> round(pure_advanced_composition([0.1], 1e-6, counts=[100]), 6)
    5.756522
    """
    return pure_advanced_of(read_pool(charges, deltas, counts), checked_delta(delta_g, "delta_g"))


def pure_advanced_of(pool: Pool, delta_g: float) -> float:
    """The bound for charges already read."""
    with precision(128):
        slack = rounded_down(pool.left_by_product(delta_g))
        if slack >= 0 and not len(pool.epsilons):
            return 0.0
        if not slack > 0:
            return math.inf
        squares = pool.sum_of(np.square)
        if math.isinf(squares):
            return math.inf
        return rounded_up(
            flint.arb(squares) / 2 + (2 * flint.arb(squares) * (1 / flint.arb(slack)).log()).sqrt()
        )

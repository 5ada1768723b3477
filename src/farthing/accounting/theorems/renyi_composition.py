"""Composition by Renyi divergences: add them, convert once, at the best order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from farthing.accounting.theorems._orders import best_order
from farthing.accounting.theorems._pool import Array, Pool, read_pool
from farthing.accounting.theorems._rounding import rounded_down
from farthing.accounting.theorems.renyi_conversion import epsilon_of_renyi
from farthing.accounting.theorems.renyi_conversion_improved import epsilon_of_renyi_improved
from farthing.accounting.theorems.renyi_of_pure import log_cosh, renyi_upper
from farthing.numerics.balls import precision
from farthing.privacy.events import checked_delta

_REPRESENTATIVES = 512  # so many epsilons are enough to choose an order; all of them price it


def renyi_composition(
    charges: Any, delta_g: float, deltas: Any = None, counts: Any = None, *, improved: bool = True
) -> float:
    """Epsilon of the composition at `delta_g` by Renyi DP, at the order that suits it best.

    Statement:
        For every order alpha the composition of epsilon_i-DP mechanisms is (alpha, sum r_i)-RDP, r_i as in
        `renyi_of_pure_composition`, and therefore (epsilon', delta')-DP by either conversion. If the mechanisms also
        leak, being (epsilon_i, delta_i)-DP, the same epsilon' holds at 1 - (1 - delta') prod(1 - delta_i).
    Source: Mironov, arXiv:1702.07476v3, Propositions 1 and 3 (`improved=False`); Canonne, Kamath & Steinke,
        arXiv:2004.00010v4, Proposition 12 (`improved=True`). Leaks: Murtagh & Vadhan, Theory of Computing 14(8),
        2018 (arXiv:1507.03113), Theorem 1.5, whose left side has no delta_i.
    Assumes: parameters fixed before the first answer (the best order depends on them).
    Direction: an upper bound, rounded up; charge it. Every order gives one, so a clumsy search costs budget, never
        privacy. inf when the leaks alone are above delta_g.
    Checked by: tests/theorems/test_renyi_composition.py

    >>> round(renyi_composition([0.1], 1e-6, counts=[100]), 4)
    5.0731
    >>> round(renyi_composition([0.1], 1e-6, counts=[100], improved=False), 4)
    5.5771
    """
    return renyi_composition_of(
        read_pool(charges, deltas, counts), checked_delta(delta_g, "delta_g"), improved
    )


def renyi_composition_of(pool: Pool, delta_g: float, improved: bool) -> float:
    """The bound for charges already read."""
    with precision(128):
        slack = rounded_down(pool.left_by_product(delta_g))
    if not slack >= 0:
        return math.inf
    total = pool.epsilon_sum()  # order infinity
    if slack == 0 or not 0 < total < math.inf:
        return total
    convert = epsilon_of_renyi_improved if improved else epsilon_of_renyi
    epsilons, weights = _sample(pool)

    def log_moment(z: float) -> float:
        moment = float(weights @ (log_cosh((z + 0.5) * epsilons) - log_cosh(epsilons / 2)))
        return moment if moment == moment else math.inf

    with np.errstate(over="ignore", invalid="ignore"):
        alpha = best_order(log_moment, slack, improved)
    return min(total, convert(alpha, renyi_upper(pool, alpha), slack))


def _sample(pool: Pool) -> tuple[Array, Array]:
    """A few epsilons with weights that stand for all of them."""
    if len(pool.epsilons) <= _REPRESENTATIVES:
        return pool.epsilons, pool.counts.astype(np.float64)
    blocks = np.linspace(0, len(pool.epsilons), _REPRESENTATIVES, endpoint=False).astype(np.int64)
    weights = np.add.reduceat(pool.counts.astype(np.float64), blocks)
    squares = np.add.reduceat(pool.counts * np.square(pool.epsilons), blocks)
    return np.sqrt(squares / weights), weights

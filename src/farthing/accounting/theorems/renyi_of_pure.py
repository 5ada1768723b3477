"""The Renyi divergence of pure mechanisms: randomized response is the worst of them at every order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from farthing.accounting.theorems._pool import Array, Pool, read_pool, sum_of_positives
from farthing.errors import InvalidValue
from farthing.privacy.events import checked_real


def renyi_of_pure_composition(charges: Any, alpha: float, counts: Any = None) -> float:
    """The Renyi divergence of order `alpha` that pure charges amount to together.

    Statement:
        An epsilon-DP mechanism is (alpha, r)-RDP for every alpha > 1 with
            r = ln(cosh((alpha - 1/2) epsilon) / cosh(epsilon / 2)) / (alpha - 1),
        and randomized response reaches it; at alpha = inf, r = epsilon. Under adaptive composition the r add.
    Source: Mironov, arXiv:1702.07476v3: Proposition 5 (randomized response) and Proposition 1 (r adds). That it is
        the worst of all epsilon-DP mechanisms: Kairouz, Oh & Viswanath, arXiv:1311.0776v4, Theorem 3.3 with k = 1,
        every epsilon-DP mechanism being a function of it.
    Assumes: no charge has a delta; alpha > 1.
    Direction: an upper bound, rounded up.
    Checked by: tests/theorems/test_renyi_of_pure.py

    >>> round(renyi_of_pure_composition([0.1], 8.0, counts=[100]), 6)
    3.671666
    >>> renyi_of_pure_composition([0.25, 0.5], float("inf"))
    0.75
    """
    order = checked_order(alpha)
    pool = read_pool(charges, None, counts)
    if len(pool.leaks):
        raise InvalidValue("charges", pool.leaks[0], "must have no delta", "use farthing.compose")
    return renyi_upper(pool, order)


def checked_order(alpha: object) -> float:
    """`alpha` as a float above 1 (inf allowed)."""
    order = checked_real(alpha, "alpha")
    if not order > 1:
        raise InvalidValue("alpha", alpha, "must be > 1")
    return order


def renyi_upper(pool: Pool, alpha: float) -> float:
    """The divergence of charges already read, rounded up; never above the sum of the epsilons."""
    total = pool.epsilon_sum()
    excess = alpha - 1
    if math.isinf(alpha) or not excess > 0:
        return total
    with np.errstate(over="ignore", invalid="ignore"):
        # alpha - 1/2 rounded up raises the cosh; the difference of logs errs by the size of its parts.
        larger = log_cosh(pool.epsilons * math.nextafter(alpha - 0.5, math.inf) * (1 + 2.0**-51))
        smaller = log_cosh(pool.epsilons / 2)
        terms = pool.counts * (larger - smaller + (larger + smaller) * 2.0**-46)
    if not np.isfinite(terms).all():
        return total
    bound = sum_of_positives(terms) / excess * (1 + 2.0**-50) + pool.active * 2.0**-1022
    return min(total, bound)


def log_cosh(x: Array) -> Array:
    """ln cosh(x) for x >= 0, to a relative 2^-47 everywhere."""
    near, far = np.minimum(x, 1.0), np.maximum(x, 1.0)
    small: Array = np.log1p(2 * np.square(np.sinh(near / 2)))
    large: Array = far + np.log1p(np.exp(-2 * far)) - math.log(2)
    return np.where(x < 1, small, large)

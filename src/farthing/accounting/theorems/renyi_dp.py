"""Composition by Renyi divergences: add them, convert once, at the best order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flint
import numpy as np

from farthing.accounting.theorems._pool import (
    Array,
    Pool,
    best_order,
    read_pool,
    rounded_down,
    rounded_up,
    sum_of_positives,
)
from farthing.errors import InvalidValue
from farthing.numerics.bounds import precision
from farthing.privacy.events import checked_delta, checked_epsilon, checked_real


def renyi_of_pure_composition(charges: Any, alpha: float, counts: Any = None) -> float:
    """The Renyi divergence of order `alpha` that pure charges amount to together.

    Args:
        charges: Epsilons, as `farthing.compose` takes them.
        alpha: The order, > 1; infinity gives the sum of the epsilons.
        counts: How often each charge is made; once by default.

    Returns:
        The divergence, rounded up.

    Raises:
        InvalidValue: If a charge has a delta, or `alpha` is out of range.

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


def epsilon_of_renyi_improved(alpha: float, divergence: float, delta: float) -> float:
    """The epsilon at `delta` of any mechanism that is (alpha, divergence)-RDP; never above the classic one.

    Args:
        alpha: The order, > 1.
        divergence: The Renyi divergence of that order, >= 0.
        delta: The delta at which epsilon is stated.

    Returns:
        The epsilon, rounded up.

    Raises:
        InvalidValue: If an argument is out of its range.

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
    # Where the formula is negative the hockey-stick curve is below delta already there, hence also at 0.
    return max(0.0, _converted(alpha, divergence, delta, lambda a, d: (-1 / a).log1p() - (a * d).log() / (a - 1)))


def _converted(alpha: float, divergence: float, delta: float, cost: Callable[[Any, Any], Any]) -> float:
    """The divergence plus what the conversion costs at alpha and delta, rounded up; at their ends every one agrees."""
    order, bound, leak = checked_order(alpha), checked_epsilon(divergence, "divergence"), checked_delta(delta)
    if math.isinf(order):
        return bound
    if leak == 0:
        return math.inf
    with precision(128):
        return rounded_up(bound + cost(flint.arb(order), flint.arb(leak)))


def epsilon_of_renyi(alpha: float, divergence: float, delta: float) -> float:
    """The epsilon at `delta` of any mechanism that is (alpha, divergence)-RDP.

    Args:
        alpha: The order, > 1.
        divergence: The Renyi divergence of that order, >= 0.
        delta: The delta at which epsilon is stated.

    Returns:
        The epsilon, rounded up.

    Raises:
        InvalidValue: If an argument is out of its range.

    Statement:
        An (alpha, r)-RDP mechanism is (r + ln(1 / delta) / (alpha - 1), delta)-DP for every 0 < delta < 1.
    Source: Mironov, arXiv:1702.07476v3, Proposition 3.
    Assumes: alpha > 1.
    Direction: an upper bound, rounded up; charge it. inf at delta = 0, except at alpha = inf, where r is enough.
    Checked by: tests/theorems/test_renyi_conversion.py

    >>> epsilon_of_renyi(11.0, 0.5, 1e-6)
    1.8815510557964275
    """
    return _converted(alpha, divergence, delta, lambda a, d: -d.log() / (a - 1))


_REPRESENTATIVES = 512  # so many epsilons are enough to choose an order; all of them price it


def renyi_composition(
    charges: Any, delta_g: float, deltas: Any = None, counts: Any = None, *, improved: bool = True
) -> float:
    """Epsilon of the composition at `delta_g` by Renyi DP, at the order that suits it best.

    Args:
        charges: Epsilons or (epsilon, delta) pairs, as `farthing.compose` takes them.
        delta_g: The delta of the whole.
        deltas: The delta of each charge, where `charges` are epsilons.
        counts: How often each charge is made; once by default.
        improved: Whether to convert with `epsilon_of_renyi_improved` instead of the classic conversion.

    Returns:
        The epsilon, rounded up.

    Raises:
        InvalidValue: If something is not a charge, or `delta_g` is not a number from 0 to 1.

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
    return renyi_composition_of(read_pool(charges, deltas, counts), checked_delta(delta_g, "delta_g"), improved)


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

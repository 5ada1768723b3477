"""Advanced composition of Dwork, Rothblum and Vadhan: the square root of k enters the field."""

from __future__ import annotations

import math
from typing import Any

import flint
import numpy as np

from farthing.accounting.theorems._pool import Pool, read_pool, rounded_down, rounded_up
from farthing.numerics.bounds import precision
from farthing.privacy.events import checked_delta


def basic_composition(charges: Any, deltas: Any = None, counts: Any = None) -> tuple[float, float]:
    """The guarantee that needs no thought: (sum of epsilons, sum of deltas).

    Args:
        charges: Epsilons or (epsilon, delta) pairs, as `farthing.compose` takes them.
        deltas: The delta of each charge, where `charges` are epsilons.
        counts: How often each charge is made; once by default.

    Returns:
        The epsilon and the delta of the whole, both rounded up.

    Raises:
        InvalidValue: If something is not a charge.

    Statement:
        The adaptive composition of mechanisms that are (epsilon_i, delta_i)-DP is
        (sum epsilon_i, sum delta_i)-DP.
    Source: Dwork, Kenthapadi, McSherry, Mironov & Naor, "Our data, ourselves", EUROCRYPT 2006, Theorem 1 (k equal
        charges); Dwork & Lei, "Differential privacy and robust statistics", STOC 2009, Lemma 14 (any charges).
    Assumes: nothing more; the parameters may even be chosen adaptively, as long as the sums stay within the budget.
    Direction: both numbers are rounded up by at most one unit in the last place; charge both.
    Checked by: tests/theorems/test_basic.py

    >>> basic_composition([0.1, 0.2], deltas=[1e-7, 0], counts=[100, 5])
    (11.0..., 1e-05)
    >>> basic_composition([])
    (0.0, 0.0)
    """
    pool = read_pool(charges, deltas, counts)
    return pool.epsilon_sum(), pool.leak_sum()


def pure_advanced_composition(charges: Any, delta_g: float, deltas: Any = None, counts: Any = None) -> float:
    """Epsilon of the composition at `delta_g`: sum epsilon_i^2 / 2 + sqrt(2 ln(1 / delta') sum epsilon_i^2).

    Args:
        charges: Epsilons or (epsilon, delta) pairs, as `farthing.compose` takes them.
        delta_g: The delta of the whole.
        deltas: The delta of each charge, where `charges` are epsilons.
        counts: How often each charge is made; once by default.

    Returns:
        The epsilon, rounded up; inf where the charges' own deltas leave nothing of `delta_g`.

    Raises:
        InvalidValue: If something is not a charge, or `delta_g` is not a number from 0 to 1.

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
        return rounded_up(flint.arb(squares) / 2 + (2 * flint.arb(squares) * (1 / flint.arb(slack)).log()).sqrt())


def advanced_composition(charges: Any, delta_g: float, deltas: Any = None, counts: Any = None) -> float:
    """Epsilon of the composition at `delta_g`, after Dwork, Rothblum and Vadhan (2010).

    Args:
        charges: Epsilons or (epsilon, delta) pairs, as `farthing.compose` takes them.
        delta_g: The delta of the whole.
        deltas: The delta of each charge, where `charges` are epsilons.
        counts: How often each charge is made; once by default.

    Returns:
        The epsilon, rounded up; inf where the charges' own deltas leave nothing of `delta_g`.

    Raises:
        InvalidValue: If something is not a charge, or `delta_g` is not a number from 0 to 1.

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

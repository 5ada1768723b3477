"""Basic composition: epsilons add, deltas add."""

from __future__ import annotations

from typing import Any

from farthing.accounting.theorems._pool import read_pool


def basic_composition(charges: Any, deltas: Any = None, counts: Any = None) -> tuple[float, float]:
    """The guarantee that needs no thought: (sum of epsilons, sum of deltas).

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

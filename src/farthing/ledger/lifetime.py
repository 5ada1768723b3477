"""What somebody is protected by who is in every period of an account that renews."""

from __future__ import annotations

import math
from functools import lru_cache

from farthing.accounting import compose
from farthing.errors import InvalidValue
from farthing.numerics.bounds import ceiling
from farthing.privacy.events import ApproxDP, checked_count, checked_delta
from farthing.privacy.units import Unit

IN_A_YEAR = {"day": 366, "week": 53, "month": 12, "quarter": 4, "year": 1}


@lru_cache(maxsize=256)
def lifetime(epsilon: float, delta: float, periods: int, at: float | None = None) -> ApproxDP:
    """What all budgets of so many periods come to for somebody whose rows are in all of them.

    Args:
        epsilon: The epsilon of each period's budget.
        delta: Its delta.
        periods: How many periods, >= 0.
        at: The delta of the whole; by default twice the sum of the deltas, 0 where there is none.

    Returns:
        An epsilon, rounded up, at that delta. No bound holds for ever: it grows with every period, at most as their
        number, and as its root where epsilon is small and `at` is not.

    Raises:
        InvalidValue: If `at` is less than the deltas of the periods come to: then no epsilon is enough.

    Statement:
        Let a row belong to one of K parts by its date, and let the releases from part k be (epsilon, delta)-DP for
        whoever chooses them adaptively, each part by its own account. Then all releases of all parts, chosen in any
        order and each after seeing all earlier answers, are (epsilon', delta')-DP for the rows of one unit in all
        parts together, wherever the K-fold composition of (epsilon, delta)-DP mechanisms is, by its exact region.
    Source: Kairouz, Oh & Viswanath, arXiv:1311.0776v4, Theorem 3.3, for the region; Lyu, arXiv:2207.09397v2,
        and Vadhan & Zhang, arXiv:2207.08335v3: mechanisms that answer adaptively (an account and all that
        it admits) compose concurrently as those that answer once. A unit in K parts is K steps from a table without
        it, and step k changes part k alone.
    Assumes: epsilon, delta and periods are fixed in advance for all periods; a row keeps its date. The protection of
        one period alone also assumes, for delta > 0, that no answer decides in which period somebody has rows
        (Henzinger, Safavi & Vadhan, arXiv:2411.03299v4, where that breaks parallel composition). The bound over all
        periods does not need it: concurrent composition holds while tables change (the same paper).
    Direction: the upper end of a proven interval.
    Checked by: tests/theorems/test_lifetime.py

    >>> round(lifetime(0.1, 1e-9, 60).epsilon, 2), round(lifetime(0.1, 1e-9, 60, at=1e-6).epsilon, 2)
    (3.93, 3.55)
    """
    many = checked_count(periods, "periods")
    if many == 0:
        return ApproxDP(0.0)
    target = min(math.nextafter(1.0, 0.0), 2 * many * delta) if at is None else checked_delta(at, "at")
    whole = compose([ApproxDP(epsilon, delta)], counts=[many]).epsilon_at(target).upper
    if not whole < math.inf:
        raise InvalidValue("at", at, f"must be above the deltas of {many:,} periods together", "say a larger delta")
    return ApproxDP(whole, target)


def lifetime_words(unit: Unit | None, budget: ApproxDP) -> str:
    """What somebody in every period is protected by, in words; nothing for an account that does not renew.

    >>> from farthing.privacy.units import Renewal
    >>> print(lifetime_words(Unit(("person",), renewal=Renewal("month", "day")), ApproxDP(0.1, 1e-9)))
    somebody in all 12 months of a year is protected by epsilon 1.2 at delta 2.4e-08; no bound holds for ever
    """
    if unit is None or unit.renewal is None:
        return ""
    every = unit.renewal.every
    many = IN_A_YEAR[every]
    span = f"all {many:,} {every}s of a year" if many > 1 else "all of ten years"
    whole = lifetime(budget.epsilon, budget.delta, many if many > 1 else 10)
    epsilon = ceiling(round(whole.epsilon, 9), 3)
    at = f" at delta {whole.delta:.3g}" if whole.delta else ""
    return f"somebody in {span} is protected by epsilon {epsilon}{at}; no bound holds for ever"

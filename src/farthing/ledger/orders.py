"""The Renyi orders at which an account keeps sums, and the one order that a budget uses.

Sums are kept at a fixed list of orders, so that a budget raised later can use another order without reading history.
Between two of them a sum is bounded by a chord.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from flint import arb, fmpq

from farthing.accounting.filters.exact_amounts import precise_balls
from farthing.ledger.amounts import DELTA_UNITS, NANO

PARTS = 256
"""Orders are 1 + n / PARTS for whole n."""

EXCESSES = (
    128, *(PARTS * n for n in (
        1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 51, 64, 81, 102, 128, 161, 203, 256, 323, 406, 512, 1024, 4096,
    )),
)  # fmt: skip
"""alpha - 1 of every order kept, in parts: three to the octave where common budgets are, wider outside."""

ORDERS = tuple(1 + excess / PARTS for excess in EXCESSES)

Divergences = tuple[int | None, ...]
"""One divergence for each of ORDERS in billionths, never falling; None is infinite."""

NOTHING: Divergences = (0,) * len(ORDERS)


@dataclass(frozen=True, slots=True)
class Order:
    """The order 1 + excess / PARTS, and the most that divergences of that order may sum to (in billionths)."""

    excess: int
    limit: int

    @property
    def alpha(self) -> float:
        """The order itself."""
        return 1 + self.excess / PARTS

    @property
    def places(self) -> tuple[int, ...]:
        """Where in ORDERS the one or two orders are that bound this one."""
        place = bisect_left(EXCESSES, self.excess)
        return (place,) if EXCESSES[place] == self.excess else (place - 1, place)

    def holds(self, sums: Divergences) -> bool:
        """Whether the divergence of this order is within the limit, by the chord above `sums`.

        Statement:
            Let S(a) and S(b) bound the summed divergences at orders a < b. At an order alpha between,
            (alpha - 1) D_alpha is at most the chord of (order - 1) S(order) from a to b.
        Source: convexity of alpha -> log E_Q[(P/Q)^alpha], which is (alpha - 1) D_alpha; sums of convex functions
            are convex (van Erven & Harremoes, arXiv:1206.2459, Corollary 2).
        Assumes: S is an upper bound at both orders, for the same charges.
        Direction: upper; the comparison is exact, in whole numbers.
        Checked by: tests/theorems/test_filters_side_by_side.py
        """
        place = self.places[-1]
        high, above = EXCESSES[place], sums[place]
        if high == self.excess:
            return above is not None and above <= self.limit
        low, below = EXCESSES[place - 1], sums[place - 1]
        if above is None or below is None:
            return False
        chord = low * below * (high - self.excess) + high * above * (self.excess - low)
        return chord <= self.limit * self.excess * (high - low)


@lru_cache(maxsize=4096)
def order_of(epsilon_nano: int, slack_units: int) -> Order:
    """The order that a budget uses, a fixed function of the budget alone.

    Many small charges have divergences in proportion to the order; for them it is best to give a little more than half
    of epsilon to the divergences and the rest to the conversion (17/32 is within 1% of the optimum up to epsilon = 3,
    within 2% up to 10, at deltas from 1e-5 to 1e-12). So that is the rule: the limit is 17/32 of epsilon, and the order
    is the least whose conversion costs no more than the rest.

    A larger budget thus has a larger limit and a smaller order, and divergences fall with the order: whatever a budget
    admitted, a larger one admits. (An order that was merely the nearest of a list would break this, and with it the
    guarantee of budgets that are raised.) Outside the list the nearest end is used, with what it leaves.

    >>> order_of(1_000_000_000, 10**31 // 4)
    Order(excess=9546, limit=531250000)
    """
    limit = 17 * epsilon_nano // 32
    low, high = EXCESSES[0], EXCESSES[-1]
    if not (conversion_in_nano(high, slack_units) <= epsilon_nano - limit):
        return Order(high, epsilon_nano - conversion_in_nano(high, slack_units))
    at_low = conversion_in_nano(low, slack_units)
    if at_low <= epsilon_nano - limit:
        return Order(low, epsilon_nano - at_low)
    while high - low > 1:
        middle = (low + high) // 2
        if conversion_in_nano(middle, slack_units) <= epsilon_nano - limit:
            high = middle
        else:
            low = middle
    return Order(high, limit)


@lru_cache(maxsize=4096)
def conversion_in_nano(excess: int, slack_units: int) -> int:
    """(ln(1/slack) + ln c) / (alpha - 1) in billionths, rounded up: the conversion of RenyiFilter."""
    with precise_balls():
        rest: Any = arb(fmpq(excess, PARTS))  # alpha - 1
        log_c = rest * rest.log() - (rest + 1) * (rest + 1).log()
        cost = NANO * (log_c - arb(fmpq(slack_units, DELTA_UNITS)).log()) / rest
        return int(cost.upper().ceil().unique_fmpz())

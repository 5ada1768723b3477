"""Accounts that older versions began: the order at which they added up divergences, and the clock they go on with."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb, fmpq

from farthing.accounting.event_price import DELTA_UNITS, EXCESSES, NANO, PARTS, Divergences
from farthing.accounting.filters.clock_costs import CLOCK_UNITS
from farthing.numerics.bounds import precise_balls

_SPARE = 2000  # billionths of divergence: excesses of a millionth cost at most a millionth / (order - 1)


@dataclass(frozen=True, slots=True)
class Order:
    """The order 1 + excess / PARTS, and the most that divergences of that order may sum to (in billionths)."""

    excess: int
    limit: int

    @property
    def alpha(self) -> float:
        """The Renyi order itself, as a number."""
        return 1 + self.excess / PARTS

    def left(self, sums: Divergences) -> Fraction | None:
        """How much of the limit is left, in billionths, by the chord above `sums`; None if a sum is infinite.

        Statement:
            Let S(a) and S(b) bound the summed divergences at orders a < b. At an order alpha between,
            (alpha - 1) D_alpha is at most the chord of (order - 1) S(order) from a to b.
        Source: convexity of alpha -> log E_Q[(P/Q)^alpha], which is (alpha - 1) D_alpha; sums of convex functions
            are convex (van Erven & Harremoes, arXiv:1206.2459, Corollary 2).
        Assumes: S is an upper bound at both orders, for the same charges.
        Direction: lower; exact, in fractions.
        Checked by: tests/theorems/test_older_accounts.py
        """
        place = bisect_left(EXCESSES, self.excess)
        high, above = EXCESSES[place], sums[place]
        if high == self.excess:
            return None if above is None else Fraction(self.limit - above)
        low, below = EXCESSES[place - 1], sums[place - 1]
        if above is None or below is None:
            return None
        chord = low * below * (high - self.excess) + high * above * (self.excess - low)
        return self.limit - Fraction(chord, self.excess * (high - low))

    def holds(self, sums: Divergences) -> bool:
        """Whether the divergence of this order is within the limit."""
        left = self.left(sums)
        return left is not None and left >= 0


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


@lru_cache(maxsize=4096)
def clock_after(sums: Divergences, epsilon_nano: int, slack_units: int) -> int:
    """The clock, in units, that an account goes on with whose divergences are `sums`; -1 where none runs.

    Statement:
        Let a Renyi filter of order alpha have R left of its limit, and let s <= 2 R / alpha. Then its potential
        c exp((alpha - 1)(x + R)), c = (alpha - 1)^(alpha - 1) / alpha^alpha, is at least V(x, s) for every x. So an
        analyst may go on with a clock of s, on any path and at any moment, and with the same slack.
        A larger budget has a larger such clock, so budgets may be raised later.
    Source: (1 - e^-y)_+ <= c exp((alpha - 1) y) for every y, read at y = x + Z and averaged over the loss Z of the
        Gaussian pair, whose divergence of order alpha is alpha s / 2. The potential is the one behind `RenyiFilter`:
        it is a supermartingale, and at the start at most slack. With the budget alpha falls and R rises (`order_of`),
        because the chord divided by (order - 1) falls with the order.
    Assumes: `sums` bound the divergences of all charges so far, given no leak.
    Direction: lower: rounded down, and a little is left for `MOST_EXCESS`.
    Checked by: tests/theorems/test_older_accounts.py

    >>> from farthing.accounting.event_price import NOTHING
    >>> clock_after(NOTHING, 10**9, 25 * 10**29) / CLOCK_UNITS
    0.0277...
    """
    if not slack_units:
        return -1
    order = order_of(epsilon_nano, slack_units)
    left = order.left(sums)
    if left is None or left < _SPARE:
        return -1
    return int(2 * (left - _SPARE) * PARTS * CLOCK_UNITS / (NANO * (PARTS + order.excess)))

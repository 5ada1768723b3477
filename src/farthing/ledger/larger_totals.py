"""Totals with which more would be left of an account: what refusals tell people to ask for."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from farthing.accounting.event_price import DELTA_UNITS, LARGEST_EPSILON, epsilon_up
from farthing.ledger.account import Account, Withheld
from farthing.numerics.bounds import ceiling
from farthing.privacy.events import ApproxDP

_DIGITS = 4  # of a total that is offered
_STEPS = 24
_COMMON_DELTA = 1e-9


def total_for(account: Account, epsilon: float, withheld: Withheld, *, plan: bool = False) -> ApproxDP | None:
    """A total with which so much would be left of an account, for one charge or for a plan; None if none was found.

    >>> account = Account.of(1.0, 1e-9)
    >>> total_for(account.after(account.priced(0.75)), 0.5, (0, 0))
    ApproxDP(epsilon=1.25, delta=1e-09)
    """

    def lack(under: Account) -> float:
        left = under.remaining_beside(withheld).epsilon
        left = max(left, under.clock_room(withheld)) if plan else left
        return 0.0 if left >= epsilon else epsilon - left

    def start(under: Account) -> float:
        spent = used(under, withheld)
        return math.hypot(spent, epsilon) if plan else spent  # a clock adds up squares

    units = account.parts_of_delta * (account.sum_units + withheld[1])
    return first_total(account, start, lack, units)


def first_total(
    account: Account,
    start: Callable[[Account], float],
    lack: Callable[[Account], float],
    units: int,
) -> ApproxDP | None:
    """The first total on the way up that lacks nothing: with the same delta, or else with one that holds `units`."""
    deltas = [account.budget.delta]
    deltas += [more for more in (_delta_holding(units), _COMMON_DELTA) if deltas[0] < more < 1]
    for delta in deltas:
        under = account.with_budget(account.budget.epsilon, delta)
        tried = max(under.budget.epsilon, start(under))
        for step in range(_STEPS):
            tried = _up(tried)
            if not tried <= LARGEST_EPSILON:
                break
            missing = lack(account.with_budget(tried, delta))
            if not missing > 0:
                return ApproxDP(tried, delta)
            tried += missing if step == 0 else max(missing / 4, tried / 50)
    return None


def used(account: Account, withheld: Withheld) -> float:
    """What the account reads as spent, with what is set aside."""
    spent = account.spent_upper
    return (spent if spent <= LARGEST_EPSILON else 0.0) + epsilon_up(withheld[0])


def _up(epsilon: float) -> float:
    """Rounded up to a few digits, but for what was added up from whole billionths and is one."""
    return float(ceiling(round(epsilon, 9), _DIGITS))


def _delta_holding(units: int) -> float:
    """A delta of two digits that holds so many units."""
    return float(ceiling(float(Fraction(units, DELTA_UNITS)), 2)) if units else 0.0

"""What one event costs an account, in whole numbers that only need to be added."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from flint import arb, fmpq

from farthing.accounting.event_price import (
    _FINE,
    DELTA_UNITS,
    EXCESSES,
    LARGEST_EPSILON,
    NANO,
    ORDERS,
    PARTS,
    Divergences,
    _ball_divergence,
    alone_in_nano,
    amount_read,
    composed_nano,
    divergences_of,
    divergences_read,
    epsilon_up,
    least,
    nano_up,
    price_of,
    units_up,
)
from farthing.errors import InvalidValue
from farthing.numerics.bounds import exact, precise_balls
from farthing.privacy import Composed, Event, RandomizedResponse


@dataclass(frozen=True, slots=True)
class Order:
    """The order 1 + excess / PARTS, and the most that divergences of that order may sum to (in billionths)."""

    excess: int
    limit: int

    @property
    def alpha(self) -> float:
        """The Renyi order itself, as a number."""
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


@dataclass(frozen=True, slots=True)
class ChargePrice:
    """One charge in every currency that an account keeps; None is infinite.

    epsilon_nano, delta_units   its point in the plain sums
    leak_units                  its own delta: the part that Renyi divergences cannot price
    divergences                 at every order of `farthing.ledger.charge_prices`
    alone_nano, alone_units     epsilon at that delta of this charge and nothing else, where it was needed

    >>> from farthing.ledger.account import Account
    >>> price = Account.of(1.0, 1e-9).priced(0.1)
    >>> price.epsilon_nano, price.delta_units
    (100000000, 0)
    >>> ChargePrice.from_dict(price.to_dict()) == price
    True
    """

    epsilon_nano: int | None
    delta_units: int
    leak_units: int
    divergences: Divergences
    alone_nano: int | None = None
    alone_units: int = 0

    @property
    def is_nothing(self) -> bool:
        """Whether the charge is (0, 0)-DP: it costs nothing in any currency."""
        return not (self.delta_units or self.leak_units or any(x != 0 for x in (self.epsilon_nano, *self.divergences)))

    def to_dict(self) -> dict[str, Any]:
        """Whole numbers and lists of them; -1 is infinite."""
        return {
            "epsilon_nano": _stored(self.epsilon_nano),
            "delta_units": self.delta_units,
            "leak_units": self.leak_units,
            "divergences": [_stored(amount) for amount in self.divergences],
            "alone_nano": _stored(self.alone_nano),
            "alone_units": self.alone_units,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ChargePrice:
        """The price that `to_dict` wrote."""
        return cls(
            amount_read(data["epsilon_nano"], "epsilon_nano", infinite=True),
            finite_read(data["delta_units"], "delta_units"),
            finite_read(data["leak_units"], "leak_units"),
            divergences_read(data["divergences"]),
            amount_read(data["alone_nano"], "alone_nano", infinite=True),
            finite_read(data["alone_units"], "alone_units"),
        )


@lru_cache(maxsize=4096)
def price_in_budget(event: Event, delta: float | None, epsilon_nano: int, plain_units: int) -> ChargePrice:
    """The price of `event` in a budget whose plain sums may use `plain_units` of delta.

    It depends on the event and the budget alone, never on what was spent, so a repeated event is priced once.
    """
    _check_range(event)
    own = price_of(event)
    pure = None if own.epsilon is None else nano_up(own.epsilon)
    leak = units_up(own.leak)
    if delta is not None:
        units = units_up(exact(delta))
        epsilon = alone_in_nano(event, units)
        if epsilon is None:
            raise InvalidValue("delta", delta, "no epsilon exists for this event at this delta", "use a larger one")
    else:
        units, epsilon = leak, pure
        if pure is None or _is_plan(event):
            units, epsilon = _chosen_point(event, pure, leak, epsilon_nano, plain_units)
    return ChargePrice(epsilon, units, leak, divergences_of(event))


def _chosen_point(
    event: Event, pure: int | None, leak: int, epsilon_nano: int, plain_units: int
) -> tuple[int, int | None]:
    """The point (delta, epsilon) at which an event without a pure epsilon, or a plan, enters the plain sums.

    Of the delta that plain sums may use it takes the same share as of epsilon, rounded to a power of two, so that
    neither runs out long before the other; for that a rough epsilon is enough, read off the divergences. A plan that
    has a pure epsilon keeps it unless composing it saves more than an eighth.
    """
    room = plain_units - leak
    rough = [
        divergence + conversion_in_nano(excess, room)
        for excess, divergence in zip(EXCESSES, divergences_of(event), strict=True)
        if divergence is not None and room > 0
    ]
    if not rough:
        return leak, pure
    share, halvings = max(1, min(rough)), 0
    while halvings < 40 and share << (halvings + 1) <= epsilon_nano:
        halvings += 1
    units = leak + max(1, room >> halvings)
    composed = composed_nano(event, units)
    if pure is not None and (composed is None or 8 * composed >= 7 * pure):
        return leak, pure
    return units, composed


def black_box_divergences(nano: int, order: Order) -> Divergences:
    """Those of an epsilon-DP black box where `order` looks, None elsewhere: for searches over epsilon."""
    event = RandomizedResponse(epsilon_up(nano))
    with precise_balls():
        fine = {place: _ball_divergence(event, EXCESSES[place]) for place in order.places}
    known = {place: least(nano, None if d is None else -(-d // _FINE)) for place, d in fine.items()}
    return tuple(known.get(place) for place in range(len(ORDERS)))


def _is_plan(event: Event) -> bool:
    return isinstance(event, Composed) and sum(count for _, count in event.parts) > 1


def _check_range(event: Event) -> None:
    if not isinstance(event, Event):
        raise InvalidValue("event", event, "must be an event of farthing.privacy")
    pure = price_of(event).epsilon
    if pure is not None and not pure <= LARGEST_EPSILON:
        raise InvalidValue("event", event, "must cost at most epsilon=1e6", "above that, nothing is private")


def _stored(amount: int | None) -> int:
    return -1 if amount is None else amount


def finite_read(value: Any, name: str) -> int:
    """A whole number >= 0 from stored data."""
    amount = amount_read(value, name)
    assert amount is not None
    return amount

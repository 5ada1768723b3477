"""What one event costs an account, in whole numbers that only need to be added."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb, fmpq

from farthing.accounting import compose
from farthing.accounting.filters.exact_amounts import exact, precise_balls
from farthing.accounting.filters.prices import price_of
from farthing.accounting.filters.renyi_divergence import log_moment, renyi_divergence_upper
from farthing.errors import InvalidValue
from farthing.ledger.amounts import (
    DELTA_UNITS,
    LARGEST_EPSILON,
    NANO,
    double_below,
    epsilon_up,
    nano_up,
    units_up,
)
from farthing.ledger.orders import EXCESSES, ORDERS, PARTS, Divergences, Order, conversion_in_nano
from farthing.privacy import BoundedRange, Composed, Event, RandomizedResponse, Sampled

_FINE = (
    10**9
)  # parts of a plan are priced this much finer than billionths, so that rounding up a plan costs once


@dataclass(frozen=True, slots=True)
class Price:
    """One charge in every currency that an account keeps; None is infinite.

    epsilon_nano, delta_units   its point in the plain sums
    leak_units                  its own delta: the part that Renyi divergences cannot price
    divergences                 at every order of `farthing.ledger.orders`
    alone_nano, alone_units     epsilon at that delta of this charge and nothing else, where it was needed

    >>> from farthing.ledger.account import Account
    >>> price = Account.of(1.0, 1e-9).priced(0.1)
    >>> price.epsilon_nano, price.delta_units
    (100000000, 0)
    >>> Price.from_dict(price.to_dict()) == price
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
        return not (
            self.delta_units or self.leak_units or any(x != 0 for x in (self.epsilon_nano, *self.divergences))
        )

    def to_dict(self) -> dict[str, Any]:
        """Whole numbers and lists of them; -1 is infinite."""
        return {
            "epsilon_nano": _written(self.epsilon_nano),
            "delta_units": self.delta_units,
            "leak_units": self.leak_units,
            "divergences": [_written(amount) for amount in self.divergences],
            "alone_nano": _written(self.alone_nano),
            "alone_units": self.alone_units,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Price:
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
def price_in_budget(event: Event, delta: float | None, epsilon_nano: int, plain_units: int) -> Price:
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
            raise InvalidValue(
                "delta", delta, "no epsilon exists for this event at this delta", "use a larger one"
            )
    else:
        units, epsilon = leak, pure
        if pure is None or _is_plan(event):
            units, epsilon = _chosen_point(event, pure, leak, epsilon_nano, plain_units)
    return Price(epsilon, units, leak, divergences_of(event))


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


@lru_cache(maxsize=4096)
def composed_nano(event: Event, units: int) -> int | None:
    """The least epsilon of `event` at a delta of so many units, by its own curve, in billionths rounded up."""
    bounds = compose([event]).epsilon_at(double_below(Fraction(units, DELTA_UNITS)))
    return nano_up(Fraction(bounds.upper)) if bounds.upper < math.inf else None


def alone_in_nano(event: Event, units: int) -> int | None:
    """The least epsilon known for `event` and nothing else at a delta of so many units."""
    own = price_of(event)
    known = nano_up(own.epsilon) if own.epsilon is not None and units_up(own.leak) <= units else None
    return least(known, composed_nano(event, units))


@lru_cache(maxsize=4096)
def divergences_of(event: Event) -> Divergences:
    """The divergence of `event` at every order, without its leak, rounded up."""
    pure = price_of(event).epsilon  # an epsilon-DP event has no divergence above epsilon
    most = None if pure is None else nano_up(pure)
    return tuple(
        least(most, None if fine is None else -(-fine // _FINE)) for fine in _fine_divergences(event)
    )


def black_box_divergences(nano: int, order: Order) -> Divergences:
    """Those of an epsilon-DP black box where `order` looks, None elsewhere: for searches over epsilon."""
    event = RandomizedResponse(epsilon_up(nano))
    with precise_balls():
        fine = {place: _ball_divergence(event, EXCESSES[place]) for place in order.places}
    known = {place: least(nano, None if d is None else -(-d // _FINE)) for place, d in fine.items()}
    return tuple(known.get(place) for place in range(len(ORDERS)))


@lru_cache(maxsize=4096)
def _fine_divergences(event: Event) -> Divergences:
    if isinstance(event, Composed):
        parts = [(_fine_divergences(part), count) for part, count in event.parts if count]
        sums = zip(*([None if d is None else count * d for d in part] for part, count in parts), strict=True)
        return tuple(_total(amounts) for amounts in sums) if parts else (0,) * len(ORDERS)
    if isinstance(event, Sampled | BoundedRange):
        return tuple(_generic(event, alpha) for alpha in ORDERS)
    with precise_balls():
        return tuple(_ball_divergence(event, excess) for excess in EXCESSES)


def _generic(event: Event, alpha: float) -> int | None:
    try:
        return math.ceil(renyi_divergence_upper(event, alpha) * NANO * _FINE)
    except InvalidValue:  # no finite bound at this order, or too large an order for a sampled event
        return None


def _ball_divergence(event: Event, excess: int) -> int | None:
    """log M(alpha - 1) / (alpha - 1) in the finest units, rounded up."""
    ball = log_moment(event, arb(fmpq(excess, PARTS))) * fmpq(PARTS, excess)
    if not ball.is_finite():
        return None
    return max(0, int((ball * (NANO * _FINE)).upper().ceil().unique_fmpz()))


def _total(amounts: tuple[int | None, ...]) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


def least(one: int | None, other: int | None) -> int | None:
    """The lesser of two amounts, None being infinite."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _is_plan(event: Event) -> bool:
    return isinstance(event, Composed) and sum(count for _, count in event.parts) > 1


def _check_range(event: Event) -> None:
    if not isinstance(event, Event):
        raise InvalidValue("event", event, "must be an event of farthing.privacy")
    pure = price_of(event).epsilon
    if pure is not None and not pure <= LARGEST_EPSILON:
        raise InvalidValue("event", event, "must cost at most epsilon=1e6", "beyond, nothing is private")


def _written(amount: int | None) -> int:
    return -1 if amount is None else amount


def amount_read(value: Any, name: str, *, infinite: bool = False) -> int | None:
    """A whole number >= 0 from stored data; -1, if allowed, is infinite."""
    if isinstance(value, bool) or not isinstance(value, int) or not value >= (-1 if infinite else 0):
        raise InvalidValue(name, value, "must be a whole number >= 0", "the stored account was changed")
    return None if value == -1 else value


def finite_read(value: Any, name: str) -> int:
    """A whole number >= 0 from stored data."""
    amount = amount_read(value, name)
    assert amount is not None
    return amount


def divergences_read(values: Any) -> Divergences:
    """One amount for each order, from stored data."""
    if not isinstance(values, list) or len(values) != len(ORDERS):
        raise InvalidValue("divergences", values, f"must be {len(ORDERS)} whole numbers")
    if set(map(type, values)) == {int} and min(values) >= 0:  # nearly always; -1 is infinite
        return tuple(values)
    return tuple(amount_read(value, "divergences", infinite=True) for value in values)

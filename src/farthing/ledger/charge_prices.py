"""What one event costs an account, in whole numbers that only need to be added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from farthing.accounting.event_price import (
    EXCESSES,
    LARGEST_EPSILON,
    Divergences,
    alone_in_nano,
    amount_read,
    composed_nano,
    divergences_of,
    divergences_read,
    nano_up,
    price_of,
    units_up,
)
from farthing.accounting.filters.clock_costs import ClockCost
from farthing.errors import InvalidValue
from farthing.ledger.older_accounts import conversion_in_nano
from farthing.numerics.bounds import exact
from farthing.privacy import Composed, Event


@dataclass(frozen=True, slots=True)
class ChargePrice:
    """One charge in every currency that an account keeps; None is infinite.

    epsilon_nano, delta_units   its point in the plain sums
    leak_units                  its own delta: the part that a clock cannot pay, far tails of samples included
    clock_units, excess_units   what it takes of the clock, and by how much it may exceed the curve that this pays for
    alone_nano, alone_units     epsilon at that delta of this charge and nothing else, where it was needed
    only_sums                   1 where it is the first charge and leaves plain sums with all of delta
    divergences                 of a charge that an older version made, at every order

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
    clock_units: int | None
    excess_units: int = 0
    alone_nano: int | None = None
    alone_units: int = 0
    only_sums: int = 0
    divergences: Divergences = ()

    @property
    def is_nothing(self) -> bool:
        """Whether the charge is (0, 0)-DP: it costs nothing in any currency."""
        amounts = (self.epsilon_nano, self.clock_units, *self.divergences)
        return not (self.delta_units or self.leak_units or self.excess_units or any(x != 0 for x in amounts))

    def to_dict(self) -> dict[str, Any]:
        """Whole numbers; -1 is infinite."""
        return {
            "epsilon_nano": _stored(self.epsilon_nano),
            "delta_units": self.delta_units,
            "leak_units": self.leak_units,
            "clock_units": _stored(self.clock_units),
            "excess_units": self.excess_units,
            "alone_nano": _stored(self.alone_nano),
            "alone_units": self.alone_units,
            "only_sums": self.only_sums,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ChargePrice:
        """The price that `to_dict` wrote, in this version or in one whose accounts added up divergences."""
        older = "divergences" in data
        return cls(
            amount_read(data["epsilon_nano"], "epsilon_nano", infinite=True),
            finite_read(data["delta_units"], "delta_units"),
            finite_read(data["leak_units"], "leak_units"),
            0 if older else amount_read(data["clock_units"], "clock_units", infinite=True),
            0 if older else finite_read(data["excess_units"], "excess_units"),
            amount_read(data["alone_nano"], "alone_nano", infinite=True),
            finite_read(data["alone_units"], "alone_units"),
            0 if older else finite_read(data["only_sums"], "only_sums"),
            divergences_read(data["divergences"]) if older else (),
        )


@lru_cache(maxsize=65536)
def price_in_budget(
    event: Event, delta: float | None, epsilon_nano: int, plain_units: int, clock: ClockCost | None
) -> ChargePrice:
    """The price of `event` in a budget whose plain sums may use `plain_units` of delta, and whose clock pays `clock`.

    What the clock pays is the same until what is left of it falls to another level, so a repeated event is priced once
    for each level.
    """
    epsilon, units, leak = _point(event, delta, epsilon_nano, plain_units)
    taken, excess, tails = (None, 0, 0) if clock is None else clock
    return ChargePrice(epsilon, units, leak + tails, taken, excess)


@lru_cache(maxsize=4096)
def _point(event: Event, delta: float | None, epsilon_nano: int, plain_units: int) -> tuple[int | None, int, int]:
    """Epsilon and delta at which an event enters the plain sums, and its own delta."""
    _check_range(event)
    own = price_of(event)
    pure = None if own.epsilon is None else nano_up(own.epsilon)
    leak = own_units(event)
    if delta is not None:
        units = units_up(exact(delta))
        epsilon = alone_in_nano(event, units)
        if epsilon is None:
            raise InvalidValue("delta", delta, "no epsilon exists for this event at this delta", "use a larger one")
    else:
        units, epsilon = leak, pure
        if pure is None or _is_plan(event):
            units, epsilon = _chosen_point(event, pure, leak, epsilon_nano, plain_units)
    return epsilon, units, leak


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


@lru_cache(maxsize=4096)
def own_units(event: Event) -> int:
    """The own delta of an event, rounded up.

    >>> from farthing.privacy import ApproxDP
    >>> own_units(ApproxDP(0.1, 1e-9)) == 10**31
    True
    """
    return units_up(price_of(event).leak)


def finite_read(value: Any, name: str) -> int:
    """A whole number >= 0 from stored data."""
    amount = amount_read(value, name)
    assert amount is not None
    return amount

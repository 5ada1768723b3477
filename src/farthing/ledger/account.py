"""An account: a budget, what was charged to it in whole numbers, and the rule that says whether more fits."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import add
from typing import Any

from farthing.accounting.filters.event_prices import Charge, as_event
from farthing.errors import InvalidValue
from farthing.ledger.charge_prices import (
    NOTHING,
    Divergences,
    Order,
    Price,
    alone_in_nano,
    amount_read,
    black_box_divergences,
    divergences_of,
    divergences_read,
    finite_read,
    order_of,
    price_in_budget,
)
from farthing.ledger.integer_amounts import (
    budget_in_nano,
    budget_in_units,
    delta_down,
    epsilon_down,
    epsilon_up,
)
from farthing.privacy import ApproxDP
from farthing.privacy.events import checked_delta

__all__ = ["Account", "Withheld"]

Withheld = tuple[int, int]
"""What is set aside: billionths of epsilon and units of delta."""

_NONE: Withheld = (0, 0)
_DELTAS = (0.0, *(float(f"{tens}e-{power}") for power in range(40, 1, -1) for tens in range(10, 100)))
_PLAIN = (
    "epsilon_nano", "delta_units", "count", "sum_nano", "sum_units", "leak_units", "whole_units", "only_sums",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Account:
    """A budget (epsilon, delta) and the sums of what was charged to it, as a frozen value of whole numbers.

    `priced` says what an event costs, `admits` whether that fits, `after` what the account is then. Every charge
    may depend on all answers before it.

    >>> account = Account.of(epsilon=1.0, delta=1e-9)
    >>> tenth = account.priced(0.1)
    >>> for _ in range(10):
    ...     assert account.admits(tenth)
    ...     account = account.after(tenth)
    >>> account.admits(tenth), account.remaining.epsilon, account.spent_upper
    (False, 0.0, 1.0)

    Statement:
        Let filters F_1 .. F_m be conditions on the charges of a path that, once broken, stay broken. Let each F_j
        alone guarantee (epsilon, delta_j)-DP to every adaptive analyst who is stopped before breaking it, and let
        the delta_j sum to at most delta. Admit a charge when the path after it satisfies at least one F_j. Then all
        answers together are (epsilon, delta)-DP.
        Here F_1 is the filter of plain sums at (epsilon, delta/2), and F_2 the Renyi filter at (epsilon, delta/2),
        half of that slack and half for the charges' own deltas, at an order that is a function of the budget alone.
        With delta = 0 there is F_1 only.
        Budgets may be raised or lowered at any time and for any reason, answers included: if every budget that could
        have been in force is at most (epsilon, delta), all answers together are (epsilon, delta)-DP.
        First charge: one that is made before any answer may choose the rule. If the filters side by side refuse it but
        plain sums with all of delta do not, then from there on the account is plain sums with all of delta. If they
        refuse it too but it is (epsilon, delta)-DP by its own curve, it is admitted and nothing after it.
        Nothing: a charge that is (0, 0)-DP is always admitted, and changes nothing but the number of charges.
    Source: this proof. Let S be a set of transcripts, and S_j those of S that satisfy F_j at their end and no
        filter before it in the list; they split S. On S_j no charge ever broke F_j, so each of its transcripts is as
        likely as with the analyst who is stopped by F_j: P(S_j) <= e^epsilon Q(S_j) + delta_j. Add up.
        First charge: nothing was answered when it is made, so which rule it falls under does not depend on the data,
        and each of the three rules is a theorem by itself.
        Nothing: whatever was answered before, its answer is as likely beside a neighbour. So a transcript with it is
        one without it, processed further by a rule that knows no rows.
        Budgets: what F_j admits under a budget it admits under a larger one (`order_of` says why), so every path ends
        with some F_j of the largest budget unbroken.
        The two filters are BasicFilter and RenyiFilter of `farthing.accounting.filters`, with their own sources.
    Assumes: each mechanism keeps its price whatever the answers before it; shares of delta and the order are fixed by
        the budget.
    Direction: prices are rounded up and limits down, to whole numbers; comparisons are exact.
    Checked by: tests/theorems/test_filters_side_by_side.py
    """

    epsilon_nano: int
    delta_units: int
    count: int = 0
    sum_nano: int | None = 0
    sum_units: int = 0
    leak_units: int = 0
    divergences: Divergences = NOTHING
    whole_nano: int | None = None
    whole_units: int = 0
    only_sums: int = 0

    @classmethod
    def of(cls, epsilon: float, delta: float = 0.0) -> Account:
        """An empty account; the budget is rounded down to whole billionths (delta to 1e-40ths).

        >>> Account.of(0.5)
        Account(epsilon=0.5, delta=0.0; 0 charges)
        """
        return cls(budget_in_nano(epsilon), budget_in_units(delta))

    @property
    def budget(self) -> ApproxDP:
        """The whole budget.

        >>> Account.of(1.0, 1e-9).budget
        ApproxDP(epsilon=1.0, delta=1e-09)
        """
        return ApproxDP(epsilon_down(self.epsilon_nano), delta_down(self.delta_units))

    def with_budget(self, epsilon: float, delta: float = 0.0) -> Account:
        """The same charges under another budget; nothing is read again, because sums are kept at every order.

        >>> full = Account.of(0.1)
        >>> full = full.after(full.priced(0.1))
        >>> full.admits(full.priced(0.1)), full.with_budget(0.2).admits(full.priced(0.1))
        (False, True)
        """
        return replace(self, epsilon_nano=budget_in_nano(epsilon), delta_units=budget_in_units(delta))

    def priced(self, charge: Charge, delta: float | None = None) -> Price:
        """What an event costs here. A `Composed` event is one fixed plan, composed inside by its own curves.

        `delta` is the delta at which it enters the plain sums. Unless told: its own delta when it has a pure epsilon;
        else, and for a plan that gains by it, the same share of the plain sums' delta as it takes of epsilon.

        >>> from farthing.privacy import GaussianNoise
        >>> account = Account.of(1.0, 1e-6)
        >>> account.priced((0.25, 1e-9)).delta_units == 10**31
        True
        >>> account.priced(GaussianNoise(40.0)).epsilon_nano < account.priced(GaussianNoise(40.0), 1e-12).epsilon_nano
        True
        """
        event = as_event(charge)
        wanted = None if delta is None else checked_delta(delta)
        price = price_in_budget(event, wanted, self.epsilon_nano, self._plain_units)
        if not self.untouched or self.after(price)._fits():
            return price
        return replace(price, alone_nano=alone_in_nano(event, self.delta_units), alone_units=self.delta_units)

    def admits(self, price: Price, withheld: Withheld = _NONE) -> bool:
        """Whether a charge fits; with `withheld`, whether a charge of that size would still fit after it.

        >>> account = Account.of(1.0)
        >>> price = account.priced(0.6)
        >>> account.admits(price), account.admits(price, withheld=(500_000_000, 0))
        (True, False)
        """
        return self.admitted(price, withheld) is not None

    def admitted(self, price: Price, withheld: Withheld = _NONE) -> Account | None:
        """The account with this charge in it if it fits, or None.

        >>> account = Account.of(1.0)
        >>> account.admitted(account.priced(0.25)).sum_nano, account.admitted(account.priced(1.25))
        (250000000, None)
        """
        after = self.after(price)
        if withheld != _NONE:
            fits = after.after(_withheld_price(withheld))._fits()
        else:
            fits = after._fits() or after._whole_fits()
        return after if fits or price.is_nothing else None

    @property
    def untouched(self) -> bool:
        """Whether nothing was charged but charges of nothing: then nothing that was answered depends on any row.

        >>> account = Account.of(1.0, 1e-9)
        >>> account.after(account.priced(0.0)).untouched, account.after(account.priced((0.0, 1e-20))).untouched
        (True, False)
        """
        if not self.count:
            return True
        if self.sum_nano != 0 or self.sum_units or self.leak_units:
            return False
        return not any(x != 0 for x in self.divergences)

    @property
    def pricing(self) -> tuple[int, int, int, bool]:
        """All that a price depends on besides the event: the budget, the rule, and whether it is the first charge.

        >>> Account.of(0.5).pricing
        (500000000, 0, 0, True)
        """
        return self.epsilon_nano, self.delta_units, self.only_sums, self.untouched

    def after(self, price: Price) -> Account:
        """The account with this charge in it, whether it fits or not.

        >>> account = Account.of(1.0)
        >>> account.after(account.priced(0.25)).sum_nano
        250000000
        """
        first = self.untouched  # only the first charge may choose the rule
        whole_nano, whole_units = None, 0
        if first:
            whole_nano, whole_units = price.alone_nano, price.alone_units
        elif self.whole_nano is not None:
            whole_nano, whole_units = self._whole_after(price)
        after = Account(
            self.epsilon_nano,
            self.delta_units,
            self.count + 1,
            _plus(self.sum_nano, price.epsilon_nano),
            self.sum_units + price.delta_units,
            self.leak_units + price.leak_units,
            _sums(self.divergences, price.divergences),
            whole_nano,
            whole_units,
            self.only_sums,
        )
        if first and not after._fits():
            sums = replace(after, only_sums=1)
            return sums if sums._fits() else after
        return after

    def after_many(self, price: Price, times: int) -> Account:
        """The account with this charge in it so many times: what `after` comes to, where charges were made before.

        >>> account = Account.of(1.0, 1e-9)
        >>> price = account.priced(0.1)
        >>> account.after(price).after_many(price, 2) == account.after(price).after(price).after(price)
        True
        """
        assert not self.untouched, "the first charge may choose the rule"
        whole_nano, whole_units = self._whole_after(price)
        return replace(
            self,
            count=self.count + times,
            sum_nano=_plus(self.sum_nano, _times(price.epsilon_nano, times)),
            sum_units=self.sum_units + times * price.delta_units,
            leak_units=self.leak_units + times * price.leak_units,
            divergences=_sums(self.divergences, tuple(_times(part, times) for part in price.divergences)),
            whole_nano=whole_nano,
            whole_units=whole_units,
        )

    @property
    def is_whole(self) -> bool:
        """Whether the first charge was admitted by its own curve and took the whole budget.

        >>> from farthing.privacy import Composed, GaussianNoise
        >>> account = Account.of(1.0, 1e-9)
        >>> account.after(account.priced(Composed(((GaussianNoise(20.0), 13),)))).is_whole
        True
        """
        return self._whole_fits() and not self._fits()

    def to_dict(self) -> dict[str, Any]:
        """The state as whole numbers, ready for JSON; -1 is infinite."""
        data = {name: getattr(self, name) for name in self.__slots__}
        return {
            name: [*map(_written, v)] if name == "divergences" else _written(v) for name, v in data.items()
        }

    def text(self) -> str:
        """What `canonical` makes of `to_dict`, written at once: every charge writes it.

        >>> Account.of(0.5).text()[:45]
        '{"count":0,"delta_units":0,"divergences":[0,0'
        """
        divergences = ",".join(map(str, self.divergences))
        if "N" in divergences:  # None, which is infinite
            divergences = ",".join(str(_written(amount)) for amount in self.divergences)
        return (
            f'{{"count":{self.count},"delta_units":{self.delta_units},"divergences":[{divergences}],'
            f'"epsilon_nano":{self.epsilon_nano},"leak_units":{self.leak_units},"only_sums":{self.only_sums},'
            f'"sum_nano":{_written(self.sum_nano)},"sum_units":{self.sum_units},'
            f'"whole_nano":{_written(self.whole_nano)},"whole_units":{self.whole_units}}}'
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Account:
        """The account that `to_dict` wrote; anything else is refused.

        >>> account = Account.of(1.0, 1e-9)
        >>> Account.from_dict(account.to_dict()) == account
        True
        """
        if set(data) != set(cls.__slots__):
            raise InvalidValue("account", sorted(data), f"must have the keys {', '.join(cls.__slots__)}")
        plain, whole = [data[name] for name in _PLAIN], data["whole_nano"]
        if (
            set(map(type, plain)) == {int} and min(plain) >= 0 and type(whole) is int and whole == -1
        ):  # nearly always
            epsilon, budget, count, nano, units, leak, whole_units, only_sums = plain
            sums = divergences_read(data["divergences"])
            return cls(epsilon, budget, count, nano, units, leak, sums, None, whole_units, only_sums)
        return cls(
            finite_read(data["epsilon_nano"], "epsilon_nano"),
            finite_read(data["delta_units"], "delta_units"),
            finite_read(data["count"], "count"),
            amount_read(data["sum_nano"], "sum_nano", infinite=True),
            finite_read(data["sum_units"], "sum_units"),
            finite_read(data["leak_units"], "leak_units"),
            divergences_read(data["divergences"]),
            amount_read(data["whole_nano"], "whole_nano", infinite=True),
            finite_read(data["whole_units"], "whole_units"),
            finite_read(data["only_sums"], "only_sums"),
        )

    @property
    def remaining(self) -> ApproxDP:
        """The largest (epsilon, delta)-DP charge that would still be admitted, rounded down.

        >>> account = Account.of(1.0, 1e-9)
        >>> account.remaining
        ApproxDP(epsilon=1.0, delta=1e-09)
        >>> account = account.after(account.priced(0.3))
        >>> account.remaining
        ApproxDP(epsilon=0.7, delta=5e-10)
        """
        return self.remaining_beside(_NONE)

    def remaining_beside(self, withheld: Withheld) -> ApproxDP:
        """The largest (epsilon, delta)-DP charge that would be admitted with something set aside.

        >>> Account.of(1.0).remaining_beside((250_000_000, 0))
        ApproxDP(epsilon=0.75, delta=0.0)
        """
        if withheld == _NONE and self.untouched:
            return self.budget  # the next charge may choose its rule, and so have all of delta
        state = self if withheld == _NONE else self.after(_withheld_price(withheld))
        state = replace(state, only_sums=self.only_sums)  # what is set aside is no charge and chooses no rule
        plain = 0, 0
        if state.sum_nano is not None:
            plain = state.epsilon_nano - state.sum_nano, state._plain_units - state.sum_units
        renyi = state._renyi_left()
        nano, units = max((left for left in (plain, renyi) if min(left) >= 0), default=(0, 0))
        return ApproxDP(epsilon_down(nano), delta_down(units))

    @property
    def spent_upper(self) -> float:
        """The least epsilon such that a budget (epsilon, delta) would have admitted the same charges.

        It is a reading of the account, not a licence to stop and claim less: what is guaranteed is the budget.

        >>> account = Account.of(1.0, 1e-9)
        >>> account.after(account.priced(0.3)).spent_upper
        0.3
        """
        if not self.count:
            return 0.0
        known = [self.sum_nano] if self.sum_nano is not None and self.sum_units <= self._plain_units else []
        if self.whole_nano is not None and self.whole_units <= self.delta_units:
            known.append(self.whole_nano)
        known += self._renyi_reading()
        return epsilon_up(min(known)) if known else math.inf

    def least_delta(self, epsilon: float) -> float:
        """A two-digit delta with which `epsilon` covers what was spent; if none does, with which any epsilon does.

        >>> account = Account.of(1.0, 1e-6)
        >>> account.after(account.priced((0.3, 1e-8))).least_delta(1.0)
        2e-08
        """
        nano = budget_in_nano(epsilon)

        def fits(units: int) -> bool:
            under = replace(self, epsilon_nano=nano, delta_units=units)
            return under._fits() or under._whole_fits()

        def covers(units: int) -> bool:
            return replace(self, epsilon_nano=nano, delta_units=units).spent_upper < math.inf

        enough = fits if fits(budget_in_units(_DELTAS[-1])) else covers
        # What fits a budget fits a larger one (see Source), so the list is cut where it begins to fit.
        place = bisect_left(_DELTAS, True, key=lambda delta: enough(budget_in_units(delta)))
        return _DELTAS[min(place, len(_DELTAS) - 1)]

    def __repr__(self) -> str:
        noun = "charge" if self.count == 1 else "charges"
        budget = self.budget
        return f"Account(epsilon={budget.epsilon!r}, delta={budget.delta!r}; {self.count} {noun})"

    @property
    def _plain_units(self) -> int:
        return self.delta_units if self.only_sums else self.delta_units // 2

    @property
    def _slack_units(self) -> int:
        return 0 if self.only_sums else self.delta_units // 4  # and as much again for the charges' own deltas

    @property
    def _order(self) -> Order | None:
        return order_of(self.epsilon_nano, self._slack_units) if self._slack_units else None

    def _fits(self) -> bool:
        """Whether one of the filters side by side holds."""
        return self._plain_fits() or self._renyi_fits()

    def _plain_fits(self) -> bool:
        return (
            self.sum_nano is not None
            and self.sum_nano <= self.epsilon_nano
            and self.sum_units <= self._plain_units
        )

    def _renyi_fits(self) -> bool:
        order = self._order
        return order is not None and self.leak_units <= self._slack_units and order.holds(self.divergences)

    def _whole_fits(self) -> bool:
        """Whether the only charge fits by its own curve."""
        fits = self.whole_nano is not None and self.whole_nano <= self.epsilon_nano
        return fits and self.whole_units <= self.delta_units

    def _whole_after(self, price: Price) -> tuple[int | None, int]:
        """What the first charge is by its own curve, as long as nothing but nothing came after it."""
        return (self.whole_nano, self.whole_units) if price.is_nothing else (None, 0)

    def _renyi_left(self) -> tuple[int, int]:
        """The largest black-box charge that the Renyi filter admits (billionths, units); negative if none."""
        if not self._renyi_fits():
            return -1, -1
        order, low, high = self._order, 0, 2 * self.epsilon_nano + 1
        assert order is not None
        while high - low > 1:
            middle = (low + high) // 2
            if order.holds(_sums(self.divergences, black_box_divergences(middle, order))):
                low = middle
            else:
                high = middle
        return low, self._slack_units - self.leak_units

    def _renyi_reading(self) -> list[int]:
        """The least epsilon at which the Renyi filter holds, if there is one."""
        low, high = 0, self.epsilon_nano
        while high <= 2**60 and not replace(self, epsilon_nano=high)._renyi_fits():
            low, high = high, 2 * high + 1
        if high > 2**60:
            return []
        while high - low > 1:
            middle = (low + high) // 2
            if replace(self, epsilon_nano=middle)._renyi_fits():
                high = middle
            else:
                low = middle
        return [high]


def _times(amount: int | None, times: int) -> int | None:
    return None if amount is None else times * amount


def _plus(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _sums(some: Divergences, others: Divergences) -> Divergences:
    try:
        return tuple(map(add, some, others))
    except TypeError:  # one of them is infinite somewhere, which is rare
        return tuple(map(_plus, some, others))


def _written(amount: int | None) -> int:
    return -1 if amount is None else amount


@lru_cache(maxsize=256)
def _withheld_price(withheld: Withheld) -> Price:
    """A black-box charge of what is set aside."""
    nano, units = withheld
    return Price(nano, units, units, divergences_of(ApproxDP(epsilon_up(nano))))

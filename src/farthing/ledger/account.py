"""An account: a budget, what was charged to it in whole numbers, and the rule that says whether more fits.

`Holding` is an account with what is withheld from it: charges that wait for their answer, and reserves. `Budget` is how
it stands, for people.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from operator import add
from typing import Any

from farthing.accounting import compose
from farthing.accounting.event_price import (
    NOTHING,
    Charge,
    Divergences,
    alone_in_nano,
    amount_read,
    as_event,
    budget_in_nano,
    budget_in_units,
    delta_down,
    divergences_of,
    divergences_read,
    epsilon_down,
    epsilon_up,
)
from farthing.errors import FarthingError, InvalidValue
from farthing.ledger.charge_prices import (
    ChargePrice,
    Order,
    black_box_divergences,
    finite_read,
    order_of,
    price_in_budget,
)
from farthing.ledger.tamper_evidence import canonical
from farthing.numerics import Bounds
from farthing.numerics.bounds import ceiling
from farthing.privacy.events import ApproxDP, Event, checked_delta
from farthing.privacy.units import Unit

__all__ = ["Account", "Withheld"]

Withheld = tuple[int, int]
"""What is set aside: billionths of epsilon and units of delta."""

_NONE: Withheld = (0, 0)
_DELTAS = (0.0, *(float(f"{tens}e-{power}") for power in range(40, 1, -1) for tens in range(10, 100)))
_PLAIN = (
    "epsilon_nano",
    "delta_units",
    "count",
    "sum_nano",
    "sum_units",
    "leak_units",
    "whole_units",
    "only_sums",
)


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

    def priced(self, charge: Charge, delta: float | None = None) -> ChargePrice:
        """What an event costs here. A `Composed` event is one fixed plan, composed inside by its exact curves.

        `delta` is the delta at which it enters the plain sums. By default: its own delta when it has a pure epsilon;
        else, and for a plan that gains by it, the same share of the plain sums' delta as it takes of epsilon.

        >>> from farthing.privacy import GaussianNoise
        >>> account = Account.of(1.0, 1e-6)
        >>> account.priced((0.25, 1e-9)).delta_units == 10**31
        True
        >>> account.priced(GaussianNoise(40.0)).epsilon_nano < account.priced(GaussianNoise(40.0), 1e-12).epsilon_nano
        True
        """
        event = as_event(charge)
        target_delta = None if delta is None else checked_delta(delta)
        price = price_in_budget(event, target_delta, self.epsilon_nano, self._plain_units)
        if not self.untouched or self.after(price)._fits():
            return price
        return replace(price, alone_nano=alone_in_nano(event, self.delta_units), alone_units=self.delta_units)

    def admits(self, price: ChargePrice, withheld: Withheld = _NONE) -> bool:
        """Whether a charge fits; with `withheld`, whether a charge of that size would still fit after it.

        >>> account = Account.of(1.0)
        >>> price = account.priced(0.6)
        >>> account.admits(price), account.admits(price, withheld=(500_000_000, 0))
        (True, False)
        """
        return self.admitted(price, withheld) is not None

    def admitted(self, price: ChargePrice, withheld: Withheld = _NONE) -> Account | None:
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

    def after(self, price: ChargePrice) -> Account:
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

    def after_many(self, price: ChargePrice, times: int) -> Account:
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
        return {name: [*map(_stored, v)] if name == "divergences" else _stored(v) for name, v in data.items()}

    def text(self) -> str:
        """What `canonical` makes of `to_dict`, written at once: every charge writes it.

        >>> Account.of(0.5).text()[:45]
        '{"count":0,"delta_units":0,"divergences":[0,0'
        """
        divergences = ",".join(map(str, self.divergences))
        if "N" in divergences:  # None, which is infinite
            divergences = ",".join(str(_stored(amount)) for amount in self.divergences)
        return (
            f'{{"count":{self.count},"delta_units":{self.delta_units},"divergences":[{divergences}],'
            f'"epsilon_nano":{self.epsilon_nano},"leak_units":{self.leak_units},"only_sums":{self.only_sums},'
            f'"sum_nano":{_stored(self.sum_nano)},"sum_units":{self.sum_units},'
            f'"whole_nano":{_stored(self.whole_nano)},"whole_units":{self.whole_units}}}'
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
        # Nearly always.
        if set(map(type, plain)) == {int} and min(plain) >= 0 and type(whole) is int and whole == -1:
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
        return self.sum_nano is not None and self.sum_nano <= self.epsilon_nano and self.sum_units <= self._plain_units

    def _renyi_fits(self) -> bool:
        order = self._order
        return order is not None and self.leak_units <= self._slack_units and order.holds(self.divergences)

    def _whole_fits(self) -> bool:
        """Whether the only charge fits by its own curve."""
        fits = self.whole_nano is not None and self.whole_nano <= self.epsilon_nano
        return fits and self.whole_units <= self.delta_units

    def _whole_after(self, price: ChargePrice) -> tuple[int | None, int]:
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


def _stored(amount: int | None) -> int:
    return -1 if amount is None else amount


@lru_cache(maxsize=256)
def _withheld_price(withheld: Withheld) -> ChargePrice:
    """A black-box charge of what is set aside."""
    nano, units = withheld
    return ChargePrice(nano, units, units, divergences_of(ApproxDP(epsilon_up(nano))))


@dataclass(frozen=True)
class Holding:
    """The state of a dataset's budget, or of one analyst's grant in it.

    A charge and its replay in a verification go through the same functions, so they cannot differ.

    >>> from farthing.ledger.account import Account
    >>> holding = Holding(Account.of(1.0, 0.0)).with_reserve("census day", 200_000_000, 0)
    >>> Holding.of_text(holding.text()) == holding, holding.withheld()
    (True, (200000000, 0))
    """

    account: Account
    reserves: dict[str, tuple[int, int]] = field(default_factory=dict)
    waiting: int = 0
    waiting_nano: int = 0
    unit: Unit | str = ""  # words where an older version, or somebody in their own, wrote them
    sources: frozenset[str] | None = None  # signatures of the tables it stands for; None: an older version did not say

    def text(self) -> str:
        """The state in its one spelling: whole numbers, names and nothing else."""
        reserves, unit = self.reserves, self.unit
        sources = f'"sources":{_sources_text(self.sources)},' if self.sources is not None else ""
        return (
            f'{{"account":{self.account.text()},"reserves":{canonical(reserves) if reserves else "{}"},'
            f'{sources}"unit":{_unit_text(unit)},"waiting":{self.waiting},"waiting_nano":{self.waiting_nano}}}'
        )

    def sums(self) -> str:
        """The beginning of what an entry says about the state: the plain sums; a fingerprint of all of it follows."""
        account = self.account
        plain = -1 if account.sum_nano is None else account.sum_nano
        return (
            f'{{"count":{account.count},"leak_units":{account.leak_units},"sum_nano":{plain},'
            f'"sum_units":{account.sum_units},"whole":"'
        )

    @classmethod
    def of_text(cls, text: str) -> Holding:
        """The state that `text` wrote."""
        data = json.loads(text)
        return cls(
            Account.from_dict(data["account"]),
            {str(name): (int(nano), int(units)) for name, (nano, units) in data["reserves"].items()},
            int(data["waiting"]),
            int(data["waiting_nano"]),
            Unit.from_dict(data["unit"]) if isinstance(data["unit"], dict) else str(data["unit"]),
            frozenset(map(str, data["sources"])) if "sources" in data else None,
        )

    def withheld(self, *, but: str = "") -> tuple[int, int]:
        """What reserves set aside, all together or all but one."""
        set_aside = [amounts for name, amounts in self.reserves.items() if name != but]
        return sum(nano for nano, _ in set_aside), sum(units for _, units in set_aside)

    def admits(self, price: ChargePrice, reserve: str = "") -> bool:
        """Whether a charge fits next to what is spent and what is set aside (a named reserve may be used)."""
        return self.admitted(price, reserve) is not None

    def admitted(self, price: ChargePrice, reserve: str = "") -> Holding | None:
        """The state after a charge if it fits, or None."""
        account = self.account.admitted(price, self.withheld(but=reserve) if self.reserves else (0, 0))
        return None if account is None else self._with_charge(account, price, reserve)

    def charged(self, price: ChargePrice, reserve: str = "") -> Holding:
        """The state after a charge that was admitted; it waits for its answer."""
        return self._with_charge(self.account.after(price), price, reserve)

    def _with_charge(self, account: Account, price: ChargePrice, reserve: str) -> Holding:
        reserves = self.reserves
        if reserve:
            nano, units = reserves[reserve]
            left = (max(0, nano - _or_default(price.epsilon_nano, nano)), max(0, units - price.delta_units))
            reserves = _with(reserves, reserve, left)
        return Holding(
            account,
            reserves,
            self.waiting + 1,
            self.waiting_nano + _or_default(price.epsilon_nano, 0),
            self.unit,
            self.sources,
        )

    def settled(self, nano: int) -> Holding:
        """The state after a waiting charge of so much (-1: infinite) was answered or forfeited. It stays spent."""
        return self._waiting(self.waiting - 1, self.waiting_nano - max(0, nano))

    def charged_many(self, price: ChargePrice, times: int) -> Holding:
        """The state after so many charges of one price, none of them the first."""
        nano = self.waiting_nano + times * _or_default(price.epsilon_nano, 0)
        account = self.account.after_many(price, times)
        return Holding(account, self.reserves, self.waiting + times, nano, self.unit, self.sources)

    def settled_many(self, times: int, nano: int) -> Holding:
        """The state after so many charges, of so much together, were answered or forfeited."""
        return self._waiting(self.waiting - times, self.waiting_nano - nano)

    def _waiting(self, waiting: int, nano: int) -> Holding:
        return Holding(self.account, self.reserves, waiting, nano, self.unit, self.sources)

    def with_budget(self, epsilon: float, delta: float) -> Holding:
        """The same history under another budget."""
        return replace(self, account=self.account.with_budget(epsilon, delta))

    def with_reserve(self, name: str, nano: int, units: int) -> Holding:
        """So much set aside under `name`; nothing frees it."""
        return replace(self, reserves=_with(self.reserves, name, (nano, units)))

    def with_sources(self, signatures: Iterable[str]) -> Holding:
        """The same for further tables."""
        return replace(self, sources=frozenset().union(self.sources or (), signatures))


def checked_reserve(holding: Holding, name: str | None) -> str:
    """The name of a reserve that exists, or nothing."""
    if name is None:
        return ""
    if name not in holding.reserves:
        known = ", ".join(sorted(holding.reserves)) or "none"
        raise InvalidValue("use_reserve", name, f"must name a reserve of this dataset ({known})")
    return name


@lru_cache(maxsize=64)
def _sources_text(sources: frozenset[str]) -> str:
    return canonical(sorted(sources))


@lru_cache(maxsize=256)
def _unit_text(unit: Unit | str) -> str:
    return canonical(unit.to_dict() if isinstance(unit, Unit) else unit)


def _or_default(amount: int | None, otherwise: int) -> int:
    return otherwise if amount is None else amount


def _with(reserves: dict[str, tuple[int, int]], name: str, amounts: tuple[int, int]) -> dict[str, tuple[int, int]]:
    others = {other: kept for other, kept in reserves.items() if other != name}
    return {**others, name: amounts} if any(amounts) else others


@dataclass(frozen=True)
class Budget:
    """A budget as it stands: the account's reading, what waits for answers, what is set aside, what would still fit.

    Args:
        dataset: The name of the dataset.
        analyst: Whose grant it is; nothing for the dataset's own budget.
        total: The whole budget.
        spent_upper: What the account reads: the epsilon spent, at the total's delta, rounded up.
        reserved: The part of what is spent whose answer has not been given yet, in plain sums; it counts as spent.
        withheld: What reserves set aside, by name.
        remaining: The largest (epsilon, delta) charge that would be admitted now.
        count: How many charges there were.
        unit: In words, whose privacy it is.
        untouched: Whether nothing was charged yet but charges of nothing.
        protects: Whose privacy it is, as data; None where nobody said, or where the ledger holds somebody's own words.
        place: Where the ledger is, for a command; nothing where a server has it.

    >>> events = lambda: [ApproxDP(0.3)]
    >>> budget = Budget("census", "", ApproxDP(1.0), 0.3, 0.0, {}, ApproxDP(0.7), 3, "person", False, None, events)
    >>> budget.spent.upper, budget.spent.lower > 0.299
    (0.3, True)
    """

    dataset: str
    analyst: str
    total: ApproxDP
    spent_upper: float
    reserved: float
    withheld: dict[str, ApproxDP]
    remaining: ApproxDP
    count: int
    unit: str = ""
    untouched: bool = False
    protects: Unit | None = None
    _events: Callable[[], Iterable[Event]] = field(default=lambda: (), repr=False, compare=False)
    place: str = field(default="", repr=False, compare=False)
    _total: Callable[[float], ApproxDP | None] | None = field(default=None, repr=False, compare=False)

    def total_for(self, epsilon: float) -> ApproxDP | None:
        """A total, rounded up, with which so much would be left.

        Args:
            epsilon: How much should be left.

        Returns:
            The total; None where none was found.

        >>> Budget("census", "", ApproxDP(1.0), 0.7, 0.0, {}, ApproxDP(0.25), 3).total_for(0.5)
        ApproxDP(epsilon=1.25, delta=0.0)
        """
        if self._total is None:  # of a budget that is not in a ledger that is open here
            lack = max(0.0, epsilon - self.remaining.epsilon)
            return ApproxDP(float(ceiling(self.total.epsilon + lack, 4)), self.total.delta)
        return self._total(epsilon)

    @cached_property
    def spent(self) -> Bounds:
        """The account's reading above, and below it the optimum for the same events had they been fixed in advance.

        The lower bound reads all charges again, so it is worked out when asked for.
        """
        if not self.count:
            return Bounds(0.0, self.spent_upper)
        return Bounds(min(_optimum_lower(self._events(), self.total.delta), self.spent_upper), self.spent_upper)


def untouched_budget(dataset: str, epsilon: float, delta: float, unit: Unit) -> Budget:
    """The budget of a dataset that is not registered yet, as it will be: rounded down as accounts are.

    >>> untouched_budget("census", 1.0, 1e-9, Unit(("person",), "add-remove")).remaining
    ApproxDP(epsilon=1.0, delta=1e-09)
    """
    total = as_stored(epsilon, delta)
    return Budget(dataset, "", total, 0.0, 0.0, {}, total, 0, str(unit), True, unit)


def as_stored(epsilon: float, delta: float = 0.0) -> ApproxDP:
    """A budget as a ledger keeps it: rounded down to its whole units. Given budgets are compared after this.

    >>> as_stored(1 / 3), as_stored(0.1 + 0.2) == as_stored(0.3)
    (ApproxDP(epsilon=0.333333333, delta=0.0), True)
    """
    return Account.of(epsilon, delta).budget


def _optimum_lower(events: Iterable[Event], delta: float) -> float:
    counts = Counter(events)
    try:
        bounds = compose(list(counts), counts=list(counts.values())).epsilon_at(delta)
    except FarthingError:  # too much for any engine to price; 0 is still a lower bound
        return 0.0
    return bounds.lower if bounds.lower >= 0 else 0.0

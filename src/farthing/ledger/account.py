"""An account: a budget, what was charged to it in whole numbers, and the rule that says whether more fits."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from farthing.accounting.event_price import (
    Charge,
    Divergences,
    alone_in_nano,
    amount_read,
    as_event,
    budget_in_nano,
    budget_in_units,
    delta_down,
    divergences_read,
    epsilon_down,
    epsilon_up,
)
from farthing.accounting.filters.clock_costs import MOST_EXCESS, ClockCost
from farthing.accounting.filters.clock_payment import (
    clock_payment,
    largest_payable,
    payments_within,
    whole_clock,
    whole_clock_epsilon,
)
from farthing.accounting.filters.sampled_cost import Spare
from farthing.errors import InvalidValue
from farthing.ledger.charge_prices import ChargePrice, finite_read, own_units, price_in_budget
from farthing.ledger.older_accounts import clock_after, order_of
from farthing.ledger.tamper_evidence import canonical
from farthing.privacy.events import ApproxDP, Composed, Event, Sampled, checked_delta

__all__ = ["Account", "Withheld"]

Withheld = tuple[int, int]
"""What is set aside: billionths of epsilon and units of delta."""

_NONE: Withheld = (0, 0)
_DELTAS = (0.0, *(float(f"{tens}e-{power}") for power in range(40, 1, -1) for tens in range(10, 100)))
_PLAIN = (
    "epsilon_nano", "delta_units", "count", "sum_nano", "sum_units", "leak_units", "clock_units", "excess_units",
    "whole_units", "only_sums",
)  # fmt: skip
_CLOCK = {"clock_units", "excess_units"}
_TOO_MUCH = 1 + 1e-9  # at least, where a charge is refused

SUMS_PART = 16
"""Plain sums have one part of delta in so many, where a clock runs beside them."""


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
        Here F_1 is the filter of plain sums at (epsilon, delta/16). F_2 is the clock, which has the rest: delta/32 for
        the charges' own deltas and 29/32 as slack. It is kept as what is spent of it, which only grows.
        With delta = 0 there is F_1 only.
        Budgets may be raised or lowered at any time and for any reason, answers included: if every budget that could
        have been in force is at most (epsilon, delta), all answers together are (epsilon, delta)-DP.
        First charge: one that is made before any answer may choose the rule. If the filters side by side refuse it but
        plain sums with all of delta do not, then from there on the account is plain sums with all of delta. If they
        refuse it too but it is (epsilon, delta)-DP by its own curve, it is admitted and nothing after it.
        Nothing: a charge that is (0, 0)-DP is always admitted, and changes nothing but the number of charges.
        Older: an account that an older version began keeps the shares it had (a half for plain sums, a quarter for own
        deltas, a quarter as slack). Its F_2 is a Renyi filter, and from the first charge of this version on a clock of
        what that has left (`clock_after`).
    Source: this proof. Let S be a set of transcripts, and S_j those of S that satisfy F_j at their end and no
        filter before it in the list; they split S. On S_j no charge ever broke F_j, so each of its transcripts is as
        likely as with the analyst who is stopped by F_j: P(S_j) <= e^epsilon Q(S_j) + delta_j. Add up.
        First charge: nothing was answered when it is made, so which rule it falls under does not depend on the data,
        and each of the three rules is a theorem by itself.
        Nothing: whatever was answered before, its answer is as likely beside a neighbour. So a transcript with it is
        one without it, processed further by a rule that knows no rows.
        Budgets: a larger budget has larger shares and a larger clock, so every path ends with some F_j of the largest
        budget unbroken. What the clock paid is valid under it: a payment counts on a level that is kept under the
        budget in force, a larger one keeps more, and what is enough at a level is enough above it (`clock_payment`).
        The filters are BasicFilter, ClockFilter and RenyiFilter of `farthing.accounting.filters`, with their sources.
    Assumes: each mechanism keeps its price whatever the answers before it; shares of delta are fixed by the budget.
    Direction: prices are rounded up and limits down, to whole numbers; comparisons are exact.
    Checked by: tests/theorems/test_account_runs_on_the_clock.py, tests/theorems/test_older_accounts.py
    """

    epsilon_nano: int
    delta_units: int
    count: int = 0
    sum_nano: int | None = 0
    sum_units: int = 0
    leak_units: int = 0
    clock_units: int | None = 0
    excess_units: int = 0
    whole_nano: int | None = None
    whole_units: int = 0
    only_sums: int = 0
    divergences: Divergences = ()  # of charges that an older version made

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
        """The same charges under another budget; nothing is read again: what was spent is the same under both.

        >>> full = Account.of(0.1)
        >>> full = full.after(full.priced(0.1))
        >>> full.admits(full.priced(0.1)), full.with_budget(0.2).admits(full.priced(0.1))
        (False, True)
        """
        return replace(self, epsilon_nano=budget_in_nano(epsilon), delta_units=budget_in_units(delta))

    def priced(self, charge: Charge, delta: float | None = None, withheld: Withheld = _NONE) -> ChargePrice:
        """What an event costs here. A `Composed` event is one fixed plan, composed inside by its exact curves.

        `delta` is the delta at which it enters the plain sums. By default: its own delta when it has a pure epsilon;
        else, and for a plan that gains by it, the same share of the plain sums' delta as it takes of epsilon. A first
        charge chooses a rule under which what is `withheld` is kept.

        >>> from farthing.privacy import GaussianNoise
        >>> account = Account.of(1.0, 1e-6)
        >>> account.priced((0.25, 1e-9)).delta_units == 10**31
        True
        >>> account.priced(GaussianNoise(40.0)).epsilon_nano < account.priced(GaussianNoise(40.0), 1e-12).epsilon_nano
        True
        """
        event = as_event(charge)
        target_delta = None if delta is None else checked_delta(delta)
        clock = self._payment(event)
        price = price_in_budget(event, target_delta, self.epsilon_nano, self._plain_units, clock)
        if not self.untouched or self.after(price)._holds(withheld):
            return price
        alone = replace(price, alone_nano=alone_in_nano(event, self.delta_units), alone_units=self.delta_units)
        sums = replace(alone, only_sums=1)
        return sums if self.after(sums)._holds(withheld) else alone

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
        fits = after._holds(withheld) or (withheld == _NONE and after._whole_fits())
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
        if self.sum_nano != 0 or self.sum_units or self.leak_units or self.clock_units != 0:
            return False
        return not any(x != 0 for x in self.divergences)

    @property
    def pricing(self) -> tuple[int, int, int, bool, bool]:
        """All that a price depends on besides the event and the clock: the budget, the rule, whether it is the first.

        >>> Account.of(0.5).pricing
        (500000000, 0, 0, True, False)
        """
        return self.epsilon_nano, self.delta_units, self.only_sums, self.untouched, self._keeps_shares

    def takes(self, event: Event, price: ChargePrice) -> bool:
        """Whether the clock still pays for an event what a price says; that changes as it runs down.

        >>> account = Account.of(1.0, 1e-9)
        >>> price = account.priced(0.01)
        >>> account.takes(ApproxDP(0.01), price), account.after(account.priced(0.1)).takes(ApproxDP(0.01), price)
        (True, False)
        """
        payment = self._payment(event)
        if payment is None or payment[:2] != (price.clock_units, price.excess_units):
            return payment is None and price.clock_units is None
        # A price that pays more for far tails than is needed now is as good.
        return not payment.leak or payment.leak + own_units(event) == price.leak_units

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
            _plus(self.clock_units, price.clock_units),
            self.excess_units + price.excess_units,
            whole_nano,
            whole_units,
            price.only_sums if first else self.only_sums,
            self._divergences_after(price, 1),
        )
        if first and price.divergences and not after._fits():  # older prices do not say which rule they chose
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
            clock_units=_plus(self.clock_units, _times(price.clock_units, times)),
            excess_units=self.excess_units + times * price.excess_units,
            whole_nano=whole_nano,
            whole_units=whole_units,
            divergences=self._divergences_after(price, times),
        )

    def _divergences_after(self, price: ChargePrice, times: int) -> Divergences:
        """Those of older charges: what comes after them is on the clock, and an account without any has none."""
        if not price.divergences:
            return () if self.untouched else self.divergences
        if not self.divergences or self.clock_units != 0:
            raise InvalidValue("price", "divergences", "cannot be added after charges on the clock")
        return tuple(
            None if one is None or more is None else one + times * more
            for one, more in zip(self.divergences, price.divergences, strict=True)
        )

    @property
    def is_whole(self) -> bool:
        """Whether the first charge was admitted by its own curve and took the whole budget.

        >>> from farthing.privacy import Composed, LaplaceNoise
        >>> account = Account.of(1.0, 1e-9)
        >>> account.after(account.priced(Composed(((LaplaceNoise(50.0), 88),)))).is_whole
        True
        """
        return self._whole_fits() and not self._fits()

    @property
    def _is_older(self) -> bool:
        """Whether it stands as an older version wrote it: with divergences, and nothing on a clock yet."""
        return bool(self.divergences) and self.clock_units == 0 and not self.excess_units

    def to_dict(self) -> dict[str, Any]:
        """The state as whole numbers, ready for JSON; -1 is infinite."""
        left_out = _CLOCK if self._is_older else () if self.divergences else {"divergences"}
        data = {name: getattr(self, name) for name in self.__slots__ if name not in left_out}
        return {name: [*map(_stored, v)] if name == "divergences" else _stored(v) for name, v in data.items()}

    def text(self) -> str:
        """What `canonical` makes of `to_dict`, written at once: every charge writes it.

        >>> Account.of(0.5).text()[:45]
        '{"clock_units":0,"count":0,"delta_units":0,"e'
        """
        if self.divergences:
            return canonical(self.to_dict())
        return (
            f'{{"clock_units":{_stored(self.clock_units)},"count":{self.count},"delta_units":{self.delta_units},'
            f'"epsilon_nano":{self.epsilon_nano},"excess_units":{self.excess_units},'
            f'"leak_units":{self.leak_units},"only_sums":{self.only_sums},'
            f'"sum_nano":{_stored(self.sum_nano)},"sum_units":{self.sum_units},'
            f'"whole_nano":{_stored(self.whole_nano)},"whole_units":{self.whole_units}}}'
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Account:
        """The account that `to_dict` wrote, in this version or an older one; anything else is refused.

        >>> account = Account.of(1.0, 1e-9)
        >>> Account.from_dict(account.to_dict()) == account
        True
        """
        names = set(cls.__slots__)
        if set(data) not in (names - {"divergences"}, names - _CLOCK, names):
            raise InvalidValue("account", sorted(data), f"must have the keys {', '.join(cls.__slots__)}")
        amounts = {"clock_units": 0, "excess_units": 0, **data}
        plain, whole = [amounts[name] for name in _PLAIN], data["whole_nano"]
        older = divergences_read(data["divergences"]) if "divergences" in data else ()
        # Nearly always.
        if set(map(type, plain)) == {int} and min(plain) >= 0 and type(whole) is int and whole == -1:
            epsilon, budget, count, nano, units, leak, clock, excess, whole_units, only_sums = plain
            sums = nano, units, leak, clock, excess
            return cls(epsilon, budget, count, *sums, None, whole_units, only_sums, older)
        return cls(
            finite_read(data["epsilon_nano"], "epsilon_nano"),
            finite_read(data["delta_units"], "delta_units"),
            finite_read(data["count"], "count"),
            amount_read(data["sum_nano"], "sum_nano", infinite=True),
            finite_read(data["sum_units"], "sum_units"),
            finite_read(data["leak_units"], "leak_units"),
            amount_read(amounts["clock_units"], "clock_units", infinite=True),
            finite_read(amounts["excess_units"], "excess_units"),
            amount_read(data["whole_nano"], "whole_nano", infinite=True),
            finite_read(data["whole_units"], "whole_units"),
            finite_read(data["only_sums"], "only_sums"),
            older,
        )

    @property
    def remaining(self) -> ApproxDP:
        """The largest (epsilon, delta)-DP charge that would still be admitted, rounded down.

        >>> account = Account.of(1.0, 1e-9)
        >>> account.remaining
        ApproxDP(epsilon=1.0, delta=1e-09)
        >>> account = account.after(account.priced(0.3))
        >>> account.remaining
        ApproxDP(epsilon=0.7, delta=6.25e-11)
        """
        return self.remaining_beside(_NONE)

    def remaining_beside(self, withheld: Withheld) -> ApproxDP:
        """The largest (epsilon, delta)-DP charge that would be admitted with something set aside.

        >>> Account.of(1.0).remaining_beside((250_000_000, 0))
        ApproxDP(epsilon=0.75, delta=0.0)
        """
        if withheld == _NONE and self.untouched:
            return self.budget  # the next charge may choose its rule, and so have all of delta
        state = self if withheld == _NONE else self._beside(withheld)
        plain = 0, 0
        if state.sum_nano is not None:
            # The first charge may choose plain sums with all of delta.
            most = self.delta_units if self.untouched else state._plain_units
            plain = state.epsilon_nano - state.sum_nano, most - state.sum_units
        clock = self._clock_remaining(withheld)
        nano, units = max((left for left in (plain, clock) if min(left) >= 0), default=(0, 0))
        return ApproxDP(epsilon_down(nano), delta_down(units))

    def clock_room(self, withheld: Withheld = _NONE) -> float:
        """The epsilon, at the budget's delta, of the strongest Gaussian noise that the clock pays; 0 if it pays none.

        A plan of many measurements with Gaussian noise may cost so much, which is often far more than one charge of
        any other kind: what the clock pays for Gaussian noise is its exact price.

        >>> account = Account.of(1.0, 1e-9)
        >>> for _ in range(120):
        ...     account = account.after(account.priced(0.01))
        >>> round(account.clock_room(), 3), round(account.remaining.epsilon, 3)
        (0.786, 0.115)
        """
        state = self if withheld == _NONE else self._beside(withheld)
        if not state._clock_fits():
            return 0.0
        left = self._clock_left_beside(withheld)
        # What reads a clock rounds up.
        nano = whole_clock_epsilon(left, self.delta_units) - 1 if left > 0 else 0
        return epsilon_down(max(0, min(nano, self.epsilon_nano)))

    def usage(self, price: ChargePrice, withheld: Withheld = _NONE) -> float:
        """The part of what is left that a charge takes: at most 1 where it is admitted, and above 1 where it is not.

        Of the clock, or of plain sums if that is less; then it is squared, because what a clock pays grows with the
        square of an epsilon.

        >>> from farthing.privacy import GaussianNoise
        >>> account = Account.of(1.0, 1e-9)
        >>> account = account.after(account.priced(0.01))
        >>> part = account.usage(account.priced(GaussianNoise(20.0)))
        >>> round(part, 3), account.admits(account.priced(GaussianNoise(20.0 * part**0.5 * 0.999)))
        (0.076, False)
        """
        state, parts = self if withheld == _NONE else self._beside(withheld), [math.inf]
        if state.sum_nano is not None and price.epsilon_nano is not None:
            left = state.epsilon_nano - state.sum_nano
            if left > 0 and state.sum_units + price.delta_units <= state._plain_units:
                parts.append((price.epsilon_nano / left) ** 2)
        if price.clock_units is not None and state._clock_fits():
            left = self._clock_left_beside(withheld)
            if left > 0 and state.leak_units + price.leak_units <= state._own_units:
                parts.append(price.clock_units / left)
        if self.admits(price, withheld):  # which has the last word
            return min(*parts, 1.0)
        return max(min(parts), _TOO_MUCH)

    def fitting(self, charge: Charge, withheld: Withheld = _NONE) -> int:
        """How many such charges would be admitted now, one after the other, with something set aside.

        >>> account = Account.of(1.0, 1e-9)
        >>> account = account.after(account.priced(0.01))
        >>> account.fitting(0.01), account.fitting(0.1), account.fitting(0.01, withheld=(500_000_000, 0))
        (326, 9, 49)
        """
        event = as_event(charge)
        price, state = self.priced(event), self if withheld == _NONE else self._beside(withheld)
        if price.is_nothing:
            raise InvalidValue("charge", charge, "must cost something", "what costs nothing always fits")
        by_sums = by_clock = 0
        if state._plain_fits() and state.sum_nano is not None and price.epsilon_nano is not None:
            room = (
                (state.epsilon_nano - state.sum_nano, price.epsilon_nano),
                (
                    state._plain_units - state.sum_units,
                    price.delta_units,
                ),
            )
            by_sums = min(left // each for left, each in room if each)
        if state._clock_fits():
            by_clock = payments_within(event, self._clock_left_beside(withheld), state._spare)
            if own_units(event):
                by_clock = min(by_clock, (state._own_units - state.leak_units) // price.leak_units)
            if price.excess_units:
                by_clock = min(by_clock, (MOST_EXCESS - state.excess_units) // price.excess_units)
        return max(by_sums, by_clock)

    @property
    def spent_upper(self) -> float:
        """The least epsilon, at the budget's delta, whose clock or plain sums hold what is spent.

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
        known += self._clock_reading()
        return epsilon_up(min(known)) if known else math.inf

    def least_delta(self, epsilon: float) -> float:
        """A two-digit delta with which `epsilon` covers what was spent; if none does, with which any epsilon does.

        >>> account = Account.of(1.0, 1e-6)
        >>> account.after(account.priced((0.3, 1e-8))).least_delta(1.0)
        1.6e-07
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
    def parts_of_delta(self) -> int:
        """Plain sums have one part of delta in so many.

        >>> Account.of(1.0, 1e-9).parts_of_delta
        16
        """
        if self.only_sums:
            return 1
        return 2 if self._keeps_shares else SUMS_PART

    @property
    def _keeps_shares(self) -> bool:
        """Whether an older version charged it: then shares of delta stay as they were."""
        return bool(self.divergences) and not self.untouched

    @property
    def _plain_units(self) -> int:
        return self.delta_units // self.parts_of_delta

    @property
    def _own_units(self) -> int:
        """The clock's share of delta for the charges' own deltas."""
        if self.only_sums:
            return 0
        return self.delta_units // 4 if self._keeps_shares else self.delta_units // 32

    @property
    def _slack_units(self) -> int:
        if self.only_sums:
            return 0
        return self.delta_units // 4 if self._keeps_shares else self.delta_units * 29 // 32

    @property
    def _clock_left(self) -> int:
        """Units of the clock that are left; below 0 if it has run out, or never ran."""
        if self.clock_units is None:
            return -1
        if self._keeps_shares:
            whole = clock_after(self.divergences, self.epsilon_nano, self._slack_units)
        else:
            whole = whole_clock(self.epsilon_nano, self._slack_units)
        return max(-1, whole - self.clock_units)

    def _clock_left_beside(self, withheld: Withheld) -> int:
        """The same, with what is set aside paid last, when nothing is left after it."""
        last = clock_payment(ApproxDP(epsilon_up(withheld[0])), 0)
        return -1 if last is None else max(-1, self._clock_left - last.clock)

    @property
    def _spare(self) -> Spare:
        """What far tails of samples may use of the delta for own deltas."""
        own = self._own_units
        return Spare(own, whole_clock(self.epsilon_nano, self._slack_units), own - self.leak_units)

    def _payment(self, event: Event) -> ClockCost | None:
        if isinstance(event, Sampled | Composed):
            spare = self._spare
            return clock_payment(event, self._clock_left, spare.without(own_units(event)))
        return clock_payment(event, self._clock_left)

    def _fits(self) -> bool:
        """Whether one of the filters side by side holds."""
        return self._plain_fits() or self._clock_fits()

    def _holds(self, withheld: Withheld) -> bool:
        """Whether one of them would with a charge of what is set aside."""
        return (self if withheld == _NONE else self._beside(withheld))._fits()

    def _plain_fits(self) -> bool:
        return self.sum_nano is not None and self.sum_nano <= self.epsilon_nano and self.sum_units <= self._plain_units

    def _clock_fits(self) -> bool:
        if not (self._slack_units and self.leak_units <= self._own_units and self.excess_units <= MOST_EXCESS):
            return False
        if self._is_older and self._keeps_shares:
            return order_of(self.epsilon_nano, self._slack_units).holds(self.divergences)
        return self._clock_left >= 0

    def _whole_fits(self) -> bool:
        """Whether the only charge fits by its own curve."""
        fits = self.whole_nano is not None and self.whole_nano <= self.epsilon_nano
        return fits and self.whole_units <= self.delta_units

    def _whole_after(self, price: ChargePrice) -> tuple[int | None, int]:
        """What the first charge is by its own curve, as long as nothing but nothing came after it."""
        return (self.whole_nano, self.whole_units) if price.is_nothing else (None, 0)

    def _beside(self, withheld: Withheld) -> Account:
        """With a charge of what is set aside; that is no charge yet, and chooses no rule."""
        nano, units = withheld
        event = ApproxDP(epsilon_up(nano))
        price = price_in_budget(event, None, self.epsilon_nano, 0, clock_payment(event, self._clock_left))
        after = self.after(replace(price, delta_units=units, leak_units=units))
        return replace(after, only_sums=self.only_sums, divergences=self.divergences)

    def _clock_remaining(self, withheld: Withheld) -> tuple[int, int]:
        """The largest black-box charge that the clock admits (billionths, units); negative if none."""
        state = self if withheld == _NONE else self._beside(withheld)
        if not state._clock_fits():
            return -1, -1
        units = self._own_units - state.leak_units
        most = largest_payable(self._clock_left)
        if withheld == _NONE:
            return most, units

        def fits(nano: int) -> bool:
            event = ApproxDP(epsilon_up(nano))
            clock = clock_payment(event, self._clock_left)
            price = price_in_budget(event, None, self.epsilon_nano, 0, clock)
            return self.after(price)._beside(withheld)._clock_fits()

        return bisect_left(range(most), True, key=lambda nano: not fits(nano + 1)), units

    def _clock_reading(self) -> list[int]:
        """The least epsilon at which the clock holds, if there is one."""
        holds = self.leak_units <= self._own_units and self.excess_units <= MOST_EXCESS
        if self.clock_units is None or not self._slack_units or not holds:
            return []
        if not self.divergences:
            return [whole_clock_epsilon(self.clock_units, self._slack_units)]
        low, high = 0, self.epsilon_nano
        while high <= 2**60 and not replace(self, epsilon_nano=high)._clock_fits():
            low, high = high, 2 * high + 1
        if high > 2**60:
            return []
        while high - low > 1:
            middle = (low + high) // 2
            if replace(self, epsilon_nano=middle)._clock_fits():
                high = middle
            else:
                low = middle
        return [high]


def _times(amount: int | None, times: int) -> int | None:
    return None if amount is None else times * amount


def _plus(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _stored(amount: int | None) -> int:
    return -1 if amount is None else amount

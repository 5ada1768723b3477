"""How an account stands, for people: what is spent, what waits for answers, what is set aside, what would still fit."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from farthing.accounting import compose
from farthing.accounting.event_price import Charge, delta_down, epsilon_down, epsilon_up, price_of
from farthing.accounting.filters import Odometer
from farthing.errors import FarthingError
from farthing.ledger.account import Account
from farthing.ledger.account_state import Holding
from farthing.ledger.larger_totals import total_for
from farthing.ledger.lifetime import lifetime
from farthing.numerics import Bounds
from farthing.numerics.bounds import ceiling, float_up, rounded_down_text, rounded_text
from farthing.privacy.events import ApproxDP, Event
from farthing.privacy.units import Unit


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
        sources: The tables whose people the account protects, as people call them; empty where nobody said.

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
    _total: Callable[[float, bool], ApproxDP | None] | None = field(default=None, repr=False, compare=False)
    _fitting: Callable[[Charge], int] | None = field(default=None, repr=False, compare=False)
    sources: tuple[str, ...] = ()
    _clock_room: Callable[[], float] | None = field(default=None, repr=False, compare=False)
    _odometer: Callable[[], float] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def room(self) -> ApproxDP:
        """The most that one plan may cost: `remaining`, or more at all of delta where the clock pays for more.

        The clock pays for Gaussian noise at its exact price, so a plan of many measurements may cost more than any
        single charge; its measurements then have Gaussian noise, wherever they may.

        >>> Budget("census", "", ApproxDP(1.0), 0.7, 0.0, {}, ApproxDP(0.25), 3).room
        ApproxDP(epsilon=0.25, delta=0.0)
        """
        clock = ApproxDP(self.clock_room, self.total.delta)
        return clock if clock.epsilon > self.remaining.epsilon else self.remaining

    @cached_property
    def clock_room(self) -> float:
        """The epsilon, at the total's delta, of the strongest Gaussian noise that the clock pays; 0 if it pays none.

        >>> Budget("census", "", ApproxDP(1.0), 0.7, 0.0, {}, ApproxDP(0.25), 3).clock_room
        0.0
        """
        return 0.0 if self._clock_room is None else self._clock_room()

    def fitting(self, charge: Charge) -> int:
        """How many such charges would be admitted now, one after the other, each chosen after seeing the last answer.

        Args:
            charge: An epsilon, an (epsilon, delta) pair or an event.

        Returns:
            The number; plain sums of `remaining` where the budget is not in a ledger that is open here.

        Raises:
            InvalidValue: If `charge` is not a charge, or costs nothing.

        >>> Budget("census", "", ApproxDP(1.0), 0.7, 0.0, {}, ApproxDP(0.25), 3).fitting(0.1)
        2
        """
        if self._fitting is not None:
            return self._fitting(charge)
        left = replace(Account.of(self.remaining.epsilon, self.remaining.delta), only_sums=1, count=1)
        return left.fitting(charge)

    @cached_property
    def would_fit(self) -> dict[float, int]:
        """How many more charges of a tenth, a hundredth and a thousandth of the total would fit, by their size.

        >>> Budget("census", "", ApproxDP(1.0), 0.7, 0.0, {}, ApproxDP(0.25), 3).would_fit
        {0.1: 2, 0.01: 25, 0.001: 250}
        """
        sizes = (float(f"{self.total.epsilon / part:.3g}") for part in (10, 100, 1000))
        return {size: self.fitting(size) for size in sizes if size > 0}

    def would_fit_words(self, counts: Mapping[float, int] | None = None) -> str:
        """`remaining`, `would_fit` and `room` in words, where they come to more than one charge; else nothing.

        Args:
            counts: Other numbers in place of `would_fit`.

        Returns:
            The words.

        >>> counts = {0.1: 1, 0.01: 229, 0.001: 23_106}
        >>> budget = Budget("census", "", ApproxDP(1.0, 1e-9), 0.5, 0.0, {}, ApproxDP(0.121), 100, _fitting=counts.get)
        >>> budget.would_fit_words()
        'one charge of epsilon 0.121, or 229 of 0.01, or 23,106 of 0.001'
        """
        if not (self.count and self.total.delta > 0):
            return ""
        left = self.remaining.epsilon
        more = [
            f"{count:,} of {rounded_text(size)}"
            for size, count in (self.would_fit if counts is None else counts).items()
            if count * size > left * 1.001
        ]
        if self.room.epsilon > left * 1.001:
            more.append(f"one plan of epsilon {rounded_down_text(self.room.epsilon)} with Gaussian noise")
        return ", or ".join([f"one charge of epsilon {rounded_down_text(left)}", *more]) if more else ""

    @property
    def odometer(self) -> float:
        """An epsilon for what has been answered so far, at the total's delta, that holds at every moment at once.

        Whoever stops now, for whatever reason, may claim it. That is more than `spent_upper` allows, and so it is
        often larger. It reads all charges again, so it is worked out when asked for. If delta was changed after the
        first charge, it holds for those who would have changed it whatever the answers. Infinite where the charges'
        own deltas exceed half of delta, or where delta is 0 and a charge has no pure epsilon.

        >>> events = lambda: [ApproxDP(0.01)] * 100
        >>> budget = Budget("census", "", ApproxDP(1.0, 1e-6), 0.4, 0.0, {}, ApproxDP(0.2), 100, _events=events)
        >>> round(budget.odometer, 3)
        0.574
        """
        return self._own_odometer if self._odometer is None else self._odometer()

    @cached_property
    def _own_odometer(self) -> float:
        counts = Counter(self._events())
        if not counts:
            return 0.0
        if not self.total.delta > 0:
            prices = [(price_of(event), times) for event, times in counts.items()]
            known = [times * price.epsilon for price, times in prices if price.epsilon is not None and not price.leak]
            return float_up(sum(known, Fraction(0))) if len(known) == len(prices) else math.inf
        meter = Odometer(self.total.delta)
        for event, times in counts.items():
            meter = meter.charge(event, times)
        return meter.epsilon

    def lifetime(self, periods: int, at: float | None = None) -> ApproxDP | None:
        """What somebody is protected by who is in so many periods of an account that renews.

        Args:
            periods: How many periods.
            at: The delta of the whole, by default twice the sum of the deltas of the periods.

        Returns:
            An epsilon at a delta (see `farthing.ledger.lifetime.lifetime`); None where the account does not renew.

        >>> Budget("census", "", ApproxDP(1.0), 0.7, 0.0, {}, ApproxDP(0.25), 3).lifetime(12) is None
        True
        """
        if self.protects is None or self.protects.renewal is None:
            return None
        return lifetime(self.total.epsilon, self.total.delta, periods, at)

    def total_for(self, epsilon: float, *, plan: bool = False) -> ApproxDP | None:
        """A total, rounded up, with which so much would be left.

        Args:
            epsilon: How much should be left.
            plan: Whether it is to be left for a plan, and not for any single charge.

        Returns:
            The total; None where none was found.

        >>> Budget("census", "", ApproxDP(1.0), 0.7, 0.0, {}, ApproxDP(0.25), 3).total_for(0.5)
        ApproxDP(epsilon=1.25, delta=0.0)
        """
        if self._total is None:  # of a budget that is not in a ledger that is open here
            left = self.room if plan else self.remaining
            lack = max(0.0, epsilon - left.epsilon)
            return ApproxDP(float(ceiling(self.total.epsilon + lack, 4)), self.total.delta)
        return self._total(epsilon, plan)

    @cached_property
    def spent(self) -> Bounds:
        """The account's reading above, and below it the optimum for the same events had they been fixed in advance.

        The lower bound reads all charges again, so it is worked out when asked for.
        """
        if not self.count:
            return Bounds(0.0, self.spent_upper)
        return Bounds(min(_optimum_lower(self._events(), self.total.delta), self.spent_upper), self.spent_upper)


def budget_standing(
    dataset: str, analyst: str, whole: Holding, holding: Holding, place: str, events: Callable[[], Iterable[Event]]
) -> Budget:
    """How an account stands: `holding` is `whole`, or the grant in it of an analyst.

    >>> holding = Holding(Account.of(1.0), unit=Unit(("person",)), sources=frozenset("a"), titles=("visits.csv",))
    >>> budget_standing("patients", "", holding, holding, "study.db", tuple).sources
    ('visits.csv',)
    """
    account = holding.account
    set_aside = holding.reserves.items()
    return Budget(
        dataset,
        analyst,
        account.budget,
        account.spent_upper,
        epsilon_up(holding.waiting_nano),
        {label: ApproxDP(epsilon_down(nano), delta_down(units)) for label, (nano, units) in set_aside},
        account.remaining_beside(holding.withheld()),
        account.count,
        str(whole.unit),
        account.untouched,
        whole.unit if isinstance(whole.unit, Unit) else None,
        events,
        place,
        lambda epsilon, plan: total_for(account, epsilon, holding.withheld(), plan=plan),
        lambda charge: account.fitting(charge, holding.withheld()),
        # An older version kept no titles: its accounts have one table, of their own name.
        whole.titles or (() if whole.sources == frozenset() else (dataset,)),
        _clock_room=lambda: account.clock_room(holding.withheld()),
    )


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

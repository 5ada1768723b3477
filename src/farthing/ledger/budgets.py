"""What a budget is, and how much of it is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from farthing.accounting import compose
from farthing.errors import FarthingError
from farthing.ledger.account import Account
from farthing.numerics import Bounds
from farthing.numerics.digits import ceiling
from farthing.privacy.events import ApproxDP, Event
from farthing.privacy.units import Unit


@dataclass(frozen=True)
class Budget:
    """A budget as it stands: the account's reading, what waits for answers, what is set aside, what would still fit.

    `remaining` is the largest (epsilon, delta) charge that would be admitted now. `reserved` is the part of what is
    spent whose answer has not been given yet, in plain sums; it counts as spent. `withheld` is set aside by reserves.

    `untouched` says that nothing was charged yet but charges of nothing. `unit` says in words whose privacy it is, and
    `protects` as data; None where nobody said, or where the ledger holds somebody's own words. `place` is where the
    ledger is, for a command; nothing where a server has it.

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
        """A total, rounded up, with which so much would be left; None where none was found."""
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
        return Bounds(
            min(_optimum_lower(self._events(), self.total.delta), self.spent_upper), self.spent_upper
        )


def untouched_budget(dataset: str, epsilon: float, delta: float, unit: Unit) -> Budget:
    """The budget of a dataset that is not registered yet, as it will be: rounded down as accounts are.

    >>> untouched_budget("census", 1.0, 1e-9, Unit(("person",), "add-remove")).remaining
    ApproxDP(epsilon=1.0, delta=1e-09)
    """
    total = as_kept(epsilon, delta)
    return Budget(dataset, "", total, 0.0, 0.0, {}, total, 0, str(unit), True, unit)


def as_kept(epsilon: float, delta: float = 0.0) -> ApproxDP:
    """A budget as a ledger keeps it: rounded down to its whole units. Told budgets are compared after this.

    >>> as_kept(1 / 3), as_kept(0.1 + 0.2) == as_kept(0.3)
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

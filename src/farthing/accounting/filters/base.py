"""What every filter has in common: a question that changes nothing, and a charge that returns a new value."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

from farthing.accounting.filters.exact_amounts import bounded, exact, float_down
from farthing.accounting.filters.prices import Charge, Price, as_event, price_of
from farthing.errors import BudgetExceeded, InvalidValue
from farthing.privacy import ApproxDP, Event
from farthing.privacy.events import checked_count, checked_delta, checked_epsilon

__all__ = ["Filter", "checked_leak"]


@dataclass(frozen=True, repr=False)
class Filter(ABC):
    """A budget that refuses what does not fit, valid when epsilons are chosen after seeing earlier answers.

    A filter is a frozen value. `admits` asks; `charge` returns a new filter with the charge taken, or raises
    BudgetExceeded and leaves everything as it was. Charge before running the mechanism.

    >>> from farthing.accounting.filters import BasicFilter
    >>> before = BasicFilter(epsilon=0.3)
    >>> after = before.charge(0.1)
    >>> before.remaining.epsilon, after.remaining.epsilon
    (0.3, 0.2)
    """

    epsilon: float
    delta: float
    count: int = field(default=0, init=False)
    _epsilon_sum: Fraction | None = field(default=Fraction(0), init=False)  # None: some charge is not pure
    _leak_sum: Fraction = field(default=Fraction(0), init=False)

    def __post_init__(self) -> None:
        self._set(epsilon=checked_epsilon(self.epsilon), delta=checked_delta(self.delta))

    def admits(self, charge: Charge, count: int = 1) -> bool:
        """Whether `count` charges of this kind fit; asking changes nothing."""
        return self._after(as_event(charge), checked_count(count))._fits()

    def charge(self, charge: Charge, count: int = 1) -> Self:
        """The filter after `count` such charges; raises BudgetExceeded if they do not fit."""
        event, times = as_event(charge), checked_count(count)
        after = self._after(event, times)
        if after._fits():
            return after
        left = self.remaining
        requested = f"{event!r}" + (f" x {times}" if times != 1 else "")
        raise BudgetExceeded(
            f"charge of {requested} exceeds what is left in {type(self).__name__}(epsilon={self.epsilon!r}, "
            f"delta={self.delta!r}): one charge of at most epsilon={left.epsilon!r}, delta={left.delta!r}; "
            "lower the charge or ask the owner of the budget for more.",
            requested=event,
            remaining=left,
        )

    @property
    @abstractmethod
    def spent(self) -> ApproxDP:
        """What the charges so far add up to in this filter's own theorem, as compared with the budget.

        It is the filter's reading, not an odometer's: stopping early because it is small does not make
        it a guarantee. After stopping, the guarantee is the whole (epsilon, delta).
        """

    @property
    def remaining(self) -> ApproxDP:
        """The largest (epsilon, delta)-DP charge that still fits, rounded down so that it really does."""
        return ApproxDP(self._largest_epsilon(), float_down(self._leak_budget() - self._leak_sum))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(epsilon={self.epsilon!r}, delta={self.delta!r}; {self.count} charged, "
            f"spent epsilon={self.spent.epsilon:.3g})"
        )

    @abstractmethod
    def _fits(self) -> bool:
        """Whether the sums as they stand are within budget."""

    @abstractmethod
    def _largest_epsilon(self) -> float:
        """The largest epsilon of one more pure charge that would fit."""

    @abstractmethod
    def _leak_budget(self) -> Fraction:
        """How much of delta the charges' own deltas may use."""

    def _after(self, event: Event, count: int) -> Self:
        """The sums with `count` more of `event`, whether they fit or not."""
        price = price_of(event)
        epsilon = None if price.epsilon is None and count else self._epsilon_sum
        if epsilon is not None and price.epsilon is not None:
            epsilon = bounded(epsilon + count * price.epsilon)
        after = copy.copy(self)
        after._set(
            count=self.count + count,
            _epsilon_sum=epsilon,
            _leak_sum=bounded(self._leak_sum + count * price.leak),
        )
        after._add(event, price, count)
        return after

    @abstractmethod
    def _add(self, event: Event, price: Price, count: int) -> None:
        """Take the charge in a currency of the subclass's own; called on a fresh copy only."""

    def _plain_sum_fits(self) -> bool:
        """Whether the sum of pure epsilons is within epsilon."""
        return self._epsilon_sum is not None and self._epsilon_sum <= exact(self.epsilon)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


def checked_leak(delta: float, leak: float | None) -> float:
    """The part of delta set aside for the charges' own deltas: half by default, never all of it."""
    if not delta > 0:
        raise InvalidValue(
            "delta", delta, "must be > 0 and < 1", "with delta 0 use BasicFilter: only plain sums hold"
        )
    value = delta / 2 if leak is None else checked_delta(leak, "leak")
    if not value < delta:
        raise InvalidValue(
            "leak", leak, f"must be less than delta={delta!r}", "the rest is what the theorem spends"
        )
    return value

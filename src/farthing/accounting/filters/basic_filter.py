"""What every filter has in common: a question that changes nothing, and a charge that returns a new value."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

from farthing.accounting.event_price import Charge, Price, as_event, price_of
from farthing.errors import BudgetExceeded, InvalidValue
from farthing.numerics.bounds import bounded, exact, float_down, float_up
from farthing.privacy import ApproxDP, Event
from farthing.privacy.events import checked_count, checked_delta, checked_epsilon

__all__ = ["Filter", "SlackFilter", "checked_leak"]


@dataclass(frozen=True, repr=False)
class Filter(ABC):
    """A budget that refuses what does not fit, valid when epsilons are chosen after seeing earlier answers.

    A filter is a frozen value. `admits` asks; `charge` returns a new filter with the charge taken, or raises
    BudgetExceeded and leaves everything as it was. Charge before running the mechanism.

    Args:
        epsilon: The epsilon of the whole budget.
        delta: The delta of the whole budget.

    Raises:
        InvalidValue: If a parameter is out of its range.

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
        """Whether `count` charges of this kind fit; asking changes nothing.

        Args:
            charge: An epsilon, an (epsilon, delta) pair or an event.
            count: How many such charges.

        Returns:
            True if all of them fit.

        Raises:
            InvalidValue: If `charge` is not a charge.
        """
        return self._after(as_event(charge), checked_count(count))._fits()

    def charge(self, charge: Charge, count: int = 1) -> Self:
        """The filter after `count` such charges; this one stays as it is.

        Args:
            charge: An epsilon, an (epsilon, delta) pair or an event.
            count: How many such charges.

        Returns:
            The filter to go on with.

        Raises:
            BudgetExceeded: If they do not fit.
            InvalidValue: If `charge` is not a charge.
        """
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


@dataclass(frozen=True, repr=False)
class SlackFilter(Filter):
    """A filter whose theorem spends the slack = delta - leak, so that `leak` is left for the charges' own deltas."""

    leak: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(leak=checked_leak(self.delta, self.leak))

    def _leak_budget(self) -> Fraction:
        assert self.leak is not None
        return exact(self.leak)

    def _slack(self) -> Fraction:
        return exact(self.delta) - self._leak_budget()


def checked_leak(delta: float, leak: float | None) -> float:
    """The part of delta set aside for the charges' own deltas: half by default, never all of it."""
    if not delta > 0:
        raise InvalidValue("delta", delta, "must be > 0 and < 1", "with delta 0 use BasicFilter: only plain sums hold")
    value = delta / 2 if leak is None else checked_delta(leak, "leak")
    if not value < delta:
        raise InvalidValue("leak", leak, f"must be less than delta={delta!r}", "the rest is what the theorem spends")
    return value


_basic__all__ = ["BasicFilter"]


@dataclass(frozen=True, repr=False)
class BasicFilter(Filter):
    """Admits charges while their epsilons sum to at most epsilon and their deltas to at most delta.

    Args:
        epsilon: The epsilon of the whole budget.
        delta: The delta of the whole budget.

    Raises:
        InvalidValue: If a parameter is out of its range.

    >>> budget = BasicFilter(epsilon=0.3).charge(0.1, count=3)
    >>> budget.spent
    ApproxDP(epsilon=0.3, delta=0.0)
    >>> budget.admits(1e-15)
    False
    >>> budget.charge(0.1)
    Traceback (most recent call last):
        ...
    farthing.errors.BudgetExceeded: charge of ApproxDP(epsilon=0.1, delta=0.0) exceeds what is left in
    BasicFilter(epsilon=0.3, delta=0.0): one charge of at most epsilon=0.0, delta=0.0; lower the charge or ask
    the owner of the budget for more.

    Statement:
        Let every mechanism, its (epsilon_i, delta_i) and whether to go on be chosen from the answers so far,
        and let sum epsilon_i <= epsilon and sum delta_i <= delta hold on every path. Then all answers
        together are (epsilon, delta)-DP.
    Source: Rogers, Roth, Ullman & Vadhan, NeurIPS 2016 (arXiv:1605.08294), Theorem 3.6. In short: condition
        on no leak; the likelihood ratio of every path is then at most exp(sum epsilon_i), and some leak happens
        with probability at most sum delta_i.
    Assumes: each mechanism is (epsilon_i, delta_i)-DP whatever the answers before it.
    Direction: sums are exact; an amount that is not rational is rounded up before it is added.
    Checked by: tests/theorems/test_filters_are_sound.py
    """

    delta: float = 0.0

    @property
    def spent(self) -> ApproxDP:
        """The sums of epsilons and of deltas, rounded up.

        >>> BasicFilter(1.0, 1e-6).charge((0.1, 1e-7), count=3).spent
        ApproxDP(epsilon=0.3, delta=3e-07)
        """
        assert self._epsilon_sum is not None  # an event without one was refused
        return ApproxDP(float_up(self._epsilon_sum), float_up(self._leak_sum))

    def share(self, count: int) -> float:
        """The largest epsilon that `count` further charges may have each.

        Dividing in floats can end one unit in the last place too high; this rounds down, so it always fits.

        Args:
            count: How many charges are still to come, at least 1.

        Returns:
            The epsilon for each of them, rounded down.

        Raises:
            InvalidValue: If `count` is not a whole number >= 1.

        >>> budget = BasicFilter(epsilon=1.0)
        >>> budget.share(49)
        0.02040816326530612
        >>> budget.admits(budget.share(49), count=49)
        True
        """
        if isinstance(count, bool) or not isinstance(count, int) or not count >= 1:
            raise InvalidValue("count", count, "must be a whole number >= 1")
        assert self._epsilon_sum is not None
        return float_down((exact(self.epsilon) - self._epsilon_sum) / count)

    def _fits(self) -> bool:
        return self._plain_sum_fits() and self._leak_sum <= self._leak_budget()

    def _largest_epsilon(self) -> float:
        return self.share(1)

    def _leak_budget(self) -> Fraction:
        return exact(self.delta)

    def _add(self, event: Event, price: Price, count: int) -> None:
        if price.epsilon is None and count:
            raise InvalidValue(
                "event",
                event,
                "has no (epsilon, 0) of its own, which plain sums need",
                "use RenyiFilter, or charge an (epsilon, delta) pair that the mechanism satisfies",
            )

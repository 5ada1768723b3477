"""The filter of plain sums."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from farthing.accounting.filters.base import Filter
from farthing.accounting.filters.exact_amounts import exact, float_down, float_up
from farthing.accounting.filters.prices import Price
from farthing.errors import InvalidValue
from farthing.privacy import ApproxDP, Event

__all__ = ["BasicFilter"]


@dataclass(frozen=True, repr=False)
class BasicFilter(Filter):
    """Admits charges while their epsilons sum to at most epsilon and their deltas to at most delta.

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
                "event", event, "has no (epsilon, 0) of its own, which plain sums need",
                "use RenyiFilter, or charge an (epsilon, delta) pair that the mechanism satisfies",
            )  # fmt: skip

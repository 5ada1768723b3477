"""The clock: charges chosen after seeing earlier answers, at nearly the price of charges fixed in advance."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from farthing.accounting.event_price import Price, price_of
from farthing.accounting.filters.basic_filter import SlackFilter
from farthing.accounting.filters.clock_costs import (
    CLOCK_UNITS,
    MOST_EXCESS,
    ClockCost,
    clock_cost,
    clock_of,
    epsilon_of,
    level_below,
)
from farthing.accounting.filters.equal_charges import LONGEST_PATH, equal_charges
from farthing.accounting.filters.sampled_cost import Spare
from farthing.accounting.gaussian_curves import gaussian_curve
from farthing.numerics.bounds import (
    ball,
    exact,
    float_down,
    float_up,
    lower_fraction,
    number_text,
    precise_balls,
)
from farthing.privacy import ApproxDP, Composed, DiscreteLaplaceNoise, Event, RandomizedResponse, Sampled

__all__ = ["ClockFilter"]

_TYPICAL = (0.1, 0.01, 0.001)  # charges that `explain` counts


@dataclass(frozen=True, repr=False)
class ClockFilter(SlackFilter):
    """Admits charges while a clock lasts: Gaussian noise that the whole of the budget would allow, used up in parts.

    The tightest filter for charges that are small beside the budget, and never worse than plain sums.

    Args:
        epsilon: The epsilon of the whole budget.
        delta: The delta of the whole budget.
        leak: The part of delta set aside for the charges' own deltas; half by default. With pure charges pass 0.
        equal_charges: Whether a few more charges are admitted while all have the same epsilon and nothing else is known
            of them. With False, equal charges are treated like charges that differ, as ledgers do.

    Raises:
        InvalidValue: If a parameter is out of its range.

    >>> budget = ClockFilter(epsilon=1.0, delta=1e-9, leak=0)
    >>> budget.admits(0.01, count=336), budget.admits(0.01, count=337)
    (True, False)
    >>> ClockFilter(epsilon=1.0, delta=1e-9, leak=0, equal_charges=False).admits(0.01, count=330)
    False
    >>> budget.admits(1.0)        # never worse than plain sums
    True
    >>> from farthing.privacy import GaussianNoise
    >>> budget.charge(GaussianNoise(10.0)).charge(0.05).remaining.epsilon
    0.114...

    Statement:
        Let V(x, s) be the curve of the Gaussian pair with mu^2 = s, read at e^-x, and let V(-epsilon, S) <= slack. Let
        every mechanism, its event and whether to go on be chosen from the answers so far, the clock start at S and a
        charge of loss l take it from s to s' with E[V(x + l, s')] <= V(x, s) + t for all x, t being 0 but for samples
        (`clock_cost`). If on every path the charges' own deltas and their t sum to at most leak, and either the clock
        never falls below 0 or from the first charge that it could not pay on the plain sum of epsilons stays within
        epsilon, then all answers together are (epsilon, slack + leak)-DP. The same holds if charges of one and the same
        epsilon go on beyond the clock, up to the number that `equal_charges` proves.
    Source: the proof is on the page docs/clock.md. In short: V(L - epsilon, s) is a supermartingale, L the loss so
        far, and at least (1 - e^(epsilon - L))_+ at the end; a path on which the clock ran out ends with L at most
        epsilon, where the latter is 0, so that stopping just before loses nothing.
    Assumes: each mechanism keeps its curve whatever the answers before it; slack > 0 and leak are fixed before the
        first answer.
    Direction: S is rounded down and every cost up, in whole units of 1e-40.
    Checked by: tests/theorems/test_clock_filter.py
    """

    equal_charges: bool = True
    _clock: int | None = field(default=0, init=False)  # None: it ran out, and only plain sums count from there on
    _start: int = field(default=0, init=False)
    _excess: int = field(default=0, init=False)
    _alike: Event | None = field(default=None, init=False)  # the first charge, if all had its epsilon
    _alike_count: int | None = field(default=0, init=False)  # None: charges differ

    def __post_init__(self) -> None:
        super().__post_init__()
        start = clock_of(exact(self.epsilon), self._reduced_slack)
        self._set(_clock=start, _start=start)

    @property
    def _reduced_slack(self) -> Fraction:
        """Excesses that add up to x multiply what is reached by at most e^x, and e^x (1 - x) <= 1."""
        return self._slack() * (1 - Fraction(MOST_EXCESS, CLOCK_UNITS))

    @property
    def spent(self) -> ApproxDP:
        """The epsilon of Gaussian noise that takes as much of the clock (or the plain sum, if less), slack and leaks.

        >>> ClockFilter(1.0, 1e-6, leak=0).charge(0.01, count=279).spent.epsilon
        0.68...
        """
        known = [] if self._clock is None else [epsilon_of(self._start - self._clock, self._reduced_slack)]
        if self._epsilon_sum is not None:
            known.append(self._epsilon_sum)
        return ApproxDP(min(self.epsilon, float_up(min(known))), float_up(self._slack() + self._leak_sum))

    def explain(self) -> str:
        """How the budget stands, in words.

        Returns:
            A few lines: the share of the clock that is left, and what would fit into it.

        >>> print(ClockFilter(1.0, 1e-9, leak=0).charge(0.01, count=100).explain())
        epsilon 1 at delta 1.00e-09, for charges chosen as you go: 100 charged.
        30.2% of the clock is spent; plain sums stand at epsilon 1.
        What would fit: one charge of epsilon 0.121; or 1 of 0.1; or 236 of 0.01; or 23,106 of 0.001.
        """
        lines = [
            f"epsilon {number_text(self.epsilon)} at delta {number_text(self.delta)}, for charges chosen as you go: "
            f"{self.count:,} charged."
        ]
        sums = (
            "" if self._epsilon_sum is None else f"plain sums stand at epsilon {number_text(float(self._epsilon_sum))}"
        )
        if self._clock is None:
            alike = "" if not self._alike_count else f", but {self._alike_count:,} equal charges need less than it"
            lines.append(f"The clock has run out{alike}; {sums}.")
        else:
            share = 100.0 if not self._start else 100 * (1 - self._clock / self._start)
            lines.append(f"{share:.3g}% of the clock is spent" + (f"; {sums}." if sums else "."))
        fits = [f"{most:,} of {number_text(each)}" for each in _TYPICAL if (most := self._most(each))]
        one = f"one charge of epsilon {number_text(self.remaining.epsilon)}"
        lines.append(f"What would fit: {'; or '.join([one, *fits])}.")
        return "\n".join(lines)

    def _most(self, epsilon: float) -> int:
        low, high = 0, 1
        while self.admits(epsilon, high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.admits(epsilon, middle) else (low, middle)
        return low

    def _fits(self) -> bool:
        enough = self._clock is not None or self._plain_sum_fits() or self._equal_charges_fit()
        return enough and self._leak_sum <= self._leak_budget()

    def _equal_charges_fit(self) -> bool:
        if not self.equal_charges or self._alike is None or self._alike_count is None:
            return False
        return self._alike_count <= most_alike(exact(self.epsilon), self._reduced_slack, self._alike)

    def _largest_epsilon(self) -> float:
        """With nothing left after it, randomized response is dominated where tanh(epsilon / 2) <= V(0, s)."""
        largest = Fraction(0)
        if self._clock:
            with precise_balls():
                far = gaussian_curve(ball(Fraction(0)), ball(Fraction(self._whole_gaussian, CLOCK_UNITS)))
                alone = lower_fraction(2 * far.atanh()) if far < 1 else None
            largest = max(largest, alone or Fraction(0))
        if self._epsilon_sum is not None:
            largest = max(largest, exact(self.epsilon) - self._epsilon_sum)
        if self._alike is not None and self._after(self._alike, 1)._equal_charges_fit():
            largest = max(largest, _epsilon_alone(self._alike) or Fraction(0))
        return float_down(largest)

    def _add(self, event: Event, price: Price, count: int) -> None:
        for part, times in parts_to_pay(event):
            self._count_alike(part, times * count)
            self._spend(part, times * count)

    def _count_alike(self, event: Event, count: int) -> None:
        """Charges are alike if nothing but one and the same epsilon is known of them. An epsilon of 0 tells nothing."""
        epsilon = _epsilon_alone(event)
        if not count or epsilon == 0 or self._alike_count is None:
            return
        if epsilon is None or (self._alike is not None and epsilon != _epsilon_alone(self._alike)):
            self._set(_alike=None, _alike_count=None)
        else:
            self._set(_alike=event, _alike_count=self._alike_count + count)

    def _spend(self, event: Event, count: int) -> None:
        """Take the event so often, level by level: as long as a level is kept, one charge costs the same."""
        while count and self._clock is not None:
            spare = self._spare() if isinstance(event, Sampled) else Spare()
            gaussian = self._gaussian(event, count, spare.leak(event))
            step = affordable(event, gaussian, spare.leak(event))
            if step is None:
                self._set(_clock=None)
                return
            kept, cost = step
            times = min(count, (gaussian - kept) // cost.clock) if cost.clock else count
            if cost.leak:
                times = min(times, spare.left // cost.leak)
            excess = self._excess + times * cost.excess
            self._set(
                _clock=self._clock - times * cost.clock if excess <= MOST_EXCESS else None,
                _excess=excess,
                _leak_sum=self._leak_sum + times * Fraction(cost.leak, CLOCK_UNITS),
            )
            count -= times

    @property
    def _whole_gaussian(self) -> int:
        """What of the clock can pay for charges of any kind: all of it."""
        assert self._clock is not None
        return self._clock

    def _gaussian(self, event: Event, count: int, leak: int) -> int:
        """What of the clock pays for these charges."""
        assert self._clock is not None
        return self._clock

    def _spare(self) -> Spare:
        """What far tails of samples may use of delta: some of what is set aside for own deltas."""
        whole, left = self._leak_budget(), self._leak_budget() - self._leak_sum
        return Spare(math.floor(whole * CLOCK_UNITS), self._start, math.floor(left * CLOCK_UNITS))


def affordable(event: Event, clock: int, leak: int = 0) -> tuple[int, ClockCost] | None:
    """The highest level, in units, that a clock can keep after paying for the event, and what it pays."""
    left = clock
    while True:
        level = level_below(Fraction(left, CLOCK_UNITS))
        kept, cost = math.ceil(level * CLOCK_UNITS), clock_cost(event, level, leak)
        if cost is None or cost.clock > clock:
            return None
        if clock - cost.clock >= kept:
            return kept, cost
        # A lower level costs at least as much, so it must lie at or below what this cost would leave.
        left = min(clock - cost.clock, kept - 1)


def parts_to_pay(event: Event) -> list[tuple[Event, int]]:
    """The parts of a plan in the order in which they are paid: largest epsilon first, while more of the clock is left.

    >>> from farthing.privacy import GaussianNoise
    >>> parts_to_pay(Composed(((GaussianNoise(5.0), 1), (ApproxDP(0.1), 2), (ApproxDP(0.5), 1))))[0]
    (ApproxDP(epsilon=0.5, delta=0.0), 1)
    """
    if not isinstance(event, Composed):
        return [(event, 1)]
    return sorted(event.parts, key=lambda part: -(price_of(part[0]).epsilon or Fraction(0)))


def _epsilon_alone(event: Event) -> Fraction | None:
    """The epsilon of an event that costs the clock what every event of this epsilon does."""
    black_box = isinstance(event, ApproxDP | RandomizedResponse)
    if black_box or (isinstance(event, DiscreteLaplaceNoise) and event.l1_sensitivity == 1):
        return price_of(event).epsilon
    return None


@lru_cache(maxsize=1024)
def most_alike(epsilon: Fraction, slack: Fraction, event: Event) -> int:
    """How many charges of the epsilon of `event`, and nothing else, a whole budget admits.

    >>> most_alike(Fraction(3), Fraction(1, 10**6), ApproxDP(0.1))
    44
    """
    each = _epsilon_alone(event)
    assert each  # other events are not counted
    clocks = [clock_of(epsilon, slack)]
    while len(clocks) <= LONGEST_PATH + 1:
        step = affordable(event, clocks[-1])
        if step is None:
            break
        clocks.append(clocks[-1] - step[1].clock)
    if len(clocks) == 1 and each > epsilon:  # neither the clock nor plain sums admit the first
        return 0
    return equal_charges(float(epsilon), float(slack), float(each), [clock / CLOCK_UNITS for clock in clocks])

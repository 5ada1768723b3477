"""A running epsilon that holds at every time at once."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from farthing.accounting.event_price import Charge, as_event, price_of, renyi_divergence_upper
from farthing.accounting.filters.basic_filter import checked_leak
from farthing.numerics.bounds import ball, bounded, exact, float_up, precise_balls
from farthing.privacy.events import checked_count, checked_delta

__all__ = ["Odometer"]

_ALPHAS = tuple(1 + 2.0**j for j in range(-3, 13))


@dataclass(frozen=True, repr=False)
class Odometer:
    """Reports after every charge an epsilon that holds, at this delta, at all times simultaneously.

    There is no budget and nothing is refused. Read it, stop, go on, choose the next epsilon by it: the readings stay
    valid.

    Args:
        delta: The delta at which the readings hold.
        leak: The part of delta set aside for the charges' own deltas; half by default. Once they exceed it the reading
            is infinite.

    Raises:
        InvalidValue: If a parameter is out of its range.

    >>> meter = Odometer(delta=1e-6, leak=0)
    >>> meter.epsilon
    0.0
    >>> meter = meter.charge(0.1)
    >>> meter.epsilon
    0.1
    >>> meter.charge(0.1, count=99).epsilon
    6.095...

    Statement:
        Let every mechanism, its cost and whether to go on be chosen from the answers so far. Fix orders alpha_j
        and weights w_j summing to 1, let S_j(t) be the sum of the divergences of order alpha_j of the first t
        charges (given no leak), and let epsilon_t solve
            sum_j w_j exp((alpha_j - 1)(epsilon_t - S_j(t))) = 1 / slack,
        or be the plain sum of epsilons if that is less. If all charges are pure, the privacy loss of the
        first t answers is at most epsilon_t for all t at once, except with probability slack. In general, for
        every rule T of when to stop and every set of transcripts A,
            P[A] <= E_Q[exp(epsilon_T); A] + slack + leak   while sum delta_i <= leak.
    Source: the mixture is a non-negative supermartingale of mean <= 1 under P (Feldman & Zrnic,
        arXiv:2008.11193, Theorem 3.1, per order), so by Ville's inequality it ever exceeds 1/slack with
        probability <= slack. This is the method of mixtures of Whitehouse, Ramdas, Rogers & Wu,
        arXiv:2203.05481v3, section 5, over a grid of 16 orders alpha_j = 1 + 2^j, j = -3 .. 12, of equal
        weights, in place of a continuous mixture.
    Departs from source: charges need to be (epsilon_i, delta_i)-DP only, not probabilistically so, because
        the guarantee with delta_i > 0 is the weaker one above: split off the leaks as in `RenyiFilter`.
    Assumes: each mechanism keeps its bound whatever the answers before it; delta, leak and orders are fixed
        before the first answer.
    Direction: divergences and epsilon_t are rounded up; the mixture at epsilon_t is verified to reach 1/slack.
    Checked by: tests/theorems/test_odometer_is_sound.py
    """

    delta: float
    leak: float | None = None
    count: int = field(default=0, init=False)
    _epsilon_sum: Fraction | None = field(default=Fraction(0), init=False)
    _leak_sum: Fraction = field(default=Fraction(0), init=False)
    _divergences: tuple[Fraction, ...] = field(default=(Fraction(0),) * len(_ALPHAS), init=False)

    def __post_init__(self) -> None:
        delta = checked_delta(self.delta)
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "leak", checked_leak(delta, self.leak))

    def charge(self, charge: Charge, count: int = 1) -> Odometer:
        """The odometer after `count` such charges; this one stays as it is.

        Args:
            charge: An epsilon, an (epsilon, delta) pair or an event.
            count: How many such charges.

        Returns:
            The odometer to go on with.

        Raises:
            InvalidValue: If `charge` is not a charge.
        """
        event, times = as_event(charge), checked_count(count)
        if times == 0:
            return self
        price, after = price_of(event), copy.copy(self)
        plain = None
        if self._epsilon_sum is not None and price.epsilon is not None:
            plain = bounded(self._epsilon_sum + times * price.epsilon)
        sums = (
            bounded(total + times * renyi_divergence_upper(event, alpha))
            for total, alpha in zip(self._divergences, _ALPHAS, strict=True)
        )
        object.__setattr__(after, "count", self.count + times)
        object.__setattr__(after, "_epsilon_sum", plain)
        object.__setattr__(after, "_leak_sum", bounded(self._leak_sum + times * price.leak))
        object.__setattr__(after, "_divergences", tuple(sums))
        return after

    @property
    def epsilon(self) -> float:
        """The reading: valid now, together with every earlier and later reading; infinite once leaks exceed `leak`."""
        assert self.leak is not None
        if self._leak_sum > exact(self.leak):
            return math.inf
        mixture = self._mixture_epsilon()
        return mixture if self._epsilon_sum is None else min(mixture, float_up(self._epsilon_sum))

    @property
    def leaked(self) -> float:
        """The sum of the charges' own deltas, rounded up."""
        return float_up(self._leak_sum)

    def __repr__(self) -> str:
        return f"Odometer(delta={self.delta!r}; {self.count} charged, epsilon={self.epsilon:.3g})"

    def _mixture_epsilon(self) -> float:
        """The least float found at which the mixture, evaluated in balls, is at least 1/slack."""
        assert self.leak is not None
        slack = exact(self.delta) - exact(self.leak)
        rates = [alpha - 1 for alpha in _ALPHAS]
        sums = [float_up(total) for total in self._divergences]
        target = -math.log(float(slack))
        # One term alone reaches 1/slack at `high`. log of the mixture is convex and increasing, so Newton's
        # steps come down to the solution without passing it.
        high = min(s + (target + math.log(len(rates))) / r for s, r in zip(sums, rates, strict=True))
        for _ in range(30):
            logs = [r * (high - s) - math.log(len(rates)) for s, r in zip(sums, rates, strict=True)]
            top = max(logs)
            weights = [math.exp(x - top) for x in logs]
            total = math.fsum(weights)
            slope = math.fsum(w * r for w, r in zip(weights, rates, strict=True)) / total
            step = (top + math.log(total) - target) / slope
            if not step > 1e-14 * high:
                break
            high -= step
        step = 2.0**-48
        while not self._reaches(high, slack):  # NaN or an overflow leaves the loop at infinity
            high, step = high * (1 + step), 2 * step
            if not high < math.inf:
                return math.inf
        return high

    def _reaches(self, epsilon: float, slack: Fraction) -> bool:
        """Whether the mixture at `epsilon` is proven to be at least 1/slack."""
        if not math.isfinite(epsilon):
            return False
        with precise_balls():
            x: Any = ball(exact(epsilon))
            terms = [
                ((x - ball(total)) * ball(exact(alpha - 1))).exp()
                for total, alpha in zip(self._divergences, _ALPHAS, strict=True)
            ]
            return bool(sum(terms[1:], terms[0]) / len(terms) * ball(slack) >= 1)

"""The filter of Whitehouse, Ramdas, Rogers and Wu: advanced composition without knowing epsilons ahead."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from farthing.accounting.event_price import Price
from farthing.accounting.filters.basic_filter import SlackFilter
from farthing.errors import InvalidValue
from farthing.numerics.bounds import (
    ball,
    bounded,
    exact,
    float_down,
    float_up,
    lower_fraction,
    precise_balls,
    upper_fraction,
)
from farthing.privacy import ApproxDP, Event

__all__ = ["FullyAdaptiveFilter"]


@dataclass(frozen=True, repr=False)
class FullyAdaptiveFilter(SlackFilter):
    """Admits charges while sqrt(2 ln(1/slack) V) + V/2 <= epsilon, V the sum of epsilon_i^2.

    Which part of delta a path uses up may itself depend on the answers, so the parts are fixed when the filter is made:
    `leak` for the charges' own deltas, and slack = delta - leak for what the theorem spends.

    Args:
        epsilon: The epsilon of the whole budget.
        delta: The delta of the whole budget.
        leak: The part of delta set aside for the charges' own deltas; half by default. With pure charges pass 0.

    Raises:
        InvalidValue: If a parameter is out of its range.

    >>> many = FullyAdaptiveFilter(epsilon=1.0, delta=1e-6, leak=0)
    >>> many.admits(0.01, count=349), many.admits(0.01, count=350)
    (True, False)
    >>> many.admits(1.0)          # never worse than plain sums
    True
    >>> from farthing.privacy import GaussianNoise
    >>> many.charge(GaussianNoise(10.0)).spent.epsilon
    0.530...

    Statement:
        Let every mechanism, its (epsilon_i, delta_i) and whether to go on be chosen from the answers so
        far. If on every path sum delta_i <= leak and
            sqrt(2 ln(1/slack) V) + V/2 <= epsilon,   V = sum epsilon_i^2,
        then all answers together are (epsilon, slack + leak)-DP. A mechanism that is delta_i-approximately
        rho_i-zCDP counts as epsilon_i^2 = 2 rho_i.
    Source: Whitehouse, Ramdas, Rogers & Wu, arXiv:2203.05481v3, Theorem 2 (and Theorem 1 for zCDP); Gaussian noise
        is zCDP with 2 rho = 1/noise_multiplier^2 (Bun & Steinke, arXiv:1605.02065, Proposition 1.6), discrete
        Gaussian noise too (Canonne, Kamath & Steinke, arXiv:2004.00010, Theorem 4).
    Departs from source: a path whose plain sum of epsilons fits is admitted as well. Such a path has likelihood
        ratio at most e^epsilon, so it adds nothing to slack, and the bound on the others stands.
    Assumes: each mechanism is (epsilon_i, delta_i)-DP whatever the answers before it; slack > 0 and leak are
        fixed before the first answer.
    Direction: V is exact or rounded up, the largest V admitted is rounded down.
    Checked by: tests/theorems/test_filters_are_sound.py
    """

    _variance: Fraction = field(default=Fraction(0), init=False)
    _variance_budget: Fraction = field(default=Fraction(0), init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        with precise_balls():
            # sqrt(2 L V) + V/2 <= epsilon  <=>  sqrt(V) <= 2 epsilon / (sqrt(2 L) + sqrt(2 L + 2 epsilon)).
            twice_log, epsilon = -2 * ball(self._slack()).log(), ball(exact(self.epsilon))
            root = 2 * epsilon / (twice_log.sqrt() + (twice_log + 2 * epsilon).sqrt())
            budget = lower_fraction(root**2)
        self._set(_variance_budget=max(Fraction(0), budget or Fraction(0)))

    @property
    def spent(self) -> ApproxDP:
        """The theorem's epsilon for the charges so far (or their plain sum, if less), and slack plus leaks.

        >>> FullyAdaptiveFilter(1.0, 1e-6).spent
        ApproxDP(epsilon=0.0, delta=5e-07)
        """
        with precise_balls():
            variance = ball(self._variance)
            upper = upper_fraction((-2 * ball(self._slack()).log() * variance).sqrt() + variance / 2)
        known = [amount for amount in (upper, self._epsilon_sum) if amount is not None]
        return ApproxDP(float_up(min(known)), float_up(self._slack() + self._leak_sum))

    def _fits(self) -> bool:
        enough = self._plain_sum_fits() or self._variance <= self._variance_budget
        return enough and self._leak_sum <= self._leak_budget()

    def _largest_epsilon(self) -> float:
        with precise_balls():
            root = lower_fraction(ball(max(Fraction(0), self._variance_budget - self._variance)).sqrt())
        largest = max(Fraction(0), root or Fraction(0))
        if self._epsilon_sum is not None:
            largest = max(largest, exact(self.epsilon) - self._epsilon_sum)
        return float_down(largest)

    def _add(self, event: Event, price: Price, count: int) -> None:
        if price.twice_rho is None:
            if count == 0:
                return
            raise InvalidValue(
                "event",
                event,
                "has neither a pure epsilon nor a zCDP bound that shrinks with sampling",
                "use RenyiFilter, which prices sampled Gaussian noise at its order",
            )
        self._set(_variance=bounded(self._variance + count * price.twice_rho))

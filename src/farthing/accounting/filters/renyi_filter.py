"""The Renyi filter: sums of Renyi divergences at one order that is fixed in advance."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from farthing.accounting.event_price import (
    Charge,
    Price,
    as_event,
    price_of,
    renyi_divergence_upper,
)
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
)
from farthing.privacy import ApproxDP, Event, Sampled
from farthing.privacy.events import checked_real

__all__ = ["RenyiFilter"]

_LARGEST_ALPHA = 1e6


@dataclass(frozen=True, repr=False)
class RenyiFilter(SlackFilter):
    """Admits charges while their Renyi divergences of order alpha sum to at most what (epsilon, delta) allows.

    It prices every event by its own transform, sampled Gaussian noise included. A poor order costs budget, never
    privacy.

    Args:
        epsilon: The epsilon of the whole budget.
        delta: The delta of the whole budget.
        leak: The part of delta set aside for the charges' own deltas; half by default.
        alpha: The order, fixed when the filter is made. By default the one that admits the most of `expecting`.
        expecting: A typical charge to come; many small ones (whose divergence grows like alpha) by default.

    Raises:
        InvalidValue: If a parameter is out of its range.

    >>> from farthing.privacy import GaussianNoise, Sampled
    >>> budget = RenyiFilter(epsilon=1.0, delta=1e-6, leak=0)
    >>> budget.alpha
    22.0
    >>> budget.admits(0.01, count=490), budget.admits(0.01, count=491)
    (True, False)
    >>> budget.charge(GaussianNoise(10.0)).charge(0.05).remaining.epsilon
    0.426...
    >>> noisy_steps = Sampled(GaussianNoise(1.0), 0.01)
    >>> RenyiFilter(epsilon=2.0, delta=1e-6, leak=0, expecting=noisy_steps).admits(noisy_steps, count=100)
    True

    Statement:
        Let every mechanism, its cost and whether to go on be chosen from the answers so far. If on every path
        sum delta_i <= leak and the divergences of order alpha, given no leak and in both directions, sum to at most
            B = epsilon - (ln(1/slack) + ln c) / (alpha - 1),   c = (alpha-1)^(alpha-1) / alpha^alpha,
        then all answers together are (epsilon, slack + leak)-DP.
    Source: Feldman & Zrnic, arXiv:2008.11193, Theorems 3.1 and 4.3 (also Lecuyer, arXiv:2103.01379); the conversion is
        Canonne, Kamath & Steinke, arXiv:2004.00010, Proposition 12 in the form
        (1 - e^(epsilon - L))_+ <= c exp((alpha-1)(L - epsilon)).
    Departs from source: (a) charges with delta_i > 0. Each distribution is (1 - delta_i) of an epsilon_i-DP part and
        delta_i of anything. On the paths without leak, weights prod(1 - delta_i) <= 1 are the same for both
        neighbours, so the divergence left is at most that of the pure parts, at most slack; some leak has
        probability at most sum delta_i <= leak. (b) A path whose plain sum of epsilons fits is admitted as well:
        its likelihood ratio is at most e^epsilon, so it adds nothing to slack.
    Assumes: each mechanism keeps its bound whatever the answers before it; alpha > 1, slack > 0 and leak are fixed
        before the first answer.
    Direction: divergences are rounded up, B is rounded down.
    Checked by: tests/theorems/test_filters_are_sound.py
    """

    alpha: float | None = None
    expecting: Charge | None = None
    _divergence: Fraction = field(default=Fraction(0), init=False)
    _conversion: Fraction = field(default=Fraction(0), init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.expecting is not None:
            self._set(expecting=as_event(self.expecting))
        if self.alpha is None:
            self._set(alpha=_best_alpha(self.epsilon, float(self._slack()), self.expecting))
        alpha = checked_real(self.alpha, "alpha")
        if not 1 < alpha <= _LARGEST_ALPHA:
            raise InvalidValue("alpha", self.alpha, f"must be > 1 and at most {_LARGEST_ALPHA:g}")
        self._set(alpha=alpha, _conversion=_conversion_upper(alpha, self._slack()))

    @property
    def spent(self) -> ApproxDP:
        """The epsilon that the divergences so far convert to (or the plain sum, if less), and slack plus leaks.

        >>> RenyiFilter(1.0, 1e-6).charge(0.01, count=100).spent.epsilon
        0.586...
        """
        epsilon = max(Fraction(0), self._divergence + self._conversion)
        if self._epsilon_sum is not None:
            epsilon = min(epsilon, self._epsilon_sum)
        return ApproxDP(float_up(epsilon), float_up(self._slack() + self._leak_sum))

    def _fits(self) -> bool:
        enough = self._plain_sum_fits() or self._divergence + self._conversion <= exact(self.epsilon)
        return enough and self._leak_sum <= self._leak_budget()

    def _largest_epsilon(self) -> float:
        by_sum = Fraction(0) if self._epsilon_sum is None else exact(self.epsilon) - self._epsilon_sum
        low, high = float_down(max(Fraction(0), by_sum)), max(1.0, 2 * self.epsilon)
        if not self.admits(low):  # nothing is left in the order, and a plain sum no longer counts
            return 0.0
        while self.admits(high):
            low, high = high, 2 * high
        while low < (middle := low + (high - low) / 2) < high and high - low > 1e-12 * high:
            low, high = (middle, high) if self.admits(middle) else (low, middle)
        return low

    def _add(self, event: Event, price: Price, count: int) -> None:
        assert self.alpha is not None
        if count:
            amount = count * renyi_divergence_upper(event, self.alpha)
            self._set(_divergence=bounded(self._divergence + amount))


def _conversion_upper(alpha: float, slack: Fraction) -> Fraction:
    """(ln(1/slack) + ln c) / (alpha - 1), rounded up: what the step from Renyi to (epsilon, slack) costs."""
    with precise_balls():
        a = ball(exact(alpha))
        log_c = (a - 1) * (a - 1).log() - a * a.log()
        lower = lower_fraction((ball(slack).log() - log_c) / (a - 1))
    assert lower is not None  # alpha > 1 and slack > 0 were checked
    return -lower


def _best_alpha(epsilon: float, slack: float, expecting: Charge | None) -> float:
    """The order that admits the most charges; many small ones unless something else is expected.

    Floats are good enough here: any order is sound, this only looks for a good one.
    """

    def budget(alpha: float) -> float:
        log_c = (alpha - 1) * math.log(alpha - 1) - alpha * math.log(alpha)
        return epsilon - (math.log(1 / slack) + log_c) / (alpha - 1)

    if expecting is not None:
        event = as_event(expecting)
        # One term per unit of order: keep it quick.
        largest = 512 if isinstance(event, Sampled) else _LARGEST_ALPHA
        orders = [alpha for alpha in _candidate_orders() if alpha <= largest]
        divergences = {alpha: float(renyi_divergence_upper(event, alpha)) for alpha in orders}
        if not all(divergences.values()):
            raise InvalidValue("expecting", expecting, "must cost something", "leave it out to expect small charges")
        best = max(orders, key=lambda alpha: budget(alpha) / divergences[alpha])
        pure = price_of(event).epsilon
        if pure is None or budget(best) // divergences[best] > exact(epsilon) // pure:
            return best
        # Plain sums admit more of it than any order, so the order may as well suit small charges.
    return max(_candidate_orders(), key=lambda alpha: budget(alpha) / alpha)


def _candidate_orders() -> list[float]:
    """Fractions below 8, then whole numbers a few percent apart."""
    low = [1 + i / 16 for i in range(1, 16)] + [2 + i / 4 for i in range(24)]
    high = {round(8 * 1.02**i) for i in range(600)}
    return sorted({*low, *(float(n) for n in high if n <= _LARGEST_ALPHA)})

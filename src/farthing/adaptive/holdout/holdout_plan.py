"""What a reusable holdout will cost and promise: prices, noise and errors, all from public numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from farthing.accounting import calibrate, compose
from farthing.adaptive.holdout.holdout_sums import STEPS
from farthing.adaptive.holdout.population_guarantee import (
    HoldoutGuarantee,
    log_histories,
    posterior_error,
    posterior_shift,
    sampling_deviation,
)
from farthing.errors import InvalidValue
from farthing.mechanisms.additive import DiscreteLaplace
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.sparse_vector import AboveThreshold
from farthing.mechanisms.threshold_session import ThresholdSession
from farthing.privacy.events import (
    MAX_EPSILON,
    ApproxDP,
    Composed,
    Event,
    checked_count,
    checked_delta,
    checked_mechanism_epsilon,
    checked_real,
)


@dataclass(frozen=True)
class Comparison:
    """Rounds of `AboveThreshold` on sums that a row moves by at most STEPS, at `epsilon` each.

    A false alarm costs a correction and no accuracy, for a corrected answer is measured afresh. A miss costs accuracy.
    The two are bounded apart.
    """

    epsilon: float

    def start(self, threshold: int, source: Source) -> ThresholdSession:
        """A round with fresh noise; it ends with its first positive."""
        return self._mechanism._start(source, threshold)

    def miss_steps(self, failure: float, rounds: int) -> float:
        """With probability 1 - failure no value above the threshold by more than this is let through, in any round.

        Statement:
            A value is let through if value + N < T + offset + R, with R and N geometric on 0, 1, 2, ..., R of rate r
            and drawn once a round. Over any number of questions, however chosen, in `rounds` rounds,
                P[some value above T + e is let through] <= rounds exp(-r (e - offset)).
            Proof: N >= 0, so that value > T + e and value + N < T + offset + R imply R > e - offset, and
            P[R > x] <= exp(-r x) for x >= 0. Add up over rounds.
        Source: own; for two-sided noise the number of questions would enter (Dwork & Roth 2014, Theorem 3.24).
        Assumes: 0 < failure < 1; rounds >= 1.
        Direction: upward; reached by long streams of questions at the edge.
        Checked by: tests/theorems/test_holdout_comparison.py

        >>> Comparison(0.5).miss_steps(0.05, rounds=1) / STEPS  # rows
        16.8...
        """
        rate, _ = self._rates
        return max(0, self._offset) + math.log(rounds / failure) / rate * (1 + 1e-9)

    def alarm_steps(self, queries: int, failure: float) -> float:
        """With probability 1 - failure none of `queries` values below the threshold by this is called above.

        Statement:
            With R, N, r as at `miss_steps` and N of rate s: before the first positive,
                P[some value at most T - x is called above] <= queries exp(-s (x + offset)) E[exp(-s R)],
            E[exp(-s R)] = (1 - e^-r) / (1 - e^-(r + s)), for x + offset >= 0.
            Proof: it takes N >= x + offset + R, and P[N >= n] = exp(-s n) for whole n >= 0. Add up over questions.
        Source: own, from the distributions of the noise.
        Assumes: 0 < failure < 1; queries >= 1.
        Direction: upward.
        Checked by: tests/theorems/test_holdout_comparison.py

        >>> Comparison(0.5).alarm_steps(1_000, 0.05) / STEPS  # rows
        59.4...
        """
        rate, noise = self._rates
        offset = self._offset
        mixed = math.expm1(-rate) / math.expm1(-(rate + noise))
        return max(-offset, math.log(queries * mixed / failure) / noise * (1 + 1e-9) - offset) + 1

    @cached_property
    def _mechanism(self) -> AboveThreshold:
        return AboveThreshold(self.epsilon, l1_sensitivity=STEPS)

    @cached_property
    def _offset(self) -> int:
        return self._mechanism._offset

    @cached_property
    def _rates(self) -> tuple[float, float]:
        first, second = self._mechanism._rates
        return float(first), float(second)


LEVELS = 256  # corrected answers are rounded to 1/256: fewer levels say less about the rows
_FLOOR = 1 / STEPS  # what rounding each row down to the grid moves a mean by, at most
_MOST_CORRECTIONS = 2**16
_MOST_ROWS = 2**42  # sums stay below 2^62


@dataclass(frozen=True)
class HoldoutPlan:
    """The prices and the guarantee of a reusable holdout, before any row is looked at.

    Each of the `corrections` rounds is one run of the sparse vector with fresh threshold noise, and one noisy mean;
    both prices are fixed in advance, so that the session is one event.

    Args:
        rows: How many holdout rows there are.
        training_rows: How many training rows there are.
        epsilon: The epsilon of the whole session.
        delta: The delta of the whole session.
        queries: How many questions the guarantee holds for.
        corrections: How many answers may come from the holdout.
        stated_threshold: How far the means may be apart; chosen by default.
        confidence: The probability that the guarantee holds for all answers at once.

    Raises:
        InvalidValue: If an argument is out of its range.

    >>> plan = HoldoutPlan(rows=10_000, training_rows=10_000, epsilon=1.0, queries=1_000, corrections=5)
    >>> plan.event
    Composed(parts=((ApproxDP(epsilon=0.149..., delta=0.0), 5), (ApproxDP(epsilon=0.049..., delta=0.0), 5)))
    >>> round(plan.threshold, 3), round(plan.guarantee.error_free, 3), round(plan.guarantee.error_paid, 3)
    (0.055, 0.119, 0.067)
    """

    rows: int
    training_rows: int
    epsilon: float
    delta: float = 0.0
    queries: int = 1_000
    corrections: int = 10
    stated_threshold: float | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        for name, most in (
            ("rows", _MOST_ROWS),
            ("training_rows", _MOST_ROWS),
            ("queries", 2**53),
            ("corrections", _MOST_CORRECTIONS),
        ):
            count = checked_count(getattr(self, name), name)
            if not 1 <= count <= most:
                raise InvalidValue(name, count, f"must be a whole number from 1 to {most}")
            object.__setattr__(self, name, count)
        object.__setattr__(self, "epsilon", checked_mechanism_epsilon(self.epsilon))
        object.__setattr__(self, "delta", checked_delta(self.delta))
        level = checked_real(self.confidence, "confidence")
        if not 0 < level < 1:
            raise InvalidValue("confidence", self.confidence, "must be above 0 and below 1", "0.95 is usual")
        object.__setattr__(self, "confidence", level)
        if self.stated_threshold is not None:
            threshold = checked_real(self.stated_threshold, "threshold")
            if not 0 < threshold < 1:
                raise InvalidValue("threshold", self.stated_threshold, "must be above 0 and below 1", "0.05 is usual")
            object.__setattr__(self, "stated_threshold", threshold)

    def __str__(self) -> str:
        return (
            f"a reusable holdout of {self.rows:,} rows for epsilon {self.epsilon:.6g} at delta {self.delta:g}: up to "
            f"{self.corrections:,} of {self.queries:,} answers are corrected\n{self.guarantee}"
        )

    @property
    def event(self) -> Event:
        """What the whole session costs, however it goes: charged once, before the first question."""
        return _event(*self._prices, self.corrections)

    @cached_property
    def _prices(self) -> tuple[float, float]:
        return _prices(self.epsilon, self.delta, self.corrections)

    @cached_property
    def comparison(self) -> Comparison:
        """One round of questions "is the training mean too far off?", in steps of the sums."""
        return Comparison(self._prices[0])

    @cached_property
    def measurement(self) -> DiscreteLaplace:
        """The noise of one corrected answer, in steps of the sums."""
        return DiscreteLaplace(self._prices[1], l1_sensitivity=STEPS)

    @cached_property
    def threshold(self) -> float:
        """How far a training mean may be off before it is corrected.

        Unless stated: the least at which, with `confidence`, no question that is new to both sets is corrected. Both
        means are then within Hoeffding's bound of each other, and the noise of the comparisons comes on top.
        """
        if self.stated_threshold is not None:
            return self.stated_threshold
        half = self._failure / 2
        sampling = math.sqrt(math.log(2 * self.queries / half) / 2 * (1 / self.rows + 1 / self.training_rows))
        noise = self.comparison.alarm_steps(self.queries, half) / (self.rows * STEPS)
        return sampling + max(noise, _FLOOR)

    @cached_property
    def threshold_steps(self) -> int:
        """The same in steps of the sums over the holdout rows, rounded up."""
        return math.ceil(Fraction(self.threshold) * self.rows * STEPS)

    def measurement_error(self, failure: float) -> float:
        """With probability 1 - failure, no corrected answer is off the holdout mean by more than this.

        Args:
            failure: The probability that one of them is.

        Returns:
            The error.
        """
        # P[|noise| >= x] <= 2 exp(-x / scale) / (1 + exp(-1 / scale)) for each of them.
        scale = self.measurement.scale
        steps = scale * math.log(2 * self.corrections / failure / (1 + math.exp(-1 / scale))) * (1 + 1e-9)
        return steps / (self.rows * STEPS) + 1 / (2 * LEVELS) + _FLOOR

    def free_error(self, failure: float) -> float:
        """With probability 1 - failure, no free answer is off the holdout mean by more than this.

        Args:
            failure: The probability that one of them is.

        Returns:
            The error.
        """
        return self.threshold + self.comparison.miss_steps(failure, self.corrections) / (self.rows * STEPS) + 2 * _FLOOR

    @cached_property
    def guarantee(self) -> HoldoutGuarantee:
        """The errors on the holdout and on the population, by the better of two theorems."""
        return min(self.by_descriptions, self.by_privacy, key=lambda guarantee: guarantee.error_free)

    @cached_property
    def by_descriptions(self) -> HoldoutGuarantee:
        """Half of the failures for the noise (a half of that for each kind), half for the sample."""
        quarter = self._failure / 4
        histories = log_histories(self.queries, self.corrections, LEVELS + 1)
        sampling = sampling_deviation(histories, self.rows, 2 * quarter)
        return self._guarantee("descriptions", self.free_error(quarter), self.measurement_error(quarter), sampling)

    @cached_property
    def by_privacy(self) -> HoldoutGuarantee:
        """The same division; the shift takes the place of the sampling error."""
        quarter = self._failure / 4
        shift = _least_shift(*self._prices, self.corrections, self.epsilon, 2 * quarter)
        free = posterior_error(self.free_error, quarter)
        return self._guarantee("privacy", free, posterior_error(self.measurement_error, quarter), shift)

    def _guarantee(self, route: Any, free: float, paid: float, sampling: float) -> HoldoutGuarantee:
        return HoldoutGuarantee(
            route=route,
            confidence=self.confidence,
            rows=self.rows,
            queries=self.queries,
            corrections=self.corrections,
            threshold=self.threshold,
            free_on_rows=free,
            paid_on_rows=paid,
            sampling=sampling,
        )

    @property
    def _failure(self) -> float:
        return 1 - self.confidence


@lru_cache(maxsize=64)
def shared_plan(plan: HoldoutPlan) -> HoldoutPlan:
    """An equal plan that was asked for before, with all that it has found out by then."""
    return plan


def _event(comparison: float, measurement: float, corrections: int) -> Composed:
    return Composed(((ApproxDP(comparison), corrections), (ApproxDP(measurement), corrections)))


@lru_cache(maxsize=256)
def _prices(epsilon: float, delta: float, corrections: int) -> tuple[float, float]:
    """Of a comparison and of a measurement: three quarters and one quarter of a round's price, all of them together
    within (epsilon, delta). Comparisons are held against the largest noise of many questions, measurements of few."""

    def charges(price: float) -> list[Event]:
        return [_event(0.75 * price, 0.25 * price, corrections)]

    # A mechanism's own epsilon has a ceiling, and no round needs more than the whole.
    limit = (epsilon / corrections / 2, min(2 * epsilon, MAX_EPSILON))
    price = calibrate(charges, epsilon, delta, direction="epsilon", bracket=limit, tolerance=1e-6).parameter
    return 0.75 * price, 0.25 * price


@lru_cache(maxsize=256)
def _least_shift(comparison: float, measurement: float, corrections: int, epsilon: float, failure: float) -> float:
    """The best point of the session's privacy curve: a smaller epsilon has a larger delta."""
    composed = compose([_event(comparison, measurement, corrections)])
    best = math.tanh(corrections * (comparison + measurement) / 4)  # the plain sum, with delta 0
    for step in range(1, 25):
        at = 1.1 * epsilon * step / 24
        delta = composed.delta_at(at).upper
        best = min(best, posterior_shift(at, delta, failure))
    return best * (1 + 1e-9)

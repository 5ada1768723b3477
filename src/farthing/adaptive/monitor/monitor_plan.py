"""What a monitor will cost and how far off it may be, before anything is spent."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.accounting.calibration import calibrate
from farthing.adaptive.monitor.count_series import Series
from farthing.errors import InvalidValue
from farthing.mechanisms.sparse_vector import AboveThreshold
from farthing.privacy import ApproxDP, Composed, Event
from farthing.privacy.events import checked_count, checked_delta, checked_epsilon, checked_real

Floats = NDArray[np.float64]

_BLOCKS = 4096
_BEYOND = math.exp(-60)  # what lies further out is counted as wrong


def chance_above(threshold_rate: Fraction, question_rate: Fraction, offset: int, distance: int, queries: int) -> float:
    """The chance that some of `queries` counts, all at `distance` below the threshold or lower, is called above.

    Statement:
        "Above" is answered if value + N >= T + offset + R with R and N geometric of the given rates. For
        value = T - d the chance given R = r is P[N >= d + offset + r], and values further below have a smaller one;
        so the chance that any of k questions is answered "above" in one round is at most
            sum over r of P[R = r] (1 - (1 - P[N >= d + offset + r])^k),
        with equality if all k values lie at T - d.
    Source: the distribution of the noise, as `threshold_error` has it.
    Assumes: rates > 0, queries >= 1; questions may depend on earlier answers.
    Direction: upward; exact up to rounding if R has fewer than 4096 likely values.
    Checked by: tests/theorems/test_monitor_chances.py

    >>> round(chance_above(Fraction(1), Fraction(1), 0, 5, 1), 4)
    0.0049
    """
    starts, mass, _ = _blocks(float(threshold_rate))
    each = np.exp(-float(question_rate) * np.maximum(distance + offset + starts, 0.0))
    with np.errstate(divide="ignore"):
        some = -np.expm1(queries * np.log1p(-np.minimum(each, 1.0)))
    return min(1.0, math.fsum(mass * some) * (1 + 1e-12) + _BEYOND)


def chance_below(threshold_rate: Fraction, question_rate: Fraction, offset: int, distance: int) -> float:
    """The chance that one question about a count at `distance` above the threshold, or higher, is answered "below".

    Statement:
        With the notation of `chance_above`: in a given round the chance that a given question is reached, is about a
        value >= T + d and is answered "below" is at most
            sum over r of P[R = r] P[N <= offset + r - d - 1],
        with equality for a round's first question at T + d. (That event implies N < offset + R - d, and the N of
        the question is independent of R, whatever was answered before.)
    Source: the distribution of the noise, as `threshold_error` has it.
    Assumes: rates > 0; questions may depend on earlier answers.
    Direction: upward; exact up to rounding if R has fewer than 4096 likely values.
    Checked by: tests/theorems/test_monitor_chances.py

    >>> round(chance_below(Fraction(1), Fraction(1), 0, 5), 4)
    0.0018
    """
    _, mass, ends = _blocks(float(threshold_rate))
    missed = -np.expm1(-float(question_rate) * np.maximum(offset + ends - distance, 0.0))
    return min(1.0, math.fsum(mass * missed) * (1 + 1e-12) + _BEYOND)


def _blocks(rate: float) -> tuple[Floats, Floats, Floats]:
    """Blocks of the threshold's noise: where each begins, how likely it is, and where it ends."""
    reach = math.ceil(60 / rate) + 1
    width = -(-reach // _BLOCKS)
    starts = np.arange(0, reach, width, dtype=np.float64)
    return starts, np.exp(-rate * starts) * -np.expm1(-rate * width), starts + (width - 1)


MOST_ALERTS = 10_000
MOST_STEPS = 10**9
_MOST_LISTED = 8  # series that a plan names one by one
_ROUNDING = 2e-9  # of epsilon


@dataclass(frozen=True)
class MonitorPlan:
    """A monitor before it is opened: its series with their thresholds, its price, and its error.

    Attributes:
        series: The counts.
        thresholds: The threshold of each.
        alerts: How many alerts it can give in all; each is the end of one round.
        steps: How many looks the error is stated for.
        epsilon: The epsilon of all rounds together, fixed in advance.
        delta: Their delta.
        round_epsilon: The epsilon of one round.
        l1_sensitivity: The most that one unit moves any single series.
        monotone: Whether one unit moves all series in the same direction.
        mute: Whether a series that was reported is not looked at again.
        confidence: The probability that the error holds for all looks at once.
        warnings: What to think about before opening it.

    >>> from farthing.adaptive.monitor.count_series import Series
    >>> plan = plan_monitor([Series("all", "all")], [500], alerts=5, steps=52, epsilon=1.0, monotone=True)
    >>> plan.error, round(plan.round_epsilon, 6)
    (79, 0.2)
    >>> plan.event
    Composed(parts=((ApproxDP(epsilon=0.19999999..., delta=0.0), 5),))
    """

    series: tuple[Series, ...]
    thresholds: tuple[int, ...]
    alerts: int
    steps: int
    epsilon: float
    delta: float
    round_epsilon: float
    l1_sensitivity: int
    monotone: bool
    mute: bool
    confidence: float
    warnings: tuple[str, ...] = field(default=(), compare=False)  # why its price protects little, if it does

    @property
    def event(self) -> Event:
        """All rounds at once: prices and their number are fixed, questions are not."""
        return Composed(((ApproxDP(self.round_epsilon), self.alerts),))

    @cached_property
    def mechanism(self) -> AboveThreshold:
        """One round: all questions until one is answered "above", and by how much it was."""
        return AboveThreshold(
            self.round_epsilon, l1_sensitivity=self.l1_sensitivity, monotone=self.monotone, with_gap=True
        )

    @cached_property
    def error(self) -> int:
        """With probability `confidence`, no answer of all looks and all series is wrong by more than this."""
        return self.error_of(self.steps)

    def error_of(self, looks: int) -> int:
        """The error for as many looks; it grows with their logarithm.

        Every series that was reported has reached its threshold less the error, and every one that was looked at and
        not reported was below its threshold plus the error: all of them at once, with probability `confidence`.

        Args:
            looks: How many looks.

        Returns:
            The error, in rows.
        """
        # Every round may fail, and any of them may be the one with all the questions.
        failure = (1 - self.confidence) / self.alerts
        return int(self.mechanism.error(1 - failure, queries=len(self.series) * looks))

    @property
    def standard_error(self) -> float:
        """That of `Alert.above_by`, for a series looked at without regard to the answer."""
        return self.mechanism.standard_error

    def false_alarm(self, below_by: int) -> float:
        """At most how likely it is that any series is ever reported while it is `below_by` under its threshold.

        Args:
            below_by: How far it is under its threshold.

        Returns:
            The probability, rounded up.

        Raises:
            InvalidValue: If `below_by` is not a whole number >= 0.

        >>> from farthing.adaptive.monitor.count_series import Series
        >>> plan = plan_monitor([Series("all", "all")], [500], alerts=1, steps=52, epsilon=1.0, monotone=True)
        >>> plan.false_alarm(5) > plan.false_alarm(10) > plan.false_alarm(20)
        True
        """
        once = chance_above(*self._distribution, checked_count(below_by, "below_by"), len(self.series) * self.steps)
        return min(1.0, self.alerts * once)

    def miss(self, above_by: int) -> float:
        """At most how likely it is that one look at a series `above_by` over its threshold does not report it.

        As long as there are alerts left; the look after it has the same chance again.

        Args:
            above_by: How far it is over its threshold.

        Returns:
            The probability, rounded up.

        Raises:
            InvalidValue: If `above_by` is not a whole number >= 0.
        """
        return min(1.0, self.alerts * chance_below(*self._distribution, checked_count(above_by, "above_by")))

    @property
    def _distribution(self) -> tuple[Fraction, Fraction, int]:
        threshold, question = self.mechanism._rates
        return threshold, question, self.mechanism._offset

    @cached_property
    def digest(self) -> str:
        """A fingerprint of everything public about it."""
        plain = self.to_dict()
        facts = {name: plain[name] for name in plain if "error" not in name}  # errors follow from the rest
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data."""
        return {
            "series": [
                {"name": one.name, "threshold": threshold}
                for one, threshold in zip(self.series, self.thresholds, strict=True)
            ],
            "alerts": self.alerts,
            "steps": self.steps,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "round_epsilon": self.round_epsilon,
            "sensitivity": self.l1_sensitivity,
            "monotone": self.monotone,
            "mute": self.mute,
            "confidence": self.confidence,
            "error": self.error,
            "standard_error": self.standard_error,
        }

    def __str__(self) -> str:
        named = list(zip(self.series, self.thresholds, strict=True))
        lines = [f"monitor of {_many(len(named), 'series', 'series')}, {_many(self.steps, 'look')}"]
        lines += [f"  {one.name}: alert at {threshold:,}" for one, threshold in named[:_MOST_LISTED]]
        if len(named) > _MOST_LISTED:
            lines.append(f"  and {len(named) - _MOST_LISTED:,} more")
        return "\n".join(
            [
                *lines,
                f"up to {_many(self.alerts, 'alert')} for epsilon {self.epsilon:.6g} at delta {self.delta:g} "
                f"({self.round_epsilon:.3g} each); looks without an alert are free",
                f"error: {100 * self.confidence:g} times in 100, over all looks, every reported count is at most "
                f"{self.error:,} below its threshold\n  and every count more than {self.error:,} above it is reported",
                *(f"warning: {words}" for words in self.warnings),
            ]
        )


def plan_monitor(
    series: Sequence[Series],
    thresholds: Sequence[int],
    *,
    alerts: int,
    steps: int,
    epsilon: float,
    delta: float = 0.0,
    l1_sensitivity: int = 1,
    monotone: bool = False,
    mute: bool = True,
    confidence: float = 0.95,
) -> MonitorPlan:
    """The monitor with the least error whose rounds together cost at most (epsilon, delta).

    Args:
        series: The counts.
        thresholds: The threshold of each.
        alerts: How many alerts it can give in all.
        steps: How many looks the error is stated for.
        epsilon: The epsilon of all rounds together, > 0.
        delta: Their delta.
        l1_sensitivity: The most that one unit moves any single series.
        monotone: Whether one unit moves all series in the same direction.
        mute: Whether a series that was reported is not looked at again.
        confidence: The probability that the error holds for all looks at once.

    Returns:
        The plan.

    Raises:
        InvalidValue: If an argument is out of its range.

    >>> regions = [Series(f"cases in {name}", "cases", (name,)) for name in ("north", "south")]
    >>> plan = plan_monitor(regions, [500, 300], alerts=50, steps=52, epsilon=1.0, delta=1e-9, monotone=True)
    >>> plan.round_epsilon > 1.0 / 50  # optimal composition, not a sum
    True
    """
    rounds, looks = checked_count(alerts, "alerts"), checked_count(steps, "steps")
    if not 1 <= rounds <= MOST_ALERTS:
        raise InvalidValue("alerts", alerts, f"must be a whole number from 1 to {MOST_ALERTS:,}")
    if not 1 <= looks <= MOST_STEPS:
        raise InvalidValue("steps", steps, f"must be a whole number from 1 to {MOST_STEPS:,}")
    if not isinstance(mute, bool):
        raise InvalidValue("mute", mute, "must be True or False")
    level = checked_real(confidence, "confidence")
    if not 0 < level < 1:
        raise InvalidValue("confidence", confidence, "must be above 0 and below 1", "0.95 for 95 in 100")
    whole, leak = checked_epsilon(epsilon), checked_delta(delta)
    if not whole > 0:
        raise InvalidValue("epsilon", epsilon, "must be > 0", "with nothing to spend nothing can be released")
    # A ledger rounds up to billionths: what is left to the last of them could not be charged any more.
    room = max(whole - _ROUNDING, whole / 2)
    each = calibrate(lambda price: [Composed(((ApproxDP(price), rounds),))], room, leak, direction="epsilon").parameter
    return MonitorPlan(
        tuple(series),
        tuple(thresholds),
        rounds,
        looks,
        whole,
        leak,
        each,
        l1_sensitivity,
        monotone,
        mute,
        level,
    )


def _many(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"

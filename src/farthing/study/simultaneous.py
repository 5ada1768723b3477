"""The numbers of a plan all at once: within which errors they lie together, where each by itself is not enough."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from farthing.inference.simultaneous_intervals import level_at_once
from farthing.study.planned import PlannedStatistic
from farthing.study.words import shown_error

CONFIDENCE = 0.95
_MOST_NAMED = 12


@dataclass(frozen=True)
class AtOnce:
    """Errors that hold for all numbers of a plan together, one for each statistic.

    `level` is the confidence of each number by itself. It is exact where all noises are independent (`exact`), else
    from Boole's inequality, and then the errors are at most a little larger than they need be.
    """

    confidence: float
    numbers: int
    level: float
    exact: bool
    errors: dict[str, float]
    conditions: dict[str, str] = field(default_factory=dict)  # what the errors of some rest on, in words

    @classmethod
    def of(cls, statistics: Sequence[PlannedStatistic], confidence: float = CONFIDENCE) -> AtOnce:
        """All numbers that have noise; public ones are exact."""
        noisy = [statistic for statistic in statistics if statistic.noises]
        numbers = sum(statistic.cells for statistic in noisy)
        slots = [name for statistic in noisy for name, _ in statistic.noises]
        apart = len(set(slots)) == len(slots)  # what two statistics share moves both
        exact = apart and all(one.cells == 1 or one.output.independent for one in noisy)
        level = level_at_once(confidence, max(1, numbers), independent=exact)
        errors = {one.name: float(np.max(one.law.errors(level), initial=0.0)) for one in noisy}
        conditions = {one.name: one.condition for one in noisy if one.condition}
        return cls(confidence, numbers, level, exact, errors, conditions)

    @property
    def sentence(self) -> str:
        """In words; nothing where there is only one number."""
        if self.numbers < 2:
            return ""
        few = list(self.errors.items())[:_MOST_NAMED]
        told = ", ".join(self._told(name, error) for name, error in few)
        more = f" and {len(self.errors) - len(few)} more" if len(self.errors) > len(few) else ""
        times = f"{'' if self.exact else 'at least '}{100 * self.confidence:g} times in 100"
        return f"all {self.numbers:,} numbers are within these errors together, {times}: {told}{more}"

    def _told(self, name: str, error: float) -> str:
        """One error, never rounded down; where it rests on how values are spread, the same words say so."""
        condition = self.conditions.get(name)
        size = f"± {shown_error(error)}" if math.isfinite(error) else "without a limit"
        return f"{name} {size}{f' {condition}' if condition else ''}"

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "confidence": self.confidence,
            "numbers": self.numbers,
            "level": self.level,
            "exact": self.exact,
            "errors": dict(self.errors),
            "conditions": dict(self.conditions),
            "sentence": self.sentence,
        }

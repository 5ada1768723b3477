"""What a reusable holdout promises about the population, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

_WHY = {
    "descriptions": "so few corrections tell too little about the rows to fit a question to them",
    "privacy": "private answers cannot lean on the rows they were computed from",
}


@dataclass(frozen=True)
class HoldoutGuarantee:
    """All answers of a session at once, with `confidence`: how far they may be from the population's means.

    `error_free` holds for training means that were let through, `error_paid` for corrected ones. The parts:
    `free_on_rows` and `paid_on_rows` are the distance from the means of the holdout rows, `sampling` that of the rows
    from the population, by one of two theorems (`route`; both in `farthing.adaptive.holdout.generalisation`).
    The holdout rows must be independent draws from the population, and nobody may have used them before.

    >>> from farthing.adaptive.holdout import Holdout
    >>> print(Holdout.plan(rows=10_000, epsilon=1.0, queries=1_000, corrections=5).guarantee)
    With confidence 0.95, all of up to 1,000 adaptive answers are this close to the population's means:
      training means let through   within 0.119  (threshold 0.0549 + comparison 0.0108 + sampling 0.0531)
      corrected answers (up to 5)  within 0.067  (noise and rounding 0.0139 + sampling 0.0531)
    It holds for 10,000 independent holdout rows:
    so few corrections tell too little about the rows to fit a question to them.
    """

    route: Literal["descriptions", "privacy"]
    confidence: float
    rows: int
    queries: int
    corrections: int
    threshold: float
    free_on_rows: float
    paid_on_rows: float
    sampling: float

    @property
    def error_free(self) -> float:
        """The distance of a training mean that was let through from the population's mean."""
        return min(1.0, self.free_on_rows + self.sampling)

    @property
    def error_paid(self) -> float:
        """The distance of a corrected answer from the population's mean."""
        return min(1.0, self.paid_on_rows + self.sampling)

    def __str__(self) -> str:
        comparison = self.free_on_rows - self.threshold
        free = (
            f"(threshold {self.threshold:.3g} + comparison {comparison:.3g} + sampling {self.sampling:.3g})"
        )
        paid = f"(noise and rounding {self.paid_on_rows:.3g} + sampling {self.sampling:.3g})"
        corrected = f"corrected answers (up to {self.corrections:,})"
        width = max(len(corrected), len("training means let through"))
        return (
            f"With confidence {self.confidence:g}, all of up to {self.queries:,} adaptive answers are this close to "
            "the population's means:\n"
            f"  {'training means let through':<{width}}  within {self.error_free:.3g}  {free}\n"
            f"  {corrected:<{width}}  within {self.error_paid:.3g}  {paid}\n"
            f"It holds for {self.rows:,} independent holdout rows:\n{_WHY[self.route]}."
        )

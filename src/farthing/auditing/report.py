"""What an audit found, as a frozen value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AuditReport:
    """A lower bound on the epsilon of a mechanism, the event that showed it, and what could have been shown.

    `epsilon_lower` and `claimed_epsilon` are at `delta`, a point of the claimed curve. An audit can contradict a claim;
    it never proves one.

    >>> from farthing.auditing import audit
    >>> report = audit(lambda bit: bit, 1.0, (0, 1), samples=2_000, confidence=0.999)  # tells the bit itself
    >>> report.violation, report.epsilon_lower > 4
    (True, True)
    >>> print(report)
    The claim (epsilon = 1) is contradicted with confidence 0.999.
    ...
    """

    epsilon_lower: float
    claimed_epsilon: float
    delta: float
    confidence: float
    violation: bool
    event: str
    family: str
    neighbours: tuple[Any, Any]
    direction: str
    hits: tuple[int, int]
    """How often the event came up in the holdout, on the side that should hit more and on the other."""
    holdout: int
    samples: int
    """Outputs drawn a side and pair at most, those for choosing the event included."""
    seconds: float
    claim: str
    claimed_points: tuple[tuple[float, float], ...]
    """The claimed curve where it was compared: (epsilon, delta)."""
    detectable: float
    """The least true epsilon that an event of this frequency would have shown to exceed the claim, 19 times in 20."""
    region: tuple[tuple[float, float], ...]
    """Estimated rates (false alarm, missed detection) of the tests {score >= t} for the winning score."""
    bound: tuple[float, float]
    """The winning test with its confidence: false alarms at most this, missed detections at most that."""

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready data; infinity is the string "inf", neighbours are shown as text.

        >>> from farthing.auditing import audit
        >>> audit(lambda bit: 0, 1.0, (0, 1), samples=1_000).to_dict()["violation"]
        False
        """
        return {
            "epsilon_lower": _number(self.epsilon_lower),
            "claimed_epsilon": self.claimed_epsilon,
            "delta": self.delta,
            "confidence": self.confidence,
            "violation": self.violation,
            "event": self.event,
            "family": self.family,
            "neighbours": [short(value) for value in self.neighbours],
            "direction": self.direction,
            "hits": list(self.hits),
            "holdout": self.holdout,
            "samples": self.samples,
            "seconds": self.seconds,
            "claim": self.claim,
            "claimed_points": [list(point) for point in self.claimed_points],
            "detectable": _number(self.detectable),
            "region": [list(point) for point in self.region],
            "bound": list(self.bound),
        }

    def __str__(self) -> str:
        verdict = (
            f"The claim ({self.claim}) is contradicted with confidence {self.confidence:g}."
            if self.violation
            else f"No contradiction of the claim ({self.claim}) was found; that is no proof of it."
        )
        at = f" at delta = {self.delta:.3g}" if self.delta else ""
        could = (
            f"A true epsilon of {self.detectable:.3g} would have been noticed 19 times in 20 by an event as frequent."
            if math.isfinite(self.detectable)
            else "The event is too rare to show any excess with this many samples."
        )
        least, claimed = f"{self.epsilon_lower:.4g}", f"{self.claimed_epsilon:.4g}"
        on, off = (f"{count:,} times on {self._side(place)}" for place, count in enumerate(self.hits))
        return "\n".join(
            [
                verdict,
                f"Epsilon{at} is at least {least} (claimed: {claimed}), confidence {self.confidence:g}.",
                f"Event: {self.event} ({self.family}).",
                f"In {self.holdout:,} samples a side it came up {on}, {off}.",
                could,
                f"{self.samples:,} samples a side in all, {self.seconds:.2g} s.",
            ]
        )

    def _side(self, place: int) -> str:
        first = 0 if self.direction == "first over second" else 1
        return short(self.neighbours[first if place == 0 else 1 - first])


def short(value: object, most: int = 60) -> str:
    """A repr that stays on one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= most else text[: most - 3] + "..."


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"

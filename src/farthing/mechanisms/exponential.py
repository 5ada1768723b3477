"""The exponential mechanism: a candidate is chosen with probability proportional to exp(rate * score), exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from farthing.mechanisms.ballot import Ballot
from farthing.mechanisms.bounded_range import event_of_bounded_range
from farthing.mechanisms.exact import Bits
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.scores import Selection, checked_candidates, checked_confidence, least_gap
from farthing.privacy import Event


@dataclass(frozen=True, slots=True)
class ExponentialMechanism(Selection):
    """The index of a candidate, drawn with probability proportional to exp(epsilon * score / (2 * sensitivity)).

    Statement:
        With scores that move by at most `sensitivity` the choice is epsilon-DP, and epsilon-bounded-range: for
        neighbours the log of the ratio of probabilities takes values in an interval of length epsilon. With
        `monotone` scores both hold for exp(epsilon * score / sensitivity).
    Source: McSherry & Talwar (2007), Theorem 6; bounded range: Durfee & Rogers, arXiv:1905.04273. The log
        ratio of candidate i is rate (s_i - s'_i) + log(Z' / Z). The first term lies in an interval of length
        2 rate sensitivity, or rate sensitivity if all s_i - s'_i have one sign; the second is the same for all i, and
        both signs occur because both laws add up to 1, so the interval holds 0.
    Assumes: the number of candidates is public; real scores are rounded down to the grid, and `sensitivity` is
        rounded up to whole steps of it.
    Direction: exact sampling; the event is an upper bound (`event_of_bounded_range`).
    Checked by: tests/theorems/test_exponential.py

    >>> mechanism = ExponentialMechanism(epsilon=1.0, sensitivity=1, monotone=True)
    >>> mechanism.release([3, 900, 7])
    1
    >>> mechanism.event
    BoundedRange(epsilon=1.0)
    >>> mechanism.error(0.95, candidates=100)
    7
    """

    epsilon: float
    sensitivity: float = 1
    monotone: bool = False
    grid: float | None = None

    @property
    def event(self) -> Event:
        """Cheaper than epsilon-DP alone, because the mechanism has bounded range."""
        return event_of_bounded_range(Fraction(self.epsilon))

    def error(self, confidence: float, candidates: int) -> float:
        """The smallest d such that, with this probability, the chosen score is at most d below the best.

        It holds for any scores of so many candidates, and some scores attain it; on a grid it includes the rounding.
        """
        gap = least_gap(self.rate, checked_candidates(candidates) - 1, checked_confidence(confidence))
        # Losing more than d steps means losing d + 1 of them.
        return self._in_units(max(0, math.ceil(gap) - 1))

    def _answer(self, value: Any, source: Source) -> int:
        return Ballot(self._gaps(value)).draw(self.rate, Bits(source))

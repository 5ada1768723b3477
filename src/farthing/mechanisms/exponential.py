"""The exponential mechanism: a candidate is chosen with probability proportional to exp(rate * score), exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from farthing.errors import InvalidValue
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.samplers.single_draws import Bits
from farthing.mechanisms.selection_scores import Selection, checked_candidates, checked_confidence, least_gap
from farthing.mechanisms.weighted_choice import Ballot, event_of_bounded_range
from farthing.privacy import Event
from farthing.privacy.events import checked_count


@dataclass(frozen=True, slots=True)
class TopK(Selection):
    """The indices of k candidates: k exponential mechanisms of epsilon / k, each without the earlier winners.

    Args:
        k: How many candidates to choose, at least 1.
        epsilon: The epsilon of all k choices together, > 0.
        sensitivity: The most that any one score moves between neighbours.
        monotone: Whether all scores move in the same direction. It doubles the rate.
        grid: A power of two to which real scores are rounded down; without it, scores are whole numbers.

    Raises:
        InvalidValue: If a parameter is out of its range.

    Statement:
        The list is the adaptive composition of k choices, each (epsilon / k)-bounded-range; in all it is epsilon-DP,
        and cheaper at delta > 0. Its distribution is that of adding Gumbel noise of scale 1 / rate to every score once
        and reporting the order of the k largest.
    Source: Durfee & Rogers, arXiv:1905.04273, Section 4 (peeling and one-shot Gumbel noise are the same).
    Assumes: k and the number of candidates are public, k <= candidates; scores as for `ExponentialMechanism`.
    Direction: exact sampling; the event is an upper bound (`event_of_bounded_range`).
    Checked by: tests/theorems/test_top_k.py

    >>> mechanism = TopK(k=2, epsilon=1.0)
    >>> mechanism.release([3, 900, 7, 2000])
    [3, 1]
    >>> mechanism.event
    Composed(parts=((BoundedRange(epsilon=0.5), 2),))
    """

    k: int
    epsilon: float
    sensitivity: float = 1
    monotone: bool = False
    grid: float | None = None

    def __post_init__(self) -> None:
        Selection.__post_init__(self)
        k = checked_count(self.k, "k")
        if not k >= 1:
            raise InvalidValue("k", self.k, "must be a whole number >= 1")
        object.__setattr__(self, "k", k)

    @property
    def _pieces(self) -> int:
        return self.k

    @property
    def event(self) -> Event:
        """k choices of bounded range."""
        return event_of_bounded_range(Fraction(self.epsilon) / self.k, self.k)

    def error(self, confidence: float, candidates: int) -> float:
        """A d such that, with this probability, no chosen score is more than d below the true k-th best.

        Whichever candidates were taken before, the best one left is at least the true k-th best, so each choice errs at
        most as a single one would; the k failures share 1 - confidence.

        Args:
            confidence: The probability that no loss is larger, between 0 and 1.
            candidates: How many candidates there are, at least k.

        Returns:
            The largest loss, in units of the score.

        Raises:
            InvalidValue: If an argument is out of range.

        >>> TopK(k=2, epsilon=1.0).error(0.95, candidates=100)
        33
        """
        number, chance = checked_candidates(candidates), checked_confidence(confidence)
        if not number >= self.k:
            raise InvalidValue("candidates", candidates, f"must be at least k={self.k}")
        gap = least_gap(self.rate, number - 1, 1 - (1 - chance) / self.k)
        return self._in_units(max(0, math.ceil(gap) - 1))

    def _answer(self, value: Any, source: Source) -> list[int]:
        ballot, bits, rate = Ballot(self._gaps(value, self.k)), Bits(source), self.rate
        return [ballot.draw(rate, bits) for _ in range(self.k)]


@dataclass(frozen=True, slots=True)
class ExponentialMechanism(Selection):
    """The index of a candidate, drawn with probability proportional to exp(epsilon * score / (2 * sensitivity)).

    Args:
        epsilon: The epsilon of one choice, > 0.
        sensitivity: The most that any one score moves between neighbours.
        monotone: Whether all scores move in the same direction. It doubles the rate.
        grid: A power of two to which real scores are rounded down; without it, scores are whole numbers.

    Raises:
        InvalidValue: If a parameter is out of its range.

    Statement:
        With scores that move by at most `sensitivity` the choice is epsilon-DP, and epsilon-bounded-range: for
        neighbours the log of the ratio of probabilities takes values in an interval of length epsilon. With
        `monotone` scores both hold for exp(epsilon * score / sensitivity).
    Source: McSherry & Talwar (2007), Theorem 6; bounded range: Durfee & Rogers, arXiv:1905.04273. The log
        ratio of candidate i is rate (s_i - s'_i) + log(Z' / Z). The first term lies in an interval of length
        2 rate sensitivity, or rate sensitivity if all s_i - s'_i have one sign; the second is the same for all i, and
        both signs occur because both distributions add up to 1, so the interval holds 0.
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

        Args:
            confidence: The probability that the loss is not larger, between 0 and 1.
            candidates: How many candidates there are.

        Returns:
            The largest loss, in units of the score.

        Raises:
            InvalidValue: If an argument is out of range.
        """
        gap = least_gap(self.rate, checked_candidates(candidates) - 1, checked_confidence(confidence))
        # Losing more than d steps means losing d + 1 of them.
        return self._in_units(max(0, math.ceil(gap) - 1))

    def _answer(self, value: Any, source: Source) -> int:
        return Ballot(self._gaps(value)).draw(self.rate, Bits(source))

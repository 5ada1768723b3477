"""A quantile in each of several disjoint groups, from counts that an engine added up: no row leaves it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms.mechanism import Mechanism, checked_integers
from farthing.mechanisms.quantiles import NeighboringRelation, checked_share, decimal, positive_count
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.ranked_intervals import drawn_point_of_counts
from farthing.mechanisms.samplers.single_draws import Bits
from farthing.mechanisms.selection_scores import checked_confidence, least_gap
from farthing.mechanisms.weighted_choice import event_of_bounded_range
from farthing.numerics.bounds import rounded_down, rounded_up
from farthing.privacy import Event
from farthing.privacy.events import checked_mechanism_epsilon

_MOST_POINTS = 2**40


@dataclass(frozen=True, slots=True)
class CountedQuantile(Mechanism):
    """For each group the number of a grid point whose rank is near probability * rows of the group.

    Statement:
        Points 0 .. `points` - 1 hold counts of rows, apart for every one of `groups` disjoint groups. Choosing in every
        group, independently, as `Quantile` does with rate epsilon / (2 max_rows s) is together epsilon-DP and
        epsilon-bounded-range, when a unit has at most `max_rows` rows in all the groups together. s = max(q, 1 - q)
        where rows join or leave; where they are replaced, s = 1 for one group and 2 max(q, 1 - q) for several.
    Source: as `Quantile`. The privacy loss of all choices is the sum of theirs, each a function of its own answer, so
        the length of the interval it lies in is the sum of theirs. A row that joins or leaves moves the losses of its
        own group only, by at most max(q, 1 - q) up or down, and adds epsilon / max_rows to the length. A replaced row
        moves them by at most 1 inside one group; otherwise it leaves one group and joins another.
    Assumes: grid and groups are public and chosen without looking at the rows; a row counts in one group at most.
    Direction: exact sampling; the event is an upper bound (`event_of_bounded_range`).
    Checked by: tests/theorems/test_counted_quantiles.py

    >>> import numpy as np
    >>> median = CountedQuantile(0.5, epsilon=1.0, points=11, groups=2)
    >>> counts = np.zeros((2, 11), dtype=int)
    >>> counts[0, 3], counts[1, 7] = 1000, 1000
    >>> median.release(counts)
    array([3, 7])
    >>> median.event
    BoundedRange(epsilon=1.0)
    """

    probability: float
    epsilon: float
    points: int
    groups: int = 1
    max_rows: int = 1
    neighbours: NeighboringRelation = "add-remove"

    def __post_init__(self) -> None:
        checked_share(self.probability, "probability")
        object.__setattr__(self, "epsilon", checked_mechanism_epsilon(self.epsilon))
        for name in ("points", "groups", "max_rows"):
            object.__setattr__(self, name, positive_count(getattr(self, name), name))
        if not self.points <= _MOST_POINTS:
            raise InvalidValue("points", self.points, "must be at most 2^40", "use a coarser grid")
        if self.neighbours not in ("add-remove", "replace"):
            raise InvalidValue("neighbours", self.neighbours, "must be 'add-remove' or 'replace'")

    @property
    def event(self) -> Event:
        """That of one choice, however many groups there are."""
        return event_of_bounded_range(Fraction(self.epsilon))

    @property
    def rate(self) -> Fraction:
        """What one row of distance in rank costs a point, in the exponent."""
        q = decimal(self.probability)
        moved = max(q, 1 - q)
        if self.neighbours == "replace":
            moved = Fraction(1) if self.groups == 1 else 2 * moved
        return Fraction(self.epsilon) / (2 * self.max_rows * moved)

    def error(self, confidence: float) -> float:
        """With this probability a group's answer is at most so many rows from the wanted rank, whatever the data."""
        return rounded_up(least_gap(self.rate, self.points - 1, checked_confidence(confidence)))

    def _answer(self, value: Any, source: Source) -> NDArray[np.int64]:
        counts = checked_integers(value, "counts")
        if counts.size != self.groups * self.points:
            raise InvalidData("counts", "must be one count for each point of each group")
        bits, q = Bits(source), decimal(self.probability)
        answers = []
        for group in np.maximum(counts, 0).reshape(self.groups, self.points):
            points = np.flatnonzero(group)
            answers.append(drawn_point_of_counts(points, group[points], 0, self.points - 1, q, self.rate, bits))
        return np.array(answers, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class CountedQuantiles(Mechanism):
    """Several quantiles of the same groups, each chosen by itself with its share of epsilon.

    The answer has one row for each group and one column for each probability; answers may come out of order.

    >>> import numpy as np
    >>> quartiles = CountedQuantiles((0.25, 0.75), epsilon=2.0, points=5)
    >>> quartiles.release(np.array([0, 5000, 0, 5000, 0]))
    array([[1, 3]])
    >>> quartiles.event
    Composed(parts=((BoundedRange(epsilon=1.0), 2),))
    """

    probabilities: tuple[float, ...]
    epsilon: float
    points: int
    groups: int = 1
    max_rows: int = 1
    neighbours: NeighboringRelation = "add-remove"
    choices: tuple[CountedQuantile, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.probabilities:
            raise InvalidValue("probabilities", self.probabilities, "must be at least one number")
        total = Fraction(checked_mechanism_epsilon(self.epsilon))
        share = rounded_down(total / len(self.probabilities))
        choices = (
            CountedQuantile(probability, share, self.points, self.groups, self.max_rows, self.neighbours)
            for probability in self.probabilities
        )
        object.__setattr__(self, "choices", tuple(choices))

    @property
    def event(self) -> Event:
        """A composition of the choices."""
        return event_of_bounded_range(Fraction(self.choices[0].epsilon), len(self.choices))

    def _answer(self, value: Any, source: Source) -> NDArray[np.int64]:
        return np.stack([choice._answer(value, source) for choice in self.choices], axis=1)

"""A quantile in each of several disjoint groups, from counts that an engine added up: no row leaves it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms.mechanism import SATURATION, Mechanism, checked_integers
from farthing.mechanisms.quantile_tree import Node, best_order, moved_in, passed_on, place_in, shares_of
from farthing.mechanisms.quantiles import NeighboringRelation, checked_share, decimal, positive_count
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.ranked_intervals import SPLITS, RankedPoints, drawn_point_of_counts
from farthing.mechanisms.samplers.single_draws import Bits
from farthing.mechanisms.selection_scores import checked_confidence, least_gap
from farthing.mechanisms.weighted_choice import event_of_bounded_range
from farthing.numerics.bounds import rounded_down, rounded_up
from farthing.privacy import Composed, Event
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
    """Several quantiles of the same groups: a middle one first, then both sides of it, level by level.

    The answer has one row for each group and one column for each probability; in a tree, answers rise along a row.

    Statement:
        The order is that of `best_order`: a tree of L levels, or L = m choices from all rows. A choice that others
        follow is a place in a point (`RankedPoints`), which cuts the rows at the point in proportion: with u of each
        row to the left and 1 - u to the right. It is chosen with weight exp(-rate |F - q' M|), where F is the number
        of rows between the left bound and the place, M that between both bounds, and
        q' = (q - q_left) / (q_right - q_left). A choice that none follows is a point, as `CountedQuantile` chooses it
        from the rows between its bounds. Levels share epsilon by `weights` (evenly if there are none). With rate
        e / (2 max_rows s) on a level of epsilon e, s = max(q', 1 - q'), the whole is the adaptive composition of L
        mechanisms, each e-bounded-range for the e of its level. Where rows are replaced, s is
        1 for choices from all rows of the only group, and 2 max(q', 1 - q') for all others.
    Source: Kaplan, Schnapp & Stemmer, arXiv:2110.05429, Algorithm 1. Given the answers above it, a choice depends on
        the parts of rows between its two bounds. If a row joins with the part w of it there, F moves by some
        a in [0, w] and F - q' M by a - q' w, which lies in [-q' w, (1 - q') w]; so every loss moves by at most w s up
        or down, and the length of the interval of the privacy loss grows by at most w e / max_rows. The
        parts of a row on one level add up to at most 1, those of a unit to max_rows; the losses of choices of one
        level add up, and with them the lengths.
    Departs from source: rows with equal values could not be split there; here they are, by the place in a point.
    Assumes: as `CountedQuantile`; the probabilities are public.
    Direction: exact sampling; the event is an upper bound (`event_of_bounded_range`).
    Checked by: tests/theorems/test_counted_quantiles.py

    >>> import numpy as np
    >>> quartiles = CountedQuantiles((0.25, 0.5, 0.75), epsilon=2.0, points=5)
    >>> quartiles.release(np.array([0, 5000, 0, 4000, 2000]))
    array([[1, 3, 3]])
    >>> quartiles.event
    Composed(parts=((BoundedRange(epsilon=1.0), 2),))
    """

    probabilities: tuple[float, ...]
    epsilon: float
    points: int
    groups: int = 1
    max_rows: int = 1
    neighbours: NeighboringRelation = "add-remove"
    weights: tuple[int, ...] = ()
    nodes: tuple[Node, ...] = field(init=False, repr=False, compare=False)
    wanted: tuple[Fraction, ...] = field(init=False, repr=False, compare=False)  # of each node, within its rows
    rates: tuple[Fraction, ...] = field(init=False, repr=False, compare=False)  # of each probability

    def __post_init__(self) -> None:
        if not self.probabilities:
            raise InvalidValue("probabilities", self.probabilities, "must be at least one number")
        # One choice by itself checks everything else.
        single = CountedQuantile(
            self.probabilities[0], self.epsilon, self.points, self.groups, self.max_rows, self.neighbours
        )
        for name in ("epsilon", "points", "groups", "max_rows"):
            object.__setattr__(self, name, getattr(single, name))
        places = [checked_share(place, "probabilities") for place in self.probabilities]
        if not all(a < b for a, b in pairwise(places)):
            raise InvalidValue("probabilities", self.probabilities, "must be increasing")
        nodes = best_order(self._decimals)
        object.__setattr__(self, "nodes", nodes)
        if self.weights and not (len(self.weights) == self.levels and all(weight >= 1 for weight in self.weights)):
            raise InvalidValue("weights", self.weights, f"must be {self.levels} whole numbers >= 1, one for each level")
        object.__setattr__(self, "wanted", tuple(place_in(self._decimals, node) for node in nodes))
        rates = {node.middle: self._rate(node) for node in nodes}
        object.__setattr__(self, "rates", tuple(rates[place] for place in range(len(places))))

    @property
    def _decimals(self) -> list[Fraction]:
        return [decimal(place) for place in self.probabilities]

    @property
    def levels(self) -> int:
        """How many choices one row takes part in."""
        return len({node.depth for node in self.nodes})

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The epsilon of each level."""
        return tuple(rounded_down(Fraction(self.epsilon) * share) for share in shares_of(self.nodes, self.weights))

    @property
    def event(self) -> Event:
        """A composition of the levels."""
        counts = Counter(self.epsilons)
        if len(counts) == 1:
            return event_of_bounded_range(Fraction(self.epsilons[0]), self.levels)
        return Composed(tuple((event_of_bounded_range(Fraction(own)), count) for own, count in counts.items()))

    def _rate(self, node: Node) -> Fraction:
        """What one row of distance in rank costs a choice, in the exponent."""
        moved = moved_in(self._decimals, node)
        if self.neighbours == "replace":
            whole = node.left < 0 and node.right == len(self.probabilities) and self.groups == 1
            moved = Fraction(1) if whole else 2 * moved
        return Fraction(self.epsilons[node.depth]) / (2 * self.max_rows * moved)

    @property
    def followed(self) -> tuple[bool, ...]:
        """For each probability: whether others are chosen from the rows beside it, which it cuts."""
        bounds = {end for node in self.nodes for end in (node.left, node.right)}
        return tuple(place in bounds for place in range(len(self.probabilities)))

    @property
    def passed_on(self) -> NDArray[np.float64]:
        """How much of the miss in rank of each choice (columns) each quantile (rows) has."""
        return passed_on(self._decimals, self.nodes)

    def _answer(self, value: Any, source: Source) -> NDArray[np.int64]:
        counts = checked_integers(value, "counts")
        if counts.size != self.groups * self.points:
            raise InvalidData("counts", "must be one count for each point of each group")
        # Clamped so low that no sum of parts of rows overflows: a contraction.
        counts = np.clip(counts, 0, SATURATION // (SPLITS * self.points)).reshape(self.groups, self.points)
        bits = Bits(source)
        return np.array([self._drawn(RankedPoints.of(group), bits) for group in counts], dtype=np.int64)

    def _drawn(self, rows: RankedPoints, bits: Bits) -> list[int]:
        many, followed = len(self.probabilities), self.followed
        places, answers = {-1: 0, many: SPLITS * self.points}, [0] * many
        for node, wanted in zip(self.nodes, self.wanted, strict=True):
            low, high, at = places[node.left], places[node.right], node.middle
            last = min(high, SPLITS * self.points - 1)
            if followed[at]:
                places[at] = rows.drawn_place(low, high, last, wanted, self.rates[at], bits)
                answers[at] = places[at] // SPLITS
            else:
                answers[at] = rows.drawn_point(low, high, last // SPLITS, wanted, self.rates[at], bits)
        return answers

"""Several quantiles at once: the middle one first, then both halves of the rows, level by level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.mechanisms.quantile_tree import Node, moved_in, place_in, tree_of
from farthing.mechanisms.quantiles import GridQuantiles, NeighboringRelation, checked_share, decimal
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.ranked_intervals import drawn_point
from farthing.mechanisms.samplers.single_draws import Bits
from farthing.mechanisms.selection_scores import checked_confidence, least_gap
from farthing.mechanisms.weighted_choice import event_of_bounded_range
from farthing.numerics.bounds import rounded_up
from farthing.privacy import Event

_TIE_BITS = 16
_MOST_POINTS = 2**46  # with the tie bits a key still fits into 62 bits


@dataclass(frozen=True, slots=True)
class Quantiles(GridQuantiles):
    """Quantiles at several probabilities, in order, for about the logarithm of the price of asking one by one.

    Args:
        probabilities: Which quantiles, increasing, each from 0 to 1.
        epsilon: The epsilon of all of them together, > 0.
        lower: The smallest value; rows below it are moved up to it.
        upper: The largest value; rows above it are moved down to it.
        grid: The step between possible answers.
        max_rows: How many rows one unit has at most.
        neighbours: "add-remove" if the number of rows is private, "replace" if it is public.

    Raises:
        InvalidValue: If a parameter is out of its range, or the probabilities do not increase.

    Statement:
        Choose the middle quantile; split the rows at the answer; go on with each half and the probabilities on its
        side, rescaled. Every level is a choice from disjoint rows, so a row that joins or leaves touches one choice per
        level, and the whole is the adaptive composition of L = floor(log2 m) + 1 levels for m probabilities, each
        (epsilon / L)-bounded-range. A replaced row touches two choices of a level: each then has half the rate.
    Source: Kaplan, Schnapp & Stemmer, arXiv:2110.05429, Algorithm 1. Given the answers above it, a choice depends only
        on the rows between two of them and is `Quantile` of probability q' = (q - q_left) / (q_right - q_left) there,
        with rate (epsilon / L) / (2 max_rows max(q', 1 - q')). Each of the rows of a unit adds at most
        (epsilon / L) / max_rows to the range of the losses of its level, in whichever choices they fall. When rows are
        replaced each of them leaves one choice and joins another, and adds twice.
    Departs from source: rows with equal values could not be split, so every row first gets 16 random bits below its
        value, drawn for itself alone; answers drop them. Neighbours share the bits of their common rows, so
        the guarantee holds given the bits, and without them.
    Assumes: the bounds, the grid and the probabilities are public and chosen without looking at the rows.
    Direction: exact sampling; the event is an upper bound (`event_of_bounded_range`).
    Checked by: tests/theorems/test_many_quantiles.py

    >>> import numpy as np
    >>> quartiles = Quantiles((0.25, 0.5, 0.75), epsilon=2.0, lower=0, upper=100, grid=1)
    >>> rows = np.repeat(np.arange(101), 1000)
    >>> [abs(a - b) <= 1 for a, b in zip(quartiles.release(rows), [25, 50, 75])]
    [True, True, True]
    >>> quartiles.event
    Composed(parts=((BoundedRange(epsilon=1.0), 2),))
    """

    probabilities: Sequence[float]
    epsilon: float
    lower: float
    upper: float
    grid: float
    max_rows: int = 1
    neighbours: NeighboringRelation = "add-remove"

    def __post_init__(self) -> None:
        given = self.probabilities
        if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray) or len(given) == 0:
            raise InvalidValue("probabilities", given, "must be a list of at least one number")
        places = tuple(checked_share(place, "probabilities") for place in given)
        if not all(a < b for a, b in pairwise(places)):
            raise InvalidValue("probabilities", given, "must be increasing")
        object.__setattr__(self, "probabilities", places)
        self._check(_MOST_POINTS)

    @property
    def levels(self) -> int:
        """How many rounds one row takes part in."""
        return len(self.probabilities).bit_length()

    @property
    def event(self) -> Event:
        """A composition of the levels, each of bounded range."""
        return event_of_bounded_range(Fraction(self.epsilon) / self.levels, self.levels)

    def error(self, confidence: float) -> float:
        """With this probability every answer's rank is within so many rows of the one asked for, whatever the data.

        A choice misses its own rank by at most what `Quantile` would, and inherits at most the larger miss of the two
        answers that bound its rows, because its rank lies between theirs in proportion. Where many rows are equal, add
        once for each level the number of those that also share their 16 random bits: one in 65,536.

        Args:
            confidence: The probability that no rank is farther away, between 0 and 1.

        Returns:
            The error, in rows.

        Raises:
            InvalidValue: If `confidence` is not between 0 and 1.

        >>> round(Quantiles((0.25, 0.5, 0.75), epsilon=2.0, lower=0, upper=100, grid=1).error(0.95), 1)
        39.6
        """
        share = (1 - checked_confidence(confidence)) / len(self.probabilities)
        first, last = self._ends
        others = ((last - first + 1) << _TIE_BITS) - 1
        misses = {-1: Fraction(0), len(self.probabilities): Fraction(0)}
        for node in self._nodes():
            own = least_gap(self._rate(node), others, 1 - share)
            misses[node.middle] = own + max(misses[node.left], misses[node.right])
        return rounded_up(max(misses.values()))

    def _nodes(self) -> tuple[Node, ...]:
        """All choices, each after the two that bound it."""
        return tree_of(self._decimals)

    @property
    def _decimals(self) -> list[Fraction]:
        return [decimal(place) for place in self.probabilities]

    def _place(self, node: Node) -> Fraction:
        """The wanted probability within the rows of the node."""
        return place_in(self._decimals, node)

    def _rate(self, node: Node) -> Fraction:
        epsilon = Fraction(self.epsilon) / self.levels / self.max_rows
        moved = moved_in(self._decimals, node)
        if self.neighbours == "replace":
            # The first choice sees all rows, so a replaced one moves its losses by at most 1; further down it may
            # leave one choice and join another.
            moved = Fraction(1) if node.depth == 0 else 2 * moved
        return epsilon / (2 * moved)

    def _answer(self, value: Any, source: Source) -> list[float]:
        keys = self._split_ties(self._points(value), source)
        first, last = self._ends
        bits = Bits(source)
        bounds = {-1: first << _TIE_BITS, len(self.probabilities): ((last + 1) << _TIE_BITS) - 1}
        cuts = {-1: 0, len(self.probabilities): len(keys)}
        for node in self._nodes():
            rows = keys[cuts[node.left] : cuts[node.right]]
            low, high = bounds[node.left], bounds[node.right]
            point = drawn_point(rows, low, high, self._place(node), self._rate(node), bits)
            bounds[node.middle] = point
            # Rows below the answer go left, it and the rows above go right; both sides keep the answer as an end.
            cuts[node.middle] = cuts[node.left] + int(np.searchsorted(rows, point, "left"))
        return [self._as_number(bounds[place] >> _TIE_BITS) for place in range(len(self.probabilities))]

    @staticmethod
    def _split_ties(points: NDArray[np.int64], source: Source) -> NDArray[np.int64]:
        low = np.frombuffer(source.take(2 * len(points)), dtype="<u2").astype(np.int64)
        return np.sort((points << _TIE_BITS) | low)

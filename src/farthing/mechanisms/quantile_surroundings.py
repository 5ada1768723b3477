"""Quantiles and where their neighbours lie: chosen points, then noisy counts of the rows around them."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidData
from farthing.mechanisms.additive import DiscreteLaplace
from farthing.mechanisms.counted_quantiles import CountedQuantiles
from farthing.mechanisms.mechanism import SATURATION, Mechanism, checked_integers
from farthing.mechanisms.quantiles import NeighboringRelation
from farthing.mechanisms.randomness import Source
from farthing.numerics.bounds import rounded_down
from farthing.privacy import Composed, Event
from farthing.privacy.events import checked_mechanism_epsilon

CHOICE_SHARE = Fraction(4, 5)
"""Of epsilon, what goes to choosing; the rest counts rows. The value is what is read first, and it is compared."""

GROWTH = Fraction(5, 2)
"""How much farther each cell reaches than the one before: fewer cells add less noise to a rank, but are coarser."""


@lru_cache(maxsize=64)
def _steps(points: int) -> NDArray[np.int64]:
    """How far from a chosen point cells end, on a grid of so many points."""
    reach, steps = Fraction(1), [0]
    while reach < points:
        steps.append(int(reach))
        reach *= GROWTH
    return np.array(steps)


@dataclass(frozen=True, slots=True)
class QuantileSurroundings(Mechanism):
    """For each group the points that `CountedQuantiles` chooses, and noisy counts of the rows in cells around them.

    The answer is flat: all points (rising within a group), then the noisy counts of the cells of each group, whose last
    points are `last_points` of the group's own points.

    Statement:
        Choosing with 4/5 of epsilon as `CountedQuantiles` does and then adding discrete Laplace noise of scale
        l1 / (epsilon / 5) to the counts of rows in the cells that the chosen points cut each group's grid into is
        epsilon-DP; as an event it is the composition of both.
    Source: adaptive composition of two mechanisms whose parameters are fixed in advance (dominating pairs compose: Zhu,
        Dong & Wang, arXiv:2106.08567, Theorem 10). Given the points the cells are fixed and disjoint, each a union
        of grid points, so a unit moves their counts by at most as much as those of the points in l1: l1_sensitivity.
    Assumes: grid and groups are public; `l1_sensitivity` bounds what a unit moves the counts of all points by.
    Direction: exact sampling; the event is an upper bound.
    Checked by: tests/theorems/test_quantile_surroundings.py

    >>> import numpy as np
    >>> median = QuantileSurroundings((0.5,), epsilon=20.0, points=8)
    >>> answer = median.release(np.array([0, 900, 0, 0, 1000, 0, 0, 800]))
    >>> median.last_points(answer[:1])  # the chosen point is a cell of its own
    array([1, 2, 3, 4, 5, 6, 7])
    >>> len(answer)
    8
    """

    probabilities: tuple[float, ...]
    epsilon: float
    points: int
    groups: int = 1
    max_rows: int = 1
    neighbours: NeighboringRelation = "add-remove"
    l1_sensitivity: int = 1
    weights: tuple[int, ...] = ()  # of the levels that are chosen
    choosing: CountedQuantiles = field(init=False, repr=False)

    def __post_init__(self) -> None:
        total = Fraction(checked_mechanism_epsilon(self.epsilon))
        share = rounded_down(total * CHOICE_SHARE)
        choosing = CountedQuantiles(
            self.probabilities, share, self.points, self.groups, self.max_rows, self.neighbours, self.weights
        )
        object.__setattr__(self, "choosing", choosing)

    def counting(self, cells: int = 1) -> DiscreteLaplace:
        """The noise of the counts."""
        share = rounded_down(Fraction(self.epsilon) * (1 - CHOICE_SHARE))
        return DiscreteLaplace(share, self.l1_sensitivity, cells=cells)

    @property
    def event(self) -> Event:
        """The choices and the noise, composed."""
        choices = self.choosing.event
        parts = choices.parts if isinstance(choices, Composed) else ((choices, 1),)
        return Composed((*parts, (self.counting().event, 1)))

    def last_points(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """The last point of each cell of a group: a chosen point by itself, then cells that grow outward.

        Between two chosen points they grow up to the middle.
        """
        away, points = _steps(self.points), np.sort(chosen)
        middles = (points[1:] + points[:-1]) // 2
        ends = []
        for point, first, last in zip(points, [0, *middles], [*middles, self.points - 2], strict=True):
            own = np.concatenate([point + away, point - 1 - away])
            ends.append(own[(own >= first) & (own <= last) | (own == point) | (own == point - 1)])
        inside = np.unique(np.concatenate(ends))
        return np.append(inside[(inside >= 0) & (inside < self.points - 1)], self.points - 1)

    def parts(self, answer: Any) -> list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """Of each group: chosen points, last points of its cells, and their noisy counts."""
        flat = np.asarray(answer, dtype=np.int64).reshape(-1)
        width = len(self.probabilities)
        edges, start = [], self.groups * width
        for group in flat[:start].reshape(self.groups, width):
            last = self.last_points(group)
            edges.append((group, last, flat[start : start + len(last)]))
            start += len(last)
        return edges

    def _answer(self, value: Any, source: Source) -> NDArray[np.int64]:
        counts = checked_integers(value, "counts")
        if counts.size != self.groups * self.points:
            raise InvalidData("counts", "must be one count for each point of each group")
        # Clamped so low that no sum overflows: a contraction, which moves no two tables further apart.
        counts = np.clip(counts, 0, SATURATION // self.points).reshape(self.groups, self.points)
        chosen = np.sort(self.choosing._answer(counts, source), axis=1)  # choices from all rows may come in any order
        cells = []
        for group, points in zip(counts, chosen, strict=True):
            last = self.last_points(points)
            cells.append(np.add.reduceat(group, np.append(0, last[:-1] + 1)))
        flat = np.concatenate(cells)
        noisy = self.counting(len(flat))._answer(flat, source)
        return np.concatenate([chosen.reshape(-1), np.asarray(noisy, dtype=np.int64).reshape(-1)])

"""A sorted private column seen as intervals of a public grid, each as far from a wanted rank as all its points are."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from farthing.mechanisms.samplers.single_draws import Bits
from farthing.mechanisms.weighted_choice import Group, choose_label, chosen_step


def drawn_point(
    keys: NDArray[np.int64], first: int, last: int, probability: Fraction, rate: Fraction, bits: Bits
) -> int:
    """The same as `drawn_point_of_counts`, from one key for each row; they lie in first .. last."""
    distinct, counts = np.unique(keys, return_counts=True)
    return drawn_point_of_counts(distinct, counts, first, last, probability, rate, bits)


def drawn_point_of_counts(
    distinct: NDArray[np.int64],
    counts: NDArray[np.int64],
    first: int,
    last: int,
    probability: Fraction,
    rate: Fraction,
    bits: Bits,
) -> int:
    """A point y of first .. last, drawn with probability exactly proportional to exp(-rate * loss(y)).

    `distinct` are the points that hold rows, rising, inside first .. last, and `counts` how many each of them holds.
    With n rows, loss(y) is the distance, in rows, from probability * n to the ranks that y holds, which run from the
    rows below y to those at or below y. It is constant on each distinct point and on each stretch between two of them,
    so only those are weighed. Some y has loss 0: the ranks of first .. last cover 0 .. n without a hole.
    """
    ranks = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])  # ranks[i] rows lie below distinct[i]
    a, b, n = probability.numerator, probability.denominator, int(ranks[-1])
    target = a * n  # all losses are in units of 1 / b rows, so that they are whole numbers
    widths: dict[int, int] = {}

    def groups(limit: int) -> tuple[list[Group], int]:
        lowest = max(0, -((limit - target) // b))  # ranks within the limit
        highest = min(n, (target + limit) // b)
        intervals: list[Group] = []
        # Python's integers from here on: b may be large, and only the rows near the wanted rank are touched.
        start = int(np.searchsorted(ranks[1:], lowest, "left"))
        stop = int(np.searchsorted(ranks[:-1], highest, "right"))
        borders = ranks[start : stop + 1].tolist()
        for key, below, upto in zip(distinct[start:stop].tolist(), borders[:-1], borders[1:], strict=True):
            intervals.append((max(0, b * below - target, target - b * upto), 1, key, 0))
            widths[key] = 1
        start = int(np.searchsorted(ranks, lowest, "left"))
        stop = int(np.searchsorted(ranks, highest, "right"))
        ends = distinct[max(start - 1, 0) : stop].tolist()
        ends = [first - 1] * (start == 0) + ends + [last + 1] * (stop == len(ranks))
        for (left, right), rank in zip(pairwise(ends), ranks[start:stop].tolist(), strict=True):
            if right - left > 1:  # there are points between the two
                intervals.append((abs(b * rank - target), right - left - 1, left + 1, 0))
                widths[left + 1] = right - left - 1
        intervals.sort(key=itemgetter(0, 2))
        return intervals, last - first + 1 - sum(count for _, count, *_ in intervals)

    label = choose_label(rate / b, groups, last - first + 1, bits)
    return label + bits.below(widths[label])


SPLITS = 2**12
"""A point is cut into so many places, so that rows at one point can be divided between two sides."""


@dataclass(frozen=True)
class RankedPoints:
    """The points that hold rows, rising, and how many rows lie below each; the last rank is that of all rows.

    Place k of `SPLITS` k's of point p is p * SPLITS + k. Below it lie all rows of lower points and k / SPLITS of each
    row at p: a row is cut in proportion, so its parts add up to one row. Ranks of places are in SPLITS-ths of a row.
    """

    distinct: NDArray[np.int64]
    ranks: NDArray[np.int64]

    @classmethod
    def of(cls, counts: NDArray[np.int64]) -> RankedPoints:
        """From the count at every point."""
        distinct = np.flatnonzero(counts)
        return cls(distinct, np.concatenate([np.zeros(1, np.int64), np.cumsum(counts[distinct])]))

    def rank_at(self, place: int) -> int:
        """How many rows lie below a place, in SPLITS-ths of a row."""
        point, k = divmod(place, SPLITS)
        at = int(np.searchsorted(self.distinct, point))
        there = at < len(self.distinct) and int(self.distinct[at]) == point
        own = int(self.ranks[at + 1] - self.ranks[at]) if there else 0
        return SPLITS * int(self.ranks[at]) + k * own

    def drawn_point(self, low: int, high: int, last: int, probability: Fraction, rate: Fraction, bits: Bits) -> int:
        """A point, as `drawn_point_of_counts` draws it from the rows between two places; `last` may be chosen."""
        start, stop = np.searchsorted(self.distinct, [low // SPLITS, high // SPLITS + 1])
        distinct = self.distinct[start:stop]
        edges = np.clip(SPLITS * self.ranks[start : stop + 1], self.rank_at(low), self.rank_at(high))
        masses = np.diff(edges)
        return drawn_point_of_counts(
            distinct[masses > 0], masses[masses > 0], low // SPLITS, last, probability, rate / SPLITS, bits
        )

    def drawn_place(self, low: int, high: int, last: int, probability: Fraction, rate: Fraction, bits: Bits) -> int:
        """A place of low .. last, with probability exactly proportional to exp(-rate * loss).

        The loss is the distance, in rows, from probability * (rows between low and high) to the rows between low and
        the place.
        """
        a, b = probability.numerator, probability.denominator
        before = self.rank_at(low)
        target = b * before + a * (self.rank_at(high) - before)  # in units of 1 / (b SPLITS) rows, as all losses
        # Where a point holds many rows, the nearest place may be that after its last one: it is looked for once more.
        close = min(run[0] for run in self._runs_near(target, b, 0, low, last, {}))
        least = min(run[0] for run in self._runs_near(target, b, close, low, last, {}))
        runs: Runs = {}

        def groups(limit: int) -> tuple[list[Group], int]:
            near = self._runs_near(target, b, limit + least, low, last, runs)
            inside = [(gap - least, count, at, step) for gap, count, at, step in near if gap - least <= limit]
            inside.sort(key=itemgetter(0, 2))
            return inside, last - low + 1 - sum(count for _, count, *_ in inside)

        label = choose_label(rate / (b * SPLITS), groups, last - low + 1, bits)
        direction, count, step = runs[label]
        return label + direction * chosen_step(rate / (b * SPLITS), step, count, bits)

    def _runs_near(self, target: int, b: int, limit: int, low: int, last: int, runs: Runs) -> list[Group]:
        """All runs of places low .. last that come within the limit of the target, and perhaps a few others."""
        unit, most = b * SPLITS, int(self.ranks[-1])
        start = int(np.searchsorted(self.ranks, min(max((target - limit) // unit, 0), most), "left"))
        stop = int(np.searchsorted(self.ranks, min(-((-target - limit) // unit), most), "right"))
        start = max(start - 1, 0)
        points = self.distinct[start:stop].tolist()
        ranks = self.ranks[start : start + len(points) + 1].tolist()
        free = low if start == 0 else max((int(self.distinct[start - 1]) + 1) * SPLITS, low)
        near: list[Group] = []
        for point, below, upto in zip(points, ranks[:-1], ranks[1:], strict=True):
            own, step = point * SPLITS, b * (upto - below)
            near += _runs(free, min(own - 1, last), unit * below - target, 0, runs)
            first = max(own, low)
            offset = unit * below - target + step * (first - own)
            near += _runs(first, min(own + SPLITS - 1, last), offset, step, runs)
            free = max(own + SPLITS, low)
        if stop >= len(self.distinct):
            near += _runs(free, last, unit * ranks[-1] - target, 0, runs)
        return near


Runs = dict[int, tuple[int, int, int]]
"""By the first place of a run: in which direction it goes, how many places, and how much farther each next one is."""


def _runs(first: int, last: int, offset: int, step: int, runs: Runs) -> list[Group]:
    """The places first .. last, whose offsets from the target rise by a step each, by their distance from it."""
    if last < first:
        return []
    count = last - first + 1
    below = 0 if offset >= 0 else count if not step else min(count, -(offset // step))
    near: list[Group] = []
    if below:  # from the target downward
        runs[first + below - 1] = (-1, below, step)
        near.append((-(offset + step * (below - 1)), below, first + below - 1, step))
    if below < count:
        runs[first + below] = (1, count - below, step)
        near.append((offset + step * below, count - below, first + below, step))
    return near

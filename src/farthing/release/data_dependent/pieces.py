"""Whether a histogram is a few even pieces: one number that a row moves by no more than a count of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from farthing.mechanisms.randomness import Source
from farthing.release.data_dependent.buckets import Counted, counted
from farthing.release.data_dependent.costs import IntervalFamily, unevenness
from farthing.release.data_dependent.dawa import cheapest_partition
from farthing.release.data_dependent.spending import Spending
from farthing.release.strategies.base import Integers, Level
from farthing.release.strategies.pricing import LevelNoise

_WEIGHT = 8  # of rows that lie to one side, against rows that lie unevenly: only the first add up in a range
_SENSITIVITY = _WEIGHT + 1
_MOST = 2**36  # cells are clamped here, which moves no two neighbours further apart; no sum overflows


@dataclass(frozen=True)
class Roughness:
    """A noisy roughness, in rows; `noise` is what it was measured with."""

    rows: float
    noise: LevelNoise

    @property
    def deviation(self) -> float:
        """The standard deviation of `rows`."""
        return math.sqrt(self.noise.variance) / _WEIGHT


def drift(cells: Integers, family: IntervalFamily) -> Integers:
    """For every interval, the most rows by which the sum of its first cells differs from their even share. Private.

    Statement:
        d(I) = the whole part of the largest |S_t - t S_w / w| over t, with S_t the sum of the first t of the w cells
        of I. If x and x' differ by 1 in one cell j, then |d(I) - d'(I)| <= 1 for every I that holds j, and
        d(I) = d'(I) for others.
    Source: own derivation: for every t, S_t - t S_w / w moves by 1 - t/w or by -t/w, so the largest moves by at most
        1; whole parts of numbers at most 1 apart are at most 1 apart.
    Assumes: whole numbers; w S_w below 2^62.
    Direction: equality.
    Checked by: tests/theorems/test_dawa_pieces.py

    >>> drift(np.array([5, 5, 9, 1]), IntervalFamily(4))
    array([0, 0, 0, 0, 0, 2, 4, 4])
    """
    found = []
    for length in family.lengths:
        windows = np.lib.stride_tricks.sliding_window_view(cells, length)[family.starts(length)]
        sums = np.cumsum(windows, axis=1)
        apart = np.abs(sums * length - np.arange(1, length + 1) * sums[:, -1:])
        found.append(apart.max(axis=1) // length)
    return np.concatenate(found)


def roughness(cells: Integers, price: int) -> int:
    """How far a histogram is from a few even pieces, in rows times a fixed weight. Private.

    Statement:
        v(x) = the least, over partitions of the cells into intervals of a public family, of the sum over the intervals
        I of 8 d(I) + c(I) + 8 price, with d(I) of `drift` and c(I) of `unevenness`. If x and x' differ by 1 in one
        cell, then |v(x) - v(x')| <= 9.
    Source: own derivation: in every partition one interval holds the cell; its term moves by at most 8 + 1 and no
        other term moves. So the sum of every partition moves by at most 9, and so does the least.
    Assumes: the family and the price are public; whole numbers. Cells above 2^36 count as 2^36.
    Direction: equality.
    Checked by: tests/theorems/test_dawa_pieces.py

    >>> roughness(np.array([900] * 8 + [10] * 8), price=5), roughness(np.array([900, 10] * 8), price=5)
    (80, 640)
    """
    family = IntervalFamily(len(cells))
    clamped = np.clip(cells, 0, _MOST)
    starts, stops = family.edges
    costs = _WEIGHT * (drift(clamped, family) + price) + unevenness(clamped, family)
    edges = cheapest_partition(len(cells), starts, stops, costs)
    ends = stops * (len(cells) + 1) + starts
    order = np.argsort(ends)
    chosen = order[np.searchsorted(ends, edges[1:] * (len(cells) + 1) + edges[:-1], sorter=order)]
    return int(costs[chosen].sum())


def noisy_roughness(
    cells: Integers, price: int, spending: Spending, part: Fraction, source: Source
) -> Roughness:
    """The private step: the roughness with noise, for a part of the budget."""
    noise = spending.noise(Level("roughness", 1, _SENSITIVITY, _SENSITIVITY**2), part)
    exact = np.array([roughness(cells, price)], dtype=np.int64)
    found: Counted = counted(exact, np.array([0, 1], dtype=np.int64), noise, source)
    return Roughness(float(found.values[0]) / _WEIGHT, noise)

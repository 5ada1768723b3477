"""Refinement: a coarse look at where the rows are, then narrow buckets there and wide ones elsewhere.

With few rows, most of a histogram's fine structure lies below the noise, and measuring it costs accuracy everywhere
else. The widths of the buckets follow from noisy counts alone, so they cost nothing beyond those counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from farthing.matrix.data_dependent.buckets import (
    BucketEstimator,
    Counted,
    best_plan,
    counted,
    level_of,
    measured,
    nonnegative_histogram,
    sums_between,
)
from farthing.matrix.data_dependent.dawa import IntervalFamily, cheapest_partition, unevenness
from farthing.matrix.data_dependent.step_budget import Spending
from farthing.matrix.strategies.strategy import Floats, Integers, Level
from farthing.matrix.strategies.strategy_noise import LevelNoise
from farthing.matrix.workloads.workload import Workload
from farthing.mechanisms.randomness import Source

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
    drifts = []
    for length in family.lengths:
        windows = np.lib.stride_tricks.sliding_window_view(cells, length)[family.starts(length)]
        sums = np.cumsum(windows, axis=1)
        apart = np.abs(sums * length - np.arange(1, length + 1) * sums[:, -1:])
        drifts.append(apart.max(axis=1) // length)
    return np.concatenate(drifts)


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


def noisy_roughness(cells: Integers, price: int, spending: Spending, part: Fraction, source: Source) -> Roughness:
    """The private step: the roughness with noise, for a part of the budget."""
    noise = spending.noise(Level("roughness", 1, _SENSITIVITY, _SENSITIVITY**2), part)
    exact = np.array([roughness(cells, price)], dtype=np.int64)
    count: Counted = counted(exact, np.array([0, 1], dtype=np.int64), noise, source)
    return Roughness(float(count.values[0]) / _WEIGHT, noise)


COARSE_PART = Fraction(3, 10)
"""Of what is left: for the coarse look. This and the numbers below were found by trials on many shapes of data."""
MIDDLE_PART = Fraction(3, 10)
"""Of what is left: for a second look, where most rows turned out to lie close together."""
_COARSE = 8
_CLOSE = 3.0  # coarse buckets that hold most of the rows, in effect: below this there is a second look
_SPLIT = 6.0  # standard deviations of the next look that a bucket must hold to be split
_SPLIT_AGAIN = 3.0  # the same where there will be another look
_POWER = 2.0  # a bucket that holds k times as much is split into k^2 times as many
_JOIN = 3.0  # standard deviations that neighbours must hold together to stay apart
_MOST_BUCKETS = 384


def refined(
    cells: Integers,
    workload: Workload,
    spending: Spending,
    part: Fraction,
    before: Sequence[Counted],
    source: Source,
) -> BucketEstimator:
    """Estimated cells for a part of the budget, with what was counted `before`: every step is one release."""
    edges = even_edges(workload.cells, _COARSE)
    looked = counted(cells, edges, spending.noise(level_of(edges), part * COARSE_PART), source)
    known, left = [*before, looked], part * (1 - COARSE_PART)
    near = nonnegative_histogram(workload, BucketEstimator(workload.cells, known).centre)
    if _buckets_in_effect(near, edges) < _CLOSE:
        middle = part * MIDDLE_PART
        edges = finer_edges(near, edges, spending.deviation(middle), _SPLIT_AGAIN)
        known.append(counted(cells, edges, spending.noise(level_of(edges), middle), source))
        left -= middle
        near = nonnegative_histogram(workload, BucketEstimator(workload.cells, known).centre)
    edges = finer_edges(near, edges, spending.deviation(left))
    plan = best_plan(workload, edges, known, spending, left)
    return BucketEstimator(workload.cells, [*known, *measured(cells, plan, spending, source)])


def _buckets_in_effect(near: Floats, edges: Integers) -> float:
    """One over the chance that two rows lie in the same bucket."""
    rows = np.asarray(sums_between(near, edges), dtype=float)
    squares = float(np.sum(rows**2))
    return float(np.sum(rows)) ** 2 / squares if squares > 0 else float(len(rows))


def even_edges(cells: int, buckets: int) -> Integers:
    """Edges of about equally wide buckets.

    >>> even_edges(10, 4)
    array([ 0,  2,  5,  7, 10])
    """
    return np.unique(np.linspace(0, cells, min(buckets, cells) + 1).astype(np.int64))


def finer_edges(near: Floats, edges: Integers, deviation: float, split: float = _SPLIT) -> Integers:
    """Buckets for the next look: those that hold many rows are split, neighbours that hold next to none are joined.

    >>> finer_edges(np.array([900.0, 900.0, 0.0, 0.0, 0.0, 0.0, 9.0, 9.0]), np.array([0, 2, 4, 6, 8]), 50.0)
    array([0, 1, 2, 8])
    """
    unit = split * deviation
    while len(finer := _split(near, edges, unit)) - 1 > _MOST_BUCKETS:
        unit *= 2**0.5
    rows = sums_between(near, finer)
    joined, rows_so_far = [0], 0.0
    for stop, here in zip(finer[1:].tolist(), rows.tolist(), strict=True):
        rows_so_far += here
        if rows_so_far >= _JOIN * deviation:
            joined.append(stop)
            rows_so_far = 0.0
    if joined[-1] != finer[-1]:
        joined.append(int(finer[-1]))
    return np.array(joined, dtype=np.int64)


def _split(near: Floats, edges: Integers, unit: float) -> Integers:
    places = [0]
    for start, stop, rows in zip(edges[:-1], edges[1:], sums_between(near, edges), strict=True):
        width = int(stop - start)
        wanted = max(1.0, (float(rows) / unit) ** _POWER)
        pieces = min(width, 2 ** round(np.log2(min(wanted, 2.0**20))))
        places += [int(start) + width * piece // pieces for piece in range(1, pieces + 1)]
    return np.array(places, dtype=np.int64)

"""Refinement: a coarse look at where the rows are, then narrow buckets there and wide ones elsewhere.

With few rows, most of a histogram's fine structure lies below the noise, and measuring it costs accuracy everywhere
else. The widths of the buckets follow from noisy counts alone, so they cost nothing beyond those counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from farthing.mechanisms.randomness import Source
from farthing.release.data_dependent.bucket_tree import best_plan, measured
from farthing.release.data_dependent.buckets import (
    BucketEstimator,
    Counted,
    counted,
    level_of,
    sums_between,
)
from farthing.release.data_dependent.settling import settled
from farthing.release.data_dependent.spending import Spending
from farthing.release.strategies.base import Floats, Integers
from farthing.release.workloads.base import Workload

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
    near = settled(workload, BucketEstimator(workload.cells, known).centre)
    if _buckets_in_effect(near, edges) < _CLOSE:
        middle = part * MIDDLE_PART
        edges = finer_edges(near, edges, spending.deviation(middle), _SPLIT_AGAIN)
        known.append(counted(cells, edges, spending.noise(level_of(edges), middle), source))
        left -= middle
        near = settled(workload, BucketEstimator(workload.cells, known).centre)
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
    kept, held = [0], 0.0
    for stop, here in zip(finer[1:].tolist(), rows.tolist(), strict=True):
        held += here
        if held >= _JOIN * deviation:
            kept.append(stop)
            held = 0.0
    if kept[-1] != finer[-1]:
        kept.append(int(finer[-1]))
    return np.array(kept, dtype=np.int64)


def _split(near: Floats, edges: Integers, unit: float) -> Integers:
    found = [0]
    for start, stop, rows in zip(edges[:-1], edges[1:], sums_between(near, edges), strict=True):
        width = int(stop - start)
        wanted = max(1.0, (float(rows) / unit) ** _POWER)
        pieces = min(width, 2 ** round(np.log2(min(wanted, 2.0**20))))
        found += [int(start) + width * piece // pieces for piece in range(1, pieces + 1)]
    return np.array(found, dtype=np.int64)

"""DAWA: a private partition into buckets of about equal cells, then counts of the buckets made for the workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from farthing.matrix.data_dependent.buckets import BucketEstimator, Counted, best_plan, measured
from farthing.matrix.data_dependent.step_budget import Spending
from farthing.matrix.strategies.strategy import Integers
from farthing.matrix.workloads.workload import Workload
from farthing.mechanisms import DiscreteLaplace
from farthing.mechanisms.randomness import Source
from farthing.numerics.bounds import rounded_down

_STARTS = 4  # intervals of 2^k cells begin at every multiple of 2^k / 4


@dataclass(frozen=True, eq=False)
class IntervalFamily:
    """The intervals a partition may be made of: lengths are powers of two. Public; made of the number of cells."""

    cells: int

    @property
    def lengths(self) -> tuple[int, ...]:
        """1, 2, 4, ... up to the number of cells."""
        return tuple(1 << power for power in range(self.cells.bit_length()))

    def starts(self, length: int) -> Integers:
        """Where intervals of this length begin.

        >>> IntervalFamily(20).starts(16)
        array([0, 4])
        """
        return np.arange(0, self.cells - length + 1, max(1, length // _STARTS), dtype=np.int64)

    @property
    def edges(self) -> tuple[Integers, Integers]:
        """Starts and stops of all intervals, short ones first."""
        starts = [self.starts(length) for length in self.lengths]
        stops = [first + length for first, length in zip(starts, self.lengths, strict=True)]
        return np.concatenate(starts), np.concatenate(stops)


def unevenness(cells: Integers, family: IntervalFamily) -> Integers:
    """For every interval, how many rows must be added or removed to make its cells all equal. Private.

    Statement:
        c(I) = the least over whole numbers m of the sum over cells j in I of |x_j - m|, reached at a median. If x and
        x' differ by 1 in one cell j, then |c(I) - c'(I)| <= 1 for every I that holds j, and c(I) = c'(I) for others.
    Source: own derivation: |x_j - m| changes by at most 1 for every m, hence so does the least sum. (The mean in
        place of the median, as in Li, Hay, Miklau & Wang, arXiv:1410.0265, moves by up to 2.)
    Assumes: whole numbers; sums below 2^63.
    Direction: equality.
    Checked by: tests/theorems/test_dawa_costs.py

    >>> family = IntervalFamily(4)
    >>> unevenness(np.array([5, 5, 9, 1]), family)
    array([0, 0, 0, 0, 0, 4, 8, 8])
    """
    costs = []
    for length in family.lengths:
        windows = np.lib.stride_tricks.sliding_window_view(cells, length)[family.starts(length)]
        ordered = np.sort(windows, axis=1)
        half = length // 2
        costs.append(ordered[:, length - half :].sum(axis=1) - ordered[:, :half].sum(axis=1))
    return np.concatenate(costs)


PARTITION_PART = Fraction(1, 4)
"""Of epsilon, for the partition."""
PUBLISHED_PART = Fraction(1, 2)
"""The same in the paper's code."""
_SPREAD = 2.0  # scales of noise that one more bucket must be worth
_MOST = 2**40  # cells are clamped here, which moves no two neighbours further apart


def dawa(
    cells: Integers,
    workload: Workload,
    spending: Spending,
    epsilon: float,
    part: Fraction,
    before: Sequence[Counted],
    source: Source,
) -> BucketEstimator:
    """Estimated cells: `epsilon` for the partition, a part of the budget for the counts; `before` is known already."""
    deviation = spending.deviation(part)
    edges = partition(cells, epsilon, deviation, source)
    plan = best_plan(workload, edges, before, spending, part)
    # A bucket much more uneven than twice its price would have been divided, as far as the noise can tell.
    uneven = 2 * price_of_bucket(epsilon, deviation)
    known = [*before, *measured(cells, plan, spending, source)]
    return BucketEstimator(workload.cells, known, uneven)


def partition(cells: Integers, epsilon: float, deviation: float, source: Source) -> Integers:
    """The edges of buckets whose cells are about equal. `deviation` is the noise each bucket will be counted with.

    Statement:
        Let a public family of intervals have whole-number costs c(I), and let one row change by at most 1 the costs
        of the intervals that hold its cell, and no others. Add to every cost an independent whole number N(I) with
        P(N = n) proportional to exp(-epsilon |n| / 2). The partition with the least sum of noisy costs and of a public
        price for each interval (ties by a fixed order) is epsilon-DP. The noisy costs are not.
    Source: Li, Hay, Miklau & Wang, arXiv:1410.0265, Theorem 2, for costs moved by up to 2. Proof. Let the row's cell
        lie in interval b of partition B, and fix the noise of all intervals but b. Partitions that hold b share the
        term of b and have no other term that the row moves: which of them is best depends on neither. So B wins
        exactly when c(b) + N(b) is at most, or below, some m - r, with m the least sum of partitions without b and r
        that of B's other intervals. The row moves c(b) by at most 1, m by at most 1, and r not at all. P(N <= t)
        changes by at most exp(epsilon / 2) for each step of t, hence by exp(epsilon) in all.
    Assumes: every interval gets noise, single cells too: their cost is always 0, but the others' is not.
    Direction: exact noise; epsilon / 2 rounded down.
    Checked by: tests/theorems/test_dawa_partition.py

    >>> from farthing.mechanisms.randomness import SYSTEM
    >>> partition(np.array([900] * 8 + [10] * 8), 50.0, 1.0, SYSTEM)
    array([ 0,  8, 16])
    """
    family = IntervalFamily(len(cells))
    exact = unevenness(np.clip(cells, -_MOST, _MOST), family)
    noise = DiscreteLaplace(rounded_down(Fraction(epsilon) / 2), cells=len(exact))
    costs = np.asarray(noise._answer(exact, source), dtype=np.int64).reshape(-1)
    starts, stops = family.edges
    return cheapest_partition(len(cells), starts, stops, costs + price_of_bucket(epsilon, deviation))


def price_of_bucket(epsilon: float, deviation: float) -> int:
    """How uneven a bucket must be to be divided in two, in rows.

    Noise below zero makes intervals look better than they are, and there are many: a bucket must be worth that.

    >>> price_of_bucket(0.025, 19.0)
    179
    """
    return round(deviation + _SPREAD * 2 / epsilon)


def cheapest_partition(cells: int, starts: Integers, stops: Integers, costs: Integers) -> Integers:
    """The edges of the partition into given intervals with the least sum of costs; among equals, the first found.

    >>> cheapest_partition(2, np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([3, 3, 7]))
    array([0, 1, 2])
    """
    order = np.argsort(stops, kind="stable")
    best: list[int | None] = [0] + [None] * cells
    last = [0] * (cells + 1)
    for start, stop, cost in zip(starts[order].tolist(), stops[order].tolist(), costs[order].tolist(), strict=True):
        before = best[start]
        here = best[stop]
        if before is not None and (here is None or before + cost < here):
            best[stop], last[stop] = before + cost, start
    edges = [cells]
    while edges[-1] > 0:
        edges.append(last[edges[-1]])
    return np.array(edges[::-1], dtype=np.int64)

"""Cells that are nowhere below zero, near in the norm that counts: how far the answers move."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from farthing.inference.isotonic import nearest_increasing
from farthing.release.strategies.base import Floats
from farthing.release.workloads.base import Workload
from farthing.release.workloads.intervals import Intervals, Prefix

MOST_IN_ORDER = 2**17
"""Cells up to which cumulative sums are put in order."""
_FAINT = 1e-6


def settled(workload: Workload, cells: Floats, others: Sequence[Floats] = ()) -> Floats:
    """Cells >= 0 whose answers are near those of `cells`; `others` are cells >= 0 to be weighed as well.

    Least squares with cells >= 0 in the norm of the *measurements* may move the answers far: every cell whose noise
    was negative comes up to zero, and sums over many cells come up with them. Moving the answers as little as possible
    cannot do that.

    Statement:
        Among cells >= 0, let x be those with the least |W (x - cells)|. If the true cells z are >= 0 then
        |W (x - z)| <= |W (cells - z)|. For all prefixes, x has the nearest increasing cumulative sums that are >= 0;
        for all ranges, the differences of the nearest increasing sequence to (0, cumulative sums); for single
        cells, the negative ones set to zero.
    Source: own derivation. The first sentence is the projection onto a convex set. A range is a difference of two of
        the n + 1 cumulative sums d_0 = 0, d_1, ..., d_n, and the sum over all pairs of (d_j - d_i)^2 is n + 1 times
        the sum of (d_k - mean)^2: the least over increasing sequences, whatever their mean, is isotonic regression.
    Assumes: true counts are >= 0.
    Direction: equality for those three workloads; for others the nearest of several candidates is taken, each
        of them >= 0, and the promise is not proven.
    Checked by: tests/theorems/test_dawa_settling.py

    >>> from farthing.release.workloads import identity, prefix
    >>> settled(prefix(3), np.array([2.0, -4.0, 1.0])), settled(identity(3), np.array([2.0, -4.0, 1.0]))
    (array([0., 0., 0.]), array([2., 0., 1.]))
    """
    tried = [np.maximum(cells, 0.0), *others]
    if isinstance(workload, Intervals) and workload.cells <= MOST_IN_ORDER:
        tried.append(_in_order(workload, cells))
    moved = np.stack(tried, axis=1) - cells[:, None]
    distances = np.sum(moved * workload.gram_times(moved), axis=0)
    return tried[int(np.argmin(distances))]


def _in_order(workload: Intervals, cells: Floats) -> Floats:
    """Differences of increasing cumulative sums, each as heavy as the queries that end or begin there are many."""
    sums = np.cumsum(cells)
    if isinstance(workload, Prefix):
        return np.diff(nearest_increasing(sums, least=0.0), prepend=0.0)
    starts, stops = workload.edges
    ends = np.bincount(starts, minlength=workload.cells + 1) + np.bincount(
        stops, minlength=workload.cells + 1
    )
    heavy = np.maximum(ends, _FAINT * float(ends.max()))
    return np.diff(nearest_increasing(np.concatenate([[0.0], sums]), 1.0 / heavy))

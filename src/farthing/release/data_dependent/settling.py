"""Cells that are nowhere below zero and answer a workload about as before, without a long search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from farthing.inference.isotonic import nearest_increasing
from farthing.release.strategies.base import Floats
from farthing.release.workloads.base import Workload
from farthing.release.workloads.intervals import AllRanges, Identity, Intervals, Prefix, Total
from farthing.release.workloads.settling import nearest_in_answers

MOST_IN_ORDER = 2**17
"""Cells up to which cumulative sums are put in order."""
_MOST_SEARCHED = 4096
_FAINT = 1e-6


def settled(workload: Workload, cells: Floats, others: Sequence[Floats] = ()) -> Floats:
    """Cells >= 0 whose answers are near those of `cells`; `others` are cells >= 0 to be weighed as well.

    Where the nearest ones have a closed form, they are taken (see `nearest_in_answers` for what that promises). For
    other intervals the cumulative sums are put in order, each as heavy as the queries that begin or end there are
    many, and for other workloads a search is run if cells are few; whichever candidate moves the answers least wins.

    >>> from farthing.release.workloads import identity, prefix
    >>> settled(prefix(3), np.array([2.0, -4.0, 1.0])), settled(identity(3), np.array([2.0, -4.0, 1.0]))
    (array([0., 0., 0.]), array([2., 0., 1.]))
    """
    if isinstance(workload, Prefix | AllRanges | Identity | Total) and workload.cells <= MOST_IN_ORDER:
        return nearest_in_answers(cells, workload)
    tried = [np.maximum(cells, 0.0), *others]
    if isinstance(workload, Intervals):
        if workload.cells <= MOST_IN_ORDER:
            tried.append(_in_order(workload, cells))
    elif workload.cells <= _MOST_SEARCHED:
        tried.append(nearest_in_answers(cells, workload))
    moved = np.stack(tried, axis=1) - cells[:, None]
    distances = np.sum(moved * workload.gram_times(moved), axis=0)
    return tried[int(np.argmin(distances))]


def puts_in_order(workload: Workload) -> bool:
    """Whether `settled` finds good cells by itself; otherwise others should be proposed.

    >>> from farthing.release.workloads import marginals, prefix
    >>> puts_in_order(prefix(1024)), puts_in_order(prefix(2**20)), puts_in_order(marginals((2,) * 16, way=2))
    (True, False, False)
    """
    most = MOST_IN_ORDER if isinstance(workload, Intervals) else _MOST_SEARCHED
    return workload.cells <= most


def _in_order(workload: Intervals, cells: Floats) -> Floats:
    """Differences of increasing cumulative sums."""
    starts, stops = workload.edges
    edges = workload.cells + 1
    ends = np.bincount(starts, minlength=edges) + np.bincount(stops, minlength=edges)
    heavy = np.maximum(ends, _FAINT * float(ends.max()))
    return np.diff(nearest_increasing(np.concatenate([[0.0], np.cumsum(cells)]), 1.0 / heavy))

"""Gaussian strategies for many cells: the convex problem over tents of a few cells each, beside the cells."""

from __future__ import annotations

import math

import numpy as np

from farthing.release.strategies.optimising.descent import Progress
from farthing.release.strategies.optimising.gaussian import best_for_gaussian
from farthing.release.strategies.optimising.objective import Windows
from farthing.release.strategies.optimising.starts import tents
from farthing.release.strategies.optimising.strategy import CellsAndSums, on_grid
from farthing.release.workloads.base import Workload

# The part of every column that tents of so many cells take, best for prefixes and ranges alike within 0.3%.
_WIDTHS, _PARTS = (2.0, 3.0, 5.0, 8.0), (0.90, 0.825, 0.78, 0.72)


def widened(
    workload: Workload, most: int, *, bits: int, told: Progress = lambda fraction: None
) -> CellsAndSums:
    """B'B = a R'XR + (what that leaves of the diagonal), with R at most `most` tents and X best for what they see.

    Neighbouring cells are asked for alike, so the best inner products are smooth: tents four cells apart lose 3% of
    the variance, where blocks of four would lose 14%.
    """
    cells = workload.cells
    apart = math.ceil(cells / most)
    windows, weights = tents(cells, [(float(apart), 1.0)])
    spread = windows.dense(weights)
    back = np.linalg.solve(spread @ spread.T, spread)  # of the weights of a query, what tents see of them
    seen = back @ workload.gram_times(np.ascontiguousarray(back.T))
    best = best_for_gaussian(0.5 * (seen + seen.T), told=told)
    part = float(np.interp(apart, _WIDTHS, _PARTS))
    rows = np.linalg.cholesky(best.inner_products).T @ spread
    # The tents over a cell sum to 1, and X has unit diagonal, so no column of `rows` is longer than 1.
    own = np.sqrt(1.0 - part * np.minimum(1.0, np.sum(rows**2, axis=0)))
    starts = np.argmax(rows != 0, axis=1)
    whole = Windows(cells, starts, np.full(len(rows), cells))
    return on_grid("optimised", own, whole, whole.picked(math.sqrt(part) * rows), "l2", bits=bits)

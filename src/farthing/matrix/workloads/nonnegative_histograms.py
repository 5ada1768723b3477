"""Histograms without negative cells that answer a workload no worse: projected in the norm of its answers.

Setting negative cells to zero, or projecting in the norm of the measurements, helps each cell and hurts long ranges:
thousands of small moves upward add up. What must be near is the answers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from farthing.errors import InvalidValue
from farthing.inference import nearest_increasing, nearest_nonnegative, nonnegative_in_norm
from farthing.inference.isotonic import nearest_increasing_in_norm
from farthing.inference.noise_terms import Floats
from farthing.matrix.workloads.interval_queries import AllRanges, Identity, Intervals, Prefix, Total
from farthing.matrix.workloads.named_workloads import Product, Union
from farthing.matrix.workloads.workload import Workload

_MOST_STEPS = 500


def nearest_in_answers(estimate: ArrayLike, workload: Workload) -> Floats:
    """The cells x >= 0 whose answers to `workload` are nearest to those of `estimate`.

    Statement:
        The answers of all histograms without negative cells form a closed convex cone, {W x : x >= 0}. The projection
        of W estimate onto it is W x for the x that minimise |W (x - estimate)|, and it is not further from the true
        answers, in the sum of squares over the queries, than W estimate is.
    Source: Rockafellar & Wets, Variational Analysis (1998), Corollary 12.20, as in `nearest_nonnegative`. For all
        prefixes and for all ranges the minimiser is the isotonic regression of the sums up to each edge: with d the
        change of those sums, |W (x - estimate)|^2 is sum d_e^2 over the edges after the first for prefixes, with the
        first fixed at 0, and (n + 1) sum (d_e - mean d)^2 over all edges for all ranges (own derivation).
    Assumes: true cells >= 0.
    Direction: equality for prefixes, all ranges, cells or the total of one axis, and for their products with cells;
        for other workloads an iteration that stops near the minimum, or after 500 steps of about one product each.
    Checked by: tests/theorems/test_settled_workloads.py

    >>> from farthing.matrix.workloads import prefix
    >>> nearest_in_answers([3.0, -1.0, 2.0], prefix(3))
    array([2.5, 0. , 1.5])
    """
    cells = np.asarray(estimate, dtype=float).reshape(-1)
    if len(cells) != workload.cells or not np.all(np.isfinite(cells)):
        raise InvalidValue("estimate", cells.shape, f"must be {workload.cells} finite numbers")
    if np.all(cells >= 0):
        return cells.copy()
    if isinstance(workload, Identity):
        return np.asarray(np.maximum(cells, 0.0))
    if isinstance(workload, Total):
        return nearest_nonnegative(cells, max(0.0, float(cells.sum())))
    sums = np.concatenate([[0.0], np.cumsum(cells)])
    if isinstance(workload, Prefix):
        return np.diff(nearest_increasing(sums[1:], least=0.0), prepend=0.0)
    if isinstance(workload, AllRanges):
        return np.diff(nearest_increasing(sums))
    if len(workload.shape) == 1 and _is_of_intervals(workload):
        increasing = nearest_increasing_in_norm(sums, lambda x: _edge_times(workload, x), _edge_weights(workload))
        return np.asarray(np.maximum(np.diff(increasing), 0.0))
    if isinstance(workload, Product):
        varied = [factor for factor in workload.factors if not isinstance(factor, Identity)]
        if len(varied) <= 1:
            return _consistent_lines(cells, workload)
    return _consistent_cells(cells, workload)


def _consistent_lines(cells: Floats, workload: Product) -> Floats:
    """One factor asks for more than cells: along it, every line of cells is a problem of its own."""
    sizes = [factor.cells for factor in workload.factors]
    axis = next((a for a, factor in enumerate(workload.factors) if not isinstance(factor, Identity)), 0)
    lines = np.moveaxis(cells.reshape(sizes), axis, -1)
    consistent = np.array([nearest_in_answers(line, workload.factors[axis]) for line in lines.reshape(-1, sizes[axis])])
    return np.moveaxis(consistent.reshape(lines.shape), -1, axis).reshape(-1)


def _consistent_cells(cells: Floats, workload: Workload) -> Floats:
    """For any workload: conjugate gradients on the cells, from the nearest cells of the same total."""
    diagonal = gram_diagonal(workload)
    little = 1e-9 * float(diagonal.max())  # what no query asks for stays where it is
    return nonnegative_in_norm(
        cells,
        lambda x: workload.gram_times(x) + little * x,
        diagonal + little,
        start=nearest_nonnegative(cells, max(0.0, float(cells.sum()))),
        tolerance=1e-6,
        most_steps=_MOST_STEPS,
    )


def gram_diagonal(workload: Workload) -> Floats:
    """The diagonal of W'W: how many queries hold each cell, weighted as in `gram`. All our queries are zeros and ones.

    >>> from farthing.matrix.workloads import all_ranges
    >>> gram_diagonal(all_ranges(4))
    array([4., 6., 6., 4.])
    """
    if isinstance(workload, Product):
        diagonal = np.ones(1)
        for factor in workload.factors:
            diagonal = np.multiply.outer(diagonal, gram_diagonal(factor)).reshape(-1)
        return diagonal
    if isinstance(workload, Union):
        parts = zip(workload.weights, workload.parts, strict=True)
        return np.asarray(np.sum([w * w * gram_diagonal(part) for w, part in parts], axis=0))
    if isinstance(workload, AllRanges):
        places = np.arange(workload.size, dtype=float)
        return np.asarray((places + 1) * (workload.size - places))
    return workload.transposed_times(np.ones((workload.queries, 1)))[:, 0]


# In sums up to each edge, W'W becomes a Laplacian: an interval is the difference of two of them.


def _is_of_intervals(workload: Workload) -> bool:
    parts = workload.parts if isinstance(workload, Union) else (workload,)
    return all(isinstance(part, Intervals) for part in parts)


def _edge_times(workload: Workload, sums: Floats) -> Floats:
    pulled = workload.gram_times(np.diff(sums))
    return -np.diff(pulled, prepend=0.0, append=0.0)


def _edge_weights(workload: Workload) -> Floats:
    """How many queries begin or end at each edge, weighted."""
    if isinstance(workload, Union):
        parts = zip(workload.weights, workload.parts, strict=True)
        return np.asarray(np.sum([w * w * _edge_weights(part) for w, part in parts], axis=0))
    assert isinstance(workload, Intervals)
    if isinstance(workload, AllRanges):
        return np.full(workload.size + 1, float(workload.size))
    ends = np.concatenate([workload.starts, workload.stops])
    return np.bincount(ends, minlength=workload.size + 1).astype(float)

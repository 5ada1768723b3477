"""Counts over all columns at once, none below zero, whose marginals are nearest to given ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from farthing.errors import InvalidValue
from farthing.inference.consistent_marginals import (
    Subset,
    Tables,
    all_spread,
    all_sums,
    checked_tables,
    closure,
    spread,
    summed,
)
from farthing.inference.noise_terms import Floats

_ROUNDS = 300
_FEWEST_ROUNDS = 20
_MOST_WORK = 1e8  # rounds times cells: some seconds
_SETTLED = 1e-4


def nearest_joint(sizes: Sequence[int], tables: Mapping[Subset, ArrayLike], total: float) -> Floats:
    """Cells >= 0 with the given total whose marginals are nearest to `tables`, in the sum of squares over them.

    Statement:
        The marginals of cells x >= 0 with sum x = total form a convex set. The point p(z) of it that is nearest to
        tables z has |p(z) - m| <= |z - m| for every m in it: if the true total is the given one, the marginals of the
        result are no further from the true ones than z is.
    Source: Rockafellar & Wets, Variational Analysis (1998), Corollary 12.20; accelerated projected gradient steps as in
        `nonnegative_marginals`, of length one over the largest eigenvalue. That is known: on the part of the cells
        that belongs to the columns T it is the sum, over the tables S that contain T, of prod(n_i: i not in S).
    Assumes: finite tables; total > 0.
    Direction: near p(z), not at it: ends when a round gains less than 1e-4 of the squared distance, or after 300
        rounds, fewer where there are more than a third of a million cells. The result is >= 0 and has the total.
    Checked by: tests/theorems/test_residual_projection.py

    >>> nearest_joint([2, 2], {(0,): [5.0, 3.0], (1,): [9.0, -1.0]}, total=8.0)
    array([[5., 0.], [3., 0.]])
    """
    arrays, _ = checked_tables(tables)
    shape = tuple(int(n) for n in sizes)
    for subset, table in arrays.items():
        if table.shape != tuple(shape[column] for column in subset):
            raise InvalidValue("tables", table.shape, f"must have the sizes {shape} of the columns")
    if not 0 <= total < math.inf:
        raise InvalidValue("total", total, "must be a finite number >= 0")
    step = 1.0 / _largest_eigenvalue(shape, arrays)
    cells = _independent(shape, arrays, total)
    ahead, speed, level, before = cells, 1.0, 0.0, math.inf
    rounds = max(_FEWEST_ROUNDS, min(_ROUNDS, int(_MOST_WORK / cells.size)))
    for _ in range(rounds):
        sums = all_sums(ahead, arrays)
        off = {subset: sums[subset] - table for subset, table in arrays.items()}
        distance = sum(float(np.sum(table * table)) for table in off.values())
        following, level = _onto_simplex(ahead - step * all_spread(shape, off), total, level)
        uphill = float(np.vdot(ahead - following, following - cells)) > 0
        faster = 1.0 if uphill else (1.0 + math.sqrt(1.0 + 4.0 * speed * speed)) / 2.0
        ahead = following + (0.0 if uphill else (speed - 1.0) / faster) * (following - cells)
        cells, speed = following, faster
        if abs(before - distance) <= _SETTLED * distance:
            break
        before = distance
    return cells


def _independent(sizes: tuple[int, ...], tables: Tables, total: float) -> Floats:
    """Where the search starts: columns independent of one another, each as one of the tables has it."""
    cells: Floats = np.full((1,) * len(sizes), total)
    for column, n in enumerate(sizes):
        own = next((subset for subset in tables if column in subset), None)
        counts = np.ones(n) if own is None else np.maximum(summed(tables[own], own, (column,)), 0.0)
        shares = counts / counts.sum() if counts.sum() > 0 else np.full(n, 1.0 / n)
        cells = cells * spread(shares, (column,), tuple(range(len(sizes))))
    return cells


def _largest_eigenvalue(sizes: tuple[int, ...], tables: Tables) -> float:
    """The largest curvature along the cells' parts, apart from the total, which does not move."""
    eigenvalue = 1.0
    for part in closure(tables):
        if part:
            holding = (subset for subset in tables if set(part) <= set(subset))
            eigenvalue = max(eigenvalue, sum(math.prod(sizes) / math.prod(sizes[c] for c in own) for own in holding))
    return eigenvalue


def _onto_simplex(values: Floats, total: float, level: float) -> tuple[Floats, float]:
    """The nearest values >= 0 with the given total: max(values - level, 0), the level by Newton's method."""
    # The sum falls convexly in the level, so steps from the left never overshoot; one step gets there from the right.
    for _ in range(100):
        moved = np.maximum(values - level, 0.0)
        count = int(np.count_nonzero(moved))
        if not count:
            level = float(values.max()) - total / values.size
            continue
        excess = float(moved.sum()) - total
        if abs(excess) <= 1e-12 * max(total, 1e-300):
            break
        level += excess / count
    return moved, level

"""Marginals moved to where the truth must lie: no count below zero, any two tables in agreement."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from farthing.errors import InvalidValue
from farthing.inference.marginals import (
    Subset,
    Tables,
    checked_tables,
    consistent_residuals,
    from_residuals,
)

_ROUNDS = 2_000
_CLOSE = 1e-3  # the last repair may move the tables by this much of what the projection moved them


def nonnegative_marginals(tables: Mapping[Subset, ArrayLike], total: float | None = None) -> Tables:
    """The nearest consistent tables without a negative cell, in the sum of squares over all cells of all tables.

    With `total` (a public fact, or what another release told) every table is given that total.

    Statement:
        Let C be the consistent families of tables >= 0 (with the total, if one is given): a convex cone. The point
        p(z) of C nearest to z is the projection P(z + u) onto the consistent families, for the multipliers u >= 0 that
        make |P(z + u)|^2 least. For every x in C, |p(z) - x| <= |z - x|.
    Source: Rockafellar & Wets, Variational Analysis (1998), Corollary 12.20 (projections are nonexpansive); the dual is
        minimised by accelerated projected gradient steps of length one (Beck & Teboulle, SIAM J. Imaging Sci. 2,
        2009), which start anew when they overshoot (O'Donoghue & Candes, arXiv:1204.3982).
    Assumes: finite tables; the true tables have the total, if one is given.
    Direction: ends within a thousandth of the way from z to p(z), and then mixes in as much of the even table as makes
        the last cell non-negative; so tables are consistent and >= 0 exactly, and nearest up to that thousandth.
    Checked by: tests/theorems/test_residual_projection.py

    >>> tables = {(0, 1): [[4.0, -1.0], [2.0, 5.0]], (1, 2): [[6.5, 0.5], [3.0, 0.0]]}
    >>> found = nonnegative_marginals(tables)
    >>> found[(0, 1)].round(2), bool(np.allclose(found[(0, 1)].sum(axis=0), found[(1, 2)].sum(axis=1)))
    (array([[4.25, 0.  ], [2.25, 4.33]]), True)
    """
    arrays, sizes = checked_tables(tables)
    if total is not None and not 0 <= total < math.inf:
        raise InvalidValue("total", total, "must be a finite number >= 0")

    def consistent(near: Tables) -> Tables:
        residuals = consistent_residuals(near, sizes)
        if total is not None:
            residuals[()] = np.asarray(float(total))
        return {subset: from_residuals(sizes, residuals, subset) for subset in arrays}

    start = consistent(arrays)
    pull: Tables = {subset: np.zeros_like(table) for subset, table in arrays.items()}
    ahead, speed, found = pull, 1.0, start
    for round_ in range(_ROUNDS):
        found = consistent({subset: start[subset] + ahead[subset] for subset in arrays})
        if round_ % 5 == 0:
            whole = float(next(iter(found.values())).sum())
            length, enough = _distance(found, None), _CLOSE * _distance(found, start)
            if length <= enough or (whole > 0 and _repair(found, whole) * length <= enough):
                break
        following = {subset: np.maximum(ahead[subset] - found[subset], 0.0) for subset in arrays}
        # Momentum that points uphill is dropped.
        uphill = sum(float(np.vdot(ahead[s] - following[s], following[s] - pull[s])) for s in arrays) > 0
        faster = 1.0 if uphill else (1.0 + math.sqrt(1.0 + 4.0 * speed * speed)) / 2.0
        gain = 0.0 if uphill else (speed - 1.0) / faster
        ahead = {s: following[s] + gain * (following[s] - pull[s]) for s in arrays}
        pull, speed = following, faster
    whole = float(next(iter(found.values())).sum())
    if not whole > 0 or _distance(found, None) <= _CLOSE * _distance(found, start):
        return {subset: np.zeros_like(table) for subset, table in arrays.items()}
    share = _repair(found, whole)
    mixed = {s: (1.0 - share) * table + share * whole / table.size for s, table in found.items()}
    return {
        subset: np.maximum(table, 0.0) for subset, table in mixed.items()
    }  # takes out rounding below zero


def _repair(tables: Tables, total: float) -> float:
    """How much of the even table must be mixed in so that no cell is negative."""
    lowest = ((float(table.min()), total / table.size) for table in tables.values())
    return max((-low / (even - low) for low, even in lowest if low < 0), default=0.0)


def _distance(tables: Tables, others: Tables | None) -> float:
    pairs = ((table, 0.0 if others is None else others[subset]) for subset, table in tables.items())
    return math.sqrt(sum(float(np.sum((table - other) ** 2)) for table, other in pairs))

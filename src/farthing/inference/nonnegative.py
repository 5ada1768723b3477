"""Estimates moved to where the truth must lie: not below zero, adding up to what is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from farthing.errors import InvalidValue
from farthing.inference.least_squares import LeastSquares
from farthing.inference.terms import Floats


def nearest_nonnegative(values: ArrayLike, total: float | None = None, variances: ArrayLike = 1.0) -> Floats:
    """The nearest numbers >= 0, with the given total if there is one; near counts in units of the variances.

    Statement:
        Let C be convex and closed, p(y) the point of C nearest to y in the norm |z|^2 = sum z_i^2 / variance_i. For
        every x in C, |p(y) - x| <= |y - x|. So if the truth lies in C, projection never moves further from it.
    Source: Rockafellar & Wets, Variational Analysis (1998), Corollary 12.20 (projections are nonexpansive), with
        p(x) = x.
    Assumes: the truth is >= 0 and has the total, if one is given.
    Direction: the error in that norm never grows, beyond rounding.
    Checked by: tests/theorems/test_projections.py

    >>> nearest_nonnegative([5.0, 3.0, -2.0])
    array([5., 3., 0.])
    >>> nearest_nonnegative([5.0, 3.0, -2.0], total=6.0)
    array([4., 2., 0.])
    """
    raw = _finite(values)
    spread = np.broadcast_to(np.asarray(variances, dtype=float), raw.shape)
    if not (np.all(spread > 0) and np.all(np.isfinite(spread))):
        raise InvalidValue("variances", variances, "must be finite numbers > 0")
    if total is None:
        return np.maximum(raw, 0.0)
    if not 0 <= total < np.inf:
        raise InvalidValue("total", total, "must be a finite number >= 0")
    if not len(raw):
        return raw
    if total == 0:
        return np.zeros_like(raw)
    # Values come down by level * variance and stop at zero: the first to stop is the one with the least ratio.
    ratio = raw / spread
    order = np.argsort(-ratio)
    levels = (np.cumsum(raw[order]) - total) / np.cumsum(spread[order])
    last = int(np.flatnonzero(ratio[order] >= levels)[-1])
    moved = np.maximum(raw - levels[last] * spread, 0.0)
    if not moved.sum() > 0:  # a total lost in the rounding of much larger values
        moved[order[0]] = total
        return np.asarray(moved)
    return np.asarray(moved * (total / moved.sum()))  # takes out what rounding left


def nonnegative_cells(plan: LeastSquares, measured: list[ArrayLike]) -> Floats:
    """The cells >= 0 that fit measurements of several partitions best, each in units of its variance.

    Totals are sums of these cells, so they agree with their parts. The fit is the projection of the least-squares
    estimate onto x >= 0 in the norm that its covariance defines; `nearest_nonnegative` says why that never hurts.

    >>> plan = LeastSquares((np.zeros(2, int), np.arange(2)), (1.0, 1.0))
    >>> nonnegative_cells(plan, [np.array([10.0]), np.array([14.0, -3.0])])
    array([12., 0.])
    """
    from scipy.optimize import nnls

    design, weights = plan._design
    numbers = np.concatenate([_finite(values) for values in measured])
    if len(numbers) != len(weights):
        raise InvalidValue("measured", len(numbers), f"must be {len(weights)} numbers in all")
    root = np.sqrt(weights)
    scale = max(1.0, float(np.max(np.abs(numbers), initial=0.0)))
    cells, _ = nnls(design * root[:, None], numbers * root / scale, maxiter=30 * design.shape[1] + 100)
    return np.asarray(cells * scale)


def _finite(values: ArrayLike) -> Floats:
    raw = np.atleast_1d(np.asarray(values, dtype=float)).reshape(-1)
    if not np.all(np.isfinite(raw)):
        raise InvalidValue("values", "an array", "must be finite")
    return raw

"""Answers that must not fall: cumulative counts and shares, quantiles in order."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from farthing.errors import InvalidValue
from farthing.inference.terms import Floats

_MANY = 10_000


def nearest_increasing(
    values: ArrayLike, variances: ArrayLike = 1.0, least: float = -math.inf, most: float = math.inf
) -> Floats:
    """The nearest sequence that never falls and stays within [least, most]; near counts in units of the variances.

    Statement:
        The least-squares fit among non-decreasing sequences is found by pooling neighbours that are out of order, and
        the fit among those within [least, most] as well is the first one clipped. Both are projections onto convex
        sets, so a truth that lies in the set is never further away afterwards.
    Source: Barlow, Bartholomew, Bremner & Brunk, Statistical Inference under Order Restrictions (1972), sections
        1.2 (pooling) and 2.1 (bounds).
    Assumes: the truth does not fall and lies within the bounds.
    Direction: the error in that norm never grows, beyond rounding.
    Checked by: tests/theorems/test_projections.py

    >>> nearest_increasing([1.0, 3.0, 2.0, 7.0, 11.0], most=10.0)
    array([ 1. , 2.5, 2.5, 7. , 10. ])
    """
    raw = np.atleast_1d(np.asarray(values, dtype=float)).reshape(-1)
    if not np.all(np.isfinite(raw)):
        raise InvalidValue("values", "an array", "must be finite")
    spread = np.broadcast_to(np.asarray(variances, dtype=float), raw.shape)
    if not (np.all(spread > 0) and np.all(np.isfinite(spread))):
        raise InvalidValue("variances", variances, "must be finite numbers > 0")
    if not least <= most:
        raise InvalidValue("least", least, f"must be at most most={most}")
    return np.clip((_pooled if len(raw) < _MANY else _pooled_at_once)(raw, 1.0 / spread), least, most)


def _pooled(values: Floats, weights: Floats) -> Floats:
    """Pool adjacent violators: blocks kept on a stack, each with its mean, weight and length."""
    means: list[float] = []
    totals: list[float] = []
    lengths: list[int] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, total, length = value, weight, 1
        while means and means[-1] > mean:
            joined = totals[-1] + total
            mean = (means.pop() * totals.pop() + mean * total) / joined
            total, length = joined, length + lengths.pop()
        means.append(mean)
        totals.append(total)
        lengths.append(length)
    return np.repeat(means, lengths)


def _pooled_at_once(values: Floats, weights: Floats) -> Floats:
    """The same by a compiled routine, which takes longer to be loaded than a short sequence does to be pooled."""
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(values, weights=weights).x)

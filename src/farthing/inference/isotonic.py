"""Answers that must not fall: cumulative counts and shares, quantiles in order."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from farthing.errors import InvalidValue
from farthing.inference.noise_terms import Floats

_MANY = 10_000


def nearest_increasing(
    values: ArrayLike, variances: ArrayLike = 1.0, least: float = -math.inf, most: float = math.inf
) -> Floats:
    """The nearest sequence that never falls and stays within [least, most]; near counts in units of the variances.

    Args:
        values: The numbers to begin with.
        variances: The variance of each, or one for all.
        least: The least that a number may be.
        most: The most that a number may be.

    Returns:
        The increasing numbers.

    Raises:
        InvalidValue: If a value is not finite, a variance is not > 0, or `least` is above `most`.

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


Product = Callable[[Floats], Floats]
_LEAST_WEIGHT = 1e-9


def nearest_increasing_in_norm(
    values: ArrayLike,
    precision: Product,
    weights: ArrayLike,
    *,
    tolerance: float = 1e-9,
    most_steps: int = 500,
) -> Floats:
    """The sequence x that never falls with the least (x - values)' L (x - values), for a product `precision(x)` = L x.

    Args:
        values: The numbers to begin with.
        precision: Maps x to L x.
        weights: The diagonal of L. Where it is zero nothing pulls, and the numbers stay between their neighbours.
        tolerance: How far, relatively, the last step may still have moved.
        most_steps: After how many steps to stop.

    Returns:
        The increasing numbers.

    Raises:
        InvalidValue: If a value is not finite, or the weights are not finite numbers >= 0.

    Statement:
        The minimiser is the projection of `values` onto the sequences that never fall, in the seminorm of L, so a truth
        that never falls is not further away in it afterwards. Each step goes down the gradient in units of
        `weights`, adds momentum, and pools what is out of order with the same weights.
    Source: Beck & Teboulle, SIAM J. Imaging Sciences 2 (2009) 183-202, Theorem 4.4, in the norm of the weights, where
        the nearest increasing sequence is `nearest_increasing`; momentum restarts when it points uphill (O'Donoghue
        & Candes, arXiv:1204.3982v1, section 3.2).
    Assumes: L symmetric, no eigenvalue below zero.
    Direction: stops when a step moves nothing by more than `tolerance` of the distance; if `most_steps` are not enough,
        the last sequence is returned, which never falls all the same.
    Checked by: tests/theorems/test_projections_in_norms.py

    >>> L = np.array([[2.0, -1.0, -1.0], [-1.0, 2.0, -1.0], [-1.0, -1.0, 2.0]])
    >>> nearest_increasing_in_norm([0.0, 3.0, 1.0], lambda x: L @ x, np.diag(L)).round(6)
    array([0., 2., 2.])
    """
    goal = np.asarray(values, dtype=float).reshape(-1)
    own = np.asarray(weights, dtype=float).reshape(-1)
    if not np.all(np.isfinite(goal)):
        raise InvalidValue("values", "an array", "must be finite")
    if own.shape != goal.shape or not (np.all(own >= 0) and np.all(np.isfinite(own)) and np.any(own > 0)):
        raise InvalidValue("weights", "an array", "must be finite numbers >= 0, one for each value, not all 0")
    units = np.maximum(own, _LEAST_WEIGHT * own.max())
    pooled = _pooled_at_once(goal, units)
    if np.array_equal(pooled, goal):
        return pooled
    steepest = _steepest(precision, units)
    ahead, momentum = pooled, 1.0
    for _ in range(most_steps):
        gradient = precision(ahead - goal)
        after = _pooled_at_once(ahead - gradient / (steepest * units), units)
        moved = after - pooled
        if np.sum(units * (ahead - after) * moved) > 0:
            ahead, momentum = after, 1.0
        else:
            grown = (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
            ahead, momentum = after + (momentum - 1.0) / grown * moved, grown
        pooled = after
        distance = float(np.sum(units * (pooled - goal) ** 2))
        if float(np.sum(units * moved * moved)) <= tolerance**2 * distance:
            break
    return pooled


def _steepest(precision: Product, units: Floats) -> float:
    """The largest eigenvalue of L in the given units, with a little to spare, by the power method."""
    vector = np.cos(np.arange(len(units), dtype=float))
    steepest = 1.0
    for _ in range(30):
        vector = vector / np.sqrt(np.sum(units * vector * vector))
        image = precision(vector) / units
        steepest = float(np.sqrt(np.sum(units * image * image)))
        if not steepest > 0:
            return 1.0
        vector = image
    return 1.05 * steepest

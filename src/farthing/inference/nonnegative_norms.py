"""Estimates moved to where no cell is below zero, near in the norm of the measurements that they come from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from farthing.errors import InvalidValue
from farthing.inference.terms import Floats

Product = Callable[[Floats], Floats]


def nonnegative_in_norm(
    values: ArrayLike,
    precision: Product,
    diagonal: ArrayLike | None = None,
    *,
    start: ArrayLike | None = None,
    tolerance: float = 1e-8,
    most_steps: int = 20_000,
) -> Floats:
    """The numbers x >= 0 with the least (x - values)' H (x - values), for a product `precision(x)` = H x.

    With H = A' V^-1 A and `values` the least-squares cells, these are the cells >= 0 that fit the measurements best.
    `diagonal` is that of H, or about that, and `start` a guess: both only make the work shorter. For a tree,
    `RegularTree.nonnegative` is exact and many times faster.

    Statement:
        x is the solution exactly when x >= 0, g = H (x - values) is >= 0 where x = 0, and g = 0 where x > 0. It is the
        projection of `values` in the norm of H, so a truth >= 0 is never further away in that norm afterwards.
    Source: Dostal & Schoberl, Computational Optimization and Applications 30 (2005) 23-43, Theorem 3.1: conjugate
        gradients on the cells that are free, cells set free in proportion to what pulls them.
    Departs from source: where a step reaches the bounds, the whole step is projected if that lowers the distance.
    Assumes: H symmetric and positive definite; the truth is >= 0.
    Direction: stops when what violates the conditions is `tolerance` of the distance in that norm, or rounding; no
        step raises the distance, and if `most_steps` are not enough the best point so far is returned, which is >= 0
        all the same.
    Checked by: tests/theorems/test_projections_in_norms.py

    >>> H = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> nonnegative_in_norm([14.0, -3.0], lambda x: H @ x).round(6)
    array([12.5, 0. ])
    """
    goal = np.asarray(values, dtype=float).reshape(-1)
    if not np.all(np.isfinite(goal)):
        raise InvalidValue("values", "an array", "must be finite")
    scale = np.ones_like(goal) if diagonal is None else np.asarray(diagonal, dtype=float).reshape(-1)
    if scale.shape != goal.shape or not (np.all(scale > 0) and np.all(np.isfinite(scale))):
        raise InvalidValue("diagonal", "an array", "must be finite numbers > 0, one for each value")
    first = np.maximum(goal if start is None else np.asarray(start, dtype=float).reshape(-1), 0.0)
    if np.array_equal(first, goal):
        return np.asarray(first)
    unit = 1.0 / np.sqrt(scale)  # in these units, H has about ones on its diagonal

    def scaled(vector: Floats) -> Floats:
        return unit * precision(unit * vector)

    found = _descended(scaled, goal / unit, first / unit, tolerance, most_steps)
    return np.asarray(found * unit)


def _descended(times: Product, goal: Floats, found: Floats, tolerance: float, most_steps: int) -> Floats:
    shortest = 1.0 / _largest_eigenvalue(times, len(goal))
    rounding = 1e-15 * _length(times(goal))
    gradient = times(found - goal)
    along = np.where(found > 0, gradient, 0.0)
    for _ in range(most_steps):
        free = found > 0
        pull = np.where(free, gradient, 0.0)
        release = np.where(free, 0.0, np.minimum(gradient, 0.0))  # cells at zero that want to rise
        bounded = np.minimum(found / shortest, pull)  # as far as cells can go down
        enough = max(rounding, tolerance * np.sqrt(max(0.0, _dot(found - goal, gradient))))
        if np.sqrt(_dot(bounded, bounded) + _dot(release, release)) <= enough:
            break
        if _dot(release, release) > _dot(bounded, pull):
            bent = times(release)
            step = _dot(gradient, release) / _dot(release, bent)
            found, gradient = found - step * release, gradient - step * bent
            along = np.where(found > 0, gradient, 0.0)
            continue
        bent = times(along)
        curvature = _dot(along, bent)
        if not curvature > 0:  # only rounding is left
            break
        step = _dot(gradient, along) / curvature
        sinking = along > 0
        room = float(np.min(found[sinking] / along[sinking])) if np.any(sinking) else np.inf
        if step <= room:
            found, gradient = np.maximum(found - step * along, 0.0), gradient - step * bent
            pull = np.where(found > 0, gradient, 0.0)
            along = pull - (_dot(pull, bent) / curvature) * along
        else:
            found, gradient = _bounded_step(times, found, gradient, along, bent, step, room, shortest)
            along = np.where(found > 0, gradient, 0.0)
    return found


def _bounded_step(
    times: Product,
    found: Floats,
    gradient: Floats,
    along: Floats,
    bent: Floats,
    step: float,
    room: float,
    shortest: float,
) -> tuple[Floats, Floats]:
    """A step that reaches zero for some cells: projected as a whole, or up to there and then a short one."""
    tried = np.maximum(found - step * along, 0.0)
    change = tried - found
    curved = times(change)
    # Half the squared distance changes by exactly this; no difference of large numbers is taken.
    if _dot(gradient, change) + 0.5 * _dot(change, curved) < 0:
        return tried, gradient + curved
    edge, there = np.maximum(found - room * along, 0.0), gradient - room * bent
    tried = np.maximum(edge - shortest * np.where(edge > 0, there, 0.0), 0.0)
    return tried, there + times(tried - edge)


def _largest_eigenvalue(times: Product, size: int) -> float:
    """The largest eigenvalue, with a little to spare, by the power method from a fixed start."""
    vector = 1.0 + np.cos(np.arange(size, dtype=float))
    found = 1.0
    for _ in range(20):
        vector = vector / _length(vector)
        image = times(vector)
        found, vector = _length(image), image
    return 1.1 * found


def _dot(one: Floats, other: Floats) -> float:
    # Not the library's own product: it starts threads for long vectors, which costs more than it saves here.
    return float(np.sum(one * other))


def _length(vector: Floats) -> float:
    return float(np.sqrt(_dot(vector, vector)))

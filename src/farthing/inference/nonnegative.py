"""Estimates moved to where no cell is below zero, near in the norm of the measurements that they come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from farthing.errors import InvalidValue
from farthing.inference.least_squares import LeastSquares
from farthing.inference.noise_terms import Floats


def nearest_nonnegative(values: ArrayLike, total: float | None = None, variances: ArrayLike = 1.0) -> Floats:
    """The nearest numbers >= 0, with the given total if there is one; near counts in units of the variances.

    Args:
        values: The numbers to begin with.
        total: Their sum, where it is known.
        variances: The variance of each, or one for all.

    Returns:
        The numbers, each >= 0.

    Raises:
        InvalidValue: If a number is not finite, a variance is not > 0, or `total` is negative.

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

    Args:
        plan: Which cells were measured together, and with how much noise.
        measured: One array of measured numbers for each partition of the plan.

    Returns:
        The cells, each >= 0.

    Raises:
        InvalidValue: If there are more or fewer numbers than parts.

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


Projection = Callable[[Floats], Floats]


def nearest_in_all(
    values: ArrayLike,
    projections: Sequence[Projection],
    *,
    tolerance: float = 1e-12,
    most_rounds: int = 10_000,
) -> Floats:
    """The point nearest to `values` that lies in every set; each set is given by its own nearest point.

    Args:
        values: The point to begin with.
        projections: For each set a function from a point to the nearest point of the set; all must measure distance in
            the same norm.
        tolerance: How far, relatively, the last round may still have moved the point.
        most_rounds: After how many rounds over all sets to give up.

    Returns:
        The nearest point.

    Raises:
        InvalidValue: If a value is not finite, or the rounds are not enough.

    Statement:
        Going round the sets, each time adding back what the last projection onto the same set took away, leads to the
        projection onto their intersection. A truth in all of the sets is therefore never further away afterwards.
    Source: Boyle & Dykstra, "A method for finding projections onto the intersection of convex sets in Hilbert
        spaces", Lecture Notes in Statistics 37 (1986) 28-47, Theorem 2.
    Assumes: closed convex sets with a point in common; projections in one norm.
    Direction: stops when a round moves no number by more than `tolerance` of the largest; refused when that does
        not happen within `most_rounds`, as for sets without a common point.
    Checked by: tests/theorems/test_projections_in_norms.py

    >>> from farthing.inference import nearest_increasing, nearest_nonnegative
    >>> nearest_in_all([5.0, -1.0, 2.0], [nearest_increasing, lambda x: nearest_nonnegative(x, total=6.0)])
    array([2., 2., 2.])
    """
    point = np.asarray(values, dtype=float).reshape(-1).copy()
    if not np.all(np.isfinite(point)):
        raise InvalidValue("values", "an array", "must be finite")
    corrections = [np.zeros_like(point) for _ in projections]
    for _ in range(most_rounds):
        moved = 0.0
        for place, projection in enumerate(projections):
            target = point + corrections[place]
            nearest = np.asarray(projection(target), dtype=float).reshape(-1)
            # What a set takes away settles last: while it still changes, the round is not the last one.
            moved = max(moved, float(np.abs(target - nearest - corrections[place]).max(initial=0.0)))
            corrections[place] = target - nearest
            point = nearest
        if moved <= tolerance * max(1.0, float(np.abs(point).max(initial=0.0))):
            return point
    raise InvalidValue(
        "most_rounds", most_rounds, "is not enough for these sets", "check that they have a point in common"
    )


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
    For a tree, `RegularTree.nonnegative` is exact and many times faster.

    Args:
        values: The numbers to begin with.
        precision: Maps x to H x.
        diagonal: The diagonal of H, or about that; it only makes the work shorter.
        start: A first guess; it only makes the work shorter.
        tolerance: How far, relatively, the answer may be from the best one.
        most_steps: After how many steps to stop.

    Returns:
        The numbers, each >= 0.

    Raises:
        InvalidValue: If a value is not finite, or the diagonal is not finite numbers > 0.

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

    point = _descended(scaled, goal / unit, first / unit, tolerance, most_steps)
    return np.asarray(point * unit)


def _descended(times: Product, goal: Floats, point: Floats, tolerance: float, most_steps: int) -> Floats:
    shortest = 1.0 / _largest_eigenvalue(times, len(goal))
    rounding = 1e-15 * _length(times(goal))
    gradient = times(point - goal)
    along = np.where(point > 0, gradient, 0.0)
    for _ in range(most_steps):
        free = point > 0
        pull = np.where(free, gradient, 0.0)
        release = np.where(free, 0.0, np.minimum(gradient, 0.0))  # cells at zero that want to rise
        bounded = np.minimum(point / shortest, pull)  # as far as cells can go down
        enough = max(rounding, tolerance * np.sqrt(max(0.0, _dot(point - goal, gradient))))
        if np.sqrt(_dot(bounded, bounded) + _dot(release, release)) <= enough:
            break
        if _dot(release, release) > _dot(bounded, pull):
            bent = times(release)
            step = _dot(gradient, release) / _dot(release, bent)
            point, gradient = point - step * release, gradient - step * bent
            along = np.where(point > 0, gradient, 0.0)
            continue
        bent = times(along)
        curvature = _dot(along, bent)
        if not curvature > 0:  # only rounding is left
            break
        step = _dot(gradient, along) / curvature
        sinking = along > 0
        room = float(np.min(point[sinking] / along[sinking])) if np.any(sinking) else np.inf
        if step <= room:
            point, gradient = np.maximum(point - step * along, 0.0), gradient - step * bent
            pull = np.where(point > 0, gradient, 0.0)
            along = pull - (_dot(pull, bent) / curvature) * along
        else:
            point, gradient = _bounded_step(times, point, gradient, along, bent, step, room, shortest)
            along = np.where(point > 0, gradient, 0.0)
    return point


def _bounded_step(
    times: Product,
    point: Floats,
    gradient: Floats,
    along: Floats,
    bent: Floats,
    step: float,
    room: float,
    shortest: float,
) -> tuple[Floats, Floats]:
    """A step that reaches zero for some cells: projected as a whole, or up to there and then a short one."""
    tried = np.maximum(point - step * along, 0.0)
    change = tried - point
    curved = times(change)
    # Half the squared distance changes by exactly this; no difference of large numbers is taken.
    if _dot(gradient, change) + 0.5 * _dot(change, curved) < 0:
        return tried, gradient + curved
    edge, there = np.maximum(point - room * along, 0.0), gradient - room * bent
    tried = np.maximum(edge - shortest * np.where(edge > 0, there, 0.0), 0.0)
    return tried, there + times(tried - edge)


def _largest_eigenvalue(times: Product, size: int) -> float:
    """The largest eigenvalue, with a little to spare, by the power method from a fixed start."""
    vector = 1.0 + np.cos(np.arange(size, dtype=float))
    eigenvalue = 1.0
    for _ in range(20):
        vector = vector / _length(vector)
        image = times(vector)
        eigenvalue, vector = _length(image), image
    return 1.1 * eigenvalue


def _dot(one: Floats, other: Floats) -> float:
    # Not the library's own product: it starts threads for long vectors, which costs more than it saves here.
    return float(np.sum(one * other))


def _length(vector: Floats) -> float:
    return float(np.sqrt(_dot(vector, vector)))

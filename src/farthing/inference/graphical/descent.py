"""Quasi-Newton descent for smooth convex functions whose curvature is nearly diagonal."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from farthing.inference.terms import Floats

_MEMORY = 8
_DECREASE = 1e-4  # of what the slope promises, Armijo's rule
_SHORTEST = 1e-8

State = TypeVar("State")


class Point(NamedTuple, Generic[State]):
    """Where a descent stands."""

    place: Floats
    value: float
    gradient: Floats
    state: State  # whatever the function found on the way


def descent(
    function: Callable[[Floats], Point[State]],
    start: Point[State],
    diagonal: Floats,
    enough: Callable[[Point[State]], bool],
    steps: int,
) -> tuple[Point[State], int]:
    """Go down from `start` until `enough`; the last point and the number of steps, `steps + 1` if it never was enough.

    Limited-memory BFGS (Nocedal & Wright, Numerical Optimization, 2006, Algorithm 7.5) from the given diagonal.

    >>> import numpy as np
    >>> scale = np.array([1.0, 100.0, 3.0])
    >>> def bowl(x): return Point(x, float(scale @ x**2 / 2 - x.sum()), scale * x - 1, None)
    >>> last, steps = descent(bowl, bowl(np.zeros(3)), scale, lambda point: np.abs(point.gradient).max() < 1e-9, 9)
    >>> last.place * scale, steps
    (array([1., 1., 1.]), 1)
    """
    here = start
    pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=_MEMORY)
    for step in range(1, steps + 1):
        way = -_scaled(here.gradient, pairs, diagonal)
        slope = float(way @ here.gradient)
        if not slope < 0:
            return here, step  # a gradient of nothing but rounding
        length = 1.0
        following = function(here.place + way)
        while not following.value <= here.value + _DECREASE * length * slope + 1e-12 * abs(here.value):
            length *= 0.3
            if length < _SHORTEST:
                return here, steps + 1
            following = function(here.place + length * way)
        moved, turned = following.place - here.place, following.gradient - here.gradient
        curvature = float(moved @ turned)
        if curvature > 1e-12 * float(moved @ (diagonal * moved)):
            pairs.append((moved, turned, curvature))
        here = following
        if enough(here):
            return here, step
    return here, steps + 1


def _scaled(gradient: Floats, pairs: deque[tuple[Floats, Floats, float]], diagonal: Floats) -> Floats:
    """The gradient times the approximate inverse of the curvature."""
    found, shares = gradient.copy(), []
    for moved, turned, curvature in reversed(pairs):
        shares.append(float(moved @ found) / curvature)
        found -= shares[-1] * turned
    if pairs:
        _, turned, curvature = pairs[-1]
        found *= curvature / float(turned @ (turned / diagonal))
    found /= diagonal
    for (moved, turned, curvature), share in zip(pairs, reversed(shares), strict=True):
        found += moved * (share - float(turned @ found) / curvature)
    return found

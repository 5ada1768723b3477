"""Whole numbers that still add up: every number moves by less than one, every total by less than one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farthing.errors import InvalidValue

Whole = NDArray[np.int64]
_NEARLY = 1e-9


def rounded(values: ArrayLike, total: int | None = None) -> Whole:
    """Whole numbers with the given total that are nearest to `values`.

    All are rounded down, then as many as the total asks for are rounded up, largest remainder first; the first among
    equals first, so that the result depends on nothing but the numbers. Numbers >= 0 stay >= 0.

    Args:
        values: The numbers to round.
        total: What they add up to afterwards; their rounded sum by default.

    Returns:
        The whole numbers.

    Raises:
        InvalidValue: If a value is not finite and below 2^53, or no rounding has that total.

    >>> rounded([1.5, 2.5, 0.25, 5.75])
    array([2, 2, 0, 6])
    >>> rounded([1 / 3, 1 / 3, 1 / 3])
    array([1, 0, 0])
    """
    raw = np.atleast_1d(np.asarray(values, dtype=float)).reshape(-1)
    if not (np.all(np.isfinite(raw)) and np.all(np.abs(raw) < 2**53)):
        raise InvalidValue("values", "an array", "must be finite and below 2^53")
    floor: Whole = np.floor(raw + _NEARLY).astype(np.int64)
    goal = math.floor(math.fsum(raw.tolist()) + 0.5) if total is None else int(total)
    missing = goal - int(floor.sum())
    if not 0 <= missing <= len(raw):
        raise InvalidValue("total", total, "must be within one for each number of their sum")
    floor[_largest(raw - floor, missing)] += 1
    return floor


def _largest(remainders: NDArray[np.float64], count: int) -> Whole:
    """The places of the `count` largest remainders, the first among equals first, without sorting them all."""
    if not 0 < count < len(remainders):
        return np.arange(min(count, len(remainders)))
    least = np.partition(remainders, len(remainders) - count)[len(remainders) - count]
    above = np.flatnonzero(remainders > least)
    return np.concatenate([above, np.flatnonzero(remainders == least)[: count - len(above)]])


def rounded_tree(parents: ArrayLike, values: ArrayLike) -> Whole:
    """Whole numbers on a tree in which every node is the sum of its children, before and after.

    From the top down, the children of a node are rounded to add up to what the node was rounded to, so every number
    moves by less than one.

    Args:
        parents: `parents[i] < i` is the parent of node i, -1 for a root.
        values: One number for each node; a node's is the sum of its children's.

    Returns:
        One whole number for each node.

    Raises:
        InvalidValue: If a child comes before its parent, or the values do not add up.

    >>> rounded_tree([-1, 0, 0, 2, 2], [4.6, 1.2, 3.4, 1.7, 1.7])
    array([5, 1, 4, 2, 2])
    """
    above = np.asarray(parents, dtype=np.int64)
    raw = np.asarray(values, dtype=float)
    if above.shape != raw.shape or above.ndim != 1:
        raise InvalidValue("values", raw.shape, f"must be one number for each of the {above.size} nodes")
    if not (np.all(above < np.arange(len(above))) and np.all(above >= -1)):
        raise InvalidValue("parents", parents, "must each come before their children", "number nodes from the root")
    sums = np.zeros_like(raw)
    np.add.at(sums, above[above >= 0], raw[above >= 0])
    inner = np.unique(above[above >= 0])
    if not np.allclose(sums[inner], raw[inner], rtol=1e-9, atol=1e-6):
        raise InvalidValue(
            "values",
            "an array",
            "must add up: each node the sum of its children",
            "use tree_least_squares first",
        )
    raw = raw.copy()
    raw[inner] = 0.0
    # Sums again from the leaves, so that they are equal to the last digit.
    for node in range(len(raw) - 1, -1, -1):
        if above[node] >= 0:
            raw[above[node]] += raw[node]
    whole = np.floor(raw + 0.5).astype(np.int64)  # the roots; all others are written over
    order = np.argsort(above, kind="stable")
    for family in np.split(order, np.flatnonzero(np.diff(above[order])) + 1):
        # In the order of the parents, which come before their children.
        if len(family) and above[family[0]] >= 0:
            whole[family] = rounded(raw[family], int(whole[above[family[0]]]))
    return whole

"""Values of a column taken together, where each of them is too rare for the noise that its cells would carry.

Only neighbouring values are merged: for numbers and dates that keeps alike values together, and for categories, whose
order says nothing, it does no harm. All of it is computed from noisy numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

_FEW = 512


def grouped(counts: Floats, groups: int) -> Places:
    """For each value the group it belongs to, at most `groups` in all: rare neighbours are merged, the rarest first.

    >>> grouped(np.array([900.0, 3, 4, 500, 2, 1, 1, 700]), 5)
    array([0, 1, 1, 2, 3, 3, 3, 4])
    >>> grouped(np.array([5.0, 5.0]), 5)
    array([0, 1])
    """
    places = np.arange(len(counts))
    if len(counts) > _FEW:  # first to some hundreds by cumulated counts: merging one by one is slow
        weights = np.maximum(counts, 0) + 1e-9
        heavy = weights > weights.sum() / _FEW
        ends = np.cumsum(np.where(heavy, 0.0, weights))
        slots = (ends / max(float(ends[-1]), 1e-300) * _FEW).astype(np.int64)
        begins = heavy | np.append(False, heavy[:-1]) | (np.diff(slots, prepend=-1) > 0)
        places = np.cumsum(begins) - 1
    sums = np.bincount(places, np.maximum(counts, 0)).tolist()
    firsts = list(range(len(sums)))
    while len(sums) > max(groups, 1):
        rarest = int(np.argmin(np.array(sums[:-1]) + np.array(sums[1:])))
        sums[rarest] += sums.pop(rarest + 1)
        firsts.pop(rarest + 1)
    return np.asarray(np.searchsorted(firsts, places, side="right") - 1, dtype=np.int64)


def common_groups(one: Places, other: Places) -> Places:
    """For each group of `one` its place in the finest grouping that both groupings add up to.

    >>> common_groups(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 2, 3]))
    array([0, 0, 1])
    """
    joined = np.arange(int(one.max()) + 1)
    while True:
        # The least group that shares a value of `other` with a group, until nothing changes any more.
        least = np.full(int(other.max()) + 1, len(joined))
        np.minimum.at(least, other, joined[one])
        spread = joined.copy()
        np.minimum.at(spread, one, least[other])
        spread = spread[spread]
        if np.array_equal(spread, joined):
            return np.asarray(np.unique(joined, return_inverse=True)[1], dtype=np.int64)
        joined = spread


def summed(table: NDArray[Any], places: tuple[Places, ...]) -> NDArray[Any]:
    """A table whose axes are added up by the places of their values.

    >>> summed(np.array([[1, 2, 3], [4, 5, 6]]), (np.array([0, 1]), np.array([0, 0, 1])))
    array([[3, 3],
           [9, 6]])
    """
    shape = tuple(int(part.max()) + 1 for part in places)
    cells = np.zeros((), dtype=np.int64)
    for part, size in zip(places, shape, strict=True):
        cells = cells[..., None] * size + part
    # Sums of whole numbers below 2^53 are exact in floats.
    sums = np.bincount(cells.reshape(-1), table.reshape(-1), math.prod(shape))
    return np.asarray(sums.astype(table.dtype).reshape(shape))


def projected(noisy: Floats, total: float) -> Floats:
    """The nearest numbers that are not negative and add up to `total` (Euclidean projection).

    >>> projected(np.array([7.0, -2.0, 4.0]), 9.0)
    array([6., 0., 3.])
    """
    if not total > 0:
        return np.zeros(len(noisy))
    falling = np.sort(noisy)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(noisy) + 1)
    return np.asarray(np.maximum(noisy - excess[np.flatnonzero(falling > excess)[-1]], 0.0))

"""Counts that are counts: none below zero, totals that agree with their parts, whole numbers; and nothing else moved.

Noise can make a count negative. Setting it to zero by itself would leave a total that differs from the sum of its
parts; taking the excess from every other cell would push large counts down. Here a count that is below zero gives its
excess to cells near zero that are parts of the same totals. Where nothing is negative, nothing moves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from farthing.inference import nearest_nonnegative, rounded

Places = NDArray[np.int64]

NEAR = 3.0
"""Cells up to this many standard deviations of their noise are near zero."""


def settled_cells(cells: NDArray[np.int64], members: Sequence[Places], deviation: float) -> NDArray[np.int64]:
    """The cells of a slot, moved so that no count that is a sum of them is negative.

    `members` is, for each statistic, the place of every cell in it, -1 for none. Statistics without a negative count
    keep all of their counts, unless even their cells near zero are negative together.

    >>> everybody, by_age = np.array([0, 0, 0, 0]), np.array([0, 1, 2, 3])
    >>> settled_cells(np.array([500, 4, 3, -2]), [everybody, by_age], 2.0)
    array([500,   3,   2,   0])
    """
    plain = np.clip(cells, -(2**53), 2**53).astype(np.int64)  # noise without a limit may leave 64 bits
    negative = [bool((_sums(plain, places) < 0).any()) for places in members]
    if not any(negative):
        return plain
    kept = [places for places, below in zip(members, negative, strict=True) if not below]
    settled = plain.copy()
    for block in _blocks(plain, kept):
        values = plain[block]
        if not (values < 0).any():
            continue
        if not kept or all(places[block[0]] < 0 for places in kept):
            settled[block] = np.maximum(values, 0)
            continue
        near = block[values <= NEAR * deviation]
        settled[near] = nearest_counts(plain[near])
    return settled


def nearest_counts(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The whole numbers >= 0 with the same sum (or 0, if that is negative) that are nearest to `values`.

    >>> nearest_counts(np.array([4, 3, -2]))
    array([3, 2, 0])
    """
    total = max(0, int(values.sum()))
    return rounded(nearest_nonnegative(values, total=total), total)


def _sums(cells: NDArray[np.int64], places: Places) -> NDArray[np.int64]:
    inside = places >= 0
    sums = np.zeros(int(places.max(initial=-1)) + 1, dtype=np.int64)
    np.add.at(sums, places[inside], cells[inside])
    return sums


def _blocks(cells: NDArray[np.int64], kept: Sequence[Places]) -> list[NDArray[np.int64]]:
    """Cells that lie in the same counts of all statistics that are kept."""
    if not kept:
        return [np.arange(len(cells))]
    block = np.zeros(len(cells), dtype=np.int64)
    for places in kept:  # renumbered every time, so that the numbers stay small
        _, block = np.unique(block * (int(places.max(initial=0)) + 2) + places + 1, return_inverse=True)
    order = np.argsort(block, kind="stable")
    starts = np.flatnonzero(np.diff(block[order])) + 1
    return np.split(order, starts)

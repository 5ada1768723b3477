"""Counts that are counts: none below zero, with the total that the noise implies; and nothing else moved.

Noise can make a count negative. Setting it to zero by itself would push every total upward: a table of a thousand
empty cells would gain hundreds of rows that nobody has. Here a count that is below zero takes what it lacks from the
other parts of the same total, most of it from cells near zero, whose size nobody can tell anyway. So the cells of a
statistic always add up to what its noisy cells add up to, which is unbiased, unless that is negative itself. Where
nothing is negative, nothing moves.

Two things no other way of moving would spare; `moved_note` says them where they happen, and `Answer.raw` has neither.

- A total of counts >= 0 cannot be unbiased for near-empty tables. Of an empty table an unbiased total has the mean 0,
  and as it is never negative it is 0 with certainty. Under epsilon-DP what is certain for one table is certain for
  its neighbours, so it would be 0 for all tables. (With delta > 0, one row changes that with probability delta only.)
  Here the bias is the mean of what the noisy total lacks to 0, which is nothing once the total exceeds a few of its
  standard deviations.
- Where nearly all cells are empty, a count of 2 or 3 standard deviations cannot be told from noise of an empty cell,
  and what is taken from those is taken from it. Its root mean squared error is up to 1.6 times that of `raw` where
  nine of ten cells are empty (1.2 where half are), while that of all cells together is half. Moving all cells alike
  spares it a little (1.3), and makes large counts as bad (1.4).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from farthing.inference import nearest_nonnegative, rounded

Places = NDArray[np.int64]
Floats = NDArray[np.float64]

NEAR = 2.0
"""Cells up to this many standard deviations of their noise are near zero, and move alike."""

_LARGEST = 2**45


def settled_cells(cells: NDArray[np.int64], members: Sequence[Places], deviation: float) -> NDArray[np.int64]:
    """The cells of a slot, moved so that no count that is a sum of them is negative and totals stay what they are.

    `members` is, for each statistic, the place of every cell in it, -1 for none. Statistics without a negative count
    keep all of their counts, unless even their cells near zero are negative together; the others keep their total.

    >>> everybody, by_age = np.array([0, 0, 0, 0]), np.array([0, 1, 2, 3])
    >>> settled_cells(np.array([500, 4, 3, -2]), [everybody, by_age], 2.0)
    array([500,   3,   2,   0])
    >>> settled_cells(np.array([500, 4, -9, -2]), [by_age], 2.0)
    array([493,   0,   0,   0])
    """
    plain = np.clip(cells, -(2**53), 2**53).astype(np.int64)  # noise without a limit may leave 64 bits
    negative = [bool((_sums(plain, places) < 0).any()) for places in members]
    if not any(negative):
        return plain
    # Of a statistic with a negative count it is the total that stays: one count of all its cells.
    wholes = [np.where(places >= 0, 0, -1) for places, below in zip(members, negative, strict=True) if below]
    kept = [places for places, below in zip(members, negative, strict=True) if not below]
    moving = np.flatnonzero(np.any(np.array(wholes) >= 0, axis=0))
    settled = plain.copy()
    for whole in _blocks(moving, wholes):
        parts = _blocks(whole, kept)
        sums = np.array([plain[part].sum() for part in parts], dtype=np.int64)
        if (sums < 0).any():
            sizes = np.sqrt([float(len(part)) for part in parts])
            sums = whole_counts(sums, max(0, int(sums.sum())), deviation * sizes)
        for part, total in zip(parts, sums.tolist(), strict=True):
            settled[part] = whole_counts(plain[part], total, np.full(len(part), deviation))
    return settled


def whole_counts(values: NDArray[np.int64], total: int, deviations: Floats) -> NDArray[np.int64]:
    """Whole numbers >= 0 with the given total, near to `values`; see `counts_of_total`.

    >>> whole_counts(np.array([4, 3, -2]), 5, np.full(3, 2.0))
    array([3, 2, 0])
    """
    if total == int(values.sum()) and not (values < 0).any():
        return values
    if (
        not total < _LARGEST
    ):  # so much noise that doubles are whole steps: what has been paid for is not refused
        return np.maximum(values, 0)
    return rounded(counts_of_total(values.astype(np.float64), float(total), deviations), total)


def counts_of_total(values: Floats, total: float, deviations: Floats) -> Floats:
    """Numbers >= 0 with the given total, near to `values`; the larger a cell, the less it moves.

    Moving all cells alike would push every large count down by what the empty cells have too much: a bias where counts
    matter most. So beyond two standard deviations of its noise a cell moves in inverse proportion to its square.

    >>> counts_of_total(np.array([500.0, 4.0, 3.0, -2.0]), 505.0, np.full(4, 2.0)).round(2)
    array([500.,   3.,   2.,   0.])
    """
    large = NEAR * deviations
    return nearest_nonnegative(values, total, np.square(large / np.maximum(values, large)))


def moved_note(plain: Floats, values: Floats, deviations: Floats) -> str:
    """What is said where counts below zero were made up by others: nothing where that is little beside the noise.

    >>> moved_note(np.array([500.0, 4.0, -2.0]), np.array([499.0, 3.0, 0.0]), np.full(3, 2.0))
    ''
    >>> moved_note(np.array([3.0, -9.0]), np.array([0.0, 0.0]), np.full(2, 2.0))
    'the noisy total was below zero: the counts add up to 0; `raw` has them as the noise left them'
    """
    total = float(plain.sum())
    if total < -0.5 and (values < 0.5).all():
        return "the noisy total was below zero: the counts add up to 0; `raw` has them as the noise left them"
    lowered = (plain > 0) & (plain - values > deviations)
    if not lowered.any():
        return ""
    return (
        f"counts below zero were set to 0 and others lowered to keep the total, {int(lowered.sum()):,} of them by more "
        "than a standard error: single small counts may be off by up to 1.6 times their error; `raw` has them unmoved"
    )


def _sums(cells: NDArray[np.int64], places: Places) -> NDArray[np.int64]:
    inside = places >= 0
    sums = np.zeros(int(places.max(initial=-1)) + 1, dtype=np.int64)
    np.add.at(sums, places[inside], cells[inside])
    return sums


def _blocks(cells: Places, partitions: Sequence[Places]) -> list[Places]:
    """Those of the cells that lie in the same counts of all partitions, together."""
    if not partitions or not len(cells):
        return [cells] if len(cells) else []
    block = np.zeros(len(cells), dtype=np.int64)
    for places in partitions:  # renumbered every time, so that the numbers stay small
        own = places[cells]
        _, block = np.unique(block * (int(own.max(initial=0)) + 2) + own + 1, return_inverse=True)
    order = np.argsort(block, kind="stable")
    starts = np.flatnonzero(np.diff(block[order])) + 1
    return np.split(cells[order], starts)

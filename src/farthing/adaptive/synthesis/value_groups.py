"""Values of a column taken together, where each of them is too rare for the noise that its cells would carry.

Only neighbouring values are merged: for numbers and dates that keeps alike values together, and for categories, whose
order says nothing, it does no harm. All of it is computed from noisy numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.adaptive.prior_releases import KnownTable
from farthing.inference.graphical import Measured

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


_LEAST_ERROR = 0.5  # a table that is known exactly is trusted to half a row, so that a fit need not be exact


@dataclass(frozen=True, eq=False)
class KnownColumn:
    """Sums over the values of one column: for each value the place of its sum, -1 for values in none of them."""

    column: int
    values: Floats
    error: float
    places: Places

    def improved(self, counts: Floats, variances: Floats) -> tuple[Floats, Floats]:
        """Noisy counts of the values and their variances, after these sums are known (least squares, sum by sum).

        >>> known = KnownColumn(0, np.array([10.0, 4.0]), 1.0, np.array([0, 0, 1, -1]))
        >>> counts, variances = known.improved(np.array([3.0, 5.0, 6.0, 2.0]), np.ones(4))
        >>> counts.round(2), variances.round(2)
        (array([3.67, 5.67, 5.  , 2.  ]), array([0.67, 0.67, 0.5 , 1.  ]))
        """
        inside = self.places >= 0
        own, size = self.places[inside], len(self.values)
        sums, spreads = (np.bincount(own, part[inside], minlength=size) for part in (counts, variances))
        gains = variances[inside] / (spreads + self.error**2)[own]
        better, left = counts.copy(), variances.copy()
        better[inside] += gains * (self.values - sums)[own]
        left[inside] *= 1 - gains
        return better, left

    def total(self, counts: Floats, variances: Floats) -> tuple[float, float]:
        """The number of rows and its variance: the known sums, and what was measured outside of them."""
        outside = self.places < 0
        number = float(self.values.sum() + counts[outside].sum())
        return number, float(len(self.values) * self.error**2 + variances[outside].sum())


@dataclass(frozen=True, eq=False)
class Known:
    """What earlier releases say: about groups, about columns alone, and about all rows (numbers and variances)."""

    measured: Sequence[Measured] = ()
    columns: Sequence[KnownColumn] = ()
    totals: Sequence[tuple[float, float]] = ()


def known_columns(known: Sequence[KnownTable], names: Sequence[str]) -> Known:
    """What known tables say about columns alone, and about the number of rows.

    A table is added up over its other columns where it leaves none of their values out.

    >>> known = known_columns([KnownTable(("sex", "age"), [[3.0, 4.0], [2.0, 1.0]], 1.0)], ["age", "sex"])
    >>> [(one.column, one.values.tolist(), round(one.error, 3)) for one in known.columns]
    [(1, [7.0, 3.0], 1.414), (0, [5.0, 5.0], 1.414)]
    >>> known_columns([KnownTable((), 10.0, 2.0)], ["age"]).totals
    [(10.0, 4.0)]
    """
    columns, totals = [], []
    for table in known:
        error = max(table.standard_error, _LEAST_ERROR)
        whole = [bool(np.all(part >= 0)) for part in table.groups]
        if not table.columns:
            totals.append((float(table.values), error**2))
        for axis, name in enumerate(table.columns):
            if all(whole[:axis] + whole[axis + 1 :]):
                others = tuple(other for other in range(table.values.ndim) if other != axis)
                sums = np.asarray(table.values.sum(axis=others))
                spread = error * math.sqrt(table.values.size / sums.size)
                columns.append(KnownColumn(names.index(name), sums, spread, table.groups[axis]))
    return Known((), columns, totals)


def known_of_groups(
    known: Sequence[KnownTable], names: Sequence[str], groups: Sequence[Places], counts: Sequence[Floats]
) -> list[Measured]:
    """Known tables as measurements of groups, added up to the finest cells that they share with the groups.

    Cells of the domain that a table leaves out (missing values, mostly) are filled in from the `counts` of the columns
    alone, as if the columns were independent.

    >>> table = KnownTable(("age",), [30.0, 20.0, 10.0], 2.0, (np.array([0, 0, 1, 2]),))
    >>> (known,) = known_of_groups([table], ["age"], [np.array([0, 1, 1, 2])], [np.ones(4)])
    >>> known.values, known.groups, round(known.standard_deviation, 3)
    (array([50., 10.]), (array([0, 0, 1]),), 2.449)
    """
    return [
        _of_groups(table, [names.index(name) for name in table.columns], groups, counts)
        for table in known
        if table.columns
    ]


def _of_groups(table: KnownTable, columns: list[int], groups: Sequence[Places], counts: Sequence[Floats]) -> Measured:
    values, places = table.values, []
    for axis, (column, part) in enumerate(zip(columns, table.groups, strict=True)):
        missing = part < 0
        if missing.any():
            share = float(counts[column][missing].sum() / max(counts[column][~missing].sum(), 1e-9))
            extra = values.sum(axis=axis, keepdims=True) * share
            values = np.concatenate([values, extra], axis=axis)
            part = np.where(missing, values.shape[axis] - 1, part)
        places.append(part)
    coarse = tuple(common_groups(groups[column], part) for column, part in zip(columns, places, strict=True))
    cells = values.size
    merged = tuple(
        _merging(part, groups[column], own) for column, part, own in zip(columns, places, coarse, strict=True)
    )
    added = summed(values, merged)
    deviation = max(table.standard_error, _LEAST_ERROR) * (cells / added.size) ** 0.5
    return Measured(tuple(columns), added, deviation, coarse)


def _merging(part: Places, groups: Places, coarse: Places) -> Places:
    """For each place of a known table the coarse cell that it falls into."""
    cells = np.zeros(int(part.max()) + 1, dtype=np.int64)
    cells[part] = coarse[groups]
    return cells

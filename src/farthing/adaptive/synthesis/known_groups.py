"""What earlier releases say, in terms of the groups of a synthesis: further measurements, free of charge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.adaptive.known import KnownTable
from farthing.adaptive.synthesis.grouping import Floats, Places, common_groups, summed
from farthing.inference.graphical import Measured

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

    >>> found = known_columns([KnownTable(("sex", "age"), [[3.0, 4.0], [2.0, 1.0]], 1.0)], ["age", "sex"])
    >>> [(one.column, one.values.tolist(), round(one.error, 3)) for one in found.columns]
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
    >>> (found,) = known_of_groups([table], ["age"], [np.array([0, 1, 1, 2])], [np.ones(4)])
    >>> found.values, found.groups, round(found.standard_deviation, 3)
    (array([50., 10.]), (array([0, 0, 1]),), 2.449)
    """
    return [
        _of_groups(table, [names.index(name) for name in table.columns], groups, counts)
        for table in known
        if table.columns
    ]


def _of_groups(
    table: KnownTable, columns: list[int], groups: Sequence[Places], counts: Sequence[Floats]
) -> Measured:
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
    found = np.zeros(int(part.max()) + 1, dtype=np.int64)
    found[part] = coarse[groups]
    return found

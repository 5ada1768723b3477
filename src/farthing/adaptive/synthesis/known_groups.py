"""What earlier releases say, in terms of the groups of a synthesis: further measurements, free of charge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from farthing.adaptive.known import KnownTable
from farthing.adaptive.synthesis.grouping import Floats, Places, common_groups, summed
from farthing.inference.graphical import Measured

_LEAST_ERROR = 0.5  # a table that is known exactly is trusted to half a row, so that a fit need not be exact


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
        _of_groups(table, [names.index(name) for name in table.columns], groups, counts) for table in known
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

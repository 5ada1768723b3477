"""Marginals in whole numbers that still agree: one total, and one table for each single column."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farthing.errors import InvalidValue
from farthing.inference.marginals import Subset, checked_tables, summed
from farthing.inference.rounding import Whole, rounded

_NEARLY = 1e-9


def rounded_marginals(tables: Mapping[Subset, ArrayLike]) -> dict[Subset, Whole]:
    """Whole numbers near consistent non-negative tables, with one total and one table for each single column.

    Tables of two columns then agree in everything they share. Tables of three or more agree in single columns and in
    the total; there are consistent tables of three columns that no whole numbers near them agree with in pairs.
    Every cell is rounded down, and the ones that are missing along the columns are added where the remainders are
    largest; first in order among equals, so that the result depends on nothing but the numbers.

    >>> found = rounded_marginals({(0, 1): [[1.5, 0.7], [0.4, 2.9]], (1, 2): [[0.9, 1.0], [1.8, 1.8]]})
    >>> found[(0, 1)], found[(1, 2)]
    (array([[1, 1], [1, 3]]), array([[1, 1], [2, 2]]))
    """
    arrays, _ = checked_tables(tables)
    smallest = min(float(table.min()) for table in arrays.values())
    if not smallest >= 0:
        raise InvalidValue("tables", smallest, "must not be negative", "use nonnegative_marginals first")
    columns = sorted({column for subset in arrays for column in subset})
    first = {column: next(subset for subset in arrays if column in subset) for column in columns}
    real = {column: summed(arrays[first[column]], first[column], (column,)) for column in columns}
    total = math.floor(float(next(iter(arrays.values())).sum()) + 0.5)
    for subset, table in arrays.items():
        for axis, column in enumerate(subset):
            others = tuple(other for other in range(table.ndim) if other != axis)
            if not np.allclose(table.sum(axis=others), real[column], rtol=1e-6, atol=1e-6):
                raise InvalidValue(
                    "tables", subset, "must agree with the others", "use consistent_marginals first"
                )
    single = {column: rounded(values, total) for column, values in real.items()}
    return {
        subset: _filled(table, [single[column] for column in subset])
        if subset
        else np.array(total, dtype=np.int64)
        for subset, table in arrays.items()
    }


def _filled(table: NDArray[np.float64], margins: list[Whole]) -> Whole:
    """Cells rounded down, then raised one by one until the sums along every axis are those of `margins`."""
    down = np.floor(table + _NEARLY).astype(np.int64)
    left = _missing(down, margins)
    for axis, lacks in enumerate(left):  # sums within rounding of a whole number that went the other way
        for value in np.flatnonzero(lacks < 0).tolist():
            for _ in range(-int(lacks[value])):
                _lower(down, table, axis, value)
    lists = [lacks.tolist() for lacks in _missing(down, margins)]
    missing = sum(lists[0])
    order = np.argsort((down - table).ravel(), kind="stable")
    cells = down.reshape(-1)
    places = zip(order.tolist(), np.column_stack(np.unravel_index(order, table.shape)).tolist(), strict=True)
    for place, where in places:
        if not missing:
            break
        if all(lists[axis][value] > 0 for axis, value in enumerate(where)):
            cells[place] += 1
            missing -= 1
            for axis, value in enumerate(where):
                lists[axis][value] -= 1
    while missing:  # what no remainder asked for: any cell where all columns still miss something
        where = [next(value for value, lack in enumerate(lacks) if lack > 0) for lacks in lists]
        amount = min(lists[axis][value] for axis, value in enumerate(where))
        cells[np.ravel_multi_index(where, table.shape)] += amount
        missing -= amount
        for axis, value in enumerate(where):
            lists[axis][value] -= amount
    return down


def _missing(cells: Whole, margins: list[Whole]) -> list[Whole]:
    """By how much the sums along each axis fall short."""
    axes = range(cells.ndim)
    return [
        margin - cells.sum(axis=tuple(o for o in axes if o != axis)) for axis, margin in enumerate(margins)
    ]


def _lower(cells: Whole, table: NDArray[np.float64], axis: int, value: int) -> None:
    """One less in the cell of this slice whose remainder is smallest, of those above zero."""
    own, real = cells.take(value, axis=axis), table.take(value, axis=axis)
    remainder = np.where(own > 0, real - own, np.inf)
    where = list(np.unravel_index(int(remainder.argmin()), own.shape))
    where.insert(axis, np.intp(value))
    cells[tuple(where)] -= 1

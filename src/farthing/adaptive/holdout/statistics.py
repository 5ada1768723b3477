"""A statistic of rows as a whole number: each row's value on a grid, clamped and added up without rounding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms.base import read_array

Statistic = Callable[[Any], Any]
STEPS = 2**20  # of one row: a value v counts floor(v STEPS), so that a row moves a sum by at most STEPS


def number_of_rows(table: Any, name: str) -> int:
    """How many rows a table has: an array, a data frame, a mapping of columns, or a tuple of these side by side."""
    if isinstance(table, Mapping):
        parts = list(table.values())
    elif isinstance(table, tuple):
        parts = list(table)
    else:
        parts = [table]
    sizes = {_length(part) for part in parts}
    if len(sizes) != 1 or None in sizes or sizes == {0}:
        raise InvalidData(
            name,
            "must be a table with at least one row, and columns of one length",
            "pass an array whose first axis counts rows, a data frame, a mapping of columns, or a tuple (X, y)",
        )
    return int(sizes.pop() or 0)


def _length(part: Any) -> int | None:
    if isinstance(part, str | bytes | Mapping | tuple):
        return None
    try:
        return len(part)
    except TypeError:
        return None


def steps_of(statistic: Statistic, table: Any, rows: int, name: str) -> int:
    """The sum over rows of floor(value STEPS), values clamped to [0, 1] and NaN counted as 0.

    Nothing here depends on more than one row but the sum, and the sum is of whole numbers: replacing a row moves it by
    at most STEPS, whatever the row was.

    >>> steps_of(lambda table: table, np.array([0.5, np.nan, 7.0, -1.0]), 4, "training") == STEPS // 2 + STEPS
    True
    """
    values, problem = _called(statistic, table)
    if problem:
        raise InvalidData(
            "statistic", f"failed on the {name} rows ({problem})", "try it on the training rows"
        )
    array = read_array(values)
    if array is None or array.shape != (rows,):
        raise InvalidData(
            "statistic",
            f"must give one number for each of the {rows} {name} rows",
            "return an array with one entry a row, for example model.predict(X) == y",
        )
    return _total(array)


def _called(statistic: Statistic, table: Any) -> tuple[Any, str]:
    """What a stranger's code raises may quote a row: only the kind is kept, and no context."""
    try:
        return statistic(table), ""
    except Exception as problem:
        return None, type(problem).__name__


def _total(array: NDArray[Any]) -> int:
    if array.dtype.kind == "b":
        return int(np.count_nonzero(array)) * STEPS
    if array.dtype.kind in "iu":
        return int(np.count_nonzero(array > 0)) * STEPS
    if array.dtype.kind == "O":  # None among numbers, as data frames have it
        plain = read_array([np.nan if item is None else item for item in array])
        if plain is not None and plain.dtype.kind in "biuf":
            return _total(plain)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise InvalidData(
            "statistic", "must give numbers or truth values", "for example model.predict(X) == y"
        )
    clamped = np.clip(np.nan_to_num(array.astype(np.float64), nan=0.0), 0.0, 1.0)
    return int(np.floor(clamped * STEPS).astype(np.int64).sum())


def checked_statistic(statistic: object) -> Statistic:
    """A function of a table."""
    if not callable(statistic):
        raise InvalidValue(
            "statistic",
            statistic,
            "must be a function that gives a number in [0, 1] for each row of a table",
            "for example lambda rows: rows[:, 3] > 0",
        )
    return statistic

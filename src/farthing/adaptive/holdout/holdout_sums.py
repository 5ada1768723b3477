"""Where the sums of a holdout come from: tables in memory and functions, or datasets in an engine and expressions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from farthing.data import Count, Dataset, Reals, Sum
from farthing.data.aggregates.aggregate import Aggregate
from farthing.data.expressions import read
from farthing.data.stability import REPLACE
from farthing.errors import InvalidData, InvalidExpression, InvalidValue
from farthing.mechanisms.mechanism import read_array

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
        raise InvalidData("statistic", f"failed on the {name} rows ({problem})", "try it on the training rows")
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
        raise InvalidData("statistic", "must give numbers or truth values", "for example model.predict(X) == y")
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


class Rows(Protocol):
    """A number of rows, and the sum of any statistic over them in whole steps."""

    rows: int

    def total(self, statistic: Any) -> int:
        """The sum over rows of floor(value STEPS), values clamped to [0, 1] and missing ones counted as 0."""

    def words(self, statistic: Any) -> str | None:
        """What is asked, equal for equal questions only; None for a function, which nobody can compare."""


class TableRows:
    """A table in memory, and statistics that are functions of it."""

    def __init__(self, table: Any, name: str) -> None:
        self._table, self._name = table, name
        self.rows = number_of_rows(table, name)

    def total(self, statistic: Any) -> int:
        """What the function gives, added up."""
        return steps_of(checked_statistic(statistic), self._table, self.rows, self._name)

    def words(self, statistic: Any) -> str | None:
        """A function may do anything the next time."""
        return None


class DatasetRows:
    """A dataset, and statistics that are expressions: a predicate, or a number that is clamped to [0, 1].

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> people = dataset(pyarrow.table({"age": [20, 40, None]}), schema={"age": (0, 100)}, neighbours="replace", rows=3)
    >>> rows = DatasetRows(people, "holdout", private=True)
    >>> rows.total("age > 30") / STEPS, rows.total("age / 40") / STEPS
    (1.0, 1.5)
    """

    def __init__(self, dataset: Dataset, name: str, *, private: bool) -> None:
        self._dataset, self._private = dataset, private
        if not private:
            self.rows = int(dataset.exact({"rows": Count()})["rows"])
            if self.rows < 1:
                raise InvalidValue(name, repr(dataset), "must have at least one row")
            return
        alone = not dataset.unit and dataset.stability().rows == 1
        if dataset.rows is None or dataset.neighbours != REPLACE or not alone:
            raise InvalidValue(
                name,
                repr(dataset),
                "must have a public number of rows, each a unit of its own that a neighbour replaces",
                'use farthing.dataset(..., neighbours="replace", rows=10_000); rows that belong together are not '
                "independent draws from a population",
            )
        self.rows = dataset.rows

    def total(self, statistic: Any) -> int:
        """The sum as the engine has it: whole numbers only."""
        dataset, aggregate, steps = self._aggregate(statistic)
        if not dataset.sensitivity(aggregate).linf * steps <= STEPS:
            raise InvalidValue("statistic", statistic, "must not move by more than one row between neighbours")
        return int(dataset.exact({"total": aggregate})["total"]) * steps

    def words(self, statistic: Any) -> str | None:
        """The expression as it was read, and what the dataset has gone through before."""
        dataset, aggregate, _ = self._aggregate(statistic)
        read_as = read(statistic, self._dataset.schema, None if isinstance(aggregate, Count) else Reals(0.0, 1.0))
        return json.dumps([read_as.text, dataset.definition], default=str)

    def _aggregate(self, statistic: Any) -> tuple[Dataset, Aggregate, int]:
        if callable(statistic):
            raise InvalidValue(
                "statistic", statistic, "must be an expression for rows in a database", "such as 'age > 30'"
            )
        if self._is_predicate(statistic):
            return self._dataset, Count(where=statistic), STEPS
        name = "value"
        while name in self._dataset.schema:
            name += "_"
        return self._dataset.derive(**{name: (statistic, (0.0, 1.0))}), Sum(name, grid=1 / STEPS), 1

    def _is_predicate(self, statistic: Any) -> bool:
        try:
            return read(statistic, self._dataset.schema).is_predicate
        # Without bounds; with them it may be fine, and if not, that refusal is the one to show.
        except InvalidExpression:
            return False


def rows_of(training: Any, holdout: Any) -> tuple[Rows, Rows]:
    """Both tables, of the same kind."""
    if isinstance(training, Dataset) != isinstance(holdout, Dataset):
        raise InvalidValue(
            "training",
            type(training).__name__,
            f"must be of the same kind as holdout, {type(holdout).__name__}",
            "make datasets of both with farthing.dataset(...), or of none",
        )
    if isinstance(training, Dataset):
        return DatasetRows(training, "training", private=False), DatasetRows(holdout, "holdout", private=True)
    return TableRows(training, "training"), TableRows(holdout, "holdout")

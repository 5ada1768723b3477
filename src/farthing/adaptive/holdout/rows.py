"""Where the sums of a holdout come from: tables in memory and functions, or datasets in an engine and expressions."""

from __future__ import annotations

from typing import Any, Protocol

from farthing.adaptive.holdout.statistics import STEPS, checked_statistic, number_of_rows, steps_of
from farthing.data import Count, Dataset, Sum
from farthing.data.aggregates.shape import Aggregate
from farthing.data.expressions import read
from farthing.data.sensitivity import REPLACE
from farthing.errors import InvalidExpression, InvalidValue


class Rows(Protocol):
    """A number of rows, and the sum of any statistic over them in whole steps."""

    rows: int

    def total(self, statistic: Any) -> int:
        """The sum over rows of floor(value STEPS), values clamped to [0, 1] and missing ones counted as 0."""


class TableRows:
    """A table in memory, and statistics that are functions of it."""

    def __init__(self, table: Any, name: str) -> None:
        self._table, self._name = table, name
        self.rows = number_of_rows(table, name)

    def total(self, statistic: Any) -> int:
        """What the function gives, added up."""
        return steps_of(checked_statistic(statistic), self._table, self.rows, self._name)


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
                'say farthing.dataset(..., neighbours="replace", rows=10_000); rows that belong together are no '
                "independent draws from a population",
            )
        self.rows = dataset.rows

    def total(self, statistic: Any) -> int:
        """The sum as the engine has it: whole numbers only."""
        dataset, aggregate, steps = self._aggregate(statistic)
        if not dataset.sensitivity(aggregate).linf * steps <= STEPS:
            raise InvalidValue(
                "statistic", statistic, "must not move by more than one row between neighbours"
            )
        return int(dataset.exact({"total": aggregate})["total"]) * steps

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
        except (
            InvalidExpression
        ):  # without bounds; with them it may be fine, and if not, that refusal is the one to show
            return False


def rows_of(training: Any, holdout: Any) -> tuple[Rows, Rows]:
    """Both tables, of the same kind."""
    if isinstance(training, Dataset) != isinstance(holdout, Dataset):
        raise InvalidValue(
            "training", type(training).__name__, f"must be of the same kind as holdout, {type(holdout).__name__}",
            "make datasets of both with farthing.dataset(...), or of none",
        )  # fmt: skip
    if isinstance(training, Dataset):
        return DatasetRows(training, "training", private=False), DatasetRows(holdout, "holdout", private=True)
    return TableRows(training, "training"), TableRows(holdout, "holdout")

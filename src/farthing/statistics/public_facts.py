"""The public facts a design is made from: the schema, who is protected, and what the steward expects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from farthing.data import Dataset, Integers, Reals, Schema, Sensitivity
from farthing.data.aggregates.aggregate_shape import Aggregate
from farthing.data.schema import folded
from farthing.errors import InvalidValue
from farthing.privacy.events import checked_real
from farthing.statistics.expectations import ColumnModel, present_share


class DerivedColumns:
    """What to derive so far, by name. The same expression with the same bounds gets the same name.

    Names are short: Postgres cuts one after 63 letters.

    >>> columns = DerivedColumns(Schema.read({"moment_1": (0, 9)}), "moment")
    >>> columns.named(("moment_1 - 5", (-5, 5))), columns.named(("moment_1 - 5", (-5, 5)))
    ('moment_2', 'moment_2')
    >>> columns.found
    {'moment_2': ('moment_1 - 5', (-5, 5))}
    """

    def __init__(self, schema: Schema, stem: str) -> None:
        self._taken = {folded(name) for name in schema}
        self._stem, self._number = stem, 0
        self._names: dict[Any, str] = {}
        self.found: dict[str, Any] = {}

    def named(self, derived: tuple[str, tuple[int, int]]) -> str:
        """The name under which an expression with its bounds is derived."""
        if derived not in self._names:
            self._names[derived] = name = self._fresh()
            self.found[name] = derived
        return self._names[derived]

    def _fresh(self) -> str:
        while True:
            self._number += 1
            name = f"{self._stem}_{self._number}"
            if folded(name) not in self._taken:
                return name


ASSUMED_ROWS = 10_000


def assumed_size(rows: int) -> str:
    """What is assumed about the number of rows, in words, with what to say instead.

    >>> assumed_size(10_000)
    "the table is assumed to have 10,000 rows; say expected={'rows': ...}"
    """
    return f"the table is assumed to have {rows:,} rows; say expected={{'rows': ...}}"


@dataclass(frozen=True)
class Counted:
    """A private count of the rows that was paid for: `rows`, from `lower` to `upper` 95 times in 100.

    >>> print(Counted(10_003, 9_850, 10_156))
    9,850 rows, the low end of what was counted: 10,003 (9,850 to 10,156, 95%)
    """

    rows: int
    lower: int
    upper: int

    def __str__(self) -> str:
        ends = f"{self.lower:,} to {self.upper:,}"
        return f"{self.lower:,} rows, the low end of what was counted: {self.rows:,} ({ends}, 95%)"


@dataclass(frozen=True)
class Facts:
    """What may be known before anything is spent. `dataset` is asked for its public face only, never for rows.

    `expected` maps "rows" to a number, the name of a statistic to its expected value (a number, or one for each cell),
    and the name of a column to (mean, standard deviation), to {"mean": ..., "sd": ..., "missing": share of the rows} or
    to a list of public values, None for a missing one. Categories have shares; that of None is of missing ones.
    """

    dataset: Dataset
    expected: Mapping[str, Any] = field(default_factory=dict)
    pure: bool = False  # delta = 0: only noise that is epsilon-DP by itself
    counted: Counted | None = (
        None  # a private count, for where the number of rows is neither public nor expected
    )

    @property
    def schema(self) -> Schema:
        """The declared columns."""
        return self.dataset.schema

    @property
    def rows_known(self) -> bool:
        """Whether the number of rows is public or expected, rather than counted or assumed."""
        return "rows" in self.expected or self.dataset.rows is not None

    @property
    def assumed_rows(self) -> int | None:
        """The number of rows that is assumed; None where it is public, expected or counted."""
        return None if self.rows_known or self.counted is not None else ASSUMED_ROWS

    @property
    def rows(self) -> float:
        """The number of rows to predict errors with: expected, else public, else counted, else assumed.

        Of what was counted it is the low end: fewer rows mean larger errors.
        """
        if "rows" in self.expected:
            number = checked_real(self.expected["rows"], "expected['rows']")
            if not 1 <= number < 1e15:
                raise InvalidValue("expected['rows']", number, "must be a number of rows, at least 1")
            return number
        if self.counted is not None and self.dataset.rows is None:
            return float(self.counted.lower)
        return float(self.dataset.rows if self.dataset.rows else ASSUMED_ROWS)

    @property
    def most_rows(self) -> float:
        """The same for what grows with the rows, such as the error of a count as one of a population."""
        uncertain = self.counted is not None and not self.rows_known
        return float(self.counted.upper) if uncertain and self.counted is not None else self.rows

    def column(self, name: str) -> ColumnModel:
        """The expected distribution of a numeric column; uniform between its bounds when nothing was said."""
        domain = self.schema[name]
        if not isinstance(domain, Integers | Reals):
            raise InvalidValue("column", name, "must be a column of numbers")
        return ColumnModel.read(name, self.expected.get(name), float(domain.lower), float(domain.upper))

    def present(self, name: str) -> float:
        """The share of rows that are expected to have a value in a column."""
        if isinstance(self.schema[name], Integers | Reals):
            return present_share(name, self.expected.get(name))
        given = self.expected.get(name)
        if isinstance(given, list):
            return present_share(name, given)
        if isinstance(given, Mapping) and given.get(
            None
        ):  # categories with their shares, and that of no category
            weights = [float(share) for share in given.values()]
            return 1.0 - float(given[None]) / sum(weights) if sum(weights) > 0 else 1.0
        return 1.0

    def sensitivity(self, aggregate: Aggregate, derived: Mapping[str, Any] | None = None) -> Sensitivity:
        """How far one unit moves an aggregate, over the dataset with further columns derived."""
        dataset = self.dataset.derive(**derived) if derived else self.dataset
        return dataset.sensitivity(aggregate)

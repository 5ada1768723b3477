"""The public facts a design is made from: the schema, who is protected, and what the steward expects.

What the steward expects of a column, from public knowledge: used to predict errors, never read from the rows.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data import Dataset, Integers, Reals, Schema, Sensitivity
from farthing.data.aggregates.aggregate import Aggregate
from farthing.data.aggregates.unit_bounds import Bounded, UnitBound
from farthing.data.schema import folded
from farthing.errors import InvalidValue
from farthing.privacy.events import checked_real


@dataclass(frozen=True)
class ColumnModel:
    """A guess at a column's distribution: rising points and the share of rows at or below each of them.

    >>> model = ColumnModel.uniform(0.0, 100.0)
    >>> model.mean, float(model.share_below(25.0))
    (50.0, 0.25)
    """

    points: tuple[float, ...]
    shares: tuple[float, ...]
    assumed: bool = False

    @classmethod
    def uniform(cls, lower: float, upper: float) -> ColumnModel:
        """Nothing is known but the bounds."""
        return cls((float(lower), float(upper)), (0.0, 1.0), assumed=True)

    @classmethod
    def normal(cls, mean: float, spread: float, lower: float, upper: float) -> ColumnModel:
        """A bell curve cut off at the bounds, whose rows beyond them sit on the bounds as clipping puts them."""
        points = np.unique(
            np.concatenate((np.linspace(lower, upper, 257), np.linspace(mean - 5 * spread, mean + 5 * spread, 513)))
        )
        points = points[(points >= lower) & (points <= upper)]
        shares = np.array([0.5 * math.erfc((mean - x) / (spread * math.sqrt(2))) for x in points])
        shares[-1] = 1.0
        return cls(tuple(map(float, points)), tuple(map(float, shares)))

    @classmethod
    def sample(cls, values: Sequence[float], lower: float, upper: float) -> ColumnModel:
        """Public values of the same kind: last year's table, a published sample."""
        ordered = np.sort(np.clip(np.asarray(values, dtype=float), lower, upper))
        levels = np.linspace(0.0, 1.0, min(len(ordered), 2001))
        points = np.quantile(ordered, levels)
        last = np.append(np.flatnonzero(np.diff(points)), len(points) - 1)
        return cls(tuple(map(float, points[last])), tuple(map(float, levels[last])))

    @classmethod
    def read(cls, column: str, given: Any, lower: float, upper: float) -> ColumnModel:
        """A pair (mean, standard deviation), a list of public values, or None for nothing known.

        A table {"mean": ..., "sd": ..., "missing": ...} is a pair with the share of rows that have no value, and so is
        a list with None in it.
        """
        given = without_missing(column, given)
        if given is None:
            return cls.uniform(lower, upper)
        if isinstance(given, tuple) and len(given) == 2:
            mean = checked_real(given[0], f"expected[{column!r}]")
            spread = checked_real(given[1], f"expected[{column!r}]")
            if not lower <= mean <= upper:
                raise InvalidValue(
                    f"expected[{column!r}]", given, f"must have its mean between {lower:g} and {upper:g}"
                )
            if not 0 < spread < math.inf:
                raise InvalidValue(
                    f"expected[{column!r}]", given, "must have a standard deviation > 0", "write (mean, sd)"
                )
            return cls.normal(mean, spread, lower, upper)
        try:
            values = np.asarray(given, dtype=float) if isinstance(given, list | np.ndarray) else np.empty(0)
        except (TypeError, ValueError):
            values = np.empty(0)
        if not (values.ndim == 1 and len(values) >= 2 and np.isfinite(values).all()):
            raise InvalidValue(
                f"expected[{column!r}]",
                given,
                "must be (mean, standard deviation) or a list of public values",
            )
        return cls.sample(list(values), lower, upper)

    def share_below(self, x: Any) -> NDArray[np.float64]:
        """The share of rows at or below x."""
        return np.asarray(np.interp(np.asarray(x, dtype=float), self.points, self.shares, left=0.0, right=1.0))

    @property
    def mean(self) -> float:
        """The mean under the model."""
        return self._moment(lambda x: x)

    @property
    def variance(self) -> float:
        """The variance under the model."""
        centre = self.mean
        return self._moment(lambda x: (x - centre) ** 2)

    def moment(self, power: int, centre: float = 0.0) -> float:
        """The mean of (x - centre) ** power under the model."""
        return self._moment(lambda x: (x - centre) ** power)

    def _moment(self, function: Any) -> float:
        points, shares = np.asarray(self.points), np.asarray(self.shares)
        low, high, mass = points[:-1], points[1:], np.diff(shares)
        nodes, weights = _five_nodes()
        inside = (low + high)[:, None] / 2 + (high - low)[:, None] / 2 * nodes[None, :]
        total = float((mass[:, None] * weights[None, :] / 2 * function(inside)).sum())
        return total + float(shares[0]) * float(function(points[0]))


@cache
def _five_nodes() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights of Gauss and Legendre, on -1 .. 1."""
    nodes, weights = np.polynomial.legendre.leggauss(5)
    return nodes, weights


def without_missing(column: str, given: Any) -> Any:
    """What is expected of the values of a column: a pair, a list, or whatever else was given.

    >>> without_missing("age", {"mean": 40, "sd": 12, "missing": 0.1}), without_missing("age", [30, None, 50])
    ((40, 12), [30, 50])
    """
    if isinstance(given, Mapping):
        names = {"mean", "sd"}
        if not names <= set(given) <= names | {"missing"}:
            raise InvalidValue(
                f"expected[{column!r}]",
                dict(given),
                "must have mean and sd, and may have missing",
                'write {"mean": 40, "sd": 12, "missing": 0.1}',
            )
        return given["mean"], given["sd"]
    return [value for value in given if value is not None] if isinstance(given, list) else given


def present_share(column: str, given: Any) -> float:
    """The share of rows that have a value, as far as anybody said; all of them by default.

    >>> present_share("age", {"mean": 40, "sd": 12, "missing": 0.1}), present_share("age", [30, None, 50, 20])
    (0.9, 0.75)
    """
    if isinstance(given, Mapping) and "missing" in given:
        missing = checked_real(given["missing"], f"expected[{column!r}]['missing']")
        if not 0 <= missing < 1:
            raise InvalidValue(f"expected[{column!r}]['missing']", missing, "must be a share of the rows, below 1")
        return 1.0 - missing
    if isinstance(given, list) and given:
        return sum(value is not None for value in given) / len(given) or 1.0
    return 1.0


class DerivedColumns:
    """What to derive so far, by name. The same expression with the same bounds gets the same name.

    Names are short: Postgres cuts one after 63 letters.

    >>> columns = DerivedColumns(Schema.read({"moment_1": (0, 9)}), "moment")
    >>> columns.named(("moment_1 - 5", (-5, 5))), columns.named(("moment_1 - 5", (-5, 5)))
    ('moment_2', 'moment_2')
    >>> columns.expressions
    {'moment_2': ('moment_1 - 5', (-5, 5))}
    """

    def __init__(self, schema: Schema, stem: str) -> None:
        self._taken = {folded(name) for name in schema}
        self._stem, self._number = stem, 0
        self._names: dict[Any, str] = {}
        self.expressions: dict[str, Any] = {}

    def named(self, derived: tuple[str, tuple[int, int]]) -> str:
        """The name under which an expression with its bounds is derived."""
        if derived not in self._names:
            self._names[derived] = name = self._fresh()
            self.expressions[name] = derived
        return self._names[derived]

    def _fresh(self) -> str:
        while True:
            self._number += 1
            name = f"{self._stem}_{self._number}"
            if folded(name) not in self._taken:
                return name


ASSUMED_ROWS = 10_000


class Assumption(str):
    """What a prediction rests on because nobody said otherwise, as text that also says what to do about it.

    `key` is the name in `expected` that would replace the assumption, and `value` what its entry looks like.

    >>> income = Assumption("income is assumed to be uniform between its bounds", "yearly income")
    >>> print(income)
    income is assumed to be uniform between its bounds; pass expected={'yearly income': ...}
    >>> print(income.in_toml)
    income is assumed to be uniform between its bounds; write "yearly income" = ... under [expected]
    """

    fact: str
    key: str | None
    value: str

    def __new__(cls, fact: str, key: str | None = None, value: str = "...") -> Assumption:
        """The fact alone, or with the hint for Python behind it."""
        text = super().__new__(cls, fact if key is None else f"{fact}; pass expected={{{key!r}: {value}}}")
        text.fact, text.key, text.value = fact, key, value
        return text

    @property
    def in_toml(self) -> str:
        """The same with the hint for a study.toml."""
        if self.key is None:
            return self.fact
        bare = re.fullmatch(r"[A-Za-z0-9_-]+", self.key)
        key = self.key if bare else json.dumps(self.key, ensure_ascii=False)
        return f"{self.fact}; write {key} = {self.value} under [expected]"


def assumed_size(rows: int, of: str = "rows") -> Assumption:
    """What is assumed about the number of rows, or of people, with what to say instead.

    >>> print(assumed_size(10_000))
    the table is assumed to have 10,000 rows; pass expected={'rows': ...}
    """
    return Assumption(f"the table is assumed to have {rows:,} {of}", of)


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


def checked_expectation(name: str, given: Any, cells: int) -> NDArray[np.float64]:
    """An expected value for each cell, from one number or a list of as many."""
    try:
        values = np.asarray(given, dtype=float).reshape(-1)
    except (TypeError, ValueError):
        values = np.empty(0)
    if len(values) == 1:
        values = np.repeat(values, cells)
    if len(values) != cells or not (np.isfinite(values) & (values >= 0)).all():
        raise InvalidValue(
            f"expected[{name!r}]", given, f"must be a number >= 0, or a list of {cells:,}, one for each cell"
        )
    return values


@dataclass(frozen=True)
class Facts:
    """What may be known before anything is spent. `dataset` is asked for its public face only, never for rows.

    `expected` maps "rows" and "people" to numbers, the name of a statistic to its expected value (a number, or one for
    each cell),
    and the name of a column to (mean, standard deviation), to {"mean": ..., "sd": ..., "missing": share of the rows} or
    to a list of public values, None for a missing one. Categories have shares; that of None is of missing ones.
    """

    dataset: Dataset
    expected: Mapping[str, Any] = field(default_factory=dict)
    pure: bool = False  # delta = 0: only noise that is epsilon-DP by itself
    asked: int = 1  # how many statistics the plan has
    counted: Counted | None = None  # a private count, for where the number of rows is neither public nor expected
    bound: UnitBound | None = None  # what statistics keep of each unit, in place of the dataset's `max_rows`
    people: bool = False  # whether units are counted, and not rows
    place: int = 0  # of a statistic with a bound of its own, from 1 on: it shares its measurements with no other

    @property
    def schema(self) -> Schema:
        """The declared columns of the dataset."""
        return self.dataset.schema

    @property
    def rows_known(self) -> bool:
        """Whether the number of rows is public or expected, rather than counted or assumed; of people, theirs."""
        public = self.dataset.people if self.people else self.dataset.rows
        return self._size_name in self.expected or public is not None

    @property
    def _size_name(self) -> str:
        return "people" if self.people else "rows"

    @property
    def rows_per_unit(self) -> int:
        """How many rows of one unit count in one cell at most."""
        return self.dataset.rows_per_unit if self.bound is None else self.bound.most_in_cell

    def rows_moved(self, groups: int) -> int:
        """How many rows of so many groups come or go with what changes, units of a group together."""
        stability = self.dataset.stability()
        return stability.rows if self.bound is None else self.bound.rows_in(groups) * stability.group

    def bounded(self, aggregate: Aggregate, *, shared: bool = False) -> Aggregate:
        """The aggregate with the bound of its statistic, where that has one.

        `shared` aggregates of one statistic are of the same rows of each unit.
        """
        return aggregate if self.bound is None else Bounded(aggregate, self.bound, str(self.place) * shared)

    def derived_columns(self, word: str) -> DerivedColumns:
        """Names for columns that are derived, which no other statistic uses."""
        return DerivedColumns(self.schema, word if not self.place else f"{word}_{self.place}")

    def slot_name(self, name: str) -> str:
        """A name for what is measured that no other statistic uses."""
        return name if not self.place else f"{name}, {self.bound} of each unit [{self.place}]"

    @property
    def assumed_rows(self) -> int | None:
        """The number of rows that is assumed; None where it is public, expected or counted."""
        counted = self.counted is not None and not self.people
        return None if self.rows_known or counted else ASSUMED_ROWS

    @property
    def rows(self) -> float:
        """The number of rows to predict errors with: expected, else public, else counted, else assumed.

        Of what was counted it is the low end: fewer rows mean larger errors. Of a sample it is what the draw leaves of
        the table, on average: people know about how large the table is.
        """
        share = self.dataset.probability
        rows = self._table_rows
        if self._most_kept is not None and self.rows_known:
            rows = min(rows, float(self._most_kept))
        return rows if share == 1 else max(1.0, share * rows)

    @property
    def _rows_of_one(self) -> int | None:
        """How many rows of one unit are used at most, where rows of units are counted and a number says it."""
        if self.people or not self.dataset.unit or self.dataset.is_auto:
            return None
        if self.bound is not None:
            return self.bound.max_rows
        if not self.dataset.bounds_rows:  # then only statistics that bound them by themselves count rows
            return None
        stability = self.dataset.stability()
        return stability.rows // stability.group

    @property
    def _most_kept(self) -> int | None:
        """How many rows can be used at most: those of all units, where their number is expected or public."""
        people = self.expected.get("people", self.dataset.people)
        if people is None or self._rows_of_one is None:
            return None
        return int(replace(self, people=True)._table_rows) * self._rows_of_one

    @property
    def _table_rows(self) -> float:
        name = self._size_name
        if name in self.expected:
            number = checked_real(self.expected[name], f"expected[{name!r}]")
            if not 1 <= number < 1e15:
                raise InvalidValue(f"expected[{name!r}]", number, f"must be a number of {name}, at least 1")
            return number
        if self.people:
            return float(self.dataset.people or ASSUMED_ROWS)
        if self.counted is not None and self.dataset.rows is None:
            return float(self.counted.lower)
        return float(self.dataset.rows if self.dataset.rows else ASSUMED_ROWS)

    @property
    def whole_table(self) -> float:
        """The expected value of `count()`: what was said for that statistic, else the rows to predict with."""
        given = None if self.people else self.expected.get("count")
        return self.rows if given is None else float(checked_expectation("count", given, 1)[0])

    @property
    def row_assumptions(self) -> tuple[Assumption, ...]:
        """What is assumed about the number of rows, in words; nothing where it is public or expected."""
        if self.assumed_rows is not None:
            return (assumed_size(self.assumed_rows, self._size_name),)
        if self.counted is not None and not self.rows_known and not self.people:
            return (Assumption(f"the table is assumed to have {self.counted}", "rows"),)
        return self._kept_assumptions

    @property
    def _kept_assumptions(self) -> tuple[Assumption, ...]:
        """Which rows an expected number is of, where only so many of each unit are used."""
        most, kept = self._rows_of_one, self._most_kept
        if most is None or "rows" not in self.expected:
            return ()
        rows = f"{int(self._table_rows):,} expected rows"
        if kept is None:
            return (Assumption(f"the {rows} are those that are used: at most {most:,} of each unit", "people"),)
        if not kept < self._table_rows:
            return ()
        return (Assumption(f"of the {rows} at most {kept:,} are used: {most:,} of each unit"),)

    @property
    def most_rows(self) -> float:
        """The same for what grows with the rows, such as the error of a count as one of a population."""
        uncertain = self.counted is not None and not self.rows_known and not self.people
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
        # Categories with their shares, and that of no category.
        if isinstance(given, Mapping) and given.get(None):
            weights = [float(share) for share in given.values()]
            return 1.0 - float(given[None]) / sum(weights) if sum(weights) > 0 else 1.0
        return 1.0

    def sensitivity(self, aggregate: Aggregate, derived: Mapping[str, Any] | None = None) -> Sensitivity:
        """How far one unit moves an aggregate, over the dataset with further columns derived."""
        dataset = self.dataset.derive(**derived) if derived else self.dataset
        return dataset.sensitivity(aggregate)

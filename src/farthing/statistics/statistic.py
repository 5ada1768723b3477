"""A statistic: what is asked of a table, as a frozen value. It knows nothing of rows, noise or budgets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from farthing.data.aggregates.aggregate import names_of
from farthing.data.aggregates.unit_bounds import UnitBound
from farthing.data.expressions.parser import parse
from farthing.data.expressions.syntax_tree import written
from farthing.data.schema import MOST_CATEGORIES
from farthing.errors import InvalidValue
from farthing.privacy.events import checked_real

Kind = Literal[
    "count",
    "sum",
    "mean",
    "variance",
    "std",
    "histogram",
    "top",
    "quantile",
    "quantiles",
    "cdf",
    "contingency",
    "ranges",
    "marginals",
    "linear_regression",
    "count_distinct",
]
Bins = int | tuple[Any, ...]

COUNT_FAMILY: tuple[Kind, ...] = ("count", "histogram", "top", "cdf", "contingency")
MOMENTS: tuple[Kind, ...] = ("sum", "mean", "variance", "std")
QUANTILES: tuple[Kind, ...] = ("quantile", "quantiles")
RANGES: tuple[Kind, ...] = ("ranges",)
MARGINALS: tuple[Kind, ...] = ("marginals",)
DISTINCT: tuple[Kind, ...] = ("count_distinct",)
ADDED_CELLS: tuple[Kind, ...] = ("cdf", *RANGES, *MARGINALS)
"""Statistics that are made of sums of cells: a unit must not be in two of them."""

ROWS, PEOPLE = "rows", "people"
BOUNDS = ("max_cells", "rows_per_cell", "max_rows")
"""What one unit adds to one statistic, by the names of its arguments."""

LONGEST_NAME = 200
_COLUMNS_NAMED = 4  # of marginals, which may be of very many


@dataclass(frozen=True, repr=False)
class Statistic:
    """One statistic of a table; made by `count`, `mean` and their like, which say what the fields mean.

    Args:
        kind: Which statistic it is, such as "mean".
        columns: The columns it is about, a regression's target first.
        where: A predicate as text or an Ibis deferred expression.
        by: The columns that cut it into groups.
        name: What it is called in a plan and its release; by default made from the other fields.
        bins: How numeric columns are cut into cells.
        probabilities: Which quantiles.
        for_population: Whether intervals cover sampling error too, as for a table drawn from a population.
        rounded: Whether counts are whole numbers that add up.
        ranges: The pairs of edges that ranges were limited to.
        way: How many columns a marginal has.
        strategy: How many queries are measured together.
        nonnegative: Whether estimates below 0 are put right.
        of: What is counted: "rows" or "people".
        max_cells: How many cells one unit counts in.
        rows_per_cell: How many rows of one unit count in a cell.
        max_rows: How many rows of one unit count in all.
        most: How many of the most frequent values are shown.

    Raises:
        InvalidValue: If the name cannot be printed.

    >>> from farthing.statistics import mean
    >>> statistic = mean("income", where="age>=18", by="sex")
    >>> statistic.kind, statistic.columns, statistic.where, statistic.by
    ('mean', ('income',), 'age >= 18', ('sex',))
    >>> statistic.name
    'mean of income where age >= 18 by sex'
    >>> statistic
    mean('income', where='age >= 18', by='sex')
    """

    kind: Kind
    columns: tuple[str, ...] = ()
    where: Any = None
    by: tuple[str, ...] = ()
    name: str = ""
    bins: tuple[tuple[str, Bins], ...] = ()
    probabilities: tuple[float, ...] = ()
    for_population: bool = False
    rounded: bool = False
    ranges: tuple[tuple[Any, Any], ...] = ()
    way: int = 0
    strategy: str = "auto"
    nonnegative: bool = False
    of: str = ROWS
    max_cells: int | None = None
    rows_per_cell: int | None = None
    max_rows: int | None = None
    most: int = 0

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.default_name)
        if not isinstance(self.name, str) or not self.name.isprintable() or len(self.name) > LONGEST_NAME:
            raise InvalidValue(
                "name",
                self.name,
                f"must be printable text of at most {LONGEST_NAME} characters",
                "give name=",
            )

    @property
    def column(self) -> str:
        """The column it is about, where that is one."""
        (name,) = self.columns
        return name

    @property
    def target(self) -> str:
        """The column that a regression explains."""
        return self.columns[0]

    @property
    def features(self) -> tuple[str, ...]:
        """What a regression explains it with."""
        return self.columns[1:]

    def bins_of(self, column: str) -> Bins | None:
        """How a column is cut into cells: a number of equal parts, edges, or None for its own values.

        Ranges that were listed cut it at their ends.

        Args:
            column: The column.

        Returns:
            A number of parts, a tuple of edges, or None.

        >>> from farthing.statistics import histogram
        >>> histogram("age", bins=10).bins_of("age")
        10
        """
        if self.ranges:
            return tuple(sorted({edge for pair in self.ranges for edge in pair}))
        return dict(self.bins).get(column)

    @property
    def counts_people(self) -> bool:
        """Whether a unit counts once, however many rows it has."""
        return self.of == PEOPLE

    @property
    def bound(self) -> UnitBound | None:
        """What it keeps of each unit, in place of the dataset's `max_rows`; None where that holds.

        Of people, cells of which sums are made (a cdf, ranges, marginals) hold each unit once: by one of its rows.

        >>> from farthing.statistics import cdf, count
        >>> print(count(by="ward", of="people", max_cells=2).bound)
        1 row in each of at most 2 cells
        >>> print(cdf("age", of="people").bound)
        at most 1 row
        """
        if self.max_rows is not None:
            return UnitBound(max_rows=self.max_rows)
        if self.kind in DISTINCT:  # how many rows of a unit have a value does not matter
            return None if self.max_cells is None else UnitBound(rows_per_cell=1, max_cells=self.max_cells)
        if self.counts_people and self.kind in ADDED_CELLS:
            return UnitBound(max_rows=1)
        if self.kind in ADDED_CELLS and self.rows_per_cell is not None:  # made without its constructor
            raise InvalidValue(
                "rows_per_cell", self.rows_per_cell, f"must be left out for {self.kind}", "say max_rows="
            )
        if not self.counts_people and self.rows_per_cell is None:
            return None
        return UnitBound(
            1 if self.counts_people else self.rows_per_cell, 1 if self.max_cells is None else self.max_cells
        )

    @property
    def default_name(self) -> str:
        """The name in plain words, without the one that was given."""
        text = self._subject()
        if self.counts_people:
            text = "count of people" if self.kind == "count" else f"{text} (people)"
        if self.where is not None:
            text += f" where {text_of(self.where)}"
        if self.by:
            text += f" by {_listed(self.by)}"
        return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 3]}..."

    def _subject(self) -> str:
        if self.kind == "count":
            return "count"
        if self.kind == "count_distinct":
            return f"number of different values of {self.column}"
        if self.kind == "top":
            return f"top {self.most:,} of {self.column}"
        if self.kind == "linear_regression":
            return f"regression of {self.target} on {_listed(self.features)}"
        if self.kind == "quantile":
            (probability,) = self.probabilities
            what = "median" if probability == 0.5 else f"{probability:g}-quantile"
            return f"{what} of {self.column}"
        if self.kind == "marginals":
            more = len(self.columns) - _COLUMNS_NAMED
            named = self.columns if more <= 1 else (*self.columns[:_COLUMNS_NAMED], f"{more} more")
            return f"{self.way}-way marginals of {_listed(named)}"
        return f"{self.kind} of {_listed(self.columns)}"

    @property
    def arguments(self) -> Mapping[str, Any]:
        """What its constructor was called with: positional ones under the names of its parameters."""
        arguments: dict[str, Any] = {}
        if self.kind in ("contingency", "marginals"):
            arguments["columns"] = list(self.columns)
            if self.way:
                arguments["way"] = self.way
            if self.bins:
                arguments["bins"] = {name: _plain(bins) for name, bins in self.bins}
        elif self.kind == "linear_regression":
            arguments["target"], arguments["features"] = self.target, list(self.features)
        elif self.columns:
            arguments["column"] = self.column
            if self.bins:
                arguments["bins"] = _plain(self.bins[0][1])
        if self.most:
            arguments["most"] = self.most
        if self.kind == "quantile":
            arguments["probability"] = self.probabilities[0]
        elif self.kind == "quantiles":
            arguments["probabilities"] = list(self.probabilities)
        if self.where is not None:
            arguments["where"] = text_of(self.where)
        if self.by:
            arguments["by"] = self.by[0] if len(self.by) == 1 else list(self.by)
        if self.name != self.default_name:
            arguments["name"] = self.name
        for flag in ("for_population", "rounded", "nonnegative"):
            if getattr(self, flag):
                arguments[flag] = True
        if self.ranges:
            arguments["ranges"] = list(self.ranges)
        if self.strategy != "auto":
            arguments["strategy"] = self.strategy
        if self.counts_people:
            arguments["of"] = self.of
        bounds = {name: getattr(self, name) for name in BOUNDS}
        return {**arguments, **{name: value for name, value in bounds.items() if value is not None}}

    def __repr__(self) -> str:
        by_place = ("column", "columns", "target", "features", "probability", "probabilities", "most")
        words = (repr(value) if name in by_place else f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.kind}({', '.join(words)})"


def statistic(
    kind: Kind,
    columns: str | Sequence[str] = (),
    *,
    where: Any = None,
    by: str | Sequence[str] | None = None,
    name: str | None = None,
    bins: Any = None,
    probabilities: Sequence[float] = (),
    for_population: bool = False,
    rounded: bool = False,
    ranges: Any = None,
    way: Any = None,
    strategy: Any = "auto",
    nonnegative: bool = False,
    of: Any = ROWS,
    max_cells: Any = None,
    rows_per_cell: Any = None,
    max_rows: Any = None,
    most: Any = None,
) -> Statistic:
    """A statistic with its arguments checked, as far as that can be done without a schema."""
    flags = {"for_population": for_population, "rounded": rounded, "nonnegative": nonnegative}
    for flag, value in flags.items():
        if not isinstance(value, bool):
            raise InvalidValue(flag, value, "must be True or False")
    if ranges is not None and bins is not None:
        raise InvalidValue(
            "bins", bins, "must be left out where ranges are listed", "cells begin and end where ranges do"
        )
    named, groups = names_of(columns, "columns"), _read_by(by)
    limits = {"max_cells": max_cells, "rows_per_cell": rows_per_cell, "max_rows": max_rows}
    cut_by = (*(named if kind in COUNT_FAMILY else ()), *groups)
    _refuse_bounds(kind, cut_by, of, limits)
    return Statistic(
        kind=kind,
        columns=named,
        where=_read_where(where),
        by=groups,
        name=_read_name(name),
        bins=_read_bins(kind, named, bins),
        probabilities=tuple(_read_probability(value) for value in probabilities),
        for_population=for_population,
        rounded=rounded,
        ranges=_read_ranges(ranges),
        way=0 if way is None else _read_way(way, len(named)),
        strategy=_read_strategy(strategy),
        nonnegative=nonnegative,
        of=of,
        **limits,
        most=0 if most is None else _read_most(most),
    )


def _refuse_bounds(kind: Kind, cut_by: tuple[str, ...], of: Any, limits: Mapping[str, Any]) -> None:
    """Refuse bounds that do not say what one unit adds; cells that columns cut must be bounded in their number."""
    if of not in (ROWS, PEOPLE):
        raise InvalidValue("of", of, "must be rows or people", "people counts each unit once")
    cells, rows, total = (limits[name] for name in BOUNDS)
    if of == PEOPLE:
        for name, value in (("rows_per_cell", rows), ("max_rows", total)):
            if value is not None:
                raise InvalidValue(name, value, "must be left out for people, who count once", "say max_cells=")
    elif total is not None and (cells is not None or rows is not None):
        way_out = "leave rows_per_cell and max_cells out, or say both in its place"
        raise InvalidValue("max_rows", total, "must be the only bound", way_out)
    elif cells is not None and rows is None and kind not in DISTINCT:
        way_out = 'say rows_per_cell=, or of="people"' if kind in COUNT_FAMILY else "say rows_per_cell="
        raise InvalidValue("max_cells", cells, "must come with the number of rows in each cell", way_out)
    if kind in ADDED_CELLS and (rows is not None or cells not in (None, 1)):
        raise InvalidValue(
            "max_cells" if rows is None else "rows_per_cell",
            cells if rows is None else rows,
            f"must be left out for {kind}, which adds up cells: a unit in several would count several times",
            'of="people" counts each unit in one cell, max_rows= bounds its rows, and a histogram has max_cells=',
        )
    wanted = of == PEOPLE and kind not in ADDED_CELLS
    if cut_by and cells is None and (wanted or rows is not None):
        raise InvalidValue(
            "max_cells",
            None,
            f"must be given for a {kind} of {of} by {_listed(cut_by)}, where one unit may be in several cells",
            f"the number of cells of {_listed(cut_by)} leaves nobody out; a unit in more cells than you say is missing "
            "from some of them, chosen at random",
        )
    UnitBound(1 if rows is None else rows, 1 if cells is None else cells)  # refuses numbers that are none
    if total is not None:
        UnitBound(max_rows=total)


def text_of(where: Any) -> str:
    """A predicate in words: text as it was written, a deferred expression without its placeholder."""
    if isinstance(where, str):
        return where
    text = re.sub(r"\b_\.(?=\w)", "", repr(where))
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def column_text(column: str) -> str:
    """A column's name inside the name of a measurement: in quotes unless it is one word, so that no two are alike.

    >>> print(column_text("age"), column_text("age at visit"))
    age "age at visit"
    """
    return column if column.isidentifier() else '"' + column.replace('"', '""') + '"'


def _read_where(where: Any) -> Any:
    if where is None:
        return None
    if isinstance(where, str):
        return written(parse(where))
    if type(where).__name__ != "Deferred":
        raise InvalidValue("where", where, "must be text or an Ibis deferred expression", 'for example "age >= 18"')
    return where


def _read_by(by: str | Sequence[str] | None) -> tuple[str, ...]:
    if by is None:
        return ()
    if not isinstance(by, str | list | tuple):
        raise InvalidValue("by", by, "must be a column or a list of columns", 'for example by="sex"')
    if not by:
        raise InvalidValue("by", by, "must name at least one column", "leave it out for one group of all rows")
    return names_of(by)


def _read_name(name: str | None) -> str:
    if name is None:
        return ""
    if not isinstance(name, str) or not name.strip():
        raise InvalidValue("name", name, "must be text", "leave it out for a name in plain words")
    return str(name)


def _read_bins(kind: Kind, columns: tuple[str, ...], bins: Any) -> tuple[tuple[str, Bins], ...]:
    if bins is None:
        return ()
    if kind not in ("contingency", "marginals"):
        return ((columns[0], _one_bins(bins)),)
    if not isinstance(bins, Mapping):
        raise InvalidValue("bins", bins, "must say which column is cut how", f"for example bins={{{columns[0]!r}: 10}}")
    for name in bins:
        if name not in columns:
            raise InvalidValue("bins", name, "must name columns of the table", f"they are {_listed(columns)}")
    return tuple((name, _one_bins(bins[name])) for name in columns if name in bins)


def _one_bins(bins: Any) -> Bins:
    if isinstance(bins, np.ndarray | np.integer):
        bins = bins.tolist()
    whole = isinstance(bins, int) and not isinstance(bins, bool)
    if whole and bins >= 1:
        return int(bins)
    if not whole and isinstance(bins, Sequence) and not isinstance(bins, str | bytes) and len(bins) >= 1:
        edges = tuple(bins)
        try:
            rising = all(a < b for a, b in pairwise(edges))
        except TypeError:
            rising = False
        if not rising:
            raise InvalidValue("bins", bins, "must be increasing edges of one kind", "sort them, without repeats")
        return edges
    raise InvalidValue(
        "bins",
        bins,
        "must be a number of equal parts or a list of increasing edges",
        "for example bins=10 or bins=[0, 18, 65, 110]",
    )


def _read_ranges(ranges: Any) -> tuple[tuple[Any, Any], ...]:
    if ranges is None:
        return ()
    example = "for example ranges=[(0, 18), (18, 65)]"
    if isinstance(ranges, np.ndarray):
        ranges = ranges.tolist()
    if not isinstance(ranges, list | tuple) or not ranges:
        raise InvalidValue("ranges", ranges, "must be a list of pairs (lower, upper)", example)
    pairs = []
    for pair in ranges:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise InvalidValue("ranges", pair, "must be pairs (lower, upper)", example)
        try:
            rising = bool(pair[0] < pair[1])
        except TypeError:
            rising = False
        if not rising:
            raise InvalidValue("ranges", tuple(pair), "must have its lower end first", example)
        pairs.append((pair[0], pair[1]))
    try:
        sorted(edge for pair in pairs for edge in pair)
    except TypeError:
        raise InvalidValue("ranges", ranges, "must have ends of one kind", example) from None
    if len(set(pairs)) != len(pairs):
        raise InvalidValue("ranges", ranges, "must not hold the same range twice", "each once")
    return tuple(pairs)


def _read_way(way: Any, columns: int) -> int:
    whole = isinstance(way, int) and not isinstance(way, bool)
    if not (whole and 1 <= way <= columns):
        raise InvalidValue(
            "way",
            way,
            f"must be a whole number from 1 to {columns}, the number of columns",
            "2 for all pairs of columns",
        )
    return int(way)


def _read_most(most: Any) -> int:
    whole = isinstance(most, int) and not isinstance(most, bool)
    if not (whole and 1 <= most <= MOST_CATEGORIES):
        rule = f"must be a whole number from 1 to {MOST_CATEGORIES:,}"
        raise InvalidValue("most", most, rule, "10 for the ten most frequent values")
    return int(most)


def _read_strategy(strategy: Any) -> str:
    if not isinstance(strategy, str) or not strategy:
        raise InvalidValue("strategy", strategy, "must be the name of a strategy", "auto chooses one")
    return strategy


def _read_probability(value: Any) -> float:
    number = checked_real(value, "probability")
    if not 0 < number < 1:
        way_out = f"write {number / 100:g}" if 2 <= number < 100 else "0.5 is the median"
        raise InvalidValue("probability", value, "must lie between 0 and 1", way_out)
    return number


def _plain(bins: Bins) -> Any:
    return list(bins) if isinstance(bins, tuple) else bins


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

"""How much one unit adds to one aggregate: cells, rows in each of them, or rows in all.

A dataset's own `max_rows` keeps some rows of each unit for everything that is asked. An aggregate with a bound of its
own looks at all rows of a unit instead, and keeps those that its bound allows:

    rows_per_cell, max_cells   at most `max_cells` of the cells that a unit reaches, and `rows_per_cell` rows in each
    max_rows                   at most `max_rows` rows in all

With one row in each cell, a count of rows is a count of people: a unit counts once in every cell where it has a row.
Of quantiles, whose cells are the points of a grid, it is the groups that are bounded (`BoundedGroups`).

What is kept is chosen at random among the rows of the unit alone, after conditions and after rows outside the listed
cells have left, so that the claim holds for every outcome of the draw (see `farthing.data.unit_rows`). Where nothing
has to be left out, nothing is drawn, and every engine finds the same integers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from farthing.data.aggregates.aggregate import Aggregate, AggregateQuery, Axis, Feature, aggregate_queries
from farthing.data.expressions import read
from farthing.data.schema import Schema
from farthing.data.stability import ADD_REMOVE, REPLACE, Sensitivity
from farthing.data.unit_rows import MOST_ROWS_A_UNIT, UNIT, bounded, with_draw
from farthing.errors import InvalidValue

_DRAW, _PLACE = "__farthing_group_draw", "__farthing_group_place"


@dataclass(frozen=True)
class UnitBound:
    """What is kept of each unit: cells with rows in each, or rows in all.

    Args:
        rows_per_cell: How many rows of a unit count in one cell.
        max_cells: How many cells a unit counts in.
        max_rows: How many rows of a unit count in all; then the others are left out.

    Raises:
        InvalidValue: If a number is not whole and positive, or both ways are mixed.

    >>> print(UnitBound(rows_per_cell=1, max_cells=3))
    1 row in each of at most 3 cells
    >>> print(UnitBound(max_rows=20))
    at most 20 rows
    """

    rows_per_cell: int | None = None
    max_cells: int | None = None
    max_rows: int | None = None

    def __post_init__(self) -> None:
        for name in ("rows_per_cell", "max_cells", "max_rows"):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool)
            if value is not None and not (whole and 1 <= value <= MOST_ROWS_A_UNIT):
                raise InvalidValue(name, value, f"must be a whole number from 1 to {MOST_ROWS_A_UNIT:,}")
        given = [value is not None for value in (self.rows_per_cell, self.max_cells, self.max_rows)]
        if given not in ([True, True, False], [False, False, True]):
            raise InvalidValue(
                "max_rows",
                self.max_rows,
                "must be given alone, or rows_per_cell and max_cells together in its place",
                "rows_per_cell=1, max_cells=3 keeps one row in each of three cells",
            )

    @property
    def most_in_cell(self) -> int:
        """How many rows of a unit count in one cell at most."""
        most = self.rows_per_cell if self.max_rows is None else self.max_rows
        assert most is not None, "one of the two was given"
        return most

    @property
    def rows_kept(self) -> int:
        """A unit with so many rows keeps all of them, whichever cells they are in."""
        return min(number for number in (self.rows_per_cell, self.max_cells, self.max_rows) if number is not None)

    def rows_in(self, cells: int) -> int:
        """How many rows of a unit count in so many cells together, at most.

        Args:
            cells: How many cells there are.

        Returns:
            The number of rows.

        >>> UnitBound(rows_per_cell=2, max_cells=3).rows_in(10), UnitBound(max_rows=4).rows_in(10)
        (6, 4)
        """
        if self.max_rows is not None:
            return self.max_rows
        assert self.rows_per_cell is not None and self.max_cells is not None, "they come together"
        return self.rows_per_cell * min(self.max_cells, cells)

    def __str__(self) -> str:
        if self.max_rows is not None:
            return f"at most {_many(self.max_rows, 'row')}"
        assert self.rows_per_cell is not None and self.max_cells is not None, "they come together"
        each = "1 row" if self.rows_per_cell == 1 else f"at most {_many(self.rows_per_cell, 'row')}"
        return f"{each} in each of at most {_many(self.max_cells, 'cell')}"


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def sensitivity_of_cells(
    cells: int, kept: int, added: Sensitivity, replaced: Sensitivity, group: int = 1, neighbours: str = ADD_REMOVE
) -> Sensitivity:
    """Sensitivity of a table of sums in which a unit adds to at most `kept` of `cells` cells.

    Statement:
        Let a unit add to at most k = min(kept, cells) cells a vector each, and let one such vector move a cell by at
        most `added` when it comes or goes, and by at most `replaced` when another one takes its place. If `group` units
        come or go, sums move by at most
            linf = group added.linf,  l1 = group k added.l1,  l2^2 = group^2 k added.l2^2.
        If they are replaced, two units have j cells in common and at most s(j) = min(2 (k - j), cells - j) that only
        one of them is in, and sums move by at most
            linf = group max(added.linf, replaced.linf),  l1 = group max_j (j replaced.l1 + s(j) added.l1),
            l2^2 = group^2 max_j (j replaced.l2^2 + s(j) added.l2^2),
        where j is 0, k, or 2 k - cells if that is positive: the sums are concave and piecewise linear in j, and bend
        only there.
    Source: own; cells are disjoint blocks, so that l1 norms and squared l2 norms add up over them; triangle inequality
        over the units of a group.
    Assumes: which cells and rows are kept depends on the unit's own rows alone.
    Direction: upper bounds; tight for counts.
    Checked by: tests/contracts/test_unit_bounds.py

    >>> one = Sensitivity(1, 1, 1, 1)
    >>> sensitivity_of_cells(10, 3, one, one)
    Sensitivity(l0=3, l1=3, l2_squared=3, linf=1)
    >>> sensitivity_of_cells(10, 3, one, one, neighbours="replace")
    Sensitivity(l0=6, l1=6, l2_squared=6, linf=1)
    >>> sensitivity_of_cells(4, 3, one, one, neighbours="replace").l1
    4
    """
    most = min(kept, cells)
    if neighbours != REPLACE:
        return Sensitivity(
            l0=added.l0 * min(cells, group * most),
            l1=group * most * added.l1,
            l2_squared=group**2 * most * added.l2_squared,
            linf=group * added.linf,
        )
    shared = {0, most, max(0, 2 * most - cells)}
    pairs = [(both, min(2 * (most - both), cells - both)) for both in shared]
    return Sensitivity(
        l0=max(added.l0, replaced.l0) * min(cells, 2 * group * most),
        l1=group * max(both * replaced.l1 + one * added.l1 for both, one in pairs),
        l2_squared=group**2 * max(both * replaced.l2_squared + one * added.l2_squared for both, one in pairs),
        linf=group * max(added.linf, replaced.linf),
    )


@dataclass(frozen=True)
class Bounded(Aggregate):
    """An aggregate of all rows of a unit, of which a bound of its own keeps some.

    Args:
        aggregate: What is added up, in cells of which a row is in one.
        bound: What is kept of each unit.
        choice: Aggregates of one bound, one condition and the same cells that have the same text here are of the same
            rows; without it, each keeps rows of its own.

    >>> import pyarrow
    >>> from farthing.data import Count, dataset
    >>> table = pyarrow.table({"person": [1, 1, 1, 2], "ward": ["N", "N", "S", "S"]})
    >>> visits = dataset(table, unit="person", max_rows=1, schema={"ward": ["N", "S"]})
    >>> people = Bounded(Count(by="ward"), UnitBound(rows_per_cell=1, max_cells=2))
    >>> visits.exact({"people": people})["people"]
    array([1, 2])
    >>> visits.sensitivity(people)
    Sensitivity(l0=2, l1=2, l2_squared=2, linf=1)
    """

    aggregate: Aggregate
    bound: UnitBound
    choice: str = field(default="", repr=False)  # nothing that is claimed depends on it

    @property
    def by(self) -> tuple[str, ...]:  # type: ignore[override]
        """The columns of the groups."""
        return self.aggregate.by

    @property
    def where(self) -> Any:
        """Which rows count at all."""
        return self.aggregate.where

    def axes(self, schema: Schema) -> tuple[Axis, ...]:
        return self.aggregate.axes(schema)

    def features(self, schema: Schema) -> tuple[Feature, ...]:
        return self.aggregate.features(schema)

    def cell_count(self, schema: Schema) -> int:
        return self.aggregate.cell_count(schema)

    def ranges(self, schema: Schema) -> list[tuple[int, int]]:
        return self.aggregate.ranges(schema)

    def finished(self, sums: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return self.aggregate.finished(sums)

    def sensitivity(self, schema: Schema, rows: int, neighbours: str) -> Sensitivity:
        """How far `rows` units move it: how many rows each of them has does not matter."""
        own, bound = self.aggregate, self.bound
        cells = own.cell_count(schema)
        if bound.max_rows is not None:
            return own.sensitivity(schema, rows * bound.max_rows, neighbours)
        assert bound.rows_per_cell is not None and bound.max_cells is not None, "they come together"
        if own.of_presence:  # one row in each of the cells would change as much
            return own.sensitivity(schema, rows * min(bound.max_cells, cells), neighbours)
        added, replaced = (own.sensitivity_in(1, schema, bound.rows_per_cell, each) for each in (ADD_REMOVE, REPLACE))
        return sensitivity_of_cells(cells, bound.max_cells, added, replaced, rows, neighbours)


@dataclass(frozen=True)
class BoundedGroups(Bounded):
    """The same, where the cells of the bound are the groups of some columns, in each of which there are many cells.

    Statement:
        If at most r rows of a unit are kept in each of at most c of G groups, at most r min(c, G) of its rows are kept,
        and neighbours differ by no more than with so many rows of a unit in all.
    Source: a group is a union of cells, and a row is in one of them; `sensitivity_of_rows` for r min(c, G) rows.
    Assumes: which groups and rows are kept depends on the unit's own rows alone.
    Direction: upper bound; tight in l1.
    Checked by: tests/contracts/test_statistic_bounds.py

    Args:
        aggregate: What is added up, in cells of which a row is in one.
        bound: What is kept of each unit in the groups.
        choice: As for `Bounded`.
        groups: The columns whose cells are the groups: the first axes of the aggregate.

    >>> import pyarrow
    >>> from farthing.data import CellCounts, dataset
    >>> table = pyarrow.table({"person": [1, 1, 1, 1], "ward": ["N", "N", "N", "S"], "age": [3, 4, 5, 6]})
    >>> visits = dataset(table, unit="person", schema={"ward": ["N", "S"], "age": (0, 9)})
    >>> ages = BoundedGroups(CellCounts(["ward", "age"]), UnitBound(rows_per_cell=2, max_cells=2), groups=("ward",))
    >>> visits.exact({"ages": ages})["ages"].sum(axis=1)
    array([2, 1])
    >>> visits.sensitivity(ages).l1
    4
    """

    groups: tuple[str, ...] = ()

    def group_count(self, schema: Schema) -> int:
        """How many groups there are."""
        return math.prod(len(axis) for axis in self.axes(schema)[: len(self.groups)])

    def sensitivity(self, schema: Schema, rows: int, neighbours: str) -> Sensitivity:
        """How far `rows` units move it."""
        kept = self.bound.rows_in(self.group_count(schema))
        return self.aggregate.sensitivity(schema, rows * kept, neighbours)


@dataclass(frozen=True)
class BoundedQuery(AggregateQuery):
    """One query for aggregates of one bound and condition: rows by unit and cell, some of them kept, then cells."""

    bound: UnitBound
    where: Any

    looks_at_all_rows: ClassVar[bool] = True

    @property
    def has_one_table(self) -> bool:
        """Whether all of its aggregates have the same cells."""
        return all(each.axes(self.schema) == self.axes for each in self.aggregates.values())

    def expression(self, table: Any) -> Any:
        """One group for each cell; in between, one for each unit and cell."""
        if self.where is not None:  # rows that do not count take the place of none that do
            table = table.filter(read(self.where, self.schema).to_ibis(table, cells_read=True))
        units = [name for name in table.columns if name.startswith(UNIT)]
        columns = {f"a{place}": _one_key(axis, axis.value(table)) for place, axis in enumerate(self.axes)}
        columns |= {f"f{place}": _wide(feature, feature.value(table)) for place, feature in enumerate(self.features)}
        narrow = table.select(*units, **columns)
        cells = [f"a{place}" for place in range(len(self.axes))]
        if self.has_one_table:  # else a row that is in no cell of one may be in one of another
            for name, axis in zip(cells, self.axes, strict=True):
                narrow = _inside(narrow, name, axis)
        kept = self._kept(narrow, units, cells)
        sums = {f"s{place}": kept[f"f{place}"].sum() for place in range(len(self.features))}
        return kept.aggregate(by=cells, **sums)

    def _kept(self, rows: Any, units: list[str], cells: list[str]) -> Any:
        bound = self.bound
        if bound.max_rows is not None:
            return bounded(rows, units, bound.max_rows)
        assert bound.rows_per_cell is not None and bound.max_cells is not None, "they come together"
        own = next(iter(self.aggregates.values()))
        if isinstance(own, BoundedGroups):
            return _kept_of_groups(rows, units, cells[: len(own.groups)], bound, own.group_count(self.schema))
        counted = len(self.features) == 1 and (self.features[0].lower, self.features[0].upper) == (0, 1)
        if not counted:  # which rows are kept matters to their sum
            rows = bounded(rows, [*units, *cells], bound.rows_per_cell)
        sums = {f"f{place}": rows[f"f{place}"].sum() for place in range(len(self.features))}
        reached = rows.aggregate(by=[*units, *cells], **sums)
        if counted:
            reached = reached.mutate(f0=_at_most(reached["f0"], bound.rows_per_cell))
        if bound.max_cells >= own.cell_count(self.schema):  # nothing to leave out
            return reached
        return bounded(reached, units, bound.max_cells)


def _kept_of_groups(rows: Any, units: list[str], groups: list[str], bound: UnitBound, number: int) -> Any:
    """At most so many rows of a unit in each of at most so many of its groups; both are chosen at random.

    A group is drawn by one of its rows, so that those with more rows are kept more often. In one pass, because rows
    that are themselves drawn would be others in a second one.
    """
    import ibis

    assert bound.rows_per_cell is not None and bound.max_cells is not None, "they come together"
    if bound.max_cells < number:
        drawn = with_draw(rows, _DRAW)
        drawn = drawn.mutate(**{_DRAW: drawn[_DRAW].min().over(group_by=[*units, *groups])})
        # Two groups of one draw are still two: the names of their cells come next.
        place = ibis.dense_rank().over(group_by=units, order_by=[_DRAW, *groups])
        drawn = drawn.mutate(**{_PLACE: place})
        rows = drawn.filter(drawn[_PLACE] < bound.max_cells).drop(_DRAW, _PLACE)
    return bounded(rows, [*units, *groups], bound.rows_per_cell)


def bounded_queries(aggregates: Mapping[str, Bounded], schema: Schema, *, apart: bool = False) -> list[BoundedQuery]:
    """One query for each aggregate; those of one number of rows in all share the choice of rows, where they can.

    So do those of one `choice`, if they have the same cells.
    """
    shared: dict[Any, dict[str, Bounded]] = {}
    for number, (name, each) in enumerate(aggregates.items()):
        _refuse_other_cells(name, each, schema)
        total = each.bound.max_rows is not None
        where = None if each.where is None else read(each.where, schema).text
        alike = () if total else (each.choice, each.axes(schema))
        key: Any = (each.bound, where, *alike) if (total or each.choice) and not apart else number
        shared.setdefault(key, {})[name] = each
    queries = []
    for group in shared.values():
        plain = aggregate_queries({name: each.aggregate for name, each in group.items()}, schema, apart=apart)
        for query in plain:
            own = {name: group[name] for name in query.aggregates}
            first = next(iter(own.values()))
            queries.append(BoundedQuery(own, query.axes, query.features, schema, first.bound, first.where))
    return queries


def _refuse_other_cells(name: str, bounded: Bounded, schema: Schema) -> None:
    axes = math.prod(len(axis) for axis in bounded.axes(schema))
    if axes != bounded.cell_count(schema):
        raise InvalidValue(name, bounded.aggregate, "must count each row in one cell of its axes to be bounded")


def _at_most(number: Any, most: int) -> Any:
    import ibis

    return ibis.least(number, ibis.literal(most, "int64"))


def _wide(feature: Feature, value: Any) -> Any:
    return value.cast("decimal(38, 0)") if feature.wide else value


def _one_key(axis: Axis, value: Any) -> Any:
    """The key of a cell, where several stand for the same: the last interval is that of the upper bound, too."""
    import ibis

    first: dict[int, Any] = {}
    same = []
    for key, place in axis.places.items():
        if key is None or place < 0:
            continue
        if place in first:
            same.append((value == ibis.literal(key), ibis.literal(first[place], value.type())))
        first.setdefault(place, key)
    return ibis.cases(*same, else_=value) if same else value


def _inside(table: Any, name: str, axis: Axis) -> Any:
    """The rows that are in a cell of an axis: others would use up what a unit may reach."""
    outside = [key for key, place in axis.places.items() if key is not None and place < 0]
    if outside:
        table = table.filter(table[name].isnull() | ~table[name].isin(outside))
    if axis.places.get(None, -1) < 0:
        table = table.filter(table[name].notnull())
    return table

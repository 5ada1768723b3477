"""Counts over a public grid of a column: a histogram, and the ranks from which quantiles are found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from farthing.data.aggregates.aggregate import (
    Aggregate,
    Axis,
    Feature,
    Names,
    axis_of,
    domain_of,
    names_of,
)
from farthing.data.aggregates.bin_edges import bounds_of, checked_edges, equal_edges, place_of, places
from farthing.data.schema import Categories, Dates, Flags, Schema
from farthing.errors import InvalidValue


def one(table: Any) -> Any:
    """What a row adds to a count."""
    import ibis

    return ibis.literal(1, "int64")


@dataclass(frozen=True)
class Count(Aggregate):
    """The number of rows, or of rows where `column` is not missing; one number for each cell of `by`.

    >>> Count(by="sex").by
    ('sex',)
    """

    column: str | None = None
    by: Names = ()  # type: ignore[assignment]
    where: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", names_of(self.by))

    def features(self, schema: Schema) -> tuple[Feature, ...]:
        """One."""
        if self.column is None:
            return (Feature(("one",), (), 0, 1, one),)
        name = self.column
        domain_of(name, schema)
        return (
            Feature(
                ("present", name),
                (name,),
                0,
                1,
                lambda table: table[name].notnull().ifelse(1, 0).cast("int64"),
            ),
        )


@dataclass(frozen=True)
class CellCounts(Aggregate):
    """The number of rows in every cell of the cross product of `columns`; cells without rows are 0.

    >>> CellCounts(["sex", "age"]).by
    ('sex', 'age')
    """

    columns: Names
    where: Any = None

    def __post_init__(self) -> None:
        if not names_of(self.columns, "columns"):
            raise InvalidValue(
                "columns", self.columns, "must name at least one column", "use Count() for all rows"
            )
        object.__setattr__(self, "columns", names_of(self.columns, "columns"))
        object.__setattr__(self, "by", self.columns)

    def features(self, schema: Schema) -> tuple[Feature, ...]:
        """One."""
        return (Feature(("one",), (), 0, 1, one),)


@dataclass(frozen=True)
class Histogram(Aggregate):
    """The number of rows in every cell of `column`, inside every cell of `by`.

    `cells` is how many equal parts the bounds are cut into, or the edges themselves; it is left out for categories.
    The last cell holds its upper edge.

    >>> Histogram("age", cells=22).cells
    22
    """

    column: str
    cells: int | Sequence[Any] | None = None
    by: Names = ()  # type: ignore[assignment]
    where: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", names_of(self.by))
        if self.cells is not None and not isinstance(self.cells, int):
            object.__setattr__(self, "cells", tuple(self.cells))

    def axes(self, schema: Schema) -> tuple[Axis, ...]:
        """Those of `by`, then the cells of the column."""
        domain = domain_of(self.column, schema)
        if self.cells is not None and isinstance(domain, Categories | Flags):
            rule = f"must be left out: column {self.column!r} has categories"
            raise InvalidValue("cells", self.cells, rule, "they are its cells")
        if self.cells is None:
            return (*super().axes(schema), axis_of(self.column, schema))
        return (*super().axes(schema), binned_axis(self.column, self.edges(schema), schema))

    def edges(self, schema: Schema) -> tuple[Any, ...]:
        """Where cells begin and end, the two bounds included."""
        domain = domain_of(self.column, schema)
        if isinstance(self.cells, int):
            return equal_edges(self.column, domain, self.cells)
        return checked_edges(self.column, domain, self.cells or ())

    def features(self, schema: Schema) -> tuple[Feature, ...]:
        """One."""
        return (Feature(("one",), (), 0, 1, one),)


@dataclass(frozen=True)
class OrderCounts(Aggregate):
    """For each point of `grid`, the number of rows whose value is below it: ranks, from which quantiles are found.

    `grid` is a number of equal steps between the bounds, or the points themselves, rising.

    >>> OrderCounts("bmi", grid=100).grid
    100
    """

    column: str
    grid: int | Sequence[Any]
    by: Names = ()  # type: ignore[assignment]
    where: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", names_of(self.by))
        if not isinstance(self.grid, int):
            object.__setattr__(self, "grid", tuple(self.grid))

    def points(self, schema: Schema) -> tuple[Any, ...]:
        """The points at which ranks are taken, between the bounds."""
        return self._edges(schema)[1:-1]

    def _edges(self, schema: Schema) -> tuple[Any, ...]:
        domain = domain_of(self.column, schema)
        if isinstance(self.grid, int):
            return equal_edges(self.column, domain, self.grid)
        lower, upper = bounds_of(self.column, domain)
        kind = type(lower) if isinstance(domain, Dates) else int | float
        for point in self.grid:  # NaN is not itself: it would be left out in silence
            if isinstance(point, bool) or not isinstance(point, kind) or point != point:
                raise InvalidValue("grid", point, f"must be a value of the kind of column {self.column!r}")
        inside = [point for point in self.grid if lower < point < upper]
        return checked_edges(self.column, domain, (lower, *inside, upper))

    def axes(self, schema: Schema) -> tuple[Axis, ...]:
        """Those of `by`, then the steps of the grid."""
        return (*super().axes(schema), binned_axis(self.column, self._edges(schema), schema))

    def features(self, schema: Schema) -> tuple[Feature, ...]:
        """One."""
        return (Feature(("one",), (), 0, 1, one),)

    def cell_count(self, schema: Schema) -> int:
        """Those of `by`: a row adds to many ranks of one cell."""
        return math.prod(len(axis) for axis in super().axes(schema))

    def ranges(self, schema: Schema) -> list[tuple[int, int]]:
        """A row is below any number of points."""
        return [(0, 1)] * len(self.points(schema))

    def finished(self, sums: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Running totals of the steps: rows below each point."""
        return np.cumsum(sums[..., 0], axis=-1)[..., :-1]


def binned_axis(name: str, edges: tuple[Any, ...], schema: Schema) -> Axis:
    """The cells between edges, as an axis."""
    domain = domain_of(name, schema)
    labels = tuple(pairwise(edges))
    return Axis(
        ("edges", name, edges),
        (name,),
        labels,
        lambda table: place_of(table[name], edges, domain),
        places(edges),
    )

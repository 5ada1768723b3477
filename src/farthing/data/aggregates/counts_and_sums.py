"""The aggregates: counts of rows in public cells, and sums on an integer grid.

Count, CellCounts             rows, in all or in every cell of a cross product
Histogram, OrderCounts        counts over a public grid of a column, and the ranks from which quantiles are found
Sum, Moments, CrossProducts   sums of a column, of its powers, of products of columns
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np

from farthing.data.aggregates.aggregate import (
    LARGEST_TERM,
    Aggregate,
    Axis,
    Feature,
    Names,
    axis_of,
    domain_of,
    names_of,
)
from farthing.data.aggregates.bin_edges import bounds_of, checked_edges, equal_edges, place_of, places
from farthing.data.expressions.ibis_compiler import literal
from farthing.data.schema import Categories, Dates, Flags, Integers, Reals, Schema
from farthing.errors import InvalidValue


def one(table: Any) -> Any:
    """What a row adds to a count."""
    import ibis

    return ibis.literal(1, "int64")


@dataclass(frozen=True)
class Count(Aggregate):
    """The number of rows, or of rows where `column` is not missing; one number for each cell of `by`.

    Args:
        column: Count the rows where this column is not missing; all rows by default.
        by: The columns whose cells are counted apart.
        where: Count only the rows for which this condition is true.

    Raises:
        InvalidValue: If a name stands twice in `by`.

    >>> Count(by="sex").by
    ('sex',)
    """

    column: str | None = None
    by: Names = ()  # type: ignore[assignment]
    where: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", names_of(self.by))

    def features(self, schema: Schema) -> tuple[Feature, ...]:
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

    Args:
        columns: One or more columns.
        where: Count only the rows for which this condition is true.

    Raises:
        InvalidValue: If no column is named, or one twice.

    >>> CellCounts(["sex", "age"]).by
    ('sex', 'age')
    """

    columns: Names
    where: Any = None

    def __post_init__(self) -> None:
        if not names_of(self.columns, "columns"):
            raise InvalidValue("columns", self.columns, "must name at least one column", "use Count() for all rows")
        object.__setattr__(self, "columns", names_of(self.columns, "columns"))
        object.__setattr__(self, "by", self.columns)

    def features(self, schema: Schema) -> tuple[Feature, ...]:
        return (Feature(("one",), (), 0, 1, one),)


@dataclass(frozen=True)
class Histogram(Aggregate):
    """The number of rows in every cell of `column`, inside every cell of `by`.

    Args:
        column: The column whose values are counted.
        cells: How many equal parts the bounds are cut into, or the edges themselves; left out for categories. The last
            cell holds its upper edge.
        by: The columns whose cells are counted apart.
        where: Count only the rows for which this condition is true.

    Raises:
        InvalidValue: If a name stands twice in `by`.

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
        """Where cells begin and end, the two bounds included.

        Args:
            schema: The columns and their domains.

        Returns:
            The edges, rising: one more than there are cells.

        Raises:
            InvalidValue: If the column cannot be cut like this.

        >>> Histogram("age", cells=2).edges(Schema.read({"age": (0, 9)}))
        (0, 4, 9)
        """
        domain = domain_of(self.column, schema)
        if isinstance(self.cells, int):
            return equal_edges(self.column, domain, self.cells)
        return checked_edges(self.column, domain, self.cells or ())

    def features(self, schema: Schema) -> tuple[Feature, ...]:
        return (Feature(("one",), (), 0, 1, one),)


@dataclass(frozen=True)
class OrderCounts(Aggregate):
    """For each point of `grid`, the number of rows whose value is below it: ranks, from which quantiles are found.

    Args:
        column: The column whose values are ranked.
        grid: A number of equal steps between the bounds, or the points themselves, rising.
        by: The columns whose cells are counted apart.
        where: Count only the rows for which this condition is true.

    Raises:
        InvalidValue: If a name stands twice in `by`.

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
        """The points at which ranks are taken, between the bounds.

        Args:
            schema: The columns and their domains.

        Returns:
            The points, rising.

        Raises:
            InvalidValue: If the column cannot be cut like this.

        >>> OrderCounts("age", grid=3).points(Schema.read({"age": (0, 9)}))
        (3, 6)
        """
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


STEPS = 20  # the default grid splits the larger bound into about 2**20 steps, a millionth of it each


def default_grid(name: str, schema: Schema) -> float:
    """1 for whole numbers; for reals the power of two that makes the bounds about a million steps."""
    domain = domain_of(name, schema)
    if not isinstance(domain, Reals):
        return 1.0
    size = max(abs(domain.lower), abs(domain.upper))
    return 2.0 ** (math.frexp(size)[1] - STEPS) if size else 1.0


def checked_grid(grid: object) -> float:
    """A power of two: dividing by one is exact in floating point, on every engine."""
    valid = isinstance(grid, int | float) and not isinstance(grid, bool) and 2.0**-1000 <= grid <= 2.0**62
    if not valid or math.frexp(grid)[0] != 0.5:  # type: ignore[arg-type]
        raise InvalidValue("grid", grid, "must be a power of two", "for example 2**-10, or leave it out")
    return float(grid)  # type: ignore[arg-type]


def on_grid(name: str, grid: float, schema: Schema) -> tuple[int, int, Callable[[Any], Any]]:
    """The least and the largest whole number that a column takes on its grid, and its Ibis value."""
    domain = domain_of(name, schema)
    if isinstance(domain, Flags):
        return 0, 1, lambda table: _zero_or_one(table[name])
    if isinstance(domain, Categories | Dates):
        raise InvalidValue("column", name, "must hold numbers", "count it instead, or derive a number from it")
    # Dividing by a power of two is exact, so the smallest and largest integers are those of the bounds.
    if not max(abs(domain.lower), abs(domain.upper)) <= LARGEST_TERM * grid:
        raise _too_fine(name, grid)
    lower, upper = math.floor(domain.lower / grid), math.floor(domain.upper / grid)
    if isinstance(domain, Integers):
        if grid == 1:
            return domain.lower, domain.upper, lambda table: table[name]
        if not max(abs(domain.lower), abs(domain.upper)) <= 2**53:
            raise InvalidValue("grid", grid, f"must be 1 for the large whole numbers of {name!r}")
    if not max(abs(lower), abs(upper)) <= LARGEST_TERM:
        raise _too_fine(name, grid)
    return lower, upper, lambda table: (table[name].cast("float64") / literal(grid)).floor().cast("int64")


def _zero_or_one(flag: Any) -> Any:
    """A flag as a number; Postgres does not cast one to 64 bits."""
    import ibis

    return ibis.cases((flag, 1), (~flag, 0), else_=ibis.null("int64")).cast("int64")


def _too_fine(name: str, grid: float) -> InvalidValue:
    return InvalidValue("grid", grid, f"is too fine for the bounds of {name!r}", "use a coarser one")


Grids = float | Mapping[str, float] | None


class GridAggregate(Aggregate):
    """An aggregate of one column on a grid of whole steps."""

    column: str
    grid: float | None

    def grid_of(self, schema: Schema) -> float:
        """The width of one step of the grid on which the column is added up.

        Args:
            schema: The columns and their domains.

        Returns:
            The width, in the data's own units.

        >>> Sum("age").grid_of(Schema.read({"age": (0, 9)}))
        1.0
        """
        return default_grid(self.column, schema) if self.grid is None else self.grid


@dataclass(frozen=True)
class Sum(GridAggregate):
    """The sum of floor(column / grid) over the rows where the column is not missing.

    Args:
        column: The column that is added up.
        grid: A power of two; by default 1 for whole numbers and about a millionth of the bound for reals.
        by: The columns whose cells are added up apart.
        where: Add up only the rows for which this condition is true.

    Raises:
        InvalidValue: If the grid is not a power of two, or a name stands twice in `by`.

    >>> Sum("bmi", grid=2**-10).grid
    0.0009765625
    """

    column: str
    grid: float | None = None
    by: Names = ()  # type: ignore[assignment]
    where: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", names_of(self.by))
        if self.grid is not None:
            object.__setattr__(self, "grid", checked_grid(self.grid))

    def features(self, schema: Schema) -> tuple[Feature, ...]:
        """The column on its grid."""
        grid = self.grid_of(schema)
        lower, upper, value = on_grid(self.column, grid, schema)
        return (Feature(("power", self.column, grid, 1), (self.column,), lower, upper, value),)


@dataclass(frozen=True)
class Moments(GridAggregate):
    """Sums of powers of a column on its grid, over the rows where it is not missing; power 0 counts them.

    Args:
        column: The column whose powers are added up.
        powers: Which powers, from 0 on.
        grid: A power of two, as for `Sum`.
        by: The columns whose cells are added up apart.
        where: Add up only the rows for which this condition is true.

    Raises:
        InvalidValue: If a power or the grid cannot be one.

    >>> Moments("age", powers=(0, 1, 2)).powers
    (0, 1, 2)
    """

    column: str
    powers: Sequence[int] = (0, 1, 2)
    grid: float | None = None
    by: Names = ()  # type: ignore[assignment]
    where: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", names_of(self.by))
        if self.grid is not None:
            object.__setattr__(self, "grid", checked_grid(self.grid))
        powers = tuple(self.powers)
        valid = all(isinstance(p, int) and not isinstance(p, bool) and 0 <= p <= 8 for p in powers)
        if not valid or not powers or list(powers) != sorted(set(powers)):
            raise InvalidValue("powers", self.powers, "must be increasing whole numbers from 0 to 8")
        object.__setattr__(self, "powers", powers)

    def features(self, schema: Schema) -> tuple[Feature, ...]:
        grid = self.grid_of(schema)
        lower, upper, _ = on_grid(self.column, grid, schema)
        features = []
        for power in self.powers:
            low, high = sorted((lower**power, upper**power))
            if power and power % 2 == 0 and lower < 0 < upper:
                low = 0
            _refuse_large(max(abs(low), abs(high)), self.column)
            key = ("power", self.column, grid, power)
            features.append(Feature(key, (self.column,), low, high, self._power(grid, schema, power)))
        return tuple(features)

    def _power(self, grid: float, schema: Schema, power: int) -> Any:
        name, (_, _, value) = self.column, on_grid(self.column, grid, schema)

        def of(table: Any) -> Any:
            if power == 0:
                return table[name].notnull().ifelse(1, 0).cast("int64")
            base = product = value(table)
            for _ in range(power - 1):
                product = product * base
            return product

        return of


@dataclass(frozen=True)
class CrossProducts(Aggregate):
    """Sums of all products of two of (1, columns...), over the rows where no column is missing.

    The entries are the upper triangle of the Gram matrix in the order of `pairs()`; they hold everything that means,
    covariances and a linear regression need.

    Args:
        columns: Two or more columns of numbers.
        grids: A power of two for each column, as for `Sum`.
        by: The columns whose cells are added up apart.
        where: Add up only the rows for which this condition is true.

    Raises:
        InvalidValue: If a column is named twice, or a grid cannot be one.

    >>> CrossProducts(["age", "bmi"]).pairs()
    [(None, None), (None, 'age'), (None, 'bmi'), ('age', 'age'), ('age', 'bmi'), ('bmi', 'bmi')]
    """

    columns: Names
    grids: Grids = None
    by: Names = ()  # type: ignore[assignment]
    where: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", names_of(self.by))
        object.__setattr__(self, "columns", names_of(self.columns, "columns"))
        if not self.columns:
            raise InvalidValue("columns", self.columns, "must name at least one column")
        if isinstance(self.grids, Mapping):
            pairs = tuple(sorted((name, checked_grid(grid)) for name, grid in self.grids.items()))
            object.__setattr__(self, "grids", pairs)  # hashable, like everything frozen
        elif self.grids is not None:
            object.__setattr__(self, "grids", checked_grid(self.grids))

    def pairs(self) -> list[tuple[str | None, str | None]]:
        """The two factors of each entry; None stands for 1."""
        return list(combinations_with_replacement((None, *self.columns), 2))

    def grid_of(self, name: str, schema: Schema) -> float:
        """The width of one step of the grid on which a column is added up.

        Args:
            name: The column.
            schema: The columns and their domains.

        Returns:
            The width, in the data's own units.

        >>> CrossProducts(["age", "bmi"]).grid_of("age", Schema.read({"age": (0, 9), "bmi": (10.0, 60.0)}))
        1.0
        """
        if isinstance(self.grids, float):
            return self.grids
        chosen: dict[str, float] = dict(self.grids) if isinstance(self.grids, tuple) else {}
        return chosen.get(name) or default_grid(name, schema)

    def features(self, schema: Schema) -> tuple[Feature, ...]:
        factors: dict[str | None, tuple[int, int, Any]] = {None: (1, 1, one)}
        grids = []
        for name in self.columns:
            grids.append(self.grid_of(name, schema))
            factors[name] = on_grid(name, grids[-1], schema)
        features = []
        for left, right in self.pairs():
            (a, b, first), (c, d, second) = factors[left], factors[right]
            corners = [x * y for x in (a, b) for y in (c, d)]
            lower, upper = min(corners), max(corners)
            if left == right and lower < 0:
                lower = 0
            _refuse_large(max(abs(lower), abs(upper)), right or left or "")
            key = ("product", self.columns, tuple(grids), left, right)
            features.append(Feature(key, tuple(self.columns), lower, upper, self._product(first, second)))
        return tuple(features)

    def _product(self, first: Any, second: Any) -> Any:
        def of(table: Any) -> Any:
            import ibis

            complete = ibis.and_(*(table[name].notnull() for name in self.columns))
            return complete.ifelse(first(table) * second(table), ibis.null("int64"))

        return of


def _refuse_large(size: int, name: str) -> None:
    if not size <= LARGEST_TERM:
        raise InvalidValue("grid", name, "is too fine: one row would add more than 2^62", "use a coarser grid")

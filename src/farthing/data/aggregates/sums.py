"""Sums on an integer grid: of a column, of its powers, of products of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

from farthing.data.aggregates.counts import one
from farthing.data.aggregates.grid import checked_grid, default_grid, on_grid
from farthing.data.aggregates.shape import LARGEST_TERM, Aggregate, Feature, Names, names_of
from farthing.data.schema import Schema
from farthing.errors import InvalidValue

Grids = float | Mapping[str, float] | None


@dataclass(frozen=True)
class Sum(Aggregate):
    """The sum of floor(column / grid) over the rows where the column is not missing.

    `grid` is a power of two; left out, it is 1 for whole numbers and about a millionth of the bound for reals.

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

    def grid_of(self, schema: Schema) -> float:
        """The width of one step."""
        return default_grid(self.column, schema) if self.grid is None else self.grid

    def features(self, schema: Schema) -> tuple[Feature, ...]:
        """The column on its grid."""
        grid = self.grid_of(schema)
        lower, upper, value = on_grid(self.column, grid, schema)
        return (Feature(("power", self.column, grid, 1), (self.column,), lower, upper, value),)


@dataclass(frozen=True)
class Moments(Aggregate):
    """Sums of powers of a column on its grid, over the rows where it is not missing; power 0 counts them.

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
            raise InvalidValue("powers", self.powers, "must be whole numbers from 0 to 8, rising")
        object.__setattr__(self, "powers", powers)

    def grid_of(self, schema: Schema) -> float:
        """The width of one step."""
        return default_grid(self.column, schema) if self.grid is None else self.grid

    def features(self, schema: Schema) -> tuple[Feature, ...]:
        """One for each power."""
        grid = self.grid_of(schema)
        lower, upper, _ = on_grid(self.column, grid, schema)
        found = []
        for power in self.powers:
            low, high = sorted((lower**power, upper**power))
            if power and power % 2 == 0 and lower < 0 < upper:
                low = 0
            _refuse_large(max(abs(low), abs(high)), self.column)
            key = ("power", self.column, grid, power)
            found.append(Feature(key, (self.column,), low, high, self._power(grid, schema, power)))
        return tuple(found)

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
        """The width of one step of a column."""
        if isinstance(self.grids, float):
            return self.grids
        chosen: dict[str, float] = dict(self.grids) if isinstance(self.grids, tuple) else {}
        return chosen.get(name) or default_grid(name, schema)

    def features(self, schema: Schema) -> tuple[Feature, ...]:
        """One for each pair."""
        factors: dict[str | None, tuple[int, int, Any]] = {None: (1, 1, one)}
        grids = []
        for name in self.columns:
            grids.append(self.grid_of(name, schema))
            factors[name] = on_grid(name, grids[-1], schema)
        found = []
        for left, right in self.pairs():
            (a, b, first), (c, d, second) = factors[left], factors[right]
            corners = [x * y for x in (a, b) for y in (c, d)]
            lower, upper = min(corners), max(corners)
            if left == right and lower < 0:
                lower = 0
            _refuse_large(max(abs(lower), abs(upper)), right or left or "")
            key = ("product", self.columns, tuple(grids), left, right)
            found.append(Feature(key, tuple(self.columns), lower, upper, self._product(first, second)))
        return tuple(found)

    def _product(self, first: Any, second: Any) -> Any:
        def of(table: Any) -> Any:
            import ibis

            complete = ibis.and_(*(table[name].notnull() for name in self.columns))
            return complete.ifelse(first(table) * second(table), ibis.null("int64"))

        return of


def _refuse_large(size: int, name: str) -> None:
    if not size <= LARGEST_TERM:
        raise InvalidValue(
            "grid", name, "is too fine: one row would add more than 2^62", "use a coarser grid"
        )

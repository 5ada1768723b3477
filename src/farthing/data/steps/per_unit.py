"""One row for each unit, made of the unit's own rows: how many there are, whether one is so, their least or mean value.

    count()       how many rows          count(x)      how many where x is not missing
    any(test)     true in some row       all(test)     true in every row; unknown is not true
    min(x)        the least value        max(x)        the greatest; of whole numbers, reals and dates
    sum(x)        of numbers             mean(x)       of numbers, over the rows where x is not missing
    distinct(x)   how many different values of x there are

Every engine must find the same value, so that real numbers are added on a grid of whole steps: floor(x / step), where
the step is a power of two, fine enough that all sums are whole numbers which a double holds exactly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any, ClassVar

from farthing.data.expressions import Expression, read, read_column
from farthing.data.expressions.ibis_compiler import literal
from farthing.data.schema import Categories, Dates, Domain, Flags, Integers, Reals, Schema
from farthing.data.stability import Link, Run
from farthing.data.steps.row_steps import narrowed, ranged
from farthing.data.unit_rows import unit_columns
from farthing.errors import InvalidValue

EXACT = 53  # bits of a whole number in a double
FINEST = 40  # bits of a real number, at most, on the grid of its sums
_FUNCTIONS = "count(), any(...), all(...), min(...), max(...), sum(...), mean(...) or distinct(...)"


@dataclass(frozen=True)
class UnitColumn:
    """One number, date or flag of a unit: a function of an expression over its rows."""

    name: str
    function: str
    argument: Expression | None
    domain: Domain
    rows: int  # how many rows of one unit there are at most

    @property
    def text(self) -> str:
        """The function and what it is applied to."""
        return f"{self.function}({'' if self.argument is None else self.argument.text})"

    def reduction(self, table: Any) -> Any:
        """The value for the rows of a unit, not yet brought into its domain."""
        return _REDUCTIONS[self.function](self, table)

    def cells(self, table: Any) -> Any:
        """The argument on each row."""
        assert self.argument is not None, "only count() has none"
        return self.argument.to_ibis(table, cells_read=True)

    @property
    def step(self) -> float:
        """The width of the grid on which numbers are added: 1 for whole ones, else a power of two."""
        assert self.argument is not None, "only count() has none"
        return _step(self.argument.domain, self.rows)


@dataclass(frozen=True)
class PerUnit:
    """One row a unit; what no column names is gone."""

    units: int  # how many columns name a unit
    columns: tuple[UnitColumn, ...]
    drops: ClassVar[bool] = True

    def schema(self, before: Schema) -> Schema:
        return Schema({column.name: column.domain for column in self.columns})

    def link(self, rows: int) -> Link:
        text = ", ".join(f"{column.name} = {column.text}" for column in self.columns)
        return Link(f"one row a unit: {text}", "to 1", 1, "the rows of a unit become one, made of them alone")

    def needs(self, after: Set[str]) -> set[str]:
        """What the wanted columns are computed from."""
        wanted = [column for column in self.columns if column.name in after and column.argument is not None]
        return {name for column in wanted for name in column.argument.columns}  # type: ignore[union-attr]

    def apply(self, table: Any, run: Run) -> Any:
        """GROUP BY the unit, whose columns are keys already and never missing."""
        units = unit_columns(self.units)
        wanted = [column for column in self.columns if column.name in run.columns]
        rows = table.aggregate(by=units, **{column.name: column.reduction(table) for column in wanted})
        return rows.select(*units, **{column.name: read_column(rows[column.name], column.domain) for column in wanted})


def per_unit(columns: Mapping[str, Any], schema: Schema, units: int, rows: int) -> PerUnit:
    """The step, from texts such as "any(icu)", or pairs of a text and bounds.

    Args:
        columns: What each column of the new table is.
        schema: The columns of the rows before.
        units: How many columns name a unit.
        rows: How many rows of one unit there are at most.

    Returns:
        The step.

    Raises:
        InvalidValue: If a text is no function of a unit's rows, or its values cannot be bounded.
    """
    if not columns:
        raise InvalidValue("per_unit", "nothing", "must name at least one column", 'for example visits="count()"')
    return PerUnit(units, tuple(_column(name, asked, schema, rows) for name, asked in columns.items()))


def _column(name: str, asked: Any, schema: Schema, rows: int) -> UnitColumn:
    declared = None
    if isinstance(asked, tuple | list):
        if len(asked) != 2:
            raise InvalidValue(name, asked, "must be a text, or one with its bounds")
        asked, declared = asked
    match = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", asked, re.DOTALL) if isinstance(asked, str) else None
    function = match[1].lower() if match else ""
    if match is None or function not in _REDUCTIONS or not _closes_last(match[2]):
        raise InvalidValue(name, asked, f"must be one of {_FUNCTIONS}", "derive the rest before or after")
    inner = match[2].strip()
    if not inner and function != "count":
        raise InvalidValue(name, asked, f"must say of what: {function}(...)", "name a column or an expression")
    argument = read(inner, schema) if inner else None
    domain = _domain(name, asked, function, argument, rows)
    if declared is not None:
        domain = narrowed(domain, ranged(name, domain, declared))
    return UnitColumn(name, function, argument, domain, rows)


def _closes_last(inner: str) -> bool:
    """Whether the bracket that opened the function is closed at the very end, as in no "mean(a) + mean(b)"."""
    depth, quote = 0, ""
    for letter in inner:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "()":
            depth += 1 if letter == "(" else -1
            if depth < 0:
                return False
    return depth == 0


def _domain(name: str, asked: str, function: str, argument: Expression | None, rows: int) -> Domain:
    """Between which values the column lies, whatever the rows are; a unit that is here has one row at least."""
    if argument is None:
        return Integers(1, rows)
    if function == "count":
        return Integers(0, rows)
    of = argument.domain
    if function in ("any", "all"):
        if not argument.is_predicate:
            raise InvalidValue(name, asked, "must be a condition", "compare it with something, as in any(age > 64)")
        return Flags()
    if function == "distinct":
        return Integers(0, min(rows, _values(of)))
    if function in ("min", "max"):
        if not isinstance(of, Integers | Reals | Dates):
            raise InvalidValue(name, asked, "must be of numbers or dates", "use any(...) for a condition")
        return of
    if not isinstance(of, Integers | Reals):
        raise InvalidValue(name, asked, "must be of numbers", "use count() or any(...) for conditions")
    if not _step(of, rows) <= 1 + abs(of.upper - of.lower):
        rule = f"can be too large to be added exactly over {rows:,} rows"
        raise InvalidValue(name, asked, rule, "clip the column, measure in larger units, or keep fewer rows")
    if function == "mean":
        return Reals(float(of.lower), float(of.upper))
    least, most = min(of.lower, rows * of.lower), max(of.upper, rows * of.upper)
    return Integers(int(least), int(most)) if isinstance(of, Integers) else Reals(least, most)


def _values(domain: Domain) -> int:
    """How many values there are, as far as that matters."""
    if isinstance(domain, Categories):
        return len(domain.values)
    if isinstance(domain, Integers):
        return domain.upper - domain.lower + 1
    if isinstance(domain, Dates):
        return (domain.upper - domain.lower).days + 1
    return 2 if isinstance(domain, Flags) else 2**62


def _step(domain: Domain, rows: int) -> float:
    assert isinstance(domain, Integers | Reals), "checked when the column was read"
    largest = max(abs(domain.lower), abs(domain.upper), 1 if isinstance(domain, Integers) else 0)
    room = EXACT - 1 - rows.bit_length()  # bits for one row, so that the sum of all is exact
    if isinstance(domain, Integers):
        return 1.0 if largest < 2**room else math.inf
    _, exponent = math.frexp(largest)
    return math.ldexp(1.0, exponent - min(FINEST, room)) if largest else 1.0


def _flag(column: UnitColumn, table: Any) -> Any:
    import ibis

    return ibis.cases((column.cells(table), literal(1)), else_=literal(0))


def _on_grid(column: UnitColumn, table: Any) -> Any:
    cells = column.cells(table)
    return cells if column.step == 1 else (cells.cast("float64") / literal(column.step)).floor().cast("int64")


def _added(column: UnitColumn, table: Any) -> Any:
    total = _on_grid(column, table).sum()
    if isinstance(column.domain, Integers):  # by way of decimals, which some engines return, and Ibis does not know of
        return total.cast("decimal(38, 0)").cast("int64")
    return total.cast("float64") * literal(column.step)


def _mean(column: UnitColumn, table: Any) -> Any:
    total = _on_grid(column, table).sum().cast("float64") * literal(column.step)
    many = column.cells(table).count()
    return total / many.nullif(0).cast("float64")


def _counted(column: UnitColumn, table: Any) -> Any:
    return table.count() if column.argument is None else column.cells(table).count()


_REDUCTIONS: dict[str, Callable[[UnitColumn, Any], Any]] = {
    "count": _counted,
    "any": lambda column, table: _flag(column, table).max() == literal(1),
    "all": lambda column, table: _flag(column, table).min() == literal(1),
    "min": lambda column, table: column.cells(table).min(),
    "max": lambda column, table: column.cells(table).max(),
    "sum": _added,
    "mean": _mean,
    "distinct": lambda column, table: column.cells(table).nunique(),
}

"""Transformations: each turns a table into a table, a schema into a schema, and knows its stability.

A step looks at rows one at a time, or at the rows of one unit, never further: that is what makes its stability a
number.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from farthing.data.expressions import Expression
from farthing.data.schema import Schema
from farthing.data.stability import Link


@dataclass(frozen=True)
class Run:
    """What holds for one query, in every table it opens: the sample, its secret key, and the columns still wanted."""

    key: str
    probability: Fraction
    columns: frozenset[str]

    def wanting(self, columns: Iterable[str]) -> Run:
        """The same query, of which other columns are wanted."""
        return replace(self, columns=frozenset(columns))


class Step(Protocol):
    """One transformation."""

    drops: ClassVar[bool]
    """Whether rows may leave: then the number of rows is not public, even if that of the source is."""

    def schema(self, before: Schema) -> Schema:
        """The columns afterwards."""
        ...

    def link(self, rows: int) -> Link:
        """The stability, given how many rows a unit has before."""
        ...

    def needs(self, after: Set[str]) -> set[str]:
        """The columns it takes to have those of `after`: the others are not read."""
        ...

    def apply(self, table: Any, run: Run) -> Any:
        """The Ibis table afterwards."""
        ...


def defined(step: Any) -> list[Any]:
    """All that a step does as plain data: of an expression text and bounds, of a second dataset name and definition."""

    def plain(value: Any) -> Any:
        if isinstance(value, Expression):
            return [value.text, repr(value.domain)]  # bounds may have been declared
        if hasattr(value, "definition"):
            return [value.name, value.definition]
        return [plain(each) for each in value] if isinstance(value, tuple) else repr(value)

    return [type(step).__name__, *(plain(getattr(step, one.name)) for one in fields(step))]

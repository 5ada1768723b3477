"""Transformations: each turns a table into a table, a schema into a schema, and knows its stability.

A step looks at rows one at a time, or at the rows of one unit, never further: that is what makes its stability a
number.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Protocol

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

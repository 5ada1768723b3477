"""Steps that change how far a unit reaches: more rows from one row, from a second table, or only a sample of units."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from farthing.data.ownership import Ownership
from farthing.data.schema import Domain, Schema
from farthing.data.sources import Source
from farthing.data.stability import Link, Run
from farthing.data.unit_rows import common_type, unit_columns
from farthing.numerics.bounds import rounded_up


class SecondTable(Protocol):
    """The other dataset of a union or a join, as far as the step looks at it."""

    @property
    def name(self) -> str:
        """What a ledger calls the table."""
        ...

    @property
    def unit(self) -> tuple[str, ...]:
        """The columns that name a unit."""
        ...

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit; refused where nothing bounds them."""
        ...

    @property
    def reach(self) -> int:
        """The same, and UNBOUNDED where nothing bounds them."""
        ...

    @property
    def schema(self) -> Schema: ...

    def linked_sources(self) -> tuple[Source, ...]:
        """Every table that keys link to it, read or not, its own included."""
        ...

    def linked_beside(self) -> list[Source]:
        """Every table that keys link to what was joined to it or added."""
        ...

    def sources(self) -> list[Source]:
        """Every table that is read."""
        ...

    def owners(self) -> list[Ownership]:
        """How each of these tables says whose its rows are."""
        ...

    def table(self, run: Run) -> Any:
        """The Ibis table for one query."""
        ...


_PLACE = "__farthing_place"


@dataclass(frozen=True)
class Explode:
    """One row for each of the first `limit` elements of a column of lists."""

    column: str
    limit: int
    domain: Domain
    read: Callable[[Any], Any] = field(compare=False, repr=False)
    drops: ClassVar[bool] = True

    def schema(self, before: Schema) -> Schema:
        """The column now holds one element."""
        return before.with_column(self.column, self.domain)

    def link(self, rows: int) -> Link:
        """`limit`-stable: a row becomes that many rows at most."""
        title = f"explode {self.column}, at most {self.limit} a row"
        return Link(title, f"x {self.limit}", rows * self.limit, f"a row becomes {self.limit} rows at most")

    def needs(self, after: Set[str]) -> set[str]:
        """And the lists, whose lengths decide how many rows there are."""
        return {*after, self.column}

    def apply(self, table: Any, run: Run) -> Any:
        """The elements are numbered as they come out, whatever the shape of the list, and the first ones stay.

        Where an engine can cut a list it has been cut before (`Base.table`); that this is enough is not relied on.
        """
        each = table.unnest(self.column, offset=_PLACE)
        elements = each.filter(each[_PLACE] < self.limit).drop(_PLACE)
        return elements.mutate(**{self.column: self.read(elements[self.column])})


@dataclass(frozen=True)
class Sample:
    """A secret sample of units; it is drawn where tables are opened, so that a unit comes or stays away whole."""

    probability: Fraction
    drops: ClassVar[bool] = True

    def schema(self, before: Schema) -> Schema:
        return before

    def link(self, rows: int) -> Link:
        """1-stable, and cheaper than that: the accountant prices `Sampled`."""
        share = f"{rounded_up(self.probability):.6g}"
        return Link(f"sample {share}", "sampled", rows, f"a unit is in the sample with probability {share}, in secret")

    def needs(self, after: Set[str]) -> set[str]:
        return set(after)

    def apply(self, table: Any, run: Run) -> Any:
        """Nothing more to do here."""
        return table


@dataclass(frozen=True)
class Union:
    """The rows of two datasets, one after the other."""

    other: SecondTable
    drops: ClassVar[bool] = False

    def schema(self, before: Schema) -> Schema:
        """The same columns in both."""
        return before

    def link(self, rows: int) -> Link:
        """Rows of one unit in both tables add up."""
        more = self.other.reach
        return Link(
            f"union with {self.other.name}",
            f"+ {more}",
            rows + more,
            f"a unit may have {more} row{'s' if more > 1 else ''} there as well",
        )

    def needs(self, after: Set[str]) -> set[str]:
        return set(after)

    def apply(self, table: Any, run: Run) -> Any:
        # Each side may carry columns that only its own filters looked at: both are cut down to what is still wanted.
        columns = [name for name in table.columns if name.startswith("__farthing") or name in run.columns]
        other = self.other.table(run)
        return _unionable(table, columns).union(_unionable(other, columns), distinct=False)


@dataclass(frozen=True)
class JoinOnUnit:
    """Each row of a unit beside each row that the same unit has in another dataset."""

    other: SecondTable
    keep: bool
    drops: ClassVar[bool] = True

    def schema(self, before: Schema) -> Schema:
        for name in self.other.schema:
            before = before.with_column(name, self.other.schema[name])
        return before

    def link(self, rows: int) -> Link:
        """Rows of one unit in both tables multiply, and nobody else's are touched."""
        more = self.other.rows_per_unit
        return Link(
            f"join {self.other.name} on the unit",
            f"x {more}",
            rows * more,
            f"each row meets {more} rows of the same unit at most, and no other unit's",
        )

    def needs(self, after: Set[str]) -> set[str]:
        return {name for name in after if name not in self.other.schema}

    def apply(self, table: Any, run: Run) -> Any:
        """An inner or left join on the columns of the unit."""
        units = unit_columns(len(self.other.unit))
        columns = [name for name in self.other.schema if name in run.columns]
        other = self.other.table(run.with_columns(columns))
        renamed = other.select(
            **{f"__farthing_right_{name}": other[name] for name in units},
            **{name: other[name] for name in columns},
        )
        # Cut down first: a column that was only filtered by, and then forgotten, may have the name of one over there.
        own = [name for name in table.columns if name in run.columns and name not in columns]
        left = table.select(*units, *own)
        matches = [left[name] == renamed[f"__farthing_right_{name}"] for name in units]
        joined = left.join(renamed, matches, how="left" if self.keep else "inner")
        return joined.select(*units, *own, *columns)


def _unionable(table: Any, columns: list[str]) -> Any:
    """The wanted columns, in types that two sources can share."""
    return table.select(**{name: table[name].cast(common_type(table[name].type())) for name in columns})

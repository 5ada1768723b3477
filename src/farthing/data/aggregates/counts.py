"""How many rows: in all, or in every cell of a cross product of public columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from farthing.data.aggregates.shape import Aggregate, Feature, Names, domain_of, names_of
from farthing.data.schema import Schema
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

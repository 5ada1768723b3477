"""A statement as it is understood: which statistics answer it, and how its rows are made of their answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from farthing.data import Categories, Dataset, Dates, Flags, Integers
from farthing.data.expressions.syntax_tree import Meaning, Node
from farthing.data.schema import Domain
from farthing.statistics import Statistic


@dataclass(frozen=True)
class GroupKey:
    """One column of GROUP BY: the dataset's column, and what its labels are multiplied with and moved by."""

    column: str
    domain: Domain
    sql: str
    name: str = ""
    scale: float = 1
    shift: float = 0

    def value(self, label: Any) -> Any:
        """What a label of the column is in the result."""
        return label if (self.scale, self.shift) == (1, 0) else label * self.scale + self.shift


@dataclass(frozen=True)
class Measured:
    """One aggregate: its statistic for each set of groups, and which part of a label it is."""

    statistics: tuple[Statistic, ...]
    position: int | None
    pick: Any = None
    note: str = ""


@dataclass(frozen=True)
class OutputColumn:
    """One column of the result, computed from keys ("k0") and released numbers ("a0")."""

    name: str
    meaning: Meaning
    text: str
    aggregate: int | None = None  # the one released number that it moves with
    combined: Node | None = None  # sums, differences, products and ratios of several

    @property
    def has_error(self) -> bool:
        """Whether it is a number with an error."""
        return self.aggregate is not None or self.combined is not None


@dataclass(frozen=True)
class Ordering:
    """One part of ORDER BY."""

    meaning: Meaning
    descending: bool
    missing_first: bool


@dataclass(frozen=True)
class SelectQuery:
    """One SELECT: which statistics answer it, and how its rows are made of their answers."""

    dataset: Dataset
    keys: tuple[GroupKey, ...]
    sets: tuple[tuple[int, ...], ...]
    measured: tuple[Measured, ...]
    columns: tuple[OutputColumn, ...]
    having: Meaning | None = None
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    offset: int = 0

    @property
    def statistics(self) -> Iterator[tuple[Statistic, int | None]]:
        """Every statistic, with the place in the statement that asked for it."""
        for measured in self.measured:
            for statistic in measured.statistics:
                yield statistic, measured.position


@dataclass(frozen=True)
class TableQuery:
    """A statement: one SELECT, or several below one another."""

    parts: tuple[SelectQuery, ...]
    order: tuple[tuple[int, bool, bool], ...] = ()  # of several: columns of the result by number
    limit: int | None = None
    offset: int = 0


def cells_of(domain: Domain) -> int | None:
    """How many values a column may have; None where they are not counted."""
    if isinstance(domain, Categories):
        return len(domain.values)
    if isinstance(domain, Flags):
        return 2
    if isinstance(domain, Integers):
        return domain.upper - domain.lower + 1
    if isinstance(domain, Dates):
        return (domain.upper - domain.lower).days + 1
    return None

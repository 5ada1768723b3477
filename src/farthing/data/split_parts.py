"""`Parts`: the disjoint parts that a public column splits a dataset into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from farthing.data.stability import Stability


class Whole(Protocol):
    """What is split: a dataset."""

    def stability(self) -> Stability:
        """How far the rows of one unit can reach."""


Rows = TypeVar("Rows", bound=Whole)


@dataclass(frozen=True, eq=False)
class Parts(Mapping[Any, Rows], Generic[Rows]):
    """Disjoint parts of a dataset, fixed in advance by a public column: parallel composition.

    A row is in one part at most. When the unit is one row, the parts together cost as much as the most expensive one;
    `touched` says in how many parts one unit can change anything. Made by `Dataset.split`.

    Args:
        whole: The dataset that was split.
        by: The column that splits it.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> people = dataset(pyarrow.table({"sex": ["F", "M"]}), schema={"sex": ["F", "M"]})
    >>> print(people.split(by="sex"))
    2 disjoint parts by sex; neighbours differ in at most 1 of them
    """

    whole: Rows
    by: str
    _parts: Mapping[Any, Rows]

    @property
    def touched(self) -> int:
        """The most parts that differ between neighbours: together they cost this many of the most expensive."""
        return min(len(self._parts), self.whole.stability().distance)

    def __getitem__(self, value: Any) -> Rows:
        return self._parts[value]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __str__(self) -> str:
        return f"{len(self)} disjoint parts by {self.by}; neighbours differ in at most {self.touched} of them"

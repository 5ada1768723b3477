"""Disjoint parts of a dataset, which together cost as much as the most expensive of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farthing.data.dataset import Dataset


@dataclass(frozen=True, eq=False)
class Parts(Mapping[Any, "Dataset"]):
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

    whole: Dataset
    by: str
    _parts: Mapping[Any, Dataset]

    @property
    def touched(self) -> int:
        """The most parts that differ between neighbours: together they cost this many of the most expensive."""
        return min(len(self._parts), self.whole.stability().distance)

    def __getitem__(self, value: Any) -> Dataset:
        return self._parts[value]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __str__(self) -> str:
        return f"{len(self)} disjoint parts by {self.by}; neighbours differ in at most {self.touched} of them"

"""The cells of all marginals of a statistic, one table after the other: sizes, places and labels."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.inference.marginals import Subset
from farthing.release.counting.cells import CellAxis

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MarginalCells:
    """All sets of `way` of the columns in `axes`, inside every cell of `groups` (the columns of `by`)."""

    groups: tuple[CellAxis, ...]
    axes: tuple[CellAxis, ...]
    way: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each column has."""
        return tuple(len(axis) for axis in self.axes)

    @cached_property
    def subsets(self) -> tuple[Subset, ...]:
        """The sets of columns, by their places."""
        return tuple(itertools.combinations(range(len(self.axes)), self.way))

    @cached_property
    def group_count(self) -> int:
        """How many groups there are."""
        return math.prod(len(axis) for axis in self.groups)

    def shape(self, subset: Subset) -> tuple[int, ...]:
        """The shape of one table in one group."""
        return tuple(len(self.axes[column]) for column in subset)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """The cells of every table, all groups together."""
        return tuple(self.group_count * math.prod(self.shape(subset)) for subset in self.subsets)

    @property
    def count(self) -> int:
        """All cells of all tables."""
        return sum(self.lengths)

    def tables(self, flat: Floats) -> dict[Subset, Floats]:
        """Flat cells as tables, with the group in front."""
        parts = np.split(np.asarray(flat), np.cumsum(self.lengths)[:-1])
        return {
            subset: part.reshape(self.group_count, *self.shape(subset))
            for subset, part in zip(self.subsets, parts, strict=True)
        }

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Each cell in words.

        >>> from farthing.data.schema import Categories, Integers
        >>> sex, age = CellAxis("sex", Categories(("F", "M"))), CellAxis("age", Integers(0, 99), (0, 18, 99))
        >>> MarginalCells((), (sex, age), 2).labels[:2]
        ('sex = F, age = 0 to 18', 'sex = F, age = 18 to 99')
        """
        words = {axis.column: _words(axis) for axis in (*self.groups, *self.axes)}
        found: list[str] = []
        for subset in self.subsets:
            chosen = [*self.groups, *(self.axes[column] for column in subset)]
            found += [
                ", ".join(parts) for parts in itertools.product(*(words[axis.column] for axis in chosen))
            ]
        return tuple(found)


def _words(axis: CellAxis) -> list[str]:
    return [f"{axis.column} = {_word(label)}" for label in axis.labels]


def _word(label: Any) -> str:
    if isinstance(label, tuple):
        return f"{_word(label[0])} to {_word(label[1])}"
    return f"{label:.8g}" if isinstance(label, float) else str(label)

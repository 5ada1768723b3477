"""Partitions of all rows into cells, and the sums of cells that two of them have in common.

Two partitions count the same rows wherever a union of cells of one is a union of cells of the other. The finest such
unions are the connected parts of the graph in which cells that can share a row are neighbours. Columns that only one
of them looks at leave it open where a row lies, so the graph needs the columns of both alone, piece by piece: never
the product of all columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.schema import Schema
from farthing.statistics.cells.column_pieces import PieceAxis, joined_axis

Places = NDArray[np.int64]

_LARGEST = 2**20  # places of a table of what is there


@dataclass(frozen=True, eq=False)
class Partition:
    """Every row in exactly one cell: `merge` is the cell of each element of the product of the pieces in `axes`.

    Rows without a value have a piece of their own in every axis, so that no row lies outside.
    """

    axes: tuple[PieceAxis, ...]
    merge: Places = field(repr=False)
    cells: int

    @cached_property
    def by_key(self) -> dict[tuple[str, str], PieceAxis]:
        """The axes by the column or condition that they are about."""
        return {axis.key: axis for axis in self.axes}

    @cached_property
    def _known(self) -> dict[tuple[tuple[str, str], ...], tuple[Places, Places]]:
        return {}

    def touching(self, keys: tuple[tuple[str, str], ...]) -> tuple[Places, Places]:
        """Pairs of a cell and an element of the product of the pieces of `keys` that share an element of the whole."""
        if keys not in self._known:
            element: Any = np.zeros((1,) * len(self.axes), dtype=np.int64)
            size = 1
            numbers = [axis.key for axis in self.axes]
            for key in keys:
                place = numbers.index(key)
                own = np.arange(self.axes[place].size)
                element = element * len(own) + own.reshape([-1 if n == place else 1 for n in range(len(numbers))])
                size *= len(own)
            whole = np.broadcast_to(element, tuple(axis.size for axis in self.axes)).reshape(-1)
            pairs = _different(self.merge * size + whole, self.cells * size)
            self._known[keys] = pairs // size, pairs % size
        return self._known[keys]


def common_cells(one: Partition, other: Partition, schema: Schema) -> tuple[Places, Places, int]:
    """For the cells of both partitions the number of their common sum, and how many common sums there are.

    >>> from farthing.statistics.cells.column_pieces import PieceAxis
    >>> sex = PieceAxis("sex", "values", ("F", "M"), (0, 1), 2, 3)
    >>> flag = PieceAxis("old", "values", (False, True), (0, 1), 2, 3)
    >>> table = Partition((sex, flag), np.arange(9), 9)
    >>> schema = Schema.read({"sex": ["F", "M"], "old": bool})
    >>> common_cells(table, Partition((sex,), np.arange(3), 3), schema)
    (array([0, 0, 0, 1, 1, 1, 2, 2, 2]), array([0, 1, 2]), 3)
    """
    keys = tuple(key for key in one.by_key if key in other.by_key)
    if not keys:
        return np.zeros(one.cells, dtype=np.int64), np.zeros(other.cells, dtype=np.int64), 1
    elements = _joint_elements([(one.by_key[key], other.by_key[key]) for key in keys], schema)
    sizes = [math.prod(each.by_key[key].size for key in keys) for each in (one, other)]
    starts = np.cumsum([0, one.cells, other.cells, sizes[0]])
    first, second = one.touching(keys), other.touching(keys)
    left = np.concatenate([first[0], second[0] + starts[1], elements[0] + starts[2]])
    right = np.concatenate([first[1] + starts[2], second[1] + starts[3], elements[1] + starts[3]])
    labels = connected_parts(int(starts[3]) + sizes[1], left, right)
    cells = labels[: one.cells + other.cells]
    number = np.zeros(len(labels), dtype=np.int64)
    sums = _different(cells, len(labels))
    number[sums] = np.arange(len(sums))
    return number[cells[: one.cells]], number[cells[one.cells :]], len(sums)


def _different(numbers: Places, most: int) -> Places:
    """The different ones of whole numbers from 0 to below `most`, in order; by a table where that is not too large."""
    if most > _LARGEST:
        return np.unique(numbers)
    there = np.zeros(most, dtype=bool)
    there[numbers] = True
    return np.flatnonzero(there)


def _joint_elements(axes: Sequence[tuple[PieceAxis, PieceAxis]], schema: Schema) -> tuple[Places, Places]:
    """The elements of both products that have a row in common, pair by pair."""
    pair = [np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)]
    for own in axes:
        domain = None if own[0].form == "condition" else schema[own[0].source]
        _, *maps = joined_axis(*own, domain)
        inside = np.all(np.array(maps) >= 0, axis=0)
        for side in (0, 1):
            pieces = maps[side][inside]
            pair[side] = (pair[side][:, None] * own[side].size + pieces[None, :]).reshape(-1)
    return pair[0], pair[1]


def connected_parts(nodes: int, left: Places, right: Places) -> Places:
    """The least node of the connected part that every node belongs to.

    >>> connected_parts(5, np.array([0, 3]), np.array([1, 4]))
    array([0, 0, 2, 3, 3])
    """
    labels = np.arange(nodes)
    while True:
        first, second = labels[left], labels[right]
        least = np.minimum(first, second)
        following = labels.copy()
        np.minimum.at(following, first, least)
        np.minimum.at(following, second, least)
        following = following[following]
        if np.array_equal(following, labels):
            return labels
        labels = following

"""How many cells the common refinement of two refinements has, without making it.

A cell of one and a cell of the other have a row in common where their pieces of the columns that both look at overlap;
columns that only one of them looks at leave that open. So overlaps are found among the pieces of shared columns, and
the product of all columns is made only for a refinement that is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.aggregates.aggregate import MOST_CELLS
from farthing.statistics.cells.column_pieces import PieceAxis, axis_cuts
from farthing.statistics.counts.expected_shares import Refinement

Key = tuple[str, str]
Places = NDArray[np.int64]
Floats = NDArray[np.float32]  # exact for whole numbers up to 2^24, and there are at most MOST_CELLS cells

_LARGEST = 2**22  # elements of a table of cells and pieces; larger ones are not worth making


class Rulers:
    """For every column or condition, all intervals that any refinement of one plan tells apart, in order."""

    def __init__(self, refinements: Iterable[Refinement]) -> None:
        cuts: dict[Key, dict[tuple[Any, ...], None]] = {}
        for refinement in refinements:
            for axis in refinement.axes:
                cuts.setdefault(axis.key, {})[axis_cuts(axis)] = None
        # Categories are listed in the same order everywhere, which need not be that of their names.
        in_order = {key: next(iter(own)) if len(own) == 1 else sorted(set().union(*own)) for key, own in cuts.items()}
        self._marks = {key: {cut: place for place, cut in enumerate(own, 1)} for key, own in in_order.items()}
        self._known: dict[int, tuple[PieceAxis, Places]] = {}

    def pieces(self, axis: PieceAxis) -> Places:
        """The piece of every interval of the axis's ruler, and last that of rows without a value.

        Where these have none, it is one more than there are: no cell holds it.
        """
        known = self._known.get(id(axis))
        if known is None or known[0] is not axis:
            marks = self._marks[axis.key]
            own = [marks[cut] for cut in axis_cuts(axis)]
            interval = np.searchsorted(own, np.arange(len(marks) + 1), side="right")
            missing = axis.missing if axis.missing >= 0 else axis.size
            known = axis, np.append(np.asarray(axis.codes, dtype=np.int64)[interval], missing)
            self._known[id(axis)] = known
        return known[1]


@dataclass(frozen=True, eq=False)
class Overlaps:
    """Two refinements laid over each other.

    `cells` are those of the common refinement; `first` and `second` say in how many of them each cell of one and of
    the other is divided.
    """

    cells: int
    first: Floats
    second: Floats


@dataclass(frozen=True, eq=False)
class Touching:
    """In which pieces of some columns the cells of a refinement lie, and in the last row all rows outside of them.

    Every column has a piece for rows without a value, outside of all cells where no cell holds them. `elements` lists
    the pieces of one cell after those of another, `starts` says where each begins.
    """

    table: NDArray[np.bool_]
    elements: Places
    starts: Places
    outside: bool


@dataclass(frozen=True, eq=False)
class Outline:
    """A refinement as overlaps with it are found: which of its cells lie in which pieces of a column."""

    refinement: Refinement
    rulers: Rulers
    axes: dict[Key, PieceAxis]
    inside: Floats
    _touching: dict[tuple[Key, ...], Touching | None] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, refinement: Refinement, rulers: Rulers) -> Outline:
        """The outline of a refinement whose cuts are on the rulers."""
        inside = (np.array(refinement.members) >= 0).astype(np.float32)
        return cls(refinement, rulers, {axis.key: axis for axis in refinement.axes}, inside)

    def touching(self, keys: tuple[Key, ...]) -> Touching | None:
        """The pieces of `keys` that each cell lies in; None where there are too many."""
        if keys not in self._touching:
            self._touching[keys] = self._touching_of(keys)
        return self._touching[keys]

    def _touching_of(self, keys: tuple[Key, ...]) -> Touching | None:
        refinement, numbers = self.refinement, [axis.key for axis in self.refinement.axes]
        shape = tuple(_width(axis) for axis in refinement.axes)
        size = math.prod(shape[numbers.index(key)] for key in keys)
        outside = refinement.cells
        if max((outside + 1) * size, math.prod(shape)) > _LARGEST:
            return None
        whole = np.full(shape, outside)
        own = refinement.merge.reshape([axis.size for axis in refinement.axes])
        whole[tuple(slice(axis.size) for axis in refinement.axes)] = np.where(own < 0, outside, own)
        element: Any = np.zeros((1,) * len(shape), dtype=np.int64)
        for key in keys:
            place = numbers.index(key)
            along = np.arange(shape[place]).reshape([-1 if n == place else 1 for n in range(len(shape))])
            element = element * shape[place] + along
        table = np.zeros((outside + 1, size), dtype=bool)
        table[whole.reshape(-1), np.broadcast_to(element, shape).reshape(-1)] = True
        cells, elements = np.nonzero(table)
        return Touching(table, elements, np.flatnonzero(np.diff(cells, prepend=-1)), bool(table[-1].any()))


def overlaps_of(one: Outline, other: Outline) -> Overlaps | None:
    """What the common refinement of two would be; None when the product of its pieces has too many cells.

    Raises:
        TooLarge: If the tables that find it would be too large to make.
    """
    if one.refinement.by_itself or other.refinement.by_itself:
        return None
    keys = tuple(key for key in one.axes if key in other.axes)
    meeting = [_meeting(one, other, key) for key in keys]
    size = math.prod(pieces for _, pieces in meeting)
    for mine, theirs in ((one, other), (other, one)):
        size *= math.prod(_width(axis) for key, axis in mine.axes.items() if key not in theirs.axes)
    if size > MOST_CELLS:
        return None
    left, right = one.touching(keys), other.touching(keys)
    if left is None or right is None:
        raise TooLarge
    reached = right.table.astype(np.float32)
    for place, (table, _) in enumerate(meeting):  # from the pieces of the other to those of the one
        after = math.prod(table.shape[1] for table, _ in meeting[place + 1 :])
        reached = np.matmul(table, reached.reshape(-1, table.shape[1], after)).reshape(len(reached), -1)
    # For every cell of the one, the cells of the other that any of its pieces reaches.
    pairs = np.logical_or.reduceat((reached > 0).T[left.elements], left.starts, axis=0)
    if left.outside:
        pairs[-1, -1] = False  # rows that neither looks at
    first, second = pairs.sum(axis=1, dtype=np.float32), pairs.sum(axis=0, dtype=np.float32)
    return Overlaps(int(second.sum()), first[: one.refinement.cells], second[:-1])


class TooLarge(Exception):
    """Overlaps that are not found this way."""


def _width(axis: PieceAxis) -> int:
    """The pieces of an axis beside questions that do not look at it: rows without a value are rows to them."""
    return axis.size + (axis.missing < 0)


def _meeting(one: Outline, other: Outline, key: Key) -> tuple[Floats, int]:
    """Which pieces of a column overlap, and how many pieces that makes."""
    mine, theirs = one.axes[key], other.axes[key]
    table = np.zeros((_width(mine), _width(theirs)), dtype=np.float32)
    first, second = one.rulers.pieces(mine), other.rulers.pieces(theirs)
    table[first[:-1], second[:-1]] = 1.0
    pieces = int(table.sum()) + (mine.missing >= 0 or theirs.missing >= 0)
    table[first[-1], second[-1]] = 1.0
    return table, pieces

"""The coarsest cells from which several questions can be answered by adding up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.aggregates.shape import MOST_CELLS
from farthing.release.counting.piece_counts import PieceCounts
from farthing.release.counting.pieces import PieceAxis, Pieces, joined_axis, pieces_of, pieces_of_condition
from farthing.release.counting.predicates import TRUE, Atom, Truths
from farthing.release.counting.questions import Question

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Refinement:
    """Questions, the pieces of what they look at, and the cells that tell their answers apart.

    `merge` is the refined cell of every cell of the product of the pieces, -1 where no question looks. `members` is,
    for each question, the place of every refined cell in it, -1 for none. With `where`, the condition of the one
    question is tried row by row instead of being cut into pieces.
    """

    questions: tuple[Question, ...]
    axes: tuple[PieceAxis, ...]
    merge: Places = field(repr=False)
    members: tuple[Places, ...] = field(repr=False)
    where: str | None = None

    @property
    def cells(self) -> int:
        """How many refined cells there are."""
        return len(self.members[0])

    def parts(self, number: int) -> Places:
        """How many refined cells each cell of a question is the sum of."""
        places = self.members[number]
        return np.bincount(places[places >= 0], minlength=self.questions[number].cells)

    def aggregate(self) -> PieceCounts:
        """What the engine adds up."""
        return PieceCounts(self.axes, tuple(self.merge.tolist()), self.cells, self.where)

    @property
    def by_itself(self) -> bool:
        """Whether its cells are those of one question, which no other can share."""
        return self.where is not None


def refinement_of(questions: Sequence[Question]) -> Refinement | None:
    """The common refinement of questions about one table; None when its product has too many cells."""
    found: Refinement | None = own_refinement(questions[0])
    for question in questions[1:]:
        found = None if found is None else joined(found, own_refinement(question))
    return found


def own_refinement(question: Question) -> Refinement:
    """The cells of one question. A condition that falls into too many pieces is tried row by row instead."""
    schema = question.schema
    own = {axis.column: axis for axis in question.axes}
    pieces = [
        # A row without a column that is put into cells is in none of them.
        pieces_of(name, schema[name], tuple(question.plain_atoms.get(name, ())), axes, missing=not axes)
        for name in dict.fromkeys((*own, *question.plain_atoms))
        for axes in [(own[name],) if name in own else ()]
    ]
    pieces += [pieces_of_condition(atom) for atom in question.conditions]
    where = None
    if math.prod(len(piece) for piece in pieces) > MOST_CELLS:
        where = question.statistic.where
        pieces = [pieces_of(name, schema[name], (), (axis,), missing=False) for name, axis in own.items()]
    places = _places(question, pieces, where is None)
    merge, first = _numbered(places + 1, question.cells + 1)
    return Refinement((question,), tuple(piece.axis for piece in pieces), merge, (places[first],), where)


def joined(one: Refinement, other: Refinement) -> Refinement | None:
    """The common refinement of two; None when the product of their pieces has too many cells."""
    if one.by_itself or other.by_itself:
        return None
    schema = one.questions[0].schema
    mine, theirs = ({axis.key: axis for axis in each.axes} for each in (one, other))
    found = []
    for key in dict.fromkeys((*mine, *theirs)):
        domain = None if key[0] == "condition" else schema[key[1]]
        found.append(joined_axis(mine.get(key), theirs.get(key), domain))
        if math.prod(axis.size for axis, _, _ in found) > MOST_CELLS:
            return None
    axes = tuple(axis for axis, _, _ in found)
    places = {axis.key: number for number, axis in enumerate(axes)}
    left = _carried(one, axes, [(places[axis.key], found[places[axis.key]][1]) for axis in one.axes])
    right = _carried(other, axes, [(places[axis.key], found[places[axis.key]][2]) for axis in other.axes])
    merge, first = _numbered((left + 1) * (other.cells + 1) + right + 1, (one.cells + 1) * (other.cells + 1))
    members = [*_members(one, left[first]), *_members(other, right[first])]
    return Refinement((*one.questions, *other.questions), axes, merge, tuple(members))


def _members(refinement: Refinement, cells: Places) -> list[Places]:
    return [np.where(cells >= 0, places[cells], -1) for places in refinement.members]


def _carried(old: Refinement, axes: tuple[PieceAxis, ...], maps: list[tuple[int, Places]]) -> Places:
    """The old refined cell of every cell of a finer product; `maps` gives the old piece of each new one, or -1."""
    dimension = len(axes)
    index: Any = np.zeros((1,) * dimension, dtype=np.int64)
    outside: Any = np.zeros((1,) * dimension, dtype=bool)
    for axis, (number, pieces) in zip(old.axes, maps, strict=True):
        along = pieces.reshape([-1 if n == number else 1 for n in range(dimension)])
        outside = outside | (along < 0)
        index = index * axis.size + np.maximum(along, 0)
    cells = np.where(outside, -1, old.merge[index])
    return np.broadcast_to(cells, tuple(axis.size for axis in axes)).reshape(-1)


def _numbered(ids: Places, most: int) -> tuple[Places, Places]:
    """Ids from 0 to `most` renumbered without gaps, 0 as -1; and where each new number is met first."""
    if most <= 2**22:
        there = np.zeros(most, dtype=bool)
        there[ids] = True
        there[0] = False
        numbers = np.where(there, np.cumsum(there) - 1, -1)[ids]
    else:
        distinct, numbers = np.unique(ids, return_inverse=True)
        numbers = numbers - 1 if distinct[0] == 0 else numbers
    count = int(numbers.max(initial=-1)) + 1
    first = np.zeros(count, dtype=np.int64)
    backwards = np.arange(len(numbers) - 1, -1, -1)
    inside = backwards[numbers[backwards] >= 0]
    first[numbers[inside]] = inside  # the last one written is the first one met
    return numbers.astype(np.int64), first


def _places(question: Question, pieces: Sequence[Pieces], try_condition: bool) -> Places:
    """The cell of a question that each cell of the product lies in; -1 for none."""
    dimension = len(pieces)
    truths: dict[Atom, Truths] = {}
    found: Any = np.zeros((1,) * dimension, dtype=np.int64)
    outside: Any = np.zeros((1,) * dimension, dtype=bool)
    for number, piece in enumerate(pieces):
        shape = [-1 if n == number else 1 for n in range(dimension)]
        for atom, truth in piece.truths.items():
            truths[atom] = truth.reshape(shape)
    for axis in question.axes:
        number = next(number for number, piece in enumerate(pieces) if axis in piece.places)
        places = pieces[number].places[axis].reshape([-1 if n == number else 1 for n in range(dimension)])
        outside = outside | (places < 0)
        found = found * len(axis) + places
    if question.formula is not None and try_condition:
        outside = outside | (question.formula.truth(_looked_up(truths)) != TRUE)
    shape = [len(piece) for piece in pieces]
    return np.broadcast_to(np.where(outside, -1, found), shape).reshape(-1).astype(np.int64)


def _looked_up(truths: dict[Atom, Truths]) -> Callable[[Atom], Truths]:
    def truth_of(atom: Atom) -> Truths:
        return truths[atom] if atom.columns else np.array(atom.truth(), dtype=np.int8)

    return truth_of

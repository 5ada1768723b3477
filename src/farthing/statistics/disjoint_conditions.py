"""Conditions of which a row meets at most one are cells of one measurement: together they cost as much as one.

Whether two conditions can both be true is decided from the pieces of the columns they look at, as for counts. A
condition that pieces cannot decide may be true in any row, so it is never taken to be disjoint from another by itself.
Noise is safe either way: what is measured puts a row into the first cell whose condition it meets, and into no other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.aggregates.aggregate import MOST_CELLS
from farthing.data.expressions.expression import read
from farthing.data.schema import Schema
from farthing.statistics.cells.column_pieces import Pieces, pieces_of, pieces_of_condition
from farthing.statistics.cells.predicates import TRUE, Atom, Truths
from farthing.statistics.counts.count_queries import Question, question_of
from farthing.statistics.statistic import Statistic

Booleans = NDArray[np.bool_]

_HEAVIEST = 1_000
_LONGEST = 6_000
"""What one derived column may weigh and how long it may be written: well below what expressions refuse."""

_MOST_AXES = 24


def disjoint_sets(wheres: Sequence[Any], schema: Schema, most: int = MOST_CELLS) -> list[list[int]]:
    """The places of conditions in sets of which no two can be true in one row; each joins the first set it can.

    No set has more than `most`.

    >>> schema = Schema.read({"age": (0, 110), "sex": ["F", "M"]})
    >>> disjoint_sets(["age < 30", "age < 40", "age >= 30", "age >= 40 and sex = 'F'"], schema)
    [[0, 2], [1, 3]]
    """
    conditions = _conditions(wheres, schema)
    sets: list[list[int]] = []
    for place, own in enumerate(conditions):
        for members in sets:
            others = [conditions[member] for member in members]
            if len(members) < most and _is_short((*others, own)) and all(map(own.is_apart, others)):
                members.append(place)
                break
        else:
            sets.append([place])
    return sets


@dataclass(frozen=True)
class _Condition:
    """Where a condition is true in the product of the pieces of what it looks at; None where that is too large."""

    sources: tuple[int, ...] = ()
    true: Booleans | None = None
    weight: int = 0
    length: int = 0

    def is_apart(self, other: _Condition) -> bool:
        if self.true is None or other.true is None or not set(self.sources) & set(other.sources):
            return False
        every = sorted({*self.sources, *other.sources})
        mine, theirs = self._along(every), other._along(every)
        shape = np.broadcast_shapes(mine.shape, theirs.shape)
        return math.prod(shape) <= MOST_CELLS and not bool((mine & theirs).any())

    def _along(self, every: Sequence[int]) -> Booleans:
        assert self.true is not None
        sizes = dict(zip(self.sources, self.true.shape, strict=True))
        return self.true.reshape([sizes.get(source, 1) for source in every])


def _is_short(conditions: Sequence[_Condition]) -> bool:
    weight = sum(condition.weight for condition in conditions)
    return weight <= _HEAVIEST and sum(condition.length for condition in conditions) <= _LONGEST


def _conditions(wheres: Sequence[Any], schema: Schema) -> list[_Condition]:
    if len(wheres) == 1:
        return [_Condition()]
    questions = [question_of(Statistic("count", where=where), schema) for where in wheres]
    atoms: dict[str, dict[Atom, None]] = {}
    pieces: list[Pieces] = []
    for question in questions:
        for name, own in question.plain_atoms.items():
            atoms.setdefault(name, {}).update(dict.fromkeys(own))
    for name, conditions in atoms.items():
        pieces.append(pieces_of(name, schema[name], tuple(conditions), (), missing=True))
    for atom in dict.fromkeys(atom for question in questions for atom in question.conditions):
        pieces.append(pieces_of_condition(atom))
    place = {atom: number for number, piece in enumerate(pieces) for atom in piece.truths}
    return [_condition(question, pieces, place) for question in questions]


def _condition(question: Question, pieces: Sequence[Pieces], place: dict[Atom, int]) -> _Condition:
    if question.formula is None:
        return _Condition()
    sources = tuple(sorted({place[atom] for atom in question.atoms if atom.columns}))
    shape = [len(pieces[source]) for source in sources]
    if len(sources) > _MOST_AXES or math.prod(shape) > MOST_CELLS:
        return _Condition()

    def truth_of(atom: Atom) -> Truths:
        if not atom.columns:
            return np.array(atom.truth(), dtype=np.int8)
        own = place[atom]
        return pieces[own].truths[atom].reshape([-1 if source == own else 1 for source in sources])

    true = np.broadcast_to(question.formula.truth(truth_of) == TRUE, shape)
    expression = read(question.statistic.where, question.schema)
    return _Condition(sources, true, expression.meaning.weight + 2, len(expression.text) + 16)

"""The coarsest cells from which several questions can be answered by adding up."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.aggregates.counts import one
from farthing.data.aggregates.edges import are_equal_reals, equal_width, place_of
from farthing.data.aggregates.shape import MOST_CELLS, Aggregate, Axis, Feature
from farthing.data.expressions import read
from farthing.data.expressions.literals import literal
from farthing.data.schema import Dates, Domain, Reals, Schema
from farthing.release.counting.pieces import PieceAxis, Pieces, pieces_of, pieces_of_condition
from farthing.release.counting.predicates import TRUE, Atom, Truths
from farthing.release.counting.questions import Question

Places = NDArray[np.int64]


@dataclass(frozen=True)
class PieceCounts(Aggregate):
    """The number of rows in sets of cells of a product of pieces. `merge` gives the set of every cell; -1 is left out.

    A row lies in one set at most, so the sets are cells of their own and cost as much as one of them.
    """

    pieces: tuple[PieceAxis, ...]
    merge: tuple[int, ...] = field(repr=False)
    cells: int
    where: str | None = None  # a condition that is tried row by row instead of being cut into pieces
    by: tuple[str, ...] = field(init=False, default=(), repr=False)
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        plain = np.asarray(self.merge, dtype="<i8").tobytes()
        object.__setattr__(self, "fingerprint", hashlib.sha256(plain).hexdigest())

    def axes(self, schema: Schema) -> tuple[Axis, ...]:
        """One for each column or condition that tells rows apart."""
        return tuple(_engine_axis(axis, schema) for axis in self.pieces)

    def features(self, schema: Schema) -> tuple[Feature, ...]:
        """One."""
        return (Feature(("one",), (), 0, 1, one),)

    def cell_count(self, schema: Schema) -> int:
        """The sets: cells that are added up before any noise are one."""
        return self.cells

    def finished(self, sums: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Cells added up into their sets; still private."""
        flat = sums.reshape(-1)
        places = np.asarray(self.merge)
        totals = np.zeros(self.cells, dtype=flat.dtype)
        np.add.at(totals, places[places >= 0], flat[places >= 0])
        return totals


@dataclass(frozen=True)
class Refinement:
    """Questions, the pieces of what they look at, and the cells that tell their answers apart."""

    questions: tuple[Question, ...]
    pieces: tuple[Pieces, ...]
    where: str | None = None

    @property
    def product(self) -> int:
        """How many cells the product of all pieces has."""
        return math.prod(len(piece) for piece in self.pieces)

    @cached_property
    def _signatures(self) -> tuple[Places, tuple[Places, ...]]:
        """The refined cell of every cell of the product, and the place of every refined cell in each question."""
        grids = [self._places(question) for question in self.questions]
        ids = np.zeros(self.product, dtype=np.int64)
        count = 1
        for question, grid in zip(self.questions, grids, strict=True):
            # Renumbered after every question, so that the numbers stay far below 2^63.
            _, ids = np.unique(ids * (question.cells + 1) + grid + 1, return_inverse=True)
            count = int(ids.max()) + 1
        first = np.full(count, self.product, dtype=np.int64)
        np.minimum.at(first, ids, np.arange(self.product))
        members = np.array([grid[first] for grid in grids]).reshape(len(grids), count)
        used = (members >= 0).any(axis=0)
        renumbered = np.where(used, np.cumsum(used) - 1, -1)
        return renumbered[ids], tuple(members[:, used])

    def _places(self, question: Question) -> Places:
        """The cell of a question that each cell of the product lies in; -1 for none."""
        truths: dict[Atom, Truths] = {}
        dimension = len(self.pieces)
        found: Any = np.zeros((1,) * dimension, dtype=np.int64)
        outside: Any = np.zeros((1,) * dimension, dtype=bool)
        columns = {piece.axis.source: (number, piece) for number, piece in enumerate(self.pieces)}
        for number, piece in enumerate(self.pieces):
            for atom, truth in piece.truths.items():
                truths[atom] = truth.reshape([-1 if n == number else 1 for n in range(dimension)])
        for axis in question.axes:
            number, piece = columns[axis.column]
            places = piece.places[axis].reshape([-1 if n == number else 1 for n in range(dimension)])
            outside = outside | (places < 0)
            found = found * len(axis) + places
        if question.formula is not None and self.where is None:
            outside = outside | (question.formula.truth(_looked_up(truths)) != TRUE)
        shape = tuple(len(piece) for piece in self.pieces)
        return np.broadcast_to(np.where(outside, -1, found), shape).reshape(-1).astype(np.int64)

    @property
    def merge(self) -> Places:
        """For every cell of the product, its refined cell; -1 where no question looks."""
        return self._signatures[0]

    @property
    def members(self) -> tuple[Places, ...]:
        """For each question, the place of every refined cell in it; -1 for none."""
        return self._signatures[1]

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
        axes = tuple(piece.axis for piece in self.pieces)
        return PieceCounts(axes, tuple(self.merge.tolist()), self.cells, self.where)

    @property
    def by_itself(self) -> bool:
        """Whether its cells are those of one question, which no other can share."""
        return self.where is not None


def refinement_of(questions: Sequence[Question]) -> Refinement | None:
    """The common refinement of questions about one table; None when its product has too many cells."""
    schema = questions[0].schema
    columns = dict.fromkeys(
        name
        for question in questions
        for name in (*(axis.column for axis in question.axes), *question.plain_atoms)
    )
    conditions = dict.fromkeys(atom for question in questions for atom in question.conditions)
    if 3 ** len(conditions) > MOST_CELLS:
        return None
    found: list[Pieces] = []
    for name in columns:
        atoms = dict.fromkeys(atom for question in questions for atom in question.plain_atoms.get(name, ()))
        axes = dict.fromkeys(axis for question in questions for axis in question.axes if axis.column == name)
        # Where every question puts the column into cells, a row without it is in none of them.
        missing = not all(any(axis.column == name for axis in question.axes) for question in questions)
        found.append(pieces_of(name, schema[name], tuple(atoms), tuple(axes), missing=missing))
    found.extend(pieces_of_condition(atom) for atom in conditions)
    refined = Refinement(tuple(questions), tuple(found))
    return refined if refined.product <= MOST_CELLS else None


def own_refinement(question: Question) -> Refinement:
    """The cells of one question. A condition that falls into too many pieces is tried row by row instead."""
    found = refinement_of([question])
    if found is not None:
        return found
    schema = question.schema
    pieces = [
        pieces_of(axis.column, schema[axis.column], (), (axis,), missing=False) for axis in question.axes
    ]
    return Refinement((question,), tuple(pieces), question.statistic.where)


def _looked_up(truths: dict[Atom, Truths]) -> Callable[[Atom], Truths]:
    def truth_of(atom: Atom) -> Truths:
        return truths[atom] if atom.columns else np.array(atom.truth(), dtype=np.int8)

    return truth_of


def _engine_axis(axis: PieceAxis, schema: Schema) -> Axis:
    key = ("pieces", axis.source, axis.form, axis.raw, axis.codes, axis.missing)
    if axis.form == "condition":
        condition = read(axis.source, schema)
        places: dict[Any, int] = {False: 0, True: 1, None: axis.missing}
        return Axis(
            key, condition.columns, tuple(range(axis.size)),
            lambda table: condition.to_ibis(table, cells_read=True), places,
        )  # fmt: skip
    domain, name = schema[axis.source], axis.source
    if axis.form == "values":
        value: Callable[[Any], Any] = lambda table: table[name]  # noqa: E731
        places = dict(zip(axis.raw, axis.codes, strict=True))
    else:
        value, places = _by_cuts(axis, domain)
    if axis.missing >= 0:
        places[None] = axis.missing
    return Axis(key, (name,), tuple(range(axis.size)), value, places)


def _by_cuts(axis: PieceAxis, domain: Domain) -> tuple[Callable[[Any], Any], dict[Any, int]]:
    """The number of a value's interval: divided where intervals are equal, else by comparisons in a balanced tree."""
    name, cuts = axis.source, axis.raw
    places: dict[Any, int] = dict(enumerate(axis.codes))
    assert isinstance(domain, Dates | Reals) or hasattr(domain, "lower")
    edges = (domain.lower, *(value for value, _ in cuts), domain.upper)  # type: ignore[union-attr]
    plain = all(not after for _, after in cuts)
    if plain and (
        equal_width(edges, domain) or (isinstance(domain, Reals) and are_equal_reals(edges, domain))
    ):
        places[len(cuts) + 1] = places[len(cuts)]  # the upper bound itself
        return lambda table: place_of(table[name], edges, domain), places
    return lambda table: _interval(table[name], cuts), places


def _interval(value: Any, cuts: Sequence[tuple[Any, int]]) -> Any:
    import ibis

    def between(first: int, last: int) -> Any:
        if first == last:
            return ibis.literal(first, "int64")
        middle = (first + last + 1) // 2
        edge, after = cuts[middle - 1]
        below = value <= literal(edge) if after else value < literal(edge)
        return below.ifelse(between(first, middle - 1), between(middle, last))

    return value.notnull().ifelse(between(0, len(cuts)), ibis.null("int64"))

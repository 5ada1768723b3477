"""How many rows are expected in which cells: from what the steward expects, else evenly and independently."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.aggregates.aggregate import MOST_CELLS
from farthing.data.schema import Categories, Dates, Domain, Flags, Integers
from farthing.errors import InvalidValue
from farthing.statistics.cells.column_pieces import (
    PieceAxis,
    Pieces,
    joined_axis,
    pieces_of,
    pieces_of_condition,
)
from farthing.statistics.cells.common_cells import Partition
from farthing.statistics.cells.predicates import TRUE, Atom, Truths
from farthing.statistics.counts.count_queries import Question, question_of
from farthing.statistics.counts.piece_counts import PieceCounts
from farthing.statistics.public_facts import Assumption, Facts, checked_expectation
from farthing.statistics.statistic import Statistic

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Refinement:
    """Questions, the pieces of what they look at, and the cells that distinguish their answers.

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
    def is_complete(self) -> bool:
        """Whether every row lies in one of its cells, rows without values included."""
        pieces = all(axis.missing >= 0 for axis in self.axes)
        return not self.by_itself and pieces and not (self.merge < 0).any()

    @property
    def partition(self) -> Partition:
        """Its cells as cells of all rows."""
        return Partition(self.axes, self.merge, self.cells)

    @property
    def by_itself(self) -> bool:
        """Whether its cells are those of one question, which no other can share."""
        return self.where is not None


def refinement_of(questions: Sequence[Question]) -> Refinement | None:
    """The common refinement of questions about one table; None when its product has too many cells."""
    refinement: Refinement | None = own_refinement(questions[0])
    for question in questions[1:]:
        refinement = None if refinement is None else joined(refinement, own_refinement(question))
    return refinement


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
    cells = []
    for key in dict.fromkeys((*mine, *theirs)):
        domain = None if key[0] == "condition" else schema[key[1]]
        cells.append(joined_axis(mine.get(key), theirs.get(key), domain))
        if math.prod(axis.size for axis, _, _ in cells) > MOST_CELLS:
            return None
    axes = tuple(axis for axis, _, _ in cells)
    places = {axis.key: number for number, axis in enumerate(axes)}
    left = _carried(one, axes, [(places[axis.key], cells[places[axis.key]][1]) for axis in one.axes])
    right = _carried(other, axes, [(places[axis.key], cells[places[axis.key]][2]) for axis in other.axes])
    merge, first = _numbered((left + 1) * (other.cells + 1) + right + 1, (one.cells + 1) * (other.cells + 1))
    members = [*_members(one, left[first]), *_members(other, right[first])]
    return Refinement((*one.questions, *other.questions), axes, merge, tuple(members))


_FEW_OUTSIDE = 32  # cells of rows that no question asks for, where the questions' own are fewer


def completed(refinement: Refinement) -> Refinement | None:
    """The same with further cells for the rows that no question looks at, so that every row lies in exactly one.

    Rows outside are told apart by the pieces of every column that questions tell apart: then the sums over one column
    of a table include its rows without a value in another, and agree with what counts the column alone. Too many such
    cells are one. None where a condition is tried row by row, or the product has too many cells.
    """
    if refinement.by_itself:
        return None
    joint = [joined_axis(axis, None, None) for axis in refinement.axes]
    axes = tuple(axis for axis, _, _ in joint)
    shape = tuple(axis.size for axis in axes)
    if math.prod(shape) > MOST_CELLS:
        return None
    inside = _carried(refinement, axes, [(place, kept) for place, (_, kept, _) in enumerate(joint)]).reshape(shape)
    outside: Any = np.zeros((1,) * len(shape), dtype=np.int64)
    for place, size in enumerate(shape):
        along = np.moveaxis(inside, place, 0).reshape(size, -1)
        known: dict[bytes, int] = {}
        alike = np.array([known.setdefault(row.tobytes(), len(known)) for row in along])
        outside = outside * size + alike.reshape([-1 if n == place else 1 for n in range(len(shape))])
    flat = inside.reshape(-1)
    rest, numbers = np.unique(np.broadcast_to(outside, shape).reshape(-1)[flat < 0], return_inverse=True)
    count = len(rest)
    if count > max(_FEW_OUTSIDE, 2 * refinement.cells):
        count, numbers = 1, np.zeros_like(numbers)
    merge = flat.copy()
    merge[flat < 0] = refinement.cells + numbers
    members = tuple(np.append(places, np.full(count, -1)) for places in refinement.members)
    return Refinement(refinement.questions, axes, merge, members)


def completed_at_no_cost(facts: Facts, refinement: Refinement) -> Refinement:
    """The same with cells for all other rows, or as it is where these would cost something.

    A row lies in one cell either way. But where rows are replaced, one cell alone moves by 1 and two cells by 2.
    """
    whole = completed(refinement)
    if whole is None or facts.sensitivity(whole.aggregate()) != facts.sensitivity(refinement.aggregate()):
        return refinement
    return whole


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
    cells: Any = np.zeros((1,) * dimension, dtype=np.int64)
    outside: Any = np.zeros((1,) * dimension, dtype=bool)
    for number, piece in enumerate(pieces):
        shape = [-1 if n == number else 1 for n in range(dimension)]
        for atom, truth in piece.truths.items():
            truths[atom] = truth.reshape(shape)
    for axis in question.axes:
        number = next(number for number, piece in enumerate(pieces) if axis in piece.places)
        places = pieces[number].places[axis].reshape([-1 if n == number else 1 for n in range(dimension)])
        outside = outside | (places < 0)
        cells = cells * len(axis) + places
    if question.formula is not None and try_condition:
        outside = outside | (question.formula.truth(_looked_up(truths)) != TRUE)
    shape = [len(piece) for piece in pieces]
    return np.broadcast_to(np.where(outside, -1, cells), shape).reshape(-1).astype(np.int64)


def _looked_up(truths: dict[Atom, Truths]) -> Callable[[Atom], Truths]:
    def truth_of(atom: Atom) -> Truths:
        return truths[atom] if atom.columns else np.array(atom.truth(), dtype=np.int8)

    return truth_of


Floats = NDArray[np.float64]

SMALLER = 0.5
"""Groups and conditions whose size is not expected are predicted for this part of an even share of the rows."""

_FEW = 8  # categories that are shown in an example

PRESENT = 0.75
"""If nothing is expected of a column, errors are predicted for this share of the rows having a value."""


def expected_rows(facts: Facts, where: Any = None, by: Sequence[str] = ()) -> Floats:
    """The expected number of rows in every cell of `by` among rows where the predicate holds; one number without `by`.

    Taken from `facts.expected` where a count of that name is given, else from the expected columns, as if they were
    independent of each other.
    """
    question = question_of(Statistic("count", where=where, by=tuple(by)), facts.schema)
    return expected_counts(facts, question)


def expected_counts(facts: Facts, question: Question, cells: Refinement | None = None) -> Floats:
    """The expected number of rows in every cell of a question; `cells` is its own refinement, if that is at hand."""
    given = facts.expected.get(question.statistic.name)
    if given is not None and question.statistic.kind != "cdf":
        return checked_expectation(question.statistic.name, given, question.cells)
    refinement = cells or own_refinement(question)
    share = 0.5 if refinement.by_itself else 1.0  # of a condition about which nothing better is known
    grows = question.statistic.for_population and question.statistic.kind != "cdf"
    amounts = (facts.most_rows if grows else facts.rows) * share * refined_shares(facts, refinement)
    return _added_up(refinement.members[0], amounts, question.cells)


def sizes_expected(facts: Facts, where: Any, by: Sequence[str]) -> bool:
    """Whether somebody stated how many rows meet a condition, or lie in each group."""
    if where is None and not by:
        return True
    question = question_of(Statistic("count", where=where, by=tuple(by)), facts.schema)
    if question.statistic.name in facts.expected:
        return True
    columns = {axis.column for axis in question.axes} | set(question.plain_atoms)
    return not question.conditions and columns <= set(facts.expected)


def shares_expected(facts: Facts, question: Question) -> bool:
    """Whether somebody stated how the rows lie over the cells of a question."""
    columns = {axis.column for axis in question.axes} | set(question.plain_atoms)
    return not question.conditions and columns <= set(facts.expected)


def refined_shares(facts: Facts, refinement: Refinement) -> Floats:
    """The expected share of rows in every refined cell."""
    shares = np.ones(1)
    for axis in refinement.axes:
        shares = (shares[:, None] * piece_shares(facts, axis)[None, :]).reshape(-1)
    inside = refinement.merge >= 0
    return _added_up(refinement.merge[inside], shares[inside], refinement.cells)


def piece_shares(facts: Facts, axis: PieceAxis) -> Floats:
    """The expected share of rows in every piece of a column, of those that are expected to have it."""
    if axis.form == "condition":
        return np.array([0.5, 0.5, 0.0])
    domain = facts.schema[axis.source]
    if isinstance(domain, Categories | Flags):
        raw = category_shares(facts, axis.source, axis.raw)
    elif axis.form == "values":
        raw = np.diff(_shares_below(facts, axis.source, domain, axis.raw), append=1.0)
    else:
        below = _shares_below(facts, axis.source, domain, [value for value, _ in axis.raw])
        raw = np.diff(below, prepend=0.0, append=1.0)
    return _added_up(np.asarray(axis.codes), facts.present(axis.source) * np.asarray(raw), axis.size)


def category_shares(facts: Facts, name: str, values: Sequence[Any]) -> Floats:
    """The expected share of every category: from weights or public values, else all alike."""
    given = facts.expected.get(name)
    if given is None:
        return np.full(len(values), 1.0 / len(values))
    rule = "must map categories to shares, or be a list of public values"
    few = ", ".join(f"{value!r}: {1 / len(values):.3g}" for value in values[:_FEW])
    way_out = f"for example {{{few}{', ...' if len(values) > _FEW else ''}}}"
    if isinstance(facts.schema[name], Flags):
        way_out = "give the shares of true and of false, such as 0.2 and 0.8"
    if isinstance(given, Mapping):
        if not all(isinstance(share, int | float | np.number) for share in given.values()):
            raise InvalidValue(f"expected[{name!r}]", dict(given), rule, way_out)
        weights = np.array([given.get(value, 0) for value in values], dtype=float)
        strange = [value for value in given if value is not None and value not in values]
    elif isinstance(given, list):
        weights = np.array([given.count(value) for value in values], dtype=float)
        strange = []
    else:
        raise InvalidValue(f"expected[{name!r}]", given, rule, way_out)
    if strange:
        rule = "must be a category" if isinstance(facts.schema[name], Categories) else "must be true or false"
        raise InvalidValue(f"expected[{name!r}]", strange[0], rule, way_out)
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise InvalidValue(f"expected[{name!r}]", given, rule, way_out)
    return np.asarray(weights / weights.sum())


def _shares_below(facts: Facts, name: str, domain: Domain, values: Sequence[Any]) -> Floats:
    """The expected share of rows below each of rising values."""
    if isinstance(domain, Dates):
        days = (domain.upper - domain.lower).days + 1
        return np.array([(value - domain.lower).days / days for value in values], dtype=np.float64)
    model = facts.column(name)
    points = np.asarray(values, dtype=np.float64)
    if not isinstance(domain, Integers):
        return model.share_below(points)
    if model.assumed:  # whole numbers, all alike
        return (points - domain.lower) / (domain.upper - domain.lower + 1)
    return np.where(points > domain.lower, model.share_below(points - 0.5), 0.0)


def assumptions_of(facts: Facts, columns: Sequence[str]) -> tuple[Assumption, ...]:
    """What is assumed about rows and columns, in words."""
    assumptions = list(facts.row_assumptions)
    for name in columns:
        if name in facts.expected:
            continue
        domain = facts.schema[name]
        how = "over its categories" if isinstance(domain, Categories | Flags) else "between its bounds"
        key = None if isinstance(domain, Dates) else name  # of dates nothing can be expected
        assumptions.append(Assumption(f"{name} is assumed uniform {how}", key))
    return tuple(assumptions)


def _added_up(places: NDArray[np.int64], amounts: Floats, cells: int) -> Floats:
    return np.bincount(places, weights=amounts, minlength=cells).astype(np.float64)

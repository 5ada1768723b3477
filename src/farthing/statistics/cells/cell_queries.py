"""Questions about cells that exist already: `10 <= age < 25 and sex = 'M'` as zeros and ones over them.

A condition is a query only where every cell lies wholly inside or wholly outside of it. One that cuts through a cell
is refused with the edges that would do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.expressions.expression import check
from farthing.data.expressions.parser import parse
from farthing.data.expressions.syntax_tree import written_name
from farthing.data.expressions.value_ranges import Flag
from farthing.data.schema import Schema
from farthing.errors import InvalidExpression, InvalidValue
from farthing.inference.noise_terms import Floats
from farthing.matrix.workloads.condition_language import Question
from farthing.matrix.workloads.workload import MOST_QUERIES
from farthing.statistics.cells.cell_axes import Axis
from farthing.statistics.cells.predicates import FALSE, TRUE, Atom, Truths, formula_of_node

_EVERYTHING = {"all", "all rows", "true"}
_MOST_TRIED = 2**16


class CellConditions:
    """The conditions of `farthing.data`, for workloads whose cells are whole numbers from 0."""

    def column_text(self, column: str) -> str:
        return written_name(column)

    def coefficients(self, question: Question, columns: tuple[str, ...], shape: tuple[int, ...]) -> Floats:
        return vector_of(question, [Axis(name, range(size)) for name, size in zip(columns, shape, strict=True)])


def vector_of(what: Question, axes: Sequence[Axis]) -> Floats:
    """The query as one number for each cell, flat in C order: 1 where the cell counts, 0 elsewhere.

    >>> age = Axis("age", edges=(0, 10, 25, 65, 110))
    >>> sex = Axis("sex", labels=("F", "M"))
    >>> vector_of("10 <= age < 65", [age])
    array([0., 1., 1., 0.])
    >>> vector_of("age < 25 and sex = 'M'", [age, sex])
    array([0., 1., 0., 1., 0., 0., 0., 0.])
    >>> vector_of({"age": (25, 110), "sex": "F"}, [age, sex])
    array([0., 0., 0., 0., 1., 0., 1., 0.])
    >>> vector_of("age < 30", [age])
    Traceback (most recent call last):
    farthing.errors.InvalidExpression: expression: age < 30 cuts through the cell 25 <= age < 65; its edges are 25 and
        65, write age < 25 or age < 65.
        age < 30
    """
    shape = tuple(len(axis) for axis in axes)
    _refuse_too_many(math.prod(shape))
    return np.broadcast_to(mask_of(what, axes), shape).reshape(-1).copy()


def mask_of(what: Question, axes: Sequence[Axis]) -> Floats:
    """The same with one dimension for each axis, of size 1 where the axis does not matter.

    Domains of any size may be asked, as long as the axes that matter have few cells.

    >>> axes = [Axis(f"c{i}", range(10)) for i in range(30)]
    >>> mask_of("c3 = 1 and c17 < 5", axes).shape[17], mask_of("c3 = 1 and c17 < 5", axes).size
    (10, 100)
    """
    if isinstance(what, str):
        return _mask_of_text(what, axes)
    if isinstance(what, Mapping):
        return _mask_of_mapping(what, axes)
    if isinstance(what, tuple) and len(what) == 2 and len(axes) == 1:
        return axes[0].truth_of_choice(what).astype(float)
    shape = tuple(len(axis) for axis in axes)
    try:
        mask = np.asarray(what)
        # A complex number is no count.
        given = np.empty(0) if mask.dtype.kind == "c" else mask.astype(float)
    except (TypeError, ValueError, OverflowError):
        given = np.empty(0)
    if given.size != math.prod(shape) or (given.ndim > 1 and given.shape != shape):
        raise InvalidValue(
            "query",
            what,
            f"must be a condition, a mapping of columns, or {math.prod(shape):,} numbers",
            f"the columns are {', '.join(axis.column for axis in axes)}",
        )
    if not np.all(np.isfinite(given)):
        raise InvalidValue("query", "an array", "must be finite")
    return given.reshape(shape)


def _mask_of_text(text: str, axes: Sequence[Axis]) -> Floats:
    if text.strip().lower() in _EVERYTHING and all(text.strip() != axis.column for axis in axes):
        return np.ones((1,) * len(axes))
    schema = Schema({axis.column: axis.domain for axis in axes})
    node = parse(text, chains=True)
    if not isinstance(check(node, schema, text).range, Flag):
        raise InvalidExpression(text, None, "must be true or false", "compare it with something")
    formula = formula_of_node(node, schema)
    places = {axis.column: place for place, axis in enumerate(axes)}
    mentioned = {places[name] for atom in formula.atoms() for name in atom.columns}
    _refuse_too_many(math.prod(len(axes[place]) for place in mentioned))

    def truth_of(atom: Atom) -> Truths:
        own = sorted(places[name] for name in atom.columns)
        if not own:
            return np.full((1,) * len(axes), atom.truth(), dtype=np.int8)
        if len(own) == 1:
            truths = axes[own[0]].truth_of(atom, text)
        else:
            truths = _tried([axes[place] for place in own], atom, text)
        return _spread(truths, own, len(axes))

    return np.asarray(formula.truth(truth_of) == TRUE, dtype=float)


def _tried(axes: Sequence[Axis], atom: Atom, text: str) -> Truths:
    """An atom about several columns, tried on all combinations of their values."""
    shape = tuple(len(axis) for axis in axes)
    if any(axis.edges is not None for axis in axes) or math.prod(shape) > _MOST_TRIED:
        raise InvalidExpression(
            text,
            None,
            f"{atom.text} is about several columns, whose cells do not decide it",
            "join conditions on one column each with and, or, not",
        )
    from farthing.data.expressions.row_evaluation import evaluate

    truth = np.empty(shape, dtype=np.int8)
    for place in np.ndindex(shape):
        row = {axis.column: axis.value(i) for axis, i in zip(axes, place, strict=True)}
        truth[place] = TRUE if evaluate(atom.meaning, row) is True else FALSE
    return truth


def _mask_of_mapping(what: Mapping[str, Any], axes: Sequence[Axis]) -> Floats:
    places = {axis.column: place for place, axis in enumerate(axes)}
    mask = np.ones((1,) * len(axes), dtype=bool)
    for column, choice in what.items():
        if column not in places:
            raise InvalidValue("query", column, "must be a column", f"they are {', '.join(places)}")
        place = places[column]
        mask = mask & _spread(axes[place].truth_of_choice(choice), [place], len(axes))
        _refuse_too_many(mask.size)
    return mask.astype(float)


def _spread(values: NDArray[Any], places: Sequence[int], axes: int) -> NDArray[Any]:
    sizes = [1] * axes
    for place, size in zip(places, values.shape, strict=True):
        sizes[place] = size
    return values.reshape(sizes)


def _refuse_too_many(cells: int) -> None:
    if cells > MOST_QUERIES:
        raise InvalidValue(
            "cells",
            cells,
            f"must be at most {MOST_QUERIES:,} for one query",
            "ask about fewer columns at once",
        )

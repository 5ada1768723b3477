"""Which cells a question is about: conditions, pairs and mappings against the public cells of a release.

A condition must not cut through a cell: what lies inside one was never distinguished.
"""

from __future__ import annotations

import datetime
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.expressions.arithmetic import nearest_label
from farthing.data.expressions.parser import parse
from farthing.data.expressions.syntax_tree import written, written_name
from farthing.data.schema import Categories, Dates, Domain, Flags, Integers, Schema
from farthing.errors import InvalidValue
from farthing.statistics.cells.column_pieces import Pieces, is_plain, pieces_of
from farthing.statistics.cells.predicates import TRUE, Atom, Truths, formula_of
from farthing.statistics.cells.statistic_cells import CellAxis

PAIRS = "a pair (lower, upper) holds lower <= value < upper, and the column's upper bound if it ends there"
"""The rule, as refusals state it."""


def within_bound(pair: tuple[Any, Any], domain: Domain) -> tuple[Any, Any]:
    """The pair that ends at the upper bound instead of one step after it: both hold the bound.

    >>> within_bound((40, 100), Integers(0, 99)), within_bound((40, 99), Integers(0, 99))
    ((40, 99), (40, 99))
    >>> within_bound((40, 150), Integers(0, 99))
    (40, 150)
    """
    lower, upper = pair
    if isinstance(domain, Integers) and upper == domain.upper + 1:
        return lower, domain.upper
    if isinstance(domain, Dates) and isinstance(upper, date) and upper == domain.upper + timedelta(days=1):
        return lower, domain.upper
    return pair


def place_among(edges: Sequence[Any], end: Any) -> int | None:
    """Which edge an end is; beyond the bounds there is nothing, so an end may lie there. None for one between edges.

    >>> place_among((0, 18, 65), 18), place_among((0, 18, 65), 200), place_among((0, 18, 65), 20)
    (1, 2, None)
    """
    if not edges[0] <= end <= edges[-1]:  # a TypeError for one of another kind
        return 0 if end < edges[0] else len(edges) - 1
    return edges.index(end) if end in edges else None


class Between(tuple[Any, Any]):
    """A pair (lower, upper) that is written as a range.

    >>> Between((18, 65)) == (18, 65), str(Between((18, 65)))
    (True, '18 to 65')
    """

    __slots__ = ()

    def __str__(self) -> str:
        lower, upper = (f"{end:.8g}" if isinstance(end, float) else str(end) for end in self)
        return f"{lower} to {upper}"


Mask = NDArray[np.bool_]


def mask_of(what: Any, axes: Sequence[CellAxis]) -> Mask:
    """The cells that `what` holds of, in the shape of the axes.

    `what` is a condition ("10 <= age < 25 and sex = 'F'"), a pair (lower, upper) for the last axis, or a mapping from
    columns to pairs or values.

    >>> from farthing.data.schema import Integers
    >>> age = CellAxis("age", Integers(0, 5))
    >>> mask_of("2 <= age < 4", [age]).astype(int), mask_of((2, 4), [age]).astype(int)
    (array([0, 0, 1, 1, 0, 0]), array([0, 0, 1, 1, 0, 0]))
    """
    shape = tuple(len(axis) for axis in axes)
    if isinstance(what, Mapping):
        mask = np.ones(shape, dtype=bool)
        for column, wanted in what.items():
            place = _place(column, axes)
            own = _picked(axes[place], wanted)
            mask = mask & own.reshape([-1 if n == place else 1 for n in range(len(axes))])
        return mask
    if isinstance(what, tuple):
        return np.broadcast_to(_picked(axes[-1], what), shape)
    return _met(what, axes)


def query_columns(what: Any, known: Sequence[CellAxis]) -> tuple[str, ...]:
    """The columns that a question looks at, in the order of the axes."""
    if isinstance(what, Mapping):
        named = {axes_name for axes_name in what if _place(axes_name, known) >= 0}
    elif isinstance(what, tuple):
        raise InvalidValue("query", what, "must say which column it is about", example(known))
    else:
        formula = formula_of(unchained(what), _schema(known))
        named = {name for atom in formula.atoms() for name in atom.columns} if formula else set()
    return tuple(axis.column for axis in known if axis.column in named)


def unchained(what: Any) -> Any:
    """Text with `a <= x < b` written as `a <= x and x < b`, as all other conditions are.

    >>> unchained("10 <= age < 25 or age = 99")
    '10 <= age and age < 25 or age = 99'
    """
    return written(parse(what, chains=True)) if isinstance(what, str) else what


def _met(what: Any, axes: Sequence[CellAxis]) -> Mask:
    schema = _schema(axes)
    formula = formula_of(unchained(what), schema)
    if formula is None:
        raise InvalidValue("query", what, "must be a condition", example(axes))
    atoms = tuple(dict.fromkeys(formula.atoms()))
    for atom in atoms:
        if atom.columns and not (len(atom.columns) == 1 and is_plain(atom, schema[atom.columns[0]])):
            raise InvalidValue("query", atom.text, "must compare one column with constants", example(axes))
    pieces = [_pieces(axis, atoms) for axis in axes]
    truths: dict[Atom, Truths] = {}
    for place, own in enumerate(pieces):
        for atom, truth in own.truths.items():
            truths[atom] = truth.reshape([-1 if n == place else 1 for n in range(len(axes))])
    shape = tuple(len(own) for own in pieces)
    met = formula.truth(lambda atom: truths[atom] if atom.columns else np.array(atom.truth(), dtype=np.int8))
    return _whole_cells(np.broadcast_to(met == TRUE, shape), pieces, axes)


def _pieces(axis: CellAxis, atoms: Sequence[Atom]) -> Pieces:
    own = tuple(atom for atom in atoms if atom.columns == (axis.column,))
    return pieces_of(axis.column, axis.domain, own, (axis,), missing=False)


def _whole_cells(met: Mask, pieces: Sequence[Pieces], axes: Sequence[CellAxis]) -> Mask:
    """Every cell whose pieces are all met; a cell of which some are met and some are not is refused."""
    for place, (own, axis) in enumerate(zip(pieces, axes, strict=True)):
        places = own.places[axis]
        moved = np.moveaxis(met, place, 0)
        every = np.ones((len(axis), *moved.shape[1:]), dtype=bool)
        some = np.zeros_like(every)
        np.logical_and.at(every, places, moved)
        np.logical_or.at(some, places, moved)
        torn = every != some
        if torn.any():
            cell = int(np.argmax(torn.reshape(len(axis), -1).any(axis=1)))
            raise InvalidValue(
                "query",
                axis.column,
                f"must not cut through a cell, here {_cell_text(axis, cell)}",
                _edges_text(axis, cell),
            )
        met = np.moveaxis(every, 0, place)
    return np.ascontiguousarray(met)


def _picked(axis: CellAxis, wanted: Any) -> Mask:
    """The cells of one axis between a pair (lower, upper), or of one value."""
    is_pair = isinstance(wanted, tuple | list) and len(wanted) == 2
    if is_pair and not isinstance(axis.domain, Categories | Flags):
        return _between(axis, wanted)
    listed = wanted if isinstance(wanted, list) else [wanted]
    if any(value not in axis.labels for value in listed):
        raise _strange(axis, wanted)
    return np.array([label in listed for label in axis.labels])


def _between(axis: CellAxis, wanted: Any) -> Mask:
    """The cells of lower <= value < upper; a pair that ends at the column's upper bound holds the bound, too."""
    low, high = wanted
    try:
        low, high = within_bound((low, high), axis.domain)
        if axis.edges is None:
            ends_there = high == axis.labels[-1]
            mask = np.array([low <= label < high for label in axis.labels])
            mask[-1] |= ends_there and low < high
        else:
            places = np.array([place_among(axis.edges, end) for end in (low, high)])
            if any(place is None for place in places):
                raise InvalidValue(
                    "query",
                    wanted,
                    f"must begin and end where cells of {axis.column!r} do; {PAIRS}",
                    _torn_text(axis, [low, high][0 if places[0] is None else 1]),
                )
            mask = np.array([places[0] <= place < places[1] for place in range(len(axis))])
    except TypeError:
        raise _strange(axis, wanted) from None
    if not mask.any():
        raise _strange(axis, wanted)
    return mask


def _strange(axis: CellAxis, wanted: Any) -> InvalidValue:
    return InvalidValue(
        "query",
        wanted,
        f"must be cells of {axis.column!r}",
        f"{_way_out(axis, wanted)}; its cells are {_few(axis.labels)}",
    )


def _place(column: Any, axes: Sequence[CellAxis]) -> int:
    for place, axis in enumerate(axes):
        if axis.column == column:
            return place
    names = ", ".join(axis.column for axis in axes)
    raise InvalidValue("query", column, "must name a column of the statistic", f"there are: {names}")


def _schema(axes: Sequence[CellAxis]) -> Schema:
    return Schema({axis.column: axis.domain for axis in axes})


def example(axes: Sequence[CellAxis]) -> str:
    """A condition that can be asked, in words."""
    return f'for example "{condition_on(axes[-1])}"'


def condition_on(axis: CellAxis) -> str:
    """A condition that cuts no cell.

    >>> from farthing.data.schema import Integers
    >>> condition_on(CellAxis("age", Integers(0, 110), (0, 18, 65, 110)))
    'age < 65'
    """
    value = axis.labels[-1] if axis.edges is None else axis.edges[-2]
    operator = "=" if isinstance(axis.domain, Categories | Flags) else "<"
    return f"{written_name(axis.column)} {operator} {_constant(value)}"


def _constant(value: Any) -> str:
    if isinstance(value, datetime.date):
        return f"date '{value.isoformat()}'"
    return f"'{value}'" if isinstance(value, str) else str(value).lower()


def _cell_text(axis: CellAxis, cell: int) -> str:
    label = axis.labels[cell]
    return f"{label[0]} to {label[1]}" if axis.edges is not None else str(label)


def _edges_text(axis: CellAxis, cell: int) -> str:
    assert axis.edges is not None  # values of their own are never cut
    low, high = axis.edges[cell : cell + 2]
    edge = high if cell < len(axis) - 1 else low
    return f'cut at {_constant(low)} or at {_constant(high)}, for example "{axis.column} >= {_constant(edge)}"'


def _torn_text(axis: CellAxis, end: Any) -> str:
    """The edges on both sides of an end that is none."""
    assert axis.edges is not None
    after = bisect_right(axis.edges, end)
    beside = [str(edge) for edge in axis.edges[max(0, after - 1) : after + 1]]
    return f"the cells beside {end} begin or end at {' and '.join(beside)}"


def _way_out(axis: CellAxis, wanted: Any) -> str:
    if isinstance(axis.domain, Categories | Flags):
        near = nearest_label(str(wanted), [label for label in axis.labels if isinstance(label, str)])
        return "a value or a list of values" if near is None else f"did you mean {near!r}"
    return f"a value or a pair; {PAIRS}"


def _few(values: Sequence[Any]) -> str:
    known = ", ".join(str(value) for value in values[:12])
    return known if len(values) <= 12 else f"{known} ..."

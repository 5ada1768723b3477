"""The pieces of a column: its values, distinguished no further than the questions about it do.

A column of categories is cut into sets of values, a column of numbers or dates into intervals; whether two of them
behave alike under every atom and every list of cells is seen by trying one value of each. An atom that looks at several
columns, or does arithmetic on one, is a column of its own that holds true, false or nothing.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.expressions.syntax_tree import COLUMN, CONSTANT, Meaning
from farthing.data.schema import Categories, Dates, Domain, Flags, Integers
from farthing.statistics.cells.predicates import UNKNOWN, Atom, Truths
from farthing.statistics.cells.statistic_cells import CellAxis, size_of, values_of

Cut = tuple[Any, int]
"""(v, 0) cuts between the values below v and the rest, (v, 1) between those up to v and the rest."""

_ORDER = {"=", "<>", "<", "<=", ">", ">=", "in", "between"}
_EXACT = 2**53
_MOST_TRIED = 4_096


@dataclass(frozen=True)
class PieceAxis:
    """How an engine finds the piece of a row: the number of its value or interval, which `codes` turns into a piece.

    `form` is "values" (raw lists them), "cuts" (raw holds rising cuts) or "condition" (source is its text).
    """

    source: str
    form: str
    raw: tuple[Any, ...]
    codes: tuple[int, ...]
    missing: int
    size: int

    @property
    def key(self) -> tuple[str, str]:
        """What it is about: a condition and a column may have the same text."""
        return ("condition" if self.form == "condition" else "column", self.source)


@dataclass(frozen=True)
class Pieces:
    """The pieces of one column or of one opaque atom; the last one holds rows where it is missing, if any does."""

    axis: PieceAxis
    truths: dict[Atom, Truths] = field(compare=False)
    places: dict[CellAxis, NDArray[np.int64]] = field(compare=False)

    def __len__(self) -> int:
        return self.axis.size


def is_plain(atom: Atom, domain: Domain) -> bool:
    """Whether an atom about one column can be decided from intervals or single values of it."""
    size = size_of(domain)
    if size is not None and (isinstance(domain, Categories | Flags) or size <= _MOST_TRIED):
        return True
    return cuts_of(atom.meaning, domain) is not None


def pieces_of(column: str, domain: Domain, atoms: Sequence[Atom], axes: Sequence[CellAxis], *, missing: bool) -> Pieces:
    """The pieces of a column under the atoms and lists of cells that look at it."""
    if isinstance(domain, Categories | Flags):
        form, raw, tried = "values", values_of(domain), values_of(domain)
    else:
        cuts = all_cuts(domain, atoms, axes)
        if size_of(domain) == len(cuts) + 1:
            form, raw, tried = "values", values_of(domain), values_of(domain)
        else:
            form, raw, tried = "cuts", cuts, representatives(domain, cuts)
    behaviours = [_behaviour(value, atoms, axes) for value in tried]
    known: dict[tuple[int, ...], int] = {}
    codes = tuple(known.setdefault(behaviour, len(known)) for behaviour in behaviours)
    distinct = [*known]
    if missing:
        distinct.append(_behaviour(None, atoms, axes))
    axis = PieceAxis(column, form, tuple(raw), codes, len(known) if missing else -1, len(distinct))
    return _pieces(axis, atoms, axes, distinct)


def pieces_of_condition(atom: Atom) -> Pieces:
    """The three pieces of an atom that is taken as it is."""
    axis = PieceAxis(atom.text, "condition", (False, True), (0, 1), 2, 3)
    return Pieces(axis, {atom: np.array([0, 2, UNKNOWN], dtype=np.int8)}, {})


def joined_axis(
    one: PieceAxis | None, other: PieceAxis | None, domain: Domain | None
) -> tuple[PieceAxis, NDArray[np.int64], NDArray[np.int64]]:
    """Pieces of one source that two lists of them distinguish, and the old piece of each new one in both; -1 for none.

    Where a list does not have the source, the map for it is empty.
    """
    nothing = np.zeros(0, dtype=np.int64)
    if one is None or other is None:
        axis = one or other
        assert axis is not None
        wider, kept = _with_missing(axis)
        return wider, kept if other is None else nothing, kept if one is None else nothing
    if one.form == "condition":
        same = np.arange(one.size)
        return one, same, same
    form, raw, codes = _aligned(one, other, domain)
    known: dict[tuple[int, int], int] = {}
    new = tuple(known.setdefault(pair, len(known)) for pair in zip(*codes, strict=True))
    pairs = [*known]
    missing = -1
    if one.missing >= 0 or other.missing >= 0:
        missing = len(pairs)
        pairs.append((one.missing, other.missing))
    maps = np.array(pairs, dtype=np.int64).reshape(len(pairs), 2)
    return PieceAxis(one.source, form, raw, new, missing, len(pairs)), maps[:, 0], maps[:, 1]


def _with_missing(axis: PieceAxis) -> tuple[PieceAxis, NDArray[np.int64]]:
    """An axis beside questions that do not look at it: rows without a value are rows to them."""
    if axis.missing >= 0:
        return axis, np.arange(axis.size)
    wider = replace(axis, missing=axis.size, size=axis.size + 1)
    return wider, np.append(np.arange(axis.size), -1)


def _aligned(
    one: PieceAxis, other: PieceAxis, domain: Domain | None
) -> tuple[str, tuple[Any, ...], tuple[list[int], list[int]]]:
    """Two axes over the same values or intervals: the form, the raw list and the codes of both."""
    if one.raw == other.raw and one.form == other.form:
        return one.form, one.raw, (list(one.codes), list(other.codes))
    cuts = [axis_cuts(axis) for axis in (one, other)]
    both = tuple(sorted({*cuts[0], *cuts[1]}))
    codes: list[list[int]] = []
    for axis, own in zip((one, other), cuts, strict=True):
        inside = set(own)
        interval = np.cumsum([0, *(cut in inside for cut in both)])
        codes.append([axis.codes[place] for place in interval])
    if domain is not None and size_of(domain) == len(both) + 1:
        return "values", values_of(domain), (codes[0], codes[1])
    return "cuts", both, (codes[0], codes[1])


def axis_cuts(axis: PieceAxis) -> tuple[Any, ...]:
    """Where the intervals of an axis end; of single values, every one but the first begins one."""
    return axis.raw if axis.form == "cuts" else tuple((value, 0) for value in axis.raw[1:])


def _behaviour(value: Any, atoms: Sequence[Atom], axes: Sequence[CellAxis]) -> tuple[int, ...]:
    return (*(atom.truth(value) for atom in atoms), *(axis.place(value) for axis in axes))


def _pieces(
    axis: PieceAxis, atoms: Sequence[Atom], axes: Sequence[CellAxis], distinct: list[tuple[int, ...]]
) -> Pieces:
    table = np.array(distinct, dtype=np.int64).reshape(len(distinct), -1)
    return Pieces(
        axis,
        {atom: table[:, place].astype(np.int8) for place, atom in enumerate(atoms)},
        {own: table[:, len(atoms) + place] for place, own in enumerate(axes)},
    )


# Cuts


def cuts_of(meaning: Meaning, domain: Domain) -> list[Cut] | None:
    """Where the truth of a comparison of a column with constants can change; None if it is anything else."""
    if meaning.operator == "is null" and meaning.arguments[0].operator == COLUMN:
        return []
    if meaning.operator not in _ORDER:
        return None
    cuts: list[Cut] = []
    sides = 0
    for part in meaning.arguments:
        if part.operator == CONSTANT:
            cuts += [(part.value, 0), (part.value, 1)]
        elif _is_column(part, domain):
            sides += 1
        else:
            return None
    if sides != 1 or any(value is None for value, _ in cuts):
        return None
    if meaning.operator in {"<", "<=", ">", ">="}:
        # Only one side of the constant matters; the other cut would make an interval of one value for nothing.
        first = meaning.arguments[0].operator == CONSTANT
        strict_below = (meaning.operator in {"<", ">="}) != first
        cuts = [cut for cut in cuts if cut[1] == (0 if strict_below else 1)]
    elif meaning.operator == "between" and meaning.arguments[0].operator != CONSTANT:
        low, high = meaning.arguments[1].value, meaning.arguments[2].value
        cuts = [(low, 0), (high, 1)]
    return cuts


def _is_column(part: Meaning, domain: Domain) -> bool:
    if part.operator == "real":
        # Whole numbers beyond 2^53 move when they become doubles.
        exact = isinstance(domain, Integers) and max(abs(domain.lower), abs(domain.upper)) <= _EXACT
        return exact and part.arguments[0].operator == COLUMN
    return part.operator == COLUMN


def all_cuts(domain: Domain, atoms: Sequence[Atom], axes: Sequence[CellAxis]) -> tuple[Cut, ...]:
    """Where the truth of any atom or the cell of any axis can change, in order and in one spelling."""
    cuts: set[Cut] = set()
    for atom in atoms:
        own = cuts_of(atom.meaning, domain)
        cuts.update(((value, 0) for value in values_of(domain)) if own is None else own)
    for axis in axes:
        inner: Iterable[Any] = values_of(domain) if axis.edges is None else axis.edges[1:-1]
        cuts.update((value, 0) for value in inner)
    inside = (_normal(cut, domain) for cut in cuts)
    return tuple(sorted({cut for cut in inside if cut is not None}))


def _normal(cut: Cut, domain: Domain) -> Cut | None:
    """A cut in one spelling, or None where it leaves nothing on one side."""
    assert not isinstance(domain, Categories | Flags)
    value, after = cut
    if isinstance(domain, Integers):
        value, after = (math.floor(value) + 1 if after else math.ceil(value)), 0
    elif isinstance(domain, Dates):
        if value >= datetime.date.max and after:
            return None
        value, after = (value + datetime.timedelta(days=1) if after else value), 0
    else:
        value = float(value)
    if after:
        return (value, 1) if domain.lower <= value < domain.upper else None
    return (value, 0) if domain.lower < value <= domain.upper else None


def representatives(domain: Domain, cuts: Sequence[Cut]) -> tuple[Any, ...]:
    """One value of every interval: the least of it."""
    assert not isinstance(domain, Categories | Flags)
    return (domain.lower, *(math.nextafter(value, math.inf) if after else value for value, after in cuts))

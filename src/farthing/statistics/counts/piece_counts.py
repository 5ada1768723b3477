"""Counts of rows in sets of cells of a product of pieces: what an engine adds up for the count family."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from farthing.data.aggregates.aggregate import Aggregate, Axis, Feature
from farthing.data.aggregates.bin_edges import are_equal_reals, equal_width, interval_of, place_of
from farthing.data.aggregates.counts_and_sums import one
from farthing.data.expressions import read
from farthing.data.schema import Dates, Domain, Integers, Reals, Schema
from farthing.statistics.cells.column_pieces import PieceAxis, pieces_of
from farthing.statistics.cells.statistic_cells import CellAxis


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
        """One for each column or condition that distinguishes rows."""
        return tuple(_engine_axis(axis, schema) for axis in self.pieces)

    def features(self, schema: Schema) -> tuple[Feature, ...]:
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


def counts_of_axes(axes: Sequence[CellAxis], schema: Schema, where: str | None) -> PieceCounts:
    """The number of rows in every cell of a product of axes, among those that meet a condition."""
    pieces = [pieces_of(axis.column, schema[axis.column], (), (axis,), missing=False) for axis in axes]
    places = [piece.places[axis] for piece, axis in zip(pieces, axes, strict=True)]
    shape = tuple(len(axis) for axis in axes)
    merge = (
        np.ravel_multi_index(np.meshgrid(*places, indexing="ij"), shape).reshape(-1) if axes else np.zeros(1, dtype=int)
    )
    return PieceCounts(tuple(piece.axis for piece in pieces), tuple(merge.tolist()), math.prod(shape), where)


def _engine_axis(axis: PieceAxis, schema: Schema) -> Axis:
    key = ("pieces", axis.source, axis.form, axis.raw, axis.codes, axis.missing)
    if axis.form == "condition":
        condition = read(axis.source, schema)
        places: dict[Any, int] = {False: 0, True: 1, None: axis.missing}
        return Axis(
            key,
            condition.columns,
            tuple(range(axis.size)),
            lambda table: condition.to_ibis(table, cells_read=True),
            places,
        )
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
    assert isinstance(domain, Dates | Integers | Reals)
    edges = (domain.lower, *(value for value, _ in cuts), domain.upper)
    plain = all(not after for _, after in cuts)
    if plain and (equal_width(edges, domain) or (isinstance(domain, Reals) and are_equal_reals(edges, domain))):
        places[len(cuts) + 1] = places[len(cuts)]  # the upper bound itself
        return lambda table: place_of(table[name], edges, domain), places
    return lambda table: interval_of(table[name], cuts), places

"""A statistic of the count family, read against a schema: which rows it counts, and into which cells."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from farthing.data.aggregates.aggregate import MOST_CELLS
from farthing.data.schema import Schema
from farthing.errors import InvalidValue
from farthing.statistics.cells.column_pieces import is_plain
from farthing.statistics.cells.predicates import Atom, Formula, formula_of
from farthing.statistics.cells.statistic_cells import CellAxis, cut_of, groups_of
from farthing.statistics.statistic import Statistic


@dataclass(frozen=True)
class Question:
    """The rows for which `formula` is true, in every cell of the product of `axes`."""

    statistic: Statistic
    schema: Schema
    formula: Formula | None
    axes: tuple[CellAxis, ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many cells each axis has."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def cells(self) -> int:
        """How many cells there are in all."""
        return math.prod(self.shape)

    @cached_property
    def labels(self) -> tuple[Any, ...]:
        """What the cells are called; nothing for one number."""
        return labels_of(self.axes)

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """The atoms of the condition, each once."""
        return () if self.formula is None else tuple(dict.fromkeys(self.formula.atoms()))

    @cached_property
    def plain_atoms(self) -> dict[str, list[Atom]]:
        """For each column, the atoms that pieces of it decide."""
        atoms: dict[str, list[Atom]] = {}
        for atom in self.atoms:
            if self.decides(atom):
                atoms.setdefault(atom.columns[0], []).append(atom)
        return atoms

    @cached_property
    def conditions(self) -> tuple[Atom, ...]:
        """The atoms that are taken as they are."""
        return tuple(atom for atom in self.atoms if atom.columns and not self.decides(atom))

    def decides(self, atom: Atom) -> bool:
        """Whether pieces of one column decide an atom."""
        return len(atom.columns) == 1 and is_plain(atom, self.schema[atom.columns[0]])

    @cached_property
    def sources(self) -> frozenset[str]:
        """What distinguishes its rows: columns, and conditions by their text."""
        columns = {axis.column for axis in self.axes} | set(self.plain_atoms)
        return frozenset(columns | {f"({atom.text})" for atom in self.conditions})


def question_of(statistic: Statistic, schema: Schema) -> Question:
    """The question that a statistic asks; refuses what the schema cannot answer."""
    own = [cut_of(name, schema[name], statistic.bins_of(name)) for name in statistic.columns]
    groups = group_axes(statistic.by, schema)
    refuse_too_many(statistic.name, (*groups, *own))
    return Question(statistic, schema, formula_of(statistic.where, schema), (*groups, *own))


def group_axes(by: tuple[str, ...], schema: Schema) -> tuple[CellAxis, ...]:
    """The cells of every column in `by`."""
    return tuple(groups_of(name, schema[name]) for name in by)


def labels_of(axes: tuple[CellAxis, ...]) -> tuple[Any, ...]:
    """The labels of a product of cells: plain for one axis, tuples for several."""
    if len(axes) <= 1:
        return axes[0].labels if axes else ()
    return tuple(itertools.product(*(axis.labels for axis in axes)))


def refuse_too_many(name: str, axes: tuple[CellAxis, ...]) -> None:
    """Refuse a statistic with more cells than a release can hold."""
    cells = math.prod(len(axis) for axis in axes)
    if cells > MOST_CELLS:
        sizes = " x ".join(f"{axis.column} {len(axis):,}" for axis in axes)
        raise InvalidValue(
            name,
            f"{cells:,} cells ({sizes})",
            f"must have at most {MOST_CELLS:,} cells",
            "use fewer columns, or fewer and wider bins",
        )

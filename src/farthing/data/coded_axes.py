"""The cells of whole rows: every column of a schema cut into a public list of cells, so that a row is a few codes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

from farthing.data.aggregates.edges import checked_edges, equal_edges
from farthing.data.aggregates.shape import axis_of, names_of
from farthing.data.schema import Categories, Dates, Domain, Flags, Integers, Reals, Schema
from farthing.errors import InvalidValue

FEW_VALUES = 128
"""Up to here every whole number and every day is a cell of its own."""

BINS = 64
"""Into so many cells of equal width a column of more values is cut."""


@dataclass(frozen=True)
class CodedAxis:
    """The cells of one column: its values, or the ranges between `edges`; with `missing`, one more for missing values.

    >>> axis = CodedAxis("age", Integers(0, 110), (0, 18, 65, 110), missing=True)
    >>> len(axis), axis.labels, axis.shown
    (4, None, ((0, 18), (18, 65), (65, 110), None))
    """

    column: str
    domain: Domain
    edges: tuple[Any, ...] | None = None
    missing: bool = False

    @cached_property
    def labels(self) -> tuple[Any, ...] | None:
        """The value of each cell; None where cells are ranges."""
        return (
            None
            if self.edges is not None
            else axis_of(self.column, Schema({self.column: self.domain})).labels
        )

    @property
    def present(self) -> int:
        """How many cells hold values: codes from here on say that there is none."""
        return len(self.edges) - 1 if self.edges is not None else len(self.labels or ())

    @property
    def shown(self) -> tuple[Any, ...]:
        """What the cells are called: values, pairs of edges, and None for a missing value."""
        cells = self.labels if self.edges is None else tuple(zip(self.edges, self.edges[1:], strict=False))
        assert cells is not None
        return (*cells, None) if self.missing else cells

    def __len__(self) -> int:
        return self.present + self.missing


def coded_axes(
    schema: Schema,
    columns: Sequence[str] | str | None = None,
    *,
    bins: Mapping[str, int | Sequence[Any]] | None = None,
    missing: bool | Sequence[str] = True,
) -> tuple[CodedAxis, ...]:
    """The cells of columns, from public facts alone; by default of all columns of the schema.

    Categories, flags, and up to 128 whole numbers or days are cells of their own. Other numbers and dates are cut into
    64 cells of equal width, the lowest whole number apart (clipping gathers there, and so do zeros). `bins` says
    otherwise, by a number of cells (each of as many values, where values can be counted) or by edges. `missing` says
    which columns may lack a value, by default all of them.

    >>> schema = Schema.read({"sex": ["F", "M"], "age": (0, 110), "income": (0, 250_000), "bmi": (10.0, 60.0)})
    >>> [len(axis) for axis in coded_axes(schema, missing=False)]
    [2, 111, 64, 64]
    >>> [len(axis) for axis in coded_axes(schema, ["age", "bmi"], bins={"age": 10, "bmi": [18.5, 25]}, missing=["age"])]
    [11, 3]
    """
    names = tuple(schema) if columns is None else names_of(columns, "columns")
    if not names:
        raise InvalidValue(
            "columns", columns, "must name at least one column", "leave it out for all of them"
        )
    for name in names:
        if name not in schema:
            raise InvalidValue(
                "columns", name, f"must be columns of the schema: {', '.join(schema)}",
                "declare its categories or bounds there; free text cannot be made up",
            )  # fmt: skip
    if not isinstance(bins, Mapping | None):
        raise InvalidValue("bins", bins, "must say which column is cut", "such as bins={'income': 20}")
    cut = dict(bins or {})
    for name in cut:
        if name not in names:
            raise InvalidValue("bins", name, "must be one of the columns", f"they are {', '.join(names)}")
    lacking = (names if missing else ()) if isinstance(missing, bool) else names_of(missing, "missing")
    for name in lacking:
        if name not in names:
            raise InvalidValue("missing", name, "must be one of the columns", f"they are {', '.join(names)}")
    return tuple(
        CodedAxis(name, schema[name], _edges(name, schema[name], cut.get(name)), name in lacking)
        for name in names
    )


def cells_of(axes: Sequence[CodedAxis]) -> int:
    """How many cells all columns have together.

    >>> cells_of([CodedAxis("smoker", Flags()), CodedAxis("age", Integers(0, 9), missing=True)])
    22
    """
    return math.prod(len(axis) for axis in axes)


def _edges(name: str, domain: Domain, bins: int | Sequence[Any] | None) -> tuple[Any, ...] | None:
    if isinstance(domain, Categories | Flags):
        if bins is not None:
            raise InvalidValue("bins", name, "must be left out for a column with categories of its own")
        return None
    values = _values(domain)
    if bins is None:
        return None if values <= FEW_VALUES else _default_edges(name, domain)
    if isinstance(bins, bool) or not isinstance(bins, int):
        if isinstance(bins, str) or not isinstance(bins, Sequence):
            raise InvalidValue("bins", bins, "must be a number of cells or a list of edges", f"of {name!r}")
        return checked_edges(name, domain, bins)
    if bins >= values:
        return None
    return _equal_parts(name, domain, bins)


def _equal_parts(name: str, domain: Integers | Reals | Dates, count: int) -> tuple[Any, ...]:
    """Parts of equal width; where values can be counted, of equal numbers of them: the last one has its end too."""
    edges = equal_edges(name, domain, count)
    if isinstance(domain, Reals):
        return edges
    values = int(_values(domain))
    steps = [values * part // count for part in range(1, count)]
    if isinstance(domain, Dates):
        return (domain.lower, *(domain.lower + timedelta(days=step) for step in steps), domain.upper)
    return (domain.lower, *(domain.lower + step for step in steps), domain.upper)


def _default_edges(name: str, domain: Domain) -> tuple[Any, ...]:
    if isinstance(domain, Reals) and domain.lower == domain.upper:
        return equal_edges(name, domain, 1)
    if not isinstance(domain, Integers):
        return equal_edges(name, domain, BINS)
    rest = equal_edges(name, Integers(domain.lower + 1, domain.upper), BINS - 1)
    return (domain.lower, *rest)


def _values(domain: Integers | Reals | Dates) -> float:
    if isinstance(domain, Integers):
        return domain.upper - domain.lower + 1
    if isinstance(domain, Dates):
        return (domain.upper - domain.lower).days + 1
    return math.inf

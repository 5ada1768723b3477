"""Distinct rows with their counts, as codes of public cells: one GROUP BY in the engine.

There may be as many distinct rows as there are rows. So the engine packs the codes of a row into a few whole numbers,
and they become small arrays part by part; at no time are there as many Python values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.aggregates.aggregate import axis_of, names_of
from farthing.data.aggregates.bin_edges import checked_edges, equal_edges, place_of
from farthing.data.dataset import Dataset
from farthing.data.engines.engine import Progress, run
from farthing.data.expressions.ibis_compiler import literal
from farthing.data.schema import Categories, Dates, Domain, Flags, Integers, Reals, Schema
from farthing.data.stability import Run, Sensitivity, sensitivity_of_rows
from farthing.data.unit_rows import fresh_key
from farthing.errors import InvalidValue

FEW_VALUES = 128
"""Up to here every whole number and every day is a cell of its own."""

BINS = 64
"""Into so many cells of equal width a column of more values is cut."""


@dataclass(frozen=True)
class CodedAxis:
    """The cells of one column: its values, or the ranges between `edges`; with `missing`, one more for missing values.

    >>> axis = CodedAxis("age", Integers(0, 110), (0, 18, 65, 110), missing=True)
    >>> len(axis), axis.labels, axis.cell_names
    (4, None, ((0, 18), (18, 65), (65, 110), None))
    """

    column: str
    domain: Domain
    edges: tuple[Any, ...] | None = None
    missing: bool = False

    @cached_property
    def labels(self) -> tuple[Any, ...] | None:
        """The value of each cell; None where cells are ranges."""
        return None if self.edges is not None else axis_of(self.column, Schema({self.column: self.domain})).labels

    @property
    def present(self) -> int:
        """How many cells hold values: codes from here on say that there is none."""
        return len(self.edges) - 1 if self.edges is not None else len(self.labels or ())

    @property
    def cell_names(self) -> tuple[Any, ...]:
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
        raise InvalidValue("columns", columns, "must name at least one column", "leave it out for all of them")
    for name in names:
        if name not in schema:
            raise InvalidValue(
                "columns",
                name,
                f"must be columns of the schema: {', '.join(schema)}",
                "declare its categories or bounds there; free text cannot be made up",
            )
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
        CodedAxis(name, schema[name], _edges(name, schema[name], cut.get(name)), name in lacking) for name in names
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


_PACKED = 2**62  # codes are packed below this, so that no engine overflows
_COMPARED = 64  # up to here categories are coded by comparisons in the engine; more of them come as they are

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]


def coded_rows(dataset: Dataset, axes: Sequence[CodedAxis], progress: Progress | None = None) -> tuple[Codes, Counts]:
    """RAW distinct rows (m, columns) and how often each stands there: for mechanisms only, never for people.

    A row that lacks a value in a column whose axis has no cell for that is left out.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> from farthing.data.coded_rows import coded_axes
    >>> table = pyarrow.table({"age": [30, 30, None], "sex": ["F", "F", "M"]})
    >>> people = dataset(table, schema={"age": (30, 39), "sex": ["F", "M"]})
    >>> codes, counts = coded_rows(people, coded_axes(people.schema))
    >>> sorted(zip(codes.tolist(), counts.tolist()))
    [([0, 0], 2), ([10, 1], 1)]
    """
    refuse_sampled(dataset)
    dataset.prepare()
    layout = _layout(axes)
    columns = frozenset(axis.column for axis in axes)
    table = dataset.table(Run(fresh_key(), Fraction(1), columns))
    engine = dataset._base.source.engine
    parts: list[tuple[Codes, Counts]] = []

    def take(rows: list[tuple[Any, ...]]) -> None:
        parts.append(layout.unpacked(rows))

    sql = engine.sql(layout.query(table))
    run(engine, lambda: engine.each(sql, take), progress)
    dataset.confirm()
    if not parts:
        return np.empty((0, len(axes)), dtype=np.int32), np.empty(0, dtype=np.int64)
    return np.concatenate([codes for codes, _ in parts]), np.concatenate([counts for _, counts in parts])


def sensitivity_of_coded_rows(dataset: Dataset, axes: Sequence[CodedAxis]) -> Sensitivity:
    """How far neighbours move the counts, over all cells; the same for any table of sums of them.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> from farthing.data.coded_rows import coded_axes
    >>> table = pyarrow.table({"person": [1, 1], "sex": ["F", "M"]})
    >>> people = dataset(table, unit="person", max_rows=3, schema={"sex": ["F", "M"]})
    >>> sensitivity_of_coded_rows(people, coded_axes(people.schema)).l1
    3
    """
    refuse_sampled(dataset)
    return sensitivity_of_rows(cells_of(axes), [(0, 1)], dataset.stability().rows, dataset.neighbours)


def refuse_sampled(dataset: Dataset) -> None:
    """The rows are read once and measured many times: a sample would have to be priced as a whole."""
    if dataset.probability < 1:
        raise InvalidValue("sample", dataset.probability, "must not be sampled before", "use the whole dataset")


@dataclass(frozen=True)
class _Layout:
    """Which columns are packed together, as places of axes, and which come as raw keys."""

    axes: tuple[CodedAxis, ...]
    packed: tuple[tuple[int, ...], ...]
    raw: tuple[int, ...]

    def query(self, table: Any) -> Any:
        """One group for each distinct row."""
        for axis in self.axes:
            if not axis.missing:
                table = table.filter(table[axis.column].notnull())
        keys = {f"k{place}": self._key(table, block) for place, block in enumerate(self.packed)}
        keys.update({f"r{place}": table[self.axes[place].column] for place in self.raw})
        narrow = table.select(**keys)
        return narrow.aggregate(by=list(keys), n=narrow.count())

    def _key(self, table: Any, block: Sequence[int]) -> Any:
        whole: Any = None
        for place in block:
            axis = self.axes[place]
            code = _code(table[axis.column], axis)
            whole = code if whole is None else whole * literal(len(axis)) + code
        return whole.cast("int64")

    def unpacked(self, rows: list[tuple[Any, ...]]) -> tuple[Codes, Counts]:
        """The codes and counts of some of the groups."""
        codes = np.empty((len(rows), len(self.axes)), dtype=np.int32)
        columns = list(zip(*rows, strict=True))
        for block, keys in zip(self.packed, columns, strict=False):
            rest = np.array(keys, dtype=np.int64)
            for place in reversed(block):
                rest, codes[:, place] = np.divmod(rest, len(self.axes[place]))
        for place, values in zip(self.raw, columns[len(self.packed) :], strict=False):
            axis = self.axes[place]
            places = {label: code for code, label in enumerate(axis.labels or ())}
            codes[:, place] = [axis.present if value is None else places[value] for value in values]
        return codes, np.array(columns[-1], dtype=np.int64)


def _layout(axes: Sequence[CodedAxis]) -> _Layout:
    blocks: list[list[int]] = []
    raw = []
    for place, axis in enumerate(axes):
        if _comes_raw(axis):
            raw.append(place)
        elif blocks and math.prod(len(axes[other]) for other in (*blocks[-1], place)) < _PACKED:
            blocks[-1].append(place)
        else:
            blocks.append([place])
    return _Layout(tuple(axes), tuple(map(tuple, blocks)), tuple(raw))


def _comes_raw(axis: CodedAxis) -> bool:
    """Engines subtract dates in ways of their own, and compare with long lists slowly."""
    if isinstance(axis.domain, Categories):
        return len(axis.domain.values) > _COMPARED
    return isinstance(axis.domain, Dates) and axis.edges is None


def _code(value: Any, axis: CodedAxis) -> Any:
    """The code of an Ibis value; that of a missing one is the first after the cells."""
    import ibis

    if axis.edges is not None:
        # The upper bound itself may get the number after the last cell.
        code = ibis.least(place_of(value, axis.edges, axis.domain), literal(axis.present - 1))
    elif isinstance(axis.domain, Integers):
        code = value.cast("int64") - literal(axis.domain.lower)
    elif isinstance(axis.domain, Flags):
        code = value.ifelse(literal(1), literal(0))
    else:
        assert axis.labels is not None
        code = ibis.cases(*((value == literal(label), literal(place)) for place, label in enumerate(axis.labels)))
    return ibis.cases((value.isnull(), literal(axis.present)), else_=code).cast("int64")

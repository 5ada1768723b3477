"""Distinct rows with their counts, as codes of public cells: one GROUP BY in the engine.

There may be as many distinct rows as there are rows. So the engine packs the codes of a row into a few whole numbers,
and they become small arrays part by part; at no time are there as many Python values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.aggregates.edges import place_of
from farthing.data.bounding import fresh_key
from farthing.data.coded_axes import CodedAxis, cells_of
from farthing.data.dataset import Dataset
from farthing.data.expressions.literals import literal
from farthing.data.running import Progress, run
from farthing.data.schema import Categories, Dates, Flags, Integers
from farthing.data.sensitivity import Sensitivity, sensitivity_of_rows
from farthing.data.steps import Run
from farthing.errors import InvalidValue

_PACKED = 2**62  # codes are packed below this, so that no engine overflows
_COMPARED = 64  # up to here categories are coded by comparisons in the engine; more of them come as they are

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]


def coded_rows(
    dataset: Dataset, axes: Sequence[CodedAxis], progress: Progress | None = None
) -> tuple[Codes, Counts]:
    """RAW distinct rows (m, columns) and how often each stands there: for mechanisms only, never for people.

    A row that lacks a value in a column whose axis has no cell for that is left out.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> from farthing.data.coded_axes import coded_axes
    >>> table = pyarrow.table({"age": [30, 30, None], "sex": ["F", "F", "M"]})
    >>> people = dataset(table, schema={"age": (30, 39), "sex": ["F", "M"]})
    >>> codes, counts = coded_rows(people, coded_axes(people.schema))
    >>> sorted(zip(codes.tolist(), counts.tolist()))
    [([0, 0], 2), ([10, 1], 1)]
    """
    refuse_sampled(dataset)
    dataset.prepare()
    layout = _layout(axes)
    wanted = frozenset(axis.column for axis in axes)
    table = dataset.table(Run(fresh_key(), Fraction(1), wanted))
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
    >>> from farthing.data.coded_axes import coded_axes
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
        raise InvalidValue("sample", dataset.probability, "must not be taken before", "use the whole dataset")


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
        code = ibis.cases(
            *((value == literal(label), literal(place)) for place, label in enumerate(axis.labels))
        )
    return ibis.cases((value.isnull(), literal(axis.present)), else_=code).cast("int64")

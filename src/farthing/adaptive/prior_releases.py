"""What earlier releases say about the cells of a domain: a warm start, free of charge.

A release was paid for once; whatever is computed from it afterwards is post-processing. Tables of counts that an
earlier release holds can therefore join what a new session measures, each with the standard error it was released with.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from farthing.data.schema import Domain, Integers
from farthing.errors import InvalidValue
from farthing.inference import Answer
from farthing.matrix.workloads import identity
from farthing.statistics.marginals.marginal_queries import MarginalQueries
from farthing.statistics.ranges.range_queries import RangeQueries

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


class Cells(Protocol):
    """The cells of one column: its `labels`, or the ranges between `edges`; further cells hold missing values."""

    @property
    def column(self) -> str:
        """The name of the column."""

    @property
    def labels(self) -> Sequence[Any] | None:
        """A value for each cell."""

    @property
    def edges(self) -> Sequence[Any] | None:
        """Where cells begin and end."""

    @property
    def domain(self) -> Domain:
        """What the column may hold."""

    def __len__(self) -> int: ...


@dataclass(frozen=True, eq=False)
class KnownTable:
    """Counts that are known already, with one standard error for all of them.

    Args:
        columns: The name of each dimension.
        values: The counts, one dimension for each column.
        standard_error: The standard error of each count.
        groups: For each column, which place of the table every cell of the domain belongs to: a table may be coarser
            than the domain. Cells of place -1 are not in the table. By default the places are the cells.

    Raises:
        InvalidValue: If the names, the numbers or the places do not fit together.

    >>> known = KnownTable(("sex",), [510.0, 490.0], 3.0)
    >>> known.columns, known.values.shape, known.standard_error, known.groups
    (('sex',), (2,), 3.0, (array([0, 1]),))
    >>> KnownTable(("age",), [510.0, 490.0], 3.0, ([0, 0, 0, 1, 1],)).summed(np.arange(5.0))
    array([3., 7.])
    """

    columns: tuple[str, ...]
    values: Floats
    standard_error: float
    groups: tuple[Places, ...] = ()

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64)
        if values.ndim != len(self.columns) or len(set(self.columns)) != len(self.columns):
            raise InvalidValue("columns", self.columns, "must name each dimension of the values, each once")
        if not np.all(np.isfinite(values)):
            raise InvalidValue("values", "an array", "must be finite")
        if not 0 <= self.standard_error < math.inf:
            raise InvalidValue("standard_error", self.standard_error, "must be a number >= 0")
        groups = tuple(np.asarray(part, dtype=np.int64) for part in self.groups) or tuple(
            np.arange(size) for size in values.shape
        )
        if len(groups) != values.ndim or any(
            part.ndim != 1 or not np.all((part >= -1) & (part < size))
            for part, size in zip(groups, values.shape, strict=False)
        ):
            raise InvalidValue("groups", self.groups, "must place the cells of each column in the table")
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "groups", groups)

    def summed(self, cells: Floats) -> Floats:
        """The cells of the domain (of these columns, in this order) added up to what the table holds.

        Args:
            cells: One number for each cell of the domain of these columns.

        Returns:
            One number for each place of the table.
        """
        sums = np.asarray(cells, dtype=np.float64)
        for axis, (part, size) in enumerate(zip(self.groups, self.values.shape, strict=True)):
            sums = _merged(sums, axis, part, size)
        return sums


def known_tables(
    release: Mapping[str, Answer], axes: Sequence[Cells], rows: float | None = None
) -> tuple[KnownTable, ...]:
    """What a release says about the cells of `axes`: counts, histograms, contingency tables, ranges, cdfs, marginals.

    A statistic is used where all of its columns are among the axes and no `where` picks rows; where its cells and those
    of the axes differ, both are added up to the finest cells they have in common. Statistics of one release may share
    noise; taken as tables of their own they are then worth a little less than they seem. Nothing is spent.

    Args:
        release: The answers by name, as a `Release` holds them.
        axes: The columns of the domain with their cells.
        rows: The number of rows that a cdf is a share of; by default the release's own count, if there is one.

    Returns:
        One table for each statistic that says something about these cells.

    >>> import pyarrow, tempfile, farthing as ft
    >>> from farthing.statistics.cells.cell_axes import Axis
    >>> table = pyarrow.table({"age": [30, 41, 52], "sex": ["F", "M", "F"]})
    >>> people = ft.dataset(table, schema={"age": (0, 99), "sex": ["F", "M"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = ft.Study(people, epsilon=1.0, account="people", ledger=folder + "/study.db")
    ...     release = study.plan(ft.histogram("age", bins=[0, 18, 65, 99], by="sex")).release()
    ...     study.close()
    >>> (known,) = known_tables(release, [Axis("age", range(100)), Axis("sex", ["F", "M"])])
    >>> known.columns, known.values.shape, known.groups[1][[0, 17, 18, 99]]
    (('sex', 'age'), (2, 3), array([0, 0, 1, 2]))
    """
    by_name = {axis.column: axis for axis in axes}
    requests = {one["name"]: one.get("asked") for one in getattr(release, "plan", {}).get("statistics", ())}
    everybody = _rows(release, requests) if rows is None else rows
    tables = []
    for name, answer in release.items():
        question = requests.get(name)
        if not question or question["where"] is not None:
            continue
        for columns, cells, values, error in _tables(answer, question, everybody):
            if set(columns) <= set(by_name) and math.isfinite(error):
                parts = [_aligned(labels, by_name[column]) for column, labels in zip(columns, cells, strict=True)]
                if all(part is not None for part in parts):
                    tables.append(_coarsened(columns, values, error, parts))
    return tuple(tables)


_Table = tuple[tuple[str, ...], Sequence[Sequence[Any]], Floats, float]


def _tables(answer: Answer, question: Mapping[str, Any], rows: float | None) -> Iterator[_Table]:
    """The tables of counts in an answer: columns, the cells of each, counts, and the standard error of one of them."""
    kind, asking = question["kind"], answer.asking
    columns = (*question["by"], *question["columns"])
    if isinstance(asking, MarginalQueries):
        cells, errors = (
            asking.cells,
            np.split(np.atleast_1d(answer.standard_errors), np.cumsum(asking.cells.lengths)),
        )
        for (subset, table), error in zip(cells.tables(asking.estimate).items(), errors, strict=False):
            own = (*cells.groups, *(cells.axes[place] for place in subset))
            shape = [len(axis) for axis in own]
            yield (
                tuple(axis.column for axis in own),
                [axis.labels for axis in own],
                table.reshape(shape),
                _rms(error),
            )
    elif isinstance(asking, RangeQueries):
        shape = [len(axis) for axis in asking.axes]
        count = asking.transform.strategy.cells
        variance = asking.transform.estimator.total_variance(identity(count)) / count
        columns, labels = tuple(axis.column for axis in asking.axes), [axis.labels for axis in asking.axes]
        yield columns, labels, asking.estimate.reshape(shape), math.sqrt(variance) * asking.deviation
    elif kind in ("count", "histogram", "contingency"):
        yield from _counts(columns, answer)
    elif kind == "cdf" and len(columns) == 1 and rows is not None:
        steps = np.diff(np.atleast_1d(answer.values), prepend=0.0) * rows
        ends = [(None, end) for end in answer.labels]
        together = 2 * _rms(answer.standard_errors) * rows  # of both ends of a step: it has no more error
        yield columns, [ends if question["cut"] else answer.labels], steps, together


def _counts(columns: tuple[str, ...], answer: Answer) -> Iterator[_Table]:
    labels = answer.labels
    if len(columns) <= 1:
        cells: list[Sequence[Any]] = [labels] if columns else []
    else:
        cells = [list(dict.fromkeys(label[place] for label in labels)) for place in range(len(columns))]
    values = np.atleast_1d(np.asarray(answer.values, dtype=np.float64)).reshape([len(part) for part in cells])
    yield columns, cells, values, _rms(answer.standard_errors)


def _rows(release: Mapping[str, Answer], requests: Mapping[str, Any]) -> float | None:
    """The number of rows as the release has it."""
    for name, question in requests.items():
        if question and question["kind"] == "count" and question["where"] is None and name in release:
            return float(np.sum(release[name].values))
    return None


def _aligned(labels: Sequence[Any], axis: Cells) -> tuple[Places, Places] | None:
    """For the released cells and for those of the axis, the places of the finest cells that both add up to."""
    own = [label for label in axis.labels if label is not None] if axis.labels is not None else None
    where = None if axis.labels is None else {label: place for place, label in enumerate(axis.labels)}
    if own is not None and where is not None and set(own) == set(labels):
        groups = np.full(len(axis), -1)
        groups[[where[label] for label in labels]] = np.arange(len(labels))
        return np.arange(len(labels)), groups
    whole = isinstance(axis.domain, Integers)
    released = _cell_starts(labels, whole)
    cells = _cell_starts(own if own is not None else [*axis.edges[:-1]], whole)  # type: ignore[index]
    if released is None or cells is None:
        return None  # categories that differ from those of the release
    common = np.intersect1d(released[1:], cells[1:])
    groups = np.full(len(axis), -1)
    inside = (
        [place for place, label in enumerate(axis.labels) if label is not None] if axis.labels else slice(len(cells))
    )
    groups[inside] = np.searchsorted(common, cells, side="right")
    return np.searchsorted(common, released, side="right"), groups


def _cell_starts(cells: Sequence[Any], whole: bool) -> Floats | None:
    """Where each cell begins, as a number; the first one reaches down as far as there are values."""
    if not cells or any(isinstance(cell, str | bool) for cell in cells):
        return None
    if isinstance(cells[0], tuple) and cells[0][0] is None:  # only the upper ends are known
        cells = [cells[0][1], *(end for _, end in cells[:-1])]
    firsts = [cell[0] if isinstance(cell, tuple) else cell for cell in cells]
    numbers = [day.toordinal() if isinstance(day, datetime.date) else day for day in firsts]
    later = [math.ceil(number) if whole else number for number in numbers[1:]]
    starts = np.array([-math.inf, *later], dtype=np.float64)
    return starts if np.all(np.diff(starts) > 0) else None


def _coarsened(
    columns: tuple[str, ...], values: Floats, error: float, parts: Sequence[tuple[Places, Places] | None]
) -> KnownTable:
    """The table in cells that the domain has too. Released cells have noises of their own, so that variances add."""
    size = values.size
    for axis, part in enumerate(parts):
        assert part is not None
        values = _merged(values, axis, part[0], int(part[0].max()) + 1)
    groups = tuple(part[1] for part in parts if part is not None)
    return KnownTable(columns, values, error * math.sqrt(size / values.size), groups)


def _merged(values: Floats, axis: int, places: Places, size: int) -> Floats:
    """The entries along an axis added up by their places; those of place -1 are left out."""
    inside = places >= 0
    moved = np.moveaxis(values, axis, 0)[inside]
    sums = np.zeros((size, *moved.shape[1:]))
    np.add.at(sums, places[inside], moved)
    return np.moveaxis(sums, 0, axis)


def _rms(errors: Any) -> float:
    return float(np.sqrt(np.mean(np.square(np.asarray(errors, dtype=np.float64)))))

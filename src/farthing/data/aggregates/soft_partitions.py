"""Soft partitions: functions of a column that add up to one for every row, all summed for the price of one count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.data.aggregates.aggregate import LARGEST_TERM, Aggregate, Axis, Feature, Names, domain_of, names_of
from farthing.data.aggregates.counts_and_sums import Count, one
from farthing.data.schema import Integers, Schema
from farthing.data.stability import ADD_REMOVE, Sensitivity
from farthing.errors import InvalidValue


def sensitivity_of_shares(cells: int, parts: int, total: int, rows: int, neighbours: str = ADD_REMOVE) -> Sensitivity:
    """Sensitivity of sums to which every row adds `total`, divided among the parts of one cell, or nothing.

    Statement:
        Let V hold 0 and all vectors of whole numbers >= 0 that are zero but for one of `cells` blocks of `parts`
        entries, which add up to `total`. If the sums of neighbouring tables differ by at most `rows` vectors of V
        added or removed, they differ by at most
            linf = rows total,  l1 = rows total,  l2^2 = (rows total)^2.
        If instead at most `rows` vectors are taken away and as many put in, by at most
            linf = rows total,  l1 = 2 rows total,  l2^2 = 2 (rows total)^2,
        with l1 and l2 as before where there is one entry. l0 is the number of entries that `rows` (or twice as many)
        vectors can touch.
    Source: own; V lies in total times the convex hull C of 0 and the unit vectors, all norms are convex and are
        largest at extreme points, which are total times unit vectors. For replacement the difference lies in
        rows total (C - C), whose extreme points are differences of two unit vectors, or of one and 0.
    Assumes: every vector that a row adds lies in V: a row whose value is missing too, which has a part of its own.
    Direction: upper bounds, attained by values on the bounds of the column.
    Checked by: tests/contracts/test_soft_partitions.py

    >>> sensitivity_of_shares(10, 3, 99, 1)
    Sensitivity(l0=3, l1=99, l2_squared=9801, linf=99)
    >>> sensitivity_of_shares(10, 3, 99, 1, "replace").l1
    198
    """
    entries = cells * parts
    moved = rows * total
    if neighbours == ADD_REMOVE or entries == 1:
        return Sensitivity(min(entries, rows * parts), moved, moved**2, moved)
    return Sensitivity(min(entries, 2 * rows * parts), 2 * moved, 2 * moved**2, moved)


@dataclass(frozen=True)
class SoftPartition(Aggregate):
    """Sums of whole numbers that add up to `total` for every row: columns, what they leave, and missing values.

    For columns with values in 0 .. total a row adds c_1 = its first value, c_2 = the smaller of its second one and
    total - c_1, and so on; then total - c_1 - c_2 ...; then 0. Where a value is missing it adds 0, ..., 0, total
    instead. So its numbers are never below 0 and always add up to `total`, whatever the row, and all sums together move
    by as much as one count in steps of 1 / total.

    The last axis of the answer holds these numbers. With `complete` every axis of `by` has one more cell, its last, for
    rows whose group is missing: without `where`, every row of the table lies in one cell.

    Args:
        columns: One or more columns of whole numbers in 0 .. total.
        total: What the numbers of a row add up to, >= 1.
        by: The columns whose cells are added up apart.
        where: Add up only the rows for which this condition is true.
        complete: Whether rows without a group have cells of their own.

    Raises:
        InvalidValue: If a name stands twice, or the total is not a whole number >= 1.

    >>> from farthing.data import dataset
    >>> import pyarrow
    >>> people = dataset(pyarrow.table({"score": [1, 2, None, 7]}), schema={"score": (0, 5)})
    >>> people.exact({"halves": SoftPartition("score", 5)})["halves"]
    array([8, 7, 5])
    """

    columns: Names
    total: int
    by: Names = ()  # type: ignore[assignment]
    where: Any = None
    complete: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", names_of(self.by))
        object.__setattr__(self, "columns", names_of(self.columns, "columns"))
        if not self.columns:
            raise InvalidValue("columns", self.columns, "must name at least one column")
        whole = isinstance(self.total, int) and not isinstance(self.total, bool)
        if not (whole and 1 <= self.total <= LARGEST_TERM):
            raise InvalidValue("total", self.total, "must be a whole number from 1 to 2^62")

    @property
    def parts(self) -> int:
        """How many numbers there are for each cell of `by`."""
        return len(self.columns) + 2

    def axes(self, schema: Schema) -> tuple[Axis, ...]:
        """Those of `by`, each with a last cell for what is missing if `complete`."""
        plain = super().axes(schema)
        return tuple(map(_completed, plain)) if self.complete else plain

    def features(self, schema: Schema) -> tuple[Feature, ...]:
        """The columns, what is present, and all rows: everything else follows from these."""
        for name in self.columns:
            domain = domain_of(name, schema)
            if not (isinstance(domain, Integers) and domain.lower >= 0 and domain.upper <= self.total):
                rule = f"must hold whole numbers in 0 .. {self.total:,} to be a part of {self.total:,}"
                raise InvalidValue("columns", name, rule, "derive one with these bounds")
        names = tuple(self.columns)
        present = (
            Count(names[0]).features(schema)[0]
            if len(names) == 1
            else Feature(("all present", names), names, 0, 1, lambda table: _present(table, names).ifelse(1, 0))
        )
        parts = tuple(
            Feature(("part", names, self.total, place), names, 0, self.total, self._part(place))
            for place in range(len(names))
        )
        return (*parts, present, Feature(("one",), (), 0, 1, one))

    def _part(self, place: int) -> Any:
        names, total = tuple(self.columns), self.total

        def of(table: Any) -> Any:
            import ibis

            value = table[names[0]]
            before = value
            for name in names[1 : place + 1]:
                value = ibis.least(table[name], total - before)
                before = before + value
            return _present(table, names).ifelse(value, ibis.null("int64")).cast("int64")

        return of

    def finished(self, sums: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The sums of the columns, of what they leave, and of the total of rows with a missing value."""
        finished = np.array(sums)
        parts, present, rows = sums[..., :-2], sums[..., -2], sums[..., -1]
        finished[..., -2] = self.total * present - parts.sum(axis=-1)
        finished[..., -1] = self.total * (rows - present)
        return finished

    def sensitivity_in(self, cells: int, schema: Schema, rows: int, neighbours: str) -> Sensitivity:
        """That of `sensitivity_of_shares`: the numbers of a row are never below 0 and add up to `total`."""
        return sensitivity_of_shares(cells, self.parts, self.total, rows, neighbours)


def completed_shape(sizes: Sequence[int]) -> tuple[int, ...]:
    """The shape of the cells of a complete soft partition, whose groups have these sizes.

    >>> completed_shape([2, 4])
    (3, 5)
    """
    return tuple(size + 1 for size in sizes)


def _completed(axis: Axis) -> Axis:
    places = {**axis.places, None: len(axis)}
    return Axis(("complete", *axis.key), axis.columns, (*axis.labels, None), axis.value, places)


def _present(table: Any, names: tuple[str, ...]) -> Any:
    import ibis

    return ibis.and_(*(table[name].notnull() for name in names))

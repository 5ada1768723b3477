"""Aggregates beside their twins: what farthing is asked for, and the same by loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from backends import twin
from backends.tables import SCHEMA
from farthing.data import CellCounts, Count, CrossProducts, Histogram, Moments, OrderCounts, Sum

By = dict[str, Any] | Sequence[str]


@dataclass(frozen=True)
class Asked:
    """An aggregate, and the integers it must give for rows that have been read."""

    aggregate: Any
    expected: Callable[[twin.Rows], Any]


def count(*by: str, column: str | None = None, cells: dict[str, Any] | None = None) -> Asked:
    """Rows, or rows with a value in `column`."""

    def term(row: twin.Row) -> int:
        return 1 if column is None or row[column] is not None else 0

    return Asked(Count(column, by=by), lambda rows: twin.total(rows, term, _axes(by, cells)))


def count_where(where: Any, holds: Callable[[twin.Row], bool | None], *by: str) -> Asked:
    """Rows that an aggregate's own filter lets through."""
    return Asked(
        Count(by=by, where=where),
        lambda rows: twin.total([row for row in rows if holds(row)], lambda _: 1, _axes(by, None)),
    )


def cell_counts(*columns: str, cells: dict[str, Any] | None = None) -> Asked:
    """Rows in every cell of a cross product."""
    return Asked(CellCounts(columns), lambda rows: twin.total(rows, lambda _: 1, _axes(columns, cells)))


def total(column: str, *by: str, grid: float = 1.0, cells: dict[str, Any] | None = None) -> Asked:
    """A sum on a grid."""

    def term(row: twin.Row) -> int | None:
        return None if row[column] is None else twin.on_grid(row[column], grid)

    return Asked(Sum(column, grid=grid, by=by), lambda rows: twin.total(rows, term, _axes(by, cells)))


def moments(column: str, powers: tuple[int, ...], *by: str, grid: float = 1.0) -> Asked:
    """Sums of powers; the powers are the last axis."""

    def of(rows: twin.Rows) -> Any:
        present = [row for row in rows if row[column] is not None]
        parts = [
            twin.total(present, lambda row, p=power: twin.on_grid(row[column], grid) ** p, _axes(by, None))
            for power in powers
        ]
        return _last_axis(parts, len(by))

    return Asked(Moments(column, powers, grid=grid, by=by), of)


def cross_products(columns: tuple[str, ...], grid: float = 1.0) -> Asked:
    """Sums of all products of two of (1, columns...) over the complete rows."""
    names = (None, *columns)

    def of(rows: twin.Rows) -> Any:
        complete = [
            {None: 1, **{name: twin.on_grid(row[name], grid) for name in columns}}
            for row in rows
            if all(row[name] is not None for name in columns)
        ]
        return [
            sum(row[left] * row[right] for row in complete)
            for place, left in enumerate(names)
            for right in names[place:]
        ]

    return Asked(CrossProducts(columns, grids=grid), of)


def histogram(column: str, edges: Sequence[Any], *by: str) -> Asked:
    """Rows between public edges."""
    axis = (lambda row: twin.place(row[column], edges), list(range(len(edges) - 1)))
    return Asked(
        Histogram(column, edges, by=by),
        lambda rows: twin.total(rows, lambda _: 1, [*_axes(by, None), axis]),
    )


def order_counts(column: str, points: Sequence[Any]) -> Asked:
    """Rows below each point."""
    return Asked(
        OrderCounts(column, points),
        lambda rows: [sum(1 for row in rows if row[column] is not None and row[column] < point) for point in points],
    )


def _axes(by: Sequence[str], cells: dict[str, Any] | None) -> list[tuple[Callable[[twin.Row], Any], list[Any]]]:
    known = {**SCHEMA, **(cells or {})}
    return [(twin.column(name), twin.cells(known[name])) for name in by]


def _last_axis(parts: list[Any], depth: int) -> Any:
    if depth == 0:
        return parts
    return [_last_axis([part[place] for part in parts], depth - 1) for place in range(len(parts[0]))]

"""Marginal tables that agree with one another: taken apart into residuals, put together again.

A marginal is the table of counts over some columns. The residual of a set of columns is what its table says beyond
the tables of fewer columns: the table minus its mean along each axis. Residuals of different sets are orthogonal, so
that what is consistent between marginals, what is measured twice and what an error consists of can be seen set by set.
Tables are keyed by increasing tuples of column numbers; the empty tuple stands for the total.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farthing.errors import InvalidValue
from farthing.inference.terms import Floats

Subset = tuple[int, ...]
Tables = dict[Subset, Floats]


def closure(subsets: Iterable[Subset]) -> tuple[Subset, ...]:
    """All subsets of the given sets of columns, the smaller ones first; the empty set is always there.

    >>> closure([(0, 2), (1,)])
    ((), (0,), (1,), (2,), (0, 2))
    """
    found: set[Subset] = {()}
    for subset in set(subsets):
        for size in range(1, len(subset) + 1):
            found.update(combinations(subset, size))
    return tuple(sorted(found, key=lambda subset: (len(subset), subset)))


def largest(subsets: Iterable[Subset]) -> tuple[Subset, ...]:
    """Those sets of columns that are within no other one, in their order.

    >>> largest([(0,), (0, 2), (1,), ()])
    ((0, 2), (1,))
    """
    given = tuple(dict.fromkeys(subsets))
    inside = {part for subset in given for size in range(len(subset)) for part in combinations(subset, size)}
    return tuple(subset for subset in given if subset not in inside)


def summed(table: NDArray[Any], subset: Subset, onto: Subset) -> NDArray[Any]:
    """The table of `subset` summed over the columns that are not in `onto`.

    >>> summed(np.array([[1.0, 2.0], [3.0, 4.0]]), (0, 5), (5,))
    array([4., 6.])
    """
    away = tuple(axis for axis, column in enumerate(subset) if column not in onto)
    return np.asarray(table.sum(axis=away)) if away else table


def all_sums(block: NDArray[Any], subsets: Iterable[Subset]) -> dict[Subset, NDArray[Any]]:
    """The tables of all `subsets` of an array over all columns, in a few passes whatever their number.

    >>> all_sums(np.array([[1, 2], [3, 4]]), [(0,), (1,), ()])
    {(0,): array([3, 7]), (1,): array([4, 6]), (): array(10)}
    """
    asked = list(subsets)
    found: dict[Subset, NDArray[Any]] = {}

    def visit(part: NDArray[Any], kept: int, column: int, wanted: list[Subset]) -> None:
        """`part` is summed over all columns before `column` but `kept`; those from `column` on are still there."""
        if len(wanted) == 1:
            rest = range(kept, part.ndim)
            away = tuple(axis for axis in rest if column + axis - kept not in wanted[0])
            found[wanted[0]] = np.asarray(part.sum(axis=away)) if away else part
            return
        having = [subset for subset in wanted if column in subset]
        lacking = [subset for subset in wanted if column not in subset]
        if having:
            visit(part, kept + 1, column + 1, having)
        if lacking:
            visit(np.asarray(part.sum(axis=kept)), kept, column + 1, lacking)

    if asked:
        visit(block, 0, 0, asked)
    return {subset: found[subset] for subset in asked}


def all_spread(sizes: Sequence[int], tables: Mapping[Subset, Floats]) -> Floats:
    """The sum of all tables, each repeated along the columns that it lacks: the transpose of `all_sums`.

    >>> all_spread([2, 2], {(0,): np.array([10.0, 20.0]), (1,): np.array([1.0, 2.0])})
    array([[11., 12.], [21., 22.]])
    """
    shape = tuple(sizes)

    def visit(kept: int, column: int, wanted: list[Subset]) -> Floats:
        if len(wanted) == 1:
            table = tables[wanted[0]]
            left = [n if c in wanted[0] else 1 for c, n in enumerate(shape) if c >= column]
            return table.reshape((*table.shape[:kept], *left))
        having = [subset for subset in wanted if column in subset]
        lacking = [subset for subset in wanted if column not in subset]
        if not having:
            return np.expand_dims(visit(kept, column + 1, lacking), kept)
        own = visit(kept + 1, column + 1, having)
        return own + np.expand_dims(visit(kept, column + 1, lacking), kept) if lacking else own

    if not tables:
        return np.zeros(shape)
    return np.broadcast_to(visit(0, 0, list(tables)), shape).copy()


def spread(table: Floats, subset: Subset, over: Subset) -> Floats:
    """The table of `subset` with an axis of length one for each column that only `over` has: ready to be added.

    >>> spread(np.array([4.0, 6.0]), (5,), (0, 5)).shape
    (1, 2)
    """
    lengths = dict(zip(subset, table.shape, strict=True))
    return table.reshape([lengths.get(column, 1) for column in over])


def residual(table: ArrayLike) -> Floats:
    """The table minus its mean along every axis: what it says beyond tables of fewer columns.

    >>> residual([[1.0, 2.0], [3.0, 8.0]])
    array([[ 1., -1.], [-1., 1.]])
    """
    left = np.asarray(table, dtype=float)
    for axis in range(left.ndim):
        left = left - left.mean(axis=axis, keepdims=True)
    return left


def from_residuals(sizes: Sequence[int], residuals: Mapping[Subset, Floats], subset: Subset) -> Floats:
    """The table of `subset` that has the given residuals; those that are not given are zero.

    >>> parts = {(): np.array(14.0), (0,): np.array([-4.0, 4.0]), (1,): np.array([-3.0, 3.0])}
    >>> from_residuals([2, 2], parts, (0, 1))
    array([[0., 3.], [4., 7.]])
    """
    shape = tuple(sizes[column] for column in subset)
    # Axis by axis: the parts without a column are shared evenly over its values and added to those with it.
    inside = set(subset)
    held = {part: spread(table, part, subset) for part, table in residuals.items() if inside.issuperset(part)}
    for axis, column in enumerate(subset):
        for part in [part for part in held if column not in part]:
            longer = tuple(sorted((*part, column)))
            even = held.pop(part) / shape[axis]
            held[longer] = held[longer] + even if longer in held else np.repeat(even, shape[axis], axis=axis)
    return held[subset] if subset in held else np.zeros(shape)


def consistent_marginals(tables: Mapping[Subset, ArrayLike], total: float | None = None) -> Tables:
    """The nearest tables, in the sum of squares over all cells, of which any two agree wherever they can be compared.

    With `total` every table gets that total.

    Statement:
        Let k(T) be the sum, over the given sets S that contain T, of 1 / prod(n_i: i in S but not in T). The nearest
        consistent tables have the residuals
            e_T = 1/k(T) * sum over S of residual(z_S summed onto T) / prod(n_i: i in S but not in T).
    Source: own derivation: tables z_S split into orthogonal parts by sets T, and a consistent family has the parts
        e_T / prod(n_i) spread evenly, whose squared norms are |e_T|^2 / prod(n_i); so the best e_T is a weighted mean.
    Assumes: finite tables whose axes have the same length wherever they share a column.
    Direction: equality, up to rounding. Projection never moves further from consistent tables (`nearest_nonnegative`).
    Checked by: tests/theorems/test_residual_projection.py

    >>> agreed = consistent_marginals({(0,): [6.0, 4.0], (0, 1): [[3.0, 5.0], [2.0, 4.0]]})
    >>> agreed[(0,)], agreed[(0, 1)].sum(axis=1)
    (array([6.66666667, 4.66666667]), array([6.66666667, 4.66666667]))
    """
    arrays, sizes = checked_tables(tables)
    residuals = consistent_residuals(arrays, sizes)
    if total is not None:
        residuals[()] = np.asarray(float(total))
    return {subset: from_residuals(sizes, residuals, subset) for subset in arrays}


def consistent_residuals(tables: Mapping[Subset, Floats], sizes: Sequence[int]) -> Tables:
    """The residuals of the nearest consistent tables; `consistent_marginals` says how."""
    sums: Tables = {}
    weights: dict[Subset, float] = {}
    for subset, table in tables.items():
        for part in closure([subset]):
            share = 1.0 / math.prod(sizes[column] for column in subset if column not in part)
            own = summed(table, subset, part) * share
            sums[part] = sums[part] + own if part in sums else own
            weights[part] = weights.get(part, 0.0) + share
    return {part: residual(values / weights[part]) for part, values in sums.items()}


def checked_tables(tables: Mapping[Subset, ArrayLike]) -> tuple[Tables, tuple[int, ...]]:
    """Finite tables as doubles, and the lengths of the columns (1 for one that no table has)."""
    arrays = {subset: np.asarray(table, dtype=float) for subset, table in tables.items()}
    if not arrays:
        raise InvalidValue("tables", 0, "must hold at least one marginal")
    lengths: dict[int, int] = {}
    for subset, table in arrays.items():
        if list(subset) != sorted(set(subset)) or any(column < 0 for column in subset):
            raise InvalidValue("tables", subset, "must be keyed by increasing tuples of column numbers")
        if table.ndim != len(subset):
            raise InvalidValue("tables", table.shape, f"must have one axis for each column of {subset}")
        if not np.all(np.isfinite(table)):
            raise InvalidValue("tables", subset, "must be finite")
        for column, length in zip(subset, table.shape, strict=True):
            if lengths.setdefault(column, length) != length or not length:
                raise InvalidValue(
                    "tables", subset, "must have the same number of values for a column everywhere"
                )
    return arrays, tuple(lengths.get(column, 1) for column in range(max(lengths, default=-1) + 1))

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
from farthing.inference.controlled_rounding import Whole, rounded
from farthing.inference.noise_terms import Floats

Subset = tuple[int, ...]
Tables = dict[Subset, Floats]


def closure(subsets: Iterable[Subset]) -> tuple[Subset, ...]:
    """All subsets of the given sets of columns, the smaller ones first; the empty set is always there.

    >>> closure([(0, 2), (1,)])
    ((), (0,), (1,), (2,), (0, 2))
    """
    closed: set[Subset] = {()}
    for subset in set(subsets):
        for size in range(1, len(subset) + 1):
            closed.update(combinations(subset, size))
    return tuple(sorted(closed, key=lambda subset: (len(subset), subset)))


def largest(subsets: Iterable[Subset]) -> tuple[Subset, ...]:
    """Those sets of columns that are within no other one, in their order.

    >>> largest([(0,), (0, 2), (1,), ()])
    ((0, 2), (1,))
    """
    distinct = tuple(dict.fromkeys(subsets))
    inside = {part for subset in distinct for size in range(len(subset)) for part in combinations(subset, size)}
    return tuple(subset for subset in distinct if subset not in inside)


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
    wanted_subsets = list(subsets)
    sums: dict[Subset, NDArray[Any]] = {}

    def visit(part: NDArray[Any], kept: int, column: int, wanted: list[Subset]) -> None:
        """`part` is summed over all columns before `column` but `kept`; those from `column` on are still there."""
        if len(wanted) == 1:
            rest = range(kept, part.ndim)
            away = tuple(axis for axis in rest if column + axis - kept not in wanted[0])
            sums[wanted[0]] = np.asarray(part.sum(axis=away)) if away else part
            return
        having = [subset for subset in wanted if column in subset]
        lacking = [subset for subset in wanted if column not in subset]
        if having:
            visit(part, kept + 1, column + 1, having)
        if lacking:
            visit(np.asarray(part.sum(axis=kept)), kept, column + 1, lacking)

    if wanted_subsets:
        visit(block, 0, 0, wanted_subsets)
    return {subset: sums[subset] for subset in wanted_subsets}


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
    parts = {part: spread(table, part, subset) for part, table in residuals.items() if inside.issuperset(part)}
    for axis, column in enumerate(subset):
        for part in [part for part in parts if column not in part]:
            longer = tuple(sorted((*part, column)))
            even = parts.pop(part) / shape[axis]
            parts[longer] = parts[longer] + even if longer in parts else np.repeat(even, shape[axis], axis=axis)
    return parts[subset] if subset in parts else np.zeros(shape)


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
                raise InvalidValue("tables", subset, "must have the same number of values for a column everywhere")
    return arrays, tuple(lengths.get(column, 1) for column in range(max(lengths, default=-1) + 1))


_ROUNDS = 2_000
_CLOSE = 1e-3  # the last repair may move the tables by this much of what the projection moved them


def nonnegative_marginals(tables: Mapping[Subset, ArrayLike], total: float | None = None) -> Tables:
    """The nearest consistent tables without a negative cell, in the sum of squares over all cells of all tables.

    With `total` (a public fact, or known from another release) every table is given that total.

    Statement:
        Let C be the consistent families of tables >= 0 (with the total, if one is given): a convex cone. The point
        p(z) of C nearest to z is the projection P(z + u) onto the consistent families, for the multipliers u >= 0 that
        make |P(z + u)|^2 least. For every x in C, |p(z) - x| <= |z - x|.
    Source: Rockafellar & Wets, Variational Analysis (1998), Corollary 12.20 (projections are nonexpansive); the dual is
        minimised by accelerated projected gradient steps of length one (Beck & Teboulle, SIAM J. Imaging Sci. 2,
        2009), which restart when they overshoot (O'Donoghue & Candes, arXiv:1204.3982).
    Assumes: finite tables; the true tables have the total, if one is given.
    Direction: ends within a thousandth of the way from z to p(z), and then mixes in as much of the even table as makes
        the last cell non-negative; so tables are consistent and >= 0 exactly, and nearest up to that thousandth.
    Checked by: tests/theorems/test_residual_projection.py

    >>> tables = {(0, 1): [[4.0, -1.0], [2.0, 5.0]], (1, 2): [[6.5, 0.5], [3.0, 0.0]]}
    >>> fit = nonnegative_marginals(tables)
    >>> fit[(0, 1)].round(2), bool(np.allclose(fit[(0, 1)].sum(axis=0), fit[(1, 2)].sum(axis=1)))
    (array([[4.25, 0.  ], [2.25, 4.33]]), True)
    """
    arrays, sizes = checked_tables(tables)
    if total is not None and not 0 <= total < math.inf:
        raise InvalidValue("total", total, "must be a finite number >= 0")

    def consistent(near: Tables) -> Tables:
        residuals = consistent_residuals(near, sizes)
        if total is not None:
            residuals[()] = np.asarray(float(total))
        return {subset: from_residuals(sizes, residuals, subset) for subset in arrays}

    start = consistent(arrays)
    pull: Tables = {subset: np.zeros_like(table) for subset, table in arrays.items()}
    ahead, speed, fit = pull, 1.0, start
    for round_ in range(_ROUNDS):
        fit = consistent({subset: start[subset] + ahead[subset] for subset in arrays})
        if round_ % 5 == 0:
            whole = float(next(iter(fit.values())).sum())
            length, enough = _distance(fit, None), _CLOSE * _distance(fit, start)
            if length <= enough or (whole > 0 and _repair(fit, whole) * length <= enough):
                break
        following = {subset: np.maximum(ahead[subset] - fit[subset], 0.0) for subset in arrays}
        # Momentum that points uphill is dropped.
        uphill = sum(float(np.vdot(ahead[s] - following[s], following[s] - pull[s])) for s in arrays) > 0
        faster = 1.0 if uphill else (1.0 + math.sqrt(1.0 + 4.0 * speed * speed)) / 2.0
        gain = 0.0 if uphill else (speed - 1.0) / faster
        ahead = {s: following[s] + gain * (following[s] - pull[s]) for s in arrays}
        pull, speed = following, faster
    whole = float(next(iter(fit.values())).sum())
    if not whole > 0 or _distance(fit, None) <= _CLOSE * _distance(fit, start):
        return {subset: np.zeros_like(table) for subset, table in arrays.items()}
    share = _repair(fit, whole)
    mixed = {s: (1.0 - share) * table + share * whole / table.size for s, table in fit.items()}
    # Takes out rounding below zero.
    return {subset: np.maximum(table, 0.0) for subset, table in mixed.items()}


def _repair(tables: Tables, total: float) -> float:
    """How much of the even table must be mixed in so that no cell is negative."""
    lowest = ((float(table.min()), total / table.size) for table in tables.values())
    return max((-low / (even - low) for low, even in lowest if low < 0), default=0.0)


def _distance(tables: Tables, others: Tables | None) -> float:
    pairs = ((table, 0.0 if others is None else others[subset]) for subset, table in tables.items())
    return math.sqrt(sum(float(np.sum((table - other) ** 2)) for table, other in pairs))


_NEARLY = 1e-9


def rounded_marginals(tables: Mapping[Subset, ArrayLike]) -> dict[Subset, Whole]:
    """Whole numbers near consistent non-negative tables, with one total and one table for each single column.

    Tables of two columns then agree in everything they share. Tables of three or more agree in single columns and in
    the total; there are consistent tables of three columns that no whole numbers near them agree with in pairs.
    Every cell is rounded down, and the ones that are missing along the columns are added where the remainders are
    largest; first in order among equals, so that the result depends on nothing but the numbers.

    >>> fit = rounded_marginals({(0, 1): [[1.5, 0.7], [0.4, 2.9]], (1, 2): [[0.9, 1.0], [1.8, 1.8]]})
    >>> fit[(0, 1)], fit[(1, 2)]
    (array([[1, 1], [1, 3]]), array([[1, 1], [2, 2]]))
    """
    arrays, _ = checked_tables(tables)
    smallest = min(float(table.min()) for table in arrays.values())
    if not smallest >= 0:
        raise InvalidValue("tables", smallest, "must not be negative", "use nonnegative_marginals first")
    columns = sorted({column for subset in arrays for column in subset})
    first = {column: next(subset for subset in arrays if column in subset) for column in columns}
    real = {column: summed(arrays[first[column]], first[column], (column,)) for column in columns}
    total = math.floor(float(next(iter(arrays.values())).sum()) + 0.5)
    for subset, table in arrays.items():
        for axis, column in enumerate(subset):
            others = tuple(other for other in range(table.ndim) if other != axis)
            if not np.allclose(table.sum(axis=others), real[column], rtol=1e-6, atol=1e-6):
                raise InvalidValue("tables", subset, "must agree with the others", "use consistent_marginals first")
    single = {column: rounded(values, total) for column, values in real.items()}
    return {
        subset: _filled(table, [single[column] for column in subset]) if subset else np.array(total, dtype=np.int64)
        for subset, table in arrays.items()
    }


def _filled(table: NDArray[np.float64], margins: list[Whole]) -> Whole:
    """Cells rounded down, then raised one by one until the sums along every axis are those of `margins`."""
    down = np.floor(table + _NEARLY).astype(np.int64)
    left = _missing(down, margins)
    for axis, lacks in enumerate(left):  # sums within rounding of a whole number that went the other way
        for value in np.flatnonzero(lacks < 0).tolist():
            for _ in range(-int(lacks[value])):
                _lower(down, table, axis, value)
    lists = [lacks.tolist() for lacks in _missing(down, margins)]
    missing = sum(lists[0])
    order = np.argsort((down - table).ravel(), kind="stable")
    cells = down.reshape(-1)
    places = zip(order.tolist(), np.column_stack(np.unravel_index(order, table.shape)).tolist(), strict=True)
    for place, where in places:
        if not missing:
            break
        if all(lists[axis][value] > 0 for axis, value in enumerate(where)):
            cells[place] += 1
            missing -= 1
            for axis, value in enumerate(where):
                lists[axis][value] -= 1
    while missing:  # what no remainder asked for: any cell where all columns still miss something
        where = [next(value for value, lack in enumerate(lacks) if lack > 0) for lacks in lists]
        amount = min(lists[axis][value] for axis, value in enumerate(where))
        cells[np.ravel_multi_index(where, table.shape)] += amount
        missing -= amount
        for axis, value in enumerate(where):
            lists[axis][value] -= amount
    return down


def _missing(cells: Whole, margins: list[Whole]) -> list[Whole]:
    """By how much the sums along each axis fall short."""
    axes = range(cells.ndim)
    return [margin - cells.sum(axis=tuple(o for o in axes if o != axis)) for axis, margin in enumerate(margins)]


def _lower(cells: Whole, table: NDArray[np.float64], axis: int, value: int) -> None:
    """One less in the cell of this slice whose remainder is smallest, of those above zero."""
    own, real = cells.take(value, axis=axis), table.take(value, axis=axis)
    remainder = np.where(own > 0, real - own, np.inf)
    where = list(np.unravel_index(int(remainder.argmin()), own.shape))
    where.insert(axis, np.intp(value))
    cells[tuple(where)] -= 1

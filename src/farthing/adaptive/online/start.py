"""The start: what was measured, recorded as drawn, turned into positive weights for all cells."""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from farthing.adaptive.known import KnownTable
from farthing.adaptive.online.openings import Opening, blocks_of
from farthing.adaptive.online.plan import AnswererPlan
from farthing.adaptive.online.settling import settled
from farthing.adaptive.online.wavelets import Floats, Wavelets
from farthing.adaptive.online.weights import UNIFORM_PART
from farthing.mechanisms.randomness import Source
from farthing.release.workloads.axes import Axis

Whole = NDArray[np.int64]
_SURE = 6.0  # standard errors of the total: further off is less likely than once in a hundred million


def drawn_start(plan: AnswererPlan, cells: Whole, source: Source) -> dict[str, Any]:
    """Noisy tables and noisy cells, as whole numbers in text; nothing for a start from nothing."""
    opening = plan.opening
    if opening is None:
        return {"start": "none"}
    if opening.order:
        tables = np.concatenate([_marginal(cells, axes).reshape(-1) for axes in opening.subsets(cells.ndim)])
    else:
        tables = _blocks(cells, blocks_of(cells.shape, opening.table_cells)).reshape(-1)
    noisy_tables = opening.of_tables(plan.sensitivity, plan.delta)._answer(tables, source)
    noisy_cells = opening.of_cells(plan.sensitivity, plan.cells)._answer(cells.reshape(-1), source)
    return {"start": plan.start, "tables": _written(noisy_tables), "cells": _written(noisy_cells)}


class Start(NamedTuple):
    """Positive weights for all cells, and the range that their total is kept in."""

    weights: Floats
    least: float
    most: float


def starting_weights(
    plan: AnswererPlan, axes: Sequence[Axis], record: Mapping[str, Any], known: Sequence[KnownTable] = ()
) -> Start:
    """What was measured and what is known, as weights of which a part is spread evenly."""
    shape = tuple(len(axis) for axis in axes)
    even = np.full(shape, plan.rows / plan.cells)
    found, spread = even, float(plan.rows)
    least, most = 0.0, (1 + plan.alpha) * plan.rows
    if plan.opening is not None:
        found, doubt = _measured(plan, shape, _read(record["tables"]), _read(record["cells"]))
        spread = plan.opening.of_cells(plan.sensitivity, plan.cells).standard_error
        total = float(found.sum())
        least, most = max(total - _SURE * doubt, 0.0), total + _SURE * doubt
    found = (1 - UNIFORM_PART) * found + UNIFORM_PART * even
    for _ in range(2):  # tables that overlap move each other
        for table in known:
            found = _fitted(found, table, [axis.column for axis in axes], spread)
    total = float(found.sum())
    found = found * (min(max(total, least), most) / total)
    return Start(np.maximum(found, UNIFORM_PART * even / 2), least, most)


def _measured(
    plan: AnswererPlan, shape: tuple[int, ...], tables: Whole, cells: Whole
) -> tuple[Floats, float]:
    """The settled table, and the standard error of its total.

    All measurements meet in one basis, where each number is the mean of what is known of it, weighed by precision.
    """
    opening = plan.opening
    assert opening is not None
    basis = Wavelets(shape)
    numbers = basis.forward(cells.reshape(shape).astype(np.float64))
    variances = np.full(shape, opening.of_cells(plan.sensitivity, plan.cells).variance)
    noise = opening.of_tables(plan.sensitivity, plan.delta).variance
    for place, own, cells_each in _coarse(opening, shape, tables, basis):
        before = variances[place]
        weight = before / (before + noise / cells_each)
        numbers[place] += weight * (own - numbers[place])
        variances[place] = before * (1 - weight)
    return settled(numbers, variances, basis), math.sqrt(variances.flat[0] * plan.cells)


def _coarse(
    opening: Opening, shape: tuple[int, ...], tables: Whole, basis: Wavelets
) -> Iterator[tuple[tuple[slice | int, ...], Floats, float]]:
    """What each coarse table says of which numbers of the basis, and how many cells it adds up.

    A number of a sum of cells is that of the cells, but for the length of the constant along what was added up.
    """
    if not opening.order:
        steps = blocks_of(shape, opening.table_cells)
        sizes = [-(-size // 2**step) for size, step in zip(shape, steps, strict=True)]
        spread = tables.reshape(sizes).astype(np.float64)
        for axis, (size, step) in enumerate(zip(shape, steps, strict=True)):
            block = np.arange(size) >> step
            widths = np.bincount(block).reshape([-1 if other == axis else 1 for other in range(len(shape))])
            spread = np.take(spread / widths, block, axis=axis)
        place: tuple[slice | int, ...] = tuple(slice(0, size) for size in sizes)
        yield place, basis.forward(spread)[place], math.prod(shape) / math.prod(sizes)
        return
    start = 0
    for axes in opening.subsets(len(shape)):
        sizes = [shape[axis] for axis in axes]
        size = math.prod(sizes)
        table = tables[start : start + size].reshape(sizes).astype(np.float64)
        start += size
        others = math.prod(shape) / size
        place = tuple(slice(None) if axis in axes else 0 for axis in range(len(shape)))
        yield place, Wavelets(tuple(sizes)).forward(table) / math.sqrt(others), others


def _blocks(cells: Whole, steps: Sequence[int]) -> Whole:
    """Sums of blocks of 2^step cells along each axis."""
    for axis, step in enumerate(steps):
        cells = np.add.reduceat(cells, np.arange(0, cells.shape[axis], 2**step), axis=axis)
    return cells


def _fitted(weights: Floats, known: KnownTable, columns: Sequence[str], spread: float) -> Floats:
    """Weights scaled towards a table that is known, as far as its standard error beats that of the weights' own sums.

    `spread` is the standard error of a cell's weight. Cells that the table leaves out share what is left of the total.
    """
    places = [columns.index(column) for column in known.columns]
    order = np.argsort(places)
    sums = _marginal(weights, tuple(sorted(places))).transpose(np.argsort(order))
    table = known.summed(sums)
    cells = known.summed(np.full(sums.shape, weights.size / sums.size))
    own = cells * spread**2
    goal = table + (known.values - table) * own / (own + known.standard_error**2 + 1e-9)
    factors = np.where(table > 0, np.maximum(goal, 1e-3 * table) / np.maximum(table, 1e-300), 1.0)
    left = float(weights.sum() - table.sum())
    others = max(float(weights.sum() - (factors * table).sum()) / left, 1e-3) if left > 0 else 1.0
    padded = np.pad(factors, (0, 1), constant_values=others)  # place -1 is the last
    each = np.asarray(padded[np.ix_(*known.groups)]).transpose(order)
    shape = [1] * weights.ndim
    for place in places:
        shape[place] = weights.shape[place]
    found: Floats = weights * each.reshape(shape)
    return found


def _marginal(cells: NDArray[Any], axes: tuple[int, ...]) -> NDArray[Any]:
    found: NDArray[Any] = cells.sum(axis=tuple(axis for axis in range(cells.ndim) if axis not in axes))
    return np.asarray(found)


def _written(values: Whole) -> str:
    return base64.b64encode(zlib.compress(np.asarray(values).astype("<i8").tobytes(), level=6)).decode(
        "ascii"
    )


def _read(text: str) -> Whole:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<i8").astype(np.int64)

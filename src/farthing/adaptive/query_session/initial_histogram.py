"""The start: what was measured, recorded as drawn, turned into positive weights for all cells."""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from farthing.adaptive.prior_releases import KnownTable
from farthing.adaptive.query_session.initial_measurements import Opening, blocks_of
from farthing.adaptive.query_session.multiplicative_weights import UNIFORM_PART
from farthing.adaptive.query_session.session_plan import QuerySessionPlan
from farthing.adaptive.query_session.wavelets import Wavelets
from farthing.mechanisms.randomness import Source
from farthing.statistics.cells.cell_axes import Axis

Floats = NDArray[np.float64]
_SAMPLE = 16_384  # numbers that the common distribution is learnt from
_BLOCK = 65_536
_SHRINKAGE_ROUNDS = 40


def shrunk(values: Floats, variances: Floats) -> Floats:
    """Posterior means of numbers that were measured with Gaussian noise of known variances.

    The distribution of the true numbers is a mixture of centred Gaussians of many widths, zero among them; its weights
    are the most likely ones. Where there is nothing but noise all numbers go to zero, where there is much more they
    stay. After Stephens, "False discovery rates: a new deal", Biostatistics 18 (2017), with a grid of widths. Whatever
    comes out is post-processing: it may be wrong, never unsafe.

    >>> noise = np.tile([-1.0, 1.0, -0.5, 0.5], 100)
    >>> bool(np.abs(shrunk(noise, np.ones(400))).max() < 0.1)
    True
    >>> shrunk(np.array([100.0, -80.0, 90.0]), np.ones(3)).round()
    array([100., -80.,  90.])
    """
    top = max(float(np.max(values**2)), 4 * float(variances.max()))
    least = float(variances.min()) / 4
    widths = np.concatenate([[0.0], np.geomspace(least, top, 2 + round(np.log2(top / least)))])
    every = -(-len(values) // _SAMPLE)
    weights = _most_likely(values[::every], variances[::every], widths)
    means = np.empty(len(values))
    for start in range(0, len(values), _BLOCK):
        part = slice(start, start + _BLOCK)
        chances = _likelihoods(values[part], variances[part], widths) * weights
        factors = widths / (widths + variances[part, None])
        means[part] = values[part] * (chances * factors).sum(axis=1) / chances.sum(axis=1)
    return means


def _likelihoods(values: Floats, variances: Floats, widths: Floats) -> Floats:
    """Up to a factor for each value, so that the largest is 1."""
    spreads = widths + variances[:, None]
    logs = -0.5 * (np.log(spreads) + values[:, None] ** 2 / spreads)
    likelihoods: Floats = np.exp(logs - logs.max(axis=1, keepdims=True))
    return likelihoods


def _most_likely(values: Floats, variances: Floats, widths: Floats) -> Floats:
    """Weights by expectation and maximisation, with half an observation's worth of doubt spread evenly."""
    likelihoods = _likelihoods(values, variances, widths)
    weights = np.full(len(widths), 1 / len(widths))
    for _ in range(_SHRINKAGE_ROUNDS):
        shares = likelihoods * weights
        shares /= shares.sum(axis=1, keepdims=True)
        weights = shares.sum(axis=0) + 0.5 / len(widths)
        weights /= weights.sum()
    return weights


_STIFFNESS = 100.0  # of the link between both halves of the iteration: any value converges, this one soon
_ROUNDS = 200
_FAINT = 0.05  # of its size: what is left of a kind that is dropped
_CLOSE = 5e-4  # of the total, moved in one round
_WORK = 3 * 2**26  # cells times rounds: the largest domains have fewer rounds


def denoised_histogram(numbers: Floats, variances: Floats, basis: Wavelets) -> Floats:
    """Counts >= 0 from noisy numbers of a basis; the first number, the total, is kept as it is.

    >>> basis = Wavelets((4,))
    >>> noisy = np.array([100.0, -3.0, 2.0, 1.0])
    >>> histogram = denoised_histogram(basis.forward(noisy), np.full(4, 9.0), basis)
    >>> bool(histogram.min() >= 0), round(float(histogram.sum())), round(float(histogram[0])) > 90
    (True, 100, True)
    """
    expected = basis.forward(_independent(numbers, basis))
    denoised = expected + _denoised(numbers - expected, variances, basis)
    total = max(float(denoised.flat[0]) * float(np.sqrt(denoised.size)), 1.0)
    histogram = _without_negatives(denoised, variances, total, basis)
    mass = float(histogram.sum())
    return histogram * (total / mass) if mass > 0 else np.full(basis.shape, total / histogram.size)


def _independent(numbers: Floats, basis: Wavelets) -> Floats:
    """The table with the same shares of each column's values, all columns independent of each other.

    What noise is taken out of is the difference to this. With one column or two there would be nothing left to learn
    from the others: then all cells are alike.
    """
    shape = basis.shape
    total = max(float(numbers.flat[0]) * math.sqrt(numbers.size), 1.0)
    histogram = np.full(shape, total / numbers.size)
    if len(shape) < 3:
        return histogram
    for axis, size in enumerate(shape):
        place = tuple(slice(None) if other == axis else 0 for other in range(len(shape)))
        counts = Wavelets((size,)).back(numbers[place]) * math.sqrt(numbers.size / size)
        spread = [size if other == axis else 1 for other in range(len(shape))]
        shares = np.maximum(counts / total, 0.01 / size)
        histogram *= (shares * (size / shares.sum())).reshape(spread)
    return histogram


def _denoised(numbers: Floats, variances: Floats, basis: Wavelets) -> Floats:
    """All kinds of numbers shrunk by themselves, but for the total."""
    kinds, sizes = basis.kinds
    order = np.argsort(kinds, kind="stable")
    values, spreads = numbers.reshape(-1), variances.reshape(-1)
    denoised = np.empty(values.size)
    for places in np.split(order, np.cumsum(sizes)[:-1]):
        estimate = shrunk(values[places], spreads[places])
        # A kind of which next to nothing is left would only push cells below zero.
        worth = float(np.sum(estimate**2)) >= _FAINT**2 * float(np.sum(values[places] ** 2))
        denoised[places] = estimate if worth else 0.0
    denoised[0] = values[0]
    return denoised.reshape(basis.shape)


def _without_negatives(numbers: Floats, variances: Floats, total: float, basis: Wavelets) -> Floats:
    """The table h >= 0 that makes the sum of weight_k (number_k(h) - number_k)^2 least, by alternating directions.

    A number weighs by its precision, and more if there are few of its kind: 1 + 0.3 (cells / numbers)^0.8 times, chosen
    by trial on many tables.
    """
    kinds, sizes = basis.kinds
    weights = (1 + 0.3 * (numbers.size / sizes) ** 0.8)[kinds].reshape(basis.shape)
    weights *= float(variances.max()) / variances
    weights.flat[0] = 1e6
    near = basis.back(numbers)
    shifted = near - _even_shift(near, total)
    # The projection that keeps the total only is where it begins, with its own multipliers.
    histogram, pull = np.maximum(shifted, 0.0), np.minimum(shifted, 0.0) / _STIFFNESS
    for _ in range(min(_ROUNDS, max(8, _WORK // numbers.size))):
        mixed = weights * numbers + _STIFFNESS * basis.forward(histogram - pull)
        smooth = basis.back(mixed / (weights + _STIFFNESS))
        before, histogram = histogram, np.maximum(smooth + pull, 0.0)
        pull = pull + smooth - histogram
        if float(np.abs(histogram - before).sum() + np.abs(smooth - histogram).sum()) <= _CLOSE * total:
            break
    return histogram


def _even_shift(table: Floats, total: float) -> float:
    """What must be taken off every cell so that the positive ones have this total."""
    low, high = float(table.min()) - total / table.size - 1, float(table.max())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if float(np.maximum(table - middle, 0).sum()) > total else (low, middle)
    return low


Whole = NDArray[np.int64]
_SURE = 6.0  # standard errors of the total: further off is less likely than once in a hundred million


def noisy_start(plan: QuerySessionPlan, cells: Whole, source: Source) -> dict[str, Any]:
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
    return {"start": plan.start, "tables": _encoded(noisy_tables), "cells": _encoded(noisy_cells)}


class Start(NamedTuple):
    """Positive weights for all cells, and the range that their total is kept in."""

    weights: Floats
    least: float
    most: float


def starting_weights(
    plan: QuerySessionPlan, axes: Sequence[Axis], record: Mapping[str, Any], known: Sequence[KnownTable] = ()
) -> Start:
    """What was measured and what is known, as weights of which a part is spread evenly."""
    shape = tuple(len(axis) for axis in axes)
    even = np.full(shape, plan.rows / plan.cells)
    weights, spread = even, float(plan.rows)
    least, most = 0.0, (1 + plan.alpha) * plan.rows
    if plan.opening is not None:
        weights, doubt = _measured(plan, shape, _read(record["tables"]), _read(record["cells"]))
        spread = plan.opening.of_cells(plan.sensitivity, plan.cells).standard_error
        total = float(weights.sum())
        least, most = max(total - _SURE * doubt, 0.0), total + _SURE * doubt
    weights = (1 - UNIFORM_PART) * weights + UNIFORM_PART * even
    for _ in range(2):  # tables that overlap move each other
        for table in known:
            weights = _fitted(weights, table, [axis.column for axis in axes], spread)
    total = float(weights.sum())
    weights = weights * (min(max(total, least), most) / total)
    return Start(np.maximum(weights, UNIFORM_PART * even / 2), least, most)


def _measured(plan: QuerySessionPlan, shape: tuple[int, ...], tables: Whole, cells: Whole) -> tuple[Floats, float]:
    """The denoised table, and the standard error of its total.

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
    return denoised_histogram(numbers, variances, basis), math.sqrt(variances.flat[0] * plan.cells)


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
    product: Floats = weights * each.reshape(shape)
    return product


def _marginal(cells: NDArray[Any], axes: tuple[int, ...]) -> NDArray[Any]:
    sums: NDArray[Any] = cells.sum(axis=tuple(axis for axis in range(cells.ndim) if axis not in axes))
    return np.asarray(sums)


def _encoded(values: Whole) -> str:
    return base64.b64encode(zlib.compress(np.asarray(values).astype("<i8").tobytes(), level=6)).decode("ascii")


def _read(text: str) -> Whole:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<i8").astype(np.int64)

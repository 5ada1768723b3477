"""The optimised strategy for a workload: found once, kept on disk, and never trusted with privacy."""

from __future__ import annotations

import math
import time

import numpy as np

from farthing.errors import InvalidValue
from farthing.matrix.strategies import strategy_cache
from farthing.matrix.strategies.kronecker import KroneckerStrategy, axis_workload, flattened
from farthing.matrix.strategies.matrix_strategy import MatrixStrategy
from farthing.matrix.strategies.optimisation.gaussian_optimum import (
    TriangularStrategy,
    best_for_gaussian,
    widened,
)
from farthing.matrix.strategies.optimisation.initial_weights import gram_bands
from farthing.matrix.strategies.optimisation.laplace_optimum import best_for_laplace
from farthing.matrix.strategies.optimisation.p_identity_error import Progress, Windows
from farthing.matrix.strategies.optimisation.p_identity_strategy import CellsAndSums, on_grid
from farthing.matrix.strategies.strategy import Integers, Norm, Strategy
from farthing.matrix.strategies.tree_strategies import weighted_tree
from farthing.matrix.workloads.marginal_workload import Marginals
from farthing.matrix.workloads.named_workloads import Product, Union, union
from farthing.matrix.workloads.workload import Workload

_AXES_BITS = 24  # of the weights of a whole product, shared among its axes
_ROUNDS = 3
_MOST_PRODUCTS = 4_096
_MOST_CELLS = 2_048  # of one axis: factors are solved as dense matrices
_MOST_TOGETHER = 2**26  # no histogram of more cells is measured


def optimised_product(workload: Workload, norm: Norm, *, progress: Progress, seconds: float) -> KroneckerStrategy:
    """The product of one optimised strategy for each axis.

    Statement:
        For a product of workloads and a product of strategies, tr((A'A)^-1 W'W) is the product over the axes of
        tr((A_a'A_a)^-1 W_a'W_a), so each axis is optimised by itself. For a union of products it is the sum of such
        products, so with the other axes fixed the best strategy for one axis is the best for the union of its
        workloads, each weighted by the root of what the other axes contribute; axes are optimised in turn.
    Source: McKenna, Miklau, Hay & Machanavajjhala, arXiv:1808.03537v1, section 6 (products, and unions of products by
        block cyclic descent).
    Assumes: the workload is a product, or a union of products, of workloads of one axis each.
    Direction: used for choosing only; sensitivities and errors are those of the whole numbers that are measured.
    Checked by: tests/theorems/test_matrix_mechanism_optimum.py

    >>> from farthing.matrix.workloads import identity, prefix, product
    >>> strategy = optimised_product(
    ...     product(prefix(32), identity(4)), "l1", progress=lambda fraction: None, seconds=10.0
    ... )
    >>> [factor.matrix.shape for factor in strategy.factors]
    [(34, 32), (4, 4)]
    """
    axes = len(workload.shape)
    if not max(workload.shape) <= _MOST_CELLS:
        raise InvalidValue(
            "strategy", "optimised", f"must have at most {_MOST_CELLS:,} cells along each axis", 'use "tree"'
        )
    if not workload.cells <= _MOST_TOGETHER:
        rule = f"has too many cells to optimise: {_MOST_TOGETHER:,} at most"
        raise InvalidValue("strategy", "optimised", rule, 'use "marginals" for marginals, else "tree"')
    parts = products_in(workload)
    rounds = 1 if len(parts) == 1 else _ROUNDS
    bits = max(6, _AXES_BITS // axes)
    factors: list[MatrixStrategy] = []
    best: tuple[float, KroneckerStrategy] | None = None
    for turn in range(rounds):
        for axis in range(axes):
            along = _workload_along(parts, factors, axis) if turn else axis_workload(workload, axis)
            factor = _factor(along, norm, bits, seconds / (rounds * axes))
            factors = [*factors[:axis], factor, *factors[axis + 1 :]]
            progress((turn * axes + axis + 1) / (rounds * axes))
        strategy = KroneckerStrategy("optimised", factors)
        error = strategy.unit_error(workload, norm)
        if best is None or error < best[0]:
            best = error, strategy
    assert best is not None, "there is at least one round"
    return best[1]


def products_in(workload: Workload) -> list[tuple[float, tuple[Workload, ...]]]:
    """The products that a workload consists of, each with its squared weight and one workload for each axis.

    >>> from farthing.matrix.workloads import identity, marginals, prefix, product
    >>> [[one.queries for one in axes] for _, axes in products_in(marginals((2, 3), way=1))]
    [[2, 1], [1, 3]]
    """
    if len(workload.shape) == 1:
        return [(1.0, (workload,))]
    if isinstance(workload, Product):
        products: list[tuple[float, tuple[Workload, ...]]] = [(1.0, ())]
        for factor in workload.factors:
            own = products_in(factor)
            if not len(products) * len(own) <= _MOST_PRODUCTS:
                break
            products = [(w * v, left + right) for w, left in products for v, right in own]
        else:
            return products
    elif isinstance(workload, Union | Marginals):
        weights = workload.weights if isinstance(workload, Union) else (1.0,) * len(workload.parts)
        together = [
            (weight**2 * inner, axes)
            for weight, part in zip(weights, workload.parts, strict=True)
            for inner, axes in products_in(part)
        ]
        if len(together) <= _MOST_PRODUCTS:
            return together
    raise InvalidValue(
        "workload",
        type(workload).__name__,
        f"must consist of at most {_MOST_PRODUCTS:,} products of workloads of one axis",
        'use strategy="identity"',
    )


def _workload_along(
    parts: list[tuple[float, tuple[Workload, ...]]], factors: list[MatrixStrategy], axis: int
) -> Workload:
    """What is asked of one axis when the strategies of the others are fixed: same workloads are asked once."""
    weights: dict[str, float] = {}
    known: dict[str, Workload] = {}
    for weight, axes in parts:
        others = math.prod(
            _trace(factor, own) for place, (factor, own) in enumerate(zip(factors, axes, strict=True)) if place != axis
        )
        own = axes[axis].renamed(("x",))
        known[own.digest] = own
        weights[own.digest] = weights.get(own.digest, 0.0) + weight * others
    if len(known) == 1:
        return next(iter(known.values()))
    largest = max(weights.values())
    # Rounded, so that the same axis comes out of the cache the next time.
    scales = [float(f"{math.sqrt(weights[digest] / largest):.3g}") for digest in known]
    return union(*known.values(), weights=[max(scale, 1e-6) for scale in scales])


def _trace(factor: MatrixStrategy, workload: Workload) -> float:
    """tr((A'A)^-1 W'W), up to the scale of A, which is the same for all workloads of the axis."""
    return float(np.sum(factor.pseudo_inverse * workload.gram()))


def _factor(workload: Workload, norm: Norm, bits: int, seconds: float) -> MatrixStrategy:
    """The optimised strategy of one axis as a matrix of coarser weights, so that products of them still fit."""

    strategy = optimised(workload, norm, seconds=seconds)
    if not isinstance(strategy, CellsAndSums | MatrixStrategy):
        return flattened(strategy, workload, norm, bits)
    weights = strategy.matrix.astype(float)
    whole = np.rint(weights * (2.0**bits / np.abs(weights).max())).astype(np.int64)
    places = np.arange(strategy.cells)
    # Both shapes have the cells' own weights on the diagonal of their first rows: none may be lost.
    whole[places, places] = np.maximum(1, whole[places, places])
    rows = whole[np.any(whole != 0, axis=1)]
    return MatrixStrategy("optimised", rows // np.gcd.reduce(np.unique(rows)))


VERSION = 2
"""Counts up when the optimiser changes: older files are left alone and not read."""
MOST_CELLS = 8_192
DENSE = 1_024
"""Up to here the convex problem is solved cell by cell; beyond, over hat functions of several cells."""

_BITS = 16  # of the largest column norm: rounding costs less than a ten-thousandth, and sums of 2^36 rows still fit
_SECONDS = 30.0


def no_progress(fraction: float) -> None:
    """Report progress to nobody: the default of a search."""


def optimised(
    workload: Workload, norm: Norm, *, progress: Progress = no_progress, seconds: float = _SECONDS
) -> Strategy:
    """The strategy of least expected error that was found for a workload, for Laplace ("l1") or Gaussian ("l2") noise.

    The outcome of the search is kept on disk for the next time (see `farthing.matrix.strategies.strategy_cache`). If it
    fails, or is beaten by the tree, the tree is returned.

    Args:
        workload: The queries.
        norm: "l1" for Laplace noise, "l2" for Gaussian noise.
        progress: Called with the fraction that is done.
        seconds: About how long the search may take.

    Returns:
        The strategy.

    Raises:
        InvalidValue: If there are too many cells to search.

    >>> from farthing.matrix.workloads import prefix
    >>> strategy = optimised(prefix(32), "l1")
    >>> round(10 * (strategy.unit_error(prefix(32), "l1") / 32) ** 0.5, 1)  # RMSE at epsilon = 0.1; cells alone: 57.4
    44.3
    """
    if len(workload.shape) > 1:
        return optimised_product(workload, norm, progress=progress, seconds=seconds)
    if not workload.cells <= MOST_CELLS:
        raise InvalidValue(
            "strategy",
            "optimised",
            f"must be over at most {MOST_CELLS:,} cells",
            'use "tree" or "hierarchical"',
        )
    return _found_or_searched(workload, norm, progress, seconds)


def cached_optimum(workload: Workload, norm: Norm) -> Strategy | None:
    """The optimised strategy if it was found before, in this process or on disk; nothing is searched for.

    Args:
        workload: The queries.
        norm: "l1" for Laplace noise, "l2" for Gaussian noise.

    Returns:
        The strategy, or None.

    >>> from farthing.matrix.workloads import prefix
    >>> _ = optimised(prefix(16), "l1")
    >>> cached_optimum(prefix(16), "l1").cells
    16
    """
    if len(workload.shape) > 1 or not workload.cells <= MOST_CELLS:
        return None
    key = strategy_cache.key_of("optimised", VERSION, norm, workload.digest)
    return _MEMORY.get(key) or _restored(strategy_cache.load(key), workload, norm)


def _found_or_searched(workload: Workload, norm: Norm, progress: Progress, seconds: float) -> Strategy:
    key = strategy_cache.key_of("optimised", VERSION, norm, workload.digest)
    strategy = _MEMORY.get(key)
    if strategy is None:
        strategy = _restored(strategy_cache.load(key), workload, norm)
        if strategy is None:
            began = time.monotonic()
            strategy = _searched(workload, norm, progress, seconds)
            if seconds < _SECONDS and not time.monotonic() - began < seconds:
                progress(1.0)
                return strategy  # somebody was in a hurry: what was found may not be what others should get
            strategy_cache.store(key, _stored(strategy))
        while len(_MEMORY) >= _MOST_HELD:
            _MEMORY.pop(next(iter(_MEMORY)), None)
        _MEMORY[key] = strategy
    progress(1.0)
    return strategy


_MEMORY: dict[str, Strategy] = {}
_MOST_HELD = 16


def _searched(workload: Workload, norm: Norm, progress: Progress, seconds: float) -> Strategy:
    """The best that the optimisers find, or the tree."""
    tree = weighted_tree(workload, norm)
    try:
        strategy = _for_laplace(workload, progress, seconds) if norm == "l1" else _for_gaussian(workload, progress)
        error = strategy.unit_error(workload, norm)
    except (np.linalg.LinAlgError, InvalidValue, FloatingPointError):
        return tree
    # Written so that an error that is no number loses.
    return strategy if 0 < error < tree.unit_error(workload, norm) * 1.0001 else tree


def _for_laplace(workload: Workload, progress: Progress, seconds: float) -> Strategy:
    diagonal, beside = gram_bands(workload)
    best = best_for_laplace(workload.gram_times, diagonal, beside, seconds=seconds, progress=progress)
    norms = 1.0 + best.windows.dense(best.weights).sum(axis=0)
    scaled = best.windows.flat_weights(best.windows.dense(best.weights) / norms)
    return on_grid("optimised", 1.0 / norms, best.windows, scaled, "l1", bits=_BITS)


def _for_gaussian(workload: Workload, progress: Progress) -> Strategy:
    if workload.cells <= DENSE:
        best = best_for_gaussian(workload.gram(), progress=progress)
        return TriangularStrategy.of("optimised", best.inner_products, bits=_BITS)
    return widened(workload, DENSE, bits=_BITS, progress=progress)


def _stored(strategy: Strategy) -> strategy_cache.Arrays:
    if isinstance(strategy, CellsAndSums):
        return {
            "own": strategy.own.astype(np.int32),
            "starts": strategy.windows.starts.astype(np.int32),
            "stops": strategy.windows.stops.astype(np.int32),
            "weights": strategy.weights.astype(np.int32),
        }
    if isinstance(strategy, TriangularStrategy):
        return {"triangle": strategy.matrix[np.triu_indices(strategy.cells)].astype(np.int32)}
    return {"tree": np.ones(1, dtype=np.int32)}


def _restored(arrays: strategy_cache.Arrays | None, workload: Workload, norm: Norm) -> Strategy | None:
    """The strategy that was kept; None where what was read cannot be one for this workload."""
    if arrays is None or not all(array.dtype == np.int32 for array in arrays.values()):
        return None
    cells = workload.cells
    whole: dict[str, Integers] = {name: array.astype(np.int64) for name, array in arrays.items()}
    try:
        if whole.keys() == {"own", "starts", "stops", "weights"} and whole["own"].shape == (cells,):
            windows = Windows(cells, whole["starts"].ravel(), whole["stops"].ravel())
            return CellsAndSums("optimised", whole["own"], windows, whole["weights"])
        if whole.keys() == {"triangle"} and whole["triangle"].shape == (cells * (cells + 1) // 2,):
            matrix = np.zeros((cells, cells), dtype=np.int64)
            matrix[np.triu_indices(cells)] = whole["triangle"]
            return TriangularStrategy("optimised", matrix) if np.all(np.diag(matrix) >= 1) else None
    except InvalidValue:
        return None
    return weighted_tree(workload, norm) if whole.keys() == {"tree"} else None

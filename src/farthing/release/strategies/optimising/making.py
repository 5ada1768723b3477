"""The optimised strategy for a workload: found once, kept on disk, and never trusted with privacy."""

from __future__ import annotations

import time

import numpy as np

from farthing.errors import InvalidValue
from farthing.release.strategies import cache
from farthing.release.strategies.base import Integers, Norm, Strategy
from farthing.release.strategies.optimising.descent import Progress
from farthing.release.strategies.optimising.gaussian import best_for_gaussian
from farthing.release.strategies.optimising.grams import gram_bands
from farthing.release.strategies.optimising.laplace import best_for_laplace
from farthing.release.strategies.optimising.objective import Windows
from farthing.release.strategies.optimising.strategy import CellsAndSums, on_grid
from farthing.release.strategies.optimising.triangular import TriangularStrategy
from farthing.release.strategies.optimising.widening import widened
from farthing.release.strategies.weighted_tree import weighted_tree
from farthing.release.workloads.base import Workload

VERSION = 2
"""Counts up when the optimiser changes: older files are left alone and not read."""
MOST_CELLS = 8_192
DENSE = 1_024
"""Up to here the convex problem is solved cell by cell; beyond, over tents of several cells."""

_BITS = 16  # of the largest column norm: rounding costs less than a ten-thousandth, and sums of 2^36 rows still fit
_SECONDS = 30.0


def quiet(fraction: float) -> None:
    """Progress that nobody watches."""


def optimised(
    workload: Workload, norm: Norm, *, progress: Progress = quiet, seconds: float = _SECONDS
) -> Strategy:
    """The strategy of least expected error that was found for a workload, for Laplace ("l1") or Gaussian ("l2") noise.

    The search takes up to about `seconds`, telling `progress` the fraction that is done, and its outcome is kept on
    disk for the next time (see `farthing.release.strategies.cache`). If it fails, or is beaten by the tree, the tree
    is what is returned.

    >>> from farthing.release.workloads import prefix
    >>> strategy = optimised(prefix(32), "l1")
    >>> round(10 * (strategy.unit_error(prefix(32), "l1") / 32) ** 0.5, 1)  # RMSE at epsilon = 0.1; cells alone: 57.4
    44.3
    """
    if len(workload.shape) > 1:
        from farthing.release.strategies.optimising.axes import optimised_product

        return optimised_product(workload, norm, progress=progress, seconds=seconds)
    if not workload.cells <= MOST_CELLS:
        raise InvalidValue(
            "strategy",
            "optimised",
            f"must be over at most {MOST_CELLS:,} cells",
            'use "tree" or "hierarchical"',
        )
    return _kept(workload, norm, progress, seconds)


def kept(workload: Workload, norm: Norm) -> Strategy | None:
    """The optimised strategy if it was found before, in this process or on disk; nothing is searched for.

    >>> from farthing.release.workloads import prefix
    >>> _ = optimised(prefix(16), "l1")
    >>> kept(prefix(16), "l1").cells
    16
    """
    if len(workload.shape) > 1 or not workload.cells <= MOST_CELLS:
        return None
    key = cache.key_of("optimised", VERSION, norm, workload.digest)
    return _MEMORY.get(key) or _restored(cache.load(key), workload, norm)


def _kept(workload: Workload, norm: Norm, progress: Progress, seconds: float) -> Strategy:
    key = cache.key_of("optimised", VERSION, norm, workload.digest)
    held = _MEMORY.get(key)
    if held is None:
        held = _restored(cache.load(key), workload, norm)
        if held is None:
            began = time.monotonic()
            held = _searched(workload, norm, progress, seconds)
            if seconds < _SECONDS and not time.monotonic() - began < seconds:
                progress(1.0)
                return held  # somebody was in a hurry: what was found may not be what others should get
            cache.store(key, _stored(held))
        while len(_MEMORY) >= _MOST_HELD:
            _MEMORY.pop(next(iter(_MEMORY)), None)
        _MEMORY[key] = held
    progress(1.0)
    return held


_MEMORY: dict[str, Strategy] = {}
_MOST_HELD = 16


def _searched(workload: Workload, norm: Norm, progress: Progress, seconds: float) -> Strategy:
    """The best that the optimisers find, or the tree."""
    tree = weighted_tree(workload, norm)
    try:
        found = (
            _for_laplace(workload, progress, seconds) if norm == "l1" else _for_gaussian(workload, progress)
        )
        error = found.unit_error(workload, norm)
    except (np.linalg.LinAlgError, InvalidValue, FloatingPointError):
        return tree
    # Written so that an error that is no number loses.
    return found if 0 < error < tree.unit_error(workload, norm) * 1.0001 else tree


def _for_laplace(workload: Workload, progress: Progress, seconds: float) -> Strategy:
    diagonal, beside = gram_bands(workload)
    best = best_for_laplace(workload.gram_times, diagonal, beside, seconds=seconds, told=progress)
    norms = 1.0 + best.windows.dense(best.weights).sum(axis=0)
    scaled = best.windows.picked(best.windows.dense(best.weights) / norms)
    return on_grid("optimised", 1.0 / norms, best.windows, scaled, "l1", bits=_BITS)


def _for_gaussian(workload: Workload, progress: Progress) -> Strategy:
    if workload.cells <= DENSE:
        best = best_for_gaussian(workload.gram(), told=progress)
        return TriangularStrategy.of("optimised", best.inner_products, bits=_BITS)
    return widened(workload, DENSE, bits=_BITS, told=progress)


def _stored(strategy: Strategy) -> cache.Arrays:
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


def _restored(arrays: cache.Arrays | None, workload: Workload, norm: Norm) -> Strategy | None:
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

"""All ranges over k cells by the three strategies that courses teach, and by ours: predicted and measured.

1. every range for itself: a row lies in up to (k + 1)^2 / 4 ranges, and all of them share the budget
2. the cells, added up: a range of many cells collects the noise of all of them
3. a binary hierarchy with an even share for every level: a range is the sum of at most 2 log2(k) blocks
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from farthing.matrix import answer_workload
from farthing.matrix.workloads import all_ranges
from farthing.mechanisms import DiscreteLaplace

KS = (16, 32, 64, 128, 256, 512, 1024)
EPSILON = 1.0


def rows(ks: tuple[int, ...] = KS, epsilon: float = EPSILON, trials: int = 100) -> list[dict[str, object]]:
    """The total squared error over all k (k + 1) / 2 ranges, for every strategy and size."""
    found: list[dict[str, object]] = []
    for k in ks:
        for name, strategy in STRATEGIES.items():
            totals = [strategy(k, epsilon) for _ in range(trials)]
            measured = float(np.mean([total for _, total in totals]))
            law = {"logs": 3} if strategy is even_hierarchy else {}
            found.append({"strategy": name, "k": k, "predicted": totals[0][0], "measured": measured, **law})
    return found


def every_range(k: int, epsilon: float) -> tuple[float, float]:
    """Strategy 1: noise of scale (k + 1)^2 / 4 / epsilon on every range."""
    queries = k * (k + 1) // 2
    mechanism = DiscreteLaplace(epsilon, l1_sensitivity=(k + 1) ** 2 // 4, cells=queries)
    noise = np.asarray(mechanism.release(np.zeros(queries, dtype=np.int64)), dtype=float)
    return queries * mechanism.variance, float(np.sum(noise**2))


def cells(k: int, epsilon: float) -> tuple[float, float]:
    """Strategy 2: noise of scale 1 / epsilon on every cell."""
    mechanism = DiscreteLaplace(epsilon, cells=k)
    edges = np.concatenate([[0.0], np.cumsum(mechanism.release(np.zeros(k, dtype=np.int64)))])
    starts, stops = _ranges(k)
    lengths = float(np.sum(stops - starts))
    return lengths * mechanism.variance, float(np.sum((edges[stops] - edges[starts]) ** 2))


def even_hierarchy(k: int, epsilon: float) -> tuple[float, float]:
    """Strategy 3: log2(k) + 1 levels of blocks, each with an even share, and no inference afterwards."""
    levels = k.bit_length()
    starts, stops = _ranges(k)
    errors, used, variance = np.zeros(len(starts)), 0, 0.0
    for level in range(levels):
        blocks = k >> level
        mechanism = DiscreteLaplace(epsilon / levels, cells=blocks)
        variance = mechanism.variance
        noise = np.append(np.asarray(mechanism.release(np.zeros(blocks, dtype=np.int64))).reshape(-1), 0)
        odd = (starts < stops) & (starts % 2 == 1)  # a block whose neighbour lies outside stands alone
        errors += np.where(odd, noise[np.minimum(starts, blocks)], 0)
        starts = starts + odd
        last = (starts < stops) & (stops % 2 == 1)
        errors += np.where(last, noise[np.maximum(stops - 1, 0)], 0)
        stops = stops - last
        used += int(odd.sum() + last.sum())
        starts, stops = starts // 2, stops // 2
    return used * variance, float(np.sum(errors**2))


def weighted_tree(k: int, epsilon: float) -> tuple[float, float]:
    """Ours without any search: levels weighted for the workload, least squares afterwards."""
    found = answer_workload(np.zeros(k, dtype=np.int64), all_ranges(k), epsilon=epsilon, strategy="tree")
    return float(np.sum(found.standard_errors**2)), float(np.sum(found.answers**2))


def _ranges(k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    starts, stops = np.triu_indices(k)
    return starts, stops + 1


STRATEGIES = {
    "1. every range": every_range,
    "2. cells": cells,
    "3. binary hierarchy": even_hierarchy,
    "weighted tree": weighted_tree,
}

"""The weighted tree: few levels, each of its own branching, chosen for the workload in milliseconds."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from farthing.release.strategies.base import Norm
from farthing.release.strategies.hierarchical import best_hierarchical, errors_of
from farthing.release.strategies.trees import TreeStrategy
from farthing.release.workloads.base import Workload

# Two looks around each branching: near, and next to it.
_LOOKS = (np.geomspace(0.6, 1.7, 10), np.geomspace(0.85, 1.18, 6))


@lru_cache(maxsize=64)
def weighted_tree(workload: Workload, norm: Norm) -> TreeStrategy:
    """The tree of least error that was found when every level may branch as it likes.

    With Laplace noise a level costs its share of epsilon, so the best trees are low. The search begins with the best
    tree of one branching, leaves out levels that get no share, and moves the branchings one at a time. With Gaussian
    noise more levels never hurt: blocks halve.

    >>> from farthing.release.workloads import prefix
    >>> tree = weighted_tree(prefix(1024), "l1")
    >>> round(10 * (tree.unit_error(prefix(1024), "l1") / 1024) ** 0.5, 1)  # RMSE at epsilon = 0.1
    108.6
    """
    cells = workload.cells
    if norm == "l2":
        height = (cells - 1).bit_length()
        return TreeStrategy("tree", cells, tuple(1 << power for power in range(height, -1, -1)))
    begun = best_hierarchical(workload, norm)
    shares = begun.shares(workload, norm)
    best = tuple(s for s, share in zip(begun.sizes, shares, strict=True) if share > 0 or s == 1)
    known: dict[int, float] = {}
    lowest = float(errors_of(workload, [best], norm, known)[0])
    for look in _LOOKS:
        for place in range(len(best) - 1):
            trees = [tree for factor in look if (tree := _moved(best, place, factor))[0] <= 2 * cells]
            if not trees:
                continue
            errors = errors_of(workload, trees, norm, known)
            found = int(np.argmin(errors))
            if errors[found] < lowest:
                best, lowest = trees[found], float(errors[found])
    return TreeStrategy("tree", cells, best)


def _moved(sizes: tuple[int, ...], place: int, factor: float) -> tuple[int, ...]:
    """The same tree with the branching below sizes[place] multiplied by `factor`: this block and all above it grow."""
    branchings = [coarse // fine for coarse, fine in pairwise(sizes)]
    branchings[place] = max(2, round(branchings[place] * factor))
    found = [1]
    for branching in reversed(branchings):
        found.append(found[-1] * branching)
    return tuple(reversed(found))

"""Hierarchies of one branching, and the branching of least error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from farthing.errors import InvalidValue
from farthing.release.strategies.base import Floats, Norm
from farthing.release.strategies.division import best_shares, error
from farthing.release.strategies.energies import sampled_energy
from farthing.release.strategies.trees import TreeStrategy
from farthing.release.workloads.base import Workload

BRANCHINGS = range(2, 65)
_STEPS_TO_COMPARE = 40


def hierarchical(cells: int, branching: int) -> TreeStrategy:
    """The tree in which every block has `branching` blocks below it, the root perhaps fewer.

    >>> hierarchical(1000, 10).sizes, hierarchical(70, 8).sizes
    ((1000, 100, 10, 1), (128, 64, 8, 1))
    """
    if not (isinstance(branching, int) and 2 <= branching <= 2**20):
        raise InvalidValue("branching", branching, "must be a whole number from 2 to 2^20", "16 is common")
    return TreeStrategy(f"hierarchical-{branching}", cells, _sizes(cells, branching))


def best_hierarchical(workload: Workload, norm: Norm) -> TreeStrategy:
    """The branching from 2 to 64 of least error on this workload, each tree with its best shares.

    >>> from farthing.release.workloads import prefix
    >>> best_hierarchical(prefix(1024), "l1").name
    'hierarchical-14'
    """
    trees = [_sizes(workload.cells, branching) for branching in BRANCHINGS]
    errors = errors_of(workload, trees, norm)
    return hierarchical(workload.cells, BRANCHINGS[int(np.argmin(errors))])


def errors_of(
    workload: Workload, trees: Sequence[tuple[int, ...]], norm: Norm, known: dict[int, float] | None = None
) -> Floats:
    """The error of every tree with (nearly) its best shares; `known` keeps energies between calls."""
    kept = {} if known is None else known
    for size in {size for tree in trees for size in tree} - kept.keys():
        kept[size] = sampled_energy(workload, size)
    errors: Floats = np.empty(len(trees))
    for height in {len(tree) for tree in trees}:  # trees of one height are divided together
        places = [place for place, tree in enumerate(trees) if len(tree) == height]
        sizes = np.array([trees[place] for place in places], dtype=float)
        energies = np.array([[kept[size] for size in trees[place]] for place in places])
        details = np.maximum(np.diff(energies, axis=1, prepend=0.0), 0.0)
        shares = best_shares(sizes, details, norm, _STEPS_TO_COMPARE)
        errors[places] = error(sizes, details, shares, norm)
    return errors


def _sizes(cells: int, branching: int) -> tuple[int, ...]:
    """Powers of the branching below the number of cells, under a root that is no larger than it must be."""
    sizes = [1]
    while sizes[-1] * branching < cells:
        sizes.append(sizes[-1] * branching)
    if sizes[-1] < cells:
        sizes.append(-(-cells // sizes[-1]) * sizes[-1])
    return tuple(reversed(sizes))

"""Trees of blocks: every level adds up blocks of neighbouring cells, each block made of blocks of the next level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.inference.regular_tree import RegularTree
from farthing.matrix.strategies.nested_blocks import BlockEstimator
from farthing.matrix.strategies.strategy import Floats, Integers, Level, Norm, Strategy, Variances
from farthing.matrix.strategies.workload_energies import (
    best_shares,
    converged_shares,
    energy,
    error,
    sampled_energy,
)
from farthing.matrix.workloads.workload import Workload

_ROUNDING = 1e-12


@dataclass(frozen=True)
class TreeStrategy(Strategy):
    """Measures the sums of blocks of sizes[0] > sizes[1] > ... cells, each size a multiple of the next.

    The last block may reach beyond the last cell: cells that do not exist are known to be empty, and are measured
    like the others so that all levels stay regular.

    Args:
        name: The name of the strategy.
        size: How many cells there are.
        sizes: How many cells a block of each level has, coarse to fine.

    Raises:
        InvalidValue: If the sizes do not fall to 1, each a multiple of the next.

    Statement:
        Let level l hold the sums of all blocks of s_l cells, with s_(l+1) a divisor of s_l, and let its numbers be
        measured with independent noise of precision w_l (one over the variance). Adding or removing a row moves one
        number of each level by 1, so the release is the composition of its levels. The least-squares estimate of the
        cells has the covariance sum_j (P_j - P_(j-1)) / lambda_j with lambda_j = sum_(l >= j) w_l s_l, where P_j
        averages over blocks of s_j cells and P_(-1) = 0.
    Source: own derivation; for one branching and equal weights Hay, Rastogi, Miklau & Suciu, arXiv:0904.0942v5,
        Theorems 3 and 4. With T_l the matrix of level l, T_l' T_l = s_l P_l; because P_j P_l = P_min(j, l),
        sum_l w_l s_l P_l has the eigenvalue lambda_j on the range of P_j - P_(j-1), and least squares has its inverse
        as covariance.
    Assumes: noise of mean zero, independent between numbers, the same variance within a level.
    Direction: equality, up to rounding.
    Checked by: tests/theorems/test_strategy_trees.py

    >>> tree = TreeStrategy("tree", 6, (4, 2, 1))
    >>> tree.exact(np.array([1, 2, 3, 4, 5, 6]))
    [array([10, 11]), array([ 3,  7, 11,  0]), array([1, 2, 3, 4, 5, 6, 0, 0])]
    >>> [level.name for level in tree.levels]
    ['blocks of 4', 'blocks of 2', 'cells']
    """

    name: str
    size: int
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if (
            not self.sizes
            or not self.sizes[-1] == 1
            or any(coarse % fine or coarse <= fine for coarse, fine in pairwise(self.sizes))
        ):
            raise InvalidValue("sizes", self.sizes, "must fall to 1, each a multiple of the next")

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.size,)

    @property
    def padded(self) -> int:
        """The cells of all blocks of the coarsest level."""
        return -(-self.size // self.sizes[0]) * self.sizes[0]

    @property
    def reach(self) -> int:
        """No block holds more cells than there are."""
        return self.size

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """One for each size, coarse to fine; a row is in one block of each."""
        return tuple(
            Level("cells" if size == 1 else f"blocks of {size:,}", self.padded // size, l1=1, l2_squared=1)
            for size in self.sizes
        )

    def exact(self, cells: Integers) -> list[Integers]:
        """The sums of all blocks, each level from the one below."""
        sums: Integers = np.zeros(self.padded, dtype=np.int64)
        sums[: self.size] = np.ravel(cells)
        levels, fine = [sums], 1
        for size in reversed(self.sizes[:-1]):
            levels.append(levels[-1].reshape(-1, size // fine).sum(axis=1))
            fine = size
        return levels[::-1]

    def shares(self, workload: Workload, norm: Norm) -> Floats:
        """The division of least error."""
        return converged_shares(np.array(self.sizes, dtype=float), details_of(workload, self.sizes), norm)

    def fit(self, variances: Variances) -> TreeEstimator:
        """Least squares in one pass up and one down."""
        return TreeEstimator(self, self.check_variances(variances))


class TreeEstimator(BlockEstimator):
    """Least squares for a tree."""

    def __init__(self, tree: TreeStrategy, variances: Floats) -> None:
        self._variances = variances
        weights = np.array(tree.sizes, dtype=float) / variances
        super().__init__(tree.size, tree.sizes, np.cumsum(weights[::-1])[::-1])

    def estimate(self, measured: Sequence[NDArray[np.generic]]) -> Floats:
        """One pass up the tree and one down."""
        return self._spread(self._blocks.least_squares(measured[: len(self._blocks.sizes)]))

    def nonnegative(self, measured: Sequence[NDArray[np.generic]]) -> Floats:
        """The cells >= 0 that fit the measured sums best, each in units of its variance."""
        return self._spread(self._blocks.nonnegative(measured[: len(self._blocks.sizes)]))

    def coefficients(self, query: Floats) -> list[Floats]:
        """The covariance times the query, added up over each block, over the variance of its level."""
        cells = self.times(query)
        return [
            np.asarray(cells.reshape(-1, size).sum(axis=1) / variance)
            for size, variance in zip(self.sizes, self._variances, strict=True)
        ]

    @cached_property
    def _blocks(self) -> RegularTree:
        """The tree down to the finest level that was measured: below it, all cells of a block look alike."""
        last = int(np.flatnonzero(np.isfinite(self._variances))[-1])
        unit = self.sizes[last]
        sizes = tuple(size // unit for size in self.sizes[: last + 1])
        return RegularTree(-(-self.cells // unit), sizes, tuple(self._variances[: last + 1].tolist()))

    def _spread(self, blocks: Floats) -> Floats:
        unit = self.sizes[len(self._blocks.sizes) - 1]
        if unit == 1:
            return blocks
        widths = np.full(len(blocks), float(unit))
        widths[-1] = self.cells - (len(blocks) - 1) * unit  # cells that do not exist get nothing
        return np.repeat(blocks / widths, unit)[: self.cells]


def details_of(workload: Workload, sizes: Sequence[int]) -> Floats:
    """The workload's energy between each size and the one before it, coarse to fine; rounding is set to 0."""
    energies = np.array([energy(workload, size) for size in sizes])
    details = np.diff(energies, prepend=0.0)
    return np.where(details > _ROUNDING * energies[-1], details, 0.0)


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

    >>> from farthing.matrix.workloads import prefix
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
    memory = {} if known is None else known
    for size in {size for tree in trees for size in tree} - memory.keys():
        memory[size] = sampled_energy(workload, size)
    errors: Floats = np.empty(len(trees))
    for height in {len(tree) for tree in trees}:  # trees of one height are divided together
        places = [place for place, tree in enumerate(trees) if len(tree) == height]
        sizes = np.array([trees[place] for place in places], dtype=float)
        energies = np.array([[memory[size] for size in trees[place]] for place in places])
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


# Two looks around each branching: near, and next to it.
_LOOKS = (np.geomspace(0.6, 1.7, 10), np.geomspace(0.85, 1.18, 6))


@lru_cache(maxsize=64)
def weighted_tree(workload: Workload, norm: Norm) -> TreeStrategy:
    """The tree of least error that was found when every level may branch as it likes.

    With Laplace noise a level costs its share of epsilon, so the best trees are low. The search begins with the best
    tree of one branching, leaves out levels that get no share, and moves the branchings one at a time. With Gaussian
    noise more levels never hurt: blocks halve.

    >>> from farthing.matrix.workloads import prefix
    >>> tree = weighted_tree(prefix(1024), "l1")
    >>> round(10 * (tree.unit_error(prefix(1024), "l1") / 1024) ** 0.5, 1)  # RMSE at epsilon = 0.1
    108.6
    """
    cells = workload.cells
    if norm == "l2":
        height = (cells - 1).bit_length()
        return TreeStrategy("tree", cells, tuple(1 << power for power in range(height, -1, -1)))
    hierarchy = best_hierarchical(workload, norm)
    shares = hierarchy.shares(workload, norm)
    best = tuple(s for s, share in zip(hierarchy.sizes, shares, strict=True) if share > 0 or s == 1)
    known: dict[int, float] = {}
    lowest = float(errors_of(workload, [best], norm, known)[0])
    for look in _LOOKS:
        for place in range(len(best) - 1):
            trees = [tree for factor in look if (tree := _moved(best, place, factor))[0] <= 2 * cells]
            if not trees:
                continue
            errors = errors_of(workload, trees, norm, known)
            least = int(np.argmin(errors))
            if errors[least] < lowest:
                best, lowest = trees[least], float(errors[least])
    return TreeStrategy("tree", cells, best)


def _moved(sizes: tuple[int, ...], place: int, factor: float) -> tuple[int, ...]:
    """The same tree with the branching below sizes[place] multiplied by `factor`: this block and all above it grow."""
    branchings = [coarse // fine for coarse, fine in pairwise(sizes)]
    branchings[place] = max(2, round(branchings[place] * factor))
    widths = [1]
    for branching in reversed(branchings):
        widths.append(widths[-1] * branching)
    return tuple(reversed(widths))

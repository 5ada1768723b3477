"""Trees in which every level adds up blocks of equally many neighbouring cells: least squares, and none below zero.

Blocks of sizes[0] > sizes[1] > ... > 1 cells, each size a multiple of the next, one variance for each level. The last
block may reach beyond the last cell: what lies there is measured like the rest and known to be zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from farthing.errors import InvalidValue
from farthing.inference.noise_terms import Floats


@dataclass(frozen=True)
class RegularTree:
    """`cells` cells, measured in blocks of the given sizes, coarse to fine, with one noise variance for each size.

    Args:
        cells: How many cells there are.
        sizes: How many cells a block of each level has, falling to 1, each a multiple of the next.
        variances: The variance of the noise in each level. Infinity says that a level was not measured; the cells
            themselves must have been.

    Raises:
        InvalidValue: If the sizes or the variances are not of this form.

    >>> tree = RegularTree(2, (2, 1), (1.0, 4.0))
    >>> tree.least_squares([[100.0], [60.0, 49.0]])
    array([56., 45.])
    >>> tree.nonnegative([[40.0], [60.0, -20.0]])
    array([44., 0.])
    """

    cells: int
    sizes: tuple[int, ...]
    variances: tuple[float, ...]

    def __post_init__(self) -> None:
        falling = all(coarse > fine and coarse % fine == 0 for coarse, fine in pairwise(self.sizes))
        if not self.sizes or self.sizes[-1] != 1 or not falling:
            raise InvalidValue("sizes", self.sizes, "must fall to 1, each a multiple of the next")
        if not self.cells >= 1:
            raise InvalidValue("cells", self.cells, "must be at least 1")
        if len(self.variances) != len(self.sizes) or not all(value > 0 for value in self.variances):
            raise InvalidValue("variances", self.variances, f"must be {len(self.sizes)} numbers > 0")
        if not math.isfinite(self.variances[-1]):
            raise InvalidValue("variances", self.variances, "must be finite for the cells")

    @classmethod
    def of_precisions(cls, cells: int, sizes: Sequence[int], precisions: Sequence[float]) -> RegularTree | None:
        """The tree whose least squares has precision precisions[j] for what blocks of sizes[j] add to coarser ones.

        Args:
            cells: How many cells there are.
            sizes: The sizes of the blocks, coarse to fine.
            precisions: One precision for each size.

        Returns:
            The tree; None where no tree has these precisions, which must not rise towards the cells.

        >>> RegularTree.of_precisions(4, (4, 2, 1), (9.0, 5.0, 1.0))
        RegularTree(cells=4, sizes=(4, 2, 1), variances=(1.0, 0.5, 1.0))
        """
        steps = 0.0 - np.diff([*precisions, 0.0])  # never -0.0
        if not (np.all(steps >= 0) and steps[-1] > 0 and np.all(np.isfinite(steps))):
            return None
        with np.errstate(divide="ignore"):
            return cls(cells, tuple(sizes), tuple((np.asarray(sizes, dtype=float) / steps).tolist()))

    @property
    def padded(self) -> int:
        """The cells of all blocks of the coarsest level.

        >>> RegularTree(5, (4, 2, 1), (1.0, 1.0, 1.0)).padded
        8
        """
        return -(-self.cells // self.sizes[0]) * self.sizes[0]

    def least_squares(self, measured: Sequence[ArrayLike]) -> Floats:
        """The best unbiased cells from the measured sums of every level, in one pass up and one down.

        Args:
            measured: The measured sums, one array for each level.

        Returns:
            The estimated cells.

        Raises:
            InvalidValue: If a level has more or fewer sums than blocks.

        Statement:
            The result of `tree_least_squares`, where all nodes of a level have one variance. Going up, a block's own
            measurement and the sum of its parts are joined by inverse variance; going down, what a block gained over
            the sum of its parts is shared among them equally.
        Source: Hay, Rastogi, Miklau & Suciu, arXiv:0904.0942v5, Theorem 3.
        Assumes: independent noises of the stated variances.
        Direction: equality, up to rounding.
        Checked by: tests/theorems/test_regular_tree.py
        """
        numbers = self._checked(measured)
        rising, variance = numbers[-1], self.variances[-1]
        below: list[Floats] = []
        ups: list[Floats] = [rising]
        for level in reversed(range(len(self.sizes) - 1)):
            branching = self.sizes[level] // self.sizes[level + 1]
            sums = rising.reshape(-1, branching).sum(axis=1)
            # Of the block's own measurement.
            trust = 1.0 / (1.0 + self.variances[level] / (branching * variance))
            rising = sums if trust == 0 else sums + trust * (numbers[level] - sums)
            variance = branching * variance * (1.0 - trust)
            below.append(sums)
            ups.append(rising)
        estimate = ups.pop()
        for level in range(1, len(self.sizes)):
            branching = self.sizes[level - 1] // self.sizes[level]
            estimate = ups.pop() + np.repeat((estimate - below.pop()) / branching, branching)
        return estimate[: self.cells]

    def nonnegative(self, measured: Sequence[ArrayLike], total: float | None = None) -> Floats:
        """The cells >= 0 that fit the measured sums best, each in units of its variance; with a known total if given.

        Args:
            measured: The measured sums, one array for each level.
            total: The sum of all cells, where it is known.

        Returns:
            The cells, each >= 0.

        Raises:
            InvalidValue: If a level has more or fewer sums than blocks, or `total` is not a finite number >= 0.

        Statement:
            Let c(s) be the least cost of the cells below a block when they add up to s. Its derivative rises, and the
            inverse S of the derivative is piecewise linear, zero at first: for a cell it is max(0, y + v t), for the
            parts of a block together it is the sum of theirs, and a measurement y of variance v of the block itself
            moves the argument to t + (S(t) - y) / v. The best cells follow from the top down: a block that is given
            the slope t has the sum S(t), and gives its parts the slope t - (S(t) - y) / v.
            They are the projection of the least-squares cells onto x >= 0 in the norm of their inverse covariance,
            so they are never further from the true cells in that norm.
        Source: own derivation: the sum is over a tree, so infimal convolution (Rockafellar, Convex Analysis (1970),
            Theorem 16.4) adds inverse derivatives; for projections see `nearest_nonnegative`.
        Assumes: true cells >= 0, and of the given total if there is one.
        Direction: the exact minimum, up to rounding; never an iteration that may stop too early.
        Checked by: tests/theorems/test_regular_tree.py
        """
        numbers = self._checked(measured)
        if total is not None and not 0 <= total < math.inf:
            raise InvalidValue("total", total, "must be a finite number >= 0")
        # One row for each block: where its sum S begins to rise, or rises faster, and by how much faster.
        turns = -numbers[-1][:, None] / self.variances[-1]
        faster = np.full_like(turns, self.variances[-1])
        faster[self.cells :] = 0.0  # cells that do not exist stay at zero
        levels = [(turns, faster)]
        for level in reversed(range(len(self.sizes) - 1)):
            branching = self.sizes[level] // self.sizes[level + 1]
            turns, faster = _joined(turns, faster, branching)
            if math.isfinite(self.variances[level]):
                weight = 1.0 / self.variances[level]
                slopes, sums = _slopes_and_sums(turns, faster)
                turns = turns + weight * (sums - numbers[level][:, None])
                faster = np.maximum(np.diff(slopes / (1.0 + weight * slopes), axis=1, prepend=0.0), 0.0)
            levels.append((turns, faster))
        if total is None:
            pulls = np.zeros(len(turns))
        else:
            pulls = np.full(len(turns), _slope_of_total(*_joined(turns, faster, len(turns)), total))
        for level in range(len(self.sizes)):
            turns, faster = levels.pop()
            sums = np.einsum("ij,ij->i", faster, np.maximum(pulls[:, None] - turns, 0.0))
            if level == len(self.sizes) - 1:
                cells = sums[: self.cells]
                return cells if total is None else _rescaled(cells, total)
            if math.isfinite(self.variances[level]):
                pulls = pulls - (sums - numbers[level]) / self.variances[level]
            pulls = np.repeat(pulls, self.sizes[level] // self.sizes[level + 1])
        raise AssertionError("the last level is the cells")

    def nearest_nonnegative(self, estimate: ArrayLike, total: float | None = None) -> Floats:
        """The cells >= 0 nearest to an estimate, in the norm in which this tree's measurements would pull them.

        Args:
            estimate: One number for each cell.
            total: The sum of all cells, where it is known.

        Returns:
            The cells, each >= 0.

        Raises:
            InvalidValue: If there is not one number for each cell.

        >>> RegularTree(2, (2, 1), (1.0, 4.0)).nearest_nonnegative([56.0, -16.0]).round(9)
        array([43.2, 0. ])
        """
        numbers = np.asarray(estimate, dtype=float).reshape(-1)
        if len(numbers) != self.cells:
            raise InvalidValue("estimate", len(numbers), f"must be {self.cells} numbers")
        cells = np.concatenate([numbers, np.zeros(self.padded - self.cells)])
        return self.nonnegative([cells.reshape(-1, size).sum(axis=1) for size in self.sizes], total)

    def _checked(self, measured: Sequence[ArrayLike]) -> list[Floats]:
        if len(measured) != len(self.sizes):
            raise InvalidValue("measured", len(measured), f"must be {len(self.sizes)} levels of numbers")
        levels = []
        for size, variance, numbers in zip(self.sizes, self.variances, measured, strict=True):
            if not math.isfinite(variance):  # not measured; whatever stands there is not looked at
                levels.append(np.zeros(self.padded // size))
                continue
            own = np.asarray(numbers, dtype=float).reshape(-1)
            if size == 1 and len(own) == self.cells:
                own = np.concatenate([own, np.zeros(self.padded - self.cells)])
            if len(own) != self.padded // size:
                raise InvalidValue("measured", len(own), f"must be {self.padded // size} numbers for size {size}")
            if not np.all(np.isfinite(own)):
                raise InvalidValue("measured", "an array", "must be finite")
            levels.append(own)
        return levels


def _joined(turns: Floats, faster: Floats, branching: int) -> tuple[Floats, Floats]:
    """The turns of `branching` neighbouring rows in one row, in order."""
    turns, faster = (part.reshape(len(part) // branching, -1) for part in (turns, faster))
    order = np.argsort(turns, axis=1, kind="stable")  # merges runs that are in order already
    return np.take_along_axis(turns, order, axis=1), np.take_along_axis(faster, order, axis=1)


def _slopes_and_sums(turns: Floats, faster: Floats) -> tuple[Floats, Floats]:
    """At every turn: the slope of S after it, and S itself."""
    slopes = np.cumsum(faster, axis=1)
    sums = np.zeros_like(turns)
    np.cumsum(slopes[:, :-1] * np.diff(turns, axis=1), axis=1, out=sums[:, 1:])
    return slopes, sums


def _slope_of_total(turns: Floats, faster: Floats, total: float) -> float:
    """Where the sum of all blocks reaches the total."""
    slopes, sums = _slopes_and_sums(turns, faster)
    # Sums begin at 0, and rise once a cell has begun.
    last = int(np.searchsorted(sums[0], total, side="right")) - 1
    return float(turns[0, last] + (total - sums[0, last]) / slopes[0, last])


def _rescaled(cells: Floats, total: float) -> Floats:
    """What rounding left of the total, taken out."""
    reached = float(cells.sum())
    return cells * (total / reached) if reached > 0 else cells

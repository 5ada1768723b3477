"""Least squares over cells that were measured more than once: several partitions, or a tree.

Every measured number is a sum of cells plus independent noise of known variance. The estimates are the best linear
unbiased ones, so that a total always equals the sum of its parts, and their variances are known before anything is
measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farthing.errors import InvalidValue
from farthing.inference.noise_terms import Floats

Product = Callable[[Floats], Floats]


def implicit_least_squares(
    times: Product,
    transposed: Product,
    measured: ArrayLike,
    variances: ArrayLike = 1.0,
    *,
    start: ArrayLike | None = None,
    most_steps: int | None = None,
) -> Floats:
    """The cells x that minimise sum_i (measured_i - (A x)_i)^2 / variance_i, the shortest ones where several do.

    Args:
        times: Maps x to A x.
        transposed: Maps y to A' y.
        measured: The measured numbers.
        variances: The variance of each, or one for all.
        start: A first guess. From one that is not zero, cells that nothing determines stay where they began.
        most_steps: After how many steps to give up.

    Returns:
        The cells.

    Raises:
        InvalidValue: If a number is not finite, a variance is not > 0, or the steps are not enough.

    Statement:
        The minimiser is the estimate of `LeastSquares`: the best linear unbiased one.
    Source: Fong & Saunders, arXiv:1006.0758v2 (LSMR); its residual in the normal equations only falls.
    Assumes: independent noises of the stated variances; `transposed` is the transpose of `times`.
    Direction: equality, to about 1e-10 of the size of the answer; refused when that is not reached.
    Checked by: tests/theorems/test_implicit_least_squares.py

    >>> design = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    >>> cells = implicit_least_squares(
    ...     lambda x: design @ x, lambda y: design.T @ y, [100.0, 60.0, 49.0], [1.0, 4.0, 4.0])
    >>> cells.round(9)
    array([56., 45.])
    """
    from scipy.sparse.linalg import LinearOperator

    numbers = np.asarray(measured, dtype=float).reshape(-1)
    spread = np.broadcast_to(np.asarray(variances, dtype=float), numbers.shape)
    if not np.all(np.isfinite(numbers)):
        raise InvalidValue("measured", "an array", "must be finite")
    if not (np.all(spread > 0) and np.all(np.isfinite(spread))):
        raise InvalidValue("variances", "an array", "must be finite numbers > 0")
    root = 1.0 / np.sqrt(spread)
    first = np.asarray(transposed(np.zeros_like(numbers)) if start is None else start, dtype=float).reshape(-1)
    cells = len(first)
    design = LinearOperator(
        (len(numbers), cells),
        matvec=lambda x: root * times(np.asarray(x).reshape(-1)),
        rmatvec=lambda y: transposed(root * np.asarray(y).reshape(-1)),
        dtype=float,
    )
    steps = most_steps or 10 * cells + 1_000
    estimate = _solved(design, numbers * root, first, steps)
    if estimate is None:
        raise InvalidValue("most_steps", steps, "is not enough for these measurements", "allow more")
    return estimate


def _solved(design: Any, target: Floats, start: Floats, steps: int) -> Floats | None:
    """The least-squares solution nearest to `start`; None if the steps are not enough.

    Solved again for what is left: rounding in a long run is taken out, and a start near the answer is a short run.
    """
    from scipy.sparse.linalg import lsmr

    estimate = start
    for _ in range(3):
        left = target - design.matvec(estimate)
        more, reason, count = lsmr(design, left, atol=1e-13, btol=1e-13, conlim=0.0, maxiter=steps)[:3]
        estimate = estimate + more
        steps -= count
        if reason == 7 or steps <= 0:
            return None
        if np.linalg.norm(more) <= 1e-12 * np.linalg.norm(estimate):
            break
    return np.asarray(estimate)


Places = NDArray[np.int64]
_MOST_CELLS = 4096


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Cells measured through several partitions, each with noise.

    Args:
        members: For each partition p, `members[p][c]` is the part of it that holds cell c, or -1.
        variances: For each partition the variance of the noise in its parts, one number or one for each part.

    Raises:
        InvalidValue: If the partitions are not over the same cells, a variance is not > 0, or there are too many cells.

    Statement:
        With measured values y = A x + noise, noise of mean zero and covariance V = diag(variances), the estimate
            x~ = G y,    G = (A' V^-1 A)^+ A' V^-1,
        has the least variance, for every sum of cells that the measurements determine, among all linear unbiased
        estimates; the covariance of B x~ is B (A' V^-1 A)^+ B'.
    Source: Aitken 1935, "On least squares and linear combination of observations", Proc. Royal Soc. Edinburgh 55.
    Assumes: independent noises of the stated variances, none of them zero or infinite.
    Direction: equality, up to rounding of about 1e-9.
    Checked by: tests/theorems/test_least_squares.py

    >>> whole, parts = np.zeros(2, int), np.arange(2)
    >>> plan = LeastSquares((whole, parts), (1.0, 4.0))
    >>> plan.estimate([np.array([100.0]), np.array([60.0, 49.0])])
    array([56., 45.])
    >>> plan.variances_of(whole), plan.variances_of(parts).round(3)
    (array([0.88888889]), array([2.222, 2.222]))
    """

    members: tuple[Places, ...]
    variances: tuple[float | Floats, ...]

    def __post_init__(self) -> None:
        if not self.members or len(self.members) != len(self.variances):
            raise InvalidValue(
                "variances",
                len(self.variances),
                f"must be one for each of the {len(self.members)} partitions",
            )
        if len({len(places) for places in self.members}) != 1:
            raise InvalidValue("members", [len(m) for m in self.members], "must all be over the same cells")
        if len(self.members[0]) > _MOST_CELLS:
            raise InvalidValue(
                "members",
                len(self.members[0]),
                f"must have at most {_MOST_CELLS:,} cells",
                "use tree_least_squares",
            )
        for variance in self.variances:
            if not (np.all(np.asarray(variance) > 0) and np.all(np.isfinite(variance))):
                raise InvalidValue("variances", variance, "must be finite numbers > 0")

    @cached_property
    def _design(self) -> tuple[Floats, Floats]:
        """A and the inverse variances of its rows."""
        rows = [sums_matrix(places) for places in self.members]
        weights = [
            np.broadcast_to(1.0 / np.asarray(variance, dtype=float), len(matrix))
            for matrix, variance in zip(rows, self.variances, strict=True)
        ]
        return np.vstack(rows), np.concatenate(weights)

    @cached_property
    def covariance(self) -> Floats:
        """The covariance of the estimated cells."""
        design, weights = self._design
        return np.asarray(np.linalg.pinv((design.T * weights) @ design, hermitian=True))

    @cached_property
    def gain(self) -> Floats:
        """G: the estimate is G times the measured numbers, all partitions one after the other."""
        design, weights = self._design
        return np.asarray(self.covariance @ (design.T * weights))

    def estimate(self, measured: Sequence[ArrayLike]) -> Floats:
        """The cells, from one array of measured numbers for each partition.

        Args:
            measured: One array of measured numbers for each partition.

        Returns:
            The estimated cells.

        Raises:
            InvalidValue: If there are more or fewer numbers than parts.
        """
        numbers = np.concatenate([np.asarray(values, dtype=float).reshape(-1) for values in measured])
        if len(numbers) != self.gain.shape[1]:
            raise InvalidValue("measured", len(numbers), f"must be {self.gain.shape[1]} numbers in all")
        return np.asarray(self.gain @ numbers)

    def coefficients_of(self, members: Places) -> Floats:
        """For each sum of cells in `members`, by how much every measured number enters: the terms of its error.

        Args:
            members: For each cell the sum that it belongs to, or -1.

        Returns:
            One row for each sum, one column for each measured number.
        """
        return np.asarray(sums_matrix(members) @ self.gain)

    def variances_of(self, members: Places) -> Floats:
        """The variance of every sum of cells in `members`.

        Args:
            members: For each cell the sum that it belongs to, or -1.

        Returns:
            One variance for each sum.
        """
        sums = sums_matrix(members)
        return np.asarray(np.einsum("ij,jk,ik->i", sums, self.covariance, sums))


def sums_matrix(members: Places) -> Floats:
    """The matrix that adds up cells into parts; a cell with -1 is in none.

    >>> sums_matrix(np.array([0, 1, 0, -1]))
    array([[1., 0., 1., 0.], [0., 1., 0., 0.]])
    """
    places = np.asarray(members)
    matrix = np.zeros((int(places.max(initial=-1)) + 1, len(places)))
    inside = np.flatnonzero(places >= 0)
    matrix[places[inside], inside] = 1.0
    return matrix


def tree_least_squares(parents: ArrayLike, measured: ArrayLike, variances: ArrayLike) -> tuple[Floats, Floats]:
    """Least squares on a tree in two passes: estimates of all nodes that add up, and their variances.

    Args:
        parents: `parents[i] < i` is the parent of node i, -1 for a root. A node is the sum of its children.
        measured: One number for each node.
        variances: The variance of each. Infinity says that a node was not measured; every leaf must have been.

    Returns:
        The estimates of all nodes, and their variances.

    Raises:
        InvalidValue: If a child comes before its parent, or a variance is not > 0 or not finite at a leaf.

    Statement:
        Going up, each node's own measurement is joined with the sum of its children's by inverse variance; going
        down, what a node gained over the sum of its children is shared among them in proportion to their variances.
        The result is the least-squares estimate of `LeastSquares` with one partition for each node.
    Source: Hay, Rastogi, Miklau & Suciu, arXiv:0904.0942v5, Theorem 3, for equal variances and full trees; the
        passes with unequal variances are Kalman smoothing on a tree.
    Assumes: independent noises of the stated variances; leaves measured.
    Direction: equality, up to rounding.
    Checked by: tests/theorems/test_least_squares.py

    >>> estimates, variances = tree_least_squares([-1, 0, 0], [100.0, 60.0, 49.0], [1.0, 4.0, 4.0])
    >>> estimates, variances.round(3)
    (array([101., 56., 45.]), array([0.889, 2.222, 2.222]))
    """
    above = np.asarray(parents, dtype=np.int64)
    own, noise = np.asarray(measured, dtype=float), np.asarray(variances, dtype=float)
    if not (above.shape == own.shape == noise.shape and above.ndim == 1):
        raise InvalidValue("measured", own.shape, f"must be one number for each of the {len(above)} nodes")
    if not (np.all(above < np.arange(len(above))) and np.all(above >= -1)):
        raise InvalidValue("parents", parents, "must each come before their children", "number nodes from the root")
    if not np.all(noise > 0):
        raise InvalidValue("variances", variances, "must be > 0")
    has_children = np.zeros(len(above), dtype=bool)
    has_children[above[above >= 0]] = True
    if not np.all(np.isfinite(noise[~has_children])):
        raise InvalidValue("variances", variances, "must be finite for every leaf")
    levels = _levels(above)
    value, variance = np.where(np.isfinite(noise), own, 0.0), noise.copy()
    below, below_variance = np.zeros_like(own), np.zeros_like(own)
    for level in reversed(levels):
        inner = level[has_children[level]]
        trust = 1.0 / noise[inner] + 1.0 / below_variance[inner]
        measured_share = np.where(np.isfinite(noise[inner]), value[inner], 0.0) / noise[inner]
        value[inner] = (measured_share + below[inner] / below_variance[inner]) / trust
        variance[inner] = 1.0 / trust
        lower = level[above[level] >= 0]
        np.add.at(below, above[lower], value[lower])
        np.add.at(below_variance, above[lower], variance[lower])
    for level in levels[1:]:
        up = above[level]
        share = variance[level] / below_variance[up]
        value[level] += share * (value[up] - below[up])
        variance[level] += share**2 * (variance[up] - below_variance[up])
    return value, variance


def _levels(parents: Places) -> list[Places]:
    """Nodes by depth, from the roots down."""
    depth = np.zeros(len(parents), dtype=np.int64)
    for node in np.flatnonzero(parents >= 0):  # parents come first
        depth[node] = depth[parents[node]] + 1
    return [np.flatnonzero(depth == level) for level in range(int(depth.max(initial=-1)) + 1)]

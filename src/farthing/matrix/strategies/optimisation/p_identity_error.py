"""The error of a p-Identity strategy for Laplace noise, and its gradient: cells beside a few sums of cells.

The strategy is A = [I; T] S^-1: every cell by itself and p weighted sums of cells, each column divided by its l1 norm
s = 1 + (the column's sum of T), so that one row moves the measurements by 1 altogether.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from farthing.matrix.strategies.strategy import Floats, Integers

Objective = Callable[[Floats], tuple[float, Floats]]
Progress = Callable[[float], None]
"""Told the fraction of the work that is done, from 0 to 1."""

CEILING = 100.0
"""No weight of a sum grows beyond this multiple of its cells' own: A'A must stay far from singular."""

_MEMORY = 10
_TOLERANCE = 1e-7


class _OutOfTime(Exception):
    """Leaves the minimiser when its time is up; never seen outside."""


def descended(
    objective: Objective,
    start: Floats,
    *,
    steps: int,
    until: float,
    progress: Progress = lambda fraction: None,
) -> tuple[float, Floats]:
    """The least value found in at most `steps` iterations or until the monotonic clock says `until`, and where.

    Never worse than the start. A value that is not a finite number above 0 counts as infinitely bad.

    >>> value, place = descended(
    ...     lambda x: (1.0 + float(np.sum((x - 2.0) ** 2)), 2 * (x - 2.0)), np.array([0.5]), steps=9, until=1e300
    ... )
    >>> place.round(6)
    array([2.])
    """
    from scipy.optimize import Bounds, minimize

    unit = objective(start)[0]
    if not (np.isfinite(unit) and unit > 0):
        return np.inf, start
    least, place, done = unit, start, 0

    def scaled(weights: Floats) -> tuple[float, Floats]:
        nonlocal least, place
        value, gradient = objective(weights)
        if not (np.isfinite(value) and value > 0 and np.all(np.isfinite(gradient))):
            return 1e300, np.zeros_like(weights)
        if value < least:
            least, place = value, weights.copy()
        if time.monotonic() > until:
            raise _OutOfTime
        return value / unit, gradient / unit

    def stepped(_: Floats) -> None:
        nonlocal done
        done += 1
        progress(min(1.0, done / steps))

    # Out of time, or out of luck: the best point so far stands.
    with suppress(_OutOfTime, np.linalg.LinAlgError):
        minimize(
            scaled,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(np.zeros_like(start), np.full_like(start, CEILING)),
            callback=stepped,
            options={
                "maxiter": steps,
                "maxfun": 3 * steps + 20,
                "maxcor": _MEMORY,
                "ftol": _TOLERANCE,
                "gtol": 0.0,
            },
        )
    return least, place


SMALL_VECTOR = 9_000
"""A matrix of so many entries times a vector stays in one thread."""
_SMALL_PRODUCT = 250_000  # rows x inner x columns
_SMALL_INVERSE = 64


def times(left: Floats, right: Floats) -> Floats:
    """The product of two matrices, a few rows at a time.

    >>> times(np.arange(6.0).reshape(3, 2), np.eye(2))
    array([[0., 1.],
           [2., 3.],
           [4., 5.]])
    """
    rows = max(1, _SMALL_PRODUCT // max(1, right.size))
    if len(left) <= rows:
        return np.asarray(left @ right)
    whole = len(left) // rows * rows
    stacked = left[:whole].reshape(-1, rows, left.shape[1]) @ right
    rest = left[whole:] @ right
    return np.concatenate([stacked.reshape(whole, right.shape[1]), rest])


def inverse_of(matrix: Floats) -> Floats:
    """The inverse of a symmetric positive definite matrix, by halves.

    >>> inverse_of(np.array([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    if len(matrix) <= _SMALL_INVERSE:
        return np.asarray(np.linalg.inv(matrix))
    half = len(matrix) // 2
    beside = matrix[:half, half:]
    first = inverse_of(matrix[:half, :half])
    moved = times(first, beside)
    second = inverse_of(matrix[half:, half:] - times(beside.T, moved))
    corner = times(moved, second)
    return np.block([[first + times(corner, moved.T), -corner], [-corner.T, second]])


GramTimes = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Windows:
    """Weighted sums of neighbouring cells: row i of T holds cells starts[i] to stops[i] - 1 and no other.

    >>> rows = Windows(4, np.array([0, 1]), np.array([2, 4]))
    >>> rows.dense(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    array([[1., 2., 0., 0.],
           [0., 3., 4., 5.]])
    """

    cells: int
    starts: Integers
    stops: Integers

    @property
    def rows(self) -> int:
        """How many sums there are."""
        return len(self.starts)

    @property
    def offsets(self) -> Integers:
        """Where the weights of each row begin in a flat list of all of them, and where the last ones end."""
        return np.concatenate([[0], np.cumsum(self.stops - self.starts)])

    def split(self, weights: Floats) -> list[Floats]:
        """The flat weights, row by row."""
        offsets = self.offsets
        return [weights[start:stop] for start, stop in pairwise(offsets)]

    def dense(self, weights: Floats) -> Floats:
        """The rows T as one dense matrix, one column for each cell."""
        table = np.zeros((self.rows, self.cells))
        for row, start, stop, own in zip(table, self.starts, self.stops, self.split(weights), strict=True):
            row[start:stop] = own
        return table

    def flat_weights(self, table: Floats) -> Floats:
        """The flat weights that stand inside the windows of a dense table."""
        return np.concatenate(
            [row[a:b] for row, a, b in zip(table, self.starts, self.stops, strict=True)] or [np.zeros(0)]
        )


@dataclass(frozen=True, eq=False)
class LaplaceError:
    """tr((A'A)^-1 W'W) of A = [I; T] S^-1 as a function of the weights inside the windows of T.

    Statement:
        A'A = S^-1 (I + T'T) S^-1, so by Woodbury's identity
            tr((A'A)^-1 G) = sum_j s_j^2 G_jj - tr(K^-1 M G M'),    K = I + T T',  M = T S,  G = W'W.
        With Laplace noise of scale 1 / epsilon on A x, the summed variance of the least-squares answers is
        2 / epsilon^2 times this.
    Source: McKenna, Miklau, Hay & Machanavajjhala, PVLDB 11(10), 2018, arXiv:1808.03537v1, section 5 (p-Identity
        strategies); the form for windows and a Gram matrix that is never written out follows from the statement.
    Assumes: weights >= 0; `gram_times` is X -> G X for a positive semidefinite G and `diagonal` is G's diagonal.
    Direction: used for choosing only. What is measured, its sensitivity and its error come from whole numbers later.
    Checked by: tests/theorems/test_matrix_mechanism_optimum.py
    """

    gram_times: GramTimes
    diagonal: Floats
    windows: Windows

    def value(self, weights: Floats) -> float:
        """The error at these weights, without its gradient."""
        return self.value_and_gradient(weights)[0]

    def value_and_gradient(self, weights: Floats) -> tuple[float, Floats]:
        """The error and its derivative by every weight.

        Only sums over windows are formed: what costs most is G M', a few running sums over (cells, p) numbers.
        """
        windows = self.windows
        # T', so that a piece of a window is one piece of memory.
        table = np.zeros((windows.cells, windows.rows))
        pieces = list(_pieces(windows))
        for row, start, stop, at in pieces:
            table[start:stop, row] = weights[at : at + stop - start]
        norms = 1.0 + table.sum(axis=1)
        mapped = self.gram_times(table * norms[:, None])  # G M', cells by rows
        inner = np.eye(windows.rows)  # K
        middle = np.zeros((windows.rows, windows.rows))  # M G M'
        for row, start, stop, at in pieces:
            own = weights[at : at + stop - start]
            inner[row] += own @ table[start:stop]
            middle[row] += (own * norms[start:stop]) @ mapped[start:stop]
        inverse = inverse_of(inner)
        pulled = times(inverse, middle)
        value = float(norms**2 @ self.diagonal - np.trace(pulled))
        curved = times(pulled, inverse)
        by_norm = 2.0 * norms * self.diagonal
        gradient = np.empty_like(weights)
        for row, start, stop, at in pieces:
            reach = mapped[start:stop] @ inverse[row]
            by_norm[start:stop] -= 2.0 * reach * weights[at : at + stop - start]
            along = table[start:stop] @ curved[row]
            gradient[at : at + stop - start] = 2.0 * (along - reach * norms[start:stop])
        for _, start, stop, at in pieces:
            gradient[at : at + stop - start] += by_norm[start:stop]
        return value, gradient


def _pieces(windows: Windows) -> Iterator[tuple[int, int, int, int]]:
    """The windows cut small: row, first cell, the cell after the last, and where the weights begin."""
    longest = max(1, SMALL_VECTOR // max(1, windows.rows))
    for row, (start, stop, at) in enumerate(
        zip(windows.starts.tolist(), windows.stops.tolist(), windows.offsets.tolist(), strict=False)
    ):
        for cell in range(start, stop, longest):
            yield row, cell, min(stop, cell + longest), at + cell - start

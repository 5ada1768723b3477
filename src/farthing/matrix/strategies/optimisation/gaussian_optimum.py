"""The strategy of least error for Gaussian noise: a convex problem, solved with a certificate from its dual."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from farthing.inference.nonnegative import nonnegative_in_norm
from farthing.matrix.strategies.matrix_strategy import MatrixEstimator, MatrixStrategy
from farthing.matrix.strategies.optimisation.initial_weights import hat_functions
from farthing.matrix.strategies.optimisation.p_identity_error import Progress, Windows
from farthing.matrix.strategies.optimisation.p_identity_strategy import CellsAndSums, on_grid
from farthing.matrix.strategies.strategy import Floats, Integers, Variances
from farthing.matrix.workloads.workload import Workload


class TriangularStrategy(MatrixStrategy):
    """An upper triangular matrix of whole numbers with a positive diagonal: always of full rank.

    >>> strategy = TriangularStrategy.of("example", np.array([[1.0, 0.6], [0.6, 1.0]]), bits=4)
    >>> strategy.matrix
    array([[16, 10],
           [ 0, 13]])
    """

    @classmethod
    def of(cls, name: str, inner_products: Floats, *, bits: int) -> TriangularStrategy:
        """The whole matrix B whose B'B is about `inner_products` times 4^bits."""
        factor = np.linalg.cholesky(inner_products).T * 2.0**bits
        whole: Integers = np.rint(factor).astype(np.int64)
        places = np.arange(len(whole))
        whole[places, places] = np.maximum(1, whole[places, places])
        return cls(name, whole)

    @cached_property
    def pseudo_inverse(self) -> Floats:
        """(B'B)^-1, by the inverse of a triangle."""
        from scipy.linalg import solve_triangular

        inverse = solve_triangular(self.matrix.astype(float), np.eye(self.cells), check_finite=False)
        return np.asarray(inverse @ inverse.T)

    def fit(self, variances: Variances) -> TriangularEstimator:
        """Least squares by dense algebra, and cells >= 0 by conjugate gradients."""
        return TriangularEstimator(self, float(self.check_variances(variances)[0]))

    @cached_property
    def projector(self) -> Floats | None:
        return None


class TriangularEstimator(MatrixEstimator):
    """Least squares for a triangle of independent measurements of one variance."""

    def nonnegative(self, measured: Sequence[NDArray[np.generic]]) -> Floats:
        """The cells >= 0 that fit the measured numbers best."""
        triangle = self._strategy.matrix.astype(float)
        diagonal = np.einsum("ij,ij->j", triangle, triangle)
        return nonnegative_in_norm(self.estimate(measured), lambda x: np.asarray(triangle.T @ (triangle @ x)), diagonal)


_TOLERANCE = 1e-4
_ROUNDS = 12
_STALLED = 0.8  # of the gap before: a round that gains less is the last
_RIDGE = 1e-8  # part of the mean diagonal that is added to a Gram matrix of less than full rank


@dataclass(frozen=True, eq=False)
class Certified:
    """X = A'A with unit diagonal, its error tr(G X^-1), and a proof that no strategy has one below `least`."""

    inner_products: Floats
    error: float
    least: float

    @property
    def gap(self) -> float:
        """How far the error can be above the optimum, as a fraction: 0.001 is a tenth of a percent."""
        return max(0.0, self.error / self.least - 1.0)


def best_for_gaussian(gram: Floats, *, progress: Progress = lambda fraction: None) -> Certified:
    """Minimise tr(G X^-1) over positive definite X with diag(X) <= 1: the matrix mechanism under Gaussian noise.

    Statement:
        For every y > 0 with Y = diag(y), and s = tr((Y^1/2 G Y^1/2)^1/2), every feasible X has
            tr(G X^-1) >= s^2 / sum(y).
        The bound is met by X = Y^-1/2 (Y^1/2 G Y^1/2)^1/2 Y^-1/2 when its diagonal is 1.
        (For feasible X, tr(G X^-1) + sum(y) >= tr(G X^-1) + tr(Y X) >= 2 s, the last by the arithmetic and geometric
        means of matrices; scaling y by t and maximising over t gives the bound. y = 1 is the singular value bound.)
    Source: Li & Miklau, Optimal error of query sets under the differentially-private matrix mechanism, ICDT 2013
        (the singular value bound, which is y = 1); Denisov, McMahan, Rush, Smith & Thakurta, arXiv:2202.08312v2,
        section 3 (the optimum as a fixed point). The bound for every y is derived in the statement.
    Assumes: G symmetric and positive semidefinite, not zero.
    Direction: `least` is a lower bound on the error of every strategy, evaluated in double precision; `error` is that
        of X, which is feasible. Neither is used for privacy.
    Checked by: tests/theorems/test_matrix_mechanism_optimum.py
    Departs from source: the iteration multiplies y by the square of X's diagonal, which takes half as many rounds,
        and begins at the root of G's diagonal; it keeps the best point and the best bound of all rounds.
    """
    cells = len(gram)
    used = np.flatnonzero(np.diag(gram) > 0)
    if 0 < len(used) < cells:
        # Cells in no query are in nobody's way: diag(X) is limited cell by cell, so they are measured by themselves.
        inner = best_for_gaussian(gram[np.ix_(used, used)], progress=progress)
        whole = np.eye(cells)
        whole[np.ix_(used, used)] = inner.inner_products
        return Certified(whole, inner.error, inner.least)
    ridge, before = 0.0, np.inf
    multipliers = np.sqrt(np.diag(gram))
    best = Certified(np.eye(cells), float(np.trace(gram)), 0.0)
    for turn in range(_ROUNDS):
        roots = np.sqrt(multipliers)
        values, vectors = np.linalg.eigh(roots[:, None] * gram * roots + np.diag(ridge * multipliers))
        values = np.sqrt(np.maximum(values, 0.0))
        # The root of a sum has at most the sum of the traces of the roots: what the ridge added at most is taken off.
        trace = max(0.0, float(values.sum()) - float(np.sqrt(ridge) * roots.sum()))
        least = max(best.least, trace**2 / float(multipliers.sum()))
        best = Certified(best.inner_products, best.error, least)
        if not values[0] > 1e-6 * values[-1] and ridge == 0.0:
            # Some combinations of cells are not asked for; a whisper of weight keeps X invertible.
            ridge = _RIDGE * float(np.trace(gram)) / cells
            continue
        diagonal = (vectors**2 @ values) / multipliers
        # Rescaled to unit diagonal, X is Z^-1 F Z^-1 and its inverse Z F^-1 Z, with F the root.
        scale = roots * np.sqrt(diagonal)
        turned = scale[:, None] * vectors
        error = float(np.sum(np.einsum("ij,ij->j", turned, gram @ turned) / values))
        if np.isfinite(error) and error < best.error:
            half = vectors / scale[:, None] * np.sqrt(values)
            best = Certified(half @ half.T, error, least)
        progress((turn + 1) / _ROUNDS)
        # Of this round: the first ones may be worse than cells alone, and on a good way.
        gap = error / least - 1.0
        if not best.gap > _TOLERANCE or not gap < _STALLED * before:
            break
        before = gap
        multipliers = multipliers * diagonal**2
    return best


# The part of every column that hat functions of so many cells take, best for prefixes and ranges alike within 0.3%.
_WIDTHS, _PARTS = (2.0, 3.0, 5.0, 8.0), (0.90, 0.825, 0.78, 0.72)


def widened(workload: Workload, most: int, *, bits: int, progress: Progress = lambda fraction: None) -> CellsAndSums:
    """B'B = a R'XR + (what that leaves of the diagonal), R at most `most` hat functions and X best for what they see.

    Neighbouring cells are asked for alike, so the best inner products are smooth: hat functions four cells apart lose
    3% of the variance, where blocks of four would lose 14%.
    """
    cells = workload.cells
    apart = math.ceil(cells / most)
    windows, weights = hat_functions(cells, [(float(apart), 1.0)])
    spread = windows.dense(weights)
    back = np.linalg.solve(spread @ spread.T, spread)  # of the weights of a query, what hat functions see of them
    reduced = back @ workload.gram_times(np.ascontiguousarray(back.T))
    best = best_for_gaussian(0.5 * (reduced + reduced.T), progress=progress)
    part = float(np.interp(apart, _WIDTHS, _PARTS))
    rows = np.linalg.cholesky(best.inner_products).T @ spread
    # The hat functions over a cell sum to 1, and X has unit diagonal, so no column of `rows` is longer than 1.
    own = np.sqrt(1.0 - part * np.minimum(1.0, np.sum(rows**2, axis=0)))
    starts = np.argmax(rows != 0, axis=1)
    whole = Windows(cells, starts, np.full(len(rows), cells))
    return on_grid("optimised", own, whole, whole.flat_weights(math.sqrt(part) * rows), "l2", bits=bits)

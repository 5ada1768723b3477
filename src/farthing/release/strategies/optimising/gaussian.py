"""The strategy of least error for Gaussian noise: a convex problem, solved with a certificate from its dual."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farthing.release.strategies.base import Floats
from farthing.release.strategies.optimising.descent import Progress

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


def best_for_gaussian(gram: Floats, *, told: Progress = lambda fraction: None) -> Certified:
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
    asked = np.flatnonzero(np.diag(gram) > 0)
    if 0 < len(asked) < cells:
        # Cells in no query are in nobody's way: diag(X) is limited cell by cell, so they are measured by themselves.
        inner = best_for_gaussian(gram[np.ix_(asked, asked)], told=told)
        whole = np.eye(cells)
        whole[np.ix_(asked, asked)] = inner.inner_products
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
        told((turn + 1) / _ROUNDS)
        gap = (
            error / least - 1.0
        )  # of this round: the first ones may be worse than cells alone, and on a good way
        if not best.gap > _TOLERANCE or not gap < _STALLED * before:
            break
        before = gap
        multipliers = multipliers * diagonal**2
    return best

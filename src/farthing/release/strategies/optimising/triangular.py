"""A square strategy with nothing below its diagonal: the factor of the inner products that a convex solver found."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from farthing.inference.nonnegative_norms import nonnegative_in_norm
from farthing.release.strategies.base import Floats, Integers, Variances
from farthing.release.strategies.matrix import MatrixEstimator, MatrixStrategy


class TriangularStrategy(MatrixStrategy):
    """An upper triangular matrix of whole numbers with a positive diagonal: always of full rank.

    >>> found = TriangularStrategy.of("example", np.array([[1.0, 0.6], [0.6, 1.0]]), bits=4)
    >>> found.matrix
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
        """Everything is determined."""
        return None


class TriangularEstimator(MatrixEstimator):
    """Least squares for a triangle of independent measurements of one variance."""

    def nonnegative(self, measured: Sequence[NDArray[np.generic]]) -> Floats:
        """The cells >= 0 that fit the measured numbers best."""
        triangle = self._strategy.matrix.astype(float)
        diagonal = np.einsum("ij,ij->j", triangle, triangle)
        return nonnegative_in_norm(
            self.estimate(measured), lambda x: np.asarray(triangle.T @ (triangle @ x)), diagonal
        )

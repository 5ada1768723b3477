"""A strategy given by a matrix of whole numbers: one level, least squares by dense algebra."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.matrix.strategies.strategy import (
    Estimator,
    Floats,
    Integers,
    Level,
    Norm,
    Strategy,
    Variances,
    check_dense,
)

if TYPE_CHECKING:
    from farthing.matrix.workloads.workload import Workload

_LARGEST_ENTRY = 2**31  # with cells below 2^31 no sum of the exact numbers can overflow
_RANK_TOLERANCE = 1e-10


class MatrixStrategy(Strategy):
    """Measures B x for a matrix B of whole numbers, in one level.

    Real weights are put on a fine whole grid first (`on_grid`), so that B x is exact and the sensitivity is that of
    the very numbers that are measured.

    Args:
        name: The name of the strategy.
        matrix: B, whole numbers, one column for each cell.
        shape: The shape of the domain; one axis by default.

    Raises:
        InvalidValue: If the matrix is not of whole numbers, or too large for exact sums.

    Statement:
        Adding or removing a row changes one cell by 1 and B x by one column of B, so B x moves by at most the largest
        column norm of B, in l1 and in l2. With independent noise of mean zero and variance v on every number, the
        least-squares estimate (B'B)^+ B'y answers every query that B x determines without bias, and the queries W
        with a total variance of v tr(W (B'B)^+ W').
    Source: Li, Miklau, Hay, McGregor & Rastogi, VLDB Journal 24 (2015), Propositions 3 and 4 (the matrix mechanism);
        Aitken 1935 for least squares.
    Assumes: whole cells and coefficients; neighbours differ by one row.
    Direction: sensitivities are exact, the l2 norm rounded up; variances up to rounding; a workload that B x does not
        determine is refused.
    Checked by: tests/theorems/test_strategy_matrix.py

    >>> strategy = MatrixStrategy.on_grid("weighted", np.array([[0.5, 0.5], [0.5, -0.25]]), bits=4)
    >>> strategy.matrix
    array([[16, 16],
           [16, -8]])
    >>> strategy.levels
    (Level(name='weighted', size=2, l1=32, l2_squared=512),)
    """

    def __init__(self, name: str, matrix: NDArray[np.integer], shape: tuple[int, ...] | None = None) -> None:
        array = np.array(matrix)
        if array.ndim != 2 or array.size == 0 or array.dtype.kind not in "iu":
            raise InvalidValue("matrix", array.dtype, "must be a non-empty table of whole numbers")
        # Not by np.abs: the size of the least int64 is negative there, and its sensitivity would be too.
        if not (int(array.min()) >= -_LARGEST_ENTRY and int(array.max()) <= _LARGEST_ENTRY):
            raise InvalidValue("matrix", "entries", "must be at most 2^31 in size", "use a coarser grid")
        self.name = name
        self.matrix = array.astype(np.int64)
        self.matrix.setflags(write=False)
        self.shape = (array.shape[1],) if shape is None else tuple(shape)
        if self.cells != array.shape[1]:
            raise InvalidValue("shape", shape, f"must hold {array.shape[1]} cells, one for each column")

    @classmethod
    def on_grid(
        cls, name: str, weights: Floats, shape: tuple[int, ...] | None = None, *, bits: int = 20
    ) -> MatrixStrategy:
        """The strategy whose weights are `weights`, scaled so that the largest is 2^bits and rounded.

        Args:
            name: The name of the strategy.
            weights: Real weights, one column for each cell.
            shape: The shape of the domain; one axis by default.
            bits: The largest weight becomes 2^bits.

        Returns:
            The strategy.
        """
        return cls(name, whole_weights(weights, bits), shape)

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """One level; its sensitivities are the largest column norms, exact."""
        l1 = int(np.abs(self.matrix).sum(axis=0).max())
        # Python's whole numbers: sums of squares of entries up to 2^31 would overflow int64.
        squares = [sum(int(entry) ** 2 for entry in column[column != 0]) for column in _largest_columns(self.matrix)]
        return (Level(self.name, self.matrix.shape[0], l1, max(squares)),)

    @cached_property
    def reach(self) -> int:
        """The largest sum of absolute coefficients of a row."""
        return int(np.abs(self.matrix).sum(axis=1).max())

    def exact(self, cells: Integers) -> list[Integers]:
        """B x, in whole numbers."""
        return [self.matrix @ np.asarray(cells, dtype=np.int64).ravel()]

    def shares(self, workload: Workload, norm: Norm) -> Floats:
        """Everything for the one level."""
        return np.ones(1)

    def fit(self, variances: Variances) -> Estimator:
        """Least squares by dense algebra."""
        return MatrixEstimator(self, float(self.check_variances(variances)[0]))

    @cached_property
    def pseudo_inverse(self) -> Floats:
        """The pseudo-inverse of B'B, computed once."""
        check_dense(self.cells)
        dense = self.matrix.astype(float)
        return np.linalg.pinv(dense.T @ dense, rcond=_RANK_TOLERANCE, hermitian=True)

    @cached_property
    def projector(self) -> Floats | None:
        """Onto what B x determines: (B'B)^+ B'B; None where that is everything."""
        dense = self.matrix.astype(float)
        if len(dense) >= self.cells and np.linalg.matrix_rank(dense) == self.cells:
            return None
        return np.asarray(self.pseudo_inverse @ (dense.T @ dense))

    def check_answerable(self, workload: Workload) -> None:
        """Refuse a workload that asks for what B x does not determine: no finite variance would be true.

        Args:
            workload: The queries.

        Raises:
            InvalidValue: If a query is not determined.
        """
        if self.projector is None:
            return
        gram = workload.gram()
        if not same_numbers(gram @ self.projector, gram):
            rule = "does not measure enough to answer this workload"
            raise InvalidValue("strategy", self.name, rule, "use another one")

    def __getstate__(self) -> dict[str, object]:
        return {"name": self.name, "matrix": self.matrix, "shape": self.shape}


class MatrixEstimator(Estimator):
    """Least squares for a matrix of independent measurements of one variance."""

    def __init__(self, strategy: MatrixStrategy, noise_variance: float) -> None:
        self._strategy = strategy
        self._variance = noise_variance
        self.cells = strategy.cells

    def estimate(self, measured: Sequence[NDArray[np.generic]]) -> Floats:
        (values,) = measured
        back: Floats = self._strategy.matrix.T.astype(float) @ np.asarray(values, dtype=float)
        estimate: Floats = self._strategy.pseudo_inverse @ back
        return estimate

    def total_variance(self, workload: Workload) -> float:
        """tr(W C W') = tr(C W'W)."""
        self._strategy.check_answerable(workload)
        return float(np.sum(self.covariance() * workload.gram()))

    def query_variances(self, workload: Workload) -> Floats:
        self._strategy.check_answerable(workload)
        return np.asarray(workload.query_variances(self.covariance()))

    def variance(self, query: Floats) -> float:
        flat = np.asarray(query, dtype=float).ravel()
        projector = self._strategy.projector
        if projector is not None and not same_numbers(projector @ flat, flat):
            return np.inf  # part of it was never measured
        return float(flat @ self._strategy.pseudo_inverse @ flat) * self._variance

    def covariance(self) -> Floats:
        """(B'B)^+ times the variance of the noise."""
        covariance: Floats = self._strategy.pseudo_inverse * self._variance
        return covariance

    def coefficients(self, query: Floats) -> list[Floats]:
        flat = np.asarray(query, dtype=float).ravel()
        return [np.asarray(self._strategy.matrix @ (self._strategy.pseudo_inverse @ flat))]


def whole_weights(weights: Floats, bits: int) -> Integers:
    """Real weights as whole numbers, scaled so that the largest in size is 2^bits."""
    array = np.asarray(weights, dtype=float)
    largest = float(np.abs(array).max(initial=0.0))
    if not 0 < largest < np.inf:
        raise InvalidValue("weights", largest, "must be finite numbers, not all zero")
    return np.rint(array * (2.0**bits / largest)).astype(np.int64)


def same_numbers(left: Floats, right: Floats) -> bool:
    """Equal up to rounding, next to the largest entry."""
    return bool(np.max(np.abs(left - right), initial=0.0) <= 1e-6 * np.max(np.abs(right), initial=0.0))


def _largest_columns(matrix: Integers) -> list[Integers]:
    """The columns that may have the largest l2 norm: all within rounding of the largest in doubles."""
    norms = np.einsum("ij,ij->j", matrix.astype(float), matrix.astype(float))
    return [matrix[:, place] for place in np.flatnonzero(norms >= norms.max() * (1 - 1e-9))]

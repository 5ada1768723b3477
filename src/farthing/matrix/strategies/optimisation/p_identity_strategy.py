"""A strategy of cells beside a few weighted sums of them, in whole numbers; its least squares is never a big solve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.inference.nonnegative import nonnegative_in_norm
from farthing.matrix.strategies.optimisation.initial_weights import gram_bands
from farthing.matrix.strategies.optimisation.p_identity_error import Windows
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
from farthing.matrix.workloads.workload import Workload

_LARGEST_WEIGHT = 2**31


class CellsAndSums(Strategy):
    """Measures every cell times a whole weight of its own, and sums of cells with whole weights: B = [D; T].

    The sensitivities are those of the whole numbers that are measured: however the weights were found, privacy does
    not rest on it.

    Statement:
        With noise of variance v on every number, least squares has covariance v (D^2 + T'T)^-1, which is
            v (D^-2 - U'U),    U = L^-1 T D^-2,    L L' = I + T D^-2 T'.
    Source: Woodbury's identity; McKenna et al., arXiv:1808.03537v1, section 5, use it for the same shape.
    Assumes: all weights in D are >= 1; independent noise of one variance.
    Direction: equality up to rounding of the estimate; the measured numbers and sensitivities are exact.
    Checked by: tests/theorems/test_matrix_mechanism_optimum.py

    >>> windows = Windows(4, np.array([0]), np.array([3]))
    >>> strategy = CellsAndSums("example", np.array([2, 2, 2, 4]), windows, np.array([1, 2, 1]))
    >>> strategy.levels
    (Level(name='example', size=5, l1=4, l2_squared=16),)
    >>> strategy.exact(np.array([1, 0, 5, 2]))
    [array([ 2,  0, 10,  8,  6])]
    """

    def __init__(self, name: str, own: Integers, windows: Windows, weights: Integers) -> None:
        self.name = name
        self.own = np.array(own, dtype=np.int64)
        self.windows = windows
        self.weights = np.array(weights, dtype=np.int64)
        self.shape = (len(self.own),)
        _check(self.own, windows, self.weights)
        self.own.setflags(write=False)
        self.weights.setflags(write=False)
        self._totals: dict[str, float] = {}

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """One level; its sensitivities are the largest column norms, exact."""
        l1 = np.abs(self.own)
        rough = self.own.astype(float) ** 2
        for start, stop, weights in self._spans:
            l1[start:stop] += np.abs(weights)
            rough[start:stop] += weights.astype(float) ** 2
        squared = 0  # of Python's whole numbers: squares of large weights would overflow
        for cell in np.flatnonzero(rough >= rough.max() * (1 - 1e-9)).tolist():
            column = [int(self.own[cell])]
            column += [int(weights[cell - a]) for a, b, weights in self._spans if a <= cell < b]
            squared = max(squared, sum(weight**2 for weight in column))
        return (Level(self.name, self.cells + self.windows.rows, int(l1.max()), squared),)

    @cached_property
    def reach(self) -> int:
        """The largest sum of absolute coefficients of a row."""
        return max(int(np.abs(self.own).max()), *(int(np.abs(w).sum()) for _, _, w in self._spans), 1)

    def exact(self, cells: Integers) -> list[Integers]:
        """D x and T x, in whole numbers."""
        flat = np.asarray(cells, dtype=np.int64).ravel()
        sums = [int(weights @ flat[start:stop]) for start, stop, weights in self._spans]
        return [np.concatenate([self.own * flat, np.array(sums, dtype=np.int64)])]

    def shares(self, workload: Workload, norm: Norm) -> Floats:
        """Everything for the one level."""
        return np.ones(1)

    def fit(self, variances: Variances) -> CellsAndSumsEstimator:
        """Least squares by Woodbury's identity."""
        return CellsAndSumsEstimator(self, float(self.check_variances(variances)[0]))

    @property
    def matrix(self) -> Integers:
        """All rows of B, cells and sums, as one matrix."""
        table = np.zeros((self.windows.rows, self.cells), dtype=np.int64)
        for row, (start, stop, weights) in zip(table, self._spans, strict=True):
            row[start:stop] = weights
        return np.concatenate([np.diag(self.own), table])

    @cached_property
    def sums(self) -> Floats:
        """The rows T as one dense matrix, one column for each cell."""
        return self.windows.dense(self.weights.astype(float))

    @cached_property
    def sparse_sums(self) -> Any:
        """The rows T as a sparse matrix, one column for each cell."""
        from scipy.sparse import csr_array

        return csr_array(self.sums)

    @cached_property
    def correction(self) -> Floats:
        """U, so that (B'B)^-1 is D^-2 - U'U."""
        from scipy.linalg import solve_triangular

        scaled = self.sums / self.own
        lower = np.linalg.cholesky(np.eye(self.windows.rows) + scaled @ scaled.T)
        return np.asarray(solve_triangular(lower, scaled / self.own, lower=True, check_finite=False))

    def unit_total(self, workload: Workload) -> float:
        """tr((B'B)^-1 W'W), kept for the next time."""
        if workload.digest not in self._totals:
            diagonal, _ = gram_bands(workload)
            cells = np.ascontiguousarray(self.correction.T)
            overlap = float(np.sum(cells * workload.gram_times(cells))) if cells.size else 0.0
            self._totals[workload.digest] = float(np.sum(diagonal / self.own.astype(float) ** 2)) - overlap
        return self._totals[workload.digest]

    @cached_property
    def _spans(self) -> list[tuple[int, int, Integers]]:
        offsets = self.windows.offsets.tolist()
        pieces = zip(self.windows.starts.tolist(), self.windows.stops.tolist(), offsets, strict=False)
        return [(start, stop, self.weights[at : at + stop - start]) for start, stop, at in pieces]

    def __getstate__(self) -> dict[str, object]:
        names = ("name", "own", "windows", "weights", "shape")
        return {**{name: self.__dict__[name] for name in names}, "_totals": {}}


class CellsAndSumsEstimator(Estimator):
    """Least squares for cells beside sums."""

    def __init__(self, strategy: CellsAndSums, noise_variance: float) -> None:
        self._strategy = strategy
        self._variance = noise_variance
        self._squares = strategy.own.astype(float) ** 2
        self.cells = strategy.cells

    def estimate(self, measured: Sequence[NDArray[np.generic]]) -> Floats:
        (values,) = measured
        numbers = np.asarray(values, dtype=float)
        own, sums = numbers[: self.cells], numbers[self.cells :]
        return self._unit_times(self._strategy.own * own + self._strategy.sums.T @ sums)

    def nonnegative(self, measured: Sequence[NDArray[np.generic]]) -> Floats:
        """The cells >= 0 that fit the measured numbers best."""
        own, sums = self._squares, self._strategy.sparse_sums
        diagonal = own + np.asarray((sums * sums).sum(axis=0)).ravel()
        return nonnegative_in_norm(
            self.estimate(measured), lambda x: np.asarray(own * x + sums.T @ (sums @ x)), diagonal
        )

    def total_variance(self, workload: Workload) -> float:
        return self._strategy.unit_total(workload) * self._variance

    def query_variances(self, workload: Workload) -> Floats:
        return workload.query_variances(self.covariance())

    def variance(self, query: Floats) -> float:
        flat = np.asarray(query, dtype=float).ravel()
        return float(flat @ self._unit_times(flat)) * self._variance

    def covariance(self) -> Floats:
        check_dense(self.cells)
        matrix = -self._variance * (self._strategy.correction.T @ self._strategy.correction)
        places = np.arange(self.cells)
        matrix[places, places] += self._variance / self._squares
        return np.asarray(matrix)

    def coefficients(self, query: Floats) -> list[Floats]:
        cells = self._unit_times(np.asarray(query, dtype=float).ravel())
        return [np.concatenate([self._strategy.own * cells, self._strategy.sums @ cells])]

    def _unit_times(self, vector: Floats) -> Floats:
        correction = self._strategy.correction
        return np.asarray(vector / self._squares - correction.T @ (correction @ vector))


def _check(own: Integers, windows: Windows, weights: Integers) -> None:
    starts, stops = windows.starts, windows.stops
    if own.ndim != 1 or not len(own) == windows.cells >= 1 or not bool(np.all((own >= 1) & (own <= _LARGEST_WEIGHT))):
        raise InvalidValue("own", own.shape, "must be one whole weight >= 1 and <= 2^31 for each cell")
    if not (len(starts) == len(stops) and bool(np.all((starts >= 0) & (starts < stops) & (stops <= len(own))))):
        raise InvalidValue("windows", starts.shape, "must be ranges of cells")
    lengths = int(np.sum(stops - starts))
    # Compared on both sides: np.abs leaves the least int64 negative.
    small = bool(np.all((weights >= -_LARGEST_WEIGHT) & (weights <= _LARGEST_WEIGHT)))
    if weights.shape != (lengths,) or not small:
        raise InvalidValue("weights", weights.shape, "must be whole numbers, one for each cell of each window")


def on_grid(name: str, own: Floats, windows: Windows, weights: Floats, norm: Norm, *, bits: int) -> CellsAndSums:
    """Real weights as whole ones: the largest column norm becomes about 2^bits, and no cell is left without a weight.

    >>> windows = Windows(2, np.array([0]), np.array([2]))
    >>> on_grid("example", np.ones(2), windows, np.array([1.0, 3.0]), "l1", bits=4).matrix
    array([[ 4,  0],
           [ 0,  4],
           [ 4, 12]])
    """
    power = 1 if norm == "l1" else 2
    norms = np.abs(own) ** power
    for start, stop, row in zip(windows.starts, windows.stops, windows.split(weights), strict=True):
        norms[start:stop] += np.abs(row) ** power
    largest = math.pow(float(norms.max()), 1 / power)
    if not 0 < largest < math.inf:
        raise InvalidValue("weights", largest, "must be finite numbers, not all zero")
    scale = 2.0**bits / largest
    whole = np.maximum(1, np.rint(np.abs(own) * scale)).astype(np.int64)
    return CellsAndSums(name, whole, windows, np.rint(weights * scale).astype(np.int64))

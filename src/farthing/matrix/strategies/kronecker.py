"""Products of strategies, one for each axis: measured as one level of whole numbers, estimated axis by axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.matrix.strategies.matrix_strategy import MatrixStrategy, same_numbers
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
from farthing.matrix.workloads.marginal_workload import Marginals
from farthing.matrix.workloads.named_workloads import Product, Union, union
from farthing.matrix.workloads.workload import Workload

_BITS = 24  # of the weights of a whole product, shared among its axes
_EXACT = 2**53  # sums below this are exact in doubles


class KroneckerStrategy(Strategy):
    """Measures (B1 x B2 x ...) x for one whole matrix B_a over each axis.

    Statement:
        The column of the product that belongs to cell (c1, c2, ...) is the Kronecker product of the columns c_a of the
        B_a, so its l1 norm and its l2 norm are the products of theirs, and so are the sensitivities. With noise of one
        variance v, least squares is (B1^+ x B2^+ x ...) y, and its covariance v (B1'B1)^+ x (B2'B2)^+ x ...
    Source: McKenna, Miklau, Hay & Machanavajjhala, arXiv:1808.03537v1, section 4.4 (sensitivity and inference of
        implicit products).
    Assumes: independent noise of one variance.
    Direction: equality, up to rounding of the estimate; the measured numbers and sensitivities are exact.
    Checked by: tests/theorems/test_strategy_matrix.py

    >>> halves = MatrixStrategy("halves", np.array([[1, 1], [1, -1]]))
    >>> cells = MatrixStrategy("cells", np.eye(3, dtype=np.int64))
    >>> both = KroneckerStrategy("both", (halves, cells))
    >>> both.shape, both.levels
    ((2, 3), (Level(name='both', size=6, l1=2, l2_squared=2),))
    >>> both.exact(np.array([[1, 2, 3], [4, 5, 6]]))
    [array([ 5,  7,  9, -3, -3, -3])]
    """

    def __init__(self, name: str, factors: Sequence[MatrixStrategy]) -> None:
        if not factors:
            raise InvalidValue("factors", factors, "must be one or more strategies")
        self.name = name
        self.factors = tuple(factors)
        self.shape = tuple(size for factor in self.factors for size in factor.shape)

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """One level, whose sensitivities are products."""
        own = [factor.levels[0] for factor in self.factors]
        size, l1, l2_squared = (
            math.prod(getattr(level, what) for level in own) for what in ("size", "l1", "l2_squared")
        )
        return (Level(self.name, size, l1, l2_squared),)

    @cached_property
    def reach(self) -> int:
        """The product of the factors' own."""
        return math.prod(factor.reach for factor in self.factors)

    def exact(self, cells: Integers) -> list[Integers]:
        """The numbers, in whole arithmetic or in doubles that hold them exactly."""
        flat = np.asarray(cells, dtype=np.int64)
        largest = int(np.abs(flat).max(initial=0))
        kind: Any = np.float64 if largest * self.reach < _EXACT else np.int64
        steps = [factor.matrix.astype(kind) for factor in self.factors]
        return [_along(flat.astype(kind), steps, self._sizes).astype(np.int64)]

    def shares(self, workload: Workload, norm: Norm) -> Floats:
        """Everything for the one level."""
        return np.ones(1)

    def fit(self, variances: Variances) -> KroneckerEstimator:
        """Least squares, axis by axis."""
        return KroneckerEstimator(self, float(self.check_variances(variances)[0]))

    @property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(factor.cells for factor in self.factors)


class KroneckerEstimator(Estimator):
    """Least squares for a product."""

    def __init__(self, strategy: KroneckerStrategy, noise_variance: float) -> None:
        self._strategy = strategy
        self._variance = noise_variance
        self._inverses = [factor.pseudo_inverse for factor in strategy.factors]
        self.cells = strategy.cells

    def estimate(self, measured: Sequence[NDArray[np.generic]]) -> Floats:
        """(B'B)^+ B' along every axis."""
        steps = [
            inverse @ factor.matrix.T.astype(float)
            for inverse, factor in zip(self._inverses, self._strategy.factors, strict=True)
        ]
        sizes = [factor.matrix.shape[0] for factor in self._strategy.factors]
        return np.asarray(_along(np.asarray(measured[0], dtype=float), steps, sizes))

    def total_variance(self, workload: Workload) -> float:
        """Products of traces, summed over the products that the workload consists of."""
        summed: float = self._folded(
            workload,
            _trace_of,
            math.prod,
            lambda w, variances: float(np.dot(w, variances)),
        )
        return summed * self._variance

    def query_variances(self, workload: Workload) -> Floats:
        """Products of the variances over each axis."""
        variances = self._folded(
            workload,
            lambda one, inverse: one.query_variances(inverse),
            lambda each: reduce(lambda left, right: np.multiply.outer(left, right).ravel(), each),
            lambda _, each: np.concatenate(each),
        )
        return np.asarray(variances * self._variance)

    def variance(self, query: Floats) -> float:
        """q' C q, with C applied axis by axis."""
        flat = np.asarray(query, dtype=float).ravel()
        projectors = [factor.projector for factor in self._strategy.factors]
        if any(projector is not None for projector in projectors):
            whole = [
                np.eye(factor.cells) if projector is None else projector
                for projector, factor in zip(projectors, self._strategy.factors, strict=True)
            ]
            if not same_numbers(_along(flat, whole, self._strategy._sizes), flat):
                return math.inf  # part of it was never measured
        return float(flat @ _along(flat, self._inverses, self._strategy._sizes)) * self._variance

    def covariance(self) -> Floats:
        """The Kronecker product of the axes' own."""
        check_dense(self.cells)
        return np.asarray(reduce(lambda left, right: np.asarray(np.kron(left, right)), self._inverses) * self._variance)

    def coefficients(self, query: Floats) -> list[Floats]:
        """B (B'B)^+ along every axis."""
        steps = [
            factor.matrix.astype(float) @ inverse
            for inverse, factor in zip(self._inverses, self._strategy.factors, strict=True)
        ]
        return [np.asarray(_along(np.asarray(query, dtype=float), steps, self._strategy._sizes))]

    def _folded(
        self,
        workload: Workload,
        one: Callable[[Workload, Floats], Any],
        multiplied: Callable[[list[Any]], Any],
        added: Callable[[list[float], list[Any]], Any],
        first: int = 0,
    ) -> Any:
        """`one` of every workload that lies over one factor from axis `first` on, multiplied and added up."""
        starts = np.cumsum([0, *(len(factor.shape) for factor in self._strategy.factors)]).tolist()
        place = starts.index(first) if first in starts else -1
        if place >= 0 and workload.shape == self._strategy.factors[place].shape:
            self._strategy.factors[place].check_answerable(workload)
            return one(workload, self._inverses[place])
        if isinstance(workload, Product):
            axes = np.cumsum([first, *(len(factor.shape) for factor in workload.factors)]).tolist()
            pairs = zip(workload.factors, axes, strict=False)
            return multiplied([self._folded(part, one, multiplied, added, axis) for part, axis in pairs])
        if isinstance(workload, Union | Marginals):
            weights = list(workload.weights) if isinstance(workload, Union) else [1.0] * len(workload.parts)
            parts = [self._folded(part, one, multiplied, added, first) for part in workload.parts]
            return added([weight**2 for weight in weights], parts)
        raise InvalidValue(
            "workload", type(workload).__name__, "must consist of products over the axes of the strategy"
        )


def product_of_axes(
    name: str, workload: Workload, norm: Norm, maker: Callable[[Workload, Norm], Strategy]
) -> KroneckerStrategy:
    """The product of one strategy for each axis, each made for what the workload asks of that axis.

    >>> from farthing.matrix.strategies.tree_strategies import weighted_tree
    >>> from farthing.matrix.workloads import identity, prefix, product
    >>> workload = product(prefix(64), identity(10))
    >>> strategy = product_of_axes("tree", workload, "l1", weighted_tree)
    >>> [factor.matrix.shape for factor in strategy.factors]
    [(69, 64), (10, 10)]
    """
    bits = max(6, _BITS // len(workload.shape))
    factors = []
    for axis in range(len(workload.shape)):
        own = axis_workload(workload, axis)
        factors.append(flattened(maker(own, norm), own, norm, bits))
    return KroneckerStrategy(name, factors)


def flattened(strategy: Strategy, workload: Workload, norm: Norm, bits: int) -> MatrixStrategy:
    """A strategy of several levels as one matrix of whole weights: the same noise for all, larger numbers for more.

    >>> from farthing.matrix.strategies.tree_strategies import TreeStrategy
    >>> from farthing.matrix.workloads import prefix
    >>> flattened(TreeStrategy("tree", 3, (2, 1)), prefix(3), "l2", bits=3).matrix
    array([[3, 3, 0],
           [0, 0, 3],
           [4, 0, 0],
           [0, 4, 0],
           [0, 0, 4]])
    """
    if isinstance(strategy, MatrixStrategy):
        return strategy
    check_dense(strategy.cells)
    shares = strategy.shares(workload, norm)
    sensitivities = np.array(
        [float(level.l1) if norm == "l1" else math.sqrt(level.l2_squared) for level in strategy.levels]
    )
    weights = (shares if norm == "l1" else np.sqrt(shares)) / sensitivities
    whole = np.rint(weights * (2.0**bits / weights.max())).astype(np.int64)
    columns = [strategy.exact(unit) for unit in np.eye(strategy.cells, dtype=np.int64)]
    rows = [
        weight * np.stack([column[level] for column in columns], axis=1) for level, weight in enumerate(whole.tolist())
    ]
    stacked = np.concatenate(rows)
    measured = stacked[np.any(stacked != 0, axis=1)]
    # Coarse steps are better where weights allow them: narrow discrete noise has less variance than continuous.
    return MatrixStrategy(strategy.name, measured // np.gcd.reduce(np.unique(measured)))


def axis_workload(workload: Workload, axis: int) -> Workload:
    """What a workload asks of one axis, as a workload over that axis alone.

    >>> from farthing.matrix.workloads import identity, marginals, prefix, product
    >>> axis_workload(product(prefix(64), identity(10)), 1).queries
    10
    >>> axis_workload(marginals((4, 3), way=1), 0).queries
    5
    """
    if len(workload.shape) == 1:
        return workload
    if isinstance(workload, Product):
        for factor in workload.factors:
            if axis < len(factor.shape):
                return axis_workload(factor, axis)
            axis -= len(factor.shape)
    if isinstance(workload, Union | Marginals):
        weights = workload.weights if isinstance(workload, Union) else (1.0,) * len(workload.parts)
        own = [axis_workload(part, axis) for part in workload.parts]
        # A part weighs as much as its other axes have energy.
        scaled = [
            weight * math.sqrt(part.trace / one.trace)
            for weight, part, one in zip(weights, workload.parts, own, strict=True)
        ]
        return union(*own, weights=[scale / max(scaled) for scale in scaled])
    raise InvalidValue("workload", type(workload).__name__, "must consist of products of one workload for each axis")


def _along(numbers: NDArray[Any], steps: Sequence[NDArray[Any]], sizes: Sequence[int]) -> NDArray[Any]:
    """Each matrix applied along its own axis; flat in and out."""
    block = numbers.reshape(tuple(sizes))
    for axis, step in enumerate(steps):
        block = np.moveaxis(np.tensordot(step, block, axes=(1, axis)), 0, axis)
    return np.ascontiguousarray(block).reshape(-1)


def _trace_of(workload: Workload, inverse: Floats) -> float:
    return float(np.sum(inverse * workload.gram()))

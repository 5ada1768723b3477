"""What every strategy has: whole-number levels of known sensitivity, and an estimator with exact variances.

A strategy measures sums of cells with whole coefficients, B_l x for one or more levels l. Every number of a level gets
noise of the same distribution. `shares` says how a budget is best divided over the levels for a workload, `fit` turns
the variances of the noise into the least-squares estimator. Nothing here sees a privacy budget or draws noise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.inference.nonnegative import nearest_nonnegative

if TYPE_CHECKING:
    from farthing.matrix.workloads.workload import Workload

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Norm = Literal["l1", "l2"]
Variances = Sequence[float] | Floats

MOST_DENSE_CELLS = 8192  # a dense covariance of more cells would take more than half a gigabyte


@dataclass(frozen=True, slots=True)
class Level:
    """Numbers measured with noise of one distribution: how many, and how far one row moves all of them together.

    Attributes:
        name: What is measured, for people.
        size: How many numbers.
        l1: The largest sum of absolute coefficients of any cell, exactly.
        l2_squared: The largest sum of squared coefficients of any cell, exactly.

    >>> Level("cells", size=100, l1=1, l2_squared=1).l2
    1.0
    """

    name: str
    size: int
    l1: int
    l2_squared: int

    @property
    def l2(self) -> float:
        """The l2 sensitivity, rounded up where it is no whole number."""
        root = math.isqrt(self.l2_squared)
        return float(root) if root * root == self.l2_squared else math.nextafter(math.sqrt(self.l2_squared), math.inf)


class Estimator(ABC):
    """Least squares for one strategy and one choice of noise: cells from measurements, and exact variances."""

    cells: int

    @abstractmethod
    def estimate(self, measured: Sequence[NDArray[np.generic]]) -> Floats:
        """The least-squares cells, flat in C order, from the measured numbers of every level.

        Args:
            measured: The measured numbers, one array for each level.

        Returns:
            One number for each cell.
        """

    @abstractmethod
    def total_variance(self, workload: Workload) -> float:
        """The sum over the queries of the variance of their answers.

        Args:
            workload: The queries.

        Returns:
            The sum; infinite where a query is not determined.
        """

    @abstractmethod
    def query_variances(self, workload: Workload) -> Floats:
        """The variance of every answer of `workload`.

        Args:
            workload: The queries.

        Returns:
            One variance for each query.
        """

    @abstractmethod
    def variance(self, query: Floats) -> float:
        """The variance of one more linear query, given by its coefficients over all cells.

        Args:
            query: One coefficient for each cell.

        Returns:
            The variance; infinite where the query is not determined.
        """

    @abstractmethod
    def covariance(self) -> Floats:
        """The covariance of the estimated cells as a dense matrix; refused above 8,192 cells."""

    def nonnegative(self, measured: Sequence[NDArray[np.generic]]) -> Floats:
        """Cells >= 0 near the estimate, with its total; strategies that can weigh their measurements do better.

        Args:
            measured: The measured numbers, one array for each level.

        Returns:
            One number >= 0 for each cell.
        """
        estimate = self.estimate(measured)
        return nearest_nonnegative(estimate, total=max(0.0, float(estimate.sum())))

    def coefficients(self, query: Floats) -> list[Floats] | None:
        """How much each measured number counts in the answer of `query`, level by level; None if nobody works it out.

        The distribution of an answer's error follows from them; without them it is taken to be normal.

        Args:
            query: One coefficient for each cell.

        Returns:
            One array for each level; None if nobody works it out.
        """
        return None


class Strategy(ABC):
    """What is measured: levels of whole-number sums of cells. Frozen; made of public parameters only.

    >>> from farthing.matrix.strategies import MatrixStrategy
    >>> sums = MatrixStrategy("sums", np.array([[1, 1], [1, 0]]))
    >>> sums.levels
    (Level(name='sums', size=2, l1=2, l2_squared=2),)
    >>> sums.exact(np.array([3, 4]))
    [array([7, 3])]
    """

    name: str
    shape: tuple[int, ...]
    made_for: Norm | None = None
    """The norm whose noise it was made for, l1 (Laplace) or l2 (Gaussian): the other is not tried. None: either."""

    @property
    @abstractmethod
    def levels(self) -> tuple[Level, ...]:
        """What is measured, in the order of `exact`."""

    @property
    def cells(self) -> int:
        """How many cells the domain has."""
        return math.prod(self.shape)

    @property
    def reach(self) -> int:
        """No measured number has a larger sum of absolute coefficients: decides where private counts are clamped."""
        return max(level.l1 for level in self.levels) * self.cells

    @abstractmethod
    def exact(self, cells: Integers) -> list[Integers]:
        """The true numbers of every level: private, to be handed to a mechanism and to nothing else.

        Args:
            cells: The private histogram.

        Returns:
            One array for each level.
        """

    @abstractmethod
    def shares(self, workload: Workload, norm: Norm) -> Floats:
        """The best division over the levels for `workload`: of epsilon (l1) or of mu squared (l2). Sums to 1.

        Args:
            workload: The queries.
            norm: "l1" for Laplace noise, "l2" for Gaussian noise.

        Returns:
            One share for each level.
        """

    @abstractmethod
    def fit(self, variances: Variances) -> Estimator:
        """The estimator when every number of level l has noise of variance `variances[l]`.

        Args:
            variances: One variance for each level; infinite where it is not measured.

        Returns:
            The estimator.
        """

    def unit_variances(self, workload: Workload, norm: Norm) -> Floats:
        """The noise variances of the best division at epsilon = 1 (l1) or mu = 1 (l2), of continuous noise.

        A level without a share has infinite variance.

        Args:
            workload: The queries.
            norm: "l1" for Laplace noise, "l2" for Gaussian noise.

        Returns:
            One variance for each level.
        """
        shares = self.shares(workload, norm)
        with np.errstate(divide="ignore"):
            if norm == "l1":
                return np.array([2.0 * level.l1**2 for level in self.levels]) / shares**2
            return np.array([float(level.l2_squared) for level in self.levels]) / shares

    def unit_error(self, workload: Workload, norm: Norm) -> float:
        """The total variance at epsilon = 1 (l1) or mu = 1 (l2): what strategies are compared by.

        Args:
            workload: The queries.
            norm: "l1" for Laplace noise, "l2" for Gaussian noise.

        Returns:
            The sum of the variances of all answers.

        >>> from farthing.matrix.strategies import MatrixStrategy
        >>> from farthing.matrix.workloads import prefix
        >>> round(MatrixStrategy("cells", np.eye(4, dtype=np.int64)).unit_error(prefix(4), "l1"), 9)
        20.0
        """
        return self.fit(self.unit_variances(workload, norm)).total_variance(workload)

    def check_variances(self, variances: Variances) -> Floats:
        """One variance a level: above 0, and not all infinite (infinite: the level is not measured).

        Args:
            variances: One variance for each level.

        Returns:
            The variances as an array.

        Raises:
            InvalidValue: If there are more or fewer than levels, or they are not of this form.
        """
        numbers = np.asarray(variances, dtype=float)
        if numbers.shape != (len(self.levels),):
            raise InvalidValue("variances", variances, f"must be {len(self.levels)}, one for each level")
        if not (np.all(numbers > 0) and np.any(np.isfinite(numbers))):
            raise InvalidValue("variances", variances, "must be numbers > 0, not all of them infinite")
        return numbers


def check_dense(cells: int) -> None:
    """Refuse a dense matrix over too many cells."""
    if not cells <= MOST_DENSE_CELLS:
        raise InvalidValue(
            "cells",
            cells,
            f"must be at most {MOST_DENSE_CELLS:,} for a dense covariance",
            "ask query by query",
        )

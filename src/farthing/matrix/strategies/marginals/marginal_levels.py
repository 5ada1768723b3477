"""What is measured of one set of columns: its table, taken in contrasts along some of the columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.inference.consistent_marginals import Subset, spread
from farthing.inference.noise_terms import Floats
from farthing.matrix.strategies.strategy import Integers, Level

_SATURATION = 2**62  # where the mechanisms clamp private numbers


@dataclass(frozen=True)
class MarginalLevel:
    """The table of `subset`, with the whole-number contrasts n I - 1 1' applied along the columns in `contrasts`.

    A column of two values has one contrast, first minus second, since the other is its negative. Along the remaining
    columns of the subset the table is measured cell by cell. With contrasts along all columns, a level measures the
    residual of the subset and nothing else.

    Args:
        subset: The columns of the table.
        sizes: How many values each of these columns has.
        contrasts: The columns along which contrasts are measured.

    Statement:
        One row moves the level by exactly prod l1_i in l1 and prod l2_i in squared l2 distance, whatever the row:
        (l1_i, l2_i) is (1, 1) for a plain column and for a contrast of two values, and (2(n-1), n(n-1)) for a
        contrast of n > 2 values. Noise of variance v in every number determines the residual of T, for contrasts
        <= T <= subset, with covariance (v / precision) times the projector that `residual` is, where the precision is
        the product of n^2 (contrast, n > 2), 2 (contrast, n = 2), 1 (plain, in T) and 1/n (plain, not in T).
    Source: own derivation, after Xiao, He, Zhang & Kifer (ResidualPlanner), arXiv:2305.08175v2, with n I - 1 1' in the
        place of their subtraction matrices. It is n times the projector, so that its columns have one norm, and
        dividing by n and projecting once more turns independent noise into noise of covariance v / n^2 times the
        projector, which they have to draw as correlated noise. Products over the columns follow factor by factor.
    Assumes: a row is in one cell of the table; noise independent and of one variance.
    Direction: equality; whole numbers throughout.
    Checked by: tests/theorems/test_residual_levels.py

    >>> level = MarginalLevel((0, 2), (2, 3), contrasts=(0, 2))
    >>> level.exact(np.array([[5, 1, 0], [2, 2, 2]]))
    array([ 9, -3, -6])
    >>> level.plain
    Level(name='0 x 2', size=3, l1=4, l2_squared=6)
    """

    subset: Subset
    sizes: tuple[int, ...]
    contrasts: Subset = ()

    @property
    def plain(self) -> Level:
        """Name, size and sensitivities, as every strategy has them."""
        return Level(
            " x ".join(map(str, self.subset)) or "total",
            math.prod(self.rows),
            math.prod(2 * (n - 1) if n > 2 else 1 for n in self._contrasted),
            math.prod(n * (n - 1) if n > 2 else 1 for n in self._contrasted),
        )

    @property
    def rows(self) -> tuple[int, ...]:
        """How many numbers are measured along each column of the subset."""
        return tuple(
            1 if column in self.contrasts and n == 2 else n for column, n in zip(self.subset, self.sizes, strict=True)
        )

    @property
    def reach(self) -> int:
        """No measured number has a larger sum of absolute coefficients over the table."""
        return math.prod(2 * (n - 1) for n in self._contrasted)

    def exact(self, table: NDArray[Any]) -> Integers:
        """The true numbers, flat; numbers beyond +-2^62 are clamped, which moves no two tables further apart.

        Args:
            table: The private table of the subset.

        Returns:
            The numbers to be measured.
        """
        numbers = np.asarray(table).reshape(self.sizes)
        # Passes stay below max|cell| * reach; beyond int64 Python's whole numbers take over.
        largest = max(abs(int(numbers.max(initial=0))), abs(int(numbers.min(initial=0))))
        exact = largest * max(1, self.reach) < _SATURATION
        numbers = numbers.astype(np.int64 if exact else object)
        for axis, (column, n) in enumerate(zip(self.subset, self.sizes, strict=True)):
            if column not in self.contrasts:
                continue
            if n == 2:
                first, second = np.split(numbers, 2, axis=axis)
                numbers = first - second
            else:
                numbers = n * numbers - numbers.sum(axis=axis, keepdims=True)
        return np.asarray(np.clip(numbers, -_SATURATION, _SATURATION), dtype=np.int64).ravel()

    def precision(self, part: Subset) -> float:
        """How precisely the residual of `part` is known at noise variance 1: 0 if not at all.

        Args:
            part: A set of columns.

        Returns:
            One over the variance.
        """
        if not set(self.contrasts) <= set(part) <= set(self.subset):
            return 0.0
        factors = (
            (2.0 if n == 2 else float(n) ** 2) if column in self.contrasts else 1.0 if column in part else 1.0 / n
            for column, n in zip(self.subset, self.sizes, strict=True)
        )
        return math.prod(factors)

    def residual(self, measured: NDArray[Any], part: Subset) -> Floats:
        """The residual of `part` as these measured numbers alone would have it, centred along contrasts only.

        Args:
            measured: The measured numbers of this level.
            part: A set of columns.

        Returns:
            The table of the residual.
        """
        numbers = np.asarray(measured, dtype=float).reshape(self.rows)
        away = []
        for axis, (column, n) in enumerate(zip(self.subset, self.sizes, strict=True)):
            if column in self.contrasts:
                both = [numbers, -numbers]
                numbers = np.concatenate(both, axis=axis) / 2 if n == 2 else numbers / n
            elif column not in part:
                away.append(axis)
        return numbers.sum(axis=tuple(away)) if away else numbers

    def residual_transposed(self, values: Floats, part: Subset) -> Floats:
        """The transpose of `residual`: by how much each measured number enters a sum with these weights; flat.

        Args:
            values: One weight for each cell of the residual's table.
            part: A set of columns.

        Returns:
            One number for each measured number.
        """
        numbers = spread(values, part, self.subset)
        for axis, (column, n) in enumerate(zip(self.subset, self.sizes, strict=True)):
            if column in self.contrasts:
                first, *others = np.split(numbers, 2, axis=axis) if n == 2 else (numbers / n,)
                numbers = (first - others[0]) / 2 if others else first
        return np.broadcast_to(numbers, self.rows).ravel()

    @property
    def _contrasted(self) -> list[int]:
        return [n for column, n in zip(self.subset, self.sizes, strict=True) if column in self.contrasts]

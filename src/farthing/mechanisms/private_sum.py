"""A private sum of bounded rows, exact before the noise: clamp, round to the grid, add integers, add noise.

Floating-point sums depend on the order of rows, and past 2^53 one row can move them by more than its own size. Here
rows are whole steps before they are added, and added without overflow, so a row moves the sum by exactly its own steps.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms.additive import DiscreteLaplace
from farthing.mechanisms.mechanism import SATURATION, Mechanism, checked_integers, read_array
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.value_grid import Grid
from farthing.privacy.events import Event, checked_mechanism_epsilon, checked_real


@dataclass(frozen=True)
class BoundedSum(Mechanism):
    """The sum of rows clamped to [lower, upper], epsilon-DP for one row added or removed (or replaced).

    Missing rows (NaN) add nothing: refusing them would reveal that one is there. Where rows are replaced, a missing one
    counts as 0, clamped like any other: adding nothing, it could be farther from a row that takes its place than upper
    - lower. Infinite rows are clamped too.

    Args:
        epsilon: The epsilon of one release, > 0.
        lower: The smallest value that a row counts with; public.
        upper: The largest value that a row counts with; public.
        grid: Real rows are rounded to multiples of it one by one; without it, rows are whole numbers.
        neighbours: "add-remove" if the number of rows is private, "replace" if it is public.

    Raises:
        InvalidValue: If a parameter is out of its range, or the bounds are not whole and there is no grid.

    >>> total = BoundedSum(epsilon=1.0, lower=0, upper=100)
    >>> total.l1_sensitivity, total.error(0.95)
    (100, 300.0)
    >>> isinstance(total.release([12, 150, 7]), int)
    True
    >>> BoundedSum(1.0, lower=-1.5, upper=10.0, grid=2**-10, neighbours="replace").l1_sensitivity
    11.5
    """

    epsilon: float
    lower: float
    upper: float
    grid: float | None = None
    neighbours: Literal["add-remove", "replace"] = "add-remove"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_mechanism_epsilon(self.epsilon))
        if self.neighbours not in ("add-remove", "replace"):
            raise InvalidValue("neighbours", self.neighbours, "must be 'add-remove' or 'replace'")
        for name in ("lower", "upper"):
            given = getattr(self, name)
            number = checked_real(given, name)
            if not math.isfinite(number):
                raise InvalidValue(name, given, "must be finite")
            if self.grid is None and not number.is_integer():
                raise InvalidValue(name, number, "must be a whole number for whole rows", "use grid= for real rows")
            # Plain numbers from here on: a fraction made of NumPy's integers wraps around like them.
            whole = self.grid is None or isinstance(given, numbers.Integral)
            object.__setattr__(self, name, int(given) if whole else number)
        if not self.lower <= self.upper:
            raise InvalidValue("lower", self.lower, f"must be at most upper={self.upper!r}")
        if self.grid is not None:
            object.__setattr__(self, "grid", Grid(self.grid).step)
        if not self._sensitivity_steps <= 2**53:
            raise InvalidValue("grid", self.grid, "makes the sensitivity exceed 2^53 steps", "use a coarser grid")
        _ = self._noise  # noise that would be too wide is refused now, not at the release

    @property
    def l1_sensitivity(self) -> float:
        """How far one row can move the sum, in units of the rows."""
        steps = self._sensitivity_steps
        return steps if self.grid is None else steps * self.grid

    @property
    def event(self) -> Event:
        """The event of the discrete Laplace noise on the sum in steps."""
        return self._noise.event

    @property
    def variance(self) -> float:
        """The variance of the noise, in squared units of the rows."""
        return self._noise.variance * self._step**2

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise, in units of the rows."""
        return self._noise.standard_error * self._step

    def error(self, confidence: float = 0.95) -> float:
        """The least e with P[|noise| <= e] >= confidence, for the sum of the clamped and rounded rows.

        Args:
            confidence: The probability that the noise is not larger, between 0 and 1.

        Returns:
            The error, in units of the rows.

        Raises:
            InvalidValue: If `confidence` is not between 0 and 1.

        >>> BoundedSum(epsilon=1.0, lower=0, upper=100).error(0.99)
        461.0
        """
        return self._noise.error(confidence) * self._step

    @property
    def _step(self) -> float:
        return 1.0 if self.grid is None else self.grid

    @property
    def _bounds(self) -> tuple[int, int]:
        """The bounds in steps, outward: a bound between two steps includes the farther one."""
        step = Fraction(self._step)
        return math.floor(Fraction(self.lower) / step), math.ceil(Fraction(self.upper) / step)

    @property
    def _sensitivity_steps(self) -> int:
        low, high = self._bounds
        # Bounds of 0 and 0 leave nothing to protect; one step keeps the noise a distribution.
        return max(1, high - low if self.neighbours == "replace" else max(abs(low), abs(high)))

    @property
    def _noise(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.epsilon, self._sensitivity_steps)

    def _exact(self, rows: Any) -> int:
        """The sum in steps, an exact integer; clamped to +-2^62 like every private integer."""
        low, high = self._bounds
        if self.grid is None:
            steps = checked_integers(rows, "rows")
        else:
            doubles = _doubles(rows)
            steps = Grid(self.grid).steps(np.where(np.isnan(doubles), 0.0, doubles))
        if steps.ndim != 1:  # two columns would be two rows of the same person
            raise InvalidData("rows", "must be one column of rows", "pass one value for each row")
        steps = np.clip(steps, low, high)
        if self.grid is not None and self.neighbours == "add-remove":
            # A missing row adds nothing, even when 0 is out of bounds: that is as far as removing a row goes.
            steps = np.where(np.isnan(doubles), 0, steps)
        # Halves of 31 bits add up without overflow for 2^31 rows and more.
        top, rest = steps >> 31, steps & (2**31 - 1)
        total = (int(top.sum(dtype=np.int64)) << 31) + int(rest.sum(dtype=np.int64))
        return min(max(total, -SATURATION), SATURATION)

    def _answer(self, value: Any, source: Source) -> Any:
        noisy = self._noise._answer(self._exact(value), source)
        return noisy if self.grid is None else noisy * self.grid


def _doubles(rows: Any) -> NDArray[np.float64]:
    """Rows as doubles, NaN and infinities allowed; nothing of them is ever shown."""
    array = read_array(rows)
    if array is not None and array.dtype.kind == "O" and isinstance(rows, list | tuple):
        # A row of 2^64 makes NumPy give up on the whole list; refusing it would tell that it is there.
        array = read_array([_within_doubles(row) for row in rows])
    if array is None:
        raise InvalidData("rows", "must be numbers")
    if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8 or isinstance(rows, np.ma.MaskedArray):
        raise InvalidData("rows", "must be real numbers", "pass floats or a float64 array; NaN stands for missing")
    return array.astype(np.float64)


def _within_doubles(row: object) -> object:
    """A whole number of any size as a double, clamped; anything else as it is."""
    if isinstance(row, int) and not isinstance(row, bool):
        return float(min(max(row, -(2**1000)), 2**1000))
    return row

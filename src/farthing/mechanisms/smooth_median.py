"""The median, with noise for the data at hand: little where the middle of the data is crowded."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms.mechanism import SATURATION, Mechanism, checked_integers, checked_rows
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.samplers.single_draws import Bits
from farthing.mechanisms.smooth_noise import SmoothNoise
from farthing.mechanisms.value_grid import Grid
from farthing.privacy.events import (
    ApproxDP,
    checked_count,
    checked_delta,
    checked_mechanism_epsilon,
    checked_real,
)


@dataclass(frozen=True, slots=True)
class SmoothStatistic:
    """A statistic of private data: its value, and how far it could move near these data. Neither is ever shown.

    Args:
        value: The statistic of the private data, a whole number.
        local_sensitivity_at: Maps t to the most that the statistic differs between any data set within t changes of
            these data and a neighbour of that one (or more than that, if it never falls short of the same at t - 1 for
            a neighbour).

    >>> SmoothStatistic(17, lambda t: t + 1)
    SmoothStatistic()
    """

    value: int = field(repr=False)
    local_sensitivity_at: Callable[[int], int] = field(repr=False)


class _Smooth(Mechanism):
    """What both mechanisms share: their price, and noise that follows the smooth sensitivity."""

    __slots__ = ()
    epsilon: float
    delta: float

    def _check_price(self) -> None:
        object.__setattr__(self, "epsilon", checked_mechanism_epsilon(self.epsilon))
        object.__setattr__(self, "delta", checked_delta(self.delta))

    @property
    def event(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    @property
    def beta(self) -> float:
        """How fast the noise may follow the data: sensitivity at distance t counts e^(-beta t) of itself."""
        return self._noise.beta

    @property
    def _noise(self) -> SmoothNoise:
        raise AssertionError  # pragma: no cover - both subclasses have one


@dataclass(frozen=True, slots=True)
class SmoothSensitivity(_Smooth):
    """A whole-numbered statistic plus noise in proportion to its smooth sensitivity.

    Without a delta the noise has a Cauchy distribution (and no variance); with one, a Laplace distribution. The proofs,
    for these discrete distributions and for the ladder that the scale moves on, stand at `beta_of_cauchy_noise`,
    `delta_of_laplace_noise` and `SmoothNoise`. What a neighbour is depends on the local sensitivity that the statistic
    supplies.

    Args:
        epsilon: The epsilon of one release, > 0.
        global_sensitivity: The most the statistic can ever move; public.
        delta: The delta of one release.

    Raises:
        InvalidValue: If a parameter is out of its range.

    >>> mechanism = SmoothSensitivity(epsilon=1.0, global_sensitivity=10**6, delta=1e-9)
    >>> mechanism.event
    ApproxDP(epsilon=1.0, delta=1e-09)
    >>> calm = SmoothStatistic(500_000, lambda t: 3 * (t + 1))
    >>> abs(mechanism.release(calm) - 500_000) < 10**6
    True
    >>> mechanism.error(0.95, assumed_smooth_sensitivity=20)
    120
    """

    epsilon: float
    global_sensitivity: int
    delta: float = 0.0

    def __post_init__(self) -> None:
        self._check_price()
        largest = checked_count(self.global_sensitivity, "global_sensitivity")
        if not 1 <= largest <= SATURATION:
            raise InvalidValue("global_sensitivity", self.global_sensitivity, "must be from 1 to 2^62")
        object.__setattr__(self, "global_sensitivity", largest)
        _ = self._noise.rungs_per_step  # an epsilon out of reach is refused here, not at the first release

    def error(self, confidence: float = 0.95, *, assumed_smooth_sensitivity: int) -> int:
        """The error at a confidence, *if* the smooth sensitivity of the data is what you assume.

        The real one depends on the private data, so it is not published, and no error bar can be read off a release.
        Use this for planning, with a value from public data of the same kind.

        Args:
            confidence: The probability that the noise is not larger, between 0 and 1.
            assumed_smooth_sensitivity: The smooth sensitivity to plan with, a whole number.

        Returns:
            The error, in units of the statistic.

        Raises:
            InvalidValue: If an argument is out of range.
        """
        assumed = checked_count(assumed_smooth_sensitivity, "assumed_smooth_sensitivity")
        return self._noise.distribution(assumed).error(confidence)

    @property
    def _noise(self) -> SmoothNoise:
        return SmoothNoise(self.epsilon, self.delta, self.global_sensitivity)

    def _answer(self, value: object, source: Source) -> int:
        if not isinstance(value, SmoothStatistic):
            raise InvalidData("value", f"must be a SmoothStatistic, not {type(value).__name__}")
        centre = checked_integers(value.value)
        if centre.shape != ():
            raise InvalidData("value", "must be a single whole number")
        bits = Bits(source)
        return int(centre) + self._noise.draw(self._noise.level(_checked(value.local_sensitivity_at)), bits)


def _checked(at: Callable[[int], int]) -> Callable[[int], int]:
    """The user's function, with errors that tell nothing of the data it closes over."""

    def checked(t: int) -> int:
        bound = _whole(at, t)
        # Raised here, not where it was noticed: no exception may carry what the function said.
        if bound is None:
            raise InvalidData("local_sensitivity_at", "must give a whole number >= 0 for every t >= 0")
        return bound

    return checked


def _whole(at: Callable[[int], int], t: int) -> int | None:
    try:
        return checked_count(at(t))
    except Exception:
        return None


Relation = Literal["add-remove", "replace"]
Integers = NDArray[np.int64]


def median_sensitivity_at(ordered: Integers, lower: int, upper: int, relation: Relation) -> Callable[[int], int]:
    """t -> how far the median moves between a data set within t changes of these and a neighbour of it.

    Statement:
        Let x_1 <= ... <= x_n lie in [lower, upper], x_i = lower for i < 1 and upper for i > n, m = ceil(n / 2), and
        let the median be x_m (so that of no data is `lower`). Then
            replace:    A_t = max over 0 <= i <= t + 1 of x_{m+i} - x_{m+i-t-1},
            add-remove: A_t = x_{u+t+1} - x_u, u = floor((n - t) / 2),
        satisfy A_0 >= the local sensitivity and A_t(x) <= A_{t+1}(x') for neighbours.
        Proof for replace: x'_{i-1} <= x_i <= x'_{i+1}, so a gap x_v - x_w is at most x'_{v+1} - x'_{w-1}, one of those
        in A_{t+1}(x') (i + 1 for i); and the new median lies in [x_{m-1}, x_{m+1}].
        Proof for add-remove: if x' has one value more, x'_i <= x_i <= x'_{i+1} and u' = floor((n + 1 - t - 1) / 2) = u,
        so A_t(x) <= x'_{u+t+2} - x'_u = A_{t+1}(x'). If x' has one value less, x'_{i-1} <= x_i <= x'_i and u' = u - 1,
        so A_t(x) <= x'_{u+t+1} - x'_{u-1} = A_{t+1}(x'). For t = 0: if n is even, u = m and a value more or less puts
        the median into [x_m, x_{m+1}]; if n is odd, u = m - 1 and it puts the median into [x_{m-1}, x_m].
    Source: Nissim, Raskhodnikova & Smith, STOC 2007, section 3.1, for replace; add-remove is ours.
    Assumes: sorted values within the bounds.
    Direction: an upper bound; equal to the largest local sensitivity within distance t if n > t.
    Checked by: tests/theorems/test_smooth_median.py

    >>> at = median_sensitivity_at(np.array([1, 4, 5, 7, 20]), 0, 100, "replace")
    >>> [at(t) for t in range(4)]
    [2, 15, 95, 96]
    """
    n = len(ordered)
    middle = (n + 1) // 2
    padded = np.concatenate(([lower], ordered, [upper]))

    def place(index: Integers) -> Integers:
        values: Integers = padded[np.clip(index, 0, n + 1)]
        return values

    def replaced(t: int) -> int:
        first = np.arange(middle - t - 1, middle + 1)
        return int(np.max(place(first + t + 1) - place(first)))

    def added_or_removed(t: int) -> int:
        first = np.array((n - t) // 2)
        return int(place(first + t + 1) - place(first))

    return replaced if relation == "replace" else added_or_removed


@dataclass(frozen=True, slots=True)
class SmoothMedian(_Smooth):
    """The median of values in [lower, upper], by smooth sensitivity.

    A missing real value (NaN) is left out; under "replace", where their number is public, it counts as 0, clipped. The
    answer is moved into the bounds, which only brings it closer. Without a delta the noise has a Cauchy distribution.

    Args:
        epsilon: The epsilon of one release, > 0.
        lower: The smallest value; smaller ones are moved up to it.
        upper: The largest value; larger ones are moved down to it.
        delta: The delta of one release; with one, the noise has a Laplace distribution and is much smaller.
        neighbours: "add-remove" if the number of values is private, "replace" if it is public.
        grid: A power of two to which real values are rounded down; without it, values are whole numbers.

    Raises:
        InvalidValue: If a parameter is out of its range, or a bound is not a whole number of grid steps.

    >>> mechanism = SmoothMedian(epsilon=1.0, lower=0, upper=100_000, delta=1e-9)
    >>> incomes = list(range(20_000, 60_000, 4))
    >>> abs(mechanism.release(incomes) - 39_996) < 5000
    True
    >>> mechanism.error(0.95, assumed_smooth_sensitivity=100)
    601
    """

    epsilon: float
    lower: float
    upper: float
    delta: float = 0.0
    neighbours: Relation = "add-remove"
    grid: float | None = None

    def __post_init__(self) -> None:
        self._check_price()
        if self.neighbours not in ("add-remove", "replace"):
            raise InvalidValue("neighbours", self.neighbours, "must be 'add-remove' or 'replace'")
        if self.grid is not None:
            object.__setattr__(self, "grid", Grid(self.grid).step)
        for name in ("lower", "upper"):
            bound = checked_real(getattr(self, name), name)
            steps = bound / (1 if self.grid is None else self.grid)
            if not (abs(steps) <= 2**53 and steps == math.floor(steps)):
                raise InvalidValue(
                    name,
                    getattr(self, name),
                    "must be a whole number of grid steps, at most 2^53 from 0",
                    "without a grid, bounds are whole numbers",
                )
            object.__setattr__(self, name, int(bound) if bound.is_integer() else bound)
        if not self.lower < self.upper:
            raise InvalidValue("upper", self.upper, f"must be above lower={self.lower!r}")
        _ = self._noise.rungs_per_step  # an epsilon out of reach is refused here, not at the first release

    def error(self, confidence: float = 0.95, *, assumed_smooth_sensitivity: float) -> float:
        """The error at a confidence, *if* the smooth sensitivity of the data is what you assume.

        The real one depends on the private data, so it is not published, and no error bar can be read off a release.
        Use this for planning, with a value from public data of the same kind.

        Args:
            confidence: The probability that the noise is not larger, between 0 and 1.
            assumed_smooth_sensitivity: The smooth sensitivity to plan with, in units of the value.

        Returns:
            The error, in units of the value.

        Raises:
            InvalidValue: If an argument is out of range.
        """
        assumed = checked_real(assumed_smooth_sensitivity, "assumed_smooth_sensitivity")
        if not 0 <= assumed < math.inf:
            raise InvalidValue("assumed_smooth_sensitivity", assumed, "must be a finite number >= 0")
        unit = 1 if self.grid is None else self.grid
        return self._noise.distribution(math.ceil(assumed / unit)).error(confidence) * unit

    @property
    def _bounds(self) -> tuple[int, int]:
        unit = 1 if self.grid is None else self.grid
        return math.floor(self.lower / unit), math.floor(self.upper / unit)

    @property
    def _noise(self) -> SmoothNoise:
        lower, upper = self._bounds
        return SmoothNoise(self.epsilon, self.delta, upper - lower)

    def _steps(self, value: object) -> Integers:
        """The private values as sorted whole steps within the bounds; each by itself, so rounding moves nobody else."""
        lower, upper = self._bounds
        if self.grid is None:
            steps = _one_list(checked_integers(value))
        else:
            rows = _one_list(checked_rows(value, "value"))
            missing = np.isnan(rows)
            # Under replace the number of values is public, so none may be left out.
            rows = np.where(missing, 0.0, rows) if self.neighbours == "replace" else rows[~missing]
            steps = np.floor(np.clip(rows, self.lower, self.upper) / self.grid).astype(np.int64)
        return np.sort(np.clip(steps, lower, upper))

    def _answer(self, value: object, source: Source) -> float:
        ordered = self._steps(value)
        lower, upper = self._bounds
        if self.neighbours == "replace" and not len(ordered):
            raise InvalidData("value", "must hold at least one number", "under replace, the size is public")
        noise = self._noise
        level = noise.level(median_sensitivity_at(ordered, lower, upper, self.neighbours))
        median = int(ordered[(len(ordered) + 1) // 2 - 1]) if len(ordered) else lower
        answer = min(max(median + noise.draw(level, Bits(source)), lower), upper)
        return answer if self.grid is None else answer * self.grid


def _one_list(values: NDArray[Any]) -> NDArray[Any]:
    if values.ndim != 1:
        raise InvalidData("value", "must be a list of numbers")
    return values

"""Variances and standard deviations from noisy counts, sums and sums of squares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from farthing.errors import InvalidValue
from farthing.inference.error_distributions import Measured, Ratio, fieller_ends
from farthing.inference.noise_sums import checked_confidence
from farthing.inference.noise_terms import Floats, Term

_SHARE_FOR_THE_MEAN = 0.02  # of the allowed misses


@dataclass(frozen=True, eq=False)
class Variance:
    """The variance of values in [-half_width, half_width] from N, S1 = sum x and S2 = sum (x^2 - half_width^2 / 2).

    Args:
        count: The measured number of values, N.
        first: The measured sum of the values, S1.
        second: The measured sum of x^2 - half_width^2 / 2, S2.
        half_width: Half the width of the values' bounds, >= 0; values are counted from the middle of the bounds.

    Raises:
        InvalidValue: If `half_width` is negative.

    Statement:
        Let m = S1 / N, v = S2 / N + h^2 / 2 - m^2 be exact, m~ and v~ the same of the measured numbers, n0, n1, n2
        the noises of N, S1, S2. Then
            N~ (v~ - v) = n2 - 2 m n1 + (m^2 + h^2 / 2 - v) n0 - N~ (m~ - m)^2.
        The first three terms are a sum of noise with a distribution that is known for every (m, v); the last lies
        between 0 and N~ d^2 once |m~ - m| <= d. So with d from the interval of the mean at a confidence of 1 - 0.02 (1
        - confidence), and the noise's error at 1 - 0.98 (1 - confidence) for the worst m within d, the interval of all
        v that agree, widened upward by d^2, holds v with probability at least `confidence`.
    Source: own; the identity is checked symbol by symbol by substituting S1 = m N, S2 = (v - h^2 / 2 + m^2) N.
    Assumes: n0, n1, n2 independent and symmetric unimodal, values in [-h, h], N > 0.
    Direction: the interval is rounded outward; coverage is at least the confidence. It is 95 to 96% where the noise of
        the mean is small, and up to 100% where N d^2 is as large as the noise: of 90 rows at epsilon 1, say. There
        the last term, t^2 / N~ with t = n1 - m n0 = N~ (m~ - m), moves v~ down by about as much as the noise moves it
        either way. The interval leaves room for t^2 at its largest (upper end) and at 0 (lower end), as if the two
        were unrelated. The distribution of n2 - 2 m n1 + c n0 - t^2 / N~ itself would do without that slack; it depends
        on N through N~, which is a third unknown, and a region from two pivots fell to 92% at a bound when it was
        tried.
    Checked by: tests/theorems/test_ratios.py

    >>> noise = Term("laplace", 10.0)
    >>> parts = Measured(1000, [noise]), Measured(50.0, [noise]), Measured(-200.0, [noise])
    >>> Variance(*parts, half_width=1.0).values.round(4)
    array([0.2975])
    """

    count: Measured
    first: Measured
    second: Measured
    half_width: float

    def __post_init__(self) -> None:
        if not self.half_width >= 0:
            raise InvalidValue("half_width", self.half_width, "must be >= 0")

    @cached_property
    def _mean(self) -> Floats:
        """S1 / N as it stands: the identity needs it neither rounded nor clipped."""
        return self.first.values / np.maximum(self.count.values, 1.0)

    @cached_property
    def values(self) -> Floats:
        """S2 / N + h^2 / 2 - (S1 / N)^2, within [0, h^2]."""
        square = self.half_width**2
        raw = self.second.values / np.maximum(self.count.values, 1.0) + square / 2 - self._mean**2
        return np.clip(raw, 0.0, square)

    @cached_property
    def standard_errors(self) -> Floats:
        """The standard error of each variance, to first order in the noise."""
        mean = np.clip(self._mean, -self.half_width, self.half_width)
        turn = mean**2 + self.half_width**2 / 2 - self.values
        noise = self.second.variances + 4 * mean**2 * self.first.variances + turn**2 * self.count.variances
        return np.minimum(np.sqrt(noise) / np.maximum(self.count.values, 1.0), self.half_width**2)

    def __call__(self, confidence: float) -> tuple[Floats, Floats]:
        """Lower and upper ends at a confidence."""
        h, missed = self.half_width, 1 - checked_confidence(confidence)
        low, high = Ratio(self.first, self.count, -h, h)(1 - _SHARE_FOR_THE_MEAN * missed)
        mean = self._mean
        away = np.maximum(np.maximum(mean - low, high - mean), 0.0)
        largest = np.maximum(np.abs(low), np.abs(high))
        least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
        apart = np.maximum(np.abs(mean**2 - largest**2), np.abs(mean**2 - least**2))
        top = Measured(
            self.second.values - 2 * mean**2 * self.count.values,
            [*self.second.terms, *_times(self.first, 2 * largest)],
        )
        shift = h**2 / 2 + mean**2
        lower, upper = fieller_ends(
            top, self.count, 1 - (1 - _SHARE_FOR_THE_MEAN) * missed, -shift, h**2 - shift, extra=apart
        )
        # Rounding of the shift must not push an end that lies on a bound off it.
        return np.maximum(lower + shift, 0.0), np.minimum(upper + shift + away**2, h**2)


@dataclass(frozen=True, eq=False)
class StandardDeviation:
    """The square root of a variance; its interval is the square root of the variance's.

    Args:
        variance: The variance, with its interval.

    >>> noise = Term("laplace", 10.0)
    >>> parts = Measured(1000, [noise]), Measured(50.0, [noise]), Measured(-200.0, [noise])
    >>> StandardDeviation(Variance(*parts, half_width=1.0)).values.round(4)
    array([0.5454])
    """

    variance: Variance

    @cached_property
    def values(self) -> Floats:
        """The square root of each variance."""
        return np.sqrt(self.variance.values)

    @cached_property
    def standard_errors(self) -> Floats:
        """To first order, and never more than the root of the variance's own standard error."""
        errors = self.variance.standard_errors
        with np.errstate(over="ignore"):  # where there is no spread, the first order says nothing
            return np.minimum(errors / np.maximum(2 * self.values, 1e-300), np.sqrt(errors))

    def __call__(self, confidence: float) -> tuple[Floats, Floats]:
        """Lower and upper ends at a confidence."""
        low, high = self.variance(confidence)
        return np.sqrt(low), np.sqrt(high)


def _times(measured: Measured, factor: Floats) -> list[Term]:
    return [Term(t.kind, t.scale, np.multiply(t.coefficient, factor), t.count) for t in measured.terms]

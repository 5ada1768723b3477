"""Variances and standard deviations from noisy counts, sums and sums of squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from farthing.errors import InvalidValue
from farthing.inference.error_distributions import JointNoise, Measured, Ratio, fieller_ends
from farthing.inference.noise_sums import checked_confidence
from farthing.inference.noise_terms import Floats

_SHARE_FOR_THE_MEAN = 0.02  # of the allowed misses


@dataclass(frozen=True, eq=False)
class Variance:
    """The variance of values in [-half_width, half_width] from N, S1 = sum x and S2 = sum (x^2 - half_width^2 / 2).

    Args:
        count: The measured number of values, N.
        first: The measured sum of the values, S1.
        second: The measured sum of x^2 - half_width^2 / 2, S2.
        half_width: Half the width of the values' bounds, >= 0; values are counted from the middle of the bounds.
        rough: Whether intervals are estimates, found at once: to be looked at, not to be released.

    Raises:
        InvalidValue: If `half_width` is negative.

    Statement:
        Let m = S1 / N, v = S2 / N + h^2 / 2 - m^2 be exact, m~ and v~ the same of the measured numbers, n0, n1, n2
        the noises of N, S1, S2. Then
            N~ (v~ - v) = n2 - 2 m n1 + (m^2 + h^2 / 2 - v) n0 - N~ (m~ - m)^2.
        n0, n1, n2 are combinations of independent noises, with coefficients b_k, s_k, q_k. So the first three terms are
        the sum of c_k = q_k - 2 m s_k + (m^2 + h^2 / 2 - v) b_k times the k-th noise, with a distribution that is known
        for every (m, v); the last term lies between 0 and N~ d^2 once |m~ - m| <= d. So with d from the interval of the
        mean at a confidence of 1 - 0.02 (1 - confidence), and the noise's error at 1 - 0.98 (1 - confidence) with every
        |c_k| the largest for any m of that interval, the interval of all v that agree, widened upward by d^2, holds v
        with probability at least `confidence`.
    Source: own; the identity is checked symbol by symbol by substituting S1 = m N, S2 = (v - h^2 / 2 + m^2) N.
    Assumes: independent noises, symmetric and unimodal, values in [-h, h], N > 0.
    Direction: the interval is rounded outward; coverage is at least the confidence. It is 95 to 96% where the noise of
        the mean is small, and up to 100% where N d^2 is as large as the noise: of 90 rows at epsilon 1, say. There
        the last term, t^2 / N~ with t = n1 - m n0 = N~ (m~ - m), moves v~ down by about as much as the noise moves it
        either way. The interval leaves room for t^2 at its largest (upper end) and at 0 (lower end), as if the two
        were unrelated. The distribution of n2 - 2 m n1 + c n0 - t^2 / N~ itself would do without that slack; it depends
        on N through N~, which is a third unknown, and a region from two pivots fell to 92% at a bound when it was
        tried.
    Checked by: tests/theorems/test_ratios.py

    >>> from farthing.inference import Term
    >>> noise = Term("laplace", 10.0)
    >>> parts = Measured(1000, [noise]), Measured(50.0, [noise]), Measured(-200.0, [noise])
    >>> Variance(*parts, half_width=1.0).values.round(4)
    array([0.2975])
    """

    count: Measured
    first: Measured
    second: Measured
    half_width: float
    rough: bool = False
    _means: dict[float, tuple[Floats, Floats]] = field(default_factory=dict, init=False, repr=False)

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
    def noise(self) -> JointNoise:
        """The noises of the three."""
        return replace(JointNoise.of(self.count, self.first, self.second), rough=self.rough)

    @cached_property
    def standard_errors(self) -> Floats:
        """The standard error of each variance, to first order in the noise."""
        mean = np.clip(self._mean, -self.half_width, self.half_width)
        left = self._above(mean, *self.noise.coefficients) - self.values * self.noise.coefficients[0]
        noise = self.noise.products(left, left)
        return np.minimum(np.sqrt(noise) / np.maximum(self.count.values, 1.0), self.half_width**2)

    def _above(self, mean: Floats, number: Floats, first: Floats, second: Floats) -> Floats:
        """What every noise is multiplied by where the variance is 0: q - 2 m s + (m^2 + h^2 / 2) b."""
        return np.asarray(second - 2 * mean * first + (mean**2 + self.half_width**2 / 2) * number)

    def _mean_within(self, levels: Sequence[float]) -> tuple[Floats, Floats]:
        """The intervals of the mean that intervals at these confidences rest on, one level after the other."""
        new = [level for level in dict.fromkeys(levels) if level not in self._means]
        if new:
            h, asked = self.half_width, [1 - _SHARE_FOR_THE_MEAN * (1 - checked_confidence(level)) for level in new]
            ratio = Ratio(self.first, self.count, -h, h, self.rough)
            self._means.update(zip(new, ratio.at_levels(asked), strict=True))
        low, high = zip(*(self._means[level] for level in levels), strict=True)
        return np.concatenate(low), np.concatenate(high)

    def room(self, confidence: float) -> Floats:
        """How much farther up each interval reaches for the sake of the mean's error at its worst.

        Args:
            confidence: That of the interval.

        Returns:
            The distance, for each variance.
        """
        return self._room([confidence])

    def _room(self, levels: Sequence[float]) -> Floats:
        low, high = self._mean_within(levels)
        mean = np.tile(self._mean, len(levels))
        return np.square(np.maximum(np.maximum(mean - low, high - mean), 0.0))

    def __call__(self, confidence: float) -> tuple[Floats, Floats]:
        """Lower and upper ends at a confidence."""
        return self.at_levels([confidence])[0]

    def at_levels(self, levels: Sequence[float]) -> list[tuple[Floats, Floats]]:
        """Lower and upper ends at each of several confidences, found together.

        Args:
            levels: The confidences.

        Returns:
            The lower and the upper ends at each of them.

        Raises:
            InvalidValue: If a confidence is not between 0 and 1.

        >>> from farthing.inference import Term
        >>> noise = Term("normal", 10.0)
        >>> parts = Measured(1000, [noise]), Measured(50.0, [noise]), Measured(-200.0, [noise])
        >>> [float(high[0].round(3)) for low, high in Variance(*parts, half_width=1.0).at_levels([0.5, 0.95])]
        [0.305, 0.319]
        """
        h, count, cells = self.half_width, len(levels), len(self.values)
        low, high = self._mean_within(levels)
        mean, number_of_rows = np.tile(self._mean, count), np.tile(self.count.values, count)
        noise = self.noise.repeated(2 * count)
        number, first, second = noise.coefficients
        ends = np.tile(low, 2), np.tile(high, 2)
        # A quadratic in m is largest, or smallest, at an end or where its slope is 0.
        turn = np.clip(np.where(number != 0, first / np.where(number != 0, number, 1.0), ends[0]), *ends)
        choices = np.stack([self._above(m, number, first, second) for m in (*ends, turn)])

        def above(variance: Floats) -> Floats:
            """For every noise the choice with the largest coefficient."""
            place = np.argmax(np.abs(choices - variance * number), axis=0)
            return np.asarray(np.take_along_axis(choices, place[None], axis=0)[0])

        missed = 1 - np.repeat([checked_confidence(level) for level in levels], cells)
        lower, upper = fieller_ends(
            np.tile(self.second.values, count) + (h**2 / 2 - mean**2) * number_of_rows,
            number_of_rows,
            noise,
            above,
            number,
            np.tile(1 - (1 - _SHARE_FOR_THE_MEAN) * missed, 2),
            0.0,
            h**2,
        )
        upper = np.minimum(upper + self._room(levels), h**2)
        return list(zip(lower.reshape(count, cells), upper.reshape(count, cells), strict=True))


@dataclass(frozen=True, eq=False)
class StandardDeviation:
    """The square root of a variance; its interval is the square root of the variance's.

    Args:
        variance: The variance, with its interval.

    >>> from farthing.inference import Term
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
        return self.at_levels([confidence])[0]

    def at_levels(self, levels: Sequence[float]) -> list[tuple[Floats, Floats]]:
        """Lower and upper ends at each of several confidences.

        Args:
            levels: The confidences.

        Returns:
            The lower and the upper ends at each of them.

        Raises:
            InvalidValue: If a confidence is not between 0 and 1.
        """
        return [(np.sqrt(low), np.sqrt(high)) for low, high in self.variance.at_levels(levels)]

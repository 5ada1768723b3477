"""Variances and standard deviations from the number of rows, their centred sum and their centred squares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from farthing.inference import ErrorDistribution, Term
from farthing.inference.answers import SymmetricInterval
from farthing.inference.error_distributions import Measured, RootDistribution
from farthing.inference.variance_estimates import StandardDeviation, Variance
from farthing.statistics.measurements import Integers, Noise
from farthing.statistics.moments.mean_outputs import _NEAR, Estimate, MomentOutput, Weights


@dataclass(frozen=True)
class SumOutput(MomentOutput):
    """The sum of a column: measured as it is, or S1 and the middle of the bounds for every row."""

    @property
    def depends_on(self) -> str:
        return ""

    @property
    def sized(self) -> bool:
        """Only as a sample of a population."""
        return self.statistic.for_population

    @property
    def rests_on(self) -> tuple[str, ...]:
        """Nothing but the noise; as a sample of a population, what is expected of the column."""
        return super().rests_on if self.statistic.for_population else ()

    @property
    def _least_rows(self) -> str:
        """However many rows there are: sums are linear."""
        return "" if not self.statistic.for_population else super()._least_rows

    @property
    def holds(self) -> str:
        """Its intervals are all as wide."""
        return super().holds if self.statistic.for_population else "in every release"

    def promised(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """As predicted: the interval does not depend on what comes out."""
        return self.predicted(noises)

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """The exact distribution of its noise, whatever the truth."""
        return self._linear(noises, self.shared.rows, self.mean, self.variance)

    def weights(self, rows: Floats, mean: Floats, variance: Floats) -> Weights:
        """Sums are linear: the weights do not depend on the truth."""
        shared, ones = self.shared, np.ones(len(self.shared.rows))
        if shared.plain is not None:
            return {shared.plain.name: shared.plain.step * ones}
        assert shared.first is not None
        weights = {shared.first.name: shared.first.step * ones}
        if shared.number is not None:
            weights[shared.number.name] = shared.centred.middle * ones
        return weights

    def estimate(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> Estimate:
        """The noisy sum; where every value has the same sign, so has the sum."""
        shared, centred = self.shared, self.shared.centred
        if shared.plain is not None:
            totals = self.steps(shared.plain, measured)
        else:
            totals = self.steps(shared.first, measured) + centred.middle * self.number(measured)
        terms = self.terms(self.weights(shared.rows, self.mean, self.variance), noises)
        if self.statistic.for_population:
            rows = shared.rows if shared.plain is not None else np.maximum(self.number(measured), 1.0)
            variance = self.sampling(rows, totals / rows, self.variance)
            terms.append(Term("normal", 1.0, np.sqrt(variance)))
        least = 0.0 if centred.lower >= 0 else -math.inf
        most = 0.0 if centred.upper <= 0 else math.inf
        if shared.known_rows is not None:
            least, most = centred.lower * shared.known_rows, centred.upper * shared.known_rows
        values = np.clip(totals, least, most)
        if self.statistic.rounded and centred.whole:
            values = np.round(values)
        distribution = ErrorDistribution(terms, len(totals))
        return values, distribution.standard_errors, SymmetricInterval(totals, distribution, least, most)

    def limits(self, measured: Mapping[str, Integers]) -> tuple[Floats | float, Floats | float] | None:
        """All values on one bound, where the number of rows is known or was measured too."""
        if self.shared.plain is not None:
            return None
        rows = np.maximum(self.number(measured), 1.0)
        return self.shared.centred.lower * rows, self.shared.centred.upper * rows

    def sampling(self, rows: Floats, mean: Floats, variance: Floats) -> Floats:
        """Units come independently of each other, with what they bring: at most the sum of all squares.

        A unit that brings several rows has at most that many times the sum of the squares of its rows.
        """
        centred = self.shared.centred
        largest = max(abs(centred.lower), abs(centred.upper))
        if centred.lower >= 0 or centred.upper <= 0:
            return np.asarray(self.shared.rows_per_unit * largest * np.abs(rows * mean))  # x^2 <= largest |x|
        return np.asarray(self.shared.rows_per_unit * largest**2 * rows)

    def largest_sampling(self, rows: Floats) -> Floats:
        """With all values as large as they can be."""
        largest = max(abs(self.shared.centred.lower), abs(self.shared.centred.upper))
        return np.asarray(self.shared.rows_per_unit * largest**2 * rows)


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class VarianceOutput(MomentOutput):
    """The mean squared distance from the mean: S2 / N + h^2 / 2 - (S1 / N)^2, h half the distance of the bounds."""

    @property
    def _subject(self) -> str:
        return "spread"

    @property
    def _expectation_suffices(self) -> bool:
        return False

    @property
    def _mean_expected(self) -> bool:
        """Whether the mean is told, and not only the variance itself."""
        return self.shared.is_expected

    @property
    def worst(self) -> tuple[Floats, Floats]:
        """All values on one bound; with a stated variance, as near to that as it allows."""
        centred = self.shared.centred
        if self.is_expected and self._mean_expected:
            return self.mean, self.variance
        variance = self.variance if self.is_expected else np.zeros_like(self.variance)
        return centred.middle + np.sqrt(np.maximum(centred.half_width**2 - variance, 0.0)), variance

    @property
    def best(self) -> tuple[Floats, Floats]:
        """The mean in the middle, and a variance at which N does not matter."""
        if self.is_expected and self._mean_expected:
            return self.mean, self.variance
        middle = np.full_like(self.mean, self.shared.centred.middle)
        return middle, self.variance if self.is_expected else self._best_variance

    @property
    def _best_variance(self) -> Floats:
        return np.full_like(self.variance, self.shared.centred.half_width**2 / 2)

    @property
    def tried(self) -> Sequence[tuple[Floats, Floats]]:
        """Where values lie on one bound, on both, or in the middle."""
        if self.is_expected:
            return (self.worst,)
        middle, square = self.shared.centred.middle, self.shared.centred.half_width**2
        flat, nothing = np.full_like(self.mean, middle), np.zeros_like(self.variance)
        return (self.worst, (flat, nothing), (flat, np.full_like(self.variance, square)))

    @property
    def most(self) -> float:
        return self.shared.centred.half_width**2

    def limits(self, measured: Mapping[str, Integers]) -> tuple[Floats | float, Floats | float] | None:
        """Nothing, and the spread of values half of which lie on each bound."""
        return 0.0, self.most

    @property
    def _ranked(self) -> bool:
        """With very noisy counts the interval of the mean decides the width, which no first order shows."""
        return False

    def _near_a_bound(self, plain: ErrorDistribution) -> bool:
        room = np.minimum(self.variance, self.shared.centred.half_width**2 - self.variance)
        return bool(np.any(room < _NEAR * plain.standard_errors))

    def errors_in(self, noise: Mapping[str, Floats], rows: Floats, mean: Floats, variance: Floats) -> Floats:
        """The variance of noisy sums, cut at its bounds, minus the variance."""
        return self._noisy(noise, rows, mean, variance) - variance

    def _noisy(self, noise: Mapping[str, Floats], rows: Floats, mean: Floats, variance: Floats) -> Floats:
        shared, half = self.shared, self.shared.centred.half_width
        assert shared.first is not None
        assert shared.second is not None
        away = mean - shared.centred.middle
        number = rows if shared.number is None else np.maximum(rows + noise[shared.number.name], 1.0)
        first = (rows * away + noise[shared.first.name]) / number
        second = (rows * (variance - half**2 / 2 + away**2) + noise[shared.second.name]) / number
        return np.clip(second + half**2 / 2 - first**2, 0.0, half**2)

    def weights(self, rows: Floats, mean: Floats, variance: Floats) -> Weights:
        """To first order: (noise of S2 - 2 m noise of S1 + (m^2 + h^2 / 2 - variance) noise of N) / N."""
        shared = self.shared
        assert shared.first is not None
        assert shared.second is not None
        away, half = mean - shared.centred.middle, shared.centred.half_width
        weights = {
            shared.first.name: -2 * away * shared.first.step / rows,
            shared.second.name: shared.second.step / rows,
        }
        if shared.number is not None:
            weights[shared.number.name] = (away**2 + half**2 / 2 - variance) / rows
        return weights

    def variance_of(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> Variance:
        """The variance with its noise."""
        shared, half = self.shared, self.shared.centred.half_width
        number, first, second = self.measurements(measured, noises, shared.first, shared.second)
        if self.statistic.for_population:
            rows, plain = np.maximum(number.values, 1.0), Variance(number, first, second, half)
            mean = shared.centred.middle + first.values / rows
            spread = Term("normal", 1.0, rows * np.sqrt(self._spread(rows, mean, plain.values)))
            second = Measured(second.values, [*second.terms, spread])
        return Variance(number, first, second, half)

    def estimate(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> Estimate:
        """The variance, between 0 and h^2, with an interval of at least its coverage."""
        variance = self.variance_of(measured, noises)
        return variance.values, variance.standard_errors, variance

    def sampling(self, rows: Floats, mean: Floats, variance: Floats) -> Floats:
        """What squared distances from the mean can vary by, over the number of rows."""
        return self._spread(rows, mean, variance)

    def largest_sampling(self, rows: Floats) -> Floats:
        """With all values on the bounds and their mean at x h: 2 x (1 - x) (1 + x)^2 h^4, at most 1.25 h^4."""
        return np.asarray(self.shared.rows_per_unit * 1.25 * self.shared.centred.half_width**4 / rows)

    def _spread(self, rows: Floats, mean: Floats, variance: Floats) -> Floats:
        """Squared distances lie in 0 .. R^2, R the distance from the mean to the further bound.

        So their variance is at most variance * R^2 - variance^2.
        """
        half = self.shared.centred.half_width
        reach = half + np.minimum(np.abs(mean - self.shared.centred.middle), half)
        most = np.maximum(variance * reach**2 - variance**2, 0.0)
        return np.asarray(self.shared.rows_per_unit * most / rows)


@dataclass(frozen=True)
class DeviationOutput(VarianceOutput):
    """The standard deviation: the root of the variance."""

    @property
    def _best_variance(self) -> Floats:
        return np.full_like(self.variance, self.shared.centred.half_width**2)

    @property
    def most(self) -> float:
        return self.shared.centred.half_width

    @cached_property
    def coefficients(self) -> Weights:
        """The squared weights that a plan is made for; at no spread at all they would have no bound."""
        mean, variance = self.worst[0], self.variance
        return {name: weight**2 for name, weight in self.weights(self._rows, mean, variance).items()}

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """As of the variance; with nothing stated, the root of the variance's error, which holds for every spread."""
        if self.is_expected:
            return super().predicted(noises)
        own = VarianceOutput(
            self.statistic,
            self.labels,
            self.slots,
            self.reference,
            self.shared,
            self.mean,
            self.variance,
            False,
        )
        return RootDistribution(own.predicted(noises), self.most)

    def _likely_reach(self, estimate: Estimate) -> Floats:
        """The root of a variance less or plus its error: near zero the first order of a root says nothing."""
        root = estimate[2]
        assert isinstance(root, StandardDeviation)
        variance, error = root.variance.values, 2 * root.variance.standard_errors
        below = root.values - np.sqrt(np.maximum(variance - error, 0.0))
        return np.asarray(np.maximum(below, np.sqrt(variance + error) - root.values))

    def _near_a_bound(self, plain: ErrorDistribution) -> bool:
        # The first order of a root is off by a tenth where the error is half of what is under it.
        return bool(np.any(np.sqrt(self.variance) < 2 * _NEAR * plain.standard_errors))

    def errors_in(self, noise: Mapping[str, Floats], rows: Floats, mean: Floats, variance: Floats) -> Floats:
        """The root of the noisy variance minus the standard deviation."""
        return np.sqrt(self._noisy(noise, rows, mean, variance)) - np.sqrt(variance)

    def weights(self, rows: Floats, mean: Floats, variance: Floats) -> Weights:
        """Those of the variance over twice the deviation."""
        plain = super().weights(rows, mean, variance)
        return {name: weight / (2 * np.sqrt(variance)) for name, weight in plain.items()}

    def largest_sampling(self, rows: Floats) -> Floats:
        """That of the variance over four times the variance, which is stated."""
        return np.asarray(super().largest_sampling(rows) / (4 * self.variance))

    def sampling(self, rows: Floats, mean: Floats, variance: Floats) -> Floats:
        """That of the variance over four times the variance."""
        return np.asarray(self._spread(rows, mean, variance) / (4 * variance))

    def estimate(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> Estimate:
        """The root, with the roots of the variance's interval."""
        deviation = StandardDeviation(self.variance_of(measured, noises))
        return deviation.values, deviation.standard_errors, deviation

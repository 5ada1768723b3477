"""Variances and standard deviations from the number of rows, their centred sum and their centred squares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from farthing.inference import ErrorDistribution, Term
from farthing.inference.answers import IntervalAt, SymmetricInterval
from farthing.inference.error_distributions import Measured, RootDistribution
from farthing.inference.noisy_numbers import CellNoise
from farthing.inference.variance_estimates import StandardDeviation, Variance
from farthing.statistics.measurements import EVERY_RELEASE, Integers, Noise
from farthing.statistics.moments.mean_outputs import _NEAR, Estimate, MomentOutput, Widths, exceeded_by
from farthing.statistics.moments.moment_noise import noise_of_sum

_APART = 1.02  # times another width: so far apart, neither decides for the other
_ROOM = 1.02  # for what so few cases do not show
_MUCH_ROOM = 0.1  # of an interval: with less, it holds about as often as it says


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
        return super().holds if self.statistic.for_population else EVERY_RELEASE

    def promised(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """As predicted: the interval does not depend on what comes out."""
        return self.predicted(noises)

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """The exact distribution of its noise, whatever the truth."""
        return self._linear(noises, self.shared.rows, self.mean, self.variance)

    def weights(self, rows: Floats, mean: Floats, variance: Floats) -> list[Floats]:
        """Sums are linear: the weights do not depend on the truth."""
        middle, ones = self._middle, np.ones(len(self.shared.rows))
        return [(part.first + middle * part.number) * ones for part in self.shared.parts]

    @property
    def less_alone(self) -> Floats:
        """The plain sum would have the noise of its largest term alone."""
        centred = self.shared.centred
        own = [part.first + centred.middle * part.number for part in self.shared.parts]
        total = self.shared.parts[0].number  # one step of a part, in rows
        largest = max(abs(centred.lower), abs(centred.upper)) * total
        return np.asarray(super().less_alone * largest**2 / sum(weight**2 for weight in own))

    @property
    def _middle(self) -> float:
        """What is put back for every row."""
        return 0.0 if self.shared.way == "plain" else self.shared.centred.middle

    def estimate_of(self, parts: Sequence[Floats], noises: Mapping[str, Noise]) -> Estimate:
        """The noisy sum; where every value has the same sign, so has the sum."""
        shared, centred, plain = self.shared, self.shared.centred, self.shared.way == "plain"
        totals = self.sums(parts)[1]
        if not plain:
            totals = totals + centred.middle * self.number(parts)
        terms = self.terms(self.weights(shared.rows, self.mean, self.variance), noises)
        if self.statistic.for_population:
            rows = shared.rows if plain else np.maximum(self.number(parts), 1.0)
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

    def noise_in(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> CellNoise | None:
        """The noises of its parts."""
        shared, parts = self.shared, self.shared.own(measured)
        _, _, interval = self.estimate_of(parts, noises)
        assert isinstance(interval, SymmetricInterval)
        weights = [float(np.ravel(each)[0]) for each in self.weights(shared.rows, self.mean, self.variance)]
        return noise_of_sum(shared, noises, weights, interval)

    def limits(self, measured: Mapping[str, Integers]) -> tuple[Floats | float, Floats | float] | None:
        """All values on one bound, where the number of rows is known or was measured too."""
        if self.shared.way == "plain":
            return None
        rows = np.maximum(self.number(self.shared.own(measured)), 1.0)
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
        """The mean in the middle, and the variance at which the noise matters least."""
        if self.is_expected and self._mean_expected:
            return self.mean, self.variance
        middle = np.full_like(self.mean, self.shared.centred.middle)
        return middle, self.variance if self.is_expected else self._best_variance

    @property
    def _best_variance(self) -> Floats:
        # Of `thirds` 2 (1 - v)^2 + (1 + v)^2 is least at v = 1 / 3; apart, N does not matter at v = 1 / 2.
        share = 3 if self.shared.way == "thirds" else 2
        return np.full_like(self.variance, self.shared.centred.half_width**2 / share)

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

    def _exceeded(self, few: Sequence[Floats], stands_for: Floats, share: float, widths: Widths) -> Floats:
        """Only the intervals that may decide it are computed exactly, the others are ranked by estimates.

        How far these are off is seen where both are known; an interval that lies so far from the width in question that
        this does not matter stays an estimate.
        """
        estimates = widths(few, True)
        lengths, known, apart = estimates.copy(), np.zeros(estimates.shape, dtype=bool), _APART
        while True:  # each look adds some, until there are none left
            reach = exceeded_by(lengths, stands_for, share)
            near = np.maximum(lengths, reach) <= apart * np.minimum(lengths, reach)
            new = near.any(axis=1) & ~known.any(axis=1)
            if not new.any():
                return np.asarray(np.minimum(reach * _ROOM, self.most))
            lengths[new] = widths([numbers[new] for numbers in few], False)
            known[new] = True
            both = known & (lengths > 0) & (estimates > 0)
            low, high = (float(of(lengths[both] / estimates[both], initial=1.0)) for of in (np.min, np.max))
            lengths[~known] = estimates[~known] * math.sqrt(low * high)
            apart = max(_APART, _ROOM * math.sqrt(high / low))

    def _roughly(self, interval: IntervalAt) -> IntervalAt:
        """Hundreds of intervals, each of noise with coefficients of its own, take long to find exactly."""
        if isinstance(interval, StandardDeviation):
            return StandardDeviation(replace(interval.variance, rough=True))
        assert isinstance(interval, Variance)
        return replace(interval, rough=True)

    def _near_a_bound(self, plain: ErrorDistribution) -> bool:
        room = np.minimum(self.variance, self.shared.centred.half_width**2 - self.variance)
        return bool(np.any(room < _NEAR * plain.standard_errors))

    def errors_in(self, noise: Sequence[Floats], rows: Floats, mean: Floats, variance: Floats) -> Floats:
        """The variance of noisy sums, cut at its bounds, minus the variance."""
        return self._noisy(noise, rows, mean, variance) - variance

    def _noisy(self, noise: Sequence[Floats], rows: Floats, mean: Floats, variance: Floats) -> Floats:
        half = self.shared.centred.half_width
        away = mean - self.shared.centred.middle
        number = np.maximum(rows + noise[0], 1.0)
        first = (rows * away + noise[1]) / number
        second = (rows * (variance - half**2 / 2 + away**2) + noise[2]) / number
        return np.clip(second + half**2 / 2 - first**2, 0.0, half**2)

    def weights(self, rows: Floats, mean: Floats, variance: Floats) -> list[Floats]:
        """To first order: (noise of S2 - 2 m noise of S1 + (m^2 + h^2 / 2 - variance) noise of N) / N."""
        away, half = mean - self.shared.centred.middle, self.shared.centred.half_width
        turn = away**2 + half**2 / 2 - variance
        return [
            np.asarray((part.second - 2 * away * part.first + turn * part.number) / rows) for part in self.shared.parts
        ]

    def variance_of(self, parts: Sequence[Floats], noises: Mapping[str, Noise]) -> Variance:
        """The variance with its noise."""
        shared, half = self.shared, self.shared.centred.half_width
        number, first, second = self.measurements(parts, noises)
        if self.statistic.for_population:
            rows, plain = np.maximum(number.values, 1.0), Variance(number, first, second, half)
            mean = shared.centred.middle + first.values / rows
            spread = Term("normal", 1.0, rows * np.sqrt(self._spread(rows, mean, plain.values)))
            second = Measured(second.values, [*second.terms, spread])
        return Variance(number, first, second, half)

    def estimate_of(self, parts: Sequence[Floats], noises: Mapping[str, Noise]) -> Estimate:
        """The variance, between 0 and h^2, with an interval of at least its coverage."""
        variance = self.variance_of(parts, noises)
        return variance.values, variance.standard_errors, variance

    def notes_on(self, interval: object, confidence: float, low: Floats, high: Floats) -> list[str]:
        """Where few rows make the error of the mean matter, the interval holds more often than it says."""
        if isinstance(interval, StandardDeviation):
            interval, low, high = interval.variance, low**2, high**2
        assert isinstance(interval, Variance)
        if not np.any(interval.room(confidence) > _MUCH_ROOM * (high - low)):
            return []
        return ["the interval leaves room for the error of the mean at its worst, so it holds more often than stated"]

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
    def coefficients(self) -> Mapping[str, Floats]:
        """The squared weights that a plan is made for; at no spread at all they would have no bound."""
        return self._squared(self.weights(self._rows, self.worst[0], self.variance))

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

    def errors_in(self, noise: Sequence[Floats], rows: Floats, mean: Floats, variance: Floats) -> Floats:
        """The root of the noisy variance minus the standard deviation."""
        return np.sqrt(self._noisy(noise, rows, mean, variance)) - np.sqrt(variance)

    def weights(self, rows: Floats, mean: Floats, variance: Floats) -> list[Floats]:
        """Those of the variance over twice the deviation."""
        return [weight / (2 * np.sqrt(variance)) for weight in super().weights(rows, mean, variance)]

    def largest_sampling(self, rows: Floats) -> Floats:
        """That of the variance over four times the variance, which is stated."""
        return np.asarray(super().largest_sampling(rows) / (4 * self.variance))

    def sampling(self, rows: Floats, mean: Floats, variance: Floats) -> Floats:
        """That of the variance over four times the variance."""
        return np.asarray(self._spread(rows, mean, variance) / (4 * variance))

    def estimate_of(self, parts: Sequence[Floats], noises: Mapping[str, Noise]) -> Estimate:
        """The root, with the roots of the variance's interval."""
        deviation = StandardDeviation(self.variance_of(parts, noises))
        return deviation.values, deviation.standard_errors, deviation

"""Variances and standard deviations from the number of rows, their centred sum and their centred squares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farthing.inference import Term
from farthing.inference.moments import StandardDeviation, Variance
from farthing.inference.ratios import Measured
from farthing.release.moments.outputs import Estimate, MomentOutput, Weights
from farthing.release.noise import Noise
from farthing.release.slots import Integers

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class VarianceOutput(MomentOutput):
    """The mean squared distance from the mean: S2 / N + h^2 / 2 - (S1 / N)^2, h half the distance of the bounds."""

    def weights(self, rows: Floats, mean: Floats, variance: Floats) -> Weights:
        """To first order: (noise of S2 - 2 m noise of S1 + (m^2 + h^2 / 2 - variance) noise of N) / N."""
        shared = self.shared
        assert shared.first is not None
        assert shared.second is not None
        away, half = mean - shared.centred.middle, shared.centred.half_width
        found = {
            shared.first.name: -2 * away * shared.first.step / rows,
            shared.second.name: shared.second.step / rows,
        }
        if shared.number is not None:
            found[shared.number.name] = (away**2 + half**2 / 2 - variance) / rows
        return found

    def variance_of(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> Variance:
        """The variance with its noise."""
        shared, half = self.shared, self.shared.centred.half_width
        number, first, second = self.measurements(measured, noises, shared.first, shared.second)
        if self.statistic.for_population:
            rows, plain = np.maximum(number.values, 1.0), Variance(number, first, second, half)
            mean = shared.centred.middle + first.values / rows
            spread = Term("normal", 1.0, rows * np.sqrt(self._sampled(rows, mean, plain.values)))
            second = Measured(second.values, [*second.terms, spread])
        return Variance(number, first, second, half)

    def estimate(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> Estimate:
        """The variance, between 0 and h^2, with an interval of at least its coverage."""
        found = self.variance_of(measured, noises)
        return found.values, found.standard_errors, found

    def sampling(self, rows: Floats, mean: Floats, variance: Floats) -> Floats:
        """What squared distances from the mean can vary by, over the number of rows."""
        return self._sampled(rows, mean, variance)

    def _sampled(self, rows: Floats, mean: Floats, variance: Floats) -> Floats:
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

    def weights(self, rows: Floats, mean: Floats, variance: Floats) -> Weights:
        """Those of the variance over twice the deviation."""
        plain = super().weights(rows, mean, variance)
        return {name: weight / (2 * np.sqrt(variance)) for name, weight in plain.items()}

    def sampling(self, rows: Floats, mean: Floats, variance: Floats) -> Floats:
        """That of the variance over four times the variance."""
        return np.asarray(self._sampled(rows, mean, variance) / (4 * variance))

    def estimate(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> Estimate:
        """The root, with the roots of the variance's interval."""
        found = StandardDeviation(self.variance_of(measured, noises))
        return found.values, found.standard_errors, found

"""Sums and means as functions of shared measurements, with the exact law of their noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from farthing.inference import Answer, ErrorLaw, Term
from farthing.inference.answers import Around
from farthing.inference.ratios import Measured, Ratio
from farthing.release.moments.sharing import Shared
from farthing.release.noise import Noise
from farthing.release.outputs import Output
from farthing.release.slots import Integers, Slot

Floats = NDArray[np.float64]
Weights = Mapping[str, Floats]
Estimate = tuple[Floats, Floats, Callable[[float], tuple[Floats, Floats]]]


@dataclass(frozen=True)
class MomentOutput(Output):
    """A function of N, S1 and S2. To first order its error is a sum of their noises, each times a weight.

    `mean` and `variance` are what is expected of the column, in every cell.
    """

    shared: Shared
    mean: Floats
    variance: Floats

    @property
    def independent(self) -> bool:
        """A cell has its own N, S1 and S2; but units that come and go bring rows to several cells."""
        return not self.statistic.for_population

    def weights(self, rows: Floats, mean: Floats, variance: Floats) -> Weights:
        """For each slot, what one step of its noise moves every cell by, when the truth is as given."""
        raise AssertionError("every output of moments has weights")

    @cached_property
    def _expected_weights(self) -> Weights:
        return self.weights(self.shared.rows, self.mean, self.variance)

    @cached_property
    def coefficients(self) -> Weights:
        """The squared weights where everything is as expected."""
        return {name: weight**2 for name, weight in self._expected_weights.items()}

    def sampling(self, rows: Floats, mean: Floats, variance: Floats) -> Floats:
        """At most the variance of every cell over random samples of units, when the truth is as given."""
        raise AssertionError("every output of moments says how it varies over samples")

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorLaw:
        """The exact law of the weighted noises where everything is as expected."""
        terms = self.terms(self._expected_weights, noises)
        if self.statistic.for_population:
            variance = self.sampling(self.shared.rows, self.mean, self.variance)
            terms.append(Term("normal", 1.0, np.sqrt(variance)))
        return ErrorLaw(terms, len(self.shared.rows))

    def terms(self, weights: Weights, noises: Mapping[str, Noise]) -> list[Term]:
        """The noises that the output is off by."""
        scales = {slot.name: slot.scale(noises[slot.name]) for slot in self.slots}
        return [
            Term(noises[name].kind, scales[name], weight)  # type: ignore[arg-type]
            for name, weight in weights.items()
        ]

    def estimate(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> Estimate:
        """The values, to first order their standard errors, and the interval at any confidence."""
        raise AssertionError("every output of moments has an estimate")

    def answer(
        self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], confidence: float = 0.95
    ) -> Answer:
        """The estimate, told with its interval; it lies where the bounds say that the truth must."""
        values, errors, interval = self.estimate(measured, noises)
        raw = (
            interval.centre if isinstance(interval, Around) else None
        )  # a sum before it was cut at its bounds
        return Answer.within(self.name, values, errors, interval, self.labels, confidence=confidence, raw=raw)

    def number(self, measured: Mapping[str, Integers]) -> Floats:
        """The rows of every cell: as measured, or as known."""
        shared = self.shared
        if shared.number is None:
            return np.full(len(shared.rows), shared.known_rows)
        return shared.own(shared.number, measured)

    def measurements(
        self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], *slots: Slot | None
    ) -> tuple[Measured, ...]:
        """N and the named sums, in the units of the data, each with its own noise."""
        found = [Measured(self.number(measured), self._noise(self.shared.number, noises))]
        for slot in slots:
            found.append(Measured(self.steps(slot, measured), self._noise(slot, noises)))
        return tuple(found)

    def _noise(self, slot: Slot | None, noises: Mapping[str, Noise]) -> list[Term]:
        if slot is None:
            return []
        noise = noises[slot.name]
        return [Term(noise.kind, slot.scale(noise), slot.step)]  # type: ignore[arg-type]

    def steps(self, slot: Slot | None, measured: Mapping[str, Integers]) -> Floats:
        """A measured sum in the units of the data."""
        assert slot is not None
        return self.shared.own(slot, measured) * slot.step


@dataclass(frozen=True)
class SumOutput(MomentOutput):
    """The sum of a column: measured as it is, or S1 and the middle of the bounds for every row."""

    def weights(self, rows: Floats, mean: Floats, variance: Floats) -> Weights:
        """Sums are linear: the weights do not depend on the truth."""
        shared, ones = self.shared, np.ones(len(self.shared.rows))
        if shared.plain is not None:
            return {shared.plain.name: shared.plain.step * ones}
        assert shared.first is not None
        found = {shared.first.name: shared.first.step * ones}
        if shared.number is not None:
            found[shared.number.name] = shared.centred.middle * ones
        return found

    def estimate(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> Estimate:
        """The noisy sum; where every value has the same sign, so has the sum."""
        shared, centred = self.shared, self.shared.centred
        if shared.plain is not None:
            totals = self.steps(shared.plain, measured)
        else:
            totals = self.steps(shared.first, measured) + centred.middle * self.number(measured)
        terms = self.terms(self._expected_weights, noises)
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
        law = ErrorLaw(terms, len(totals))
        return values, law.standard_errors, Around(totals, law, least, most)

    def sampling(self, rows: Floats, mean: Floats, variance: Floats) -> Floats:
        """Units come independently of each other, with what they bring: at most the sum of all squares.

        A unit that brings several rows has at most that many times the sum of the squares of its rows.
        """
        centred = self.shared.centred
        largest = max(abs(centred.lower), abs(centred.upper))
        if centred.lower >= 0 or centred.upper <= 0:
            return np.asarray(self.shared.rows_per_unit * largest * np.abs(rows * mean))  # x^2 <= largest |x|
        return np.asarray(self.shared.rows_per_unit * largest**2 * rows)


@dataclass(frozen=True)
class MeanOutput(MomentOutput):
    """The mean: the middle of the bounds plus S1 / N."""

    def weights(self, rows: Floats, mean: Floats, variance: Floats) -> Weights:
        """To first order: (noise of S1 - (mean - middle) noise of N) / N."""
        shared = self.shared
        assert shared.first is not None
        found = {shared.first.name: shared.first.step / rows}
        if shared.number is not None:
            found[shared.number.name] = -(mean - shared.centred.middle) / rows
        return found

    def estimate(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> Estimate:
        """The mean, between the bounds; its interval has its coverage however noisy the number of rows is."""
        shared, middle, half = self.shared, self.shared.centred.middle, self.shared.centred.half_width
        number, first = self.measurements(measured, noises, shared.first)
        if self.statistic.for_population:
            rows = np.maximum(number.values, 1.0)
            variance = np.full(len(rows), half**2)
            if shared.second is not None:
                second = self.steps(shared.second, measured)
                variance = np.clip(second / rows + half**2 / 2 - (first.values / rows) ** 2, 0.0, half**2)
            # It is the centred sum that varies over samples, N times as far as the mean.
            spread = Term("normal", 1.0, rows * np.sqrt(self.sampling(rows, first.values, variance)))
            first = Measured(first.values, [*first.terms, spread])
        ratio = Ratio(first, number, -half, half)

        def interval(level: float) -> tuple[Floats, Floats]:
            low, high = ratio(level)
            return low + middle, high + middle

        return ratio.values + middle, ratio.standard_errors, interval

    def sampling(self, rows: Floats, mean: Floats, variance: Floats) -> Floats:
        """The variance over the number of rows; where the variance is not measured, the most it can be."""
        shared = self.shared
        spread = np.full(len(rows), shared.centred.half_width**2) if shared.second is None else variance
        return np.asarray(shared.rows_per_unit * spread / rows)

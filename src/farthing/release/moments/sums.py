"""The sum of a column: linear in what is measured, so that its error is the same whatever the rows are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from farthing.inference import ErrorLaw, Term
from farthing.inference.answers import Around
from farthing.release.moments.outputs import Estimate, Floats, MomentOutput, Weights
from farthing.release.noise import Noise
from farthing.release.slots import Integers


@dataclass(frozen=True)
class SumOutput(MomentOutput):
    """The sum of a column: measured as it is, or S1 and the middle of the bounds for every row."""

    @property
    def depends_on(self) -> str:
        """Nothing: sums are linear."""
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

    def promised(self, noises: Mapping[str, Noise]) -> ErrorLaw:
        """As predicted: the interval does not depend on what comes out."""
        return self.predicted(noises)

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorLaw:
        """The exact law of its noise, whatever the truth."""
        return self._linear(noises, self.shared.rows, self.mean, self.variance)

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
        law = ErrorLaw(terms, len(totals))
        return values, law.standard_errors, Around(totals, law, least, most)

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

"""Means as functions of shared measurements, with the exact distribution of their noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from farthing.inference import Answer, ErrorDistribution, Term
from farthing.inference.answers import IntervalAt, SymmetricInterval
from farthing.inference.error_distributions import (
    CASES,
    KeptInterval,
    Measured,
    Ratio,
    SampledDistribution,
    StatedDistribution,
    WorstDistribution,
    noise_in_cases,
    tail_cases,
)
from farthing.inference.noisy_numbers import CellNoise
from farthing.inference.variance_estimates import StandardDeviation, Variance
from farthing.statistics.answer_records import too_few_rows
from farthing.statistics.counts.expected_shares import PRESENT, SMALLER
from farthing.statistics.measurements import Integers, Noise, Output
from farthing.statistics.moments.moment_measurements import Shared
from farthing.statistics.moments.moment_noise import noise_of_mean

Floats = NDArray[np.float64]
_FEW_ROWS = 0.02  # noise of the number of rows, as a share of them, up to which the first order is enough
_NEAR = 3.0  # standard errors from a bound
_MOST_KINDS = 64  # of cells, when errors are found from many cases
_NEIGHBOURS = 4  # of a release that is wider than nearly all, on both sides
_STRATA = 64  # of releases, from the likely widest to the likely narrowest
_WIDER = 0.001  # of releases that may have a cell with a wider interval than was required
_MOST_COORDINATES = 12  # of the points that cases are made from
Estimate = tuple[Floats, Floats, IntervalAt]
Widths = Callable[[Sequence[Floats], bool], Floats]


def exceeded_by(widths: Floats, stands_for: Floats, share: float) -> Floats:
    """For each column the width that rows which stand for more than this share are no narrower than."""
    by_width = np.argsort(-widths, axis=0)
    beyond = np.cumsum(np.take_along_axis(stands_for, by_width, axis=0), axis=0)
    last = np.argmax(beyond > share, axis=0)
    return np.asarray(np.take_along_axis(widths, by_width, axis=0)[last, np.arange(len(last))])


def _kept(interval: IntervalAt) -> IntervalAt:
    """The same, found once at each confidence; where possible at several of them together."""
    if isinstance(interval, Variance | StandardDeviation):
        return KeptInterval(interval)
    return interval if isinstance(interval, KeptInterval) else cache(interval)


@dataclass(frozen=True)
class MomentOutput(Output):
    """A function of N, S1 and S2. To first order its error is a sum of the noises in their parts, each times a weight.

    `mean` and `variance` are what is expected of the column, in every cell; unless `is_expected`, they are a guess that
    only relative errors are relative to, and errors are predicted for the worst that they can be. `less` says how much
    less variance every cell would have if the statistic had measurements of its own; `instead` has the coefficients
    that it would then have, where it would be measured in another way.
    """

    shared: Shared
    mean: Floats
    variance: Floats
    is_expected: bool = True
    less: float | Floats = 1.0
    instead: Mapping[str, Floats] | None = None

    @property
    def independent(self) -> bool:
        """A cell has its own N, S1 and S2; but units that come and go bring rows to several cells."""
        return not self.statistic.for_population

    def weights(self, rows: Floats, mean: Floats, variance: Floats) -> list[Floats]:
        """For each part, what one step of its noise moves every cell by, when the truth is as given."""
        raise AssertionError("every output of moments has weights")

    @property
    def depends_on(self) -> str:
        """The true values, or how many rows there are of them."""
        shared, unknowns = self.shared, []
        if self.shared.known_rows is not None:
            return "" if self.is_expected or self._expectation_suffices else f"the true {self._subject}"
        if not self.is_expected:
            unknowns.append(f"the true {self._subject}")
        if not shared.sizes_expected:
            unknowns.append("how many rows there are")
        elif not self.is_expected:
            unknowns.append("how many values are missing")
        return " and on ".join(unknowns)

    @property
    def sized(self) -> bool:
        """Unless the number of rows is public and fixed."""
        return self.shared.known_rows is None or self.statistic.for_population

    @property
    def rests_on(self) -> tuple[str, ...]:
        """The sizes of groups and the values of the column, as far as anybody stated them."""
        shared, asked, clauses = self.shared, self.statistic, []
        if self._least_rows:
            clauses.append(self._least_rows)
        elif shared.known_rows is None and (asked.by or asked.where is not None):
            part = "groups have" if asked.by else "the condition holds for"
            clauses.append(f"{part} as many rows as expected")
        if self.is_expected:
            clauses.append(f"{asked.column} is as expected")
        return tuple(clauses)

    @property
    def clause(self) -> str:
        """Where nobody said how many rows there are: for how many the error is predicted. Fewer have a larger one."""
        return self._least_rows

    @property
    def short_condition(self) -> str:
        """The same in few words."""
        if not self._least_rows:
            return ""
        fewest = math.floor(float(self._rows.min()))
        return f"for {'groups of ' * bool(self.statistic.by)}{fewest:,} rows or more"

    @property
    def rows_needed(self) -> Floats | None:
        """Those that `clause` speaks of."""
        return self._rows if self._least_rows else None

    @property
    def _least_rows(self) -> str:
        """How many rows must have a value for the error to be as predicted, where nobody said how many have."""
        shared, asked = self.shared, self.statistic
        if shared.known_rows is not None or (self.is_expected and shared.sizes_expected):
            return ""
        if np.ptp(self._rows) > 0:  # groups that differ: each has its own number
            share = (1.0 if shared.sizes_expected else SMALLER) * (1.0 if self.is_expected else PRESENT)
            return f"every group has at least {100 * share:.3g}% of the rows expected of it with {asked.column}"
        fewest = f"at least {math.floor(float(self._rows[0])):,} rows"
        if asked.by:
            return f"every group has {fewest} with {asked.column}"
        return f"{fewest} {'meet the condition and ' * (asked.where is not None)}have {asked.column}"

    @property
    def holds(self) -> str:
        """In all but a few releases; those for a population also vary with the sample."""
        if self.statistic.for_population:
            return "on average over releases"
        return f"in {1 / _WIDER - 1:,.0f} of {1 / _WIDER:,.0f} releases"

    @property
    def _subject(self) -> str:
        """What nobody said about the column, in a word."""
        return "share" if (self.shared.centred.lower, self.shared.centred.upper) == (0, 1) else "mean"

    @property
    def _expectation_suffices(self) -> bool:
        """Whether what nobody said does not matter, as the number of rows is known."""
        return True

    @property
    def _rows(self) -> Floats:
        """The rows that errors are predicted for: as expected, or fewer."""
        if self.shared.known_rows is not None:
            return self.shared.rows
        share = (1.0 if self.shared.sizes_expected else SMALLER) * (1.0 if self.is_expected else PRESENT)
        return np.maximum(self.shared.rows * share, 1.0)

    @property
    def worst(self) -> tuple[Floats, Floats]:
        """The mean and the variance at which the error is largest; as expected, where that is stated."""
        return self.mean, self.variance

    @property
    def best(self) -> tuple[Floats, Floats]:
        """The mean and the variance at which the error is smallest; as expected, where that is stated."""
        return self.mean, self.variance

    @property
    def tried(self) -> Sequence[tuple[Floats, Floats]]:
        """Means and variances at which errors are looked at beyond their first order."""
        return (self.worst,)

    @property
    def most(self) -> float:
        """How far off it can be at all."""
        return math.inf

    @cached_property
    def coefficients(self) -> Mapping[str, Floats]:
        """The squared weights that a plan is made for."""
        return self._squared(self.weights(self._rows, *self.worst))

    @property
    def alone(self) -> Mapping[str, Floats]:
        """The same with measurements of its own."""
        if self.instead is not None:
            return self.instead
        return {name: own * self.less for name, own in self.coefficients.items()}

    @property
    def less_alone(self) -> Floats:
        """How much less variance a soft partition for this statistic alone would give every cell."""
        return np.asarray(1.0 / self.shared.counts)

    def _squared(self, weights: Sequence[Floats]) -> dict[str, Floats]:
        """For each slot the squared weights of its parts, all together."""
        total: dict[str, Floats] = {}
        for part, weight in zip(self.shared.parts, weights, strict=True):
            own = np.asarray(weight**2 * self.shared.counts, dtype=float)
            total[part.slot.name] = total[part.slot.name] + own if part.slot.name in total else own
        return total

    def sampling(self, rows: Floats, mean: Floats, variance: Floats) -> Floats:
        """At most the variance of every cell over random samples of units, when the truth is as given."""
        raise AssertionError("every output of moments says how it varies over samples")

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """The exact distribution of the weighted noises; where their first order is not enough, that of many cases."""
        plain = self._linear(noises, self._rows, *self.worst)
        if self.statistic.for_population or not self._curved(noises, plain):
            return plain if self.is_expected else WorstDistribution([plain], self.most)
        cases = [self._sampled(noises, self._rows, *truth, plain) for truth in self.tried]
        return cases[0] if self.is_expected else WorstDistribution([*cases, plain], self.most)

    def predicted_at_best(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """The distribution where the truth is what suits the statistic best, and nothing is missing."""
        return WorstDistribution([self._linear(noises, self.shared.rows, *self.best)], self.most)

    def promised(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """As far as intervals reach from their values in 999 of 1,000 releases, in all cells at once.

        An interval is as wide as the noisy N, S1 and S2 make it: where fewer rows are counted, it is wider. Standard
        errors of many releases say which of them is so wide that only one in 1,000, shared among the cells, is wider;
        the interval of that release and of its neighbours is then computed as it would be released. Where they do not
        rank intervals well (`_ranked`), intervals of releases of all ranks are, each standing for those of its rank.
        """
        predicted = self.predicted(noises)
        return StatedDistribution(
            predicted.standard_errors, lambda level: self._widest(noises, level, predicted.errors(level))
        )

    def _widest(self, noises: Mapping[str, Noise], level: float, errors: Floats) -> Floats:
        first, place = self._kinds
        kept = np.argsort(errors[first])[::-1][:_MOST_KINDS]
        cells, widest = first[kept], np.zeros(len(first))
        for mean, variance in self.tried:
            reach = self._reach(noises, level, cells, self._rows[cells], mean[cells], variance[cells])
            widest[kept] = np.maximum(widest[kept], reach)
        return np.maximum(errors, widest[place])

    def _reach(
        self,
        noises: Mapping[str, Noise],
        level: float,
        cells: NDArray[np.intp],
        rows: Floats,
        mean: Floats,
        variance: Floats,
    ) -> Floats:
        """How far the intervals of cells reach in all but a few releases, when the truth is as given."""
        shared, half = self.shared, self.shared.centred.half_width
        away = mean - shared.centred.middle
        truths = shared.truths(rows, away, variance - half**2 / 2 + away**2)
        counts = shared.counts[cells]
        noise, weights = self._noise_in_cases(noises, counts, tails=True)
        measured = [truth + own for truth, own in zip(truths, noise, strict=True)]
        shape = (len(weights), len(rows))
        likely = self._likely_reach(self._released(measured, noises, rows, counts, shape)).reshape(shape)
        order = np.argsort(-likely, axis=0)
        beyond = np.cumsum(weights[order], axis=0)
        wider = _WIDER / len(shared.rows)
        at = np.argmax(beyond > wider, axis=0)
        near = np.clip(at + np.arange(-_NEIGHBOURS, _NEIGHBOURS + 1)[:, None], 0, len(weights) - 1)
        stands_for = np.full(near.shape, wider)
        if not self._ranked:
            steps = np.geomspace(wider / 16, 1.0, _STRATA)
            ranks = np.array([np.argmax(beyond >= min(step, 1 - 1e-9), axis=0) for step in steps])
            own = np.broadcast_to(np.diff(steps, prepend=0.0)[:, None], ranks.shape)
            near, stands_for = np.concatenate([near, ranks]), np.concatenate([stands_for, own])
        places = np.take_along_axis(order, near, axis=0)
        few = [np.take_along_axis(numbers, places, axis=0) for numbers in measured]
        # Half of it: few cases stand for many.
        return self._exceeded(
            few,
            stands_for,
            wider / 2,
            lambda cases, rough: self._widths(cases, noises, level, rows, counts, rough=rough),
        )

    def _exceeded(self, few: Sequence[Floats], stands_for: Floats, share: float, widths: Widths) -> Floats:
        """The width that the intervals of these releases exceed in a share of all, for every cell."""
        return exceeded_by(widths(few, False), stands_for, share)

    def _widths(
        self,
        measured: Sequence[Floats],
        noises: Mapping[str, Noise],
        level: float,
        rows: Floats,
        counts: NDArray[np.int64],
        *,
        rough: bool = False,
    ) -> Floats:
        """How far the intervals of releases reach from their values, one release a row."""
        values, _, interval = self._released(measured, noises, rows, counts, measured[0].shape)
        low, high = (self._roughly(interval) if rough else interval)(level)
        return np.maximum(values - low, high - values).reshape(measured[0].shape)

    def _roughly(self, interval: IntervalAt) -> IntervalAt:
        """The interval by estimates, where they are much quicker."""
        return interval

    @property
    def _ranked(self) -> bool:
        """Whether intervals are as wide as `_likely_reach` ranks them; else a few of every rank are looked at."""
        return True

    def _likely_reach(self, estimate: Estimate) -> Floats:
        """What rises and falls with the reach of its intervals, at once for many cells."""
        return estimate[1]

    def _released(
        self,
        measured: Sequence[Floats],
        noises: Mapping[str, Noise],
        rows: Floats,
        counts: NDArray[np.int64],
        shape: tuple[int, ...],
    ) -> Estimate:
        """What would be released of cells like these, one case after the other."""
        own = replace(
            self.shared,
            rows=np.broadcast_to(rows, shape).reshape(-1),
            members=np.repeat(np.arange(math.prod(shape)), np.broadcast_to(counts, shape).reshape(-1)),
        )
        return replace(self, shared=own).estimate_of([numbers.reshape(-1) for numbers in measured], noises)

    def _noise_in_cases(
        self, noises: Mapping[str, Noise], counts: NDArray[np.int64], *, tails: bool
    ) -> tuple[list[Floats], Floats]:
        """The noise of every part in cells of so many groups, one case a row, and the probability of each case.

        Few groups have noise of their own; the noises of many, added up, are nearly normal.
        """
        parts = self.shared.parts
        most = int(counts.max(initial=1))
        each = most if most * len(parts) <= _MOST_COORDINATES else 1
        dimensions = max(1, each * len(parts))
        noise_of_parts = []
        for number, part in enumerate(parts):
            noise, own = noises[part.slot.name], slice(number * each, (number + 1) * each)
            if each == most:
                steps = np.rint(part.slot.scale(noise) * noise_in_cases(noise.kind, dimensions, tails=tails)[:, own])
                noise_of_parts.append(np.cumsum(steps, axis=1)[:, counts - 1])
            else:
                deviations = np.sqrt(counts * part.slot.variance(noise))
                normal = noise_in_cases("gaussian", dimensions, tails=tails)[:, own]
                noise_of_parts.append(np.rint(1e6 * normal) / 1e6 * deviations)
        return noise_of_parts, tail_cases(dimensions)[1] if tails else np.full(CASES, 1 / CASES)

    def _linear(self, noises: Mapping[str, Noise], rows: Floats, mean: Floats, variance: Floats) -> ErrorDistribution:
        terms = self.terms(self.weights(rows, mean, variance), noises)
        if self.statistic.for_population:
            known = self.is_expected and self.shared.is_expected
            spread = self.sampling(rows, mean, variance) if known else self.largest_sampling(rows)
            terms.append(Term("normal", 1.0, np.sqrt(spread)))
        return ErrorDistribution(terms, len(rows))

    def largest_sampling(self, rows: Floats) -> Floats:
        """The same where nothing is stated: for the worst that the truth can be."""
        raise AssertionError("every output of moments says how much it can vary over samples")

    def _curved(self, noises: Mapping[str, Noise], plain: ErrorDistribution) -> bool:
        """Whether the first order is not enough: few rows for the noise of their number, or a bound is near."""
        shared = self.shared
        spread = np.sqrt(shared.counts * (shared.number**2 @ shared.variances(noises)))
        if np.any(spread > _FEW_ROWS * self._rows):
            return self._distinct is not None
        return self.is_expected and self._near_a_bound(plain) and self._distinct is not None

    def _near_a_bound(self, plain: ErrorDistribution) -> bool:
        """Whether a bound cuts off much of what the noise does."""
        return False

    def errors_in(self, noise: Sequence[Floats], rows: Floats, mean: Floats, variance: Floats) -> Floats:
        """The errors of every cell when N, S1 and S2 have this noise, one case a row."""
        raise AssertionError("every output of moments can be tried out")

    @cached_property
    def _kinds(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """One of each kind of cell, and of which kind every cell is."""
        kinds = np.stack([self._rows, *self.worst, self.shared.counts])
        _, first, place = np.unique(kinds, axis=1, return_index=True, return_inverse=True)
        return first, place.reshape(-1)

    @property
    def _distinct(self) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
        """The same, where there are not too many kinds."""
        return self._kinds if len(self._kinds[0]) <= _MOST_KINDS else None

    def _sampled(
        self,
        noises: Mapping[str, Noise],
        rows: Floats,
        mean: Floats,
        variance: Floats,
        plain: ErrorDistribution,
    ) -> ErrorDistribution:
        assert self._distinct is not None
        first, place = self._distinct
        noise, _ = self._noise_in_cases(noises, self.shared.counts[first], tails=False)
        errors = self.errors_in(self.sums(noise), rows[first], mean[first], variance[first])
        return SampledDistribution(errors[:, place], plain, self.most)

    def sums(self, parts: Sequence[Floats]) -> list[Floats]:
        """N, S1 and S2, or the noises in them, from those of the parts."""
        shared = self.shared
        return [
            np.asarray(sum((factor * own for factor, own in zip(factors, parts, strict=True)), np.zeros_like(parts[0])))
            for factors in (shared.number, shared.first, shared.second)
        ]

    def terms(self, weights: Sequence[Floats], noises: Mapping[str, Noise]) -> list[Term]:
        """The noises that the output is off by."""
        shared = self.shared
        return [
            Term(noises[part.slot.name].kind, part.slot.scale(noises[part.slot.name]), weight, shared.counts)  # type: ignore[arg-type]
            for part, weight in zip(shared.parts, weights, strict=True)
        ]

    def estimate(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> Estimate:
        """The values, to first order their standard errors, and the interval at any confidence."""
        return self.estimate_of(self.shared.own(measured), noises)

    def estimate_of(self, parts: Sequence[Floats], noises: Mapping[str, Noise]) -> Estimate:
        """The same from the noisy parts of every cell, in steps."""
        raise AssertionError("every output of moments has an estimate")

    def answer(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], confidence: float = 0.95) -> Answer:
        """The estimate with its interval; it lies where the bounds say that the truth must."""
        values, errors, interval = self.estimate(measured, noises)
        # A sum before it was cut at its bounds.
        raw = interval.centre if isinstance(interval, SymmetricInterval) else None
        exact, interval = interval, _kept(interval)
        low, high = interval(confidence)
        whole = int(np.sum(high - low >= self.most * (1 - 1e-9)))
        notes = [too_few_rows(self.statistic, whole, max(1, len(self.labels)))] if whole else []
        note = "; ".join([*self.notes_on(exact, confidence, low, high), *notes])
        return Answer.within(
            self.name, values, errors, interval, self.labels, confidence=confidence, note=note, raw=raw
        )

    def notes_on(self, interval: object, confidence: float, low: Floats, high: Floats) -> list[str]:
        """What there is to know about the interval of an answer and its ends, in words; mostly nothing."""
        return []

    def number(self, parts: Sequence[Floats]) -> Floats:
        """The rows of every cell: as measured, or as known."""
        known = self.shared.known_rows
        return self.sums(parts)[0] if known is None else np.full(len(self.shared.rows), known)

    def measurements(self, parts: Sequence[Floats], noises: Mapping[str, Noise]) -> list[Measured]:
        """N, S1 and S2 in the units of the data; noises that they have in common have the same source."""
        shared = self.shared
        values = [self.number(parts), *self.sums(parts)[1:]]
        measured = []
        for own, factors in zip(values, (shared.number, shared.first, shared.second), strict=True):
            terms = [
                Term(noise.kind, part.slot.scale(noise), float(factor), shared.counts, part.source)  # type: ignore[arg-type]
                for part, factor in zip(shared.parts, factors, strict=True)
                for noise in (noises[part.slot.name],)
                if factor != 0
            ]
            measured.append(Measured(own, terms))
        return measured


@dataclass(frozen=True)
class MeanOutput(MomentOutput):
    """The mean: the middle of the bounds plus S1 / N."""

    @property
    def worst(self) -> tuple[Floats, Floats]:
        """On a bound: there the noise of N matters as much as that of S1."""
        return (self.mean if self.is_expected else np.full_like(self.mean, self.shared.centred.upper)), self.variance

    @property
    def best(self) -> tuple[Floats, Floats]:
        """In the middle, where N does not matter."""
        return (self.mean if self.is_expected else np.full_like(self.mean, self.shared.centred.middle)), self.variance

    @property
    def tried(self) -> Sequence[tuple[Floats, Floats]]:
        """From the middle to a bound."""
        if self.is_expected:
            return (self.worst,)
        middle, half = self.shared.centred.middle, self.shared.centred.half_width
        return tuple((np.full_like(self.mean, middle + half * away), self.variance) for away in (0.0, 0.5, 1.0))

    @property
    def most(self) -> float:
        """The distance of the bounds."""
        return 2 * self.shared.centred.half_width

    @property
    def less_alone(self) -> Floats:
        """Halves would do, where thirds are measured."""
        if self.shared.way != "thirds":
            return super().less_alone
        away, half = self.worst[0] - self.shared.centred.middle, self.shared.centred.half_width
        return np.asarray(super().less_alone * (2 * half**2 + 2 * away**2) / (2 * half**2 + 3 * away**2))

    def limits(self, measured: Mapping[str, Integers]) -> tuple[Floats | float, Floats | float] | None:
        return self.shared.centred.lower, self.shared.centred.upper

    def _near_a_bound(self, plain: ErrorDistribution) -> bool:
        away = np.abs(self.mean - self.shared.centred.middle)
        return bool(np.any(self.shared.centred.half_width - away < _NEAR * plain.standard_errors))

    def errors_in(self, noise: Sequence[Floats], rows: Floats, mean: Floats, variance: Floats) -> Floats:
        """(S1 + noise) / (N + noise), cut at the bounds, minus the mean."""
        half = self.shared.centred.half_width
        away = mean - self.shared.centred.middle
        number = np.maximum(rows + noise[0], 1.0)
        return np.clip((rows * away + noise[1]) / number, -half, half) - away

    def weights(self, rows: Floats, mean: Floats, variance: Floats) -> list[Floats]:
        """To first order: (noise of S1 - (mean - middle) noise of N) / N."""
        shared, away = self.shared, mean - self.shared.centred.middle
        return [np.asarray((part.first - away * part.number) / rows) for part in shared.parts]

    def estimate_of(self, parts: Sequence[Floats], noises: Mapping[str, Noise]) -> Estimate:
        """The mean, between the bounds; its interval has its coverage however noisy the number of rows is."""
        middle, half = self.shared.centred.middle, self.shared.centred.half_width
        number, first, second = self.measurements(parts, noises)
        if self.statistic.for_population:
            spread = Term("normal", 1.0, self._spread(number.values, first.values, second.values))
            first = Measured(first.values, [*first.terms, spread])
        ratio = Ratio(first, number, -half, half)
        return ratio.values + middle, ratio.standard_errors, KeptInterval(ratio, middle)

    def _spread(self, number: Floats, first: Floats, second: Floats) -> Floats:
        """How far the centred sum varies over samples: N times as far as the mean."""
        rows, half = np.maximum(number, 1.0), self.shared.centred.half_width
        variance = np.full(len(rows), half**2)
        if self.shared.has_squares:
            variance = np.clip(second / rows + half**2 / 2 - (first / rows) ** 2, 0.0, half**2)
        return np.asarray(rows * np.sqrt(self.sampling(rows, first, variance)))

    def noise_in(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> CellNoise | None:
        """S1 over N, and the middle of the bounds."""
        parts = self.shared.own(measured)
        number, (_, first, second) = self.number(parts), self.sums(parts)
        spread = self._spread(number, first, second) if self.statistic.for_population else None
        return noise_of_mean(self.shared, noises, first, number, spread)

    def sampling(self, rows: Floats, mean: Floats, variance: Floats) -> Floats:
        """The variance over the number of rows; where the variance is not measured, the most it can be."""
        shared = self.shared
        if not shared.has_squares:
            return self.largest_sampling(rows)
        return np.asarray(shared.rows_per_unit * variance / rows)

    def sample_variance(self, noises: Mapping[str, Noise]) -> float:
        """As expected of the column, where that is stated: an interval has to measure it, a prediction has not."""
        if not (self.is_expected and self.shared.is_expected):
            return super().sample_variance(noises)
        return float(np.mean(self.shared.rows_per_unit * self.variance / self._rows))

    def largest_sampling(self, rows: Floats) -> Floats:
        """With half of the values on each bound."""
        return np.asarray(self.shared.rows_per_unit * self.shared.centred.half_width**2 / rows)

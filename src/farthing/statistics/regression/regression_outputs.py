"""Linear regression: the least-squares line from noisy normal equations, and the exact distribution of its error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.inference import Answer, ErrorDistribution, StatedDistribution, Term
from farthing.inference.error_distributions import WorstDistribution, even_cases, noise_at
from farthing.inference.noise_sums import checked_confidence
from farthing.statistics.counts.count_queries import group_axes, labels_of
from farthing.statistics.counts.expected_shares import SMALLER, assumptions_of, expected_rows, sizes_expected
from farthing.statistics.measurements import Integers, Noise, Output, Slot
from farthing.statistics.moments.moment_measurements import expected_mean, expected_variance
from farthing.statistics.public_facts import Assumption, Facts
from farthing.statistics.regression.normal_equations import NormalEquations, Scaled, normal_equations
from farthing.statistics.regression.regression_expectations import (
    Expectation,
    assumptions_about,
    expectation_of,
    expected_moments,
    way_out,
)
from farthing.statistics.regression.regression_intervals import NoisyLine
from farthing.statistics.regression.regression_notes import endless_note, rare_categories
from farthing.statistics.statistic import Statistic

Floats = NDArray[np.float64]
_CASES, _LINES = 1024, 32  # and as many mirror images, over which errors are a mean, and lines are looked at
_NORMAL, _ONE_SIDED = 1.96, 1.645
_RARE = 0.05  # a share of releases with an endless interval that a plan does not mention


@dataclass(frozen=True)
class RegressionOutput(Output):
    """Intercept and coefficients in every group.

    Where nobody said how far a feature varies, no error can be predicted: of a feature that hardly varies the
    coefficient could be anything. Then the distribution before the release has no limit, `predicted_at_best` is the
    other end, and `caution` says below which spread an interval has no end.

    With A theta = b the true normal equations and A' = A + dA, b' = b + db the noisy ones, the noisy solution theta' is
    off by exactly  theta' - theta = A'^-1 (db - dA theta): a combination of the noises whose weights are known once
    theta is replaced by theta'.
    """

    equations: NormalEquations
    rows: Floats
    expected: Expectation
    rows_per_unit: int = 1
    sizes_expected: bool = True
    ways_out: tuple[str, ...] = ()  # what to say of each feature of which nothing is expected

    @property
    def gram(self) -> Floats:
        """What is expected of one row: the products of (1, features), scaled."""
        return self.expected.gram

    @property
    def theta(self) -> Floats:
        """The coefficients of the expected line, scaled."""
        return self.expected.theta

    @property
    def sized(self) -> bool:
        """Noise matters less among more rows."""
        return True

    @property
    def holds(self) -> str:
        """Not on average over all releases: that average would include intervals without an end."""
        return "in about half of the releases"

    @property
    def depends_on(self) -> str:
        """How far features vary, where nobody said; else how steep the line is."""
        expected = self.expected
        if expected.unsaid:
            names = dict.fromkeys(one.column for one in expected.unsaid)
            return f"how far {_listed(list(names))} {'varies' if len(names) == 1 else 'vary'}"
        return "" if expected.line_expected or expected.table else f"how steep the line of {self.statistic.target} is"

    @property
    def limitless(self) -> str:
        """What to say of the features of which nothing is expected, in words that fit Python, study.toml and page."""
        names = (one.column for one in self.expected.unsaid)
        ways = [f"{column} ({way})" for column, way in dict(zip(names, self.ways_out, strict=True)).items()]
        return f"say what is expected of {_listed(ways)}" if ways else ""

    @property
    def rests_on(self) -> tuple[str, ...]:
        """What was stated about its columns, and what was not."""
        expected, asked, clauses = self.expected, self.statistic, []
        if not self.sizes_expected:
            part = "every group has" if asked.by else "the condition leaves"
            clauses.append(f"{part} at least {math.ceil(float(self.rows.min())):,} rows with all columns (assumed)")
        if expected.table:
            clauses.append("its columns are distributed and related as expected")
            return tuple(clauses)
        names = list(dict.fromkeys(one.column for one in self.equations.features))
        if not expected.unsaid:
            clauses.append(f"{_listed(names)} {'is' if len(names) == 1 else 'are'} distributed as expected")
            if not expected.joint:
                clauses.append("its features are not related to each other (assumed)")
        if expected.line_expected:
            clauses.append("its line is as expected")
        elif expected.target_expected:
            clauses.append(f"{asked.target} is as expected")
        if not expected.target_expected:
            clauses.append(f"at most a quarter of the rows lack {asked.target} (assumed)")
        return tuple(clauses)

    @property
    def clause(self) -> str:
        """How far columns vary and go together decides the error, known only as far as somebody said so."""
        return "" if self.expected.unsaid else _listed(self.rests_on)

    @property
    def is_assumed(self) -> bool:
        """Whether sizes of groups, missing values or relations of features are assumed."""
        expected = self.expected
        known = expected.table or (expected.target_expected and expected.joint)
        return not (self.sizes_expected and known)

    @cached_property
    def _directions(self) -> tuple[Floats, Floats]:
        """What one step of each entry moves the matrix and the right-hand side by."""
        pairs = [self.equations.direction(entry) for entry in self.equations.entries]
        steps = np.array([entry.slot.step for entry in self.equations.entries])
        matrices, vectors = (np.stack(parts) for parts in zip(*pairs, strict=True))
        return matrices * steps[:, None, None], vectors * steps[:, None]

    def line(self, gram: Floats, right: Floats, noises: Mapping[str, Noise]) -> NoisyLine:
        """Equations of one group with their noise."""
        matrices, vectors = self._directions
        to_data, _ = self.equations.to_data()
        sampling = np.zeros(self.equations.size)
        if self.statistic.for_population:
            sampling = self._sampling(_repaired(gram, self._noise_level(noises))) ** 2
        slopes = tuple(place for place, one in enumerate(self.equations.features, 1) if not one.flag)
        return NoisyLine(gram, right, matrices, vectors, self._deviations(noises), to_data, sampling, slopes)

    def _deviations(self, noises: Mapping[str, Noise]) -> Floats:
        slots = [entry.slot for entry in self.equations.entries]
        return np.sqrt([slot.variance(noises[slot.name]) for slot in slots])

    @cached_property
    def _expected_weights(self) -> Floats:
        """Cells by entries: groups differ in their number of rows only."""
        matrices, vectors = self._directions
        to_data, _ = self.equations.to_data()
        one = to_data @ np.linalg.solve(self.gram, (vectors - matrices @ self.theta).T)
        return np.concatenate([one / rows for rows in self.rows])

    @cached_property
    def coefficients(self) -> Mapping[str, Floats]:
        """The squared weights where everything is as expected."""
        return {
            entry.slot.name: self._expected_weights[:, place] ** 2 for place, entry in enumerate(self.equations.entries)
        }

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """The standard errors of the line, and how far its intervals reach; for the steepest line if none is given.

        Without a limit where nobody said how far its features vary.
        """
        if self.expected.unsaid:
            limitless = np.full(len(self.rows) * self.equations.size, math.inf)
            return StatedDistribution(limitless, lambda _: limitless)
        lines = self.expected.lines
        sizes = np.array([self._at(self.gram, line)._variances(noises) for line in lines])
        worst = [lines[place] for place in dict.fromkeys(sizes.argmax(axis=0).tolist())]
        distributions = [_LineDistribution(self._at(self.gram, line), noises) for line in worst]
        return distributions[0] if len(distributions) == 1 else _WorstLine(distributions)

    def predicted_at_best(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """With features that vary as far as their bounds allow, if nobody said, and a level line."""
        return _LineDistribution(self._at(*self.expected.best), noises)

    def _at(self, gram: Floats, theta: Floats) -> RegressionOutput:
        return replace(self, expected=replace(self.expected, gram=gram, theta=theta, unsaid=()))

    def _variances(self, noises: Mapping[str, Noise]) -> Floats:
        """To first order, where everything is as expected."""
        return np.asarray(np.square(self._expected_weights) @ np.square(self._deviations(noises)))

    def first_order(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """The exact distribution of the weighted noises, with the expected equations in the weights."""
        terms = self._terms(self._expected_weights, noises)
        if self.statistic.for_population:
            terms.append(Term("normal", 1.0, np.concatenate([self._sampling(self.gram * n) for n in self.rows])))
        return ErrorDistribution(terms, len(self._expected_weights))

    def _drawn(self, noises: Mapping[str, Noise], rows: float, cases: int) -> tuple[Floats, Floats, Floats]:
        """Even cases of noise, in steps, and what they make of the expected equations: the same at every epsilon."""
        matrices, vectors = self._directions
        half = even_cases(len(vectors), cases)
        shares = np.concatenate([half, 1 - half])
        slots = [entry.slot for entry in self.equations.entries]
        noise = np.column_stack(
            [
                noise_at(noises[slot.name].kind, slot.scale(noises[slot.name]), shares[:, place])
                for place, slot in enumerate(slots)
            ]
        )
        grams = self.gram * rows + np.einsum("ke,eij->kij", noise, matrices)
        return noise, grams, self.gram @ self.theta * rows + noise @ vectors

    def inflation(self, noises: Mapping[str, Noise], rows: float) -> Floats:
        """Root mean squared errors over those to first order, where equations are as expected but for the noise."""
        size = self.equations.size
        noise, grams, rights = self._drawn(noises, rows, _CASES if size <= 4 else _CASES // 8)
        matrices, vectors = self._directions
        to_data, _ = self.equations.to_data()
        sizes, directions = np.linalg.eigh(grams)
        lifted = np.maximum(sizes, self._noise_level(noises))
        along = np.einsum("kij,ki->kj", directions, rights) / lifted
        ratios = np.einsum("kij,kj->ki", directions, along)
        weights = to_data @ np.linalg.solve(self.gram * rows, (vectors - matrices @ self.theta).T)
        first = np.square(noise @ weights.T).mean(axis=0)
        off = np.square((ratios - self.theta) @ to_data.T).mean(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.nan_to_num(np.sqrt(off / first), nan=1.0))

    def endless_share(self, noises: Mapping[str, Noise], rows: float) -> float:
        """In which share of releases some coefficient is expected to have an interval without an end."""
        _, grams, rights = self._drawn(noises, rows, _LINES if self.equations.size <= 8 else _LINES // 4)
        pairs = zip(grams, rights, strict=True)
        return float(np.mean([self.line(*pair, noises).endless(_NORMAL).any() for pair in pairs]))

    def caution(self, noises: Mapping[str, Noise]) -> str:
        """Said where rows are too few, or may vary too little: how often a release has an interval without an end."""
        if self.expected.unsaid:
            return self._limits(noises)
        worst = self.endless_share(noises, float(self.rows.min()))
        if worst < _RARE:
            return ""
        fewest = " in the smallest group" if len(self.rows) > 1 else ""
        return (
            f"{self.name!r} has too few rows{fewest} for its epsilon: about {100 * worst:.0f} of 100 releases would "
            "have a coefficient whose interval is unbounded; raise its weight, give it tighter bounds or fewer features"
        )

    def _limits(self, noises: Mapping[str, Noise]) -> str:
        """Below which spread of a feature intervals have no end, for features whose spread is not given."""
        notes = []
        for one in self.expected.unsaid:
            least = self.least_deviation(noises, one)
            if least is None:
                notes.append(f"however {one.label} varies")
            elif one.flag:
                share = (1 - math.sqrt(max(0.0, 1 - least**2))) / 2
                notes.append(f"if fewer than about {100 * share:.2g}% of the rows have {one.label}")
            else:
                size = f"{least * one.half_width:.2g}"
                notes.append(f"if the standard deviation of {one.label} is below about {size}")
        some = [*notes[:4], f"likewise for {len(notes) - 4} more features"] if len(notes) > 5 else notes
        return (
            f"no error can be predicted for {self.name!r}: its intervals are unbounded {', or '.join(some)}; "
            f"{self.limitless}, and give tighter bounds if the values fill only a small part of them"
        )

    def least_deviation(self, noises: Mapping[str, Noise], feature: Scaled) -> float | None:
        """The deviation of a feature, scaled, below which more than one interval in twenty has no end.

        All else is at its best: other features fill their bounds, and the line is level. An interval has no end where
        the noisy equations are within 1.96 standard errors of having no solution; to be further off in 95 of 100
        releases, the true ones must be 1.96 + 1.64 off. None where even a feature that fills its bounds is not.
        """
        rows, place = float(self.rows.min()), self.equations.features.index(feature) + 1
        flat = np.zeros(self.equations.size)

        def endless(deviation: float) -> bool:
            gram = np.eye(self.equations.size)
            gram[place, place] = deviation**2
            line = self.line(gram * rows, flat, noises)
            return bool(line.endless(_NORMAL + _ONE_SIDED)[place])

        if endless(1.0):
            return None
        low, high = 1e-6, 1.0
        while high > 1.02 * low:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if endless(middle) else (low, middle)
        return high

    def _sampling(self, gram: Floats) -> Floats:
        """How far the line varies over samples: residuals of the scaled target have a variance of at most 1."""
        to_data, _ = self.equations.to_data()
        covariance = to_data @ np.linalg.inv(gram) @ to_data.T
        return np.asarray(np.sqrt(self.rows_per_unit * np.maximum(np.diag(covariance), 0.0)))

    def _terms(self, weights: Floats, noises: Mapping[str, Noise]) -> list[Term]:
        return [
            Term(noises[entry.slot.name].kind, entry.slot.scale(noises[entry.slot.name]), weights[:, place])  # type: ignore[arg-type]
            for place, entry in enumerate(self.equations.entries)
        ]

    def answer(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], confidence: float = 0.95) -> Answer:
        """The line of every group; a coefficient that the noise may have made has an interval without an end."""
        size = self.equations.size
        entries = self.equations.entries
        noise = self._noise_level(noises)
        values, lines, rare = [], [], []
        to_data, constant = self.equations.to_data()
        for group in range(len(self.rows)):
            gram, right = self.equations.filled(
                [float(np.asarray(measured[e.slot.name]).reshape(-1)[group]) * e.slot.step for e in entries]
            )
            values.append(to_data @ np.linalg.solve(_repaired(gram, noise), right) + constant)
            lines.append(self.line(gram, right, noises))
            rare.append(rare_categories(self.equations, gram, noises))
        terms = self._terms(np.concatenate([line.weights(line.theta) for line in lines]), noises)
        terms.append(Term("normal", 1.0, np.sqrt(np.concatenate([line.sampling for line in lines]))))
        distribution = ErrorDistribution(terms, len(lines) * size)
        centre = np.concatenate([to_data @ line.theta + constant for line in lines])

        @cache
        def interval(level: float) -> tuple[Floats, Floats]:
            errors = distribution.errors(level).reshape(len(lines), size)
            ends = [line.reaches(own) for line, own in zip(lines, errors, strict=True)]
            below, above = (np.concatenate(side) for side in zip(*ends, strict=True))
            return centre - below, centre + above

        low, high = interval(confidence)
        endless = ~np.isfinite(high - low)
        return Answer.within(
            self.name,
            np.concatenate(values),
            np.where(endless, math.inf, distribution.standard_errors),
            interval,
            self.labels,
            confidence=confidence,
            note=endless_note(endless, self.labels, rare),
        )

    def _noise_level(self, noises: Mapping[str, Noise]) -> float:
        """About how large an eigenvalue the noise alone can make: twice the root of the size times its deviation."""
        inside = [entry.slot for entry in self.equations.entries if entry.place[1] != -1]
        largest = max(math.sqrt(slot.variance(noises[slot.name])) * slot.step for slot in inside)
        return 2 * math.sqrt(self.equations.size) * largest


class _LineDistribution(StatedDistribution):
    """What is expected of a line; of its coefficients, the error is that of the worst."""

    def __init__(self, output: RegressionOutput, noises: Mapping[str, Noise]) -> None:
        self._output, self._noises = output, noises
        self._first = output.first_order(noises)
        kinds = sorted(set(output.rows.tolist()))
        # Of very many groups a few sizes stand for the others.
        self._kept = np.array(kinds if len(kinds) <= 8 else np.quantile(kinds, np.linspace(0, 1, 8)))
        self._place = np.searchsorted(self._kept, output.rows).clip(max=len(self._kept) - 1)
        super().__init__(self._first.standard_errors, self._reaches)

    @cached_property
    def standard_errors(self) -> Floats:
        """To first order, times what the noise in the equations' own matrix adds."""
        ratios = [self._output.inflation(self._noises, float(rows)) for rows in self._kept]
        return np.asarray(self._first.standard_errors * np.concatenate([ratios[number] for number in self._place]))

    @cached_property
    def _lines(self) -> list[NoisyLine]:
        gram, theta = self._output.gram, self._output.theta
        return [self._output.line(gram * rows, gram @ theta * rows, self._noises) for rows in self._kept]

    def _reaches(self, level: float) -> Floats:
        rows = self._output.rows
        plain = self._first.errors(level).reshape(len(rows), -1)
        reaches = []
        for number, own, size in zip(self._place, plain, rows, strict=True):
            scale = size / self._kept[number]
            reaches.append(np.maximum(*self._lines[number].reaches(own * scale)) / scale)
        return np.concatenate(reaches)

    def error(self, confidence: float = 0.95) -> float:
        """How far the widest interval is expected to reach."""
        return float(self.errors(checked_confidence(confidence)).max())


class _WorstLine(WorstDistribution):
    """Of several lines the largest error of every coefficient."""

    def error(self, confidence: float = 0.95) -> float:
        """How far the widest interval is expected to reach."""
        return float(self.errors(checked_confidence(confidence)).max())


def outputs_of(
    statistics: Sequence[Statistic], facts: Facts
) -> tuple[list[Slot], list[Output], dict[str, Any], list[Assumption]]:
    """Slots, outputs, columns to derive and assumptions of regressions."""
    slots: dict[str, Slot] = {}
    outputs: list[Output] = []
    assumptions: dict[Assumption, None] = {}
    by_columns: dict[tuple[Any, ...], NormalEquations] = {}
    derived = facts.derived_columns("product")
    for statistic in statistics:
        groups = labels_of(group_axes(statistic.by, facts.schema))
        key = (statistic.columns, statistic.where, statistic.by)  # names are cut short
        if key not in by_columns:
            by_columns[key] = normal_equations(statistic, facts, max(1, len(groups)), derived)
        equations = by_columns[key]
        slots.update({entry.slot.name: entry.slot for entry in equations.entries})
        expected = expectation_of(statistic, facts, equations)
        sizes = sizes_expected(facts, statistic.where, statistic.by)
        asked = np.atleast_1d(expected_rows(facts, statistic.where, statistic.by))
        rows = np.maximum(asked * expected.complete * (1.0 if sizes else SMALLER), 1.0)
        outputs.append(
            RegressionOutput(
                statistic,
                _labels(groups, equations),
                tuple(entry.slot for entry in equations.entries),
                np.tile(_reference(equations, facts), len(rows)),
                equations=equations,
                rows=rows,
                expected=expected,
                rows_per_unit=facts.rows_per_unit,
                sizes_expected=sizes,
                ways_out=tuple(way_out(one, facts) for one in expected.unsaid),
            )
        )
        assumptions.update(dict.fromkeys((*assumptions_of(facts, []), *assumptions_about(statistic, expected, sizes))))
    return list(slots.values()), outputs, derived.expressions, list(assumptions)


def _listed(words: Sequence[str]) -> str:
    return " and ".join(words) if len(words) < 3 else f"{', '.join(words[:-1])} and {words[-1]}"


def _labels(groups: tuple[Any, ...], equations: NormalEquations) -> tuple[Any, ...]:
    terms = ("intercept", *(feature.label for feature in equations.features))
    if not groups:
        return terms
    return tuple((*group, term) if isinstance(group, tuple) else (group, term) for group in groups for term in terms)


def _reference(equations: NormalEquations, facts: Facts) -> Floats:
    """A coefficient is judged beside the spread of the target over that of its feature."""
    target = equations.target.column
    spread = math.sqrt(expected_variance(facts, target))
    intercept = max(abs(expected_mean(facts, target)), spread)
    _, covariance = expected_moments(equations.features, facts)
    deviations = np.sqrt(np.diag(covariance)) * [feature.half_width for feature in equations.features]
    return np.array([intercept, *(spread / deviations)])


def _repaired(gram: Floats, noise: float) -> Floats:
    """The matrix with every eigenvalue at least as large as the noise: directions that drown are shrunk."""
    sizes, directions = np.linalg.eigh(gram)
    if sizes[0] > noise:
        return gram
    return np.asarray(directions @ np.diag(np.maximum(sizes, noise)) @ directions.T)

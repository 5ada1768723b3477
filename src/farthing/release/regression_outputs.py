"""Linear regression: the least-squares line from noisy normal equations, with the exact law of what the noise does."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.schema import Categories
from farthing.errors import InvalidValue
from farthing.inference import Answer, ErrorLaw, StatedLaw, Term
from farthing.inference.noise_sums import checked_confidence
from farthing.release.counting.questions import group_axes, labels_of
from farthing.release.counting.shares import assumptions_of, category_shares, expected_rows
from farthing.release.derived_columns import DerivedColumns
from farthing.release.facts import Facts
from farthing.release.moments.sharing import expected_mean, expected_variance
from farthing.release.noise import Noise
from farthing.release.outputs import Output
from farthing.release.regression_intervals import NoisyLine
from farthing.release.regression_sums import NormalEquations, Scaled, normal_equations
from farthing.release.slots import Integers, Slot
from farthing.release.statistic import Statistic

Floats = NDArray[np.float64]
EXPLAINED = 0.5
"""The share of the target's variance that the features are taken to explain, when nothing else is said."""

UNSAID = 0.25
"""The deviation of a column of which nothing is expected, over half the distance of its bounds.

Bounds are wider than most rows need; columns spread evenly between them would promise too small an error.
"""

_DRAWS = 32  # and as many mirror images, over which a predicted error is a mean
_NORMAL = 1.96
_RARE = 0.05  # a share of releases with an endless interval that a plan does not mention


@dataclass(frozen=True)
class RegressionOutput(Output):
    """Intercept and coefficients in every group. `gram` and `theta` are what is expected of one row, scaled.

    With A theta = b the true normal equations and A' = A + dA, b' = b + db the noisy ones, the noisy solution theta' is
    off by exactly  theta' - theta = A'^-1 (db - dA theta): a combination of the noises whose weights are known once
    theta is replaced by theta'.
    """

    equations: NormalEquations
    rows: Floats
    gram: Floats
    theta: Floats
    rows_per_unit: int = 1
    assumed: bool = False  # the expected line is a guess

    @property
    def sized(self) -> bool:
        """Noise matters less among more rows."""
        return True

    @property
    def condition(self) -> str:
        """How far columns vary and go together decides the error, known only as far as somebody said so."""
        return f"if its columns are spread and related as {'assumed' if self.assumed else 'expected'}"

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
        return NoisyLine(gram, right, matrices, vectors, self._deviations(noises), to_data, sampling)

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
            entry.slot.name: self._expected_weights[:, place] ** 2
            for place, entry in enumerate(self.equations.entries)
        }

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorLaw:
        """Of the line its standard errors, of its intervals how far they reach, where everything is as expected."""
        return _LineLaw(self, noises)

    def first_order(self, noises: Mapping[str, Noise]) -> ErrorLaw:
        """The exact law of the weighted noises, with the expected equations in the weights."""
        terms = self._terms(self._expected_weights, noises)
        if self.statistic.for_population:
            terms.append(
                Term("normal", 1.0, np.concatenate([self._sampling(self.gram * n) for n in self.rows]))
            )
        return ErrorLaw(terms, len(self._expected_weights))

    def _drawn(self, noises: Mapping[str, Noise], rows: float) -> tuple[Floats, Floats, Floats]:
        """Fixed draws of noise in steps, and what they make of the expected equations: the same at every epsilon."""
        matrices, vectors = self._directions
        size = self.equations.size
        half = np.random.default_rng(size).normal(size=(_DRAWS if size <= 8 else _DRAWS // 4, len(vectors)))
        noise = np.concatenate([half, -half]) * self._deviations(noises)
        grams = self.gram * rows + np.einsum("ke,eij->kij", noise, matrices)
        return noise, grams, self.gram @ self.theta * rows + noise @ vectors

    def inflation(self, noises: Mapping[str, Noise], rows: float) -> Floats:
        """Root mean squared errors over those to first order, where equations are as expected but for the noise."""
        noise, grams, rights = self._drawn(noises, rows)
        matrices, vectors = self._directions
        to_data, _ = self.equations.to_data()
        sizes, directions = np.linalg.eigh(grams)
        lifted = np.maximum(sizes, self._noise_level(noises))
        along = np.einsum("kij,ki->kj", directions, rights) / lifted
        found = np.einsum("kij,kj->ki", directions, along)
        weights = to_data @ np.linalg.solve(self.gram * rows, (vectors - matrices @ self.theta).T)
        first = np.square(noise @ weights.T).mean(axis=0)
        off = np.square((found - self.theta) @ to_data.T).mean(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.clip(np.nan_to_num(np.sqrt(off / first), nan=1.0), 0.2, 20.0))

    def endless_share(self, noises: Mapping[str, Noise], rows: float) -> float:
        """In which share of releases some coefficient is expected to have an interval without an end."""
        _, grams, rights = self._drawn(noises, rows)
        pairs = zip(grams, rights, strict=True)
        return float(np.mean([self.line(*pair, noises).endless(_NORMAL).any() for pair in pairs]))

    def caution(self, noises: Mapping[str, Noise]) -> str:
        """Said where rows are too few: how often a release would have an interval without an end."""
        worst = self.endless_share(noises, float(self.rows.min()))
        if worst < _RARE:
            return ""
        fewest = " in the smallest group" if len(self.rows) > 1 else ""
        return (
            f"{self.name!r} has too few rows{fewest} for its epsilon: about {100 * worst:.0f} of 100 releases would "
            "have a coefficient whose interval has no end; raise its weight, give it tighter bounds or fewer features"
        )

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

    def answer(
        self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], confidence: float = 0.95
    ) -> Answer:
        """The line of every group; a coefficient that the noise may have made has an interval without an end."""
        size = self.equations.size
        entries = self.equations.entries
        noise = self._noise_level(noises)
        values, lines = [], []
        to_data, constant = self.equations.to_data()
        for group in range(len(self.rows)):
            gram, right = self.equations.filled(
                [float(np.asarray(measured[e.slot.name]).reshape(-1)[group]) * e.slot.step for e in entries]
            )
            values.append(to_data @ np.linalg.solve(_repaired(gram, noise), right) + constant)
            lines.append(self.line(gram, right, noises))
        terms = self._terms(np.concatenate([line.weights(line.theta) for line in lines]), noises)
        terms.append(Term("normal", 1.0, np.sqrt(np.concatenate([line.sampling for line in lines]))))
        law = ErrorLaw(terms, len(lines) * size)
        centre = np.concatenate([to_data @ line.theta + constant for line in lines])

        def interval(level: float) -> tuple[Floats, Floats]:
            errors = law.errors(level).reshape(len(lines), size)
            ends = [line.reaches(own) for line, own in zip(lines, errors, strict=True)]
            below, above = (np.concatenate(side) for side in zip(*ends, strict=True))
            return centre - below, centre + above

        low, high = interval(confidence)
        endless = ~np.isfinite(high - low)
        return Answer.within(
            self.name,
            np.concatenate(values),
            np.where(endless, math.inf, law.standard_errors),
            interval,
            self.labels,
            confidence=confidence,
            note=_note(endless, self.labels),
        )

    def _noise_level(self, noises: Mapping[str, Noise]) -> float:
        """About how large an eigenvalue the noise alone can make: twice the root of the size times its deviation."""
        inside = [entry.slot for entry in self.equations.entries if entry.place[1] != -1]
        largest = max(math.sqrt(slot.variance(noises[slot.name])) * slot.step for slot in inside)
        return 2 * math.sqrt(self.equations.size) * largest


class _LineLaw(StatedLaw):
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
        return np.asarray(
            self._first.standard_errors * np.concatenate([ratios[number] for number in self._place])
        )

    @cached_property
    def _lines(self) -> list[NoisyLine]:
        gram, theta = self._output.gram, self._output.theta
        return [self._output.line(gram * rows, gram @ theta * rows, self._noises) for rows in self._kept]

    def _reaches(self, level: float) -> Floats:
        rows = self._output.rows
        plain = self._first.errors(level).reshape(len(rows), -1)
        found = []
        for number, own, size in zip(self._place, plain, rows, strict=True):
            scale = size / self._kept[number]
            found.append(np.maximum(*self._lines[number].reaches(own * scale)) / scale)
        return np.concatenate(found)

    def error(self, confidence: float = 0.95) -> float:
        """How far the widest interval is expected to reach."""
        return float(self.errors(checked_confidence(confidence)).max())


def _note(endless: NDArray[np.bool_], labels: Sequence[Any]) -> str:
    """Which coefficients have an interval without an end, and what would help."""
    if not endless.any():
        return ""
    named = [
        ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)
        for label, one in zip(labels, endless, strict=True)
        if one
    ]
    few = f"{', '.join(named[:4])} and {len(named) - 4} more" if len(named) > 5 else " and ".join(named)
    return (
        f"the interval has no end for {few}: compared with the noise, the rows vary too little; "
        "more epsilon, tighter bounds, fewer features or more rows would help"
    )


def outputs_of(
    statistics: Sequence[Statistic], facts: Facts
) -> tuple[list[Slot], list[Output], dict[str, Any], list[str]]:
    """Slots, outputs, columns to derive and assumptions of regressions."""
    slots: dict[str, Slot] = {}
    outputs: list[Output] = []
    assumptions: dict[str, None] = {}
    found: dict[tuple[Any, ...], NormalEquations] = {}
    derived = DerivedColumns(facts.schema, "product")
    for statistic in statistics:
        groups = labels_of(group_axes(statistic.by, facts.schema))
        key = (statistic.columns, statistic.where, statistic.by)  # names are cut short
        if key not in found:
            found[key] = normal_equations(statistic, facts, max(1, len(groups)), derived)
        equations = found[key]
        slots.update({entry.slot.name: entry.slot for entry in equations.entries})
        gram, theta, said = _expected(statistic, facts, equations)
        asked = np.atleast_1d(expected_rows(facts, statistic.where, statistic.by))
        rows = np.maximum(asked * _complete((*equations.features, equations.target), facts), 1.0)
        outputs.append(
            RegressionOutput(
                statistic,
                _labels(groups, equations),
                tuple(entry.slot for entry in equations.entries),
                np.tile(_reference(equations, facts), len(rows)),
                equations=equations,
                rows=rows,
                gram=gram,
                theta=theta,
                rows_per_unit=facts.dataset.rows_per_unit,
                assumed=bool(said),
            )
        )
        assumptions.update(dict.fromkeys((*assumptions_of(facts, statistic.columns), *said)))
    return list(slots.values()), outputs, derived.found, list(assumptions)


def _labels(groups: tuple[Any, ...], equations: NormalEquations) -> tuple[Any, ...]:
    terms = ("intercept", *(feature.label for feature in equations.features))
    if not groups:
        return terms
    return tuple(
        (*group, term) if isinstance(group, tuple) else (group, term) for group in groups for term in terms
    )


def _reference(equations: NormalEquations, facts: Facts) -> Floats:
    """A coefficient is judged beside the spread of the target over that of its feature."""
    target = equations.target.column
    spread = math.sqrt(expected_variance(facts, target))
    intercept = max(abs(expected_mean(facts, target)), spread)
    _, covariance = _expected_moments(equations.features, facts)
    deviations = np.sqrt(np.diag(covariance)) * [feature.half_width for feature in equations.features]
    return np.array([intercept, *(spread / deviations)])


def _expected_moments(columns: Sequence[Scaled], facts: Facts) -> tuple[Floats, Floats]:
    """Means and covariances, scaled: columns are taken to be independent, and categories exclude each other."""
    means, variances = np.empty(len(columns)), np.empty(len(columns))
    shares = np.zeros(len(columns))
    for place, one in enumerate(columns):
        if one.category is None:
            means[place] = (expected_mean(facts, one.column) - one.middle) / one.half_width
            variances[place] = expected_variance(facts, one.column) / one.half_width**2
            if not one.flag and facts.column(one.column).assumed:
                variances[place] = UNSAID**2
        else:
            domain = facts.schema[one.column]
            assert isinstance(domain, Categories)
            found = category_shares(facts, one.column, domain.values)
            shares[place] = share = min(max(float(found[domain.values.index(one.category)]), 1e-6), 1 - 1e-6)
            means[place], variances[place] = 2 * share - 1, 4 * share * (1 - share)
    covariance = np.diag(variances)
    for i, left in enumerate(columns):
        for j, right in enumerate(columns):
            if i != j and left.category is not None and left.column == right.column:
                covariance[i, j] = -4 * shares[i] * shares[j]
    return means, covariance


def _expected(
    statistic: Statistic, facts: Facts, equations: NormalEquations
) -> tuple[Floats, Floats, tuple[str, ...]]:
    """The Gram matrix of one row and the coefficients, scaled; from a public table, else as if independent."""
    columns = (*equations.features, equations.target)
    table = _public_rows(columns, facts)
    said: tuple[str, ...] = ()
    if table is not None:
        design = np.column_stack((np.ones(len(table)), table[:, :-1]))
        gram = design.T @ design / len(table) + 1e-9 * np.eye(equations.size)
        theta = np.asarray(np.linalg.solve(gram, design.T @ table[:, -1] / len(table)), dtype=np.float64)
    else:
        means, covariance = _expected_moments(columns, facts)
        variances = np.diag(covariance).copy()
        target = equations.target  # of it the wider spread is the more careful guess
        variances[-1] = expected_variance(facts, target.column) / target.half_width**2
        corner = np.concatenate(([1.0], means[:-1]))
        gram = np.outer(corner, corner)
        gram[1:, 1:] += covariance[:-1, :-1] + 1e-9 * np.eye(len(means) - 1)
        slopes = np.sqrt(EXPLAINED * variances[-1] / (len(means) - 1) / variances[:-1])
        theta = np.concatenate(([means[-1] - slopes @ means[:-1]], slopes))
        said = (
            f"the columns of {statistic.default_name!r} are assumed to be independent, to have a standard deviation "
            "of an eighth of the distance between their bounds if nothing is expected of them, and to explain half of "
            f"the variance of {statistic.target}; say expected={{{statistic.name!r}: [intercept, ...]}}",
        )
    given = facts.expected.get(statistic.name)
    if given is None or statistic.name in facts.schema:  # a column of that name is what is meant
        return gram, theta, said
    wanted = (
        np.asarray(given, dtype=float).reshape(-1)
        if isinstance(given, list | tuple | np.ndarray)
        else np.empty(0)
    )
    if len(wanted) != equations.size or not np.isfinite(wanted).all():
        raise InvalidValue(
            f"expected[{statistic.name!r}]", given, f"must be {equations.size} numbers, the intercept first"
        )
    to_data, constant = equations.to_data()
    return gram, np.asarray(np.linalg.solve(to_data, wanted - constant), dtype=np.float64), ()


def _public_rows(columns: Sequence[Scaled], facts: Facts) -> Floats | None:
    """Expected lists of equal length are read as the columns of one public table, of its complete rows."""
    found = _public_lists(columns, facts)
    if found is None:
        return None
    lists, complete = found
    if complete.sum() <= len(columns):
        return None
    return np.column_stack(
        [
            column.scaled(list(itertools.compress(values, complete)))
            for column, values in zip(columns, lists, strict=True)
        ]
    )


def _public_lists(
    columns: Sequence[Scaled], facts: Facts
) -> tuple[list[list[Any]], NDArray[np.bool_]] | None:
    lists = [facts.expected.get(column.column) for column in columns]
    if not all(isinstance(values, list | np.ndarray) for values in lists):
        return None
    if len({len(values) for values in lists}) != 1:  # type: ignore[arg-type]
        return None
    every = [list(values) for values in lists]  # type: ignore[arg-type]
    return every, np.array(
        [all(value is not None for value in row) for row in zip(*every, strict=True)], dtype=bool
    )


def _complete(columns: Sequence[Scaled], facts: Facts) -> float:
    """The share of rows that lack none of the columns; other rows are in no sum."""
    found = _public_lists(columns, facts)
    if found is not None and found[1].any():
        return float(found[1].mean())
    return math.prod(facts.present(name) for name in dict.fromkeys(one.column for one in columns))


def _repaired(gram: Floats, noise: float) -> Floats:
    """The matrix with every eigenvalue at least as large as the noise: directions that drown are shrunk."""
    sizes, directions = np.linalg.eigh(gram)
    if sizes[0] > noise:
        return gram
    return np.asarray(directions @ np.diag(np.maximum(sizes, noise)) @ directions.T)

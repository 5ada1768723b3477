"""Linear regression: the least-squares line from noisy normal equations, with the exact law of what the noise does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.inference import Answer, ErrorLaw, Term
from farthing.release.counting.questions import group_axes, labels_of
from farthing.release.counting.shares import assumptions_of, expected_rows
from farthing.release.derived_columns import DerivedColumns
from farthing.release.facts import Facts
from farthing.release.moments.sharing import expected_mean, expected_variance
from farthing.release.noise import Noise
from farthing.release.outputs import Output
from farthing.release.regression_sums import NormalEquations, Scaled, normal_equations
from farthing.release.slots import Integers, Slot
from farthing.release.statistic import Statistic

Floats = NDArray[np.float64]
EXPLAINED = 0.5
"""The share of the target's variance that the features are taken to explain, when nothing else is said."""


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

    def weights(self, gram: Floats, theta: Floats) -> Floats:
        """What one step of each entry's noise moves the answer by: coefficients by entries."""
        inverse = np.linalg.inv(gram)
        to_data, _ = self.equations.to_data()
        columns = []
        for entry in self.equations.entries:
            matrix, vector = self.equations.direction(entry)
            columns.append(to_data @ inverse @ (vector - matrix @ theta) * entry.slot.step)
        return np.stack(columns, axis=1)

    @cached_property
    def _expected_weights(self) -> Floats:
        """Cells by entries: groups differ in their number of rows only."""
        one = self.weights(self.gram, self.theta)
        return np.concatenate([one / rows for rows in self.rows])

    @cached_property
    def coefficients(self) -> Mapping[str, Floats]:
        """The squared weights where everything is as expected."""
        return {
            entry.slot.name: self._expected_weights[:, place] ** 2
            for place, entry in enumerate(self.equations.entries)
        }

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorLaw:
        """The exact law of the weighted noises where everything is as expected."""
        terms = self._terms(self._expected_weights, noises)
        if self.statistic.for_population:
            terms.append(
                Term("normal", 1.0, np.concatenate([self._sampling(self.gram * n) for n in self.rows]))
            )
        return ErrorLaw(terms, len(self._expected_weights))

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
        """The line of every group; one whose equations drown in noise gets an interval without ends."""
        size = self.equations.size
        entries = self.equations.entries
        noise = self._noise_level(noises)
        values, centres, weights, sampling, lost = [], [], [], [], []
        to_data, constant = self.equations.to_data()
        for group in range(len(self.rows)):
            gram, right = self.equations.filled(
                [float(np.asarray(measured[e.slot.name]).reshape(-1)[group]) * e.slot.step for e in entries]
            )
            repaired = _repaired(gram, noise)
            theta = np.asarray(np.linalg.solve(repaired, right), dtype=np.float64)
            values.append(to_data @ theta + constant)
            drowned = bool(np.linalg.eigvalsh(gram)[0] <= noise)
            lost.extend([drowned] * size)
            if not drowned:
                theta = np.asarray(np.linalg.solve(gram, right), dtype=np.float64)
            centres.append(to_data @ theta + constant)
            weights.append(self.weights(gram if not drowned else repaired, theta))
            sampling.append(self._sampling(repaired))
        terms = self._terms(np.concatenate(weights), noises)
        if self.statistic.for_population:
            terms.append(Term("normal", 1.0, np.concatenate(sampling)))
        law = ErrorLaw(terms, len(self.rows) * size)
        centre, unknown = np.concatenate(centres), np.array(lost)

        def interval(level: float) -> tuple[Floats, Floats]:
            errors = np.where(unknown, math.inf, law.errors(level))
            return centre - errors, centre + errors

        return Answer.within(
            self.name,
            np.concatenate(values),
            np.where(unknown, math.inf, law.standard_errors),
            interval,
            self.labels,
            confidence=confidence,
        )

    def _noise_level(self, noises: Mapping[str, Noise]) -> float:
        """About how large an eigenvalue the noise alone can make: twice the root of the size times its deviation."""
        inside = [entry.slot for entry in self.equations.entries if entry.place[1] != -1]
        largest = max(math.sqrt(slot.variance(noises[slot.name])) * slot.step for slot in inside)
        return 2 * math.sqrt(self.equations.size) * largest


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
        rows = np.maximum(np.atleast_1d(expected_rows(facts, statistic.where, statistic.by)), 1.0)
        outputs.append(
            RegressionOutput(
                statistic,
                _labels(groups, statistic),
                tuple(entry.slot for entry in equations.entries),
                np.tile(_reference(statistic, facts), len(rows)),
                equations=equations,
                rows=rows,
                gram=gram,
                theta=theta,
                rows_per_unit=facts.dataset.rows_per_unit,
            )
        )
        assumptions.update(dict.fromkeys((*assumptions_of(facts, statistic.columns), *said)))
    return list(slots.values()), outputs, derived.found, list(assumptions)


def _labels(groups: tuple[Any, ...], statistic: Statistic) -> tuple[Any, ...]:
    terms = ("intercept", *statistic.features)
    if not groups:
        return terms
    return tuple(
        (*group, term) if isinstance(group, tuple) else (group, term) for group in groups for term in terms
    )


def _reference(statistic: Statistic, facts: Facts) -> Floats:
    """A coefficient is judged beside the spread of the target over that of its feature."""
    spread = math.sqrt(expected_variance(facts, statistic.target))
    intercept = max(abs(expected_mean(facts, statistic.target)), spread)
    return np.array(
        [intercept, *(spread / math.sqrt(expected_variance(facts, name)) for name in statistic.features)]
    )


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
        means = np.array([(expected_mean(facts, c.column) - c.middle) / c.half_width for c in columns])
        variances = np.array([expected_variance(facts, c.column) / c.half_width**2 for c in columns])
        corner = np.concatenate(([1.0], means[:-1]))
        gram = np.outer(corner, corner) + np.diag(np.concatenate(([0.0], variances[:-1])))
        slopes = np.sqrt(EXPLAINED * variances[-1] / (len(means) - 1) / variances[:-1])
        theta = np.concatenate(([means[-1] - slopes @ means[:-1]], slopes))
        said = (
            f"the columns of {statistic.default_name!r} are taken to be independent and to explain half of "
            f"{statistic.target}; say expected={{{statistic.name!r}: [intercept, ...]}}",
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
    """Expected lists of equal length are read as the columns of one public table."""
    lists = [facts.expected.get(column.column) for column in columns]
    if not all(isinstance(values, list | np.ndarray) for values in lists):
        return None
    sizes = {len(values) for values in lists}  # type: ignore[arg-type]
    if len(sizes) != 1 or sizes.pop() <= len(columns):
        return None
    return np.column_stack([column.scaled(values) for column, values in zip(columns, lists, strict=True)])


def _repaired(gram: Floats, noise: float) -> Floats:
    """The matrix with every eigenvalue at least as large as the noise: directions that drown are shrunk."""
    sizes, directions = np.linalg.eigh(gram)
    if sizes[0] > noise:
        return gram
    return np.asarray(directions @ np.diag(np.maximum(sizes, noise)) @ directions.T)

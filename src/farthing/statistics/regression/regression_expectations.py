"""What is expected of the columns of a regression: the matrix of one row, the line, and what nobody said of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.schema import Categories, Flags
from farthing.errors import InvalidValue
from farthing.statistics.counts.expected_shares import PRESENT, category_shares
from farthing.statistics.moments.moment_measurements import expected_mean, expected_variance
from farthing.statistics.public_facts import Assumption, Facts
from farthing.statistics.regression.normal_equations import NormalEquations, Scaled
from farthing.statistics.statistic import Statistic

Floats = NDArray[np.float64]
EXPLAINED = 0.5
"""The share of the target's variance that features explain in the line a budget is divided for, if none is expected."""

UNSAID = 0.25
"""The deviation of a feature of which nothing is expected that a budget is divided for, over half of its bounds."""

_TARGETS = (-1.0, -0.6, 0.0, 0.6, 1.0)  # means of a target of which nothing is expected, scaled


@dataclass(frozen=True, eq=False)
class Expectation:
    """One row's Gram matrix and the line, scaled; a budget is divided for `gram` and `theta`.

    `lines` are the lines that errors are predicted for: `theta` alone where it is given, else the steepest that the
    spread of the target allows. `unsaid` are features of which nobody said how far they vary: then no error can be
    predicted, since the coefficient of one that hardly varies could be anything. `joint` says whether it is
    known how the features go together, and `complete` is the expected share of rows that lack none of the columns.
    """

    gram: Floats
    theta: Floats
    lines: tuple[Floats, ...]
    complete: float
    unsaid: tuple[Scaled, ...] = ()
    joint: bool = True
    table: bool = False  # the columns are expected row by row
    target_expected: bool = True
    line_expected: bool = True

    @property
    def best(self) -> tuple[Floats, Floats]:
        """The matrix and the line at which errors are smallest: what nobody said varies as far as its bounds allow."""
        flat = np.zeros_like(self.theta)
        if self.line_expected:
            flat = self.theta
        elif self.target_expected:
            flat[0] = self.gram[0] @ self.theta
        return (np.eye(len(flat)) if self.unsaid else self.gram), flat


def expectation_of(statistic: Statistic, facts: Facts, equations: NormalEquations) -> Expectation:
    """From a public table, else from what is expected of each column, as if they were independent."""
    columns = (*equations.features, equations.target)
    complete, expected_line = _complete(columns, facts), _line(statistic, facts, equations)
    table = _public_rows(columns, facts)
    if table is not None:
        design = np.column_stack((np.ones(len(table)), table[:, :-1]))
        gram = design.T @ design / len(table) + 1e-9 * np.eye(equations.size)
        coefficients = np.asarray(np.linalg.solve(gram, design.T @ table[:, -1] / len(table)), dtype=np.float64)
        theta = coefficients if expected_line is None else expected_line
        return Expectation(gram, theta, (theta,), complete, table=True)
    means, covariance = expected_moments(columns, facts)
    variances = np.diag(covariance).copy()
    target = equations.target  # of it the wider spread is the more careful guess
    variances[-1] = expected_variance(facts, target.column) / target.half_width**2
    corner = np.concatenate(([1.0], means[:-1]))
    gram = np.outer(corner, corner)
    gram[1:, 1:] += covariance[:-1, :-1] + 1e-9 * np.eye(len(means) - 1)
    slopes = np.sqrt(EXPLAINED * variances[-1] / (len(means) - 1) / variances[:-1])
    middle = np.concatenate(([means[-1] - slopes @ means[:-1]], slopes))
    expected = target.column in facts.expected
    targets = [(float(means[-1]), float(variances[-1]))] if expected else [(m, 1 - m**2) for m in _TARGETS]
    lines = tuple(line for one in targets for line in _steepest(*one, means[:-1], variances[:-1]))
    return Expectation(
        gram,
        middle if expected_line is None else expected_line,
        lines if expected_line is None else (expected_line,),
        complete,
        unsaid=tuple(one for one in equations.features if one.column not in facts.expected),
        joint=len({one.column for one in equations.features}) == 1,
        target_expected=expected,
        line_expected=expected_line is not None,
    )


def _steepest(mean: float, variance: float, means: Floats, variances: Floats) -> list[Floats]:
    """Level, and with each of the features explaining all of the target, rising or falling."""
    lines = [np.concatenate(([mean], np.zeros(len(means))))]
    for place, sign in itertools.product(range(len(means)), (-1.0, 1.0)):
        line = lines[0].copy()
        line[place + 1] = sign * math.sqrt(variance / variances[place])
        line[0] -= line[place + 1] * means[place]
        lines.append(line)
    return lines


def expected_moments(columns: Sequence[Scaled], facts: Facts) -> tuple[Floats, Floats]:
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
            by_category = category_shares(facts, one.column, domain.values)
            shares[place] = share = min(max(float(by_category[domain.values.index(one.category)]), 1e-6), 1 - 1e-6)
            means[place], variances[place] = 2 * share - 1, 4 * share * (1 - share)
    covariance = np.diag(variances)
    for i, left in enumerate(columns):
        for j, right in enumerate(columns):
            if i != j and left.category is not None and left.column == right.column:
                covariance[i, j] = -4 * shares[i] * shares[j]
    return means, covariance


def _line(statistic: Statistic, facts: Facts, equations: NormalEquations) -> Floats | None:
    """The line that is expected by the name of the statistic, scaled."""
    given = facts.expected.get(statistic.name)
    if given is None or statistic.name in facts.schema:  # a column of that name is what is meant
        return None
    line = np.asarray(given, dtype=float).reshape(-1) if isinstance(given, list | tuple | np.ndarray) else np.empty(0)
    if len(line) != equations.size or not np.isfinite(line).all():
        raise InvalidValue(
            f"expected[{statistic.name!r}]", given, f"must be {equations.size} numbers, the intercept first"
        )
    to_data, constant = equations.to_data()
    return np.asarray(np.linalg.solve(to_data, line - constant), dtype=np.float64)


def _public_rows(columns: Sequence[Scaled], facts: Facts) -> Floats | None:
    """Expected lists of equal length are read as the columns of one public table, of its complete rows."""
    public = _public_lists(columns, facts)
    if public is None:
        return None
    lists, complete = public
    if complete.sum() <= len(columns):
        return None
    return np.column_stack(
        [
            column.scaled(list(itertools.compress(values, complete)))
            for column, values in zip(columns, lists, strict=True)
        ]
    )


def _public_lists(columns: Sequence[Scaled], facts: Facts) -> tuple[list[list[Any]], NDArray[np.bool_]] | None:
    lists = [facts.expected.get(column.column) for column in columns]
    if not all(isinstance(values, list | np.ndarray) for values in lists):
        return None
    if len({len(values) for values in lists}) != 1:  # type: ignore[arg-type]
        return None
    every = [list(values) for values in lists]  # type: ignore[arg-type]
    return every, np.array([all(value is not None for value in row) for row in zip(*every, strict=True)], dtype=bool)


def _complete(columns: Sequence[Scaled], facts: Facts) -> float:
    """The share of rows that lack none of the columns; other rows are in no sum.

    Of a column of which nothing is expected a quarter of the rows may lack a value, as for every statistic.
    """
    public = _public_lists(columns, facts)
    if public is not None and public[1].any():
        return float(public[1].mean())
    names = dict.fromkeys(one.column for one in columns)
    return math.prod(facts.present(name) if name in facts.expected else PRESENT for name in names)


def way_out(one: Scaled, facts: Facts) -> str:
    """What to say about a feature of which nothing is expected."""
    domain = facts.schema[one.column]
    if isinstance(domain, Flags):
        return "share of true"
    return "share of each category" if isinstance(domain, Categories) else "mean and standard deviation"


def assumptions_about(statistic: Statistic, expected: Expectation, sizes: bool) -> list[Assumption]:
    """What its predicted error rests on that nobody said."""
    assumptions, name, target = [], statistic.default_name, statistic.target
    for column in dict.fromkeys(one.column for one in expected.unsaid):
        fact = f"nothing is known about {column} in {name!r}, so no error is predicted"
        assumptions.append(Assumption(fact, column))
    if not expected.joint and not expected.unsaid:
        assumptions.append(
            Assumption(
                f"the features of {name!r} are assumed not to be related to each other; pass expected={{...}} with a "
                "public list for every column"
            )
        )
    if not expected.line_expected and not expected.table and not expected.unsaid:
        fact = f"errors of {name!r} are predicted for the steepest line"
        assumptions.append(Assumption(fact, statistic.name, "[intercept, ...]"))
    if not expected.target_expected and not expected.unsaid and not expected.table:
        assumptions.append(Assumption(f"a quarter of the rows are assumed to lack {target}", target))
    if not sizes:
        count = Statistic("count", where=statistic.where, by=statistic.by).name
        fact = "errors of groups and conditions are predicted for half of an even share of the rows"
        assumptions.append(Assumption(fact, count))
    return assumptions

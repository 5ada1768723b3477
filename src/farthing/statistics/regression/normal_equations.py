"""The sums a least-squares line is made of: one measurement for each entry of the normal equations.

Every column is centred and scaled to -1 .. 1 first, so that one row moves every entry by at most 1 (a square, moved
down by a half, by at most 1/2). Entries are measured apart: a plan can then give each the noise it deserves, and
Gaussian noise on them costs together what it costs on the vector.

A column of categories is one flag for each category but the first. What follows from other sums is not measured: the
square of a flag (-1 or 1) is 1, and the product of the flags u, v of two categories of one column is -1 - u - v.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data import Count, Integers, Reals, Sum
from farthing.data.aggregates.aggregate import Aggregate, domain_of
from farthing.data.expressions import read
from farthing.data.expressions.syntax_tree import written_constant
from farthing.data.schema import Categories, Flags
from farthing.errors import InvalidValue
from farthing.statistics.measurements import Slot
from farthing.statistics.moments.moment_measurements import quoted
from farthing.statistics.public_facts import DerivedColumns, Facts
from farthing.statistics.statistic import Statistic, column_text, text_of

Floats = NDArray[np.float64]
FINEST = 2.0**-20
MOST_FEATURES = 20


@dataclass(frozen=True)
class Scaled:
    """A column as a number u in -1 .. 1: (x - middle) / half_width."""

    column: str
    text: str
    middle: float
    half_width: float
    flag: bool = False
    category: Any = None  # the flag is whether the column has this value
    compared: Any = None  # the first category of the column, which has no flag of its own

    @property
    def label(self) -> str:
        """What its coefficient is called."""
        return self.column if self.category is None else f"{self.column} = {self.category}"

    @classmethod
    def all_of(cls, column: str, facts: Facts) -> tuple[Scaled, ...]:
        """A feature: the column itself, or a flag for each category after the first, which they are compared with."""
        domain = domain_of(column, facts.schema)
        if not isinstance(domain, Categories):
            return (cls.of(column, facts),)
        if len(domain.values) < 2:
            raise InvalidValue(
                "column", column, "must have two categories or more to be in a regression", "leave it out"
            )
        scaled = []
        for value in domain.values[1:]:
            test = f"{quoted(column)} = {written_constant(value)}"
            text = f"(case when {test} then 1.0 when not {test} then -1.0 end)"
            scaled.append(cls(column, text, 0.5, 0.5, flag=True, category=value, compared=domain.values[0]))
        return tuple(scaled)

    @classmethod
    def of(cls, column: str, facts: Facts) -> Scaled:
        """The column by its bounds; a flag is 0 or 1."""
        domain = domain_of(column, facts.schema)
        name = quoted(column)
        if isinstance(domain, Flags):
            return cls(column, f"(case when {name} then 1.0 when not {name} then -1.0 end)", 0.5, 0.5, flag=True)
        if not isinstance(domain, Integers | Reals) or domain.lower == domain.upper:
            raise InvalidValue(
                "column",
                column,
                "must hold numbers with two different bounds to be in a regression",
                "derive a number from it first, as in case when ... then 1 else 0 end",
            )
        lower, upper = float(domain.lower), float(domain.upper)
        middle, half = lower + (upper - lower) / 2, (upper - lower) / 2
        return cls(column, f"((cast({name} as double) - ({middle!r})) / {half!r})", middle, half)

    def scaled(self, values: Any) -> Floats:
        """Public values in the scale of the measurements."""
        if self.category is not None:
            return np.array([1.0 if value == self.category else -1.0 for value in values])
        return np.clip((np.asarray(values, dtype=float) - self.middle) / self.half_width, -1.0, 1.0)


@dataclass(frozen=True)
class Entry:
    """One measured sum and where it stands: in the Gram matrix of (1, features) at `place`, or with the target.

    `place` are two numbers, 0 for the constant; the target is number -1.
    """

    slot: Slot
    place: tuple[int, int]


@dataclass(frozen=True)
class NormalEquations:
    """All entries of one regression, in every group."""

    target: Scaled
    features: tuple[Scaled, ...]
    entries: tuple[Entry, ...]

    @property
    def size(self) -> int:
        """How many coefficients there are, the intercept included."""
        return len(self.features) + 1

    def filled(self, numbers: Sequence[float]) -> tuple[Floats, Floats]:
        """The Gram matrix and the right-hand side from one number for each entry."""
        gram, right = np.zeros((self.size, self.size)), np.zeros(self.size)
        for entry, number in zip(self.entries, numbers, strict=True):
            matrix, vector = self.direction(entry)
            gram += number * matrix
            right += number * vector
        return gram, right

    def direction(self, entry: Entry) -> tuple[Floats, Floats]:
        """What one unit of an entry adds to the matrix and to the right-hand side."""
        matrix, vector = np.zeros((self.size, self.size)), np.zeros(self.size)
        i, j = entry.place
        if j == -1:
            vector[i] = 1.0
        else:
            matrix[i, j] = matrix[j, i] = 1.0
        if entry.place == (0, 0):
            for k, feature in enumerate(self.features, start=1):
                matrix[k, k] = 1.0 if feature.flag else 0.5  # the halves that were taken off the squares
        if entry.place[0] == 0 and j != -1:
            for k, other in self._implied:
                if entry.place == (0, 0) or j in (k, other):
                    matrix[k, other] = matrix[other, k] = -1.0
        return matrix, vector

    @cached_property
    def _implied(self) -> list[tuple[int, int]]:
        """Pairs of flags of one column's categories, whose product follows from them."""
        numbers = range(1, self.size)
        return [(i, j) for i in numbers for j in numbers if i < j and self._one_column(i, j)]

    def _one_column(self, i: int, j: int) -> bool:
        left, right = self.features[i - 1], self.features[j - 1]
        return left.category is not None and left.column == right.column

    def to_data(self) -> tuple[Floats, Floats]:
        """T and c: the intercept and the coefficients in the units of the data are T theta + c."""
        matrix = np.zeros((self.size, self.size))
        matrix[0, 0] = self.target.half_width
        for k, feature in enumerate(self.features, start=1):
            matrix[k, k] = self.target.half_width / feature.half_width
            matrix[0, k] = -matrix[k, k] * feature.middle
        constant = np.zeros(self.size)
        constant[0] = self.target.middle
        return matrix, constant


def normal_equations(statistic: Statistic, facts: Facts, cells: int, derived: DerivedColumns) -> NormalEquations:
    """The measurements of one regression."""
    target = Scaled.of(statistic.target, facts)
    features = tuple(part for name in statistic.features for part in Scaled.all_of(name, facts))
    if len(features) > MOST_FEATURES:
        raise InvalidValue(
            "features",
            f"{len(features)} coefficients",
            f"must be at most {MOST_FEATURES}",
            "every pair of them is measured: leave some out, or merge categories",
        )
    complete = " and ".join(f"{quoted(name)} is not null" for name in statistic.columns)
    maker = _Maker(statistic, facts, cells, derived, complete)
    terms = [None, *features]
    entries = [Entry(maker.count(), (0, 0))]
    for i, j in combinations_with_replacement(range(len(terms)), 2):
        left, right = terms[i], terms[j]
        if right is None or (left is right and right.flag):
            continue
        if left is not None and left is not right and left.category is not None and left.column == right.column:
            continue
        entries.append(Entry(maker.sum(left, right), (i, j)))
    entries.extend(Entry(maker.sum(term, target), (i, -1)) for i, term in enumerate(terms))
    return NormalEquations(target, features, tuple(entries))


@dataclass
class _Maker:
    statistic: Statistic
    facts: Facts
    cells: int
    derived: DerivedColumns
    complete: str

    def count(self) -> Slot:
        name = self._derive("1", (0, 1))
        return self._slot(f"number of {self._whose}", Count(name, by=self._by, where=self._where), 1.0, name)

    def sum(self, left: Scaled | None, right: Scaled | None) -> Slot:
        assert right is not None
        if left is None:
            text, bound, word = right.text, 2**20, column_text(right.label)
        elif left is right:
            text, bound, word = (
                f"({left.text} * {left.text} - 0.5)",
                2**19,
                f"square of {column_text(left.label)}",
            )
        else:
            text, bound, word = (
                f"({left.text} * {right.text})",
                2**20,
                f"{column_text(left.label)} times {column_text(right.label)}",
            )
        name = self._derive(f"round({text} / {FINEST!r})", (-bound, bound))
        aggregate = Sum(name, grid=1.0, by=self._by, where=self._where)
        return self._slot(f"sum of {word} in {self._whose}", aggregate, FINEST, name)

    def _derive(self, text: str, bounds: tuple[int, int]) -> str:
        """A row counts where no column of the regression is missing."""
        return self.derived.named((f"case when {self.complete} then {text} end", bounds))

    def _slot(self, name: str, plain: Aggregate, step: float, derived: str) -> Slot:
        aggregate = self.facts.bounded(plain, shared=True)  # all entries must be of the same rows
        return Slot(
            name=self.facts.slot_name(name),
            aggregate=aggregate,
            sensitivity=self.facts.sensitivity(aggregate, {derived: self.derived.expressions[derived]}),
            cells=self.cells,
            step=step,
            kinds=("laplace",) if self.facts.pure else ("laplace", "gaussian"),
        )

    @property
    def _by(self) -> tuple[str, ...]:
        return self.statistic.by

    @property
    def _where(self) -> Any:
        """Where a unit may bring few rows, those that do not count must not take the place of others."""
        asked = self.statistic.where
        if self.facts.bound is None:
            return asked
        return self.complete if asked is None else f"({read(asked, self.facts.schema).text}) and {self.complete}"

    @property
    def _whose(self) -> str:
        statistic = self.statistic
        text = f"regression of {column_text(statistic.target)} on {' and '.join(map(column_text, statistic.features))}"
        if statistic.where is not None:
            text += f" where {text_of(statistic.where)}"
        return text + (f" by {' and '.join(map(column_text, statistic.by))}" if statistic.by else "")

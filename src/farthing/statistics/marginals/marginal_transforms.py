"""What is measured of marginals: the levels of a plan for them, each times a whole weight."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.inference.consistent_marginals import Subset
from farthing.inference.linked_counts import Covariance
from farthing.matrix.strategies.marginals import MarginalFit, MarginalPlan
from farthing.statistics.cells.statistic_cells import CellAxis
from farthing.statistics.marginals.single_margins import SingleMargins
from farthing.statistics.ranges.strategy_transforms import Columns


@dataclass(frozen=True, eq=False)
class MarginalCells:
    """All sets of `way` of the columns in `axes`, inside every cell of `groups` (the columns of `by`)."""

    groups: tuple[CellAxis, ...]
    axes: tuple[CellAxis, ...]
    way: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each column has."""
        return tuple(len(axis) for axis in self.axes)

    @cached_property
    def subsets(self) -> tuple[Subset, ...]:
        """The sets of columns, by their places."""
        return tuple(itertools.combinations(range(len(self.axes)), self.way))

    @cached_property
    def group_count(self) -> int:
        """How many groups there are."""
        return math.prod(len(axis) for axis in self.groups)

    def shape(self, subset: Subset) -> tuple[int, ...]:
        """The shape of one table in one group."""
        return tuple(len(self.axes[column]) for column in subset)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """The cells of every table, all groups together."""
        return tuple(self.group_count * math.prod(self.shape(subset)) for subset in self.subsets)

    @property
    def count(self) -> int:
        """All cells of all tables."""
        return sum(self.lengths)

    def tables(self, flat: Floats) -> dict[Subset, Floats]:
        """Flat cells as tables, with the group in front."""
        parts = np.split(np.asarray(flat), np.cumsum(self.lengths)[:-1])
        return {
            subset: part.reshape(self.group_count, *self.shape(subset))
            for subset, part in zip(self.subsets, parts, strict=True)
        }

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Each cell in words.

        >>> from farthing.data.schema import Categories, Integers
        >>> sex, age = CellAxis("sex", Categories(("F", "M"))), CellAxis("age", Integers(0, 99), (0, 18, 99))
        >>> MarginalCells((), (sex, age), 2).labels[:2]
        ('sex = F, age = 0 to 18', 'sex = F, age = 18 to 99')
        """
        words = {axis.column: _cell_texts(axis) for axis in (*self.groups, *self.axes)}
        labels: list[str] = []
        for subset in self.subsets:
            chosen = [*self.groups, *(self.axes[column] for column in subset)]
            labels += [", ".join(parts) for parts in itertools.product(*(words[axis.column] for axis in chosen))]
        return tuple(labels)


def _cell_texts(axis: CellAxis) -> list[str]:
    return [f"{axis.column} = {_label_text(label)}" for label in axis.labels]


def _label_text(label: Any) -> str:
    if isinstance(label, tuple):
        return f"{_label_text(label[0])} to {_label_text(label[1])}"
    return f"{label:.8g}" if isinstance(label, float) else str(label)


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_COARSEST = 128.0  # of the weights: no level is rounded by more than half a percent
_LARGEST = 2**62
_MOST_MARGINS = 4_096  # cells of all margins that are brought to agree with other counts


@dataclass(frozen=True, eq=False)
class MarginalTransform:
    """The weighted levels of a plan, for `groups` groups of tables that no row shares.

    `tables` are the sets of columns that an engine counts, in the order in which it hands them over. After them may
    come, for each column, the rows that are in no table, in so many cells as `others` says: such a row moves one number
    of every column by `others_weight`, no further than a row in the tables moves the levels.
    """

    plan: MarginalPlan
    weights: tuple[int, ...]
    tables: tuple[Subset, ...] = ()
    groups: int = 1
    others: tuple[int, ...] = ()
    others_weight: int = 0

    @classmethod
    def weighted(cls, plan: MarginalPlan) -> MarginalTransform:
        """Weights that divide one noise over the levels as the plan does."""
        plain = [level.plain for level in plan.levels]
        if plan.norm == "l1":
            ideal = plan.shares / np.array([float(level.l1) for level in plain])
        else:
            ideal = np.sqrt(plan.shares / np.array([float(level.l2_squared) for level in plain]))
        return cls(plan, _whole(ideal, _COARSEST))

    def scaled(self, factor: float) -> MarginalTransform:
        """All weights times a factor, as near as whole numbers come."""
        return replace(self, weights=_whole(np.asarray(self.weights, dtype=float), min(self.weights) * factor))

    @cached_property
    def _sizes(self) -> list[int]:
        return [level.plain.size for level in self.plan.levels]

    @property
    def _in_tables(self) -> int:
        return self.groups * sum(self._sizes)

    @property
    def size(self) -> int:
        """How many numbers are measured: in all groups, and of other rows."""
        return self._in_tables + sum(self.others)

    @cached_property
    def columns(self) -> Columns:
        """The norms of the levels' columns, added up; a row in no table moves as many numbers as there are columns."""
        parts = [(w, level.plain) for w, level in zip(self.weights, self.plan.levels, strict=True)]
        outside, count = self.others_weight, len(self.others)
        return Columns(
            l0=max(count, sum(min(level.size, level.l1) for _, level in parts)),
            l1=max(count * outside, sum(weight * level.l1 for weight, level in parts)),
            l2_squared=max(count * outside**2, sum(weight**2 * level.l2_squared for weight, level in parts)),
            linf=max(outside, *(weight * math.isqrt(level.l2_squared) for weight, level in parts)),
            signed=any(level.contrasts for level in self.plan.levels),
        )

    def with_others(self, others: tuple[int, ...]) -> MarginalTransform:
        """The same counting all other rows by each column, too, as precisely as costs nothing."""
        columns = replace(self, others=(), others_weight=0).columns
        count = len(others)
        weight = columns.l1 // count if self.plan.norm == "l1" else math.isqrt(columns.l2_squared // count)
        return replace(self, others=others, others_weight=weight) if weight else self

    @cached_property
    def digest(self) -> str:
        """Of everything that decides the numbers."""
        facts = (
            self.plan.sizes,
            [(level.subset, level.contrasts) for level in self.plan.levels],
            self.weights,
            self.tables,
            self.groups,
            *((self.others, self.others_weight) if self.others else ()),
        )
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    def apply(self, exact: Any) -> Integers:
        """The weighted levels of one group after the other."""
        counted: Sequence[Any] = exact if isinstance(exact, list) else [exact]
        shapes = [tuple(self.plan.sizes[column] for column in table) for table in self.tables]
        outside = counted[len(shapes) :] if self.others else []
        counted = counted[: len(shapes)]
        tables = [np.asarray(table).reshape(self.groups, *shape) for table, shape in zip(counted, shapes, strict=True)]
        totals = []
        for group in range(self.groups):
            own = {subset: table[group] for subset, table in zip(self.tables, tables, strict=True)}
            for weight, numbers in zip(self.weights, self.plan.measure_exact(own), strict=True):
                # So that no number leaves 64 bits; cutting off moves no two of them further apart.
                most = _LARGEST // weight
                totals.append(weight * np.clip(numbers, -most, most))
        for own in outside:
            numbers = np.asarray(own, dtype=np.int64).reshape(-1)
            totals.append(self.others_weight * np.clip(numbers, 0, _LARGEST // self.others_weight))
        return np.concatenate(totals)

    @cached_property
    def fit(self) -> MarginalFit:
        """Least squares when every measured number has noise of variance 1."""
        return self.plan.fit(1.0 / np.asarray(self.weights, dtype=float) ** 2)

    def estimate(self, numbers: Integers) -> list[dict[Subset, Floats]]:
        """For each group the tables of all marginals asked for."""
        inside = np.asarray(numbers, dtype=float).reshape(-1)[: self._in_tables]
        return [self.fit.estimate(self._levels(own)) for own in inside.reshape(self.groups, -1)]

    def _levels(self, numbers: Floats) -> list[Floats]:
        parts = np.split(numbers, np.cumsum(self._sizes)[:-1])
        return [part / weight for part, weight in zip(parts, self.weights, strict=True)]

    @cached_property
    def margins(self) -> SingleMargins:
        """By each column, of the rows in the tables."""
        return SingleMargins(self.plan.sizes)

    @property
    def _margins_outside(self) -> SingleMargins:
        return SingleMargins(self.others)

    @property
    def numbers_count(self) -> int:
        """The margins by each column, of rows in the tables and of others."""
        return sum(self.plan.sizes) + sum(self.others)

    def numbers(self, measured: Integers) -> Floats:
        """These margins; those of other rows with one total, which every column says something about."""
        every = np.asarray(measured, dtype=float).reshape(-1)
        single = [(column,) for column in range(len(self.plan.sizes))]
        tables = self.fit.estimate(self._levels(every[: self._in_tables]), single)
        outside = np.split(every[self._in_tables :] / self.others_weight, np.cumsum(self.others)[:-1])
        shares = 1.0 / np.asarray(self.others, dtype=float)
        total = float(shares @ [own.sum() for own in outside] / shares.sum())
        margins = [own + (total - own.sum()) * share for own, share in zip(outside, shares, strict=True)]
        return np.concatenate([*(tables[column] for column in single), *margins])

    @cached_property
    def covariance(self) -> Covariance | None:
        """Of the margins at noise of variance 1; None where other rows are not counted, or cells are too many."""
        if not self.others or self.groups > 1 or self.numbers_count > _MOST_MARGINS:
            return None
        square = float(self.others_weight) ** 2
        own: dict[Subset, float] = {(column,): 1.0 / square for column in range(len(self.others))}
        own[()] = 1.0 / (square * float(np.sum(1.0 / np.asarray(self.others))))
        inside = self.margins.covariance(self.fit.residual_variances)
        matrix = np.zeros((self.numbers_count,) * 2)
        matrix[: len(inside), : len(inside)] = inside
        matrix[len(inside) :, len(inside) :] = self._margins_outside.covariance(own)
        typical = float(np.trace(matrix)) / len(matrix)
        return Covariance(lambda rows: np.asarray(rows @ matrix), len(matrix), 1, np.zeros(0), typical)

    def concentration(self, functions: Floats) -> float:
        """Of up to 24 functions of the margins: the largest share of a single measured number."""
        chosen = functions[np.unique(np.linspace(0, len(functions) - 1, min(24, len(functions))).astype(int))]
        shares = []
        for function in chosen:
            squares = np.concatenate(self._coefficients(function)) ** 2
            shares.append(float(np.sum(squares**2)) / max(float(np.sum(squares)) ** 2, 1e-300))
        return min(1.0, max(shares)) or 1.0

    def _coefficients(self, function: Floats) -> list[Floats]:
        """How much every measured number counts in a function of the margins."""
        inside = [function[self.margins.place(column)] for column in range(len(self.plan.sizes))]
        residuals: dict[Subset, Floats] = {(): np.asarray(sum(float(own.mean()) for own in inside))}
        residuals |= {(column,): own - own.mean() for column, own in enumerate(inside) if len(own) > 1}
        coefficients = []
        for weight, level in zip(self.weights, self.plan.levels, strict=True):
            total: Floats = np.zeros(level.plain.size)
            for part in self.plan.parts_of(level):
                if part in residuals:
                    share = self.fit.residual_variances[part] * level.precision(part) * weight
                    total = total + share * level.residual_transposed(residuals[part], part)
            coefficients.append(total)
        outside = np.split(function[self.margins.starts[-1] :], np.cumsum(self.others)[:-1])
        shares = 1.0 / np.asarray(self.others, dtype=float)
        whole = sum(float(own.mean()) for own in outside)
        for own, share in zip(outside, shares, strict=True):
            coefficients.append((own - own.mean() + whole * share / shares.sum()) / self.others_weight)
        return coefficients


def _whole(ideal: Floats, least: float) -> tuple[int, ...]:
    """Weights in proportion, rounded, the smallest about `least`."""
    return tuple(max(1, round(float(weight))) for weight in ideal * (least / ideal.min()))

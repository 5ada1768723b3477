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
from farthing.matrix.strategies.marginals import MarginalFit, MarginalPlan
from farthing.statistics.cells.statistic_cells import CellAxis
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


@dataclass(frozen=True, eq=False)
class MarginalTransform:
    """The weighted levels of a plan, for `groups` groups of tables that no row shares.

    `tables` are the sets of columns that an engine counts, in the order in which it hands them over.
    """

    plan: MarginalPlan
    weights: tuple[int, ...]
    tables: tuple[Subset, ...] = ()
    groups: int = 1

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
    def size(self) -> int:
        """How many numbers are measured in all groups."""
        return self.groups * sum(self._sizes)

    @cached_property
    def columns(self) -> Columns:
        """The norms of the levels' columns, added up."""
        parts = [(w, level.plain) for w, level in zip(self.weights, self.plan.levels, strict=True)]
        return Columns(
            l0=sum(min(level.size, level.l1) for _, level in parts),
            l1=sum(weight * level.l1 for weight, level in parts),
            l2_squared=sum(weight**2 * level.l2_squared for weight, level in parts),
            linf=max(weight * math.isqrt(level.l2_squared) for weight, level in parts),
            signed=any(level.contrasts for level in self.plan.levels),
        )

    @cached_property
    def digest(self) -> str:
        """Of everything that decides the numbers."""
        facts = (
            self.plan.sizes,
            [(level.subset, level.contrasts) for level in self.plan.levels],
            self.weights,
            self.tables,
            self.groups,
        )
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    def apply(self, exact: Any) -> Integers:
        """The weighted levels of one group after the other."""
        counted: Sequence[Any] = exact if isinstance(exact, list) else [exact]
        shapes = [tuple(self.plan.sizes[column] for column in table) for table in self.tables]
        tables = [np.asarray(table).reshape(self.groups, *shape) for table, shape in zip(counted, shapes, strict=True)]
        totals = []
        for group in range(self.groups):
            own = {subset: table[group] for subset, table in zip(self.tables, tables, strict=True)}
            for weight, numbers in zip(self.weights, self.plan.measure_exact(own), strict=True):
                # So that no number leaves 64 bits; cutting off moves no two of them further apart.
                most = _LARGEST // weight
                totals.append(weight * np.clip(numbers, -most, most))
        return np.concatenate(totals)

    @cached_property
    def fit(self) -> MarginalFit:
        """Least squares when every measured number has noise of variance 1."""
        return self.plan.fit(1.0 / np.asarray(self.weights, dtype=float) ** 2)

    def estimate(self, numbers: Integers) -> list[dict[Subset, Floats]]:
        """For each group the tables of all marginals asked for."""
        tables = []
        for own in np.asarray(numbers, dtype=float).reshape(self.groups, -1):
            parts = np.split(own, np.cumsum(self._sizes)[:-1])
            levels = [part / weight for part, weight in zip(parts, self.weights, strict=True)]
            tables.append(self.fit.estimate(levels))
        return tables


def _whole(ideal: Floats, least: float) -> tuple[int, ...]:
    """Weights in proportion, rounded, the smallest about `least`."""
    return tuple(max(1, round(float(weight))) for weight in ideal * (least / ideal.min()))

"""Marginals as outputs: all tables of some columns, consistent with each other, from one measurement."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.aggregates.aggregate import MOST_CELLS
from farthing.data.stability import Sensitivity
from farthing.inference import Answer, ErrorDistribution
from farthing.inference.consistent_marginals import Subset, nonnegative_marginals, rounded_marginals
from farthing.matrix.strategies.marginals import plan_marginals
from farthing.statistics.cells.column_pieces import pieces_of
from farthing.statistics.cells.statistic_cells import CellAxis, cut_of
from farthing.statistics.counts.count_outputs import counts_of_total
from farthing.statistics.counts.count_queries import group_axes
from farthing.statistics.counts.expected_shares import assumptions_of, expected_rows
from farthing.statistics.counts.piece_counts import PieceCounts
from farthing.statistics.marginals.marginal_queries import MarginalQueries
from farthing.statistics.marginals.marginal_transforms import MarginalCells, MarginalTransform
from farthing.statistics.measurements import Integers, Kind, Noise, Output, Slot
from farthing.statistics.public_facts import Assumption, Facts
from farthing.statistics.ranges.error_shapes import (
    NORMAL,
    UNKNOWN,
    ShapedDistribution,
    ShapedErrors,
    ShapedInterval,
)
from farthing.statistics.ranges.strategy_slots import StrategyOutput, StrategySlot
from farthing.statistics.statistic import Statistic, text_of

Floats = NDArray[np.float64]

_FEW_TABLES = 40
"""Up to so many tables Laplace noise is tried beside Gaussian noise; with more of them it never wins."""


@dataclass(frozen=True, eq=False)
class MarginalsOutput(StrategyOutput):
    """The cells of all tables, one table after the other."""

    cells: MarginalCells = field(kw_only=True)
    rows: float = field(kw_only=True)  # expected in all
    rows_per_unit: int = field(kw_only=True, default=1)

    @cached_property
    def coefficients(self) -> Mapping[str, Floats]:
        """The variances of the cells; for either kind of noise about the same, as transforms are scaled."""
        return {self.slot.name: self._at_unit(self.slot.kinds[0]).deviations ** 2}

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """Standard errors are exact: all cells of one table have the same."""
        noise = noises[self.slot.name]
        deviation = float(np.sqrt(self.slot.variance(noise)))
        unit = self._at_unit(noise.kind)
        if not self.statistic.for_population:
            return ShapedDistribution(unit, deviation)
        counts = np.concatenate([np.full(n, self.rows / n) for n in self.cells.lengths])
        return ShapedDistribution(self._blurred(unit, deviation, counts), 1.0)

    def answer(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], confidence: float = 0.95) -> Answer:
        """The least-squares tables; moved to where counts must lie, or whole, where that was asked for."""
        noise = noises[self.slot.name]
        transform = transform_of(self.slot, noise.kind)
        groups = transform.estimate(measured[self.slot.name])
        plain = self._flat(groups)
        moved = self.statistic.nonnegative or self.statistic.rounded
        variance = self.slot.variance(noise)
        values = self._flat(self._settled(groups, transform, math.sqrt(variance))) if moved else plain
        unit = self._at_unit(noise.kind)
        units = self.rows_per_unit if self.statistic.for_population else 0
        errors, shape = unit.deviations * math.sqrt(variance), unit.shape
        if units:
            blurred = self._blurred(unit, math.sqrt(variance), plain)
            errors, shape = blurred.deviations, blurred.shape
        residuals = {part: v * variance for part, v in transform.fit.residual_variances.items()}
        asking = MarginalQueries(self.name, self.cells, plain, residuals, noise.kind, units)
        return Answer.within(
            self.name,
            values,
            errors,
            ShapedInterval(plain, errors, shape, 0.0 if moved else -math.inf),
            self.labels,
            confidence=confidence,
            asking=asking,
            raw=plain,
        )

    def _flat(self, groups: Sequence[Mapping[Subset, Any]]) -> Floats:
        """The cells of all groups, one table after the other."""
        tables = [np.concatenate([group[subset].reshape(-1) for group in groups]) for subset in self.cells.subsets]
        return np.concatenate(tables).astype(np.float64)

    def _settled(
        self, groups: Sequence[Mapping[Subset, Floats]], transform: MarginalTransform, deviation: float
    ) -> list[Mapping[Subset, Any]]:
        """The nearest tables that agree and have no count below zero, with the same total; whole ones near them.

        Left free, the total would grow with every cell that is lifted to zero.
        """
        totals = np.array([float(next(iter(tables.values())).sum()) for tables in groups])
        if (totals < 0).any():
            spread = max(deviation * math.sqrt(transform.fit.variance_per_cell(())), 1e-9)
            totals = counts_of_total(totals, max(0.0, float(totals.sum())), np.full(len(totals), spread))
        nearest = [
            nonnegative_marginals(tables, total=total) for tables, total in zip(groups, totals.tolist(), strict=True)
        ]
        return [rounded_marginals(tables) if self.statistic.rounded else tables for tables in nearest]

    def _blurred(self, unit: ShapedErrors, deviation: float, counts: Floats) -> ShapedErrors:
        sampling = self.rows_per_unit * np.maximum(counts, 0.0)
        return ShapedErrors(np.sqrt((unit.deviations * deviation) ** 2 + sampling), unit.shape.blurred)

    def _at_unit(self, kind: Kind) -> ShapedErrors:
        if kind not in self._known:
            deviations = np.sqrt(_cell_variances(transform_of(self.slot, kind), self.cells.subsets))
            shape = NORMAL if kind == "gaussian" else UNKNOWN
            self._known[kind] = ShapedErrors(np.repeat(deviations, self.cells.lengths), shape)
        return self._known[kind]

    @cached_property
    def _known(self) -> dict[Kind, ShapedErrors]:
        return {}


def outputs_of(
    statistics: Sequence[Statistic], facts: Facts
) -> tuple[tuple[Slot, ...], tuple[Output, ...], dict[str, Any], tuple[Assumption, ...]]:
    """One slot for each statistic of marginals."""
    slots: list[Slot] = []
    outputs: list[Output] = []
    columns: dict[str, None] = {}
    for number, statistic in enumerate(statistics, start=1):
        schema = facts.schema
        axes = tuple(cut_of(name, schema[name], statistic.bins_of(name)) for name in statistic.columns)
        cells = MarginalCells(group_axes(statistic.by, schema), axes, statistic.way)
        slot = _slot(facts, statistic, cells, number)
        rows = float(expected_rows(facts, statistic.where).sum())
        mean = max(1.0, len(cells.subsets) * rows / cells.count)
        outputs.append(
            MarginalsOutput(
                statistic,
                cells.labels,
                (slot,),
                np.full(cells.count, mean),
                cells=cells,
                rows=rows,
                rows_per_unit=facts.dataset.rows_per_unit,
            )
        )
        slots.append(slot)
        columns.update(dict.fromkeys(axis.column for axis in cells.groups))
    return tuple(slots), tuple(outputs), {}, assumptions_of(facts, tuple(columns))


def _slot(facts: Facts, statistic: Statistic, cells: MarginalCells, number: int) -> StrategySlot:
    transforms = _transforms(cells, facts.pure)
    tables = _largest({table for each in transforms.values() for table in each.plan.tables_needed})
    where = _complete(statistic)
    aggregates = tuple(
        _counts(facts, (*cells.groups, *(cells.axes[column] for column in table)), where) for table in tables
    )
    moved = [facts.sensitivity(aggregate) for aggregate in aggregates]
    return StrategySlot.of(
        f"marginals {number} ({', '.join(sorted(statistic.columns))})",
        aggregates,
        Sensitivity(*(max(getattr(each, norm) for each in moved) for norm in ("l0", "l1", "l2_squared", "linf"))),
        {kind: replace(each, tables=tables, groups=cells.group_count) for kind, each in transforms.items()},
        {kind: _levels(len(each.weights)) for kind, each in transforms.items()},
    )


def _levels(count: int) -> str:
    return f"{count:,} level{'' if count == 1 else 's'} of marginals"


def _transforms(cells: MarginalCells, pure: bool) -> dict[Kind, MarginalTransform]:
    """For each kind of noise its best plan, scaled so that noise does about the same to the answers.

    Every table counts the same, whatever its size: the sum of their mean variances is least. That is also nearly the
    least geometric mean of their errors; were all cells to count the same, the largest table would have most of the
    budget, and small ones errors of up to twice its own.
    """
    kinds: tuple[Kind, ...] = ("laplace",) if pure else ("laplace", "gaussian")
    if not pure and len(cells.subsets) > _FEW_TABLES:
        kinds = ("gaussian",)
    transforms: dict[Kind, MarginalTransform] = {}
    for kind in kinds:
        plan = plan_marginals(
            cells.sizes,
            cells.subsets,
            norm="l1" if kind == "laplace" else "l2",
            weights=(float(np.mean(cells.lengths)) / np.asarray(cells.lengths, dtype=float)).tolist(),
            largest_table=MOST_CELLS // cells.group_count,
        )
        transform = MarginalTransform.weighted(plan)
        if transforms:
            first = next(iter(transforms.values()))
            losses = [float(_cell_variances(each, cells.subsets) @ cells.lengths) for each in (transform, first)]
            transform = transform.scaled(math.sqrt(losses[0] / losses[1]))
        transforms[kind] = transform
    return transforms


def _cell_variances(transform: MarginalTransform, subsets: Sequence[Subset]) -> Floats:
    return np.array([transform.fit.variance_per_cell(subset) for subset in subsets])


def _largest(tables: set[Subset]) -> tuple[Subset, ...]:
    """Tables that no other one contains, in a fixed order."""
    return tuple(sorted(one for one in tables if not any(set(one) < set(other) for other in tables)))


def _complete(statistic: Statistic) -> str:
    """The rows that have all of the columns: without the others, tables would not agree with each other."""
    parts = [f"({text_of(statistic.where)})"] if statistic.where is not None else []
    names = (*statistic.by, *statistic.columns)
    parts += ['"' + name.replace('"', '""') + '" is not null' for name in names]
    return " and ".join(parts)


def _counts(facts: Facts, axes: Sequence[CellAxis], where: str) -> PieceCounts:
    """The number of rows in every cell of a product of axes."""
    pieces = [pieces_of(axis.column, facts.schema[axis.column], (), (axis,), missing=False) for axis in axes]
    places = [piece.places[axis] for piece, axis in zip(pieces, axes, strict=True)]
    shape = tuple(len(axis) for axis in axes)
    merge = (
        np.ravel_multi_index(np.meshgrid(*places, indexing="ij"), shape).reshape(-1) if axes else np.zeros(1, dtype=int)
    )
    return PieceCounts(tuple(piece.axis for piece in pieces), tuple(merge.tolist()), math.prod(shape), where)


def transform_of(slot: StrategySlot, kind: Kind) -> MarginalTransform:
    """What gets this kind of noise."""
    transform = slot.transforms[kind]
    assert isinstance(transform, MarginalTransform)
    return transform

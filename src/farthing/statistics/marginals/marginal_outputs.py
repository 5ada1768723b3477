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
from farthing.inference.linked_counts import LinkedCounts
from farthing.matrix.strategies.marginals import plan_marginals
from farthing.statistics.cells.column_pieces import pieces_of
from farthing.statistics.cells.common_cells import Partition
from farthing.statistics.cells.statistic_cells import cut_of
from farthing.statistics.counts.count_outputs import counts_of_total
from farthing.statistics.counts.count_queries import group_axes
from farthing.statistics.counts.expected_shares import assumptions_of, expected_rows
from farthing.statistics.counts.piece_counts import PieceCounts, counts_of_axes
from farthing.statistics.counts.slot_combination import Combination, Crossed
from farthing.statistics.marginals.marginal_queries import MarginalQueries
from farthing.statistics.marginals.marginal_transforms import MarginalCells, MarginalTransform
from farthing.statistics.marginals.single_margins import SingleMargins
from farthing.statistics.measurements import Integers, Kind, Noise, Output, RowCounts, Slot
from farthing.statistics.public_facts import Assumption, Facts
from farthing.statistics.ranges.combined_errors import CombinedErrors
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

_ONLY_COMPLETE = "lack a value in any of its columns are left out of all tables, so that these agree"

_FEW_TABLES = 40
"""Up to so many tables Laplace noise is tried beside Gaussian noise; with more of them it never wins."""


@dataclass(frozen=True, eq=False)
class MarginalsOutput(StrategyOutput):
    """The cells of all tables, one table after the other."""

    cells: MarginalCells = field(kw_only=True)
    rows: float = field(kw_only=True)  # expected in all
    rows_per_unit: int = field(kw_only=True, default=1)
    combination: Combination | None = field(kw_only=True, default=None)

    @property
    def links(self) -> Combination | None:
        """What else says something about its margins."""
        return self.combination

    def linked(self, combination: Combination) -> MarginalsOutput:
        """The same, estimated together with all other counts of the same rows."""
        return replace(self, combination=combination) if self.slot.name in combination.places else self

    def crossed(self, vectors: Mapping[str, int], linked: LinkedCounts, kinds: Mapping[str, Kind]) -> Crossed:
        """Its cells: what other counts say about them is what they say about the margins."""
        vector = vectors[self.slot.name]
        kind = kinds.get(self.slot.name, self.slot.kinds[0])
        rows = self._over_cells(linked.moved(vector))
        weights = 1.0 / np.asarray(self.reference, dtype=float) ** 2 / len(rows)
        return Crossed(vector, rows, self._at_unit(kind).deviations ** 2, weights)

    def _over_cells(self, columns: Floats) -> Floats:
        """What all cells are in terms of the margins, for margins in columns."""
        margins = transform_of(self.slot, self.slot.kinds[0]).margins
        return np.concatenate([margins.over_cells(subset, columns) for subset in self.cells.subsets])

    def _standing(self, noises: Mapping[str, Noise]) -> tuple[ShapedErrors, float]:
        """Standard errors and their shape, and what they are to be multiplied by."""
        noise = noises[self.slot.name]
        unit = self._at_unit(noise.kind)
        together = CombinedErrors.of(self.combination, noises, self.slot.name)
        if together is None:
            return unit, float(np.sqrt(self.slot.variance(noise)))
        crossed, squares = self._over_cells(together.moved), unit.deviations**2
        errors = np.sqrt(together.variances(crossed, squares))
        return ShapedErrors(errors, together.shape(crossed, squares, None)), 1.0

    @cached_property
    def coefficients(self) -> Mapping[str, Floats]:
        """The variances of the cells; for either kind of noise about the same, as transforms are scaled."""
        return {self.slot.name: self._at_unit(self.slot.kinds[0]).deviations ** 2}

    def remarks(self, noises: Mapping[str, Noise]) -> tuple[str, ...]:
        """Which rows are in the tables."""
        return (f"rows that {_ONLY_COMPLETE}",)

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """Standard errors are exact: all cells of one table have the same, but for what other counts say."""
        unit, deviation = self._standing(noises)
        if not self.statistic.for_population:
            return ShapedDistribution(unit, deviation)
        counts = np.concatenate([np.full(n, self.rows / n) for n in self.cells.lengths])
        return ShapedDistribution(self._blurred(unit, deviation, counts), 1.0)

    def answer(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], confidence: float = 0.95) -> Answer:
        """The least-squares tables; moved to where counts must lie, or whole, where that was asked for."""
        noise = noises[self.slot.name]
        transform = transform_of(self.slot, noise.kind)
        together = CombinedErrors.of(self.combination, noises, self.slot.name)
        groups = transform.estimate(measured[self.slot.name])
        if self.combination is not None and together is not None:
            after = self.combination.estimates(measured, noises)[self.slot.name]
            change = (after - self.slot.numbers(measured[self.slot.name], noise.kind))[:, None]
            groups = [
                {
                    subset: table + transform.margins.over_cells(subset, change).reshape(table.shape)
                    for subset, table in tables.items()
                }
                for tables in groups
            ]
        plain = self._flat(groups)
        moved = self.statistic.nonnegative or self.statistic.rounded
        variance = self.slot.variance(noise)
        values = self._flat(self._settled(groups, transform, math.sqrt(variance))) if moved else plain
        unit, factor = self._standing(noises)
        units = self.rows_per_unit if self.statistic.for_population else 0
        errors, shape = unit.deviations * factor, unit.shape
        if units:
            blurred = self._blurred(unit, factor, plain)
            errors, shape = blurred.deviations, blurred.shape
        residuals = {part: v * variance for part, v in transform.fit.residual_variances.items()}
        correction = None if together is None else together.correction[:, : sum(self.cells.sizes)]
        kind = noise.kind if together is None else together.kind
        asking = MarginalQueries(self.name, self.cells, plain, residuals, kind, units, correction)
        return Answer.within(
            self.name,
            values,
            errors,
            ShapedInterval(plain, errors, shape, 0.0 if moved else -math.inf),
            self.labels,
            confidence=confidence,
            note=f"rows that {_ONLY_COMPLETE}",
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
                rows_per_unit=facts.rows_per_unit,
            )
        )
        slots.append(slot)
        columns.update(dict.fromkeys(axis.column for axis in cells.groups))
    return tuple(slots), tuple(outputs), {}, assumptions_of(facts, tuple(columns))


def _slot(facts: Facts, statistic: Statistic, cells: MarginalCells, number: int) -> StrategySlot:
    transforms = _transforms(cells, facts.pure)
    tables = _largest({table for each in transforms.values() for table in each.plan.tables_needed})
    transforms = {kind: replace(each, tables=tables, groups=cells.group_count) for kind, each in transforms.items()}
    where = _complete(statistic)
    aggregates = tuple(
        facts.bounded(counts_of_axes((*cells.groups, *(cells.axes[column] for column in table)), facts.schema, where))
        for table in tables
    )
    moved = [facts.sensitivity(aggregate) for aggregate in aggregates]
    others = _others(facts, cells, where)
    if others and all(facts.sensitivity(each) == moved[0] for each in (*others, *aggregates)):
        whole = {kind: each.with_others(tuple(own.cells for own in others)) for kind, each in transforms.items()}
        if all(each.others for each in whole.values()):
            transforms, aggregates = whole, (*aggregates, *others)
    return StrategySlot.of(
        facts.slot_name(f"marginals {number} ({', '.join(sorted(statistic.columns))})"),
        aggregates,
        Sensitivity(*(max(getattr(each, norm) for each in moved) for norm in ("l0", "l1", "l2_squared", "linf"))),
        transforms,
        {kind: _levels(len(each.weights)) for kind, each in transforms.items()},
        _row_counts(cells, others) if len(aggregates) > len(tables) else (),
    )


def _others(facts: Facts, cells: MarginalCells, where: str) -> tuple[PieceCounts, ...]:
    """By each column the rows that are in no table, for linking margins with other counts; nothing where none may be.

    A row is either in the tables or outside. Where each query chooses the rows of a unit anew, one of its rows could
    be counted inside by one query and another outside by the next, and together they would move the numbers further
    than claimed; so where rows are chosen, nothing is counted outside.
    """
    if facts.asked == 1 or cells.groups or facts.dataset.unit or facts.dataset.probability < 1:
        return ()
    outside = f"case when {where} then 0 else 1 end = 1"
    pieces = [pieces_of(axis.column, facts.schema[axis.column], (), (axis,), missing=True) for axis in cells.axes]
    return tuple(
        PieceCounts((piece.axis,), tuple(range(piece.axis.size)), piece.axis.size, outside) for piece in pieces
    )


def _row_counts(cells: MarginalCells, others: Sequence[PieceCounts]) -> tuple[RowCounts, ...]:
    """By each column: the margin of the tables and the rows outside make all rows, those without a value included."""
    inside, outside = SingleMargins(cells.sizes), SingleMargins(tuple(each.cells for each in others))
    counts = []
    for column, (axis, own) in enumerate(zip(cells.axes, others, strict=True)):
        (piece,) = own.pieces
        numbers = np.full(inside.starts[-1] + outside.starts[-1], -1)
        numbers[inside.place(column)] = np.arange(len(axis))
        start = inside.starts[-1] + outside.starts[column]
        numbers[start : start + own.cells] = np.arange(own.cells)
        counts.append(RowCounts(Partition((piece,), np.arange(piece.size), piece.size), numbers))
    return tuple(counts)


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


def transform_of(slot: StrategySlot, kind: Kind) -> MarginalTransform:
    """What gets this kind of noise."""
    transform = slot.transforms[kind]
    assert isinstance(transform, MarginalTransform)
    return transform

"""Ranges as outputs: cells, or the ranges that were listed, by least squares from the sums of a strategy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from farthing.inference import Answer, ErrorDistribution, nearest_increasing, rounded
from farthing.inference.linked_counts import LinkedCounts
from farthing.matrix.workloads.interval_queries import Intervals
from farthing.matrix.workloads.named_workloads import all_ranges
from farthing.matrix.workloads.nonnegative_histograms import nearest_in_answers
from farthing.statistics.cells.statistic_cells import CellAxis
from farthing.statistics.counts.count_outputs import counts_of_total
from farthing.statistics.counts.slot_combination import Combination, Crossed
from farthing.statistics.measurements import Integers, Kind, Noise, Slot
from farthing.statistics.ranges.combined_errors import CombinedErrors
from farthing.statistics.ranges.error_shapes import (
    NORMAL,
    UNKNOWN,
    Shape,
    ShapedDistribution,
    ShapedErrors,
    ShapedInterval,
)
from farthing.statistics.ranges.range_queries import MOST_CELLS_SHAPED, RangeQueries
from farthing.statistics.ranges.strategy_slots import StrategyOutput, StrategySlot
from farthing.statistics.ranges.strategy_transforms import StrategyTransform
from farthing.statistics.statistic import Statistic

Floats = NDArray[np.float64]

_MOST_SHAPES = 24

MOST_ENTRIES = 2**22
"""Of a table of functions that is written down."""


@dataclass(frozen=True, eq=False)
class RangesOutput(StrategyOutput):
    """Sums of neighbouring cells, `workload` for each group of cells."""

    axes: tuple[CellAxis, ...] = field(kw_only=True)
    workload: Intervals = field(kw_only=True)
    expected: Floats = field(kw_only=True)  # rows in each range of each group
    rows_per_unit: int = field(kw_only=True, default=1)
    combination: Combination | None = field(kw_only=True, default=None)

    @property
    def links(self) -> Combination | None:
        """What else says something about its cells."""
        return self.combination

    def linked(self, combination: Combination) -> RangesOutput:
        """The same, estimated together with all other counts of the same rows."""
        return replace(self, combination=combination) if self.slot.name in combination.places else self

    def crossed(self, vectors: Mapping[str, int], linked: LinkedCounts, kinds: Mapping[str, Kind]) -> Crossed:
        """The ranges that were listed, else the mean of all ranges that may be asked for."""
        vector = vectors[self.slot.name]
        kind = kinds.get(self.slot.name, self.slot.kinds[0])
        moved = linked.moved(vector)
        weight = 1.0 / float(self.reference[0]) ** 2
        if self.statistic.ranges:
            rows = self._over_groups(moved)
            squares = self._at_unit(kind).deviations ** 2
            return Crossed(vector, rows, squares, np.full(len(rows), weight / len(rows)))
        # The sum of (P[j] - P[i]) (P[j] - P[i])' over all i < j, from sums up to every edge.
        cells, groups = self.workload.cells, transform_of(self.slot, kind).groups
        products = np.zeros((moved.shape[1],) * 2)
        for group in moved[: groups * cells].reshape(groups, cells, moved.shape[1]):
            edges = np.concatenate([np.zeros((1, group.shape[1])), np.cumsum(group, axis=0)])
            products += (cells + 1) * edges.T @ edges - np.outer(edges.sum(axis=0), edges.sum(axis=0))
        products /= groups * cells * (cells + 1) / 2
        sizes, directions = np.linalg.eigh((products + products.T) / 2)
        rows = np.sqrt(np.maximum(sizes, 0.0))[:, None] * directions.T
        squares = np.full(len(rows), self._of_any_range(kind) / max(len(rows), 1))
        return Crossed(vector, rows, squares, np.full(len(rows), weight))

    def _over_groups(self, columns: Floats) -> Floats:
        """The workload in every group, of columns over all numbers of the slot."""
        cells = self.workload.cells
        groups = len(self.reference) // self.workload.queries
        return np.concatenate(
            [self.workload.times(group) for group in columns[: groups * cells].reshape(groups, cells, columns.shape[1])]
        )

    @cached_property
    def coefficients(self) -> Mapping[str, Floats]:
        """The variances of the ranges; for either kind of noise about the same, as transforms are scaled.

        Where no ranges were listed, a plan weighs what may be asked rather than the cells that are shown: the mean
        over all ranges.
        """
        if self.statistic.ranges:
            return {self.slot.name: self._at_unit(self.slot.kinds[0]).deviations ** 2}
        return {self.slot.name: np.full(len(self.reference), self._of_any_range(self.slot.kinds[0]))}

    def _of_any_range(self, kind: Kind) -> float:
        """The mean variance over all ranges."""
        every = all_ranges(self.workload.cells)
        return transform_of(self.slot, kind).estimator.total_variance(every) / every.queries

    def remarks(self, noises: Mapping[str, Noise]) -> tuple[str, ...]:
        """The error of a range, where cells are shown."""
        noise = noises[self.slot.name]
        transform = transform_of(self.slot, noise.kind)
        known = strategy_text(transform, self.statistic)
        if self.statistic.ranges:
            return (known,)
        error = math.sqrt(self._of_any_range_under(noises))
        quarter = self._of_a_quarter(transform, noises)
        off = (NORMAL if noise.kind == "gaussian" else UNKNOWN).factor(0.95) * math.sqrt(quarter)
        return (
            f"a range of a quarter of its cells is within ±{off:.3g} 95 times in 100, "
            "counting the noise alone; a required error applies to one cell",
            f"any range of its cells has a standard error of {error:.3g} on average; {known}",
        )

    def _of_any_range_under(self, noises: Mapping[str, Noise]) -> float:
        """The mean variance of all ranges."""
        together = CombinedErrors.of(self.combination, noises, self.slot.name)
        kind = noises[self.slot.name].kind
        if together is None:
            return self._of_any_range(kind) * self.slot.variance(noises[self.slot.name])
        kinds = {name: noise.kind for name, noise in noises.items()}
        own = self.crossed(together.vectors, together.estimate.linked, kinds)
        parts = together.estimate.signed_square_weights(own.vector, own.relations, own.squares)
        variances = [slot.variance(noises[slot.name]) for slot in map(self._slot_named, together.vectors)]
        return max(0.0, float(parts.sum(axis=0) @ np.array(variances)))

    def _slot_named(self, name: str) -> Slot:
        assert self.combination is not None
        return self.combination.slots[self.combination.places[name]]

    def _of_a_quarter(self, transform: StrategyTransform, noises: Mapping[str, Noise]) -> float:
        """The variance of one range in the middle of the first group."""
        cells = self.workload.cells
        width = max(1, cells // 4)
        places = np.arange(cells) - (cells - width) // 2
        query = ((places >= 0) & (places < width)).astype(float)
        own = transform.estimator.variance(query)
        together = CombinedErrors.of(self.combination, noises, self.slot.name)
        if together is None:
            return own * self.slot.variance(noises[self.slot.name])
        return float(together.variances(query[None, :] @ together.moved[:cells], np.array([own]))[0])

    def _standing(self, noises: Mapping[str, Noise]) -> tuple[ShapedErrors, float]:
        """Standard errors and their shape, and what they are to be multiplied by."""
        noise = noises[self.slot.name]
        unit = self._at_unit(noise.kind)
        together = CombinedErrors.of(self.combination, noises, self.slot.name)
        if together is None:
            return unit, float(np.sqrt(self.slot.variance(noise)))
        crossed, squares = self._over_groups(together.moved), unit.deviations**2
        shape = together.shape(crossed, squares, self._functions)
        return ShapedErrors(np.sqrt(together.variances(crossed, squares)), shape), 1.0

    @cached_property
    def _functions(self) -> Floats | None:
        """The ranges of every group as functions of the slot's numbers; None where they are too many to write down."""
        size = self.slot.numbers_count
        if len(self.reference) * size > MOST_ENTRIES:
            return None
        return self._over_groups(np.eye(size))

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """Standard errors are exact; the shape is that of a sum of many noises."""
        unit, deviation = self._standing(noises)
        if self.statistic.for_population:
            return ShapedDistribution(self._blurred(unit, deviation, self.expected), 1.0)
        return ShapedDistribution(unit, deviation)

    def answer(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], confidence: float = 0.95) -> Answer:
        """Sums of one histogram without negative cells, near to the estimates; whole where that was asked for."""
        noise = noises[self.slot.name]
        transform = transform_of(self.slot, noise.kind)
        together = CombinedErrors.of(self.combination, noises, self.slot.name)
        if self.combination is None or together is None:
            cells = transform.estimate(measured[self.slot.name])
        else:
            numbers = self.combination.estimates(measured, noises)[self.slot.name]
            cells = numbers[: transform.groups * self.workload.cells].reshape(transform.groups, -1)
        plain = np.concatenate([self.workload.answers(group) for group in cells])
        deviation = float(np.sqrt(self.slot.variance(noise)))
        settled = np.array(
            [
                self._settled(group, total)
                for group, total in zip(cells, self._totals(transform, cells, deviation), strict=True)
            ]
        )
        values = np.concatenate([self.workload.answers(group) for group in settled])
        unit, factor = self._standing(noises)
        units = self.rows_per_unit if self.statistic.for_population else 0
        errors, shape = unit.deviations * factor, unit.shape
        if units:
            blurred = self._blurred(unit, factor, plain)
            errors, shape = blurred.deviations, blurred.shape
        asking = RangeQueries(
            self.name,
            self.axes,
            cells,
            settled,
            transform,
            noise.kind if together is None else together.kind,
            deviation,
            units,
            bool(self.statistic.ranges),
            None if together is None else together.correction[:, : cells.size],
        )
        return Answer.within(
            self.name,
            values,
            errors,
            ShapedInterval(plain, errors, shape),
            self.labels,
            confidence=confidence,
            asking=asking,
            raw=plain,
        )

    def _totals(self, transform: StrategyTransform, cells: Floats, deviation: float) -> Floats:
        """The rows of every group, none below zero, adding up to what they add up to with their noise."""
        totals = cells.sum(axis=1)
        if not (totals < 0).any():
            return np.asarray(totals)
        spread = deviation * math.sqrt(transform.estimator.variance(np.ones(cells.shape[1])))
        return counts_of_total(totals, max(0.0, float(totals.sum())), np.full(len(totals), max(spread, 1e-9)))

    def _settled(self, cells: Floats, total: float) -> Floats:
        """The cells that are shown: cut off one by one, thousands of them would add up to far too many rows."""
        nearest = nearest_in_answers(cells, self.workload) if self.statistic.ranges else _of_total(cells, total)
        # Doubles from 2^52 on are whole already; so much noise is no reason to refuse what has been paid for.
        if self.statistic.rounded and nearest.sum() < 2**52:
            return rounded(nearest).astype(float)
        return nearest

    def _blurred(self, unit: ShapedErrors, deviation: float, counts: Floats) -> ShapedErrors:
        """With the variance of units that come and go by themselves, each with up to so many rows."""
        sampling = self.rows_per_unit * np.maximum(counts.reshape(-1), 0.0)
        return ShapedErrors(np.sqrt((unit.deviations * deviation) ** 2 + sampling), unit.shape.blurred)

    def _at_unit(self, kind: Kind) -> ShapedErrors:
        if kind not in self._known:
            transform = transform_of(self.slot, kind)
            variances = transform.estimator.query_variances(self.workload)
            self._known[kind] = ShapedErrors(
                np.tile(np.sqrt(variances), transform.groups), shape_of(transform, kind, self.workload)
            )
        return self._known[kind]

    @cached_property
    def _known(self) -> dict[Kind, ShapedErrors]:
        return {}


def _of_total(cells: Floats, total: float) -> Floats:
    """The cells >= 0 with this total whose ranges are nearest to those of `cells`.

    As `nearest_in_answers` for all ranges, with both ends of the sums up to each edge where they are: left free, an
    empty end would gain rows from its noise, and so would the total.
    """
    if not (cells < 0).any() and total == float(cells.sum()):
        return cells.copy()
    inner = nearest_increasing(np.cumsum(cells)[:-1], least=0.0, most=total)
    return np.diff(inner, prepend=0.0, append=total)


def strategy_text(transform: StrategyTransform, statistic: Statistic) -> str:
    """What is measured, and whether there may be something better."""
    known = f"measured by the strategy {transform.strategy.name!r}"
    better = statistic.strategy == "auto" and transform.strategy.name == "tree"
    if not better:
        return known
    return f'{known}; strategy="optimised" may be a tenth more accurate, and takes a while the first time'


def transform_of(slot: StrategySlot, kind: Kind) -> StrategyTransform:
    """What gets this kind of noise."""
    transform = slot.transforms[kind]
    assert isinstance(transform, StrategyTransform)
    return transform


def shape_of(transform: StrategyTransform, kind: Kind, workload: Intervals) -> Shape:
    """The shapes of the distributions of a workload's answers, from up to 24 of them."""
    if kind == "gaussian":
        return NORMAL
    if transform.strategy.cells > MOST_CELLS_SHAPED:
        return UNKNOWN
    chosen = np.unique(np.linspace(0, workload.queries - 1, min(_MOST_SHAPES, workload.queries)).astype(int))
    cells = np.arange(workload.cells)[:, None]
    starts, stops = workload.starts[chosen], workload.stops[chosen]
    shares = transform.kurtosis(((cells >= starts) & (cells < stops)).astype(float))
    return Shape(float(shares.min()), float(shares.max())) if np.all(np.isfinite(shares)) else UNKNOWN

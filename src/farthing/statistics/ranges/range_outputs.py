"""Ranges as outputs: cells, or the ranges that were listed, by least squares from the sums of a strategy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from farthing.inference import Answer, ErrorDistribution, nearest_increasing, rounded
from farthing.matrix.workloads.interval_queries import Intervals
from farthing.matrix.workloads.named_workloads import all_ranges
from farthing.matrix.workloads.nonnegative_histograms import nearest_in_answers
from farthing.statistics.cells.statistic_cells import CellAxis
from farthing.statistics.counts.count_outputs import counts_of_total
from farthing.statistics.measurements import Integers, Kind, Noise
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


@dataclass(frozen=True, eq=False)
class RangesOutput(StrategyOutput):
    """Sums of neighbouring cells, `workload` for each group of cells."""

    axes: tuple[CellAxis, ...] = field(kw_only=True)
    workload: Intervals = field(kw_only=True)
    expected: Floats = field(kw_only=True)  # rows in each range of each group
    rows_per_unit: int = field(kw_only=True, default=1)

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
        error = math.sqrt(self._of_any_range(noise.kind) * self.slot.variance(noise))
        quarter = self._of_a_quarter(transform) * self.slot.variance(noise)
        off = (NORMAL if noise.kind == "gaussian" else UNKNOWN).factor(0.95) * math.sqrt(quarter)
        return (
            f"a range of a quarter of its cells is within ±{off:.3g} 95 times in 100, "
            "counting the noise alone; a required error applies to one cell",
            f"any range of its cells has a standard error of {error:.3g} on average; {known}",
        )

    def _of_a_quarter(self, transform: StrategyTransform) -> float:
        """The variance of one range in the middle."""
        cells = self.workload.cells
        width = max(1, cells // 4)
        places = np.arange(cells) - (cells - width) // 2
        return transform.estimator.variance(((places >= 0) & (places < width)).astype(float))

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """Standard errors are exact; the shape is that of a sum of many noises."""
        noise = noises[self.slot.name]
        deviation = float(np.sqrt(self.slot.variance(noise)))
        unit = self._at_unit(noise.kind)
        if self.statistic.for_population:
            return ShapedDistribution(self._blurred(unit, deviation, self.expected), 1.0)
        return ShapedDistribution(unit, deviation)

    def answer(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], confidence: float = 0.95) -> Answer:
        """Sums of one histogram without negative cells, near to the estimates; whole where that was asked for."""
        noise = noises[self.slot.name]
        transform = transform_of(self.slot, noise.kind)
        cells = transform.estimate(measured[self.slot.name])
        plain = np.concatenate([self.workload.answers(group) for group in cells])
        deviation = float(np.sqrt(self.slot.variance(noise)))
        settled = np.array(
            [
                self._settled(group, total)
                for group, total in zip(cells, self._totals(transform, cells, deviation), strict=True)
            ]
        )
        values = np.concatenate([self.workload.answers(group) for group in settled])
        unit = self._at_unit(noise.kind)
        units = self.rows_per_unit if self.statistic.for_population else 0
        errors, shape = unit.deviations * deviation, unit.shape
        if units:
            blurred = self._blurred(unit, deviation, plain)
            errors, shape = blurred.deviations, blurred.shape
        listed = bool(self.statistic.ranges)
        asking = RangeQueries(self.name, self.axes, cells, settled, transform, noise.kind, deviation, units, listed)
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

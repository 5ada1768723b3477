"""Shares of rows below edges from the sums of a strategy: where cells are many, far fewer noises than one a cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from farthing.inference import Answer, ErrorDistribution
from farthing.inference.linked_counts import LinkedCounts
from farthing.inference.noisy_numbers import CellNoise, Mixture, NoisyCells, Spread
from farthing.matrix.workloads.interval_queries import SomeRanges
from farthing.statistics.counts.cumulative_shares import CdfAssumptions
from farthing.statistics.counts.share_reach import Spreads, rising_shares, shares_between, unit_noise
from farthing.statistics.counts.slot_combination import Combination, Crossed, combined_block, gaps_of
from farthing.statistics.measurements import Integers, Kind, Noise
from farthing.statistics.ranges.combined_errors import CombinedErrors
from farthing.statistics.ranges.error_shapes import Shape, ShapedDistribution, ShapedErrors
from farthing.statistics.ranges.range_outputs import MOST_ENTRIES, shape_of, strategy_text, transform_of
from farthing.statistics.ranges.strategy_slots import StrategyOutput
from farthing.statistics.ranges.strategy_transforms import StrategyTransform

Floats = NDArray[np.float64]
_MOST_EDGES = 100  # of a cdf whose noises are kept with it


@dataclass(frozen=True, eq=False)
class StrategyCdfOutput(CdfAssumptions, StrategyOutput):
    """Estimated running totals over their sum, for each group of cells."""

    expected: Floats = field(kw_only=True)  # rows in each cell: groups x cells
    rows_per_unit: int = field(kw_only=True, default=1)
    is_expected: bool = field(kw_only=True, default=True)  # what is expected; else errors are for the worst shares
    combination: Combination | None = field(kw_only=True, default=None)

    @property
    def links(self) -> Combination | None:
        """What else says something about its cells."""
        return self.combination

    def linked(self, combination: Combination) -> StrategyCdfOutput:
        """The same, estimated together with all other counts of the same rows."""
        return replace(self, combination=combination) if self.slot.name in combination.places else self

    def crossed(self, vectors: Mapping[str, int], linked: LinkedCounts, kinds: Mapping[str, Kind]) -> Crossed:
        """The shares to first order, at the expected ones."""
        vector = vectors[self.slot.name]
        shares, rows = self._expected_shares
        below, whole = self._below(linked.moved(vector))
        squares = self._tiled_spreads(kinds.get(self.slot.name, self.slot.kinds[0])).of_share(shares)
        weights = 1.0 / (rows * np.asarray(self.reference, dtype=float)) ** 2 / len(rows)
        return Crossed(vector, below - shares[:, None] * whole, squares, weights)

    def _below(self, columns: Floats) -> tuple[Floats, Floats]:
        """Sums up to every edge and of the whole group, of columns over all numbers of the slot."""
        groups, cells = self.expected.shape
        below = np.cumsum(columns[: groups * cells].reshape(groups, cells, columns.shape[1]), axis=1)
        whole = np.broadcast_to(below[:, -1:], below.shape)
        shape = (groups * cells, columns.shape[1])
        return below.reshape(shape), whole.reshape(shape)

    def _tiled_spreads(self, kind: Kind) -> Spreads:
        return _tiled(spreads_of(transform_of(self.slot, kind)), len(self.expected))

    def _spreads(self, noises: Mapping[str, Noise]) -> tuple[Spreads, Shape]:
        """Variances and covariances of the totals under these noises, and their shape."""
        noise = noises[self.slot.name]
        own, shape = self._tiled_spreads(noise.kind), self._at_unit(noise.kind).shape
        together = CombinedErrors.of(self.combination, noises, self.slot.name)
        if together is None:
            return own.times(self.slot.variance(noise)), shape
        below, whole = self._below(together.moved)
        spreads = Spreads(
            np.maximum(together.covariances(below, below, own.own), 0.0),
            together.covariances(below, whole, own.both),
            np.maximum(together.covariances(whole, whole, own.whole), 0.0),
        )
        shares, _ = self._expected_shares
        return spreads, together.shape(below - shares[:, None] * whole, own.of_share(shares), self._functions)

    @cached_property
    def _functions(self) -> Floats | None:
        """The shares to first order as functions of the slot's numbers; None where they are too many to write down."""
        size = self.slot.numbers_count
        if size * size > MOST_ENTRIES:
            return None
        below, whole = self._below(np.eye(size))
        return below - self._expected_shares[0][:, None] * whole

    @cached_property
    def _expected_shares(self) -> tuple[Floats, Floats]:
        """The expected share below every edge, and the rows it is a share of."""
        return expected_shares(self.expected)

    @cached_property
    def coefficients(self) -> Mapping[str, Floats]:
        """By the delta method at the expected shares."""
        return {self.slot.name: self._at_unit(self.slot.kinds[0]).deviations ** 2}

    def remarks(self, noises: Mapping[str, Noise]) -> tuple[str, ...]:
        """What is measured for it."""
        kind = noises[self.slot.name].kind
        return (strategy_text(transform_of(self.slot, kind), self.statistic),)

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """The distribution of the linear part of the error at the expected shares, or at the worst."""
        unit, deviation = self._standing(noises)
        if not self.statistic.for_population:
            return ShapedDistribution(unit, deviation)
        shares, rows = self._expected_shares
        shares = shares if self.is_expected else np.full_like(shares, 0.5)
        noisy = unit.deviations * deviation
        return ShapedDistribution(ShapedErrors(self._with_sampling(noisy, shares, rows), unit.shape.blurred), 1.0)

    def _standing(self, noises: Mapping[str, Noise]) -> tuple[ShapedErrors, float]:
        """Standard errors and their shape, and what they are to be multiplied by."""
        noise = noises[self.slot.name]
        if self.combination is None:
            unit = self._at_unit(noise.kind) if self.is_expected else self._at_worst(noise.kind)
            return unit, float(np.sqrt(self.slot.variance(noise)))
        spreads, shape = self._spreads(noises)
        shares, rows = self._expected_shares
        if self.is_expected:
            return ShapedErrors(np.sqrt(spreads.of_share(shares)) / rows, shape), 1.0
        return ShapedErrors(self._worst_deviations(spreads), shape), 1.0

    def predicted_at_best(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """Where the noise of the whole takes off most."""
        if self.is_expected or self.statistic.for_population:
            return self.predicted(noises)
        (spreads, shape), (_, rows) = self._spreads(noises), self._expected_shares
        best = np.clip(spreads.both / np.maximum(spreads.whole, 1e-300), 0.0, 1.0)
        return ShapedDistribution(ShapedErrors(np.sqrt(spreads.of_share(best)) / rows, shape), 1.0)

    def _noise_in_totals(self, noises: Mapping[str, Noise]) -> tuple[Spreads, Floats, float]:
        noise, (spreads, _) = noises[self.slot.name], self._spreads(noises)
        own = self._tiled_spreads(noise.kind).times(self.slot.variance(noise))
        totals = self._unit_totals(noise.kind) * np.sqrt(self.slot.variance(noise))
        return spreads, totals if self.combination is None else own.respread(totals, spreads), 0.0

    def _unit_totals(self, kind: Kind) -> Floats:
        """The noise of running totals in a few cases (cases x groups x cells), where every number has variance 1."""
        if kind not in self._noisy_totals:
            transform = transform_of(self.slot, kind)
            cells = [transform.estimate(case) for case in unit_noise(kind, transform.size)]
            self._noisy_totals[kind] = np.cumsum(cells, axis=2)
        return self._noisy_totals[kind]

    @cached_property
    def _noisy_totals(self) -> dict[Kind, Floats]:
        return {}

    def _with_sampling(self, errors: Floats, shares: Floats, rows: Floats) -> Floats:
        return np.sqrt(errors**2 + self.rows_per_unit * shares * (1 - shares) / rows)

    def answer(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], confidence: float = 0.95) -> Answer:
        """Shares that rise from 0 to 1. The interval holds every share that the running totals do not contradict."""
        noise = noises[self.slot.name]
        if self.combination is None:
            cells = transform_of(self.slot, noise.kind).estimate(measured[self.slot.name])
        else:
            cells = self.combination.estimates(measured, noises)[self.slot.name][: self.expected.size]
        totals = np.cumsum(cells.reshape(self.expected.shape), axis=1)
        whole = np.repeat(totals[:, -1], totals.shape[1])
        shares, plain = rising_shares(totals, whole)
        rows = np.maximum(whole, 1.0)
        spreads, shape = self._spreads(noises)
        errors = np.sqrt(spreads.of_share(shares)) / rows
        clustered = self.rows_per_unit if self.statistic.for_population else 0
        if clustered:
            errors, shape = self._with_sampling(errors, shares, rows), shape.blurred

        def interval_at(level: float) -> tuple[Floats, Floats]:
            squares = shape.factor(level) ** 2
            population = clustered * squares * np.maximum(whole, 0.0)
            own, both, ends = (squares * each for each in (spreads.own, spreads.both, spreads.whole))
            return shares_between(totals.reshape(-1), whole, own, both, ends, population)

        return Answer.within(self.name, shares, errors, interval_at, self.labels, confidence=confidence, raw=plain)

    def noise_in(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> CellNoise | None:
        """Running totals over the whole, each with the weights of what was measured in it."""
        noise = noises[self.slot.name]
        mixing = self.slot.mixing(noise.kind)
        groups, edges = self.expected.shape
        if mixing is None or groups * edges > _MOST_EDGES or self.statistic.for_population:
            return None
        numbers, slots = self.slot.numbers(measured[self.slot.name], noise.kind), [self.slot]
        gaps: tuple[Spread | Mixture, ...] = ()
        relations = np.zeros((len(mixing), 0))
        place = 0
        if self.combination is not None:
            vectors, estimate = self.combination.under(noises)
            if self.slot.name in vectors:
                numbers, place = self.combination.estimates(measured, noises)[self.slot.name], vectors[self.slot.name]
                slots = [self.combination.slots[self.combination.places[name]] for name in vectors]  # type: ignore[misc]
                gaps = gaps_of(estimate.linked, slots, noises)
                relations = estimate.multipliers(place, estimate.linked.moved(place))
        of_edges = [
            NoisyCells(
                tuple(values.reshape(-1).tolist()),
                (Mixture(place, tuple(map(tuple, weights.tolist()))),),
                gaps,
                tuple(map(tuple, taken.tolist())) if gaps else (),
            )
            for values, weights, taken in zip(
                *(self._below(each) for each in (numbers[:, None], mixing, relations)), strict=True
            )
        ]
        blocks = tuple(combined_block(each, noises[each.name]) for each in slots)
        return CellNoise(blocks, of_edges[0], of_edges[1], least=0.0, most=1.0)

    def _at_unit(self, kind: Kind) -> ShapedErrors:
        if kind not in self._known:
            transform = transform_of(self.slot, kind)
            shares, rows = self._expected_shares
            spreads = _tiled(spreads_of(transform), transform.groups)
            deviations = np.sqrt(spreads.of_share(shares)) / rows
            self._known[kind] = ShapedErrors(deviations, shape_of(transform, kind, _ends(transform.strategy.cells)))
        return self._known[kind]

    def _at_worst(self, kind: Kind) -> ShapedErrors:
        """The same for the worst shares and fewer rows; a plan still weighs its kinds of noise by the expected ones."""
        deviations = self._worst_deviations(self._tiled_spreads(kind))
        return ShapedErrors(deviations, self._at_unit(kind).shape)

    def _worst_deviations(self, spreads: Spreads) -> Floats:
        _, rows = self._expected_shares
        # A parabola over the shares, with its arms upward: the worst is at an end.
        ends = np.maximum(spreads.of_share(np.zeros(len(rows))), spreads.of_share(np.ones(len(rows))))
        ends = ends.reshape(self.expected.shape)
        ends[:, -1] = 0.0  # the last share is 1
        return np.asarray(np.sqrt(ends.reshape(-1)) / np.maximum(self.fewer * rows, 1.0))

    @cached_property
    def _known(self) -> dict[Kind, ShapedErrors]:
        return {}


def expected_shares(expected: Floats) -> tuple[Floats, Floats]:
    """From rows in cells (groups x cells): the share below every edge, and the rows it is a share of."""
    totals = np.maximum(expected.sum(axis=1, keepdims=True), 1.0)
    shares = np.clip(np.cumsum(expected, axis=1) / totals, 0.0, 1.0)
    shares[:, -1] = 1.0
    return shares.reshape(-1), np.broadcast_to(totals, expected.shape).reshape(-1).copy()


def spreads_of(transform: StrategyTransform) -> Spreads:
    """At noise of variance 1, for one group: from the variances below and above every edge."""
    cells = transform.strategy.cells
    variances = transform.estimator.query_variances(_ends(cells))
    below, above, whole = variances[:cells], np.append(variances[cells:], 0.0), float(variances[cells - 1])
    return Spreads(below, (below + whole - above) / 2, np.full(cells, whole))


def cdf_loss(transform: StrategyTransform, expected: Floats) -> float:
    """The mean variance of shares at noise of variance 1."""
    shares, rows = expected_shares(expected)
    spreads = _tiled(spreads_of(transform), len(expected))
    return float(np.mean(spreads.of_share(shares) / rows**2))


def _ends(cells: int) -> SomeRanges:
    """All ranges that begin at the first cell, then those that end at the last, but for the whole."""
    edges = np.arange(1, cells)
    lows = np.concatenate([np.zeros(cells, dtype=np.int64), edges])
    highs = np.concatenate([np.arange(1, cells + 1), np.full(cells - 1, cells)])
    return SomeRanges(cells, "x", lows, highs)


def _tiled(spreads: Spreads, groups: int) -> Spreads:
    return Spreads(np.tile(spreads.own, groups), np.tile(spreads.both, groups), np.tile(spreads.whole, groups))

"""Shares of rows below the edges of a column's cells: running totals over the whole, one for each group."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.inference import Answer, ErrorDistribution, StatedDistribution, Term
from farthing.inference.noisy_numbers import CellNoise, NoisyCells, Spread
from farthing.statistics.counts.count_outputs import (
    RememberedDistribution,
    ScaledDistribution,
    block_of,
    smooth_factor,
    smooth_noise,
)
from farthing.statistics.counts.count_queries import Question, labels_of
from farthing.statistics.counts.expected_shares import PRESENT, SMALLER
from farthing.statistics.counts.share_reach import ReleasedShares, Spreads, rising_shares, shares_between, unit_noise
from farthing.statistics.measurements import Integers, Kind, Noise, Output, Slot

Floats = NDArray[np.float64]
_MOST_EDGES = 100  # of a cdf whose noises are kept with it


class CdfAssumptions(Output):
    """What the predicted errors of a cdf rest on, however its cells are measured."""

    is_expected: bool
    expected: Floats  # rows in each cell: groups x cells
    rows_per_unit: int

    @property
    def fewer(self) -> float:
        """The part of the expected rows that errors are predicted for, where nobody said how many have a value."""
        part = SMALLER if self.statistic.by or self.statistic.where is not None else 1.0
        return 1.0 if self.is_expected else PRESENT * part

    @property
    def _least_rows(self) -> str:
        fewest = f"at least {math.floor(self.fewer * float(self.expected.sum(axis=1).min())):,} {self.statistic.of}"
        if self.statistic.by:
            return f"every group has {fewest} with {self.statistic.column}"
        meet = "meet the condition and " * (self.statistic.where is not None)
        return f"{fewest} {meet}have {self.statistic.column}"

    @property
    def clause(self) -> str:
        """Where nobody said how many rows there are: for how many the error is predicted. Fewer have a larger one."""
        return "" if self.is_expected else self._least_rows

    @property
    def short_condition(self) -> str:
        """The same in few words."""
        fewest = math.floor(self.fewer * float(self.expected.sum(axis=1).min()))
        return (
            ""
            if self.is_expected
            else f"for {'groups of ' * bool(self.statistic.by)}{fewest:,} {self.statistic.of} or more"
        )

    @property
    def depends_on(self) -> str:
        """How the rows lie, where nothing is expected."""
        return "" if self.is_expected else f"how the {self.statistic.of} are distributed and on how many have a value"

    @property
    def sized(self) -> bool:
        """A share is one of so many rows."""
        return True

    @property
    def rests_on(self) -> tuple[str, ...]:
        """How the rows lie, where that is expected; otherwise that most of them have a value."""
        asked = self.statistic
        if not self.is_expected:
            return (self._least_rows,)
        groups = ("groups have as many rows as expected",) if asked.by else ()
        return (*groups, f"{asked.column} is distributed as expected")

    def promised(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """The reach of its intervals on average over releases.

        Where nothing is expected, it is as much more than the first order as at even shares.
        """
        predicted = self.predicted(noises)
        deviations = predicted.standard_errors

        def errors(level: float) -> Floats:
            first_order = predicted.errors(level)
            factors = np.where(deviations > 0, first_order / np.where(deviations > 0, deviations, 1.0), 0.0)
            released = self._released(noises, factors)
            reach = released.mean_reach()
            if self.is_expected:
                return np.maximum(first_order, reach)
            even = released.first_order(np.cumsum(self.fewer * self.expected, axis=1))
            more = float(np.max(reach[even > 0] / even[even > 0], initial=1.0))
            return np.minimum(first_order * more, 1.0)

        return StatedDistribution(deviations, errors)

    def _released(self, noises: Mapping[str, Noise], factors: Floats) -> ReleasedShares:
        """A few releases of the rows that are expected, with intervals of so many standard errors."""
        spreads, noise, steps = self._noise_in_totals(noises)
        return ReleasedShares(
            np.cumsum(self.fewer * self.expected, axis=1) + noise,
            spreads,
            factors,
            steps,
            float(self.rows_per_unit) if self.statistic.for_population else 0.0,
        )

    def _noise_in_totals(self, noises: Mapping[str, Noise]) -> tuple[Spreads, Floats, float]:
        """How noisy running totals are, that noise in a few cases, and the steps that intervals leave room for."""
        raise AssertionError("every cdf says how noisy its totals are")


@dataclass(frozen=True, eq=False)
class CdfOutput(CdfAssumptions):
    """Running totals of cells over their sum, for `groups` groups of cells."""

    members: NDArray[np.int64] = field(kw_only=True)
    expected: Floats = field(kw_only=True)  # rows in each cell
    rows_per_unit: int = field(kw_only=True, default=1)
    is_expected: bool = field(kw_only=True, default=True)  # what is expected; else errors are for the worst shares

    @classmethod
    def of(
        cls,
        question: Question,
        reference: Floats,
        slot: Slot,
        members: NDArray[np.int64],
        expected: Floats,
        rows_per_unit: int = 1,
        is_expected: bool = True,
    ) -> CdfOutput:
        """The output of a question about a cdf."""
        return cls(
            question.statistic,
            cdf_labels(question),
            (slot,),
            reference,
            members=members,
            expected=expected.reshape(-1, question.shape[-1]),
            rows_per_unit=rows_per_unit,
            is_expected=is_expected,
        )

    @cached_property
    def _below_and_above(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many cells of the slot lie below and above each edge, in one group after the other."""
        return self._cells_around(None)

    def _cells_around(self, most: int | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The same with at most so many cells of the slot for each of its own."""
        parts = np.bincount(self.members[self.members >= 0], minlength=self.expected.size)
        parts = parts if most is None else np.minimum(parts, most)
        below = np.cumsum(parts.reshape(self.expected.shape), axis=1)
        return below.reshape(-1), (below[:, -1:] - below).reshape(-1)

    @cached_property
    def _expected_shares(self) -> tuple[Floats, Floats]:
        """The expected share below every edge, and the rows it is a share of."""
        totals = np.maximum(self.expected.sum(axis=1, keepdims=True), 1.0)
        shares = np.clip(np.cumsum(self.expected, axis=1) / totals, 0.0, 1.0)
        shares[:, -1] = 1.0
        return shares.reshape(-1), np.broadcast_to(totals, self.expected.shape).reshape(-1).copy()

    @cached_property
    def _predicted_shares(self) -> tuple[Floats, Floats]:
        """The same where they are told; else the share at which noise does most, and fewer rows."""
        shares, rows = self._expected_shares
        if self.is_expected:
            return shares, rows
        below, above = self._below_and_above
        worst = np.where(above == 0, 1.0, np.where(below > above, 0.0, 1.0))
        return worst, np.maximum(self.fewer * rows, 1.0)

    @cached_property
    def coefficients(self) -> Mapping[str, Floats]:
        """By the delta method: noise below an edge counts 1 - share, noise above it share."""
        return {self.slots[0].name: self.variances_at_unit}

    @cached_property
    def variances_at_unit(self) -> Floats:
        """The variance of every share when every cell has noise of variance 1."""
        return self._variances(*self._below_and_above)

    @property
    def alone(self) -> Mapping[str, Floats]:
        """With one measured cell for each of its own that can hold rows."""
        return {self.slots[0].name: self._variances(*self._cells_around(1))}

    def _variances(self, below: NDArray[np.int64], above: NDArray[np.int64]) -> Floats:
        shares, rows = self._predicted_shares
        return np.asarray(((1 - shares) ** 2 * below + shares**2 * above) / rows**2)

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """The distribution of the linear part of the error at the expected shares, or at the worst."""
        shares, rows = self._predicted_shares
        if self.statistic.for_population:
            return self._distribution(
                noises, shares, rows, np.full_like(shares, 0.5) if not self.is_expected else shares
            )
        # A plan is made again many times with other noise: the same distribution each time, in another scale.
        (slot,) = self.slots
        noise = noises[slot.name]
        kind, scale = smooth_noise(noise.kind)
        if kind not in self._at_unit_scale:
            below, above = self._below_and_above
            terms = [Term(kind, scale, (1 - shares) / rows, below), Term(kind, scale, shares / rows, above)]
            self._at_unit_scale[kind] = RememberedDistribution(terms, len(shares))
        return ScaledDistribution(self._at_unit_scale[kind], smooth_factor(slot, noise))

    def predicted_at_best(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """Where noise below and above an edge cancels best."""
        if self.is_expected:
            return self.predicted(noises)
        (below, above), (_, rows) = self._below_and_above, self._expected_shares
        whole = np.maximum(below + above, 1)
        return self._distribution(noises, below / whole, rows)

    def _noise_in_totals(self, noises: Mapping[str, Noise]) -> tuple[Spreads, Floats, float]:
        (slot,) = self.slots
        variance = slot.variance(noises[slot.name])
        below, above = self._below_and_above
        spreads = Spreads(*(each.astype(float) for each in (below, below, below + above))).times(variance)
        return spreads, self._unit_totals(noises[slot.name].kind) * math.sqrt(variance), 0.5

    def _unit_totals(self, kind: Kind) -> Floats:
        """The noise of running totals in a few cases (cases x groups x cells), where every number has variance 1."""
        if kind not in self._noisy_totals:
            inside, size = self.members >= 0, self.expected.size
            cells = [
                np.bincount(self.members[inside], weights=case[inside], minlength=size).reshape(self.expected.shape)
                for case in unit_noise(kind, len(self.members))
            ]
            self._noisy_totals[kind] = np.cumsum(cells, axis=2)
        return self._noisy_totals[kind]

    @cached_property
    def _noisy_totals(self) -> dict[Kind, Floats]:
        return {}

    @cached_property
    def _at_unit_scale(self) -> dict[str, RememberedDistribution]:
        return {}

    def _distribution(
        self, noises: Mapping[str, Noise], shares: Floats, rows: Floats, sampled: Floats | None = None
    ) -> ErrorDistribution:
        (slot,) = self.slots
        noise = noises[slot.name]
        below, above = self._below_and_above
        kind, scale = smooth_noise(noise.kind)
        one = smooth_factor(slot, noise)
        terms = [
            Term(kind, scale, one * (1 - shares) / rows, below),
            Term(kind, scale, one * shares / rows, above),
        ]
        if self.statistic.for_population:
            own = shares if sampled is None else sampled
            terms.append(Term("normal", 1.0, np.sqrt(self.rows_per_unit * own * (1 - own) / rows)))
        return ErrorDistribution(terms, len(shares))

    def answer(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], confidence: float = 0.95) -> Answer:
        """Shares that rise from 0 to 1. The interval holds every share that the running totals do not contradict."""
        cells = np.zeros(self.expected.size)
        noisy = np.asarray(measured[self.slots[0].name])
        np.add.at(cells, self.members[self.members >= 0], noisy[self.members >= 0].astype(float))
        totals = np.cumsum(cells.reshape(self.expected.shape), axis=1)
        whole = np.repeat(totals[:, -1], totals.shape[1])
        shares, plain = rising_shares(totals, whole)
        distribution = self._distribution(noises, shares, np.maximum(whole, 1.0))
        below, above = self._below_and_above
        variance = self.slots[0].variance(noises[self.slots[0].name])

        def interval_at(level: float) -> tuple[Floats, Floats]:
            # (total - share * whole)^2 <= factor^2 * variance of the left side, a quadratic in the share.
            spread = np.where(distribution.standard_errors > 0, distribution.standard_errors, 1.0)
            # Whole numbers may step over the edge.
            half = 0.5 / np.maximum(whole, 1.0) * (distribution.standard_errors > 0)
            factor = (distribution.errors(level) + half) / spread
            squares = factor**2 * variance
            clustered = self.rows_per_unit if self.statistic.for_population else 0
            population = clustered * factor**2 * np.maximum(whole, 0.0)
            own = squares * below
            return shares_between(totals.reshape(-1), whole, own, own, own + squares * above, population)

        return Answer.within(
            self.name,
            shares,
            distribution.standard_errors,
            interval_at,
            self.labels,
            confidence=confidence,
            raw=plain,
        )

    def noise_in(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> CellNoise | None:
        """Running totals over the whole; nothing of samples, whose errors are not independent from edge to edge."""
        if self.statistic.for_population or self.expected.shape[1] > _MOST_EDGES:
            return None
        (slot,) = self.slots
        noisy = np.asarray(measured[slot.name]).astype(float)
        groups, edges = self.expected.shape
        inside = self.members >= 0
        cells = np.bincount(self.members[inside], noisy[inside], minlength=self.expected.size)
        totals = np.cumsum(cells.reshape(groups, edges), axis=1)
        rising, whole = [], []
        for edge in range(edges):  # a running total has every cell below it
            place = self.members % edges
            below = np.where(inside & (place <= edge), self.members // edges * edges + edge, -1)
            rising.append(Spread(0, 1.0, tuple(below.tolist())))
            every = np.where(inside, self.members // edges * edges + edge, -1)
            whole.append(Spread(0, 1.0, tuple(every.tolist())))
        top = NoisyCells(tuple(totals.reshape(-1).tolist()), tuple(rising))
        bottom = NoisyCells(tuple(np.repeat(totals[:, -1], edges).tolist()), tuple(whole))
        return CellNoise((block_of(slot, noises[slot.name]),), top, bottom, least=0.0, most=1.0)


def cdf_labels(question: Question) -> tuple[Any, ...]:
    """The upper edges of a column's cells, or its values; with groups, one label for each column."""
    axis = question.axes[-1]
    edges: tuple[Any, ...] = axis.labels if axis.edges is None else axis.edges[1:]
    outer = labels_of(question.axes[:-1])
    if not outer:
        return edges
    wrapped = len(question.axes) > 2
    return tuple((*group, edge) if wrapped else (group, edge) for group in outer for edge in edges)

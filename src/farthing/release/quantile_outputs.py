"""Medians and other quantiles: one choice from a public grid for every group, and how far off it is expected to be."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data import CellCounts, Integers
from farthing.data.aggregates.shape import MOST_CELLS, domain_of
from farthing.inference import Answer, ErrorLaw, StatedLaw
from farthing.inference.noise_sums import checked_confidence
from farthing.release.counting.questions import group_axes, labels_of
from farthing.release.counting.shares import assumptions_of, expected_rows
from farthing.release.derived_columns import DerivedColumns
from farthing.release.disjoint_conditions import Cells, disjoint_sets
from farthing.release.expectations import ColumnModel
from farthing.release.facts import Facts
from farthing.release.noise import Noise
from farthing.release.outputs import Output
from farthing.release.quantile_grids import FINE_POINTS, QuantileGrid
from farthing.release.quantile_intervals import (
    ends_by_rank,
    ground_of,
    in_order,
    note_of,
    rank_error,
    spread_assumptions,
)
from farthing.release.quantile_laws import QuantileLaw, mixed_error
from farthing.release.quantile_slots import QuantileSlot
from farthing.release.slots import Integers as WholeNumbers
from farthing.release.slots import Slot
from farthing.release.statistic import Statistic, text_of, told

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class QuantileOutput(Output):
    """Quantiles of one column in every group, group by group; the error depends on how its values are spread."""

    slot: QuantileSlot
    grid: QuantileGrid
    laws: tuple[QuantileLaw, ...]  # one for each probability
    rows: Floats  # expected, in every group
    rows_per_unit: int = 1
    rests_on: str = "what was expected of the column"  # the interval in values, in words
    start: int = 0  # the slot may have groups of other conditions too: where those of this one begin
    _curves: dict[float, Floats] = field(default_factory=dict, compare=False, repr=False)

    @property
    def coefficients(self) -> Mapping[str, Floats]:
        """None: the error is not linear in any noise."""
        return {}

    def variance_curve(self, epsilon: float) -> Floats:
        """The expected squared error of every cell at this epsilon."""
        found = self._curves.get(epsilon)
        if found is None:
            pulls = self._pulls(epsilon)[None, :] * self.rows[:, None]
            found = np.empty_like(pulls)
            for place, curves in enumerate(self._tables):
                for rows, curve in curves.items():
                    own = self._like == rows
                    found[own, place] = curve.at(pulls[own, place])
            if len(self._curves) > 4096:
                self._curves.clear()
            found = self._curves[epsilon] = found.reshape(-1)
        return found

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorLaw:
        """The law of the chosen point around the true quantile, if values are spread as expected."""
        epsilon = noises[self.slot.name].parameter
        return _ChoiceLaw(self, epsilon)

    def answer(
        self, measured: Mapping[str, WholeNumbers], noises: Mapping[str, Noise], confidence: float = 0.95
    ) -> Answer:
        """The chosen points, in rising order, in an interval around them and with a note on what that rests on.

        Whatever the data, the rank of an answer is near the one asked for. How far that is in values is read off the
        expected distribution around the answer; the interval holds that and the foretold error, whichever is wider.
        """
        epsilon = noises[self.slot.name].parameter
        mechanism = self.slot.mechanism(noises[self.slot.name])
        every = np.asarray(measured[self.slot.name], dtype=np.int64).reshape(-1, len(self.laws))
        places = np.sort(every[self.start : self.start + len(self.rows)], axis=1)
        chosen = self.grid.values[places]
        values = np.round(chosen) if self.statistic.rounded else chosen
        step = float(self.grid.step)

        def interval(level: float) -> tuple[Floats, Floats]:
            reach = rank_error(mechanism, level) / self.rows[:, None]
            low, high = ends_by_rank(self.grid, self.laws[0], places, reach)
            foretold = self._choice_errors(epsilon, level)
            below = np.maximum(values - np.minimum(low, chosen - foretold), step)
            above = np.maximum(np.maximum(high, chosen + foretold) - values, step)
            sampling = self._sampling_error(level).reshape(values.shape)
            ends = in_order(values - np.hypot(below, sampling), values + np.hypot(above, sampling))
            lower, upper = (np.clip(end, self.grid.lower, self.grid.upper).reshape(-1) for end in ends)
            return lower, upper

        rows = rank_error(mechanism, confidence)
        note = note_of(rows, len(self.laws), len(self.rows), confidence, self.rests_on)
        errors = self._deviations(epsilon)
        return Answer.within(
            self.name, values.reshape(-1), errors, interval, self.labels, confidence=confidence, note=note
        )

    def error_of_all(self, epsilon: float, confidence: float) -> float:
        """The error that holds this share of all cells' errors, taken together."""
        pulls = self._pulls(epsilon)
        counts = Counter(self.rows.tolist())
        cells = []
        for law, pull in zip(self.laws, pulls, strict=True):
            for rows, often in counts.items():
                sizes, weights = law.sizes(float(pull) * rows, rows)
                cells.append((sizes, weights * (often * len(counts) / len(self.rows))))
        normal = -NormalDist().inv_cdf((1 - confidence) / 2)
        found = mixed_error(cells, confidence)
        return math.sqrt(found**2 + normal**2 * float(self._sampling_variance.mean()))

    def _deviations(self, epsilon: float) -> Floats:
        return np.sqrt(self.variance_curve(epsilon) + self._sampling_variance)

    @cached_property
    def _tables(self) -> list[dict[float, Any]]:
        return [{rows: law.curve(rows) for rows in set(self._like.tolist())} for law in self.laws]

    @cached_property
    def _like(self) -> Floats:
        """Rows of groups to within a quarter: all that samples of a coarse column need to know."""
        return self.rows if len(set(self.rows.tolist())) <= 4 else np.exp(np.round(4 * np.log(self.rows)) / 4)

    def _pulls(self, epsilon: float) -> Floats:
        """What a row of distance in rank costs in the exponent, for each probability, on smoothly spread rows.

        Rows are not spread smoothly: gaps between them differ, and wide ones are chosen more often. Over independent
        rows that multiplies the variance by 1 + 13/16 r + O(r^2) for a rate r; the square is fitted.
        """
        rates = np.array(self._rates) * epsilon
        if self.laws[0].whole:
            return rates
        return np.asarray(rates / np.sqrt(1 + 13 / 16 * rates + rates**2 / 6))

    @cached_property
    def _rates(self) -> list[float]:
        """Rates are in proportion to epsilon; these are for 1."""
        return [float(choice.rate) for choice in self.slot.mechanism(Noise("exponential", 1.0)).choices]

    def _errors(self, epsilon: float, confidence: float) -> Floats:
        return np.hypot(
            self._choice_errors(epsilon, confidence).reshape(-1), self._sampling_error(confidence)
        )

    def _choice_errors(self, epsilon: float, confidence: float) -> Floats:
        """The foretold error of each group and probability, that of sampling left out."""
        found = np.empty((len(self.rows), len(self.laws)))
        for place, (law, rate) in enumerate(zip(self.laws, self._pulls(epsilon), strict=True)):
            for rows in set(self.rows.tolist()):
                found[self.rows == rows, place] = law.error(float(rate) * rows, rows, confidence)
        return found

    def _sampling_error(self, confidence: float) -> Floats:
        return np.asarray(-NormalDist().inv_cdf((1 - confidence) / 2) * np.sqrt(self._sampling_variance))

    @cached_property
    def _sampling_variance(self) -> Floats:
        """That of a sample quantile around the population's, where asked: q (1 - q) / (n density^2).

        Units that come with several rows count as so many fewer.
        """
        if not self.statistic.for_population:
            return np.zeros(len(self.reference))
        each = [law.probability * (1 - law.probability) / law.density**2 for law in self.laws]
        clustered = self.rows_per_unit * np.array(each)[None, :]
        return np.asarray((clustered / self.rows[:, None]).reshape(-1))


class _ChoiceLaw(StatedLaw):
    """The law of chosen points; that of all cells together is found at once, not from a ladder of confidences."""

    def __init__(self, output: QuantileOutput, epsilon: float) -> None:
        self._output, self._epsilon = output, epsilon
        super().__init__(output._deviations(epsilon), lambda level: output._errors(epsilon, level))

    def error(self, confidence: float = 0.95) -> float:
        """The least e that holds the asked share of errors, all cells taken together."""
        if self.cells == 1:
            return float(self.errors(confidence)[0])
        return self._output.error_of_all(self._epsilon, checked_confidence(confidence))


def outputs_of(
    statistics: Sequence[Statistic], facts: Facts
) -> tuple[list[Slot], list[Output], dict[str, Any], list[str]]:
    """Slots, outputs, columns to derive and assumptions of quantiles."""
    together: dict[tuple[Any, ...], dict[str, list[Statistic]]] = {}
    for statistic in statistics:
        conditions = together.setdefault((statistic.column, statistic.by, statistic.probabilities), {})
        conditions.setdefault(_condition(statistic), []).append(statistic)
    slots: list[Slot] = []
    outputs: dict[str, Output] = {}
    derived = DerivedColumns(facts.schema, "point")
    for conditions in together.values():
        asked = list(conditions.values())  # two names for the same quantile are chosen once
        groups = labels_of(group_axes(asked[0][0].by, facts.schema))
        wheres = [statistics[0].where for statistics in asked]
        for places in disjoint_sets(wheres, facts.schema, _most(asked[0][0], facts, max(1, len(groups)))):
            slot, grid = _slot([asked[place][0] for place in places], facts, max(1, len(groups)), derived)
            slots.append(slot)
            for number, place in enumerate(places):
                for statistic in asked[place]:
                    outputs[statistic.name] = _output(statistic, facts, grid, groups, slot, number)
    assumptions = [line for each in statistics for line in assumptions_of(facts, [each.column])]
    assumptions = list(dict.fromkeys([*assumptions, *spread_assumptions(statistics, facts)]))
    return slots, [outputs[each.name] for each in statistics], derived.found, assumptions


def _condition(statistic: Statistic) -> str:
    return "" if statistic.where is None else text_of(statistic.where)


def _most(statistic: Statistic, facts: Facts, groups: int) -> int:
    """How many conditions may share a choice: more of them leave fewer points, and those must stay fine."""
    grid = QuantileGrid.of(statistic.column, domain_of(statistic.column, facts.schema), groups)
    return MOST_CELLS // (groups * min(grid.points, FINE_POINTS))


def _slot(
    statistics: Sequence[Statistic], facts: Facts, groups: int, columns: DerivedColumns
) -> tuple[QuantileSlot, QuantileGrid]:
    """One choice for each group, under each of disjoint conditions."""
    first = statistics[0]
    cells = Cells.of(statistics, facts.schema, columns)
    groups *= cells.conditions
    grid = QuantileGrid.of(first.column, domain_of(first.column, facts.schema), groups)
    counted = first.column if grid.text is None else columns.named(grid.derived)
    aggregate = CellCounts([*cells.by, counted], where=cells.where)
    places = ", ".join(f"{q!r}" for q in first.probabilities)
    slot = QuantileSlot(
        name=f"choice of the {places} quantile of {told(first.column)}{cells.subject}",
        aggregate=aggregate,
        sensitivity=facts.sensitivity(aggregate, columns.found or None),
        cells=groups * len(first.probabilities),
        kinds=("exponential",),
        probabilities=first.probabilities,
        points=grid.points,
        groups=groups,
        max_rows=facts.dataset.stability().rows,
        neighbours=facts.dataset.neighbours,
    )
    return slot, grid


def _output(
    statistic: Statistic,
    facts: Facts,
    grid: QuantileGrid,
    groups: tuple[Any, ...],
    slot: QuantileSlot,
    number: int,
) -> QuantileOutput:
    model = facts.column(statistic.column)
    shares = _shares(grid, model, facts, statistic.column)
    on_points = isinstance(facts.schema[statistic.column], Integers) and grid.step == 1
    laws = tuple(
        QuantileLaw(grid.values, shares, q, float(grid.step), on_points) for q in statistic.probabilities
    )
    rows = np.maximum(np.atleast_1d(expected_rows(facts, statistic.where, statistic.by)), 1.0)
    spread = math.sqrt(max(model.variance, 1e-12 * (grid.upper - grid.lower) ** 2))
    reference = np.tile([max(abs(law.quantile), spread) for law in laws], len(rows))
    labels: tuple[Any, ...] = groups
    if statistic.kind == "quantiles":
        labels = tuple(
            _joined(group, q) for group, q in itertools.product(groups or (None,), slot.probabilities)
        )
    return QuantileOutput(
        statistic,
        labels,
        (slot,),
        reference,
        slot=slot,
        grid=grid,
        laws=laws,
        rows=rows,
        rows_per_unit=facts.dataset.rows_per_unit,
        rests_on=ground_of(statistic, facts, model),
        start=number * len(rows),
    )


def _joined(group: Any, probability: float) -> Any:
    if group is None:
        return probability
    return (*group, probability) if isinstance(group, tuple) else (group, probability)


def _shares(grid: QuantileGrid, model: ColumnModel, facts: Facts, column: str) -> Floats:
    """The expected share of rows at each point."""
    values = grid.values
    if grid.text is None:  # whole numbers
        if model.assumed:
            return np.full(len(values), 1 / len(values))
        if isinstance(
            facts.expected.get(column), list | np.ndarray
        ):  # public values are whole numbers themselves
            return np.diff(model.share_below(values), prepend=0.0)
    edges = np.concatenate(([-np.inf], (values[1:] + values[:-1]) / 2, [np.inf]))
    return np.diff(model.share_below(edges))

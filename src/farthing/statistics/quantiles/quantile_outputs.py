"""Medians and other quantiles: one choice from a public grid for every group, and how far off it is expected to be."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data import CellCounts, Integers
from farthing.data.aggregates.aggregate import MOST_CELLS, Aggregate, domain_of
from farthing.data.aggregates.unit_bounds import BoundedGroups
from farthing.inference import Answer, ErrorDistribution, StatedDistribution
from farthing.inference.noise_sums import checked_confidence
from farthing.mechanisms.quantile_surroundings import CHOICE_SHARE, QuantileSurroundings
from farthing.mechanisms.quantile_tree import all_apart, best_order, misses, weights_of
from farthing.mechanisms.quantiles import decimal
from farthing.statistics.counts.count_queries import group_axes, labels_of
from farthing.statistics.counts.expected_shares import assumptions_of, expected_rows
from farthing.statistics.disjoint_conditions import disjoint_sets
from farthing.statistics.measurements import Cells, Noise, Output, QuantileSlot, Slot
from farthing.statistics.measurements import Integers as WholeNumbers
from farthing.statistics.public_facts import Assumption, ColumnModel, DerivedColumns, Facts, without_missing
from farthing.statistics.quantiles.quantile_grid import FINE_POINTS, QuantileGrid
from farthing.statistics.quantiles.quantile_intervals import (
    NoisyRanks,
    QuantileDistribution,
    both_tails,
    distribution_of,
    in_order,
    note_of,
    spread_assumptions,
)
from farthing.statistics.statistic import Statistic, column_text, text_of

Floats = NDArray[np.float64]

_CHOICES = 15  # likely choices, and noises with each, that a predicted interval is the mean over
_NOISES = 16
_MORE_NOISES = 112  # beside them, for an average, which a few long intervals decide
_ONE_DEVIATION = 0.6827  # the standard error of an answer is measured too: half its interval at this confidence
_AS_MANY = 0.05  # a list stands for the rows themselves if it is so close to them in number
_LEVEL = 1.01  # times a squared error: what is no worse
_EPSILONS = np.geomspace(1e-6, 20.0, 59).tolist()  # at which quantiles together are compared with each by itself
_SHUFFLED = (7 * np.arange(_CHOICES)) % _CHOICES  # so that choices and noises do not rise together


@dataclass(frozen=True)
class QuantileOutput(Output):
    """Quantiles of one column in every group, group by group; the error depends on how its values are spread."""

    slot: QuantileSlot
    grid: QuantileGrid
    distributions: tuple[QuantileDistribution, ...]  # one for each probability of the slot
    columns: tuple[int, ...]  # which of the slot's probabilities are asked for
    rows: Floats  # expected, in every group
    rows_per_unit: int = 1
    assumed: bool = False  # nothing was expected of the column
    whole_numbers: bool = False  # the column is declared to have nothing else
    start: int = 0  # the slot may have groups of other conditions too: where those of this one begin
    by_itself: QuantileOutput | None = None  # what it would be if the slot were asked for nothing else
    _curves: dict[float, Floats] = field(default_factory=dict, compare=False, repr=False)
    _reaches: dict[tuple[float, float], tuple[Floats, Floats]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def coefficients(self) -> Mapping[str, Floats]:
        """None: the error is not linear in any noise."""
        return {}

    @property
    def sized(self) -> bool:
        """How many rows there are decides which of them a choice is between."""
        return True

    @property
    def clause(self) -> str:
        """How far rows are apart decides the error, and that is known only as far as somebody said so."""
        return f"{self.statistic.column} is distributed as {'assumed' if self.assumed else 'expected'}"

    @property
    def is_assumed(self) -> bool:
        """Whether nothing was expected of the column."""
        return self.assumed

    @property
    def assumed_column(self) -> str:
        """The column, if nothing was expected of it."""
        return self.statistic.column if self.assumed else ""

    def variance_curve(self, epsilon: float) -> Floats:
        """The expected squared error of every cell at this epsilon."""
        variances = self._curves.get(epsilon)
        if variances is None:
            pulls = self._pulls(epsilon)[None, :] * self.rows[:, None]
            variances = np.empty((len(self.rows), len(self.columns)))
            for number, (place, curves) in enumerate(zip(self.columns, self._tables, strict=True)):
                for rows, curve in curves.items():
                    own = self._like == rows
                    variances[own, number] = curve.at(pulls[own, place])
            if len(self._curves) > 4096:
                self._curves.clear()
            variances = self._curves[epsilon] = variances.reshape(-1)
        return variances

    def alone_curve(self, epsilon: float) -> Floats:
        """The same, if the statistic had a slot of its own."""
        return (self.by_itself or self).variance_curve(epsilon)

    @property
    def choices(self) -> tuple[int, float]:
        """By the misses in rank, and because choices have only a part of a slot's epsilon."""
        places = [decimal(q) for q in self.statistic.probabilities]
        own, apart = (misses(places, order) for order in (best_order(places), all_apart(len(places))))
        return len(places), float(np.sqrt(np.mean(own**2) / np.mean(apart**2)) / CHOICE_SHARE)

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """The standard error of the value and the reach of its interval, if values are spread as expected."""
        return _ChoiceDistribution(self, noises[self.slot.name])

    def promised(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """The reach of its interval on average, those that reach up to a bound included."""
        noise = noises[self.slot.name]
        return StatedDistribution(
            self._deviations(noise.parameter), lambda level: self._usual_and_mean_reach(noise, level)[1]
        )

    def answer(
        self, measured: Mapping[str, WholeNumbers], noises: Mapping[str, Noise], confidence: float = 0.95
    ) -> Answer:
        """The chosen points, in rising order, in intervals that were measured and hold whatever the data."""
        noise = noises[self.slot.name]
        mechanism = self.slot.mechanism(noise)
        parts = mechanism.parts(measured[self.slot.name])[self.start : self.start + len(self.rows)]
        places = np.stack([group for group, _, _ in parts])
        chosen = self.grid.values[places[:, self.columns]]
        values = np.round(chosen) if self.statistic.rounded else chosen
        scale = mechanism.counting().scale
        spread = float(self.rows_per_unit) if self.statistic.for_population else 0.0
        ranks = [NoisyRanks(last, counts, scale, spread) for _, last, counts in parts]

        def interval(level: float) -> tuple[Floats, Floats]:
            ends = np.array(
                [self._ends(one, group, level) for one, group in zip(ranks, places, strict=True)],
                dtype=np.int64,
            )
            low, high = in_order(*self._in_values(ends[:, self.columns, 0], ends[:, self.columns, 1]))
            return low.reshape(-1), high.reshape(-1)

        low, high = interval(confidence)
        whole = int(((low <= self.grid.lower) & (high >= self.grid.upper)).sum())
        note = note_of(self.statistic, self.grid.lower, self.grid.upper, whole, len(low), self.whole_numbers)
        errors = np.subtract(*interval(_ONE_DEVIATION)[::-1]) / 2
        # Whole numbers jump: where one of them fills two thirds of the chances, the 95% interval knows of others.
        wide = np.subtract(*interval(0.95)[::-1]) / (2 * NormalDist().inv_cdf(0.975))
        return Answer.within(
            self.name,
            values.reshape(-1),
            np.where(errors > 0, errors, wide),
            interval,
            self.labels,
            confidence=confidence,
            note=note,
        )

    def limits(self, measured: Mapping[str, WholeNumbers]) -> tuple[Floats | float, Floats | float] | None:
        return self.grid.lower, self.grid.upper

    def _ends(self, ranks: NoisyRanks, chosen: WholeNumbers, level: float) -> list[tuple[int, int]]:
        """The first and the last point of the interval of each probability."""
        return [
            ranks.interval(distribution.probability, ranks.rank_errors(distribution.probability, level), int(choice))
            for distribution, choice in zip(self.distributions, chosen, strict=True)
        ]

    def _in_values(self, first: Any, last: Any) -> tuple[Floats, Floats]:
        """Points as values: rows lie within half a step of their point, or anywhere up to a bound of the column."""
        blur = 0.0 if self.distributions[0].whole else (0.5 + 1e-9) * float(self.grid.step)
        lower = np.where(first <= 0, self.grid.lower, self.grid.values[first] - blur)
        upper = np.where(last >= self.grid.points - 1, self.grid.upper, self.grid.values[last] + blur)
        return np.clip(lower, self.grid.lower, self.grid.upper), np.clip(upper, self.grid.lower, self.grid.upper)

    def reaches(self, noise: Noise, confidence: float) -> Floats:
        """How far the interval of each cell usually reaches from its value, if values are spread as expected."""
        return self._usual_and_mean_reach(noise, confidence)[0]

    def _usual_and_mean_reach(self, noise: Noise, confidence: float) -> tuple[Floats, Floats]:
        key = (noise.parameter, confidence)
        if key not in self._reaches:
            mechanism = self.slot.mechanism(noise)
            pulls = self._pulls(noise.parameter)
            reaches = np.empty((2, len(self.rows), len(self.columns)))
            for rows in set(self._like.tolist()):
                usual, mean = self._expected_reach(mechanism, pulls, rows, confidence)
                reaches[0, self._like == rows], reaches[1, self._like == rows] = usual, mean
            if len(self._reaches) > 4096:
                self._reaches.clear()
            self._reaches[key] = reaches[0].reshape(-1), reaches[1].reshape(-1)
        return self._reaches[key]

    def _expected_reach(
        self, mechanism: QuantileSurroundings, pulls: Floats, rows: float, confidence: float
    ) -> tuple[Floats, Floats]:
        """A mean over likely choices and noises, which are the same at every epsilon: of roots, squared, and as it is.

        A few intervals that reach up to a bound do not say what is usual, but they count in an average.
        """
        scale = mechanism.counting().scale
        normal = NormalDist().inv_cdf(0.5 + both_tails(confidence, self.statistic.for_population) / 2)
        chosen = np.sort(
            [
                distribution.likely(float(pull) * rows, _CHOICES)
                for distribution, pull in zip(self.distributions, pulls, strict=True)
            ],
            axis=0,
        )
        chosen = chosen.T[_SHUFFLED]
        spread = self.rows_per_unit * rows if self.statistic.for_population else 0.0
        roots, reaches = np.zeros((2, len(self.columns)))
        for turn, places in enumerate(chosen):
            last = mechanism.last_points(places)
            cells = len(last)
            noises = scale * _noise_table(cells, turn)
            counts = np.diff(rows * self.distributions[0].upto[last], prepend=0.0) + noises
            below = np.cumsum(counts, axis=1)[:, :-1]
            every = np.arange(1, cells)
            for number, place in enumerate(self.columns):
                q = self.distributions[place].probability
                ranks = below - q * counts.sum(axis=1, keepdims=True)
                variance = 2 * scale**2 * (every * (1 - q) ** 2 + (cells - every) * q**2) + spread * q * (1 - q)
                errors = normal * np.sqrt(variance)
                first = np.argmax(np.append(ranks >= -errors, np.ones((len(ranks), 1), bool), axis=1), axis=1)
                final = (
                    cells
                    - 1
                    - np.argmax(np.append((ranks < errors)[:, ::-1], np.ones((len(ranks), 1), bool), axis=1), axis=1)
                )
                starts = np.append(0, last[:-1] + 1)[first]
                low, high = self._in_values(starts, last[final])
                value = self.grid.values[places[place]]
                reach = np.maximum(np.maximum(high - value, value - low), 0.0)
                roots[number] += float(np.sqrt(reach[:_NOISES]).mean())
                reaches[number] += float(reach.mean())
        return np.asarray((roots / len(chosen)) ** 2), np.asarray(reaches / len(chosen))

    def _deviations(self, epsilon: float) -> Floats:
        return np.sqrt(self.variance_curve(epsilon) + self._sampling_variance)

    @cached_property
    def _tables(self) -> list[dict[float, Any]]:
        asked = [self.distributions[place] for place in self.columns]
        return [{rows: distribution.curve(rows) for rows in set(self._like.tolist())} for distribution in asked]

    @cached_property
    def _like(self) -> Floats:
        """Rows of groups to within a quarter: all that samples of a coarse column need to know."""
        return self.rows if len(set(self.rows.tolist())) <= 4 else np.exp(np.round(4 * np.log(self.rows)) / 4)

    def _pulls(self, epsilon: float) -> Floats:
        """What a row of distance in rank costs in the exponent, for each probability, on smoothly spread rows.

        Rows are not spread smoothly: gaps between them differ, and wide ones are chosen more often. Over independent
        rows that multiplies the variance by 1 + 13/16 r + O(r^2) for a rate r; the square is fitted. Rows that are
        listed one by one have the gaps that they have.
        """
        rates = np.array(self._rates) * epsilon
        if self.distributions[0].whole or self.distributions[0].known is not None:
            return rates
        return np.asarray(rates / np.sqrt(1 + 13 / 16 * rates + rates**2 / 6))

    @cached_property
    def _rates(self) -> list[float]:
        """Rates are in proportion to epsilon; these are for 1."""
        return [float(rate) for rate in self.slot.mechanism(Noise("exponential", 1.0)).choosing.rates]

    @cached_property
    def _sampling_variance(self) -> Floats:
        """That of a sample quantile around the population's, where asked: q (1 - q) / (n density^2).

        Units that come with several rows count as so many fewer.
        """
        if not self.statistic.for_population:
            return np.zeros(len(self.reference))
        each = [
            distribution.probability * (1 - distribution.probability) / distribution.density**2
            for distribution in (self.distributions[place] for place in self.columns)
        ]
        clustered = self.rows_per_unit * np.array(each)[None, :]
        return np.asarray((clustered / self.rows[:, None]).reshape(-1))


class _ChoiceDistribution(StatedDistribution):
    """What is expected of chosen points; of cells that differ, the error is that of the worst."""

    def __init__(self, output: QuantileOutput, noise: Noise) -> None:
        super().__init__(output._deviations(noise.parameter), lambda level: output.reaches(noise, level))

    def error(self, confidence: float = 0.95) -> float:
        """How far the widest interval is expected to reach."""
        return float(self.errors(checked_confidence(confidence)).max())


@lru_cache(maxsize=1024)
def _noise_table(cells: int, number: int) -> Floats:
    """Laplace noises of scale 1 and their mirror images: fixed, so that predictions are the same every time."""
    generator = np.random.default_rng((cells, number))
    halves = [generator.laplace(0.0, 1.0, (many // 2, cells)) for many in (_NOISES, _MORE_NOISES)]
    return np.concatenate([each for half in halves for each in (half, -half)])


def outputs_of(
    statistics: Sequence[Statistic], facts: Facts
) -> tuple[list[Slot], list[Output], dict[str, Any], list[Assumption]]:
    """Slots, outputs, columns to derive and assumptions of quantiles."""
    together: dict[tuple[Any, ...], dict[str, list[Statistic]]] = {}
    for asked in _shared_choices(statistics, facts):  # two names for the same quantile are chosen once
        levels = _levels(list(dict.fromkeys(each.probabilities for each in asked)))
        together.setdefault((asked[0].column, asked[0].by, levels), {})[_condition(asked[0])] = asked
    slots: list[Slot] = []
    outputs: dict[str, Output] = {}
    derived = facts.derived_columns("point")
    for (_, by, levels), conditions in together.items():
        asked_under = list(conditions.values())
        groups = labels_of(group_axes(by, facts.schema))
        wheres = [asked[0].where for asked in asked_under]
        for places in disjoint_sets(wheres, facts.schema, _most(asked_under[0][0], facts, max(1, len(groups)))):
            firsts = [asked_under[place][0] for place in places]
            slot, grid = _slot(firsts, levels, facts, max(1, len(groups)), derived)
            slots.append(slot)
            for number, place in enumerate(places):
                for statistic in asked_under[place]:
                    outputs[statistic.name] = _output(statistic, facts, grid, groups, slot, number)
    assumptions = [line for each in statistics for line in assumptions_of(facts, [each.column])]
    assumptions = list(dict.fromkeys([*assumptions, *spread_assumptions(statistics, facts)]))
    return slots, [outputs[each.name] for each in statistics], derived.expressions, assumptions


def _shared_choices(statistics: Sequence[Statistic], facts: Facts) -> list[list[Statistic]]:
    """Quantiles of the same rows that are chosen together: those that are then no worse than each by itself.

    Together they have the epsilon of all. Of quartiles and a median the tree of the quartiles is enough; a median
    would lose beside a long list of quantiles, whose tree is deep.
    """
    shared: list[list[Statistic]] = []
    for statistic in statistics:
        for asked in shared:
            if _rows_of(asked[0]) == _rows_of(statistic) and _no_worse([*asked, statistic], facts):
                asked.append(statistic)
                break
        else:
            shared.append([statistic])
    return shared


def _rows_of(statistic: Statistic) -> tuple[Any, ...]:
    return statistic.column, statistic.by, _condition(statistic)


def _no_worse(together: Sequence[Statistic], facts: Facts) -> bool:
    """Whether nobody loses: in ranks, which decide where rows are spread smoothly, nor in values at any epsilon.

    On few whole numbers, or where a choice may fall on any point, errors do not follow from misses in rank.
    """
    firsts = list({each.probabilities: each for each in together}.values())
    if len(firsts) == 1:
        return True
    levels = _levels([each.probabilities for each in firsts])
    shared = _misses(*levels)
    for each in firsts:
        for q, miss in _misses(*_levels([each.probabilities])).items():
            if not shared[q] <= (1 + 1e-9) * len(firsts) * miss:
                return False
    groups = labels_of(group_axes(firsts[0].by, facts.schema))
    slot, grid = _slot(firsts[:1], levels, facts, max(1, len(groups)), DerivedColumns(facts.schema, "point"))
    return all(
        float(np.mean(output.variance_curve(len(firsts) * epsilon) / output.reference**2))
        <= _LEVEL * float(np.mean(output.alone_curve(epsilon) / output.reference**2))
        for output in (_output(each, facts, grid, groups, slot, 0) for each in firsts)
        for epsilon in _EPSILONS
    )


def _levels(sets: Sequence[tuple[float, ...]]) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """All probabilities of several sets, and how much of epsilon the levels of their choice have of each other."""
    union = tuple(sorted({q for each in sets for q in each}))
    nodes = best_order([decimal(q) for q in union])
    weights = weights_of(nodes, [[union.index(q) for q in each] for each in sets])
    return union, () if len(set(weights)) == 1 else weights


@lru_cache(maxsize=1024)
def _misses(probabilities: tuple[float, ...], weights: tuple[int, ...]) -> dict[float, float]:
    places = [decimal(q) for q in probabilities]
    return dict(zip(probabilities, misses(places, best_order(places), weights).tolist(), strict=True))


def _condition(statistic: Statistic) -> str:
    return "" if statistic.where is None else text_of(statistic.where)


def _most(statistic: Statistic, facts: Facts, groups: int) -> int:
    """How many conditions may share a choice: more of them leave fewer points, and those must stay fine."""
    grid = QuantileGrid.of(statistic.column, domain_of(statistic.column, facts.schema), groups)
    return MOST_CELLS // (groups * min(grid.points, FINE_POINTS))


def _slot(
    statistics: Sequence[Statistic],
    levels: tuple[tuple[float, ...], tuple[int, ...]],
    facts: Facts,
    groups: int,
    columns: DerivedColumns,
) -> tuple[QuantileSlot, QuantileGrid]:
    """One choice for each group, under each of disjoint conditions."""
    first, (probabilities, weights) = statistics[0], levels
    cells = Cells.of(statistics, facts.schema, columns)
    groups *= cells.conditions
    grid = QuantileGrid.of(first.column, domain_of(first.column, facts.schema), groups)
    counted = first.column if grid.text is None else columns.named(grid.derived)
    aggregate: Aggregate = CellCounts([*cells.by, counted], where=cells.where)
    if facts.bound is not None:
        aggregate = BoundedGroups(aggregate, facts.bound, groups=cells.by)
    places = ", ".join(f"{q!r}" for q in probabilities)
    slot = QuantileSlot(
        name=facts.slot_name(f"choice of the {places} quantile of {column_text(first.column)}{cells.subject}"),
        aggregate=aggregate,
        sensitivity=facts.sensitivity(aggregate, columns.expressions or None),
        cells=groups * len(probabilities),
        kinds=("exponential",),
        probabilities=probabilities,
        points=grid.points,
        groups=groups,
        max_rows=facts.rows_moved(groups),
        neighbours=facts.dataset.neighbours,
        weights=weights,
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
    on_points = isinstance(facts.schema[statistic.column], Integers) and grid.step == 1
    asked = np.atleast_1d(expected_rows(facts, statistic.where, statistic.by))
    rows = np.maximum(asked * facts.present(statistic.column), 1.0)  # a row without a value has no rank
    listed = None if on_points else _listed_rows(statistic, facts, float(rows[0]))
    shares = _shares(grid, model, facts, statistic.column) if listed is None else _expected_shares(grid, listed)
    mechanism = slot.mechanism(Noise("exponential", 1.0)).choosing
    rates = np.array([float(rate) for rate in mechanism.rates])
    passed = mechanism.passed_on * rates[:, None] / rates[None, :]
    distributions = tuple(
        distribution_of(
            grid.values,
            shares,
            q,
            float(grid.step),
            on_points,
            _expected_quantile(listed, q, grid),
            tuple(float(part) for other, part in enumerate(passed[place]) if part and other != place),
            mechanism.followed[place],
        )
        for place, q in enumerate(slot.probabilities)
    )
    columns = tuple(slot.probabilities.index(q) for q in statistic.probabilities)
    spread = math.sqrt(max(model.variance, 1e-12 * (grid.upper - grid.lower) ** 2))
    reference = np.tile([max(abs(distributions[place].quantile), spread) for place in columns], len(rows))
    labels: tuple[Any, ...] = groups
    if statistic.kind == "quantiles":
        labels = tuple(_joined(group, q) for group, q in itertools.product(groups or (None,), statistic.probabilities))
    by_itself = None
    if len(columns) < len(slot.probabilities):
        own = replace(slot, probabilities=statistic.probabilities, weights=())
        by_itself = _output(statistic, facts, grid, groups, own, number)
    return QuantileOutput(
        statistic,
        labels,
        (slot,),
        reference,
        slot=slot,
        grid=grid,
        distributions=distributions,
        columns=columns,
        rows=rows,
        rows_per_unit=facts.rows_per_unit,
        assumed=model.assumed,
        whole_numbers=isinstance(facts.schema[statistic.column], Integers),
        start=number * len(rows),
        by_itself=by_itself,
    )


def _listed_rows(statistic: Statistic, facts: Facts, rows: float) -> Floats | None:
    """The rows one by one, where a list of public values is as long as the table is expected to be.

    The gaps between just these rows decide the error. On another sample as large they differ, and by chance either
    way; a shorter or longer list tells how rows are spread, but not how they lie.
    """
    given = without_missing(statistic.column, facts.expected.get(statistic.column))
    if statistic.by or statistic.where is not None or statistic.for_population:
        return None
    if not isinstance(given, list | np.ndarray) or not abs(len(given) - rows) <= _AS_MANY * rows:
        return None
    return np.sort(np.asarray(given, dtype=float))


def _expected_shares(grid: QuantileGrid, listed: Floats) -> Floats:
    """The share of listed rows at each point."""
    points = np.clip(np.rint(listed / float(grid.step)), grid.first, grid.last).astype(np.int64) - grid.first
    return np.bincount(points, minlength=grid.points) / len(listed)


def _expected_quantile(listed: Floats | None, probability: float, grid: QuantileGrid) -> float | None:
    if listed is None:
        return None
    own = np.quantile(listed, probability, method="inverted_cdf")
    return float(np.clip(own, grid.lower, grid.upper))


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
        # Public values are whole numbers themselves.
        if isinstance(facts.expected.get(column), list | np.ndarray):
            return np.diff(model.share_below(values), prepend=0.0)
    edges = np.concatenate(([-np.inf], (values[1:] + values[:-1]) / 2, [np.inf]))
    return np.diff(model.share_below(edges))

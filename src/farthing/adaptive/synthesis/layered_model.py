"""A model of whole rows in two layers: a graphical model of groups of values, and the values within each group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farthing.adaptive.synthesis.synthesis_transcript import NoisyTable, Transcript
from farthing.adaptive.synthesis.value_groups import Floats, Known, Places, projected
from farthing.errors import InvalidValue
from farthing.inference.graphical import GraphicalModel, Measured, fit_graphical

_MOST_CELLS = 2**26
NOTHING = Known()


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticModel:
    """The model of a synthesis: tables of any columns, counts of any conjunction, and synthetic rows.

    Groups of values depend on each other as the measured tables say; within its group a value does not depend on
    anything else.

    Attributes:
        graph: The model of the groups.
        groups: For each column the group of each of its values.
        within: For each column the share of each value in its group.

    >>> from farthing.adaptive.synthesis import synthesis_plan
    >>> rows = np.array([[0, 0], [1, 1]] * 500)
    >>> model = synthesis_plan((2, 2), epsilon=20.0).model(rows)
    >>> model.marginal((0, 1)).round(-2) + 0.0
    array([[500.,   0.],
           [  0., 500.]])
    >>> round(model.query({0: [True, False], 1: [True, True]}), -2), model.rows(10).shape
    (500.0, (10, 2))
    """

    graph: GraphicalModel
    groups: tuple[Places, ...]
    within: tuple[Floats, ...]

    def __repr__(self) -> str:
        return f"SyntheticModel({len(self.groups)} columns, {self.total:.0f} rows)"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each column."""
        return tuple(len(places) for places in self.groups)

    @property
    def total(self) -> float:
        """The number of rows, as measured."""
        return self.graph.total

    def marginal(self, columns: Sequence[int]) -> Floats:
        """The expected counts of all combinations of values of these columns, axes in their order.

        Args:
            columns: Different columns, by number.

        Returns:
            An array with one axis for each column.

        Raises:
            InvalidValue: If the table would have too many cells, or a column is not the model's.
        """
        chosen = [int(column) for column in columns]
        cells = int(np.prod([float(self.sizes[column]) for column in chosen]))
        if not cells <= _MOST_CELLS:
            raise InvalidValue("columns", tuple(columns), f"must have at most {_MOST_CELLS} cells together")
        table = self.graph.marginal(chosen)
        for axis, column in enumerate(chosen):
            shape = [-1 if place == axis else 1 for place in range(len(chosen))]
            table = np.take(table, self.groups[column], axis=axis) * self.within[column].reshape(shape)
        return table

    def query(self, masks: Mapping[int, ArrayLike]) -> float:
        """The expected number of rows in a conjunction: for each column, which of its values count.

        Args:
            masks: For a column an array of truth values, one for each of its values, or of numbers to multiply by.

        Returns:
            The expected number of rows.

        Raises:
            InvalidValue: If a column or the size of a mask is not the model's.
        """
        merged = {}
        for column, mask in masks.items():
            factor = np.asarray(mask, dtype=float)
            if not 0 <= column < len(self.sizes) or factor.shape != (self.sizes[column],):
                raise InvalidValue("mask", column, "must be a column's number with one entry for each value")
            merged[int(column)] = np.bincount(self.groups[column], factor * self.within[column])
        return self.graph.query(merged)

    def rows(self, count: int | None = None, generator: np.random.Generator | None = None) -> NDArray[np.int64]:
        """Synthetic rows, one code for each column.

        Args:
            count: How many rows; as many as were counted by default.
            generator: Where the randomness comes from.

        Returns:
            An array with one row for each row.

        Raises:
            InvalidValue: If `count` is not a whole number >= 0.
        """
        random = generator or np.random.default_rng()
        codes = self.graph.rows(count, random)
        for column, places in enumerate(self.groups):
            if int(places.max()) + 1 < len(places):
                codes[:, column] = _spread(codes[:, column], places, self.within[column], random)
        return codes


def _spread(groups: Places, places: Places, within: Floats, random: np.random.Generator) -> Places:
    """For each row a value of its group: as many of each as its share says, up to rounding, in random order."""
    shuffled = random.permutation(len(groups))
    order = shuffled[np.argsort(groups[shuffled], kind="stable")]
    values = np.argsort(places, kind="stable")  # the values of a group stand next to each other
    ends = np.cumsum(within[values])
    firsts = np.searchsorted(places[values], np.arange(int(places.max()) + 2))
    codes = np.empty_like(groups)
    counts = np.bincount(groups, minlength=int(places.max()) + 1)
    start = 0
    for group, count in enumerate(counts):
        mine = slice(firsts[group], firsts[group + 1])
        edges = ends[mine] - (ends[mine][0] - within[values[mine][0]])
        points = (np.arange(count) + random.random()) / max(int(count), 1) * edges[-1]
        picked = np.minimum(np.searchsorted(edges, points, side="right"), len(edges) - 1)
        codes[order[start : start + count]] = values[mine][picked]
        start += count
    return codes


@dataclass(frozen=True, eq=False)
class OneWay:
    """What is known of each column alone: counts that are not negative, the number of rows, and their noise."""

    counts: tuple[Floats, ...]
    deviations: tuple[float, ...]
    total: float
    total_deviation: float


def one_way(
    sizes: Sequence[int],
    tables: Sequence[NoisyTable],
    standard_error: Callable[[int], float],
    known: Known = NOTHING,
) -> OneWay:
    """The columns one by one, from all their noisy tables and what is known, made to agree on the number of rows."""
    sums = [np.zeros(size) for size in sizes]
    precisions = np.zeros(len(sizes))
    for table in tables:
        if len(table.columns) == 1:
            precision = standard_error(table.shares) ** -2.0
            sums[table.columns[0]] += precision * table.values
            precisions[table.columns[0]] += precision
    measured = precisions > 0
    means = [part / max(precision, 1e-300) for part, precision in zip(sums, precisions, strict=True)]
    variances = [np.full(size, 1 / p if p > 0 else np.inf) for size, p in zip(sizes, precisions, strict=True)]
    totals = [
        (float(mean.sum()), float(v.sum())) for mean, v, here in zip(means, variances, measured, strict=True) if here
    ]
    totals += known.totals
    for one in known.columns:
        if measured[one.column]:
            mean, variance = means[one.column], variances[one.column]
            totals.append(one.total(mean, variance))  # better known than the counts that its sums improve
            means[one.column], variances[one.column] = one.improved(mean, variance)
    numbers, spreads = np.array(totals).T
    total = max(float(np.average(numbers, weights=1 / spreads)), 0.0)
    counts = tuple(
        projected(mean, total) if here else np.full(len(mean), total / len(mean))
        for mean, here in zip(means, measured, strict=True)
    )
    widest = float(max(precisions, default=1.0)) ** -0.5
    deviations = tuple(
        float(np.mean(v)) ** 0.5 if here else widest for v, here in zip(variances, measured, strict=True)
    )
    return OneWay(counts, deviations, total, float(np.sum(1 / spreads)) ** -0.5)


def fitted(
    transcript: Transcript,
    standard_error: Callable[[int], float],
    known: Known = NOTHING,
    start: GraphicalModel | None = None,
    rounds: int = 400,
) -> SyntheticModel:
    """The model nearest to all noisy tables, and to what is `known` already."""
    groups = transcript.groups
    alone = one_way([len(places) for places in groups], transcript.tables, standard_error, known)
    within, measured = [], list(known.measured)
    for column, (places, counts) in enumerate(zip(groups, alone.counts, strict=True)):
        sums, sizes = np.bincount(places, counts), np.bincount(places)
        within.append(np.where(sums[places] > 0, counts / np.maximum(sums[places], 1e-300), 1 / sizes[places]))
        deviation = alone.deviations[column] * float(np.mean(sizes)) ** 0.5
        measured.append(Measured((column,), sums, deviation))
    for table in transcript.tables:
        if len(table.columns) > 1:
            measured.append(Measured(table.columns, table.values, standard_error(table.shares), table.places))
    sizes_of_groups = [int(places.max()) + 1 for places in groups]
    graph = fit_graphical(sizes_of_groups, measured, alone.total, start=start, rounds=rounds)
    return SyntheticModel(graph, groups, tuple(within))

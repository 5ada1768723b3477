"""Queries that each add up neighbouring cells of one axis: prefixes, ranges, single cells, the total.

Everything follows from sums up to each edge: with P[e] = the sum of the cells before edge e, a query is
P[stop] - P[start]. Products with W and W' are therefore sums and differences, never matrices.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from farthing.inference.noise_terms import Floats
from farthing.matrix.workloads.condition_language import language
from farthing.matrix.workloads.workload import Places, Workload, checked_columns


@dataclass(frozen=True, eq=False)
class Intervals(Workload):
    """Queries over one axis of `size` cells; query i is the sum of the cells starts[i] <= cell < stops[i].

    Args:
        size: How many cells the axis has.
        column: The name of the axis.

    Raises:
        InvalidValue: If the name is not one that a condition can hold.

    >>> from farthing.matrix.workloads import all_ranges
    >>> workload = all_ranges(3)
    >>> workload.starts, workload.stops
    (array([0, 0, 0, 1, 1, 2]), array([1, 2, 3, 2, 3, 3]))
    """

    size: int
    column: str

    def __post_init__(self) -> None:
        checked_columns((self.column,), 1)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The number of cells, as a shape."""
        return (self.size,)

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """The name of the axis, alone."""
        return (self.column,)

    @cached_property
    def edges(self) -> tuple[Places, Places]:
        """Starts and stops; kept once they were asked for."""
        self._check_queries()
        starts, stops = self._edges()
        starts.setflags(write=False)
        stops.setflags(write=False)
        return starts, stops

    @property
    def starts(self) -> Places:
        """The first cell of every query."""
        return self.edges[0]

    @property
    def stops(self) -> Places:
        """The cell after the last one of every query."""
        return self.edges[1]

    @abstractmethod
    def _edges(self) -> tuple[Places, Places]: ...

    def renamed(self, columns: tuple[str, ...]) -> Intervals:
        """The same intervals over an axis of another name."""
        return replace(self, column=checked_columns(columns, 1)[0])

    @property
    def trace(self) -> float:
        """The sum of the lengths of all queries."""
        return float(np.sum(self.stops - self.starts))

    def times(self, vectors: Floats) -> Floats:
        """Differences of sums up to each edge."""
        sums = sums_before_edges(vectors)
        return np.asarray(sums[self.stops] - sums[self.starts])

    def transposed_times(self, values: Floats) -> Floats:
        """Every value enters at its start and leaves at its stop."""
        entering = np.zeros((self.size + 1, values.shape[1]))
        for column, own in enumerate(values.T):
            entering[:, column] += np.bincount(self.starts, own, self.size + 1)
            entering[:, column] -= np.bincount(self.stops, own, self.size + 1)
        return np.asarray(np.cumsum(entering[:-1], axis=0))

    def diagonals(self, covariances: Floats) -> Floats:
        """The variance of P[stop] - P[start], from the covariances of the sums P."""
        sums = double_sums(covariances)
        starts, stops = self.edges
        return np.asarray(sums[stops, stops] + sums[starts, starts] - sums[starts, stops] - sums[stops, starts])

    def label(self, i: int) -> str:
        """The query as a comparison."""
        place = self._check_query(i)
        return interval_text(self.column, int(self.starts[place]), int(self.stops[place]))


def sums_before_edges(vectors: Floats) -> Floats:
    """P[e], the sum of the cells before edge e, for every column."""
    sums = np.zeros((len(vectors) + 1, *vectors.shape[1:]))
    np.cumsum(vectors, axis=0, out=sums[1:])
    return sums


def double_sums(covariances: Floats) -> Floats:
    """The covariances of the sums before all edges, from those of the cells: (n, n, m) to (n+1, n+1, m)."""
    count = len(covariances)
    sums = np.zeros((count + 1, count + 1, *covariances.shape[2:]))
    inner = sums[1:, 1:]
    np.cumsum(covariances, axis=0, out=inner)
    np.cumsum(inner, axis=1, out=inner)
    return sums


def interval_text(column: str, start: int, stop: int) -> str:
    """Cells start <= cell < stop as text.

    >>> interval_text("age", 3, 4), interval_text("age", 0, 18), interval_text("age", 10, 25)
    ('age = 3', 'age < 18', '10 <= age < 25')
    """
    name = language().column_text(column)
    if stop == start + 1:
        return f"{name} = {start}"
    return f"{name} < {stop}" if start == 0 else f"{start} <= {name} < {stop}"


@dataclass(frozen=True, eq=False)
class Prefix(Intervals):
    """All prefixes: query i is the sum of cells 0 to i, the cumulative histogram."""

    @property
    def queries(self) -> int:
        return self.size

    @property
    def trace(self) -> float:
        """n (n + 1) / 2."""
        return self.size * (self.size + 1) / 2

    def _edges(self) -> tuple[Places, Places]:
        return np.zeros(self.size, dtype=np.int64), np.arange(1, self.size + 1)

    def times(self, vectors: Floats) -> Floats:
        return np.asarray(np.cumsum(vectors, axis=0))

    def transposed_times(self, values: Floats) -> Floats:
        """Running sums from the end."""
        return np.asarray(np.cumsum(values[::-1], axis=0)[::-1])

    def diagonals(self, covariances: Floats) -> Floats:
        """Each prefix adds one cell: its variance and twice its covariances with the cells before."""
        count = self.size
        steps = np.empty((count, *covariances.shape[2:]))
        for cell in range(count):
            row = covariances[cell]
            steps[cell] = row[cell] + row[:cell].sum(axis=0) + covariances[:cell, cell].sum(axis=0)
        return np.asarray(np.cumsum(steps, axis=0))

    def _gram(self) -> Floats:
        behind = np.arange(self.size, 0, -1, dtype=float)
        return np.asarray(np.minimum.outer(behind, behind))  # n - max(i, j)

    def label(self, i: int) -> str:
        """`x < i + 1`."""
        return f"{language().column_text(self.column)} < {self._check_query(i) + 1}"

    def _digest_parts(self) -> tuple[object, ...]:
        return ("prefix", self.size)


@dataclass(frozen=True, eq=False)
class AllRanges(Intervals):
    """All n (n + 1) / 2 ranges, by their starts and then by their stops."""

    @property
    def queries(self) -> int:
        """n (n + 1) / 2."""
        return self.size * (self.size + 1) // 2

    @property
    def trace(self) -> float:
        """n (n + 1) (n + 2) / 6."""
        return float(self.size * (self.size + 1) * (self.size + 2) // 6)

    def _edges(self) -> tuple[Places, Places]:
        lengths = np.arange(self.size, 0, -1)
        starts = np.repeat(np.arange(self.size), lengths)
        firsts = np.repeat(np.cumsum(lengths) - lengths, lengths)
        return starts, np.arange(self.queries) - firsts + starts + 1

    def times(self, vectors: Floats) -> Floats:
        """Start by start: no list of the edges is needed."""
        sums = sums_before_edges(vectors)
        answers = np.empty((self.queries, vectors.shape[1]))
        at = 0
        for start in range(self.size):
            np.subtract(sums[start + 1 :], sums[start], out=answers[at : at + self.size - start])
            at += self.size - start
        return answers

    def transposed_times(self, values: Floats) -> Floats:
        """Start by start, each value entering at its start and leaving at its stop."""
        entering = np.zeros((self.size + 1, values.shape[1]))
        at = 0
        for start in range(self.size):
            own = values[at : at + self.size - start]
            entering[start] += own.sum(axis=0)
            entering[start + 1 :] -= own
            at += self.size - start
        return np.asarray(np.cumsum(entering[:-1], axis=0))

    def diagonals(self, covariances: Floats) -> Floats:
        sums = double_sums(covariances)
        variances = np.array([sums[edge, edge] for edge in range(self.size + 1)])
        differences = np.empty((self.queries, *covariances.shape[2:]))
        at = 0
        for start in range(self.size):
            own = differences[at : at + self.size - start]
            np.add(variances[start + 1 :], variances[start], out=own)
            own -= sums[start, start + 1 :]
            own -= sums[start + 1 :, start]
            at += self.size - start
        return differences

    def _gram_times(self, vectors: Floats) -> Floats:
        """Entry (i, j) is (min + 1)(n - max), so rows split into what lies before and what lies after."""
        ahead = np.arange(1, self.size + 1, dtype=float)[:, None]
        behind = ahead[::-1]
        before = np.cumsum(ahead * vectors, axis=0)
        after = np.zeros_like(vectors)
        after[:-1] = np.cumsum((behind * vectors)[:0:-1], axis=0)[::-1]
        return np.asarray(behind * before + ahead * after)

    def _gram(self) -> Floats:
        ahead = np.arange(1, self.size + 1, dtype=float)
        matrix = np.minimum.outer(ahead, ahead)
        matrix *= np.minimum.outer(ahead[::-1], ahead[::-1])  # (min + 1)(n - max)
        return np.asarray(matrix)

    def label(self, i: int) -> str:
        """The range, found without a list of all of them."""
        place = self._check_query(i)
        behind = self.queries - 1 - place  # counted from the end, starts form rows of 1, 2, 3 ... queries
        row = int((np.sqrt(8.0 * behind + 1.0) - 1.0) / 2.0)
        row += (row + 1) * (row + 2) // 2 <= behind
        row -= row * (row + 1) // 2 > behind
        start, stop = self.size - 1 - row, self.size - (behind - row * (row + 1) // 2)
        return interval_text(self.column, start, stop)

    def _digest_parts(self) -> tuple[object, ...]:
        return ("all ranges", self.size)


@dataclass(frozen=True, eq=False)
class SomeRanges(Intervals):
    """Ranges that were listed one by one, in their order; the same one may come twice."""

    lows: Places
    highs: Places

    @property
    def queries(self) -> int:
        """As many as were listed."""
        return len(self.lows)

    def _edges(self) -> tuple[Places, Places]:
        return self.lows, self.highs

    @cached_property
    def _joined(self) -> Any:
        """D'D, where row i of D takes the difference between two edges: few entries, whatever the queries."""
        from scipy.sparse import coo_array

        rows = np.tile(np.arange(self.queries), 2)
        entries = np.repeat([1.0, -1.0], self.queries)
        places = np.concatenate([self.highs, self.lows])
        differences = coo_array((entries, (rows, places)), shape=(self.queries, self.size + 1)).tocsr()
        return (differences.T @ differences).tocsr()

    def _gram_times(self, vectors: Floats) -> Floats:
        joined = self._joined @ sums_before_edges(vectors)
        return np.asarray(np.cumsum(joined[:0:-1], axis=0)[::-1])

    def _gram(self) -> Floats:
        # Entry (i, j) counts the ranges that hold both cells: sums over edges after i and after j.
        joined = self._joined.toarray()[1:, 1:]
        return np.asarray(np.cumsum(np.cumsum(joined[::-1, ::-1], axis=0), axis=1)[::-1, ::-1])

    def _digest_parts(self) -> tuple[object, ...]:
        return ("ranges", self.size, self.lows, self.highs)


@dataclass(frozen=True, eq=False)
class Identity(Intervals):
    """One query for each cell: the histogram itself."""

    @property
    def queries(self) -> int:
        return self.size

    @property
    def trace(self) -> float:
        return float(self.size)

    def _edges(self) -> tuple[Places, Places]:
        return np.arange(self.size), np.arange(1, self.size + 1)

    def times(self, vectors: Floats) -> Floats:
        return vectors.copy()

    def transposed_times(self, values: Floats) -> Floats:
        return values.copy()

    def diagonals(self, covariances: Floats) -> Floats:
        places = np.arange(self.size)
        return np.asarray(covariances[places, places])

    def label(self, i: int) -> str:
        return f"{language().column_text(self.column)} = {self._check_query(i)}"

    def _digest_parts(self) -> tuple[object, ...]:
        return ("identity", self.size)


@dataclass(frozen=True, eq=False)
class Total(Intervals):
    """All cells together, one query."""

    @property
    def queries(self) -> int:
        return 1

    @property
    def trace(self) -> float:
        return float(self.size)

    def _edges(self) -> tuple[Places, Places]:
        return np.zeros(1, dtype=np.int64), np.array([self.size])

    def times(self, vectors: Floats) -> Floats:
        """One sum for each column."""
        return np.asarray(vectors.sum(axis=0, keepdims=True))

    def transposed_times(self, values: Floats) -> Floats:
        """The same value for all cells."""
        return np.repeat(values, self.size, axis=0)

    def diagonals(self, covariances: Floats) -> Floats:
        """The sum of all covariances."""
        return np.asarray(covariances.sum(axis=(0, 1))[None])

    def label(self, i: int) -> str:
        self._check_query(i)
        return "all rows"

    def _digest_parts(self) -> tuple[object, ...]:
        return ("total", self.size)

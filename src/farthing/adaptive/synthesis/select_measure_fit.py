"""Select, measure, fit: the part of a synthesis that sees private rows.

Everything that is drawn goes through `Prices`; what decides how the run goes on is made of noisy numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from farthing.adaptive.synthesis.layered_model import OneWay, SyntheticModel, fitted
from farthing.adaptive.synthesis.synthesis_prices import SHARES, Prices
from farthing.adaptive.synthesis.synthesis_transcript import NoisyTable, Transcript, Whole
from farthing.adaptive.synthesis.value_groups import Floats, Known, Places, grouped, summed
from farthing.errors import InvalidValue
from farthing.mechanisms.randomness import Source


class Growth:
    """The graph of a model's cliques, and whether a junction tree for one more set of columns has at most `most` cells.

    >>> growth = Growth((2, 3, 4, 5), [(0, 1), (1, 2), (2, 3)], 60)
    >>> growth.has_room_for((0, 2)), growth.has_room_for((0, 3)), growth.has_room_for((1, 2))
    (True, False, True)
    """

    def __init__(self, sizes: Sequence[int], cliques: Iterable[Sequence[int]], most: int) -> None:
        self._sizes, self._most = sizes, most
        self._joined = [0] * len(sizes)  # the neighbours of each column, as bits
        for clique in cliques:
            self._join(self._joined, clique)
        self._known: dict[tuple[tuple[int, int], ...], bool] = {(): True}

    def add(self, columns: Sequence[int]) -> None:
        """These columns are in the model from now on."""
        self._join(self._joined, columns)
        self._known = {(): True}

    def has_room_for(self, columns: Sequence[int]) -> bool:
        """Whether these columns can be joined too; always when they are joined already."""
        new = tuple((one, two) for one, two in combinations(columns, 2) if not self._joined[one] >> two & 1)
        if new not in self._known:
            self._known[new] = self._cells(new) <= self._most
        return self._known[new]

    def _cells(self, new: Iterable[tuple[int, int]]) -> int:
        """Columns are eliminated one by one, those whose neighbours are joined already first: they cost no new edges.

        Cliques within other cliques are counted too, so that the figure is rather too high than too low.
        """
        joined = list(self._joined)
        for pair in new:
            self._join(joined, pair)
        left = set(range(len(joined)))
        cells = 0
        while left:
            column = self._next(joined, left)
            left.discard(column)
            neighbours = _places(joined[column])
            whole = self._sizes[column] * math.prod(self._sizes[other] for other in neighbours)
            cells += whole if neighbours or not cells else 0
            self._join(joined, neighbours)
            for other in neighbours:
                joined[other] &= ~(1 << column)
        return cells

    def _next(self, joined: list[int], left: set[int]) -> int:
        best, least = -1, math.inf
        for column in left:
            own = joined[column]
            neighbours = _places(own)
            if all(own & ~joined[other] == 1 << other for other in neighbours):
                return column
            cells = self._sizes[column] * math.prod(self._sizes[other] for other in neighbours)
            if cells < least:
                best, least = column, cells
        return best

    @staticmethod
    def _join(joined: list[int], columns: Sequence[int]) -> None:
        together = sum(1 << column for column in columns)
        for column in columns:
            joined[column] |= together & ~(1 << column)


def _places(bits: int) -> list[int]:
    places = []
    while bits:
        lowest = bits & -bits
        places.append(lowest.bit_length() - 1)
        bits ^= lowest
    return places


CELLS = (16, 64, 256, 1024)
"""The sizes of tables on offer: noise grows with the cells, and so does what a table can tell."""

MOST_SETS = 600
# Of rows in a cell: noise of a tiny budget, or a wrong known table, may say anything.
_MOST_EXPECTED = 2.0**50
_MOST_PAIRS = 300


@dataclass(frozen=True, eq=False)
class Candidate:
    """A table that might be measured: its columns, and the place of each of their groups in it."""

    columns: tuple[int, ...]
    places: tuple[Places, ...]

    @property
    def cells(self) -> int:
        """The number of its cells."""
        return math.prod(int(part.max()) + 1 for part in self.places)

    @property
    def key(self) -> tuple[tuple[int, ...], tuple[bytes, ...]]:
        """The same for the same table."""
        return self.columns, tuple(part.tobytes() for part in self.places)


class CandidateTables:
    """All candidates over columns whose groups have these noisy counts; some sets of them where there are too many."""

    def __init__(self, counts: Sequence[Floats]) -> None:
        self._counts = counts
        self._sizes = [len(part) for part in counts]
        self._useful = [column for column, size in enumerate(self._sizes) if size > 1]
        self._merged: dict[tuple[int, int], Places] = {}

    def sets(self, round_number: int) -> list[tuple[int, ...]]:
        """Pairs and triples of columns: all of them, or in every round other ones."""
        pairs, columns = math.comb(len(self._useful), 2), len(self._useful)
        if pairs + math.comb(columns, 3) <= MOST_SETS:
            return [*combinations(self._useful, 2), *combinations(self._useful, 3)]
        random = np.random.default_rng(round_number)  # public: the same in every run
        sets = dict.fromkeys(combinations(self._useful, 2)) if pairs <= _MOST_PAIRS else {}
        for size, enough in ((2, min(pairs, _MOST_PAIRS)), (3, MOST_SETS)):
            while len(sets) < enough:
                sets[tuple(sorted(random.choice(self._useful, size, replace=False).tolist()))] = None
        return list(sets)

    def candidates_of_round(self, round_number: int, growth: Growth) -> Iterator[Candidate]:
        """The candidates of a round that the model has room for."""
        for columns in self.sets(round_number):
            if growth.has_room_for(columns):
                yield from self._coarse_to_fine(columns)

    def _coarse_to_fine(self, columns: tuple[int, ...]) -> Iterator[Candidate]:
        shapes = dict.fromkeys(tuple(_narrowed([self._sizes[column] for column in columns], most)) for most in CELLS)
        for shape in shapes:
            yield Candidate(columns, tuple(map(self._places, columns, shape)))

    def _places(self, column: int, size: int) -> Places:
        if (column, size) not in self._merged:
            self._merged[column, size] = grouped(self._counts[column], size)
        return self._merged[column, size]


def _narrowed(shape: list[int], most: int) -> list[int]:
    """The shape with its longest sides shortened until there are at most so many cells, or only two of each."""
    sizes = list(shape)
    while math.prod(sizes) > most and max(sizes) > 2:
        sizes[sizes.index(max(sizes))] -= 1
    return sizes


def expected_table(model_table: Floats, candidate: Candidate) -> Whole:
    """What the model holds in the cells of a candidate, as whole numbers; none so large that a score wraps around."""
    counts = np.nan_to_num(summed(model_table, candidate.places), nan=0.0)
    return np.asarray(np.rint(np.clip(counts, 0.0, _MOST_EXPECTED)), dtype=np.int64)


_QUICK = 60  # passes of a fit that only guides the next choice
_FAR = 2**60  # public parts of a score stop here, so that no score wraps around


class PrivateRows:
    """Distinct rows as codes with their counts, and the exact tables of any columns. Never shown."""

    def __init__(self, codes: NDArray[np.integer], counts: Whole, sizes: Sequence[int]) -> None:
        self._codes = [np.ascontiguousarray(codes[:, column]) for column in range(len(sizes))]
        self._counts = counts.astype(np.float64)  # sums of whole numbers below 2^53 are exact
        self._sizes = list(sizes)

    def grouped(self, groups: Sequence[Places]) -> PrivateRows:
        """The same rows with their values replaced by groups."""
        codes = np.stack([part[code] for part, code in zip(groups, self._codes, strict=True)], axis=1)
        return PrivateRows(codes, self._counts.astype(np.int64), [int(part.max()) + 1 for part in groups])

    def table(self, columns: Sequence[int]) -> Whole:
        """The exact counts of all combinations of values."""
        shape = [self._sizes[column] for column in columns]
        cell = np.zeros(len(self._counts), dtype=np.int64)
        for column in columns:
            cell = cell * self._sizes[column] + self._codes[column]
        counts = np.bincount(cell, self._counts, minlength=int(np.prod(shape)))
        return counts.astype(np.int64).reshape(shape)


@dataclass(frozen=True)
class Schedule:
    """How the shares of noise are divided: columns alone first, then the rounds, then all of it once more."""

    columns: tuple[int, ...]
    rounds: int
    picks: int
    each: int
    groups: int
    largest_model: int


class Loop:
    """One run of a synthesis."""

    def __init__(
        self,
        prices: Prices,
        schedule: Schedule,
        rows: PrivateRows,
        source: Source,
        alone_of: Callable[[Transcript], OneWay],
        known_of: Callable[[Transcript], Known],
    ) -> None:
        self._prices, self._schedule, self._rows, self._source = prices, schedule, rows, source
        self._alone_of, self._known_of = alone_of, known_of
        self._left = SHARES

    def run(self, sizes: Sequence[int], progress: Callable[[float], None]) -> Transcript:
        """Run all rounds on private rows and return everything that was drawn."""
        transcript = self._columns(sizes)
        alone = self._alone_of(transcript)
        groups = tuple(grouped(counts, self._schedule.groups) for counts in alone.counts)
        transcript = Transcript(groups, transcript.tables)
        rows = self._rows.grouped(groups)
        weighed = zip(groups, alone.counts, strict=True)
        menu = CandidateTables([np.bincount(part, counts).astype(np.float64) for part, counts in weighed])
        known = self._known_of(transcript)
        model: SyntheticModel | None = None
        for number in range(self._schedule.rounds):
            progress(number / (self._schedule.rounds + 1))
            start = None if model is None else model.graph
            model = fitted(transcript, self._prices.standard_error, known, start=start, rounds=_QUICK)
            transcript = transcript.with_tables(*self._picked(number, rows, menu, model, transcript))
        return self._with_remaining_shares(transcript, rows)

    def _columns(self, sizes: Sequence[int]) -> Transcript:
        tables = []
        for column, shares in enumerate(self._schedule.columns):
            if shares > 0:
                exact = self._rows.table((column,))
                tables.append(self._measured((column,), (np.arange(sizes[column]),), exact, shares))
        return Transcript((), tuple(tables))

    def _picked(
        self, number: int, rows: PrivateRows, menu: CandidateTables, model: SyntheticModel, transcript: Transcript
    ) -> list[NoisyTable]:
        """The tables of one round: chosen one by one, all by the same model."""
        chosen_before = {Candidate(table.columns, table.places).key for table in transcript.chosen}
        growth = self._growth(number, model)
        offered = [one for one in menu.candidates_of_round(number, growth) if one.key not in chosen_before]
        tables, expected, errors = _compared(rows, model, offered)
        scores = errors - self._penalties(offered)
        open_ = np.ones(len(offered), dtype=bool)
        picked: list[NoisyTable] = []
        for _ in range(self._schedule.picks):
            places = np.flatnonzero(open_)
            # The last one is to measure nothing, as likely as all tables together that are worth no more than nothing.
            nothing = min(math.ceil(math.log(len(places) + 1) / self._prices.choosing.rate), _FAR)
            choice = self._prices.choosing._answer(np.append(scores[places], nothing), self._source)
            if choice == len(places):
                continue
            at = int(places[choice])
            one = offered[at]
            picked.append(self._measured(one.columns, one.places, tables[at], self._schedule.each, expected[at]))
            if len(picked) < self._schedule.picks:  # tables that tell much the same wait for the next model
                growth.add(one.columns)
                open_ &= [
                    len({*other.columns} & {*one.columns}) < 2 and growth.has_room_for(other.columns)
                    for other in offered
                ]
        return picked

    def _growth(self, number: int, model: SyntheticModel) -> Growth:
        """The room that the model has in this round: more in every round, so that every column has its turn."""
        most = self._schedule.largest_model * (number + 1) // self._schedule.rounds
        cliques = [clique.columns for clique in model.graph.tree.cliques]
        return Growth(model.graph.sizes, cliques, most)

    def _penalties(self, offered: Sequence[Candidate]) -> Whole:
        """The error that noise is expected to bring into each table by the end of the run."""
        later = max(self._left - self._schedule.each, 0) // (2 * self._prices.choices)
        error = self._prices.standard_error(self._schedule.each + later) * (2 / np.pi) ** 0.5
        return np.array([min(math.ceil(one.cells * error), _FAR) for one in offered], dtype=np.int64)

    def _with_remaining_shares(self, transcript: Transcript, rows: PrivateRows) -> Transcript:
        """What is left of the shares goes where it helps most: every table so far may be measured again."""
        shares_so_far = np.array([table.shares for table in transcript.tables], dtype=float)
        fair = np.array([self._prices.fair_shares(table.values.size) for table in transcript.tables])
        again = []
        for table, shares in zip(transcript.tables, _filled(shares_so_far, fair, self._left), strict=True):
            if shares > 0:
                exact = self._rows.table(table.columns) if not table.chosen else rows.table(table.columns)
                again.append(self._measured(table.columns, table.places, summed(exact, table.places), shares))
        return transcript.with_tables(*again)

    def _measured(
        self,
        columns: tuple[int, ...],
        places: tuple[Places, ...],
        exact: Whole,
        shares: int,
        expected: Whole | None = None,
    ) -> NoisyTable:
        if not shares <= self._left:  # never more than was paid for
            raise InvalidValue("shares", shares, f"must be at most the {self._left} that are left")
        self._left -= shares
        noisy = self._prices.noise(shares, exact.size)._answer(exact, self._source)
        return NoisyTable(columns, places, np.asarray(noisy, dtype=np.int64), shares, expected)


def _compared(
    rows: PrivateRows, model: SyntheticModel, offered: Sequence[Candidate]
) -> tuple[list[Whole], list[Whole], Whole]:
    """The exact table of each candidate, what the model expects there, and the sum of their differences."""
    tables, expected, errors = [], [], []
    columns: tuple[int, ...] = ()
    for one in offered:
        if one.columns != columns:
            columns = one.columns
            exact, modelled = rows.table(columns), model.graph.marginal(columns)
        tables.append(summed(exact, one.places))
        expected.append(expected_table(modelled, one))
        errors.append(int(np.abs(tables[-1] - expected[-1]).sum()))
    return tables, expected, np.array(errors, dtype=np.int64)


def _filled(shares_so_far: NDArray[np.float64], fair: NDArray[np.float64], left: int) -> Whole:
    """Whole shares, `left` in all, that bring what was given as near to the fair proportions as can be.

    >>> _filled(np.array([10.0, 0.0, 0.0]), np.array([1.0, 1.0, 2.0]), 12)
    array([0, 4, 8])
    """
    low, high = 0.0, (left + shares_so_far.sum() + 1.0) / fair.min() + 1.0
    for _ in range(100):
        level = (low + high) / 2
        low, high = (level, high) if np.maximum(level * fair - shares_so_far, 0).sum() <= left else (low, level)
    wanted = np.maximum(low * fair - shares_so_far, 0) + 1e-9
    shares = np.floor(wanted).astype(np.int64)
    rest = left - int(shares.sum())
    shares[np.argsort(shares - wanted, kind="stable")[: max(rest, 0)]] += 1
    return np.asarray(shares)

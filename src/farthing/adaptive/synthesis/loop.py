"""Select, measure, fit: the part of a synthesis that sees private rows.

Everything that is drawn goes through `Prices`; what decides how the run goes on is made of noisy numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farthing.adaptive.synthesis.candidates import Candidate, Menu, expected_table
from farthing.adaptive.synthesis.grouping import Places, grouped, summed
from farthing.adaptive.synthesis.known_groups import Known
from farthing.adaptive.synthesis.layered import OneWay, SyntheticModel, fitted
from farthing.adaptive.synthesis.model_size import Growth
from farthing.adaptive.synthesis.pricing import SHARES, Prices
from farthing.adaptive.synthesis.transcript import NoisyTable, Transcript, Whole
from farthing.errors import InvalidValue
from farthing.mechanisms.randomness import Source

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
        """All that was drawn."""
        found = self._columns(sizes)
        alone = self._alone_of(found)
        groups = tuple(grouped(counts, self._schedule.groups) for counts in alone.counts)
        found = Transcript(groups, found.tables)
        rows = self._rows.grouped(groups)
        weighed = zip(groups, alone.counts, strict=True)
        menu = Menu([np.bincount(part, counts).astype(np.float64) for part, counts in weighed])
        known = self._known_of(found)
        model: SyntheticModel | None = None
        for number in range(self._schedule.rounds):
            progress(number / (self._schedule.rounds + 1))
            start = None if model is None else model.graph
            model = fitted(found, self._prices.standard_error, known, start=start, rounds=_QUICK)
            found = found.with_tables(*self._picked(number, rows, menu, model, found))
        return self._once_more(found, rows)

    def _columns(self, sizes: Sequence[int]) -> Transcript:
        tables = []
        for column, shares in enumerate(self._schedule.columns):
            if shares > 0:
                exact = self._rows.table((column,))
                tables.append(self._measured((column,), (np.arange(sizes[column]),), exact, shares))
        return Transcript((), tuple(tables))

    def _picked(
        self, number: int, rows: PrivateRows, menu: Menu, model: SyntheticModel, found: Transcript
    ) -> list[NoisyTable]:
        """The tables of one round: chosen one by one, all by the same model."""
        taken = {Candidate(table.columns, table.places).key for table in found.chosen}
        growth = self._growth(number, model)
        offered = [one for one in menu.on_offer(number, growth) if one.key not in taken]
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
            picked.append(
                self._measured(one.columns, one.places, tables[at], self._schedule.each, expected[at])
            )
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

    def _once_more(self, found: Transcript, rows: PrivateRows) -> Transcript:
        """What is left of the shares goes where it helps most: every table so far may be measured again."""
        given = np.array([table.shares for table in found.tables], dtype=float)
        fair = np.array([self._prices.fair_shares(table.values.size) for table in found.tables])
        again = []
        for table, shares in zip(found.tables, _filled(given, fair, self._left), strict=True):
            if shares > 0:
                exact = self._rows.table(table.columns) if not table.chosen else rows.table(table.columns)
                again.append(self._measured(table.columns, table.places, summed(exact, table.places), shares))
        return found.with_tables(*again)

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


def _filled(given: NDArray[np.float64], fair: NDArray[np.float64], left: int) -> Whole:
    """Whole shares, `left` in all, that bring what was given as near to the fair proportions as can be.

    >>> _filled(np.array([10.0, 0.0, 0.0]), np.array([1.0, 1.0, 2.0]), 12)
    array([0, 4, 8])
    """
    low, high = 0.0, (left + given.sum() + 1.0) / fair.min() + 1.0
    for _ in range(100):
        level = (low + high) / 2
        low, high = (level, high) if np.maximum(level * fair - given, 0).sum() <= left else (low, level)
    wanted = np.maximum(low * fair - given, 0) + 1e-9
    shares = np.floor(wanted).astype(np.int64)
    rest = left - int(shares.sum())
    shares[np.argsort(shares - wanted, kind="stable")[: max(rest, 0)]] += 1
    return np.asarray(shares)

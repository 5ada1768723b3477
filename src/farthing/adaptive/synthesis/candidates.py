"""Which tables a round may choose from, and what speaks for each of them.

A candidate is a set of two or three columns, each with its groups merged further until the table has few enough cells:
the same set is on offer coarse and fine. All of it follows from noisy numbers and is public.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from farthing.adaptive.synthesis.grouping import Floats, Places, grouped, summed
from farthing.adaptive.synthesis.model_size import Growth
from farthing.adaptive.synthesis.transcript import Whole

CELLS = (16, 64, 256, 1024)
"""The sizes of tables on offer: noise grows with the cells, and so does what a table can tell."""

MOST_SETS = 600
_MOST_EXPECTED = (
    2.0**50
)  # of rows in a cell: noise of a tiny budget, or a wrong known table, may say anything
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


class Menu:
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
        found = dict.fromkeys(combinations(self._useful, 2)) if pairs <= _MOST_PAIRS else {}
        for size, enough in ((2, min(pairs, _MOST_PAIRS)), (3, MOST_SETS)):
            while len(found) < enough:
                found[tuple(sorted(random.choice(self._useful, size, replace=False).tolist()))] = None
        return list(found)

    def on_offer(self, round_number: int, growth: Growth) -> Iterator[Candidate]:
        """The candidates of a round that the model has room for."""
        for columns in self.sets(round_number):
            if growth.has_room_for(columns):
                yield from self._coarse_to_fine(columns)

    def _coarse_to_fine(self, columns: tuple[int, ...]) -> Iterator[Candidate]:
        shapes = dict.fromkeys(
            tuple(_narrowed([self._sizes[column] for column in columns], most)) for most in CELLS
        )
        for shape in shapes:
            yield Candidate(columns, tuple(map(self._places, columns, shape)))

    def _places(self, column: int, size: int) -> Places:
        if (column, size) not in self._merged:
            self._merged[column, size] = grouped(self._counts[column], size)
        return self._merged[column, size]


def _narrowed(shape: list[int], most: int) -> list[int]:
    """The shape with its longest sides shortened until there are at most so many cells, or only two of each."""
    found = list(shape)
    while math.prod(found) > most and max(found) > 2:
        found[found.index(max(found))] -= 1
    return found


def expected_table(model_table: Floats, candidate: Candidate) -> Whole:
    """What the model holds in the cells of a candidate, as whole numbers; none so large that a score wraps around."""
    held = np.nan_to_num(summed(model_table, candidate.places), nan=0.0)
    return np.asarray(np.rint(np.clip(held, 0.0, _MOST_EXPECTED)), dtype=np.int64)

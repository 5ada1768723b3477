"""How large a model would become with one more table: a quick estimate, for hundreds of tables in every round."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations


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
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found

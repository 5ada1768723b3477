"""The cells that are searched: all that a column may hold, cut at round numbers, whatever the rows are.

Numbers are cut at 1, 2 and 5 times every power of ten, on both sides of zero; a cell holds its end that is further from
zero, so that values from 1 to 100 end at 100. Dates are cut by year from 1900 to 2100, by decade and by century around.
Rows of a unit are cut one by one up to ten, then about ten times between powers of ten.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

from farthing.data.schema import Dates, Domain, Integers, Reals

_LEAST, _MOST = -18, 18  # powers of ten
_EXACT = 10  # whole numbers up to here have cells that name their own ends


@dataclass(frozen=True)
class SearchCells:
    """Where cells begin, for the engine, and the bounds that each stands for.

    Args:
        edges: Cell i holds edges[i] <= value < edges[i + 1], the last one its end too.
        lows: What the lower bound is if a cell is the first one of a range.
        highs: What the upper bound is if it is the last one.

    >>> cells = cells_of(Integers(-100, 100))
    >>> [(low, high) for low, high in zip(cells.lows, cells.highs, strict=True) if low >= 0]
    [(0, 0), (1, 1), (2, 2), (3, 5), (6, 10), (10, 20), (20, 50), (50, 100)]
    """

    edges: tuple[Any, ...]
    lows: tuple[Any, ...]
    highs: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.lows)


@lru_cache(maxsize=16)
def cells_of(domain: Domain) -> SearchCells:
    """The cells of all that an unknown column may hold.

    >>> len(cells_of(Reals(-(2.0**53), 2.0**53))), len(cells_of(Dates(date.min, date.max)))
    (207, 370)
    """
    if isinstance(domain, Dates):
        return _of_dates(domain)
    assert isinstance(domain, Integers | Reals), "text is searched otherwise"
    return _of_whole(domain) if isinstance(domain, Integers) else _of_reals(domain)


def _of_whole(domain: Integers) -> SearchCells:
    tops = [1, *(top for top in _round_numbers(0) if 1 < top < domain.upper), domain.upper]
    positive = list(zip([0, *tops], tops, strict=False))  # below < value <= top
    edges = [*(-top for _, top in reversed(positive)), 0, *(below + 1 for below, _ in positive), domain.upper]
    rises = [(below + 1 if top <= _EXACT else below, top) for below, top in positive]
    ends = [*((-high, -low) for low, high in reversed(rises)), (0, 0), *rises]
    return SearchCells(tuple(edges), tuple(low for low, _ in ends), tuple(high for _, high in ends))


def _of_reals(domain: Reals) -> SearchCells:
    tops = [*(float(top) for top in _round_numbers(_LEAST) if top < domain.upper), domain.upper]
    rises = list(zip([0.0, *tops], tops, strict=False))
    after = [math.nextafter(below, math.inf) for below, _ in rises]  # the first number of each cell
    # Zero has a cell of its own; what is nearer to it than 2^-60 is read as zero.
    after[0] = float(10.0**_LEAST) / 2
    edges = [*(-top for _, top in reversed(rises)), -after[0], *after, domain.upper]
    ends = [*((-high, -low) for low, high in reversed(rises)), (0.0, 0.0), *rises]
    return SearchCells(tuple(edges), tuple(low + 0.0 for low, _ in ends), tuple(high + 0.0 for _, high in ends))


def _round_numbers(least: int) -> list[float]:
    """1, 2 and 5 times the powers of ten, each the double that is nearest."""
    powers = [10**power if power >= 0 else float(f"1e{power}") for power in range(least, _MOST + 1)]
    return [
        digit * power if isinstance(power, int) else float(f"{digit}e{place}")
        for place, power in enumerate(powers, start=least)
        for digit in (1, 2, 5)
    ]


def _of_dates(domain: Dates) -> SearchCells:
    first = [*range(100, 1500, 100), *range(1500, 1900, 10), *range(1900, 2100), *range(2100, 2500, 10)]
    years = [1, *first, *range(2500, 10_000, 100)]
    lows = [date(year, 1, 1) for year in years]
    highs = [*(low - timedelta(days=1) for low in lows[1:]), date.max]
    return SearchCells((*lows, domain.upper), tuple(lows), tuple(highs))


@lru_cache(maxsize=2)
def row_cells(most: int) -> SearchCells:
    """The cells of how many rows a unit has, from 1 to `most`.

    >>> row_cells(100).highs[8:]
    (9, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100)
    """
    highs = list(range(1, 11))
    while highs[-1] < most:
        power = highs[-1]
        highs += [power * part // 10 for part in (12, 15, 20, 25, 30, 40, 50, 60, 80, 100)]
    lows = [1, *(high + 1 for high in highs[:-1])]
    return SearchCells((*lows, most), tuple(lows), tuple(highs))

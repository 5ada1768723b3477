"""The two promises of a search for a range, by enumeration: no empty end, and no missed cell of `sure` units."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from farthing.adaptive.discovery.search_cells import SearchCells, cells_of, row_cells
from farthing.adaptive.discovery.unit_counts import UnitCounts, least_reached
from farthing.data.schema import Dates, Integers, Reals, Unknown


def at_least(k: int, scale: float) -> float:
    """P[noise >= k] of the discrete Laplace, summed term by term."""
    r = math.exp(-1 / scale)
    return sum((1 - r) / (1 + r) * r ** abs(n) for n in range(k, k + int(60 * scale) + 60))


@pytest.mark.parametrize("scale", [0.5, 2.0, 20.0])
@pytest.mark.parametrize("probability", [0.05, 1e-3])
def test_a_threshold_is_the_least_that_noise_passes_so_seldom(scale: float, probability: float) -> None:
    least = least_reached(scale, probability)
    assert at_least(least, scale) <= probability
    assert least == 1 or at_least(least - 1, scale) > probability


def cells(number: int) -> SearchCells:
    return SearchCells(tuple(range(number + 1)), tuple(range(number)), tuple(range(1, number + 1)))


def test_an_end_is_far_off_with_at_most_the_stated_probability() -> None:
    """Worst case: one full cell in the middle. An end is far off if an empty cell is seen, or two in a row pass t."""
    for number in (3, 11, 207):
        counts = UnitCounts(cells(number), epsilon=0.5)
        seen, beside = at_least(counts.seen, counts.scale), at_least(counts.beside, counts.scale)
        assert 1 - (1 - seen) ** (number - 1) + 2 * beside**2 <= 0.01
        assert 1 - (1 - seen) ** (number - 1) <= 1e-5


def test_a_cell_of_sure_units_is_missed_with_at_most_the_stated_probability() -> None:
    counts = UnitCounts(cells(100), epsilon=0.3)
    # Missed if sure + noise < seen, that is, -noise > sure - seen.
    assert at_least(counts.sure - counts.seen + 1, counts.scale) <= 0.05
    assert at_least(counts.sure - counts.seen, counts.scale) > 0.05


def test_a_range_grows_from_what_is_seen_cell_by_cell() -> None:
    counts = UnitCounts(cells(7), epsilon=1.0)
    high, low = counts.seen, counts.beside
    assert low < high
    assert counts.range_of(np.array([0, low, low, high, low - 1, low, 0])) == (1, 3)
    assert counts.range_of(np.array([low, low - 1, high, 0, high, low, low])) == (2, 6)
    assert counts.range_of(np.array([low, low, low, low, high - 1, 0, 0])) is None


@pytest.mark.parametrize(
    "domain",
    [Unknown(kind).widest() for kind in ("number", "whole number", "date")] + [Integers(-(2**62) + 1, 2**62 - 1)],
)
def test_cells_cover_everything_once_and_stand_for_their_own_values(domain: Integers | Reals | Dates) -> None:
    parts = cells_of(domain)
    edges = parts.edges
    assert (edges[0], edges[-1]) == (domain.lower, domain.upper)
    assert all(a < b for a, b in pairwise(edges))
    assert len(edges) - 1 == len(parts.lows) == len(parts.highs)
    for place, (low, high) in enumerate(zip(parts.lows, parts.highs, strict=True)):
        around_zero = isinstance(domain, Reals) and low == high == 0
        assert low <= edges[place] <= high or around_zero


def test_round_numbers_end_a_cell_and_do_not_begin_the_next() -> None:
    parts = cells_of(Unknown("number").widest())
    place = max(i for i, edge in enumerate(parts.edges) if edge <= 100.0)
    assert (parts.lows[place], parts.highs[place]) == (50.0, 100.0)
    place = max(i for i, edge in enumerate(parts.edges) if edge <= -100.0)
    assert (parts.lows[place], parts.highs[place]) == (-100.0, -50.0)


def test_cells_of_rows_name_every_number_once() -> None:
    parts = row_cells(10**6)
    numbers = [n for low, high in zip(parts.lows, parts.highs, strict=True) for n in (low, high)]
    assert numbers[0] == 1 and numbers[-1] == 10**6
    assert all(high + 1 == low for high, low in zip(parts.highs, parts.lows[1:], strict=False))

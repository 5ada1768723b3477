"""Removing a unit moves one count of a search by one, and adding it back does: on random tables, on DuckDB."""

from __future__ import annotations

import datetime
import math
import os
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.adaptive.discovery import row_search, search_of
from farthing.data import Dataset, Histogram, dataset, unknown
from farthing.data.unknown_columns import one_row_a_unit, rows_a_unit

NUMBERS = [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1e-19, 0.1, -2.0, 100.0, 1e300, -1e300, 2.0**53]
WHOLE = [None, 0, 1, -1, 10, 11, -(2**63), 2**63 - 1, 10**18]
DAYS = [
    None,
    datetime.date(1, 1, 1),
    datetime.date(1999, 12, 31),
    datetime.date(2000, 1, 1),
    datetime.date(9999, 12, 31),
]
SCHEMA = {"x": unknown("number"), "n": unknown("whole number"), "day": unknown("date")}
TYPES = pa.schema([("who", pa.int64()), ("x", pa.float64()), ("n", pa.int64()), ("day", pa.date32())])

cells = st.tuples(st.sampled_from(NUMBERS), st.sampled_from(WHOLE), st.sampled_from(DAYS))
units = st.lists(st.lists(cells, min_size=1, max_size=4), min_size=1, max_size=25)
CHAINS = int(os.environ.get("FARTHING_CHAINS", "40"))  # a query is slow to write, so that there are few, of many units


def table(rows: list[list[Any]], max_rows: int | str, neighbours: str = "add-remove") -> Dataset:
    flat = [(who, *cell) for who, own in enumerate(rows) for cell in own]
    columns = list(zip(*flat, strict=True)) if flat else [[]] * 4
    frame = pa.table(dict(zip(TYPES.names, map(list, columns), strict=True)), schema=TYPES)
    return dataset(frame, unit="who", max_rows=max_rows, schema=SCHEMA, neighbours=neighbours)


def counted(rows: Dataset, histogram: Histogram) -> np.ndarray[Any, Any]:
    return rows.exact({"n": histogram})["n"]


@pytest.mark.slow
@settings(max_examples=max(1, CHAINS // 10), deadline=None)
@given(units, st.integers(0, 24))
def test_a_unit_is_in_one_cell_of_every_search(rows: list[list[Any]], leaver: int) -> None:
    whole, without = table(rows, "auto"), table([own for who, own in enumerate(rows) if who != leaver % len(rows)], 1)
    search = row_search(whole, 0.1, 1.0)
    assert search.counts.l1 == 1
    both = [counted(rows_a_unit(each), search._histogram) for each in (whole, without)]
    assert np.abs(both[0] - both[1]).sum() == 1
    assert both[0].sum() == len(rows)
    for place, name in enumerate(SCHEMA):
        histogram = search_of(whole, name, 0.1)._histogram  # type: ignore[attr-defined]
        present = [any(not _is_missing(cell[place]) for cell in own) for own in rows]
        assert counted(one_row_a_unit(whole, name), histogram).sum() == sum(present)


@pytest.mark.slow
@settings(max_examples=max(1, CHAINS // 20), deadline=None)
@given(st.lists(cells, min_size=1, max_size=40), st.integers(0, 39))
def test_with_one_row_a_unit_neighbours_differ_by_one_in_one_cell(rows: list[Any], leaver: int) -> None:
    whole = table([[cell] for cell in rows], 3)
    without = table([[cell] for who, cell in enumerate(rows) if who != leaver % len(rows)], 3)
    for name in SCHEMA:
        histogram = search_of(whole, name, 0.1)._histogram  # type: ignore[attr-defined]
        both = [counted(one_row_a_unit(each, name), histogram) for each in (whole, without)]
        assert np.abs(both[0] - both[1]).sum() <= 1


@pytest.mark.parametrize(("neighbours", "group", "l1"), [("add-remove", 1, 1), ("replace", 1, 2), ("add-remove", 3, 3)])
def test_noise_is_made_for_all_that_neighbours_move(neighbours: str, group: int, l1: int) -> None:
    whole = table([[(1.0, 1, None)]], 5, neighbours).group_privacy(group)
    assert search_of(whole, "x", 0.1).counts.l1 == l1  # type: ignore[attr-defined]
    assert row_search(whole, 0.1, 1.0).counts.l1 == l1


def _is_missing(value: Any) -> bool:
    return value is None or value != value

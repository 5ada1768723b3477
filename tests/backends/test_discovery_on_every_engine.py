"""The counts that a range and a bound on rows are found from, on every engine: those of a loop, odd cells included."""

from __future__ import annotations

import datetime
import math
from bisect import bisect_right
from typing import Any

import pyarrow as pa
import pytest

from backends.engine_under_test import EngineUnderTest
from farthing.adaptive.discovery.search_cells import SearchCells, cells_of, row_cells
from farthing.data import Histogram, dataset, unknown
from farthing.data.unit_rows import MOST_ROWS_A_UNIT
from farthing.data.unknown_columns import one_row_a_unit, rows_a_unit

NUMBERS = [0.0, -0.0, 1e-19, 0.1, 100.0, math.nextafter(100, 101), -100.0, -2.5, 1e300, -1e300, 2.0**53, math.nan, None]
WHOLE = [0, 1, -1, 10, 11, 100, 101, -100, -101, 10**18, -(10**18), 5, None]
DAYS = [
    datetime.date(1900, 1, 1),
    datetime.date(1899, 12, 31),
    datetime.date(2020, 2, 29),
    datetime.date(2100, 1, 1),
    None,
]
ROWS = len(NUMBERS)
TABLE = pa.table(
    {
        "who": [None, *range(1, ROWS)],
        "x": pa.array(NUMBERS, pa.float64()),
        "n": pa.array(WHOLE, pa.int64()),
        "day": pa.array([DAYS[place % len(DAYS)] for place in range(ROWS)], pa.date32()),
    }
)
SCHEMA = {"x": unknown("number"), "n": unknown("whole number"), "day": unknown("date")}


def _place(value: Any, cells: SearchCells) -> int | None:
    if value is None or value != value:
        return None
    inside = min(max(value, cells.edges[0]), cells.edges[-1])
    if isinstance(inside, float) and abs(inside) < 2.0**-60:
        inside = 0.0
    return bisect_right(cells.edges[1:-1], inside)


@pytest.mark.draws(false_alarm=0, miss=0)  # each unit has one row: nothing is left to chance
def test_counts_of_searches_are_those_of_a_loop(engine: EngineUnderTest) -> None:
    people = dataset(engine.load(TABLE), unit="who", max_rows="auto", schema=SCHEMA)
    for name in SCHEMA:
        rows = one_row_a_unit(people, name)
        cells = cells_of(rows.schema[name])
        expected = [0] * len(cells)
        for row in TABLE.to_pylist()[1:]:  # the first names nobody
            place = _place(row[name], cells)
            if place is not None:
                expected[place] += 1
        assert rows.exact({"n": Histogram(name, cells.edges)})["n"].tolist() == expected


@pytest.mark.draws(false_alarm=0, miss=0)
def test_units_are_counted_by_their_rows(engine: EngineUnderTest) -> None:
    sizes = [1, 2, 2, 10, 11, 13]
    table = pa.table({"who": [who for who, size in enumerate(sizes) for _ in range(size)]})
    people = dataset(engine.load(table), unit="who", max_rows=1, schema={"who": (0, 9)})
    cells = row_cells(MOST_ROWS_A_UNIT)
    counts = rows_a_unit(people).exact({"n": Histogram("rows", cells.edges)})["n"].tolist()
    assert {cells.highs[place]: count for place, count in enumerate(counts) if count} == {
        1: 1,
        2: 2,
        10: 1,
        12: 1,
        15: 1,
    }

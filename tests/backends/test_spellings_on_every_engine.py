"""Text that stands for flags, dates, numbers and categories is read the same on every engine."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from backends.engine_under_test import EngineUnderTest
from farthing.data import Categories, CellCounts, Count, Reals, Sum, dataset

DAYS = (datetime.date(2000, 1, 1), datetime.date(2025, 12, 31))
CELLS = {
    "flag": ["1", "0", "true", "False", " yes", "N", "1.0", "f", "2", "maybe", "", "on", None, "x" * 10**6],
    "day": [
        "2020-02-29", "2019-02-29", "2020-12-31T23:59:59Z", " 2021-01-01 ", "2021-13-01", "2021-00-10", "2021-04-31",
        "1900-01-01", "9999-12-31", "2022/03/04", "2022-3-4", "0000-01-01", "2024-12-31x", "1900-02-29",
    ],
    "amount": [
        "1,5", "2", " 3,25 ", "1.234", "1.234,5", "-4,75", "1e1", "1,2,3", "NaN", "", "x", "9" * 200, ",5", "5,",
    ],
    "region": [
        "north", " North ", "SOUTH\t", "south", "östlich", "ÖSTLICH", "O\u0308STLICH", "nor th", "", "west", " " * 5000,
        "\n\tnorth", None, "NORTH!",
    ],
}  # fmt: skip
SCHEMA = {
    "flag": bool,
    "number": bool,
    "day": DAYS,
    "amount": Reals(0.0, 100.0, decimal=","),
    "region": Categories(["north", "south", "östlich"], trim=True, lower=True),
}


@pytest.mark.slow
def test_spellings_are_read_the_same(engine: EngineUnderTest) -> None:
    table = pa.table({**CELLS, "number": pa.array([1, 0, 0, 2, -1, None, 1, 1, *range(7, 13)], pa.int64())})
    edges = [DAYS[0], datetime.date(2021, 1, 1)]  # each one more doubles what Spark has to plan
    people = dataset(engine.load(table), schema=SCHEMA).bin(day=edges)
    found = people.exact({
        "flags": CellCounts("flag"), "numbers": CellCounts("number"), "days": CellCounts("day"),
        "amount": Sum("amount", grid=0.25), "amounts": Count("amount"), "regions": CellCounts("region"),
    })  # fmt: skip
    assert {name: value.tolist() for name, value in found.items()} == {
        "flags": [4, 4],
        "numbers": [2, 3],
        "days": [3, 3],
        "amount": 6 + 8 + 13 + 0 + 40 + 2 + 20,
        "amounts": 7,
        "regions": [3, 2, 2],
    }

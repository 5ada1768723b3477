"""Whole rows as codes of public cells."""

from __future__ import annotations

import math
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from farthing.data import Dataset, Schema, dataset
from farthing.data.coded_rows import CodedAxis, cells_of, coded_axes, coded_rows, sensitivity_of_coded_rows
from farthing.data.expressions import read_cell
from farthing.errors import InvalidValue

DAYS = (date(2020, 1, 1), date(2020, 1, 20))
WORDS = [f"word {place}" for place in range(200)]
SCHEMA: dict[str, Any] = {
    "sex": ["F", "M"],
    "code": [3, 1, 2],
    "age": (0, 110),
    "income": (-10, 250_000),
    "bmi": (10.0, 60.0),
    "smoker": bool,
    "day": DAYS,
    "far": (date(1900, 1, 1), date(2020, 1, 1)),
    "word": WORDS,
    "fixed": (1.5, 1.5),
}


def some_rows(count: int) -> list[dict[str, Any]]:
    """Cells of every kind, with what goes wrong in real tables."""
    luck = np.random.default_rng(5)

    def one_of(values: list[Any]) -> Any:
        return values[luck.integers(len(values))]

    return [
        {
            "sex": one_of(["F", "M", "X", None]),
            "code": one_of([1, 2, 3, 7, None]),
            "age": one_of([None, -4, 200, int(luck.integers(111))]),
            "income": one_of([None, -10, -9, 0, 250_000, 999_999, int(luck.integers(250_000))]),
            "bmi": one_of([None, math.nan, math.inf, 10.0, 60.0, float(luck.uniform(5, 65))]),
            "smoker": one_of([True, False, None]),
            "day": one_of([None, date(2019, 1, 1), DAYS[0] + timedelta(days=int(luck.integers(30)))]),
            "far": one_of([None, date(1900, 1, 1) + timedelta(days=int(luck.integers(44_000)))]),
            "word": one_of([*WORDS, "?", None]),
            "fixed": one_of([1.5, 3.0, None]),
        }
        for _ in range(count)
    ]


ROWS = some_rows(400)
TYPES = pa.schema(
    [
        ("sex", pa.string()), ("code", pa.int64()), ("age", pa.int64()), ("income", pa.int64()), ("bmi", pa.float64()),
        ("smoker", pa.bool_()), ("day", pa.date32()), ("far", pa.date32()), ("word", pa.string()),
        ("fixed", pa.float64()),
    ]
)  # fmt: skip


def code_by_hand(value: Any, axis: CodedAxis) -> int | None:
    """The cell of one value, by looking at every cell in turn."""
    read = read_cell(value, axis.domain)
    if read is None:
        return axis.present if axis.missing else None
    if axis.edges is None:
        return list(axis.labels or ()).index(read)
    return max(place for place in range(axis.present) if place == 0 or axis.edges[place] <= read)


def by_hand(rows: list[dict[str, Any]], axes: tuple[CodedAxis, ...]) -> dict[tuple[int, ...], int]:
    """Distinct rows and their counts, by a loop."""
    found: dict[tuple[int, ...], int] = {}
    for row in rows:
        codes = tuple(code_by_hand(row[axis.column], axis) for axis in axes)
        if None not in codes:
            found[codes] = found.get(codes, 0) + 1  # type: ignore[index, arg-type]
    return found


def people(rows: list[dict[str, Any]]) -> Dataset:
    return dataset(pa.Table.from_pylist(rows, schema=TYPES), schema=SCHEMA)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "bins"),
    [
        (True, {}),
        (False, {"bmi": [18.5, 25.0], "age": 7, "income": [0, 1, 1000], "far": 3}),
        (["sex", "bmi", "word", "day"], {"bmi": 5}),
    ],
)
def test_codes_are_those_of_a_loop(missing: Any, bins: Any) -> None:
    table = people(ROWS)
    axes = coded_axes(table.schema, missing=missing, bins=bins)
    codes, counts = coded_rows(table, axes)
    assert codes.shape == (len(counts), len(SCHEMA))
    found = dict(zip(map(tuple, codes.tolist()), counts.tolist(), strict=True))
    assert len(found) == len(counts)  # no row stands there twice
    assert found == by_hand(ROWS, axes)


def test_one_column_and_no_rows() -> None:
    table = people([])
    codes, counts = coded_rows(table, coded_axes(table.schema, "sex"))
    assert codes.shape == (0, 1) and counts.shape == (0,)


@pytest.mark.slow
def test_domains_far_beyond_64_bits_are_coded() -> None:
    names = [f"c{place}" for place in range(16)]
    rows = [{name: (row * place) % 100 for place, name in enumerate(names)} for row in range(50)]
    table = dataset(pa.Table.from_pylist(rows), schema=dict.fromkeys(names, (0, 99)))
    axes = coded_axes(table.schema, missing=False)
    assert cells_of(axes) == 100**16
    codes, counts = coded_rows(table, axes)
    assert sorted(codes.tolist()) == sorted([list(row.values()) for row in rows]) and set(counts) == {1}


def test_rows_of_one_unit_are_bounded() -> None:
    table = pa.table({"person": [1] * 50 + [2], "sex": ["F"] * 51})
    bounded = dataset(table, unit="person", max_rows=3, schema={"sex": ["F", "M"]})
    axes = coded_axes(bounded.schema)
    assert coded_rows(bounded, axes)[1].tolist() == [4]
    assert sensitivity_of_coded_rows(bounded, axes).l1 == 3


def test_cells_follow_from_public_facts() -> None:
    schema = Schema.read(SCHEMA)
    sizes = {axis.column: axis.present for axis in coded_axes(schema)}
    assert sizes == {
        "sex": 2, "code": 3, "age": 111, "income": 64, "bmi": 64, "smoker": 2, "day": 20, "far": 64, "word": 200,
        "fixed": 1,
    }  # fmt: skip
    (income,) = coded_axes(schema, "income")
    assert income.edges is not None and income.edges[:2] == (-10, -9)  # the lowest value is a cell of its own


def test_a_number_of_cells_cuts_whole_numbers_and_days_into_equal_numbers_of_values() -> None:
    days = (date(2026, 1, 1), date(2026, 1, 30))
    schema = Schema.read({"g": (0, 99_999), "n": (-2, 2), "day": days})
    g, n, day = coded_axes(schema, bins={"g": 20, "n": 4, "day": 3}, missing=False)
    assert g.edges == (*range(0, 100_000, 5_000), 99_999)
    assert n.edges == (-2, -1, 0, 1, 2)
    assert day.edges == (days[0], date(2026, 1, 11), date(2026, 1, 21), days[1])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"columns": ["name"]}, "free text cannot be made up"),
        ({"columns": []}, "at least one column"),
        ({"bins": {"sex": 3}}, "categories of its own"),
        ({"bins": {"height": 3}}, "must be one of the columns"),
        ({"bins": {"age": "many"}}, "a number of cells or a list"),
        ({"missing": ["height"]}, "must be one of the columns"),
    ],
)
def test_what_cannot_be_coded_is_refused_with_a_way_out(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidValue, match=told):
        coded_axes(Schema.read(SCHEMA), **arguments)


def test_samples_are_refused() -> None:
    table = people(ROWS[:5])
    with pytest.raises(InvalidValue, match="sample"):
        coded_rows(table.sample(0.5), coded_axes(table.schema))

"""One row, whatever it holds, decides neither whether a query fails nor more than its own place in an answer."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from typing import Any

import pytest

from backends.engine_under_test import EngineUnderTest
from backends.hostile_columns import hostile
from farthing.data import Count, Sum, dataset
from farthing.data.coded_rows import coded_axes, coded_rows
from farthing.errors import InvalidValue

# Each unit has as many rows as it may keep, so that the answers are the same whatever is drawn.
pytestmark = pytest.mark.draws(false_alarm=0, miss=0)

FEW = ["F", "M"]
MANY = ["F", "M", "f", *(f"label {number}" for number in range(30))]
WHOLE, REAL, DAYS = (0, 3), (0.0, 4.0), (datetime.date(2000, 1, 1), datetime.date(2000, 1, 3))
FIRST, LAST = DAYS
LONG = "repeat('F', 3000000)"

# For a type and a domain: cells as the engine writes them, and the value that each of them is read as.
CELLS: dict[str, list[tuple[str, Any, dict[str, Any]]]] = {
    "duckdb": [
        ("varchar collate nocase", FEW, {"'F'": "F", "'f'": None, "'F '": None, LONG: None}),
        ("varchar collate nocase", MANY, {"'F'": "F", "'f'": "f", "'m'": None, LONG: None}),
        ("enum('F', 'M', 'other')", MANY, {"'F'": "F", "'other'": None}),
        ("hugeint", WHOLE, {"1": 1, "170141183460469231731687303715884105727": 3}),
        ("hugeint", REAL, {"1": 1.0, "-170141183460469231731687303715884105727": 0.0}),
        ("ubigint", WHOLE, {"1": 1, "18446744073709551615": 3}),
        ("decimal(38, 10)", REAL, {"1.5": 1.5, "9999999999999999999999999999.9999999999": 4.0}),
        ("decimal(38, 37)", REAL, {"1.5": 1.5, "1e-37": 0.0}),
        ("double", REAL, {"1.5": 1.5, "'nan'": None, "'inf'": 4.0, "'-inf'": 0.0, "5e-324": 0.0}),
        ("double", [0, 1], {"1": 1, "'nan'": None, "5e-324": None, "-0.0": 0}),
        ("date", DAYS, {"'2000-01-02'": DAYS[0] + datetime.timedelta(1), "'infinity'": LAST,
                        "'-infinity'": FIRST, "'5881580-07-10'": LAST, "'290309-12-22 (BC)'": FIRST}),
        ("timestamp", DAYS, {"'2000-01-01 23:59'": FIRST, "'infinity'": LAST, "'294247-01-10 04:00:54'": LAST,
                             "'290309-12-22 (BC)'": FIRST}),
    ],
    "postgres": [
        ('text collate "no_case"', FEW, {"'F'": "F", "'f'": None, "'F '": None, LONG: None}),
        ('text collate "no_case"', MANY, {"'F'": "F", "'f'": "f", "'m'": None, LONG: None}),
        ("citext", MANY, {"'F'": "F", "'f'": "f", "'m'": None, LONG: None}),
        ("char(4)", MANY, {"'F'": "F", "'F  '": "F", "'f'": "f"}),
        ("name", MANY, {"'F'": "F", "'g'": None}),
        ("feeling", MANY, {"'F'": "F", "'other'": None}),
        ("numeric", REAL, {"1.5": 1.5, "1e-400": 0.0, "-1e-400": 0.0, "1e-320": 0.0, "'NaN'": None, "1e400": 4.0,
                           "'Infinity'": 4.0, "'-Infinity'": 0.0, "('1' || repeat('0', 100000))::numeric": 4.0,
                           "('1.5' || repeat('0', 16000))::numeric": 1.5}),
        ("numeric", WHOLE, {"1": 1, "1e-400": 0, "-1e-400": 0, "'NaN'": None, "1e400": 3, "'Infinity'": 3}),
        ("numeric", [0, 1], {"1": 1, "1e-400": None, "'NaN'": None, "'Infinity'": None, "1.00": 1}),
        ("numeric(1000, 900)", REAL, {"1.5": 1.5, "1e-900": 0.0, "'NaN'": None}),
        ("numeric(12, 2)", REAL, {"1.5": 1.5, "'NaN'": None}),
        ("money", REAL, {"1.5": 1.5, "-5": 0.0, "92233720368547758.07": 4.0}),
        ("money", [0, 1], {"1": 1, "92233720368547758.07": None}),
        ("oid", REAL, {"1": 1.0, "4294967295": 4.0}),
        ("oid", WHOLE, {"1": 1, "4294967295": 3}),
        ("real", REAL, {"1.5": 1.5, "'nan'": None, "'inf'": 4.0, "1e-45": 0.0}),
        ("double precision", [0, 1], {"1": 1, "'nan'": None, "5e-324": None}),
        ("date", DAYS, {"'2000-01-02'": DAYS[0] + datetime.timedelta(1), "'infinity'": LAST,
                        "'-infinity'": FIRST, "'5874897-12-31'": LAST, "'4713-01-01 BC'": FIRST}),
        ("timestamp", DAYS, {"'2000-01-01 23:59'": FIRST, "'infinity'": LAST, "'-infinity'": FIRST,
                             "'294276-12-31'": LAST, "'4713-01-01 BC'": FIRST}),
    ],
    "spark": [
        ("string collate utf8_lcase", FEW, {"'F'": "F", "'f'": None, "'F '": None, LONG: None}),
        ("string collate utf8_lcase", MANY, {"'F'": "F", "'f'": "f", "'m'": None, LONG: None}),
        ("char(4)", MANY, {"'F'": "F", "'f'": "f"}),
        ("decimal(38, 10)", REAL, {"1.5": 1.5, "9999999999999999999999999999.9999999999": 4.0}),
        ("decimal(38, 37)", REAL, {"1.5": 1.5, "1e-37BD": 0.0}),
        ("double", REAL, {"1.5D": 1.5, "double('nan')": None, "double('inf')": 4.0, "double('-inf')": 0.0}),
        ("date", DAYS, {"date'2000-01-02'": DAYS[0] + datetime.timedelta(1), "date'9999-12-31'": LAST,
                        "date'0001-01-01'": FIRST}),
    ],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whichever rows a server keeps
def test_no_cell_stops_a_query_and_each_is_read_by_its_domain(engine: EngineUnderTest) -> None:
    """Every hostile cell stands in a row of its own, beside the first and ordinary cell of the other columns."""
    cells = CELLS[engine.name]
    if engine.name == "postgres":
        engine._owner.execute("DROP TYPE IF EXISTS feeling CASCADE")  # type: ignore[attr-defined]
        engine._owner.execute("CREATE TYPE feeling AS ENUM ('F', 'M', 'other')")  # type: ignore[attr-defined]
    ordinary = [next(iter(values)) for _, _, values in cells]
    rows, read = [ordinary], [[values[cell] for cell, (_, _, values) in zip(ordinary, cells, strict=True)]]
    for place, (_, _, values) in enumerate(cells):
        for cell, value in list(values.items())[1:]:
            rows.append([*ordinary[:place], cell, *ordinary[place + 1 :]])
            read.append([*read[0][:place], value, *read[0][place + 1 :]])
    columns = {f"c{place}": kind for place, (kind, _, _) in enumerate(cells)}
    numbered = [[str(number), *row] for number, row in enumerate(rows)]
    table = hostile(engine, {"person": "bigint", **columns}, numbered)
    schema = {f"c{place}": domain for place, (_, domain, _) in enumerate(cells)}
    people = dataset(table, unit="person", max_rows=1, schema=schema)
    asked: dict[str, Any] = {}
    wanted: dict[str, Any] = {}
    for place, (_, domain, _) in enumerate(cells):
        name, values = f"c{place}", [row[place] for row in read]
        present = [value for value in values if value is not None]
        asked[f"{name} present"], wanted[f"{name} present"] = Count(name), len(present)
        if domain is REAL:
            asked[name] = Sum(name, grid=2**-4)
            wanted[name] = sum(math.floor(value * 16) for value in present)
        else:
            asked[name] = Count(by=name)
            counted = Counter(present)
            wanted[name] = [counted[label] for label in _labels(domain)]
    found = {name: value.tolist() for name, value in people.exact(asked).items()}
    assert found == wanted


def _labels(domain: Any) -> list[Any]:
    if domain is DAYS:
        return [FIRST + datetime.timedelta(days) for days in range(3)]
    return list(range(4)) if domain is WHOLE else list(domain)


def test_a_category_in_another_spelling_is_no_category(engine: EngineUnderTest) -> None:
    """Matched by the collation of the column, it came back as itself and was looked up in vain: KeyError."""
    kind = {"duckdb": "varchar collate nocase", "postgres": "citext", "spark": "string collate utf8_lcase"}
    table = hostile(engine, {"x": kind[engine.name]}, [["'label 1'"], ["'LABEL 1'"], ["'M'"]])
    labels = [f"label {number}" for number in range(80)]
    people = dataset(table, schema={"x": labels})
    codes, counts = coded_rows(people, coded_axes(people.schema))
    assert sorted(zip(codes[:, 0].tolist(), counts.tolist(), strict=True)) == [(1, 1), (80, 2)]
    assert people.where("x = 'label 1'").exact({"n": Count()})["n"] == 1


ARRAYS = {
    "'{1, 2, 3}'": [1, 2],
    "'{{1, 2}, {3, 4}, {5, 6}}'": [1, 2],
    "'{{{1}, {2}}, {{3}, {4}}}'": [1, 2],
    "'{{9}, {8}, {7}}'": [9, 8],
    "'[5:7]={4, 5, 6}'": [4, 5],
    "'[-3:-2][7:8]={{1, 2}, {3, 4}}'": [1, 2],
    "'{}'": [],
    "'{NULL, 3}'": [None, 3],
    "NULL": [],
}


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whichever rows a server keeps
def test_an_array_of_any_shape_becomes_as_many_rows_as_are_claimed(engine: EngineUnderTest) -> None:
    """A slice cuts the first dimension alone: a person with 2 x 50,000 numbers moved a count by 100,000."""
    giant = "(SELECT array_agg(inner_) FROM (SELECT array_agg(n) AS inner_ FROM generate_series(1, 50000) n, "
    giant += "generate_series(1, 2) side GROUP BY side) t)"
    rows = [[str(number), array] for number, array in enumerate([*ARRAYS, giant])]
    table = hostile(engine, {"person": "bigint", "codes": "integer[]"}, rows)
    people = dataset(table, unit="person", max_rows=1, schema={"codes": (0, 10), "person": (0, 20)})
    first = people.explode("codes", limit=2)
    assert first.stability().distance == 2
    found = first.exact({"rows": Count(by="person"), "sums": Sum("codes", by="person")})
    elements = [*ARRAYS.values(), [1, 2]]
    assert found["rows"].tolist()[: len(elements)] == [len(two) for two in elements]
    assert found["sums"].tolist()[: len(elements)] == [sum(x or 0 for x in two) for two in elements]


@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.slow)], indirect=True)
def test_lists_of_lists_are_refused_by_their_type(engine: EngineUnderTest) -> None:
    """Where an array has its dimensions in its type; in PostgreSQL it has not, hence the test above."""
    kind = {"duckdb": "integer[][]", "spark": "array<array<int>>"}[engine.name]
    table = hostile(engine, {"codes": kind}, [])
    with pytest.raises(InvalidValue, match="needs a column of numbers"):
        dataset(table, schema={"codes": (0, 10)})

"""Aggregates: exact integers beside plain Python, zero-filled cells, and numbers that cannot overflow."""

from __future__ import annotations

import bisect
import datetime
import math
from functools import cache
from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from farthing.data import (
    CellCounts,
    Count,
    CrossProducts,
    Dataset,
    Histogram,
    Moments,
    OrderCounts,
    Sum,
    dataset,
)
from farthing.data.aggregates.aggregate import MOST_CELLS, aggregate_queries
from farthing.data.aggregates.bin_edges import are_equal_reals, checked_edges, equal_edges, labels_of
from farthing.data.expressions import read_cell
from farthing.data.schema import Dates, Integers, Reals, Schema
from farthing.errors import InvalidValue

DAY = datetime.date
SCHEMA: dict[str, Any] = {
    "sex": ["F", "M", "å'\"\\"], "age": (-3, 6), "bmi": (-1.5, 4.0), "smoker": bool,
    "day": (DAY(2020, 1, 1), DAY(2020, 1, 5)),
    "grade": [3, 1, 2],
}  # fmt: skip


def column(values: list[Any], luck: np.random.Generator = np.random.default_rng(7)) -> list[Any]:  # noqa: B008
    return [values[place] for place in luck.integers(0, len(values), 300)]


TABLE = pa.table(
    {
        "sex": column(["F", "M", "å'\"\\", "other", None]),
        "age": column([None, -9, -3, -1, 0, 2, 6, 7]),
        "bmi": column([None, math.nan, math.inf, -math.inf, -1.5, -0.3, 0.0, 0.1, 3.99, 4.0, 9.0]),
        "smoker": column([True, False, None]),
        "day": column([None, DAY(2019, 1, 1), DAY(2020, 1, 1), DAY(2020, 1, 3), DAY(2020, 1, 5), DAY(2021, 1, 1)]),
        "grade": column([1, 2, 3, 4, None]),
    }
)


@cache
def the_people() -> Dataset:
    return dataset(TABLE, schema=SCHEMA)


def clean(row: dict[str, Any]) -> dict[str, Any]:
    """The reading rules once more, in plain Python."""

    def clipped(value: Any, low: Any, high: Any) -> Any:
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        return None if missing else min(max(value, low), high)

    return {
        "sex": row["sex"] if row["sex"] in SCHEMA["sex"] else None,
        "age": clipped(row["age"], *SCHEMA["age"]),
        "bmi": clipped(row["bmi"], *SCHEMA["bmi"]),
        "smoker": row["smoker"],
        "day": clipped(row["day"], *SCHEMA["day"]),
        "grade": row["grade"] if row["grade"] in SCHEMA["grade"] else None,
    }


ROWS = [clean(row) for row in TABLE.to_pylist()]


def total(of: Any, where: Any = lambda row: True) -> int:
    """The sum of `of(row)` over the rows where it is not None."""
    values = [of(row) for row in ROWS if where(row)]
    return sum(value for value in values if value is not None)


def test_counts_are_those_of_plain_python() -> None:
    found = the_people().exact(
        {"all": Count(), "age": Count("age"), "sex": Count(by="sex"), "both": CellCounts(["sex", "smoker"]),
         "grade": CellCounts("grade"), "young": Count(where="age < 1", by="smoker")}
    )  # fmt: skip
    assert found["all"].shape == () and found["all"] == 300
    assert found["age"] == total(lambda row: row["age"] is not None)
    for place, sex in enumerate(SCHEMA["sex"]):
        assert found["sex"][place] == total(lambda row, sex=sex: row["sex"] == sex)
        for flag in (False, True):
            expected = total(lambda row, sex=sex, flag=flag: row["sex"] == sex and row["smoker"] is flag)
            assert found["both"][place, int(flag)] == expected
    for place, grade in enumerate(SCHEMA["grade"]):  # in the order of the schema, not of the values
        assert found["grade"][place] == total(lambda row, grade=grade: row["grade"] == grade)
    for flag in (False, True):
        young = lambda row, flag=flag: row["smoker"] is flag and row["age"] is not None and row["age"] < 1  # noqa: E731
        assert found["young"][int(flag)] == total(young)


def test_sums_moments_and_products_are_those_of_plain_python() -> None:
    found = the_people().exact(
        {"bmi": Sum("bmi", grid=2**-4), "flag": Sum("smoker"), "coarse": Sum("age", grid=2),
         "moments": Moments("age", powers=(0, 1, 2, 3), by="sex"),
         "products": CrossProducts(["age", "bmi"], grids={"bmi": 0.25})}
    )  # fmt: skip

    def grid(value: Any, step: float) -> Any:
        return None if value is None else math.floor(value / step)

    assert found["bmi"] == total(lambda row: grid(row["bmi"], 2**-4))
    assert found["flag"] == total(lambda row: row["smoker"])
    assert found["coarse"] == total(lambda row: grid(row["age"], 2))
    for place, sex in enumerate(SCHEMA["sex"]):
        for power in range(4):
            expected = total(
                lambda row, power=power: None if row["age"] is None else row["age"] ** power,
                lambda row, sex=sex: row["sex"] == sex,
            )
            assert found["moments"][place, power] == expected
    complete = [row for row in ROWS if row["age"] is not None and row["bmi"] is not None]
    vectors = [(1, row["age"], grid(row["bmi"], 0.25)) for row in complete]
    for place, (a, b) in enumerate(combinations_with_replacement(range(3), 2)):
        assert found["products"][place] == sum(vector[a] * vector[b] for vector in vectors)


def test_histograms_and_ranks_are_those_of_plain_python() -> None:
    found = the_people().exact(
        {"bmi": Histogram("bmi", cells=[-1.5, 0.0, 3.99, 4.0], by="smoker"), "age": Histogram("age"),
         "day": Histogram("day", cells=2),
         "sex": Histogram("sex"), "ranks": OrderCounts("bmi", grid=[-1.0, 0.0, 4.0], by="smoker"),
         "steps": OrderCounts("age", grid=3)}
    )  # fmt: skip
    edges = [-1.5, 0.0, 3.99, 4.0]
    for flag in (False, True):
        own = [row["bmi"] for row in ROWS if row["smoker"] is flag and row["bmi"] is not None]
        cells = [sum(a <= x < b or x == b == 4.0 for x in own) for a, b in pairwise(edges)]
        assert found["bmi"][int(flag)].tolist() == cells
        assert found["ranks"][int(flag)].tolist() == [sum(x < point for x in own) for point in (-1.0, 0.0)]
    assert found["age"].tolist() == [total(lambda row, a=a: row["age"] == a) for a in range(-3, 7)]
    days = [row["day"] for row in ROWS if row["day"] is not None]
    assert found["day"].tolist() == [
        sum(d < DAY(2020, 1, 3) for d in days),
        sum(d >= DAY(2020, 1, 3) for d in days),
    ]
    assert found["steps"].tolist() == [sum(row["age"] is not None and row["age"] < p for row in ROWS) for p in (0, 3)]
    assert found["sex"].sum() == total(lambda row: row["sex"] is not None)


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.3, 2.6), (0.1, 0.7), (1e6, 1e6 + 1.0), (-3.0, 9e15)])
@pytest.mark.parametrize("count", [9, 10, 49, 1000])
def test_reals_on_and_beside_equal_edges_fall_into_the_right_cell(bounds: tuple[float, float], count: int) -> None:
    """A division alone would be wrong within rounding of an edge; values there are what the test is made of."""
    edges = equal_edges("x", Reals(*bounds), count)
    values = sorted({v for e in edges for v in (e, math.nextafter(e, -math.inf), math.nextafter(e, math.inf))})
    people = dataset(pa.table({"x": [*values, None, math.nan]}), schema={"x": bounds})
    inside: list[Any] = [read_cell(value, Reals(*bounds)) for value in values]
    expected = [0] * count
    for value in inside:
        expected[min(bisect.bisect_right(edges, value), count) - 1] += 1
    found = people.exact({"h": Histogram("x", cells=count), "r": OrderCounts("x", grid=count)})
    assert found["h"].tolist() == expected
    assert found["r"].tolist() == np.cumsum(expected)[:-1].tolist()
    assert are_equal_reals(edges, Reals(*bounds))


def test_an_empty_table_gives_zeros_of_the_right_shape() -> None:
    empty = dataset(TABLE.slice(0, 0), schema=SCHEMA)
    found = empty.exact(
        {
            "n": Count(),
            "cells": CellCounts(["sex", "smoker"]),
            "m": Moments("age"),
            "r": OrderCounts("bmi", grid=5),
        }
    )
    assert found["n"] == 0
    assert {name: (value.shape, int(value.sum())) for name, value in found.items()} == {
        "n": ((), 0), "cells": ((3, 2), 0), "m": ((3,), 0), "r": ((4,), 0)
    }  # fmt: skip


def test_sums_beyond_64_bits_are_exact() -> None:
    large = 2**62 - 1
    people = dataset(pa.table({"x": [large] * 64 + [-large]}), schema={"x": (-large, large)})
    found = people.exact({"sum": Sum("x"), "n": Count()})
    assert found["sum"].item() == 63 * large
    assert found["sum"].dtype == object and found["n"].dtype == np.int64


def test_what_could_overflow_is_refused_in_advance() -> None:
    people = dataset(pa.table({"x": [1], "y": [1.0]}), schema={"x": (0, 2**40), "y": (0.0, 1e6)})
    with pytest.raises(InvalidValue, match=r"one row would add more than 2\^62; use a coarser grid"):
        people.explain(Moments("x"))
    with pytest.raises(InvalidValue, match="is too fine for the bounds of 'y'"):
        people.explain(Sum("y", grid=2**-60))
    with pytest.raises(InvalidValue, match=r"more than 2\^62"):
        people.explain(CrossProducts(["x", "y"]))


def test_one_query_serves_a_plan_unless_its_cells_multiply_too_far() -> None:
    schema = Schema.read({"a": (0, 999), "b": (0, 999), "c": ["x", "y"]})
    together = aggregate_queries(
        {"n": Count(), "c": CellCounts("c"), "s": Sum("a", by="c"), "h": Histogram("b", cells=10)}, schema
    )
    assert [sorted(one.aggregates) for one in together] == [["c", "h", "n", "s"]]
    apart = aggregate_queries({"a": Histogram("a"), "b": Histogram("b"), "c": CellCounts("c")}, schema)
    assert [sorted(one.aggregates) for one in apart] == [["a", "c"], ["b"]]
    assert MOST_CELLS < 1000 * 1000
    with pytest.raises(InvalidValue, match="must have at most 131,072 cells"):
        aggregate_queries({"n": CellCounts(["a", "b"])}, schema)


@pytest.mark.parametrize(
    ("aggregate", "message"),
    [
        (lambda: Sum("sex"), "must hold numbers"),
        (lambda: Sum("day"), "must hold numbers"),
        (lambda: Sum("height"), "must be a column of the schema; there are: sex, age"),
        (lambda: Sum("age", grid=0.3), "must be a power of two"),
        (lambda: Sum("age", grid=float("nan")), "must be a power of two"),
        (lambda: Sum("age", by="bmi"), r"must have a finite list of cells; bin it first: bin\(bmi=10\)"),
        (lambda: CellCounts([]), "must name at least one column"),
        (lambda: CellCounts(["sex", "sex"]), "each once"),
        (lambda: Moments("age", powers=(2, 1)), "increasing"),
        (lambda: Moments("age", powers=(9,)), "from 0 to 8"),
        (lambda: Histogram("bmi", cells=0), "must be a whole number from 1"),
        (lambda: Histogram("bmi", cells=[0.0, 9.0]), "must lie within the bounds"),
        (lambda: Histogram("bmi", cells=[1.0, 0.5]), "must increase, without repeats"),
        (lambda: Histogram("age", cells=[0.5]), "of the kind of column 'age'"),
        (lambda: Histogram("age", cells=50), "must increase, without repeats; use fewer cells"),
        (lambda: OrderCounts("sex", grid=4), "must hold numbers or dates"),
        (lambda: Count(where="age"), "must be true or false"),
        (lambda: "count", "must be an aggregate"),
    ],
)
def test_an_aggregate_that_makes_no_sense_says_why(aggregate: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        the_people().explain({"it": aggregate()})


def test_edges_reach_from_bound_to_bound_and_have_names() -> None:
    assert equal_edges("x", Reals(0.0, 1.0), 4) == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert checked_edges("x", Integers(0, 10), [5]) == (0, 5, 10)
    assert labels_of((0, 1, 10), Integers(0, 10)) == ("0", "1 to 10")
    days = Dates(DAY(2020, 1, 1), DAY(2020, 1, 31))
    assert labels_of(equal_edges("d", days, 2), days) == (
        "2020-01-01 to 2020-01-15",
        "2020-01-16 to 2020-01-31",
    )
    assert equal_edges("x", Integers(3, 3), 1) == (3, 3)


def test_cells_of_a_category_are_its_own() -> None:
    with pytest.raises(InvalidValue, match="must be left out: column 'sex' has categories"):
        the_people().explain(Histogram("sex", cells=5))

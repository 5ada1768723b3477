"""One row a unit: what each function means, its bounds, and what is refused before any row is read."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from farthing.data import Count, Dataset, Sum, dataset
from farthing.data.schema import Dates, Flags, Integers, Reals
from farthing.errors import FarthingError, InvalidValue

VISITS = pa.table(
    {
        "person": [1, 1, 1, 2, 2, 3, None],
        "icu": [True, None, False, None, None, False, True],
        "cost": [10, 30, None, 5, None, None, 99],
        "bmi": [20.5, float("nan"), 21.0, 30.0, 31.0, None, 40.0],
        "day": [date(2026, 1, 5), date(2026, 2, 1), None, date(2026, 3, 1), None, None, date(2026, 1, 1)],
        "ward": ["A", "B", "A", "?", "A", None, "B"],
    }
)
SCHEMA = {
    "icu": bool, "cost": (0, 50), "bmi": (10.0, 60.0), "ward": ["A", "B"],
    "day": (date(2026, 1, 1), date(2026, 12, 31)),
}  # fmt: skip


@pytest.fixture(scope="module")
def visits() -> Dataset:
    return dataset(VISITS, unit="person", max_rows=4, schema=SCHEMA)


def test_every_function_has_the_bounds_that_follow(visits: Dataset) -> None:
    people = visits.per_unit(
        rows="count()", costs="count(cost)", ever="any(icu)", always="ALL(cost >= 5)", first="min(day)",
        top="max(cost)", total="sum(cost)", heavy="sum(bmi)", bmi="mean(bmi)", price=" mean( cost * 2 ) ",
        wards="distinct(ward)",
    )  # fmt: skip
    assert dict(people.schema.columns) == {
        "rows": Integers(1, 4), "costs": Integers(0, 4), "ever": Flags(), "always": Flags(),
        "first": Dates(date(2026, 1, 1), date(2026, 12, 31)), "top": Integers(0, 50), "total": Integers(0, 200),
        "heavy": Reals(10.0, 240.0), "bmi": Reals(10.0, 60.0), "price": Reals(0.0, 100.0), "wards": Integers(0, 2),
    }  # fmt: skip
    assert people.rows_per_unit == 1 and people.rows is None
    assert people.sensitivity(Count(by="ever")).l1 == 1


def test_unknown_is_not_true_and_a_row_of_nobody_is_nobodys(visits: Dataset) -> None:
    people = visits.per_unit(ever="any(icu)", always="all(cost >= 5)", total="sum(cost)", bmi="mean(bmi)")
    found = people.exact(
        {
            "people": Count(),
            "ever": Count(where="ever"),
            "always": Count(where="always"),
            "known": Count("total"),
            "total": Sum("total"),
            "bmi": Sum("bmi", grid=0.25),
        }
    )
    assert {name: value.tolist() for name, value in found.items()} == {
        "people": 3, "ever": 1, "always": 0, "known": 2, "total": 45, "bmi": int((20.75 + 30.5) / 0.25),
    }  # fmt: skip


def test_the_new_table_is_a_dataset_like_any_other(visits: Dataset) -> None:
    people = visits.where("cost > 0").per_unit(costs="count()").derive(many="costs > 1").where("many")
    assert people.exact({"n": Count()})["n"].tolist() == 1
    assert [link.rows for link in people.stability().links] == [4, 4, 1, 1, 1]
    assert visits.per_unit(a="count()").definition != visits.per_unit(a="count(cost)").definition


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "at least one column"),
        ({"x": "median(cost)"}, "must be one of count()"),
        ({"x": "cost"}, "must be one of count()"),
        ({"x": 3}, "must be one of count()"),
        ({"x": "mean(cost) + mean(bmi)"}, "derive the rest before or after"),
        ({"x": "any(cost)"}, "must be a condition"),
        ({"x": "sum(ward)"}, "must be of numbers"),
        ({"x": "min(ward)"}, "must be of numbers or dates"),
        ({"x": "sum()"}, "must say of what"),
        ({"x": "sum(nothing)"}, "there is no column 'nothing'"),
        ({"x": ("sum(cost)", (0.5, 2.5))}, "bounds of the kind Integers"),
        ({"x": ("any(icu)", (0, 1))}, "must be a column of numbers or dates"),
        ({"x": ("sum(cost)",)}, "one with its bounds"),
    ],
)
def test_what_is_no_function_of_a_units_rows_is_refused(visits: Dataset, asked: dict[str, object], words: str) -> None:
    with pytest.raises(FarthingError, match=words.replace("(", "\\(").replace(")", "\\)")):
        visits.per_unit(**asked)


def test_sums_that_a_double_cannot_hold_are_refused() -> None:
    large = dataset(VISITS, unit="person", max_rows=10**6, schema={"cost": (0, 2**40)})
    with pytest.raises(InvalidValue, match="too large to be added exactly"):
        large.per_unit(x="sum(cost)")
    assert large.per_unit(x="max(cost)").schema["x"] == Integers(0, 2**40)


def test_one_row_is_no_unit() -> None:
    rows = dataset(VISITS, schema={"cost": (0, 50)})
    with pytest.raises(InvalidValue, match="must be a column to have one row a unit"):
        rows.per_unit(x="count()")

"""Transformations: what they do to rows, what they claim about reach, and what they refuse."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import farthing as ft
from farthing.data import CellCounts, Count, Histogram, Moments, Sum, connection, dataset
from farthing.data.engines.duckdb import quiet
from farthing.errors import FarthingError, InvalidValue
from farthing.privacy import LaplaceNoise, Sampled

TABLE = pa.table(
    {
        "person": [1, 1, 2, 3],
        "sex": ["F", "F", "M", None],
        "age": [30, 31, 45, 60],
        "weight": [60.0, 61.0, 90.0, 75.0],
        "height": [1.5, 1.5, 2.0, 1.0],
        "codes": pa.array([["a", "b", "c"], [], ["b", "z", "b", "a"], None], pa.list_(pa.string())),
    }
)
SCHEMA = {
    "sex": ["F", "M"],
    "age": (0, 110),
    "weight": (30.0, 250.0),
    "height": (0.5, 2.5),
    "codes": ["a", "b", "c"],
}


@cache
def the_people() -> ft.Dataset:
    return dataset(TABLE, unit="person", max_rows=3, schema=SCHEMA)


@cache
def the_rows() -> ft.Dataset:
    return dataset(TABLE, schema=SCHEMA)


def count(people: Any) -> int:
    return int(people.exact({"n": Count()})["n"])


def cells(people: Any, column: str) -> dict[Any, int]:
    found = people.exact({"n": CellCounts(column)})["n"].tolist()
    return dict(zip(people.schema[column].values, found, strict=True))


@pytest.mark.slow
def test_where_keeps_rows_whose_predicate_is_true() -> None:
    assert count(the_people().where("age > 30")) == 3
    assert count(the_people().where("sex = 'F'")) == 2
    assert count(the_people().where("not sex = 'F'")) == 1  # unknown is not true
    assert count(the_people().where(ibis._.age > 30)) == 3


def test_derive_has_bounds_from_its_columns_or_declared_ones() -> None:
    plain = the_people().derive(bmi="weight / (height * height)")
    assert (plain.schema["bmi"].lower, plain.schema["bmi"].upper) == (30 / 6.25, 1000.0)  # type: ignore[union-attr]
    declared = the_people().derive(bmi=("weight / (height * height)", (10.0, 40.0)))
    assert declared.schema["bmi"] == ft.data.Reals(10.0, 40.0)
    sums = [int(d.exact({"s": Sum("bmi", grid=2**-4)})["s"]) for d in (plain, declared)]
    raw = [60 / 2.25, 61 / 2.25, 90 / 4, 75.0]
    assert sums == [sum(int(x * 16) for x in raw), sum(int(min(x, 40.0) * 16) for x in raw)]


def test_clip_narrows_values_and_bounds() -> None:
    young = the_people().clip(age=(40, 50))
    assert young.schema["age"] == ft.data.Integers(40, 50)
    assert young.exact({"s": Sum("age")})["s"] == 40 + 40 + 45 + 50
    assert the_people().clip(age=(-5, 500)).schema["age"] == ft.data.Integers(0, 110)  # never wider than it was
    assert the_people().clip(age=(200, 300)).schema["age"] == ft.data.Integers(200, 200)
    assert the_people().clip(weight=(50, 80)).schema["weight"] == ft.data.Reals(50.0, 80.0)


def test_bin_turns_numbers_into_named_cells() -> None:
    binned = the_people().bin(age=[31, 46], weight=2)
    assert cells(binned, "age") == {"0 to 30": 1, "31 to 45": 2, "46 to 110": 1}
    assert list(binned.schema["weight"].values) == ["[30, 140)", "[140, 250]"]  # type: ignore[union-attr]
    assert count(binned.where("age = '31 to 45'")) == 2


@pytest.mark.slow
def test_every_cell_of_a_bin_has_its_own_rows() -> None:
    ages = dataset(pa.table({"age": [*range(111), None]}), schema={"age": (0, 110)})
    for cut in (1, 7, 22, 110):
        widths = list(cells(ages.bin(age=cut), "age").values())
        assert sum(widths) == 111 and len(widths) == cut and min(widths) >= 1
    assert list(cells(ages.bin(age=22), "age").values()) == [5] * 21 + [6]


def test_select_keeps_the_unit_and_forgets_the_rest() -> None:
    narrow = the_people().select("age")
    assert list(narrow.schema) == ["age"]
    assert count(narrow) == 4
    assert "weight" not in narrow.explain(Count(by="age"))
    with pytest.raises(FarthingError):
        narrow.where("sex = 'F'")


@pytest.mark.slow
def test_explode_reaches_as_far_as_its_limit() -> None:
    exploded = the_people().explode("codes", limit=3)
    assert cells(exploded, "codes") == {"a": 1, "b": 3, "c": 1}  # z is missing, the fourth element is cut off
    assert count(exploded) == 6
    assert exploded.rows_per_unit == 9
    assert cells(the_people().explode("codes", limit=1), "codes") == {"a": 1, "b": 1, "c": 0}


def test_a_column_of_lists_cannot_be_used_before_it_is_exploded() -> None:
    assert "codes" not in the_people().schema
    for refused in (
        lambda: the_people().where("codes = 'a'"),
        lambda: the_people().explain(CellCounts("codes")),
        lambda: the_people().explode("age", limit=2),
        lambda: the_people().explode("codes", limit=0),
        lambda: the_people().explode("codes", limit=2).explode("codes", limit=2),
    ):
        with pytest.raises(FarthingError):
            refused()


@pytest.mark.slow
def test_join_on_the_unit_multiplies_reach_and_touches_nobody_else() -> None:
    visits = dataset(
        pa.table({"person": [1, 1, 3, 3, 3, 9, None], "cost": [5, 6, 7, 8, 9, 10, 11]}),
        unit="person",
        max_rows=2,
        schema={"cost": (0, 20)},
    )
    inner, left = the_people().join(visits), the_people().join(visits, how="left")
    assert count(inner) == 2 * 2 + 2
    assert count(left) == 2 * 2 + 1 + 2
    assert inner.rows_per_unit == left.rows_per_unit == 6
    assert int(inner.exact({"s": Sum("age")})["s"]) == 2 * 30 + 2 * 31 + 2 * 60
    assert inner.where("sex = 'F'").exact({"s": Sum("cost")})["s"] == 2 * (5 + 6)


def test_a_forgotten_column_does_not_stand_in_for_one_of_the_other_table() -> None:
    other = dataset(TABLE, unit="person", max_rows=1, schema={"age": (0, 110)}).derive(years="age").select("years")
    joined = the_people().where("weight < 80").select("sex").join(other.derive(weight=("years * 1.0", (0.0, 110.0))))
    found = joined.exact({"w": Sum("weight", grid=1), "y": Sum("years"), "n": Count()})
    assert found["w"] == found["y"] and found["n"] == 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", [list, pa.Table.from_pylist, pd.DataFrame, pl.DataFrame])
def test_join_with_a_public_table_looks_values_up(kind: Any) -> None:
    public = kind([{"sex": "F", "rate": 0.5, "kind": "x"}, {"sex": "Q", "rate": 9.0, "kind": "y"}])
    left, inner = the_people().join(public, on="sex", how="left"), the_people().join(public, on="sex")
    assert (count(left), count(inner)) == (4, 2)
    assert left.schema["rate"] == ft.data.Reals(0.5, 9.0)
    assert cells(left, "kind") == {"x": 2, "y": 0}
    assert inner.rows_per_unit == 3
    assert inner.exact({"s": Sum("rate", grid=0.5)})["s"] == 2


def test_a_public_table_of_two_keys_and_missing_values() -> None:
    public = [
        {"sex": "F", "age": 30, "x": 3},
        {"sex": "F", "age": 31, "x": None},
        {"sex": "M", "age": 45, "x": 7},
    ]
    joined = the_rows().join(public, on=["sex", "age"])
    found = joined.exact({"n": Count(), "x": Moments("x", powers=(0, 1))})
    assert found["n"] == 3 and found["x"].tolist() == [2, 10]


def test_public_values_are_read_by_the_domain_that_was_declared_for_them() -> None:
    """Otherwise a value outside would move a sum by more than its bounds allow."""
    public = [{"sex": "F", "rate": 9.0, "kind": "x"}, {"sex": "M", "rate": -9.0, "kind": "y"}]
    joined = the_people().join(public, on="sex", rate=(0.0, 0.5), kind=["y"])
    assert joined.schema["rate"] == ft.data.Reals(0.0, 0.5)
    assert joined.exact({"s": Sum("rate", grid=0.5)})["s"] == 2  # two rows of F at 0.5, one of M at 0
    assert cells(joined, "kind") == {"y": 1}


def test_a_public_key_that_is_no_value_of_its_column_meets_no_row() -> None:
    """Clipped to the bounds like a cell, 500 would be taken for 110."""
    old = dataset(pa.table({"age": [300, 30]}), schema={"age": (0, 110)})
    joined = old.join([{"age": 500, "x": 1}, {"age": 30, "x": 2}, {"age": None, "x": 3}], on="age", how="left")
    assert joined.exact({"x": Moments("x", powers=(0, 1))})["x"].tolist() == [1, 2]


@pytest.mark.slow
def test_a_second_table_must_say_how_many_rows_of_a_unit_it_has() -> None:
    """A search for max_rows looks at one table; the other one counted as if a unit had a million rows in it."""
    table = pa.table({"who": [1, 1], "age": [30, 41]})
    open_end, two = (dataset(table, unit="who", max_rows=most, schema={"age": (0, 110)}) for most in ("auto", 2))
    for act in (two.union, two.derive(years="age").select("years").join, open_end.union):
        with pytest.raises(InvalidValue, match=r"max_rows='auto': must be a number in the second table of a .* alone"):
            act(open_end)
    assert open_end.union(two).is_auto


def test_union_adds_reach() -> None:
    both = the_people().union(the_people().where("age > 40"))
    assert count(both) == 6
    assert both.rows_per_unit == 6
    assert both.where("age > 40").rows_per_unit == 6
    lopsided = the_people().where("age > 40").union(the_people())  # only one side looks at ages
    assert count(lopsided) == 6 and cells(lopsided, "sex") == {"F": 2, "M": 2}
    assert cells(the_people().union(the_people().where("age > 40")), "sex") == {"F": 2, "M": 2}
    assert count(the_rows().where("age > 40").union(the_rows())) == 6


def test_group_privacy_multiplies_everything() -> None:
    group = the_people().group_privacy(2).group_privacy(2)
    assert group.stability().rows == 12
    assert group.sensitivity(Sum("age")).linf == 4 * the_people().sensitivity(Sum("age")).linf


@pytest.mark.slow
def test_parts_are_disjoint_and_say_how_many_one_unit_touches() -> None:
    parts = the_people().split(by="sex")
    assert {value: count(part) for value, part in parts.items()} == {"F": 2, "M": 1}
    assert parts.touched == 2  # three rows of one person may lie in both
    assert the_rows().split(by="sex").touched == 1
    replaced = dataset(TABLE, schema=SCHEMA, neighbours="replace")
    assert replaced.split(by="sex").touched == 2  # one row leaves a part and another comes into the other
    odd = dataset(pa.table({"q": ["it's", 'a"b', "it's"]}), schema={"q": ["it's", 'a"b']})
    assert [count(part) for part in odd.split(by="q").values()] == [2, 1]
    assert [count(p) for p in the_people().derive(old="age > 40").split(by="old").values()] == [2, 2]
    with pytest.raises(InvalidValue, match="bin it first"):
        the_people().split(by="age")


def test_replacement_doubles_the_distance_and_a_public_count_does_not_move() -> None:
    replaced = dataset(TABLE, schema=SCHEMA, neighbours="replace", rows=4)
    assert replaced.stability().distance == 2
    assert replaced.rows == 4
    assert replaced.sensitivity(Count()).l1 == 0
    assert replaced.derive(x="age + 1").sensitivity(Count()).l1 == 0
    assert replaced.sensitivity(Count("age")).l1 == 1  # missing values are private
    assert replaced.sensitivity(Count(where="age > 3")).l1 == 1
    assert replaced.where("age > 3").sensitivity(Count()).l1 == 1
    assert replaced.where("age > 3").rows is None
    assert replaced.union(replaced).sensitivity(Count()).l1 == 2
    assert dataset(TABLE, schema=SCHEMA, neighbours="replace").sensitivity(Count()).l1 == 1
    units = dataset(TABLE, unit="person", max_rows=1, schema=SCHEMA, neighbours="replace", rows=4)
    assert units.sensitivity(Count()).l1 == 1  # a unit may have no row at all
    assert replaced.sensitivity(CellCounts("sex")) == ft.data.Sensitivity(l0=2, l1=2, l2_squared=2, linf=1)


def test_the_chain_is_printed_as_it_is_taught() -> None:
    chain = the_people().where("age >= 18").explode("codes", limit=4).sample(0.1)
    assert str(chain.stability()).splitlines() == [
        "unit: all rows with one person; neighbours add or remove one unit",
        "V0  pyarrow.Table                   keep 3   3 rows     at most 3 rows of a unit are kept, chosen at random",
        "V1  where age >= 18                 x 1      3 rows     every row is kept or dropped by itself",
        "V2  explode codes, at most 4 a row  x 4      12 rows    a row becomes 4 rows at most",
        "V3  sample 0.1                      sampled  12 rows    "
        "a unit is in the sample with probability 0.1, in secret",
        "neighbours differ in at most 12 rows, if the unit is in the sample (probability 0.1)",
    ]
    assert Sampled(LaplaceNoise(2.0), chain.probability).probability >= 0.1


def test_a_dataset_is_frozen_and_its_parents_do_not_change() -> None:
    the_people().where("age > 40").derive(x="age * 2").clip(x=(0, 9))
    assert list(the_people().schema) == ["sex", "age", "weight", "height"]
    assert len(the_people().stability().links) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        the_people().schema = None  # type: ignore[assignment,misc]


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (lambda: the_people().where("age"), "must be true or false"),
        (lambda: the_people().where("aeg > 3"), "aeg"),
        (lambda: the_people().derive(x=("age", (0, 1), 2)), "must be an expression, or one with its bounds"),
        (lambda: the_people().clip(sex=(0, 1)), "must be a column of numbers or dates to be clipped"),
        (lambda: the_people().clip(age=(5, 1)), "lower must not exceed upper"),
        (lambda: the_people().clip(age=(0.5, 1.5)), "must be bounds of the kind Integers"),
        (lambda: the_people().bin(sex=3), "must hold numbers or dates"),
        (lambda: the_people().select("shoe"), "must be a column of the schema"),
        (lambda: the_people().union(the_rows()), "unit"),
        (lambda: the_people().union(the_people().select("age")), "must have the same columns and domains"),
        (lambda: the_people().union(TABLE), "must be a dataset to union"),
        (lambda: the_people().union(the_people().group_privacy(2)), "group_privacy"),
        (lambda: the_people().join(the_people()), "must not have columns of the same name"),
        (lambda: the_people().join(the_rows()), "unit"),
        (lambda: the_rows().join(the_rows()), "name the unit in both"),
        (lambda: the_people().join(the_people(), on="age"), "datasets are joined on the unit"),
        (lambda: the_people().join(the_people(), how="outer"), "must be inner or left"),
        (lambda: the_people().join([{"sex": "F", "x": 1}, {"sex": "F", "x": 2}], on="sex"), "must appear once"),
        (
            lambda: the_people().join([{"sex": "F", "x": 1}]),
            "must name the columns that the public table is looked up by",
        ),
        (lambda: the_people().join([{"sex": "F", "age": 1}], on="sex"), "must not repeat age"),
        (lambda: the_people().join([{"weight": 60.0, "x": 1}], on="weight"), "must not be a real number"),
        (lambda: the_people().join([{"sex": "F", "x": 1}, {"sex": "M", "x": "y"}], on="sex"), "of one kind"),
        (
            lambda: the_people().join([{"sex": "Q", "x": 1}], on="sex"),
            "must have values in common with the public table",
        ),
        (lambda: the_people().join([{"sex": 3, "x": 1}], on="sex"), "must be of the kind Categories"),
        (lambda: the_people().join([{"age": True, "x": 1}], on="age"), "must be of the kind Integers"),
        (lambda: the_people().join([{"sex": "F", "x": "a"}], on="sex", x=(0, 1)), "must be of the kind Integers"),
        (lambda: the_people().join([], on="sex"), "must be a dataset or a public table"),
        (lambda: the_people().derive(__farthing_unit_0="age"), "must not start with __farthing"),
        (lambda: the_people().derive(codes="age"), "is the name of a column of lists"),
        (lambda: the_people().group_privacy(0), "must be a whole number >= 1"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_way_out(refused: Any, message: str) -> None:
    with pytest.raises(FarthingError) as refusal:
        refused()
    assert message in str(refusal.value)


@pytest.mark.slow
def test_datasets_of_two_engines_are_not_joined() -> None:
    tables = connection()
    tables.con.register("people", TABLE)
    with quiet():
        other = dataset(tables.table("people"), unit="person", max_rows=3, schema=SCHEMA)
    with pytest.raises(InvalidValue, match="must be in the same engine; move one of the two tables"):
        the_people().union(other)


def test_explain_shows_the_sql_and_only_the_columns_it_needs() -> None:
    text = the_people().where("age >= 18").explain({"n": Count(by="sex"), "ages": Histogram("age", cells=11)})
    assert text.startswith("-- n, ages\nSELECT")
    assert "weight" not in text and "ROW_NUMBER() OVER" in text


def test_names_that_need_quotes_are_quoted() -> None:
    table = pa.table({'a "b"': [1, 2], "select": ["x", "y"]})
    odd = dataset(table, unit='a "b"', max_rows=1, schema={'a "b"': (0, 9), "select": ["x", "y"]})
    assert odd.exact({"s": Sum('a "b"', by="select")})["s"].tolist() == [1, 2]

"""Names that an engine takes for one another, and names that belong to the queries themselves."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import farthing as ft
from farthing.errors import InvalidValue

TABLE = pyarrow.table({"id": [1, 1, 2], "age": [30, 40, 50], "sex": ["F", "M", "F"]})


@cache
def the_rows() -> ft.Dataset:
    return ft.dataset(TABLE, schema={"age": (0, 110), "sex": ["F", "M"]})


@cache
def the_people() -> ft.Dataset:
    return ft.dataset(TABLE, unit="id", max_rows=2, schema={"age": (0, 110)})


CAPITALS = pyarrow.table({"id": [1, 2], "AGE": [0, 1]})


@pytest.mark.parametrize(
    "made",
    [
        lambda: ft.dataset(TABLE, schema={"age": (0, 110), "AGE": (0, 1)}),
        lambda: the_rows().derive(AGE=("age", (0, 1))),
        lambda: the_rows().derive(new="age", NEW=("age", (0, 1))),
        lambda: the_rows().join([{"sex": "F", "AGE": 1}, {"sex": "M", "AGE": 0}], on="sex"),
        lambda: the_people().join(ft.dataset(CAPITALS, unit="id", max_rows=1, schema={"AGE": (0, 1)})),
        # The filter still carries the column that `select` left out.
        lambda: the_rows().where("age > 1").select("sex").derive(AGE=("1 + 1", (0, 1))),
        lambda: the_rows().derive(straße="age", STRASSE=("age", (0, 1))),
    ],
)
def test_names_that_differ_by_case_alone_are_refused(made: Any) -> None:
    """DuckDB would answer for one with the other: Sum("AGE"), claimed to move by 1, moved by 110."""
    with pytest.raises(InvalidValue, match="by more than case"):
        made()


@pytest.mark.parametrize("name", ["__farthing_unit_0", "__FARTHING_unit_0", "__Farthing_draw"])
def test_names_of_the_queries_are_refused_in_any_case(name: str) -> None:
    table = pyarrow.table({name: [7, 7, 7], "id": [1, 1, 2]})
    with pytest.raises(InvalidValue, match="must not start with __farthing"):
        ft.dataset(table, unit="id", max_rows=1, schema={name: (0, 10)})
    with pytest.raises(InvalidValue, match="must not start with __farthing"):
        the_rows().derive(**{name: "age"})


def test_a_header_that_repeats_a_name_in_capitals_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("Age,age\n30,1\n")
    with pytest.raises(InvalidValue, match=r"two columns of one name in its first line.*rename one"):
        ft.dataset(file, schema={"age": (0, 3)})

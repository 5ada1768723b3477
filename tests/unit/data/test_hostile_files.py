"""Files and frames that would read as something else, or fail because of a row in them."""

from __future__ import annotations

import decimal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ibis
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import farthing as ft
from farthing.data import Count, Sum
from farthing.data.csv_files import LONGEST_HEADER
from farthing.errors import FarthingError, InvalidData, InvalidValue

SECRET = "Zebulon"


def counted(file: Path, **schema: Any) -> dict[str, int]:
    found = ft.dataset(file, schema=schema or {"a": (0, 10)}).exact({"rows": Count(), "sum": Sum("a")})
    return {name: int(value) for name, value in found.items()}


def test_a_line_break_inside_a_cell_stops_no_query(tmp_path: Path) -> None:
    """One person's address on two lines made every query of the file fail."""
    file = tmp_path / "people.csv"
    file.write_text('a,b\n1,x\n2,"two\nlines"\n3,z\n')
    assert counted(file) == {"rows": 3, "sum": 6}


def test_a_short_line_is_dropped_alone(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("a,b\n1,x\n2\n3,z\n")
    assert counted(file) == {"rows": 2, "sum": 4}


def test_a_file_is_not_opened_twice_in_one_source(tmp_path: Path) -> None:
    """Every row would count twice, where one row was claimed to count once."""
    file = tmp_path / "people.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), file)
    link = tmp_path / "link.parquet"
    link.symlink_to(file)
    for source in ([file, file], [file, tmp_path / "p*.parquet"], [file, link], tmp_path / "*.parquet"):
        with pytest.raises(InvalidValue, match="must not be given twice"):
            ft.dataset(source, schema={"a": (0, 10)})


def test_a_name_with_brackets_opens_that_file_and_no_other(tmp_path: Path) -> None:
    for name, value in (("d[1]", 3), ("d1", 9)):
        pyarrow.parquet.write_table(pyarrow.table({"a": [value]}), tmp_path / f"{name}.parquet")
        (tmp_path / f"{name}.csv").write_text(f"a,b\n{value},0\n")
    assert counted(tmp_path / "d[1].parquet") == {"rows": 1, "sum": 3}
    assert counted(tmp_path / "d[1].csv") == {"rows": 1, "sum": 3}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_name_of_a_folder_does_not_stand_in_for_a_column(tmp_path: Path, ending: str) -> None:
    file = tmp_path / "a=9" / f"people.{ending}"
    file.parent.mkdir()
    if ending == "csv":
        file.write_text("a,b\n1,2\n")
    else:
        pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), file)
    assert counted(file) == {"rows": 1, "sum": 1}


def test_a_row_in_the_place_of_a_header_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text(f"{SECRET},34,flu\nBob,35,none\n")
    with pytest.raises(InvalidValue, match="first line must hold the names") as caught:
        ft.dataset(file, schema={"age": (0, 10)})
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_bytes_that_are_no_text_do_not_hang_on_to_the_refusal(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(SECRET.encode() + b"\xff,34\n")
    with pytest.raises(InvalidValue, match="must be UTF-8 text") as caught:
        ft.dataset(file, schema={"age": (0, 10)})
    assert caught.value.__context__ is caught.value.__cause__ is None


@pytest.mark.parametrize("text", ["a,b\r1,2\r2,3\r", "a," * LONGEST_HEADER])
def test_a_file_of_one_long_line_has_no_header(tmp_path: Path, text: str) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(text.encode())
    with pytest.raises(InvalidValue, match="line of column names"):
        ft.dataset(file, schema={"a": (0, 10)})


@pytest.mark.parametrize(
    ("cells", "wrapped"),
    [
        ([1.5, SECRET], False),
        ([1, 2**70], False),
        ([f"{SECRET}\ud800", "x"], False),
        ([{"a": 1}, SECRET], False),
        ([1.5, SECRET], True),
    ],
    ids=["mixed", "large", "surrogate", "nested", "ibis"],
)
def test_a_frame_that_does_not_convert_shows_no_cell(cells: list[Any], wrapped: bool) -> None:
    frame = pandas.DataFrame({"a": pandas.Series(cells, dtype=object)})
    with pytest.raises(InvalidData, match="several types") as caught:
        ft.dataset(ibis.memtable(frame) if wrapped else frame, schema={"a": (0, 10)})
    assert caught.value.__context__ is caught.value.__cause__ is None
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_type_that_the_engine_has_not_is_refused_in_our_words() -> None:
    wide = pyarrow.array([decimal.Decimal(7)], pyarrow.decimal256(60, 2))
    with pytest.raises(FarthingError, match="a type that DuckDB cannot hold") as caught:
        ft.dataset(pyarrow.table({"a": [1], "b": wide}), schema={"a": (0, 10), "b": (0, 10)})
    assert caught.value.__context__ is None


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_columns_that_nobody_declared_decide_nothing(kind: str) -> None:
    wide = pyarrow.array([decimal.Decimal(7)], pyarrow.decimal256(60, 2))
    frames: dict[str, Callable[[], Any]] = {
        "pandas": lambda: pandas.DataFrame(
            {"id": [1, 2], "a": [3, 4], "b": pandas.Series([1.5, SECRET], dtype=object)}
        ),
        "polars": lambda: polars.DataFrame({"id": [1], "a": [7], "b": polars.Series([object()], dtype=polars.Object)}),
        "arrow": lambda: pyarrow.table({"id": [1], "a": [7], "b": wide, "A": [9]}),
    }
    people = ft.dataset(frames[kind](), unit="id", max_rows=1, schema={"a": (0, 10)})
    assert people.exact({"sum": Sum("a")})["sum"] == 7


def test_a_wrong_unit_of_a_file_whose_header_is_fine_does_not_blame_the_header(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("patient,age\n1,30\n", encoding="utf-8")
    with pytest.raises(InvalidValue, match=r"^unit='someone': is not a column of the source; its header has age\."):
        ft.dataset(tmp_path / "visits.csv", unit="someone", max_rows=1, schema={"age": (0, 110)})

"""Sources: paths, globs, frames and Ibis tables are opened without reading a row; what cannot be opened says why."""

from __future__ import annotations

import datetime
import gc
import gzip
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.data import CellCounts, Count, Reals, Sum, connection, dataset
from farthing.data.engines.duckdb import default_engine, quiet
from farthing.errors import EngineError, InvalidData, InvalidValue

SCHEMA = {"sex": ["F", "M"], "age": (0, 110), "bmi": (10.0, 60.0)}
COLUMNS = {"person": [1, 2, 2], "sex": ["F", "M", "M"], "age": [30, 40, 200], "bmi": [20.0, 25.5, None]}
ROWS = "person,sex,age,bmi\n1,F,30,20.0\n2,M,40,25.5\n2,M,200,\n"


def totals(source: Any) -> tuple[int, list[int], int, int]:
    people = dataset(source, schema=SCHEMA)
    found = people.exact({"n": Count(), "sex": CellCounts("sex"), "age": Sum("age"), "bmi": Sum("bmi", grid=0.5)})
    return int(found["n"]), found["sex"].tolist(), int(found["age"]), int(found["bmi"])


EXPECTED = (3, [1, 2], 180, 91)


@pytest.mark.slow
def test_every_kind_of_source_gives_the_same_integers(tmp_path: Path) -> None:
    table = pa.table(COLUMNS)
    pq.write_table(table, tmp_path / "people.parquet")
    (tmp_path / "people.csv").write_text(ROWS, encoding="utf-8")
    (tmp_path / "semicolons.csv").write_text(ROWS.replace(",", ";"), encoding="utf-8")
    (tmp_path / "tabs.tsv").write_text("\ufeff" + ROWS.replace(",", "\t"), encoding="utf-8")
    with gzip.open(tmp_path / "people.csv.gz", "wt", encoding="utf-8") as file:
        file.write(ROWS)
    tables = connection()
    with quiet():
        own = tables.read_parquet(tmp_path / "people.parquet")
    sources = [
        tmp_path / "people.parquet", str(tmp_path / "people.csv"), tmp_path / "semicolons.csv", tmp_path / "tabs.tsv",
        tmp_path / "people.csv.gz", table, pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS), own, ibis.memtable(table),
    ]  # fmt: skip
    assert [totals(source) for source in sources] == [EXPECTED] * len(sources)


def test_a_glob_and_a_list_of_files_are_one_table(tmp_path: Path) -> None:
    for year in (2023, 2024):
        pq.write_table(pa.table(COLUMNS), tmp_path / f"{year}.parquet")
    assert totals(tmp_path / "*.parquet")[0] == 6
    assert totals([tmp_path / "2023.parquet", tmp_path / "2024.parquet"])[0] == 6


def test_no_row_is_read_when_a_dataset_is_made(tmp_path: Path) -> None:
    """The pages of the file are destroyed; its names and types are still there, and that is all that is asked for."""
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table(COLUMNS), path, compression="none")
    footer = int.from_bytes(path.read_bytes()[-8:-4], "little") + 8
    whole = path.read_bytes()
    path.write_bytes(b"PAR1" + b"\xff" * (len(whole) - footer - 4) + whole[-footer:])
    people = dataset(path, unit="person", max_rows=2, schema=SCHEMA)
    assert "SELECT" in people.where("age > 3").explain(Sum("bmi", by="sex"))
    with pytest.raises(EngineError):
        people.exact({"sum": Sum("bmi")})


def test_text_where_numbers_are_declared_is_missing_in_a_csv_file(tmp_path: Path) -> None:
    """The type of a CSV column is not guessed: one odd cell changes that cell and nothing else."""
    (tmp_path / "odd.csv").write_text(ROWS + "3,X,unknown,1e999\n4,F,nan,-inf\n5,F,7.9,x\n", encoding="utf-8")
    # ages 30 + 40 + 110 + 7; bmi 40 + 51 + 120 (clipped from infinity) + 20 half units
    assert totals(tmp_path / "odd.csv") == (6, [3, 2], 187, 231)


def test_a_malformed_line_is_dropped_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_bytes(ROWS.encode() + b"9,F,\xff\xfe\n")
    assert totals(tmp_path / "bad.csv") == EXPECTED


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder / "nothing.csv", "does not exist; check the path or the pattern"),
        (lambda folder: folder / "*.parquet", "does not exist"),
        (lambda folder: folder, "is a directory without files"),
        (
            lambda folder: "https://example.org/people.csv",
            "must be a file on this machine; download it first",
        ),
        (lambda folder: _file(folder / "people.xlsx", b"x"), "must end in one of .csv"),
        (lambda folder: _file(folder / "empty.csv", b""), "must start with a line of column names"),
        (
            lambda folder: _file(folder / "twice.csv", b"a,a\n1,2\n"),
            "must not have two columns of one name in its first line, ignoring case",
        ),
        (lambda folder: _file(folder / "bad.parquet", b"not parquet at all"), "cannot be read"),
        (lambda folder: _file(folder / "bad.csv.gz", b"not gzip"), "cannot be read"),
        (lambda folder: _file(folder / "latin.csv", b"\xff\xfe,b\n"), "must be UTF-8 text"),
        (lambda folder: _file(folder / "latin.csv", "größe\n1\n".encode("latin-1")), "save it as UTF-8"),
        (lambda folder: 42, "must be a path, a pandas, polars or Arrow table, or an Ibis table"),
    ],
)
def test_a_source_that_cannot_be_opened_says_why(tmp_path: Path, make: Any, message: str) -> None:
    with pytest.raises(InvalidValue) as refusal:
        dataset(make(tmp_path), schema=SCHEMA)
    assert message in str(refusal.value)


def test_files_with_other_columns_are_not_mixed(tmp_path: Path) -> None:
    _file(tmp_path / "a.csv", b"age,sex\n1,F\n")
    _file(tmp_path / "b.csv", b"sex,age\nF,1\n")
    with pytest.raises(InvalidValue, match=r"has other columns than a\.csv"):
        dataset(tmp_path / "*.csv", schema={"age": (0, 1)})
    pq.write_table(pa.table({"age": [1]}), tmp_path / "c.parquet")
    with pytest.raises(InvalidValue, match="must be all CSV or all Parquet"):
        dataset([tmp_path / "a.csv", tmp_path / "c.parquet"], schema={"age": (0, 1)})


@pytest.mark.parametrize(
    ("column", "domain", "fits"),
    [
        (["1", "2"], (0, 9), False),
        (["1", "2"], ["1"], True),
        ([1, 2], ["1"], False),
        ([1, 2], [1], True),
        ([1.0, 2.5], [1, 2], True),
        ([True, None], [False, True], True),
        ([True, None], bool, True),
        ([1, 0], bool, True),
        (["1", "no"], bool, True),
        ([[1]], bool, True),
        ([b"1"], bool, False),
        (["2020-01-01"], (datetime.date(2000, 1, 1), datetime.date(2025, 1, 1)), True),
        (["2,5"], Reals(0.0, 9.0, decimal=","), True),
        (["2.5"], (0.0, 9.0), False),
        ([True, False], (0, 1), False),
        ([True, False], [0, 1], False),
        ([1, 2], (0.0, 9.0), True),
        (np.array(["2020-01-01"], dtype="datetime64[s]"), (0, 9), False),
        ([b"x"], ["x"], False),
    ],
)
def test_a_wrong_type_is_refused_when_the_dataset_is_made(column: Any, domain: Any, fits: bool) -> None:
    table = pa.table({"x": column})
    if fits:
        dataset(table, schema={"x": domain})
    else:
        with pytest.raises(InvalidValue, match=r"needs a column of .*declare what the column holds"):
            dataset(table, schema={"x": domain})


def test_a_time_zone_is_refused_in_words_with_the_way_out() -> None:
    moments = pa.array([datetime.datetime(2024, 5, 6)], pa.timestamp("us", tz="Europe/Berlin"))
    days = (datetime.date(2024, 1, 1), datetime.date(2024, 12, 31))
    with pytest.raises(InvalidValue) as refusal:
        dataset(pa.table({"when": moments}), schema={"when": days})
    text = str(refusal.value)
    assert text.startswith("schema['when']='dates from 2024-01-01 to 2024-12-31': needs a column of dates")
    assert "holds timestamps with a time zone (timestamp('" in text and "Dates(" not in text
    assert "convert it in the source to dates, or to timestamps without a time zone" in text
    dataset(pa.table({"when": moments.cast(pa.timestamp("us"))}), schema={"when": days})


def test_whole_numbers_beyond_a_double_are_refused_in_columns_of_doubles() -> None:
    with pytest.raises(InvalidValue, match=r"must stay within 2\^53"):
        dataset(pa.table({"x": [1.0]}), schema={"x": (0, 2**60)})
    assert dataset(pa.table({"x": [2**60]}), schema={"x": (0, 2**60)}).exact({"s": Sum("x")})["s"] == 2**60


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"schema": {"aeg": (0, 9)}}, "is not a column of the source; did you mean 'age'"),
        ({"schema": {"age": (9, 0)}}, "lower must not exceed upper"),
        ({"schema": {"sex": ["F", "F"]}}, "must not be listed twice"),
        ({"schema": {}}, "must name at least one column"),
        ({"unit": "who", "max_rows": 1}, "is not a column of the source"),
        ({"unit": "bmi", "max_rows": 1}, "must be a column of whole numbers, text, UUIDs or dates"),
        ({"unit": "person", "max_rows": 0}, "must be a whole number from 1"),
        ({"unit": "person", "max_rows": 2.5}, "must be a whole number"),
        ({"unit": [], "max_rows": 1}, "must name one column or several"),
        ({"max_rows": 3}, "must be 1 when the unit is one row; name the unit's column"),
        ({"neighbours": "bounded"}, "must be one of add-remove, replace"),
        ({"rows": -1}, "must be a whole number >= 0"),
    ],
)
def test_a_wrong_declaration_says_the_way_out(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue) as refusal:
        dataset(pa.table(COLUMNS), **{"schema": SCHEMA, **arguments})
    assert message in str(refusal.value)


@pytest.mark.slow
def test_a_computation_on_a_table_is_not_taken_for_a_table() -> None:
    """A limit or a window lets one person's rows decide whether another's are there; no stability could be claimed."""
    with quiet():
        tables = connection()
        tables.con.register("people", pa.table(COLUMNS))
        people = tables.table("people")
    dataset(people, schema=SCHEMA)
    for computed in (people.limit(1), people.filter(people.age > 3), people.mutate(age=people.age.sum())):
        with pytest.raises(InvalidValue, match="must be a table or a view of the engine"):
            dataset(computed, schema=SCHEMA)


def test_a_mixed_column_is_refused_without_its_cells() -> None:
    secret = f"secret-{np.random.default_rng().integers(10**9)}"
    with pytest.raises(InvalidData) as refusal:
        dataset(pd.DataFrame({"age": [1, secret, 2.5]}), schema={"age": (0, 9)})
    shown = "".join(traceback.format_exception(refusal.value))
    assert secret not in shown and refusal.value.__context__ is None


@pytest.mark.slow
def test_the_rows_of_a_frame_are_let_go_with_its_datasets() -> None:
    engine = default_engine()

    def frames() -> set[str]:
        return {row[0] for row in engine.rows("SELECT view_name FROM duckdb_views() WHERE temporary AND NOT internal")}

    people = dataset(pa.table(COLUMNS), schema=SCHEMA)
    name = people._base.source.table.get_name()
    derived = people.where("age > 3")
    del people
    gc.collect()
    dataset(pa.table(COLUMNS), schema=SCHEMA)
    assert name in frames()  # the derived dataset still needs it
    assert int(derived.exact({"n": Count()})["n"]) == 3
    del derived
    gc.collect()
    dataset(pa.table(COLUMNS), schema=SCHEMA)
    assert name not in frames()


def test_a_malformed_line_may_move_a_public_count(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(ROWS, encoding="utf-8")
    assert dataset(tmp_path / "people.csv", schema=SCHEMA, neighbours="replace", rows=3).sensitivity(Count()).l1 == 1


def test_a_file_that_disappears_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table(COLUMNS), path)
    people = dataset(path, schema=SCHEMA)
    path.unlink()
    with pytest.raises(InvalidValue, match=r"'people\.parquet': cannot be read any more") as refusal:
        people.exact({"n": Count()})
    assert refusal.value.__cause__ is None and refusal.value.__context__ is None


def _file(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_file_under_two_names_is_not_read_twice(tmp_path: Path, link: Callable[..., None]) -> None:
    people, other = tmp_path / "people.csv", tmp_path / "other.csv"
    people.write_text("age\n30\n")
    link(people, other)
    for source in ([people, other], str(tmp_path / "*.csv"), [str(tmp_path / "p*.csv"), other]):
        with pytest.raises(InvalidValue, match="must not be given twice: it is the same file as"):
            dataset(source, schema={"age": (0, 110)})


def test_a_parquet_file_that_was_replaced_is_refused_before_anybody_pays(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"age": [30]}), path)
    rows = dataset(path, schema={"age": (0, 110)})
    rows.prepare()
    for table in ({"age": ["30"]}, {"size": [30]}):
        pq.write_table(pa.table(table), path)
        with pytest.raises(InvalidValue, match=r"'people\.parquet': has other columns now"):
            rows.prepare()
    path.write_bytes(b"nothing of the kind")
    for _ in range(2):
        with pytest.raises(InvalidValue, match=r"'people\.parquet': cannot be read any more"):
            rows.prepare()
        path.unlink(missing_ok=True)

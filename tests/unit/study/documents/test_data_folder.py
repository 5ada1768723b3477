"""A folder of tables: nothing outside of it is opened, and what stands in sources.toml is never shown."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.errors import EngineError, FarthingError, InvalidValue
from farthing.study.documents.data_folder import ENGINES, DataFolder
from farthing.study.documents.dataset_declaration import (
    checked_declaration,
    column_sentence,
    declared_dataset,
    schema_of,
    unit_sentence,
)

WORDS = {
    "unit": "id",
    "max_rows": 2,
    "columns": {
        "age": {"range": [0, 110]},
        "weight": {"range": [0, 300]},
        "born": {"range": ["1900-01-01", "2025-12-31"]},
        "sex": {"categories": ["F", "M"]},
        "smoker": {"flags": True},
    },
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "deep").mkdir(parents=True)
    rows = {
        "id": [1],
        "age": [30],
        "weight": [71.5],
        "born": [date(1990, 1, 1)],
        "sex": ["F"],
        "smoker": [True],
    }
    pq.write_table(pa.table(rows), folder / "people.parquet")
    (folder / "deep" / "visits.csv").write_text("cost,when\n")
    (folder / "rows.csv").write_text("41,F,12000\n42,M,13000\n")
    (folder / ".hidden.csv").write_text("a,b\n")
    (folder / "notes.txt").write_text("a,b\n")
    (tmp_path / "outside.csv").write_text("secret,b\n")
    (folder / "link.csv").symlink_to(tmp_path / "outside.csv")
    (folder / "inner.csv").symlink_to(folder / "deep" / "visits.csv")
    return folder


def test_only_tables_inside_are_listed_with_names_and_types(root: Path) -> None:
    found = {each.name: each for each in DataFolder(root).listed()}
    assert set(found) == {"people.parquet", "deep/visits.csv", "rows.csv", "inner.csv"}
    assert dict(found["people.parquet"].columns)["weight"] == "real numbers"
    pq.write_table(pa.table({"at": pa.array([0], pa.timestamp("s", tz="UTC"))}), root / "zoned.parquet")
    zoned = {each.name: each for each in DataFolder(root).listed()}["zoned.parquet"]
    assert zoned.columns == (("at", "times with a time zone"),)
    assert found["deep/visits.csv"].columns == (("cost", None), ("when", None))


def test_a_file_without_a_header_shows_nothing_of_its_first_row(root: Path) -> None:
    (rows,) = DataFolder(root).listed("rows.csv")
    assert rows.columns == () and "header" in rows.problem
    assert "12000" not in repr(rows) and str(root) not in repr(rows)


@pytest.mark.parametrize(
    "name",
    [
        "../outside.csv", "link.csv", "/etc/passwd", "deep/../../outside.csv", "", ".", "nothing.csv",
        "./people.parquet", "people.parquet/", "deep//visits.csv", "notes.txt", "*.csv", "a\x00b.csv", "s3://x/y.csv",
        "postgresql://u:p@h/d", "..\\outside.csv", "x" * 600 + ".csv", "people.parquet\n",
    ],
)  # fmt: skip
def test_what_leads_elsewhere_is_refused(root: Path, name: str) -> None:
    with pytest.raises(InvalidValue) as refusal:
        DataFolder(root).opened(name)
    assert str(root) not in str(refusal.value)


def test_a_file_is_opened_once_until_it_changes(root: Path) -> None:
    folder = DataFolder(root)
    first = folder.opened("people.parquet")
    assert folder.opened("people.parquet") is first
    os.utime(root / "people.parquet", ns=(1, 1))
    assert folder.opened("people.parquet") is not first


@pytest.mark.slow
def test_tables_of_engines_are_named_and_their_addresses_never_shown(root: Path) -> None:
    (root / ENGINES).write_text(
        '[registry]\nurl = "postgresql://u:topsecret@127.0.0.1:1/d"\ntable = "hidden_table"\n'
        '[lake]\nurl = "sc://127.0.0.1:1/;token=topsecret"\ntable = "hidden_table"\n'
    )
    folder = DataFolder(root)
    listed = {each.name: each.engine for each in folder.listed()}
    assert listed["registry"] == "postgres" and listed["lake"] == "spark"
    for name in ("registry", "lake"):
        with pytest.raises(EngineError) as refusal:
            folder.opened(name)
        said = str(refusal.value) + repr(refusal.value.__cause__) + repr(refusal.value.__context__)
        assert "topsecret" not in said and "hidden_table" not in said and "127.0.0.1" not in said


@pytest.mark.parametrize(
    "text",
    [
        '[x]\nurl = "topsecret"\ntable = "t"\n',
        '[x]\nurl = "postgresql://topsecret"\n',
        'x = "topsecret"\n',
        "[x\n",
    ],
)
def test_a_fault_in_the_list_of_engines_shows_nothing_of_it(root: Path, text: str) -> None:
    (root / ENGINES).write_text(text)
    with pytest.raises(FarthingError) as refusal:
        DataFolder(root).listed()
    assert "topsecret" not in str(refusal.value)


def test_numbers_are_as_the_file_says_unless_told(root: Path) -> None:
    folder = DataFolder(root)
    made = declared_dataset("people", WORDS, folder.opened("people.parquet"))
    kinds = {each["name"]: each["kind"] for each in schema_of(made)}
    assert kinds == {
        "age": "integers", "weight": "reals", "born": "dates", "sex": "categories", "smoker": "flags",
    }  # fmt: skip
    assert made.name == "people"  # not the file's name
    text = declared_dataset(
        "x", {"columns": {"cost": {"range": [0, 9], "real": True}}}, folder.opened("deep/visits.csv")
    )
    assert schema_of(text) == [{"name": "cost", "kind": "reals", "lower": 0.0, "upper": 9.0, "categories": None}]


def test_every_column_has_its_sentence(root: Path) -> None:
    source = DataFolder(root).opened("people.parquet")
    made = declared_dataset("people", WORDS, source)
    said = {column: column_sentence(column, made) for column in made.schema}
    assert said["age"] == "age outside 0 to 110 is moved to the nearest end; fractions are rounded down"
    assert said["weight"] == "weight outside 0 to 300 is moved to the nearest end"
    assert "before 1900-01-01" in said["born"] and "F, M; anything else" in said["sex"]
    assert unit_sentence(made).startswith("Protects everybody named by id: at most 2 rows of each")


def test_a_check_names_what_is_wrong_and_keeps_what_is_right(root: Path) -> None:
    source = DataFolder(root).opened("people.parquet")
    wrong = {**WORDS, "columns": {**WORDS["columns"], "age": {"range": [110, 0]}, "nope": {"flags": True}}}  # type: ignore[dict-item]
    found = checked_declaration("people", wrong, source)
    assert [where for where, _ in found.problems] == ["columns.age", "columns.nope"]
    assert set(found.columns) == {"weight", "born", "sex", "smoker"} and not found.unit
    unit = checked_declaration("people", {**WORDS, "max_rows": 0}, source)
    assert [where for where, _ in unit.problems] == ["max_rows"]
    whole = checked_declaration("people", {**WORDS, "max_rows": None}, source)
    assert not whole.problems and "every statistic says how much of each is used" in whole.unit


def test_a_pattern_or_a_folder_is_one_table_of_what_it_holds_today(tmp_path: Path) -> None:
    (tmp_path / "visits").mkdir()
    for month in (1, 2):
        (tmp_path / "visits" / f"2024-0{month}.csv").write_text("age\n30\n")
    folder = DataFolder(tmp_path)
    assert [each.name for each in folder.listed()] == ["visits/*.csv", "visits/2024-01.csv", "visits/2024-02.csv"]
    assert folder.listed("visits/*.csv")[0].columns == (("age", None),)
    first = folder.opened("visits/*.csv")
    assert folder.opened("visits/*.csv") is first and len(first.files) == 2
    assert len(folder.opened("visits").files) == len(folder.opened("**/2024-*.csv").files) == 2
    (tmp_path / "visits" / "2024-03.csv").write_text("age\n31\n")
    assert len(folder.opened("visits/*.csv").files) == 3
    (tmp_path / "visits" / "2024-04.csv").write_text("weight\n31\n")
    with pytest.raises(InvalidValue) as different:
        folder.opened("visits/*.csv")
    assert str(tmp_path) not in str(different.value)


def test_a_pattern_that_reaches_a_file_elsewhere_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / "data" / "visits").mkdir(parents=True)
    (tmp_path / "data" / "visits" / "2024-01.csv").write_text("age\n30\n")
    (tmp_path / "secret.csv").write_text("age\n99\n")
    (tmp_path / "data" / "visits" / "2024-02.csv").symlink_to(tmp_path / "secret.csv")
    (tmp_path / "data" / "away").symlink_to(tmp_path)
    (tmp_path / "data" / ".kept").mkdir()
    (tmp_path / "data" / ".kept" / "a.csv").write_text("age\n1\n")
    for name in ("visits/*.csv", "visits", "away/*.csv", "away", "*/*.csv", "**/*.csv", ".kept/*.csv",
                 "visits/../*.csv", "nothing/*.csv", "[", "visits/*.txt"):  # fmt: skip
        with pytest.raises(InvalidValue, match="must name a table of the data folder"):
            DataFolder(tmp_path / "data").opened(name)
    (tmp_path / "data [1]").mkdir()
    (tmp_path / "data [1]" / "a.csv").write_text("age\n1\n")
    with pytest.raises(InvalidValue, match="must name a table"):
        DataFolder(tmp_path / "data [1]").opened("*.csv")


def test_a_pattern_is_offered_for_the_first_month_and_not_if_a_file_of_it_lies_elsewhere(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "visits-01.csv").write_text("age\n3\n", encoding="utf-8")
    folder = DataFolder(root)
    assert [each.name for each in folder.listed()] == ["visits-*.csv", "visits-01.csv"]
    (tmp_path / "away.csv").write_text("age\n3\n", encoding="utf-8")
    (root / "visits-02.csv").symlink_to(tmp_path / "away.csv")
    assert [each.name for each in folder.listed()] == ["visits-01.csv"]

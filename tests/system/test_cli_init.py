"""`farthing init` writes what can be known without a row, and what it writes can be filled in and read."""

from __future__ import annotations

import datetime
import re
import secrets
import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from farthing.cli import main
from farthing.data import CellCounts, Count, Sum
from farthing.data.declaration_file import read_declaration
from farthing.errors import FarthingError, InvalidValue
from farthing.statistics.constructors import CONSTRUCTORS
from farthing.study.documents.study_file import read_study


def init(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["init", *words])
    return result.exit_code, result.output


def test_a_csv_file_gives_names_only(tmp_path: Path) -> None:
    secret = secrets.token_hex(8)
    (tmp_path / "people.csv").write_text(f'name,"the ""age""",Größe\n{secret},1,2\n', encoding="utf-8")
    code, printed = init(str(tmp_path / "people.csv"), "--out", str(tmp_path / "study.toml"))
    assert code == 0 and "3 columns" in printed and "from their names; no row was read" in printed
    written = (tmp_path / "study.toml").read_text(encoding="utf-8")
    assert secret not in written + printed
    facts = tomllib.loads(written)
    assert facts["dataset"] == {"source": "people.csv", "neighbours": "add-remove"}
    assert facts["schema"] == {"name": {}, 'the "age"': {}, "Größe": {}}


def test_one_column_is_not_several(tmp_path: Path) -> None:
    (tmp_path / "ages.csv").write_text("age\n")
    code, printed = init(str(tmp_path / "ages.csv"), "--out", str(tmp_path / "study.toml"))
    assert code == 0 and re.search(r": 1 column of .*, from its name; no row was read", printed)


def test_a_csv_file_is_not_read_beyond_its_header(tmp_path: Path) -> None:
    """The rows are no text at all: whoever reads them, even ahead, fails."""
    (tmp_path / "people.csv").write_bytes(b"sex,age\n" + bytes(range(128, 256)) * 1000)
    assert init(str(tmp_path / "people.csv"), "--out", str(tmp_path / "study.toml"))[0] == 0


def test_a_time_zone_is_no_date_and_two_columns_of_one_name_have_a_header(tmp_path: Path) -> None:
    moment = pa.array([datetime.datetime(2024, 1, 1)], pa.timestamp("us", tz="UTC"))
    pq.write_table(pa.table({"at": moment, "day": moment.cast(pa.timestamp("us"))}), tmp_path / "tz.parquet")
    assert init(str(tmp_path / "tz.parquet"), "--out", str(tmp_path / "study.toml"))[0] == 0
    written = (tmp_path / "study.toml").read_text(encoding="utf-8").splitlines()
    at, day = (line for line in written if line.startswith(("at =", "day =")))
    assert at.startswith("at = { }  # times with a time zone, which no statistic can use: convert it to dates")
    assert day.startswith("day = { range = [] }  # dates")
    (tmp_path / "twice.csv").write_text("id,age,AGE\n1,2,3\n")
    code, printed = init(str(tmp_path / "twice.csv"), "--out", str(tmp_path / "twice.toml"))
    assert code == 2 and "rename one of the two" in printed and "(age and AGE are the same)" in printed


def test_parquet_gives_types_and_not_the_statistics_in_its_footer(tmp_path: Path) -> None:
    table = pa.table(
        {
            "person_id": [910_111], "age": [910_222], "bmi": [910_333.5], "sex": ["canary"], "smoker": [True],
            "day": [datetime.date(2020, 1, 1)], "codes": [["x"]], "raw": [b"x"],
        }
    )  # fmt: skip
    pq.write_table(table, tmp_path / "people.parquet")
    code, printed = init(str(tmp_path / "people.parquet"), "--out", str(tmp_path / "study.toml"))
    written = (tmp_path / "study.toml").read_text(encoding="utf-8")
    assert code == 0 and "names and types" in printed
    assert "910" not in written and "canary" not in written
    assert '# unit = "person_id"' in written
    assert tomllib.loads(written)["schema"] == {
        "person_id": {"range": []}, "age": {"range": []}, "bmi": {"range": []}, "sex": {"categories": []},
        "smoker": {"flags": True}, "day": {"range": []}, "codes": {"categories": []}, "raw": {},
    }  # fmt: skip
    with pytest.raises(InvalidValue, match=r"schema\.person_id=.*must be filled in; write \{ range"):
        read_declaration(tmp_path / "study.toml")
    hints = dict(re.findall(r"^(\w+) = \{.*# .*; or (\{ unknown = .* \})$", written, re.MULTILINE))
    unknown = {"bmi": "number", "age": "whole number", "day": "date", "sex": "text"}
    for name, kind in unknown.items():
        assert hints[name] == f'{{ unknown = "{kind}" }}'
    lines = (f"{name} = {hints[name]}" for name in unknown)
    (tmp_path / "study.toml").write_text("\n".join(['[dataset]\nsource = "people.parquet"\n[schema]', *lines]))
    declared = read_declaration(tmp_path / "study.toml").unknown
    assert {name: one.kind for name, one in declared.items()} == unknown


@pytest.mark.slow
def test_the_file_can_be_filled_in_and_used(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("person,sex,age,day\n1,F,30,2020-02-01\n1,M,40,\n2,F,50,x\n", encoding="utf-8")
    init(str(tmp_path / "people.csv"), "--out", str(tmp_path / "study.toml"))
    written = (tmp_path / "study.toml").read_text(encoding="utf-8")
    lines = [line for line in written.splitlines() if not line.startswith("person =")]
    filled = "\n".join(lines)
    for before, after in (
        ('# unit = "person"', 'unit = "person"'),
        ("# max_rows = 1", "max_rows = 2"),
        ("sex = { }", 'sex = { categories = ["F", "M"] }'),
        ("age = { }", "age = { range = [0, 110] }"),
        ("day = { }", "day = { range = [2020-01-01, 2020-12-31] }"),
    ):
        assert before in filled
        filled = filled.replace(before, after)
    (tmp_path / "study.toml").write_text(filled, encoding="utf-8")
    people = read_declaration(tmp_path / "study.toml")
    found = people.exact({"sex": CellCounts("sex"), "age": Sum("age"), "day": Count("day")})
    assert found["sex"].tolist() == [2, 1] and found["age"] == 120 and found["day"] == 1
    assert people.rows_per_unit == 2


def test_an_older_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("a\n1\n", encoding="utf-8")
    (tmp_path / "study.toml").write_text("mine", encoding="utf-8")
    code, printed = init(str(tmp_path / "people.csv"), "--out", str(tmp_path / "study.toml"))
    assert code == 2 and "exists already; choose another name with --out" in printed
    assert (tmp_path / "study.toml").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("name", ["nothing.csv", "people.xlsx", "no/such/folder.csv"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    code, printed = init(str(tmp_path / name), "--out", str(tmp_path / "study.toml"))
    assert code == 2 and "Error: source=" in printed
    assert not (tmp_path / "study.toml").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "dataset=None: must be a table of the file"),
        ("[dataset]\nsource = 'a.csv'\n", "schema=None: must be a table"),
        (
            "[dataset]\nsource = 'a.csv'\nepsilon = 1\n[schema]\nx = {flags = true}",
            "dataset.epsilon=1: is not known",
        ),
        ("[dataset]\nrows = 3\n[schema]\nx = {flags = true}", "dataset.source=None: must be given"),
        ("[dataset]\nsource = 'a.csv'\n[schema]\nx = 3", "must have exactly one kind"),
        ("[dataset]\nsource = 'a.csv'\n[schema]\nx = {range = [1]}", "must be a list of two bounds"),
        ("[dataset]\nsource = 'a.csv'\n[schema]\nx = {range = 110}", "must be a list of two bounds"),
        ("[dataset]\nsource = 'a.csv'\n[schema]\nx = {range = [2, 1]}", "lower must not exceed upper"),
        ("[dataset\n", "is not valid TOML"),
    ],
)
def test_a_file_with_a_fault_says_where(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n", encoding="utf-8")
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    with pytest.raises(FarthingError) as refusal:
        read_declaration(tmp_path / "study.toml")
    assert message in str(refusal.value)


@pytest.mark.parametrize("first", ["Zebulon,34,flu", "Zebulon,1.5", "Zebulon,x\ty\x1b", f"Zebulon,{'x' * 300}"])
def test_a_row_in_the_place_of_a_header_is_neither_written_nor_shown(tmp_path: Path, first: str) -> None:
    (tmp_path / "people.csv").write_text(f"{first}\n{first}\n")
    code, printed = init(str(tmp_path / "people.csv"), "--out", str(tmp_path / "study.toml"))
    assert code == 2 and "Zebulon" not in printed
    assert not (tmp_path / "study.toml").exists()


@pytest.mark.parametrize("names", [["a", "a"], ["a", "A"], ["", "a"], []])
def test_columns_that_no_dataset_can_name_are_refused(tmp_path: Path, names: list[str]) -> None:
    pq.write_table(pa.table([[1]] * len(names), names=names), tmp_path / "people.parquet")
    code, printed = init(str(tmp_path / "people.parquet"), "--out", str(tmp_path / "study.toml"))
    assert code == 2 and "each once" in printed
    assert not (tmp_path / "study.toml").exists()


def test_a_file_name_in_any_characters_is_quoted_or_refused(tmp_path: Path) -> None:
    for name in ('odd\x7f\n"name.csv', "caf\udce9.csv"):
        (tmp_path / name).write_text("sex,age\nF,1\n")
    code, _ = init(str(tmp_path / 'odd\x7f\n"name.csv'), "--out", str(tmp_path / "study.toml"))
    assert code == 0
    facts = tomllib.loads((tmp_path / "study.toml").read_text())
    assert facts["dataset"]["source"] == 'odd\x7f\n"name.csv'
    code, printed = init(str(tmp_path / "caf\udce9.csv"), "--out", str(tmp_path / "other.toml"))
    assert code == 2 and "must have a name that is text" in printed
    assert not (tmp_path / "other.toml").exists()


@pytest.mark.slow
def test_the_file_becomes_a_study_when_the_budget_is_filled_in(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("sex,age\nF,30\nM,40\n", encoding="utf-8")
    study = tmp_path / "study.toml"
    _, printed = init(str(tmp_path / "people.csv"), "--out", str(study))
    assert f"Then: farthing plan {study}" in printed
    written = study.read_text(encoding="utf-8")
    facts = tomllib.loads(written)
    assert facts["study"] == {"ledger": "study.db"} and facts["statistics"] == [{"kind": "count"}]
    with pytest.raises(InvalidValue, match=r"study\.epsilon=None: must be given; write epsilon = 1.0 under"):
        read_study(study)
    for before, after in (
        ("# epsilon =", "epsilon ="), ("sex = { }", 'sex = { categories = ["F", "M"] }'), ("# sex =", "sex ="),
        ("age = { }", "age = { range = [0, 110] }"), ("# [[statistics]]", "[[statistics]]"), ("# kind", "kind"),
        ("# column", "column"), ("# by", "by"),
        ('# where = "age >= 18"\n# within', 'where = "age >= 18"\n# within'), ("# bins", "bins"),
        ("# weight", "weight"),
        ("# rows = 1000\n# age", "rows = 1000\nage"), ("# delta", "delta"), ("# within = 0.5", "within = 9.5"),
        ("# probability", "probability"),
    ):  # fmt: skip
        assert before in written
        written = written.replace(before, after)
    study.write_text(written, encoding="utf-8")
    plan = read_study(study).plan()
    assert [one.name for one in plan.statistics] == [
        "count", "mean of age where age >= 18 by sex", "histogram of age", "0.9-quantile of age",
        "ranges of age",
    ]  # fmt: skip
    assert plan["mean of age where age >= 18 by sex"].error() <= 9.5


def test_every_kind_of_statistic_is_named(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age\n", encoding="utf-8")
    init(str(tmp_path / "people.csv"), "--out", str(tmp_path / "study.toml"))
    kinds = (tmp_path / "study.toml").read_text(encoding="utf-8").split("# Kinds:")[1].split("[[")[0]
    assert all(kind in re.findall(r"\w+", kinds) for kind in CONSTRUCTORS)


def test_an_account_that_renews_is_written_down(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("person,admitted\n")
    file, out = str(tmp_path / "visits.csv"), str(tmp_path / "study.toml")
    assert init(file, "--out", out, "--renews", "month")[0] == 2
    assert init(file, "--out", out, "--renews", "month", "--date", "day")[0] == 2
    assert init(file, "--out", out, "--renews", "moon", "--date", "admitted")[0] == 2
    assert init(file, "--out", out, "--renews", "month", "--date", "admitted")[0] == 0
    text = (tmp_path / "study.toml").read_text(encoding="utf-8")
    assert '\nrenews = "month"\ndate = "admitted"\n' in text


def test_several_files_are_linked_by_the_names_of_their_columns(tmp_path: Path) -> None:
    secret = secrets.token_hex(8)
    heads = {"people": "person_id,sex", "Visits 2024": "id,personId,ward", "visit_drugs": "visit_id,drug", "x": "a,b"}
    for name, head in heads.items():
        (tmp_path / f"{name}.csv").write_text(f"{head}\n{secret},{secret},{secret}\n")
    paths = [str(tmp_path / f"{name}.csv") for name in heads]
    code, printed = init(*paths[:1], *paths[2:], "--out", str(tmp_path / "other.toml"))
    assert code == 0
    facts = tomllib.loads((tmp_path / "other.toml").read_text())
    assert facts["keys"] == {} and facts["dataset"]["unit"] == "people.person_id"
    (tmp_path / "visits.csv").write_text("visit_id,person_id,ward\n1,1,A\n")
    code, printed = init(paths[0], str(tmp_path / "visits.csv"), paths[2], "--out", str(tmp_path / "study.toml"))
    assert code == 0 and "7 columns" in printed and "no row was read" in printed
    written = (tmp_path / "study.toml").read_text()
    assert secret not in written + printed
    facts = tomllib.loads(written)
    assert facts["keys"] == {"visits.person_id": "people.person_id", "visit_drugs.visit_id": "visits.visit_id"}
    assert facts["dataset"] == {"table": "visit_drugs", "unit": "people.person_id", "neighbours": "add-remove"}
    assert facts["tables"]["visits"] == {"source": "visits.csv", "schema": {"ward": {}}}
    filled = written.replace("= { }", '= { categories = ["A", "B"] }').replace("# max_rows = 1", "max_rows = 2")
    filled = filled.replace("# epsilon", "epsilon").replace(
        '# [[steps]]\n# join = "people"', '[[steps]]\njoin = "people"'
    )
    (tmp_path / "study.toml").write_text(filled)
    study = read_study(tmp_path / "study.toml")
    assert list(study.dataset.schema) == ["drug", "sex"] and study.dataset.rows_per_unit == 2
    assert init(*paths, "--renews", "month", "--date", "ward", "--out", str(tmp_path / "third.toml"))[0] == 2

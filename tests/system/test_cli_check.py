"""`farthing check`: the steward is told what does not fit, and nobody else can ask."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import farthing
from farthing.cli import main
from farthing.cli.init_command import study_text
from farthing.data.steward_check import NOT_PRIVATE

ROWS = """person,age,bmi,sex,day,smoker,note
1,30,"20,5",F,2020-01-01,1,x
1,300,"21,0",f,2020-02-30,0,"two
lines"
1,-4,1.000, M ,1999-01-01,yes,
2,abc,,X,,maybe,
,41,"500,0",X,2030-01-01,0,
3,12
"""
SCHEMA = """
age = { range = [0, 110] }
bmi = { range = [10.0, 60.0], decimal = "," }
sex = { categories = ["F", "M"] }
day = { range = [2000-01-01, 2025-12-31] }
smoker = { flags = true }
"""


def study(folder: Path, source: str, unit: str = 'unit = "person"\nmax_rows = 2') -> str:
    file = folder / "study.toml"
    file.write_text(f'[dataset]\nsource = "{source}"\n{unit}\n[schema]{SCHEMA}', encoding="utf-8")
    return str(file)


def checked(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["check", *words])
    return result.exit_code, result.output


@pytest.mark.slow
def test_the_steward_is_told_what_does_not_fit(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(ROWS, encoding="utf-8")
    code, printed = checked(study(tmp_path, "people.csv"))
    assert code == 0
    lines = printed.splitlines()
    assert lines[0] == NOT_PRIVATE and lines[0].startswith("NOT PRIVATE")
    assert "people.csv: 5 rows are read, all quotes close; 1 line is dropped: blank, too short" in printed
    assert "  people.csv: 1 line with too few cells (the first is line 8): dropped" in lines
    assert "unit person: 2 units, the largest has 3 rows" in printed
    assert "max_rows = 2 keeps 75.0% of the rows; 3 would keep 100%\n" in printed
    assert "1 (20%) names no unit and is dropped" in printed
    for line in (
        "age, whole numbers from 0 to 110: 1 (20%) unreadable, so missing: 'abc' (1); 1 (20%) below, clipped; "
        "1 (20%) above, clipped",
        "bmi, numbers from 10 to 60, decimal ',': 1 (20%) missing; 1 (20%) unreadable, so missing: "
        "'1.000' (1); 1 (20%) above, clipped",
        "sex, one of 'F', 'M': 4 (80%) not listed: 'X' (2), ' M ' (1), 'f' (1) "
        "(trim and lower would read some of them)",
        "1 (20%) missing; 1 (20%) unreadable, so missing: '2020-02-30' (1); 1 (20%) below, clipped; "
        "1 (20%) above, clipped",
        "smoker, yes or no: 1 (20%) unreadable, so missing: 'maybe' (1)",
    ):
        assert line in printed


@pytest.mark.slow
def test_json_says_the_same_and_first_that_it_is_not_private(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(ROWS, encoding="utf-8")
    code, printed = checked(study(tmp_path, "people.csv"), "--json")
    found = json.loads(printed)
    assert code == 0 and next(iter(found.items())) == ("not_private", NOT_PRIVATE)
    assert found["rows"] == 5 and found["unit"]["keeps"] == [[0.95, 3], [0.99, 3], [1.0, 3]]
    ages = found["columns"][0]
    assert (ages["unread"], ages["below"], ages["above"], ages["examples"]) == (1, 1, 1, [["abc", 1]])


def test_a_quote_that_does_not_close_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(ROWS + '4,1,"2\n5,1,2,F,,,\n', encoding="utf-8")
    code, printed = checked(study(tmp_path, "people.csv"))
    assert code == 1 and printed.startswith("NOT PRIVATE")
    assert "people.csv, line 9: a quote is never closed. The file is refused" in printed
    code, printed = checked(study(tmp_path, "people.csv"), "--json")
    found = json.loads(printed)
    assert code == 1 and found["ok"] is False and found["files"][0]["line"] == 9 and found["rows"] is None


@pytest.mark.slow
def test_parquet_and_one_row_as_a_unit(tmp_path: Path) -> None:
    days = ["2020-01-01"] * 4
    table = {
        "age": [1, 2, 3, None],
        "bmi": ["1,0"] * 4,
        "sex": ["F"] * 4,
        "day": days,
        "smoker": [0, 1, 2, None],
    }
    pq.write_table(pa.table(table), tmp_path / "people.parquet")
    code, printed = checked(study(tmp_path, "people.parquet", unit=""))
    assert code == 0 and "unit" not in printed.replace("the unit", "")
    assert "age, whole numbers from 0 to 110: 1 (25%) missing" in printed
    assert "sex, one of 'F', 'M': every cell fits" in printed
    assert "smoker, yes or no: 1 (25%) missing; 1 (25%) unreadable, so missing: '2' (1)" in printed


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_fraction_that_whole_numbers_lose_is_told(tmp_path: Path, kind: str) -> None:
    table = pa.table({"pay": [1.5, 2.0, None, 900.25], "age": [1, 2, 3, 4], "cost": [0.5, 0.5, 0.5, 0.5]})
    write = pq.write_table if kind == "parquet" else pa.csv.write_csv
    write(table, tmp_path / f"people.{kind}")
    (tmp_path / "study.toml").write_text(
        f'[dataset]\nsource = "people.{kind}"\n[schema]\npay = {{ range = [0, 100] }}\n'
        "age = { range = [0, 110] }\ncost = { range = [0.0, 9.0] }\n",
        encoding="utf-8",
    )
    code, printed = checked(str(tmp_path / "study.toml"))
    assert code == 0
    assert (
        "pay, whole numbers from 0 to 100: 1 (25%) missing; 1 (25%) above, clipped; 1 (25%) with a fraction, "
        "rounded down; bounds with a point, such as 0.0, keep it" in printed
    )
    assert "age, whole numbers from 0 to 110: every cell fits" in printed
    assert "cost, numbers from 0 to 9: every cell fits" in printed


@pytest.mark.slow
def test_a_table_without_rows_is_checked_too(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(ROWS.splitlines()[0] + "\n", encoding="utf-8")
    code, printed = checked(study(tmp_path, "people.csv"))
    assert code == 0 and "people.csv: 0 rows are read, all quotes close." in printed


def test_a_wrong_declaration_is_refused(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("a\n1\n", encoding="utf-8")
    code, printed = checked(study(tmp_path, "people.csv"))
    assert code == 2 and "is not a column of the source" in printed


def test_nothing_but_the_command_line_imports_the_check() -> None:
    """A server that had it could be asked for it."""
    package = Path(farthing.__file__).parent
    importers = {
        str(file.relative_to(package))
        for file in package.rglob("*.py")
        if "farthing.data.steward_check" in file.read_text(encoding="utf-8")
        or "from farthing.data import check" in file.read_text(encoding="utf-8")
    }
    assert importers == {"data/__init__.py", "cli/study_commands.py", "cli/terminal.py"}


@pytest.mark.parametrize(
    ("names", "unit", "why"),
    [
        (["age", "sex"], '# unit = "..."', "No column is proposed"),
        (["valid", "idle", "monkey"], '# unit = "..."', "No column is proposed"),
        (
            ["order_id", "Patient_No"],
            '# unit = "Patient_No"',
            'By its name, "Patient_No" may say whose row it is',
        ),
        (["visit_id", "age"], '# unit = "visit_id"', "or only number the rows"),
        (["personID", "userName"], '# unit = "personID"', 'So may "userName".'),
        (["id\nx", "a"], '# unit = "id\\nx"', "or only number the rows"),
    ],
)
def test_a_unit_is_proposed_for_its_name_or_not_at_all(names: list[str], unit: str, why: str) -> None:
    text = study_text("people.csv", [(name, None) for name in names])
    assert unit in text.splitlines() and why in text
    assert all(line.startswith("#") for line in text.splitlines() if "By its name" in line or "proposed" in line)


@pytest.mark.slow
def test_lines_with_too_many_cells_are_told_apart_from_those_with_too_few(tmp_path: Path) -> None:
    """Cells beyond the last column were cut without a word."""
    text = 'age,sex\n30,F\n31,M,more\n\n32\n"3\n3",F,,\n34,F,'
    (tmp_path / "people.csv").write_text(text, encoding="utf-8")
    (tmp_path / "study.toml").write_text('[dataset]\nsource = "people.csv"\n[schema]\nage = { range = [0, 110] }\n')
    _, printed = checked(str(tmp_path / "study.toml"))
    assert "people.csv: 1 line with too few cells (the first is line 5): dropped" in printed
    assert "people.csv: 3 lines with too many cells (the first is line 3): what is beyond" in printed
    found = json.loads(checked(str(tmp_path / "study.toml"), "--json")[1])["files"][0]
    assert (found["short"], found["short_line"], found["long"], found["long_line"]) == (1, 5, 3, 3)


@pytest.mark.slow
def test_check_and_release_say_whose_people_a_copy_holds(tmp_path: Path) -> None:
    table = pa.table({"who": list(range(300)), "age": [number % 90 for number in range(300)]})
    pq.write_table(table, tmp_path / "visits.parquet")
    pyarrow.csv.write_csv(table, tmp_path / "copy.csv")
    for name, source in (("study", "visits.parquet"), ("copy", "copy.csv")):
        (tmp_path / f"{name}.toml").write_text(
            f'[dataset]\nsource = "{source}"\nunit = "who"\nmax_rows = 1\n[schema]\nage = {{ range = [0, 110] }}\n'
            '[study]\nepsilon = 1.0\nledger = "study.db"\nplan_epsilon = 0.1\n[[statistics]]\nkind = "count"\n',
            encoding="utf-8",
        )
    copy, run = str(tmp_path / "copy.toml"), CliRunner().invoke
    assert json.loads(run(main, ["check", copy, "--json"]).stdout)["same_people"] == []
    assert "same people" not in run(main, ["release", str(tmp_path / "study.toml"), "--yes"]).stderr
    assert "the same people, let that account pay: account='visits.parquet'" in run(main, ["check", copy]).stdout
    (told,) = json.loads(run(main, ["check", copy, "--json"]).stdout)["same_people"]
    assert (told["account"], told["share"]) == ("visits.parquet", 1.0)
    refused = run(main, ["release", copy, "--yes"])
    assert refused.exit_code == 2 and 'account = "visits.parquet" under [study]' in refused.stderr
    released = run(main, ["release", copy, "--yes", "--account", "copy.csv"])
    assert released.exit_code == 0 and "account='visits.parquet'" in released.stderr
    assert "this release opens the account 'copy.csv' (protects who, add-remove" in released.stderr
    assert "visits.parquet" not in released.stdout


LINKED = """[dataset]
table = "drugs"
unit = "persons.person"
[tables.persons]
source = "persons.csv"
schema = { sex = { categories = ["F", "M"] } }
[tables.visits]
source = "visits.csv"
max_rows = 3
schema = { ward = { categories = ["A"] } }
[tables.drugs]
source = "drugs.csv"
max_rows = 4
schema = { drug = { categories = ["x"] } }
[keys]
"visits.person" = "persons.person"
"drugs.visit" = "visits.visit"
"""


@pytest.mark.slow
def test_rows_that_lead_nowhere_are_told_from_rows_that_lead_to_two_people(tmp_path: Path) -> None:
    """Visit 11 is of two people, no visit is called 99, and one drug names no visit."""
    (tmp_path / "persons.csv").write_text("person,sex\n1,F\n2,M\n", encoding="utf-8")
    (tmp_path / "visits.csv").write_text("visit,person,ward\n10,1,A\n11,1,A\n11,2,A\n12,2,A\n", encoding="utf-8")
    visits = ("10", "11", "11", "11", "12", "99", "")
    (tmp_path / "drugs.csv").write_text("visit,drug\n" + "".join(f"{visit},x\n" for visit in visits), encoding="utf-8")
    file = tmp_path / "study.toml"
    file.write_text(LINKED, encoding="utf-8")
    code, printed = checked(str(file))
    assert code == 0 and "unit person: 2 units, the largest has 1 row" in printed
    assert "2 (29%) lead to no unit (a key is missing, or no row has it) and are dropped" in printed
    assert "3 (43%) lead to several units (rows of different units have one key) and are dropped" in printed
    unit = json.loads(checked(str(file), "--json")[1])["unit"]
    assert (unit["without"], unit["shared"]) == (2, 3)

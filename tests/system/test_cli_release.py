"""`farthing release`: asked before spending, answered once, and written where it was asked for."""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from farthing.cli import main
from farthing.cli import terminal as spending
from farthing.ledger import Receipt, open_ledger
from farthing.study.documents.study_file import read_study
from study_people import table

STUDY = """\
[dataset]
source = "people.parquet"
[schema]
sex = { categories = ["F", "M"] }
age = { range = [0, 110] }
[study]
epsilon = 1.0
plan_epsilon = 0.5
ledger = "study.db"
name = "people"
[expected]
rows = 400
[[statistics]]
kind = "count"
by = "sex"
[[statistics]]
kind = "mean"
column = "age"
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    pq.write_table(table(), tmp_path / "people.parquet")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    return tmp_path / "study.toml"


def run(study: Path, *words: str, said: str | None = None) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(main, ["release", str(study), *words], input=said)


def spent(study: Path) -> tuple[int, float]:
    with open_ledger(study.parent / "study.db") as ledger:
        if "people" not in ledger.datasets():  # what only plans writes no budget
            return 0, 0.0
        budget = ledger.budget("people")
        return budget.count, budget.spent_upper


@pytest.mark.slow
def test_a_release_is_printed_and_charged_once(study: Path) -> None:
    first = run(study, "--yes")
    assert first.exit_code == 0, first.output
    assert "count by sex" in first.stdout and "spent: epsilon 0.5 of '" in first.stdout
    again = run(study)  # no question: nothing is spent
    assert again.exit_code == 0 and "Answered from the ledger" in again.stdout
    assert "paid before: epsilon 0.5" in again.stdout and "spent: epsilon" not in again.stdout
    answers = [line for line in first.stdout.splitlines() if "±" in line]
    assert answers and all(line in again.stdout for line in answers)
    count, upper = spent(study)
    assert count == 1 and upper <= 0.5


@pytest.mark.slow
def test_everything_is_written_where_it_was_asked_for(study: Path) -> None:
    names = {name: study.parent / name for name in ("report.html", "table.csv", "receipt.json")}
    result = run(
        study, "--yes", "--json", "--report", str(names["report.html"]), "--csv", str(names["table.csv"]),
        "--receipt", str(names["receipt.json"]), "--request-id", "mine",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["request_id"] == "mine" and [one["name"] for one in told["answers"]] == [
        "count by sex",
        "mean of age",
    ]
    page = names["report.html"].read_text(encoding="utf-8")
    assert "What it means" in page and "source = &quot;people.parquet&quot;" in page
    with names["table.csv"].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["cell"] for row in rows] == ["F", "M", ""]
    assert all(float(row["lower"]) <= float(row["value"]) <= float(row["upper"]) for row in rows)
    with open_ledger(study.parent / "study.db") as ledger:
        assert ledger.verify(Receipt.from_json(names["receipt.json"].read_text())).ok


@pytest.mark.slow
def test_a_new_request_id_draws_anew_and_pays_again(study: Path) -> None:
    assert run(study, "--yes").exit_code == 0
    assert run(study, "--yes", "--request-id", "second").exit_code == 0
    count, upper = spent(study)
    assert count == 2 and 0.999 < upper <= 1.0
    third = run(study, "--yes", "--request-id", "third")
    assert third.exit_code == 2 and "left" in third.stderr
    assert spent(study)[0] == 2


@pytest.mark.slow
def test_where_nobody_can_be_asked_yes_must_be_said(study: Path) -> None:
    result = run(study)
    assert result.exit_code == 2 and "there is no terminal to ask on; add --yes." in result.stderr
    assert "This will spend epsilon 0.5 of the 1 left for 'people', for good." in result.stdout
    assert sorted(os.listdir(study.parent)) == ["people.parquet", "study.toml"]  # no ledger is left behind
    assert spent(study)[0] == 0


@pytest.mark.parametrize("words", [("count",), ("synth", "-o", "made.csv"), ("ask", "age > 30", "--alpha", "0.3")])
def test_no_command_that_nobody_agreed_to_leaves_a_ledger_behind(
    study: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    command, *rest = words
    monkeypatch.chdir(study.parent)
    result = CliRunner().invoke(main, [command, str(study), *rest])
    assert result.exit_code == 2 and "add --yes." in result.stderr
    assert sorted(os.listdir(study.parent)) == ["people.parquet", "study.toml"]


@pytest.mark.slow
def test_json_for_a_program_does_not_spend_without_a_word(study: Path) -> None:
    result = run(study, "--json")
    assert result.exit_code == 2 and not result.stdout and "add --yes." in result.stderr
    assert "This will spend epsilon 0.5 of the 1 left" in result.stderr and spent(study)[0] == 0
    assert json.loads(run(study, "--json", "--yes").stdout)["plan"]["cost"]["upper"] <= 0.5
    again = run(study, "--json")  # which spends nothing
    assert again.exit_code == 0 and json.loads(again.stdout)["answers"] and spent(study)[0] == 1


@pytest.mark.slow
def test_another_text_that_asks_for_the_same_is_answered_from_the_ledger(study: Path) -> None:
    first = run(study, "--yes")
    study.write_text("# a remark\n" + study.read_text())
    plan = CliRunner(env={"COLUMNS": "120"}).invoke(main, ["plan", str(study)])
    assert "It was released before, for epsilon 0.5" in " ".join(plan.stdout.split())
    assert "farthing release --fresh draws new noise" in " ".join(plan.stdout.split())
    again = run(study)
    assert again.exit_code == 0 and "Answered from the ledger" in again.stdout, again.output
    assert next(line for line in first.stdout.splitlines() if "±" in line) in again.stdout
    assert spent(study)[0] == 1


@pytest.mark.slow
def test_what_an_earlier_version_released_is_still_found(study: Path) -> None:
    """It was named by the text of its file."""
    asked = read_study(study)
    opened = asked.study()
    asked.plan(opened).release(asked.request_id)
    opened.close()
    again = run(study)
    assert again.exit_code == 0 and "Answered from the ledger" in again.stdout and spent(study)[0] == 1


@pytest.mark.slow
def test_fresh_draws_anew_and_pays_again(study: Path) -> None:
    assert run(study, "--yes").exit_code == 0
    asked = run(study, "--fresh")
    assert asked.exit_code == 2 and "This will spend epsilon 0.5 of the 0.5 left" in asked.stdout
    assert run(study, "--fresh", "--yes").exit_code == 0
    assert spent(study)[0] == 2
    assert "Answered from the ledger" in run(study).stdout
    assert run(study, "--fresh", "--yes").exit_code == 2 and spent(study)[0] == 2


@pytest.mark.slow
@pytest.mark.parametrize(("said", "code", "charged"), [("y\n", 0, 1), ("n\n", 1, 0), ("\n", 1, 0)])
def test_a_person_is_asked(study: Path, monkeypatch: pytest.MonkeyPatch, said: str, code: int, charged: int) -> None:
    monkeypatch.setattr(spending, "somebody_is_there", lambda: True)
    result = run(study, said=said)
    assert result.exit_code == code and "Release?" in result.stdout
    assert ("Nothing was spent." in result.stdout) == (charged == 0)
    assert spent(study)[0] == charged


WRONG = STUDY.replace("[0, 110]", "[0, 9]").replace('"F", "M"', '"female", "male"')


@pytest.mark.slow
@pytest.mark.parametrize(("said", "code", "charged"), [("k\nn\n", 1, 0), ("k\nyes\n", 0, 1), ("what\nK\n\n", 1, 0)])
def test_a_steward_who_is_asked_can_see_first_what_does_not_fit(
    study: Path, monkeypatch: pytest.MonkeyPatch, said: str, code: int, charged: int
) -> None:
    """Ages in other units and categories in another spelling were paid for in full before anybody noticed."""
    study.write_text(WRONG, encoding="utf-8")
    monkeypatch.setattr(spending, "somebody_is_there", lambda: True)
    result = run(study, said=said)
    assert result.exit_code == code and spent(study)[0] == charged, result.output
    questions = re.findall(r"Release\? \[.*?\]", result.stdout)
    assert (questions[0], questions[-1]) == ("Release? [y/N/k]", "Release? [y/N]")
    assert "NOT PRIVATE" in result.stderr and "100%) not listed" in result.stderr and "above, clipped" in result.stderr
    assert "NOT PRIVATE" not in result.stdout and "not listed" not in result.stdout


@pytest.mark.slow
def test_an_analyst_is_not_shown_what_does_not_fit(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study.write_text(STUDY, encoding="utf-8")
    assert run(study, "--yes").exit_code == 0
    with open_ledger(study.parent / "study.db") as ledger:
        ledger.grant("people", "bob", 0.4)
    study.write_text(WRONG.replace('name = "people"', 'name = "people"\nanalyst = "bob"').replace("0.5", "0.4"))
    monkeypatch.setattr(spending, "somebody_is_there", lambda: True)
    result = run(study, said="k\nn\n")
    assert result.exit_code == 1 and "Release? [y/N]" in result.stdout, result.output
    assert "NOT PRIVATE" not in result.output and "fit" not in result.output and spent(study)[0] == 1


@pytest.mark.slow
def test_whoever_is_not_asked_is_reminded_of_the_check_once(study: Path) -> None:
    reminder = f"farthing check {study} shows beforehand what does not fit"
    assert reminder in run(study, "--yes").stderr
    assert "check" not in run(study, "--yes").stderr and "check" not in run(study, "--yes", "--fresh").stderr


@pytest.mark.parametrize("option", ["--report", "--csv", "--receipt"])
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_spent(study: Path, option: str) -> None:
    result = run(study, "--yes", option, str(study.parent / "no" / "such" / "place"))
    assert result.exit_code == 2 and "cannot be written" in result.stderr
    assert not (study.parent / "study.db").exists()


@pytest.mark.slow
def test_a_changed_budget_names_the_command_that_changes_it(study: Path) -> None:
    assert run(study, "--yes").exit_code == 0
    study.write_text(STUDY.replace("epsilon = 1.0", "epsilon = 2.0"), encoding="utf-8")
    result = run(study, "--yes")
    assert result.exit_code == 2 and re.search(r"farthing ledger budget set \S+ people --epsilon 2", result.stderr)
    assert spent(study)[0] == 1


def test_a_refused_release_leaves_no_empty_files(study: Path) -> None:
    result = run(study, "--report", str(study.parent / "report.html"))
    assert result.exit_code == 2
    assert not (study.parent / "report.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("width", ["90", "160"])
def test_the_ledger_shows_what_was_released_and_for_which_unit(study: Path, width: str) -> None:
    assert run(study, "--yes").exit_code == 0
    place = str(study.parent / "study.db")
    told = CliRunner(env={"COLUMNS": width}).invoke(main, ["ledger", "show", place]).stdout
    words = " ".join(told.split())
    assert "count by sex" in words and "mean of" in words and "row, add-remove" in words
    data = json.loads(CliRunner().invoke(main, ["ledger", "show", place, "--json"]).stdout)
    assert data["last"][-1]["released"] == "count by sex, mean of age"
    assert data["budgets"][0]["unit"] == "row, add-remove" and data["last"][0]["released"] is None


@pytest.mark.slow
def test_a_table_that_was_replaced_is_told_with_both_ways_on(study: Path) -> None:
    """Last month's numbers are last month's: the stored answers come back, and the note is in nothing that is kept."""
    first = run(study, "--yes", "--json")
    people = study.parent / "people.parquet"
    before = people.stat()
    assert "Note" not in run(study, "--yes").stderr
    os.utime(people)  # written again as it was
    assert "Note" not in run(study, "--yes").stderr
    pq.write_table(table().slice(1), people)
    os.utime(people, ns=(before.st_atime_ns, before.st_mtime_ns))
    again = run(study, "--json")
    assert "has changed since" in again.stderr and f"farthing release {study} --fresh" in again.stderr
    assert json.loads(again.stdout)["answers"] == json.loads(first.stdout)["answers"]
    assert "changed" not in again.stdout and spent(study)[0] == 1
    report = study.parent / "report.html"
    fresh = run(study, "--fresh", "--yes", "--title", "of May", "--report", str(report), "--with-version")
    assert fresh.exit_code == 0 and "Note" not in fresh.stderr and spent(study)[0] == 2
    assert "version 1 of people.parquet" in again.stderr and "version" not in again.stdout + fresh.stdout
    assert "computed from version 2 of people.parquet" in fresh.stderr + report.read_text(encoding="utf-8")
    # The new answers by the same command, the old ones by their name.
    assert "Note" not in run(study).stderr
    old = json.loads(run(study, "--json", "--request-id", json.loads(first.stdout)["request_id"]).stdout)
    assert old["answers"] == json.loads(first.stdout)["answers"] and spent(study)[0] == 2
    place = str(study.parent / "study.db")
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(main, ["ledger", "show", place]).stdout
    assert re.search(r"of May +count by sex, mean of age +row, add-remove +2 of people.parquet", shown)
    listed = json.loads(CliRunner().invoke(main, ["ledger", "show", place, "--json"]).stdout)["releases"]
    assert [(one["title"], one["version"]["number"]) for one in listed] == [
        ("count by sex, mean of age", 1),
        ("of May", 2),
    ]


UNKNOWN = STUDY.replace("[expected]\nrows = 400\n", "").replace("plan_epsilon = 0.5\n", "")


@pytest.mark.slow
def test_rows_that_nobody_knows_are_counted_first_and_planned_again(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The count is one charge, the release another; what the second plan says is for what was counted."""
    study.write_text(UNKNOWN, encoding="utf-8")
    monkeypatch.setattr(spending, "somebody_is_there", lambda: True)
    stopped = run(study, said="c\nn\n")
    assert stopped.exit_code == 1 and spent(study) == (1, pytest.approx(0.02))
    first, second = stopped.stdout.split("The plan for what is left:")
    assert first.startswith("the error of mean of age is for an assumed size") and "epsilon 0.02" in first
    assert "the low end of what was counted" in second and "assumed size" not in second
    assert "of the 0.98 left for 'people'" in second
    done = run(study, said="y\n")  # what was counted is not counted again
    assert done.exit_code == 0 and spent(study)[0] == 2, done.output
    counted = CliRunner().invoke(main, ["count", str(study), "--json"])
    told = json.loads(counted.stdout)
    assert told["spent_now"] == 0 and told["epsilon"] == pytest.approx(0.02) and spent(study)[0] == 2
    assert told["lower"] < told["rows"] < told["upper"] and abs(told["rows"] - 400) < 2_000


@pytest.mark.slow
def test_without_a_question_rows_are_counted_only_where_that_was_asked_for(study: Path) -> None:
    study.write_text(UNKNOWN, encoding="utf-8")
    refused = CliRunner().invoke(main, ["count", str(study)])
    assert refused.exit_code == 2 and "--yes" in refused.stderr and spent(study) == (0, 0.0)
    both = run(study, "--yes", "--json", "--count-first", "--share", "0.1")
    assert both.exit_code == 0 and spent(study)[0] == 2, both.output
    plan = json.loads(both.stdout)["plan"]
    assert plan["assumed_rows"] is None and plan["counted"]["lower"] <= plan["counted"]["rows"]
    assert "rows: " in both.stderr and "low end of what was counted" in both.stderr
    study.write_text(UNKNOWN.replace("study.db", "other.db"), encoding="utf-8")
    alone = run(study, "--yes", "--json")
    assert alone.exit_code == 0, alone.output
    assert "note: the error of mean of age is for an assumed size" in alone.stderr
    assert json.loads(alone.stdout)["plan"]["assumed_rows"] == 10_000


@pytest.mark.slow
def test_different_values_are_released_and_named(tmp_path: Path) -> None:
    """At epsilon 100 the number is wrong with less than one in 10^9."""
    pq.write_table(table().append_column("who", [list(range(400))]), tmp_path / "people.parquet")
    words = STUDY.replace('"people.parquet"', '"people.parquet"\nunit = "who"\nmax_rows = 3').split("plan_epsilon")[0]
    words = words.replace("epsilon = 1.0", "epsilon = 100.0") + 'ledger = "study.db"\nname = "people"\n'
    asked = '[[statistics]]\nkind = "count_distinct"\ncolumn = "sex"\n'
    few = '[[statistics]]\nkind = "count_distinct"\ncolumn = "age"\nmax_cells = 2\nname = "ages"\n'
    study = tmp_path / "study.toml"
    study.write_text(words + asked + few, encoding="utf-8")
    found, page = tmp_path / "table.csv", tmp_path / "report.html"
    said = run(study, "--yes", "--csv", str(found), "--report", str(page))
    assert said.exit_code == 0, said.output
    with found.open(newline="") as file:
        rows = {row["statistic"]: row for row in csv.DictReader(file)}
    sexes, ages = rows["number of different values of sex"], rows["ages"]
    assert (float(sexes["value"]), sexes["counts"]) == (2.0, "different values")
    assert ages["counts"] == "different values (at most 2 of each who)"
    assert ages["counts"] in page.read_text(encoding="utf-8") and ages["counts"] in said.stdout

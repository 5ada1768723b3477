"""A study.toml whose table is split: planned and released part by part, for what one part may cost."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from farthing.cli import main
from farthing.ledger import open_ledger

STUDY = """\
[dataset]
source = "people.csv"
[schema]
region = { categories = ["north", "south"] }
age = { range = [0, 110] }
[study]
epsilon = 1.0
ledger = "study.db"
account = "people"
split = { by = "region", epsilon = 0.5 }
title = "table 4"
[expected]
rows = 40
[[statistics]]
kind = "count"
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("region,age\n" + "north,30\nsouth,41\n" * 40)
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    return tmp_path / "study.toml"


def run(*words: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "180"}).invoke(main, list(map(str, words)))


def spent(study: Path) -> float:
    with open_ledger(study.parent / "study.db") as ledger:
        return ledger.budget("people").spent_upper


@pytest.mark.slow
def test_parts_are_planned_and_released_for_what_one_of_them_may_cost(study: Path) -> None:
    planned = run("plan", study)
    assert planned.exit_code == 0, planned.output
    assert "2 disjoint parts, each with epsilon 0.5: all of them together cost epsilon 0.5." in planned.output
    assert "The same holds for each of the 2 parts: north, south." in planned.output
    assert "what all parts by region may cost is charged to 'people' once" in " ".join(planned.output.split())
    assert not (study.parent / "study.db").exists()  # nothing was spent, nothing was written
    table = study.parent / "table.csv"
    first = run("release", study, "--yes", "--csv", table)
    assert first.exit_code == 0, first.output
    assert "region = north" in first.stdout and "region = south" in first.stdout and spent(study) == 0.5
    assert "spent: epsilon 0.5 from the part north; nothing more of 'people'" in first.stdout
    assert [row["part"] for row in csv.DictReader(table.read_text().splitlines())] == ["north", "south"]
    again = run("release", study, "--json")  # no question: it was paid for
    assert again.exit_code == 0, again.output
    assert list(json.loads(again.stdout)["parts"]) == ["north", "south"] and spent(study) == 0.5
    shown = json.loads(run("plan", study, "--json").stdout)
    assert shown["division"]["paid"] and set(shown["parts"]) == {"north", "south"}
    ledger = run("ledger", "show", study.parent / "study.db").stdout
    assert "people: divided by region into 2 disjoint parts of epsilon 0.5; for all of them together" in ledger
    one, other = [line.split() for line in ledger.splitlines() if "table 4" in line and "people / region" in line]
    assert one[-2] != other[-2] and one[-2].startswith("plan-") and one[-1] == other[-1] == "0.5"
    assert "disjoint parts by region: north, south" in ledger and "table 4" in ledger
    accounts = run("ledger", "accounts", study.parent / "study.db").stdout
    assert "people / region = north" in accounts and "a part of people, which has paid for it" in accounts


def test_one_part_is_released_like_a_study_and_the_rest_is_refused_with_a_way_out(study: Path) -> None:
    for words in (("--report", "r.html"), ("--request-id", "mine"), ("--count-first",)):
        refused = run("release", study, "--yes", *words)
        assert refused.exit_code == 2 and "there are 2 parts; name one" in refused.output
    for command in (("count", study), ("synth", study, "--plan"), ("requests", "submit", study, "--purpose", "x")):
        refused = run(*command)
        assert refused.exit_code == 2 and "is for farthing plan and farthing release" in refused.output
    study.write_text(STUDY.replace("epsilon = 0.5", 'epsilon = 0.5, part = "east"'), encoding="utf-8")
    assert "there are: north, south" in run("plan", study).output
    study.write_text(STUDY.replace("epsilon = 0.5", 'epsilon = 0.5, part = "north"'), encoding="utf-8")
    outside = study.with_name("outside.toml")
    outside.write_text(STUDY.replace("title =", 'part = "north"\ntitle ='), encoding="utf-8")
    refused = " ".join(run("plan", outside).output.split())
    assert 'belongs inside split; write split = { by = "region", epsilon = 0.5, part = "north" }' in refused
    report = study.parent / "r.html"
    released = run("release", study, "--yes", "--report", report)
    assert released.exit_code == 0, released.output
    assert "region = south" not in released.output and "table 4" in report.read_text() and spent(study) == 0.5
    assert "version 1 of people.csv" in released.stderr and "version 1" not in report.read_text() + released.stdout
    study.write_text(STUDY.replace("epsilon = 0.5", "epsilon = 0.8"), encoding="utf-8")
    for command in ("plan", "release"):  # another partition, which does not fit any more
        assert "exceeds the 0.5 left of the budget of 'people'" in run(command, study).output
    study.write_text(STUDY.replace("by =", "of ="), encoding="utf-8")
    assert "write split = { by" in run("plan", study).output


@pytest.mark.slow
def test_a_changed_table_is_divided_and_charged_again_only_if_that_is_asked_for(study: Path) -> None:
    study.write_text(STUDY.replace("epsilon = 0.5", "epsilon = 0.3"), encoding="utf-8")
    first = run("release", study, "--yes", "--json")
    with (study.parent / "people.csv").open("a") as file:
        file.write("north,50\n")
    again = run("release", study, "--yes", "--json")
    assert again.exit_code == 0 and "has changed since" in again.stderr and spent(study) == 0.3
    values = [json.loads(each.stdout)["parts"]["north"]["answers"] for each in (first, again)]
    assert values[0] == values[1]
    assert "without --fresh, a release returns the answers from before" in run("plan", study).stderr
    study.write_text(study.read_text() + '[[statistics]]\nkind = "mean"\ncolumn = "age"\n', encoding="utf-8")
    other = run("release", study, "--yes")  # nothing to return
    assert other.exit_code == 2 and "--fresh divides the table as it is now" in " ".join(other.output.split())
    assert spent(study) == 0.3
    fresh = run("release", study, "--yes", "--fresh")
    assert fresh.exit_code == 0 and "is divided again" in fresh.stderr and spent(study) == 0.6
    after = run("release", study, "--yes")
    assert after.exit_code == 0 and "nothing was spent now" in after.stdout and spent(study) == 0.6

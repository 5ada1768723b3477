"""`farthing ask`: a session is confirmed and charged once, and a stream of conditions is answered line by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import farthing as ft
from farthing.cli import main
from farthing.cli import terminal as spending
from farthing.ledger import open_ledger
from farthing.study.documents.study_file import read_study

ROWS = 3_000
STUDY = """\
[dataset]
source = "people.parquet"
[schema]
sex = { categories = ["F", "M"] }
age = { range = [0, 39] }
bmi = { range = [10.0, 50.0] }
[study]
epsilon = 1.0
ledger = "study.db"
name = "people"
"""
WORDS = ("--alpha", "0.1", "--queries", "50", "--columns", "sex,age")
KNOWN = (*WORDS, "--rows", str(ROWS))


@pytest.fixture
def study(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    columns = {
        "sex": np.where(rng.random(ROWS) < 0.9, "F", "M"),
        "age": rng.integers(0, 40, ROWS),
        "bmi": rng.uniform(10, 50, ROWS),
    }
    pq.write_table(pa.table(columns), tmp_path / "people.parquet")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    return tmp_path / "study.toml"


def run(study: Path, *words: str, said: str | None = None) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(main, ["ask", str(study), *words], input=said)


def spent(study: Path) -> tuple[int, float]:
    with open_ledger(study.parent / "study.db") as ledger:
        assert ledger.verify().ok
        if "people" not in ledger.datasets():  # what only plans writes no budget
            return 0, 0.0
        budget = ledger.budget("people")
        return budget.count, budget.spent_upper


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.slow
def test_conditions_are_answered_one_by_one_and_bad_ones_are_refused_on_the_way(study: Path) -> None:
    result = run(study, *KNOWN, "--yes", "age < 20", "height > 3", "sex = 'M' and age >= 30")
    assert result.exit_code == 2 and "there is no column 'height'" in result.stderr
    answers = [line for line in result.stdout.splitlines() if "±" in line]
    assert len(answers) == 2 and answers[1].endswith("left: sex = 'M' and age >= 30")
    assert "updates left after this call; 95 times in 100 every answer to 50 questions" in result.stdout
    assert "estimate" not in result.stdout
    assert 0.99 < spent(study)[1] <= 1.0


@pytest.mark.slow
def test_a_stream_of_lines_is_answered_as_json(study: Path) -> None:
    asked = "# the young\n\nage < 20\nage <\nage < 20\n"
    result = run(study, *KNOWN, "--yes", "--json", said=asked)
    assert result.exit_code == 2
    first, bad, again = lines(result)
    assert set(first) == {"question", "value", "error", "fraction", "paid", "updates_left"}
    assert abs(first["value"] - ROWS / 2) < 2 * first["error"] and first["fraction"] == first["value"] / ROWS
    assert bad["question"] == "age <" and "ends too early" in bad["refused"]
    assert again["value"] == first["value"]


@pytest.mark.slow
def test_the_same_words_spend_nothing_more_and_another_session_is_refused(study: Path) -> None:
    assert run(study, *KNOWN, "--yes", "age < 20").exit_code == 0
    before = spent(study)
    again = run(study, *KNOWN, "age < 20")  # nobody is asked: nothing is spent
    assert again.exit_code == 0, again.output
    after = spent(study)
    assert after == before and again.stdout.splitlines()[0] in run(study, *KNOWN, "--answers").stdout
    other = run(study, *KNOWN, "--yes", "--session", "other", "age < 20")
    assert other.exit_code == 2 and "nothing is left" in other.stderr
    assert spent(study) == after


@pytest.mark.slow
def test_updates_that_run_out_leave_estimates_and_say_so(study: Path) -> None:
    words = (*KNOWN, "--updates", "1")
    first = run(study, *words, "--yes", "age < 20")
    assert first.exit_code == 0 and "0 of 1 updates left after this call" in first.stdout
    found = lines(run(study, *words, "--json", said="age = 39\nage = 38\n"))
    assert [(line["error"], line["updates_left"]) for line in found] == [(None, 0)] * 2
    text = run(study, *words, said="age = 39\nage = 38\n")
    assert text.exit_code == 2 and text.stderr.count("used up") == 1
    assert text.stdout.count("(an estimate)") == 2
    assert text.stdout.endswith("0 of 1 updates left after this call; 2 lines are estimates, without a promise.\n")
    assert "--answers lists them" in text.stderr and "estimate()" not in text.stderr
    assert spent(study)[0] <= 3  # the session, its one round, and what was free


@pytest.mark.slow
def test_a_plan_spends_nothing(study: Path) -> None:
    shown = run(study, *KNOWN, "--plan")
    assert shown.exit_code == 0 and "query session over 80 cells" in shown.stdout
    plan = json.loads(run(study, *KNOWN, "--plan", "--json").stdout)
    assert plan["cells"] == 80 and plan["rows"] == ROWS
    guessed = run(study, *WORDS, "--plan")
    assert guessed.exit_code == 0 and "about 10,000 rows" in guessed.stdout
    assert "10,000 rows are assumed" in guessed.stdout and "--rows N" in guessed.stdout
    unknown = run(study, *KNOWN, "--plan", "--known", "nope")
    assert unknown.exit_code == 2 and "known='nope': must be that of a release" in unknown.stderr
    study.write_text(STUDY + "[expected]\nrows = 2500\n", encoding="utf-8")
    assert json.loads(run(study, *WORDS, "--plan", "--json").stdout)["rows"] == 2500
    assert spent(study) == (0, 0.0)


@pytest.mark.slow
def test_what_a_session_has_is_shown_without_asking(study: Path) -> None:
    words = (*KNOWN, "--updates", "2", "--epsilon", "0.9")
    assert "no session" in run(study, *words, "--answers").stderr
    opened = read_study(study, statistics=False).study()
    opened.plan(ft.count(), epsilon=0.1).release("monday")
    opened.close()
    words = (*words, "--known", "monday")
    assert "known before      monday" in run(study, *words, "--plan").stdout
    found = lines(run(study, *words, "--yes", "--json", "sex = 'M'"))
    before = spent(study)
    listed = run(study, *words, "--answers")
    assert listed.exit_code == 0 and f"{found[0]['value']:,} ±" in listed.stdout
    plan = json.loads(run(study, *words, "--plan", "--json").stdout)
    assert plan["opened"] and plan["updates_left"] == 1 and plan["known"] == ["monday"]
    assert "is paid for; 1 of its 2 updates are left" in run(study, *words, "--plan").stdout
    assert spent(study) == before


def test_where_nobody_can_be_asked_yes_must_be_said(study: Path) -> None:
    result = run(study, *KNOWN, "age < 20")
    assert result.exit_code == 2 and "there is no terminal to ask on; add --yes." in result.stderr
    assert "This will spend epsilon 1 of the 1 left for 'people', for good." in result.stdout
    assert spent(study) == (0, 0.0)


@pytest.mark.slow
def test_a_person_is_asked_and_then_prompted(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spending, "somebody_is_there", lambda: True)
    monkeypatch.setattr("farthing.cli.ask_command.somebody_is_there", lambda: True)
    no = run(study, *WORDS, said="n\n")
    assert no.exit_code == 1 and "Nothing was spent." in no.stdout and spent(study)[0] == 0
    assert "a hundredth of epsilon goes into counting" in no.stdout
    yes = run(study, *WORDS, said="y\nage < 20\n")
    assert yes.exit_code == 0 and "? 1," in yes.stdout, yes.output
    count, upper = spent(study)
    assert count >= 3 and 0.98 < upper <= 1.0  # the rows, the session, a round


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (("--alpha", "0.1"), "cut it into cells, --bins bmi=20, or leave it out: --columns A,B"),
        (("--alpha", "0.1", "--bins", "bmi"), "must be COLUMN=N or COLUMN=EDGE"),
        (("--alpha", "x", "--columns", "age"), "alpha"),
        (("--alpha", "0.1", "--columns", "height"), "must be a column of the schema"),
        (("--alpha", "0.00001", "--columns", "age", "--rows", "3000"), "must be at least"),
        (("--alpha", "0.9", "--columns", "age", "--rows", "3"), "no alpha below 1 can be kept"),
    ],
)
def test_what_cannot_be_opened_is_refused(study: Path, words: tuple[str, ...], rule: str) -> None:
    result = run(study, *words, "--yes", "age < 20")
    assert result.exit_code == 2 and rule in result.stderr, result.output


@pytest.mark.slow
def test_columns_can_be_cut(study: Path) -> None:
    words = ("--alpha", "0.2", "--columns", "bmi", "--bins", "bmi=20,30,40.5", "--rows", str(ROWS))
    result = run(study, *words, "--yes", "--json", "bmi < 30")
    assert result.exit_code == 0, result.output
    assert abs(lines(result)[0]["value"] - ROWS / 2) <= 0.3 * ROWS


def test_a_guaranteed_session_is_planned_and_resumed_on_the_command_line(study: Path) -> None:
    words = ("--alpha", "guaranteed", "--queries", "10", "--columns", "sex,age", "--rows", str(ROWS))
    shown = run(study, *words, "--plan")
    assert shown.exit_code == 0 and "no questions use up the updates before 10 are answered" in shown.output
    assert "caution" not in shown.output
    costs = []
    for _ in range(2):
        asked = run(study, *words, "--yes", "age < 20", "sex = 'F'")
        assert asked.exit_code == 0, asked.output
        costs.append(spent(study)[1])
    assert costs[0] == costs[1] <= 1

"""`farthing sql`: a statement is explained, confirmed, charged once and shown as rows; the prompt takes many."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from farthing.cli import main, sql_command, terminal
from farthing.cli.sql_prompt import Completer, history_file, is_complete
from farthing.ledger import open_ledger
from farthing.study.documents.study_file import read_study
from sql_people import people_table

pytestmark = pytest.mark.slow

STUDY = """\
[dataset]
source = "people.parquet"
rows = 3_000
[schema]
sex = { categories = ["F", "M"] }
age = { range = [0, 110] }
[study]
epsilon = 1.0
ledger = "study.db"
account = "people"
"""
STATEMENT = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY sex"


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pq.write_table(people_table(), tmp_path / "people.parquet")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "study.toml"


def run(study: Path, *words: str, said: str | None = None) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(main, ["sql", str(study), *words], input=said)


def spent(study: Path) -> float:
    if not (study.parent / "study.db").exists():
        return 0.0
    with open_ledger(study.parent / "study.db") as ledger:
        return float(ledger.budget("people").spent.upper) if "people" in ledger.datasets() else 0.0


def test_a_statement_is_released_once(study: Path) -> None:
    first = run(study, STATEMENT, "--epsilon", "0.5", "--yes")
    assert first.exit_code == 0, first.output
    assert "sex  n (95%)" in first.output and "spent: epsilon 0.5 of 'people'" in first.output
    again = run(study, STATEMENT, "--epsilon", "0.5")
    assert "paid before: epsilon 0.5" in again.output
    assert again.stdout.splitlines()[:4] == first.stdout.splitlines()[:4]
    assert 0.49 < spent(study) <= 0.5
    assert run(study, STATEMENT, "--epsilon", "0.5", "--fresh", "--yes").exit_code == 0
    assert 0.99 < spent(study) <= 1.0


def test_explain_spends_nothing_and_makes_no_ledger(study: Path) -> None:
    for words in ((STATEMENT, "--explain"), (f"EXPLAIN {STATEMENT}",)):
        shown = run(study, *words)
        assert shown.exit_code == 0 and "SQL that the engine would run" in shown.output
    assert not (study.parent / "study.db").exists()


def test_a_refusal_shows_its_place_and_makes_no_ledger(study: Path) -> None:
    refused = run(study, "SELECT sex, MAX(age) FROM people GROUP BY sex", "--yes")
    assert refused.exit_code == 2
    assert "SQL, line 1, column 13: the greatest value is one person's" in refused.output
    assert not (study.parent / "study.db").exists()


def test_nobody_spends_without_being_asked(study: Path) -> None:
    refused = run(study, STATEMENT)
    assert refused.exit_code == 2 and "there is no terminal to ask on" in refused.output
    assert spent(study) == 0


def test_rows_are_written_and_printed_with_their_errors(study: Path) -> None:
    table = study.parent / "rows.csv"
    shown = run(study, "-", "--yes", "--json", "--csv", str(table), said=STATEMENT)
    assert shown.exit_code == 0, shown.output
    facts = json.loads(shown.stdout)
    assert facts["tables"][0]["columns"] == ["sex", "n", "n_error", "n_lower", "n_upper"]
    assert facts["receipt"] and facts["request_id"]
    assert table.read_text(encoding="utf-8").splitlines()[0] == "sex,n,n_error,n_lower,n_upper"
    assert "n_error" in run(study, STATEMENT, "--errors").output


def test_the_prompt_plans_asks_and_goes_on(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (terminal, sql_command):
        monkeypatch.setattr(module, "somebody_is_there", lambda: True)
    lines = [
        "\\d",
        "\\budget",
        "\\epsilon 0.25",
        "\\what",
        "SELECT MAX(age) FROM people;",
        "EXPLAIN SELECT COUNT(*) FROM people WHERE age < 18;",
        "SELECT COUNT(*) AS n",
        "FROM people WHERE age < 18;",
        "n",
        "SELECT COUNT(*) AS n FROM people WHERE age < 18;",
        "y",
        "SELECT COUNT(*) AS n FROM people WHERE age < 18;",
        "\\q",
    ]
    shown = run(study, said="\n".join(lines) + "\n")
    assert shown.exit_code == 0, shown.output
    for words in (
        "Each statement may use epsilon 0.1.",
        "age: 0 to 110",
        "1 of epsilon 1 is left",
        "Each statement may use epsilon 0.25.",
        "A statement ends with a semicolon.",
        "the greatest value is one person's",
        "SQL that the engine would run",
        "Nothing was spent.",
        "spent: epsilon 0.25",
        "paid before: epsilon 0.25",
    ):
        assert words in shown.output, words
    assert 0.24 < spent(study) <= 0.25


def test_completion_knows_columns_categories_and_keywords(study: Path) -> None:
    opened = read_study(study, statistics=False).study()
    complete = Completer.of(opened)
    assert complete.matches("ag") == ["age"]
    assert complete.matches("'") == ["'F'", "'M'"]
    assert complete.matches("sel") == ["select"] and complete.matches("SEL") == ["SELECT"]
    assert complete("peop", 0) == "people" and complete("peop", 1) is None
    opened.close()


def test_the_history_is_its_authors_own(study: Path) -> None:
    assert history_file() == study.parent / "state" / "farthing" / "sql_history"


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT COUNT(*) FROM people;", True),
        ("SELECT COUNT(*) FROM people", False),
        ("SELECT COUNT(*) FROM people WHERE sex = ';", False),
        ("SELECT COUNT(*) FROM people WHERE sex = ';' ;  ", True),
        ("SELECT COUNT(*) -- it's;\nFROM people;", True),
        ("SELECT COUNT(*) -- ;", False),
    ],
)
def test_a_statement_is_complete_at_its_semicolon(text: str, complete: bool) -> None:
    assert is_complete(text) is complete

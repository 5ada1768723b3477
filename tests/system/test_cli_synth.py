"""`farthing synth`: shown before it is spent, made once, written where it was asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from farthing.cli import main
from farthing.cli import terminal as spending
from farthing.curator import curator
from farthing.ledger import open_ledger
from study_people import table

STUDY = """\
[dataset]
source = "people.parquet"
[schema]
sex = { categories = ["F", "M"] }
age = { range = [0, 110] }
[study]
epsilon = 4.0
delta = 1e-6
ledger = "study.db"
name = "people"
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    pq.write_table(table(), tmp_path / "people.parquet")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    return tmp_path / "study.toml"


def run(study: Path, *words: str, said: str | None = None) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(main, ["synth", str(study), *words], input=said)


def spent(study: Path) -> tuple[int, float]:
    with open_ledger(study.parent / "study.db") as ledger:
        if "people" not in ledger.datasets():  # what only plans writes no budget
            return 0, 0.0
        budget = ledger.budget("people")
        return budget.count, budget.spent_upper


@pytest.mark.slow
def test_a_table_is_made_once_and_written_again_for_nothing(study: Path) -> None:
    first, second = study.parent / "one.parquet", study.parent / "two.parquet"
    page = study.parent / "quality.html"
    made = run(study, "-o", str(first), "--yes", "--report", str(page), "--bins", "age=10")
    assert made.exit_code == 0, made.output
    assert "verdict" in made.stdout and "spent: epsilon 3.9" in made.stdout and "request synthesis-" in made.stdout
    assert page.read_text().startswith("<!DOCTYPE html>")
    again = run(study, "-o", str(second), "--bins", "age=10")  # no question: nothing is spent
    assert again.exit_code == 0 and "nothing was spent now" in again.stdout
    assert "paid before: epsilon 3.9" in again.stdout and "spent: epsilon" not in again.stdout
    assert pq.read_table(first).equals(pq.read_table(second))
    few = run(study, "-o", str(study.parent / "few.csv"), "--rows", "7", "--bins", "age=10", "--json")
    assert json.loads(few.stdout)["rows"] == 7
    assert len((study.parent / "few.csv").read_text().splitlines()) == 8
    name = json.loads(few.stdout)["request_id"]
    shown = run(study, "--plan", "--request-id", name)
    assert shown.exit_code == 0 and f"request {name} exists: epsilon 3.9" in shown.stdout
    for words in (["--columns", "sex"], ["--epsilon", "0.5", "--bins", "age=10"]):
        for how in ("--plan", "--yes"):
            other = run(study, "-o", str(second), "--request-id", name, *words, how)
            assert other.exit_code == 2 and "charged before for something else" in other.output
    count, upper = spent(study)
    assert count == 1 and upper <= 4.0


@pytest.mark.slow
def test_it_is_shown_first_and_nothing_is_spent_without_a_yes(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run(study, "--plan")
    assert shown.exit_code == 0 and "nothing is spent yet" in shown.stdout
    assert json.loads(run(study, "--plan", "--json", "--columns", "sex").stdout)["columns"][0]["name"] == "sex"
    output = ["-o", str(study.parent / "rows.parquet")]
    alone = run(study, *output)
    assert alone.exit_code == 2 and "add --yes" in alone.output
    monkeypatch.setattr(spending, "somebody_is_there", lambda: True)
    refused = run(study, *output, said="n\n")
    assert refused.exit_code == 1 and "Nothing was spent" in refused.output
    assert not (study.parent / "rows.parquet").exists()
    assert spent(study) == (0, 0.0)


@pytest.mark.slow
def test_ctrl_c_after_the_charge_says_what_it_cost(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(curator, "run_apart", interrupted)
    stopped = run(study, "-o", str(study.parent / "a.csv"), "--columns", "sex", "--epsilon", "0.5", "--yes")
    assert stopped.exit_code == 130 and "interrupted" in stopped.stderr
    assert "was charged for request" in stopped.stderr and "stays spent" in stopped.stderr
    assert spent(study)[0] == 1


@pytest.mark.slow
def test_a_table_of_noise_comes_with_a_warning(study: Path) -> None:
    made = run(study, "-o", str(study.parent / "a.csv"), "--columns", "sex", "--epsilon", "0.0005", "--json", "--yes")
    assert made.exit_code == 0 and "WARNING: not one column of this table is good" in made.stderr
    assert json.loads(made.stdout)["warnings"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "-o synthetic.parquet"),
        (["-o", "nowhere/rows.parquet"], "cannot be written"),
        (["-o", "rows.xlsx"], "must end in .parquet or .csv"),
        (["-o", "rows.parquet", "--columns", "name"], "free text cannot be made up"),
        (["-o", "rows.parquet", "--bins", "age"], "COLUMN=N"),
        (["-o", "rows.parquet", "--bins", "age=often"], "numbers or dates"),
        (["-o", "rows.parquet", "--rows", "many"], "rows"),
        (["-o", "rows.parquet", "--epsilon", "9"], "exceeds"),
        (["-o", "rows.parquet", "--known", "none"], "request_id"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_spent(
    study: Path, words: list[str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(study.parent)
    result = run(study, *words, "--yes")
    assert result.exit_code == 2 and told in result.output
    assert not (study.parent / "rows.parquet").exists()
    if (study.parent / "study.db").exists():
        assert spent(study) == (0, 0.0)

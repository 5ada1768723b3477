"""`farthing series`: shown and confirmed first, released once a period, and the same when it is called again."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from farthing.cli import main
from farthing.ledger import open_ledger

STUDY = """\
[dataset]
source = "visits.parquet"
[schema]
day = { range = [2024-01-01, 2026-12-31] }
region = { categories = ["north", "south"] }
[study]
epsilon = 1.0
delta = 1e-9
ledger = "study.db"
name = "visits"
"""
WORDS = ("--date", "day", "--first", "2025-01", "--steps", "3", "--by", "region", "--append-only")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    days = [date(2025, month, 3) for month in (1, 2, 3) for _ in range(2_000)]
    pq.write_table(pa.table({"day": days, "region": ["north", "south"] * 3_000}), tmp_path / "visits.parquet")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    return tmp_path / "study.toml"


def run(study: Path, *words: str, said: str | None = None) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(main, ["series", str(study), *words], input=said)


@pytest.mark.slow
def test_a_plan_is_free_a_refusal_too_and_steps_are_released_once(study: Path) -> None:
    shown = run(study, *WORDS, "--plan")
    assert shown.exit_code == 0, shown.output
    assert "for all steps together" in shown.stdout and "as long as rows are only added" in shown.stdout
    assert json.loads(run(study, *WORDS, "--plan", "--json").stdout)["periods"] == ["2025-01", "2025-02", "2025-03"]
    assert run(study, *WORDS, said="n\n").exit_code in (1, 2)
    first = run(study, *WORDS, "--until", "2025-02", "--yes")
    assert first.exit_code == 0, first.output
    assert "note: the protection rests on rows only being added since the series began; that is not" in first.stdout
    assert "2025-02  (new)" in first.stdout and "next: 2025-03" in first.stdout
    second = [json.loads(line) for line in run(study, *WORDS, "--json").stdout.splitlines()]
    assert [(step["period"], step["new"]) for step in second] == [
        ("2025-01", False),
        ("2025-02", False),
        ("2025-03", True),
    ]
    assert "all periods are released" in run(study, *WORDS).stdout
    refused = run(study, *WORDS, "--session", " x")
    assert refused.exit_code == 2 and "--session" in refused.output
    with open_ledger(study.parent / "study.db") as ledger:
        assert ledger.budget("visits").spent_upper <= 1.0


@pytest.mark.slow
def test_a_second_series_of_the_same_months_is_refused_unless_it_is_named(study: Path) -> None:
    first = run(study, *WORDS, "--epsilon", "0.3", "--until", "2025-01", "--yes")
    assert "spent: epsilon 0.3; left 0.7" in first.stdout, first.output
    assert "paid before: epsilon 0.3; left 0.7" in run(study, *WORDS, "--epsilon", "0.3", "--yes").stdout
    dropped = run(study, *WORDS, "--yes")
    assert dropped.exit_code == 2 and "exists (epsilon 0.3); resume it with --epsilon 0.3" in dropped.output
    assert "warning: series=" in run(study, *WORDS, "--epsilon", "0.2", "--plan").stdout
    other = run(study, *WORDS, "--epsilon", "0.2", "--confidence", "0.9", "--yes")
    assert other.exit_code == 2 and "the arguments that it was opened with" in other.output
    assert run(study, *WORDS, "--steps", "2", "--epsilon", "0.1", "--yes").exit_code == 0  # of other months
    named = run(study, *WORDS, "--epsilon", "0.2", "--session", "second", "--json", "--yes")
    assert named.exit_code == 0 and "spent: epsilon 0.2; left 0.4" in named.stderr, named.output


def test_a_study_file_of_an_account_that_renews_studies_one_month(study: Path) -> None:
    month = 'renews = "month"\ndate = "day"\nperiod = "2025-02"\n[[statistics]]\nkind = "count"\n'
    study.write_text(STUDY.replace("name =", "account =") + month, encoding="utf-8")
    released = CliRunner(env={"COLUMNS": "200"}).invoke(main, ["release", str(study), "--yes"])
    assert released.exit_code == 0, released.output
    with open_ledger(study.parent / "study.db") as ledger:
        assert ledger.datasets() == ["visits", "visits, 2025-02"]
        assert ledger.budget("visits, 2025-02").spent_upper > 0.9
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(main, ["ledger", "show", str(study.parent / "study.db")])
    assert "visits: somebody in all 12 months of a year is protected by epsilon 12 at delta" in shown.output


@pytest.mark.slow
def test_a_month_of_an_account_that_renews_is_one_word_and_no_series(study: Path) -> None:
    renews = STUDY.replace('name = "visits"', 'account = "visits"\nrenews = "month"\ndate = "day"')
    study.write_text(renews + '[[statistics]]\nkind = "count"\n', encoding="utf-8")
    refused = run(study, *WORDS, "--plan")
    assert refused.exit_code == 2 and "farthing release --period" in refused.output
    report = study.parent / "report.html"
    for period in ("2025-01", "2025-02"):
        words = ["release", str(study), "--period", period, "--yes", "--report", str(report)]
        released = CliRunner().invoke(main, words)
        assert released.exit_code == 0, released.output
        assert f"'visits, {period}'" in released.stderr
        assert f"about: numbers are about {period}, by day" in released.stdout
    written = report.read_text(encoding="utf-8")
    assert "somebody in all 12 months of a year" in written and "umbers are about 2025-02, by day" in written
    with open_ledger(study.parent / "study.db") as ledger:
        assert ledger.datasets() == ["visits", "visits, 2025-01", "visits, 2025-02"]
        other = CliRunner().invoke(main, ["plan", str(study), "--account", "elsewhere"])
    assert other.exit_code == 2 and "must be 'visits'" in other.output

"""`farthing discover`, and what plan and release say before it. So much epsilon that no noise moves what is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from farthing.cli.commands import main

STUDY = """
[dataset]
source = "visits.csv"
unit = "who"
max_rows = "auto"

[schema]
cost = { unknown = "whole number" }

[study]
epsilon = 400.0
ledger = "study.db"

[[statistics]]
kind = "sum"
column = "cost"
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = "\n".join(f"{n // 2},{n // 2 + 1}" for n in range(80))
    (tmp_path / "visits.csv").write_text(f"who,cost\n{rows}\n", encoding="utf-8")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == code, result.output
    return result.output


def test_a_study_is_planned_after_what_is_unknown_was_found(study: Path) -> None:
    text = run("plan")
    assert "To be found first" in text and "if this is found" in text and "farthing discover study.toml" in text
    assert "farthing discover study.toml" in run("release", "--yes", code=2)
    assert "cost" in json.loads(run("plan", "--json").partition("\n\n")[0])["discover"]["searches"][0]["name"]
    text = run("discover", "--epsilon", "100", "--yes")
    assert "cost: 1 to 50 (" in text and "max_rows=2 was chosen" in text and "Spent now: epsilon 100" in text
    again = json.loads(run("discover", "--json"))
    assert again["spent_now"] == 0
    assert [(each["name"], each.get("upper")) for each in again["findings"]] == [("cost", 50), ("rows per unit", None)]
    said = " ".join(run("release", "--yes").split())
    assert "are too few to be seen and not in this figure: 2 rows of each are kept" in said


def test_a_count_of_rows_says_how_many_of_each_unit_it_counts(study: Path) -> None:
    (study / "study.toml").write_text(STUDY.replace('"auto"', "1"), encoding="utf-8")
    text, capped = run("count", "--yes"), "rows (at most 1 of each who)"
    assert f"(95%), counts {capped}: what is beyond is in neither the number nor its margin of error; epsilon" in text
    assert json.loads(run("count", "--json"))["counts"] == capped


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('cost = { unknown = "money" }', "schema.cost"),
        ("cost = { unknown = true }", "schema.cost"),
        ('cost = { unknown = "number", lower = 3 }', "schema.cost.lower"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused(study: Path, line: str, words: str) -> None:
    text = STUDY.replace('cost = { unknown = "whole number" }', line)
    (study / "study.toml").write_text(text, encoding="utf-8")
    assert words in run("discover", "--yes", code=2)


def test_a_count_of_people_that_lacks_max_cells_is_told_how_many_cells_there_are(study: Path) -> None:
    people = 'kind = "count"\nby = ["ward", "icu"]\nof = "people"'
    schema = 'ward = { categories = ["n", "s", "w"] }\nicu = { flags = true }'
    text = STUDY.replace('cost = { unknown = "whole number" }', schema)
    (study / "study.toml").write_text(text.replace('kind = "sum"\ncolumn = "cost"', people), encoding="utf-8")
    said = " ".join(run("plan", code=2).split())
    assert "statistics[0].max_cells" in said and "for a count of people by ward and icu" in said
    assert "6 cells of ward and icu: max_cells = 6 leaves nobody out" in said


def test_values_are_found_before_anybody_can_know_how_many_cells_they_make(study: Path) -> None:
    people = 'kind = "count"\nby = "ward"\nof = "people"'
    text = STUDY.replace('cost = { unknown = "whole number" }', 'ward = { unknown = "text" }').replace('"auto"', "2")
    text = text.replace("ledger =", "delta = 1e-6\nledger =")
    (study / "visits.csv").write_text(
        "who,ward\n" + "".join(f"{n},{'nsw'[n % 3]}\n" for n in range(900)), encoding="utf-8"
    )
    (study / "study.toml").write_text(text.replace('kind = "sum"\ncolumn = "cost"', people), encoding="utf-8")
    refused = " ".join(run("plan", code=2).split())
    assert "statistics[0].max_cells=None: must be given for a count of people by ward" in refused
    assert "write max_cells = 3, for example, below this [[statistics]]" in refused
    assert "farthing discover finds how many values ward has" in refused
    said = run("discover", "--yes")
    assert "ward: 3 values found (n, s, w)" in said
    assert (
        "statistics[0] still lacks max_cells: write max_cells = 3, for example, below it; ward has 3 cells now" in said
    )
    bounded = (study / "study.toml").read_text(encoding="utf-8") + "max_cells = 3\n"
    (study / "study.toml").write_text(bounded, encoding="utf-8")
    assert "still lacks" not in run("discover", "--yes") and "people (one per who)" in run("plan")


def test_what_else_is_wrong_with_a_statistic_without_max_cells_is_said_before_a_search(study: Path) -> None:
    people = 'kind = "count"\nby = "ward"\nof = "people"\nrows_per_cell = 2'
    text = STUDY.replace('cost = { unknown = "whole number" }', 'ward = { unknown = "text" }')
    (study / "study.toml").write_text(text.replace('kind = "sum"\ncolumn = "cost"', people), encoding="utf-8")
    assert "rows_per_cell" in run("discover", "--yes", code=2)


def test_the_command_that_a_plan_quotes_searches_what_it_quoted_for_its_price(study: Path) -> None:
    text = STUDY.replace("[study]", 'who = { unknown = "whole number" }\n[study]\nplan_epsilon = 300.0')
    (study / "study.toml").write_text(text, encoding="utf-8")
    said = run("plan")
    assert "To be found first, for epsilon 30 of 400" in said
    words = said.strip().splitlines()[-1].partition("exact errors: farthing ")[2]
    assert words == "discover study.toml --column cost --rows-per-unit --epsilon 30"
    refused = " ".join(run("release", "--yes", code=2).split())
    assert words in refused and "study='cost':" in refused
    found = run(*words.split(), "--yes")
    assert "To be found first, for epsilon 30 of 400" in found and "Spent now: epsilon 30." in found
    assert "who: " not in found and "To be found first" not in run("plan")


def test_rows_per_unit_are_found_alone_and_what_was_found_takes_no_share(study: Path) -> None:
    text = STUDY.replace('"auto"', "2").replace("[study]", 'who = { unknown = "whole number" }\n[study]')
    (study / "study.toml").write_text(text, encoding="utf-8")
    assert "Spent now: epsilon 50" in run("discover", "--column", "cost", "--epsilon", "50", "--yes")
    said = run("discover", "--rows-per-unit", "--column", "cost", "--epsilon", "40", "--yes")
    assert "rows per unit: epsilon 40" in said and "Spent now: epsilon 40" in said
    assert "Spent now: epsilon 20" in run("discover", "--rows-per-unit", "--fresh", "--epsilon", "20", "--yes")
    assert "who: " not in said and "who: epsilon 30" in run("discover", "--epsilon", "30", "--yes")


def test_values_are_found_and_counted_beside_another_statistic(study: Path) -> None:
    rows = "\n".join(f"{n},{('flu', 'cold')[n % 2]},{n % 90}" for n in range(300))
    (study / "visits.csv").write_text(f"who,drug,cost\n{rows}\n", encoding="utf-8")
    count = 'kind = "count"\nby = "drug"\nof = "people"\nmax_cells = 1\nweight = 8.0\n\n[[statistics]]\n'
    text = STUDY.replace('"auto"', "1").replace("[study]", 'drug = { unknown = "text" }\n[study]\ndelta = 1e-6')
    text = text.replace('{ unknown = "whole number" }', "{ range = [0, 99] }").replace(
        'kind = "sum"', f'{count}kind = "mean"'
    )
    (study / "study.toml").write_text(text.replace("400.0", "60.0"), encoding="utf-8")
    said = " ".join(run("plan").split())
    assert "found and counted at once: the values of drug" in said and "mean of cost" in said and "epsilon 60" in said
    said = " ".join(run("release", "--yes").split())
    assert "cold 150" in said and "flu 150" in said and "mean of cost" in said
    assert "nothing was spent now" in run("release", "--yes")

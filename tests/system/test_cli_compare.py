"""`farthing compare`, as somebody at a shell meets it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from farthing.cli import main
from farthing.ledger import open_ledger
from study_people import table

STUDY = """\
[dataset]
source = "people.parquet"
[schema]
sex = { categories = ["F", "M"] }
smoker = { flags = true }
[study]
epsilon = 2.0
ledger = "study.db"
account = "people"
[expected]
rows = 2000
[[statistics]]
kind = "mean"
column = "smoker"
by = "sex"
[[statistics]]
kind = "contingency"
columns = ["sex", "smoker"]
"""
SHARE, COUNTS = "mean of smoker by sex", "contingency of sex and smoker"
pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    smoker = pa.array(np.random.default_rng(8).random(2000) < 0.3)
    pq.write_table(table(2000).append_column("smoker", smoker), tmp_path / "people.parquet")
    (tmp_path / "study.toml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def compare(*words: str) -> str:
    result = run("compare", "study.toml", *words)
    assert result.exit_code == 0, result.output
    return result.output


def test_groups_of_a_release_are_compared_for_nothing(folder: Path) -> None:
    early = run("compare", "study.toml", SHARE, "F", "M")
    assert (early.exit_code, "has not been released yet" in early.output) == (2, True)
    assert run("release", "study.toml", "--yes").exit_code == 0
    with open_ledger(folder / "study.db") as ledger:
        before = len(list(ledger.entries("people")))
    assert compare(SHARE, "F", "M").startswith(f"{SHARE}: F minus M: ")
    assert compare(SHARE, "F", "M", "--ratio", "--confidence", "0.9").startswith(f"{SHARE}: F over M: ")
    assert "(90%)" in compare(SHARE, "F", "M", "--ratio", "--confidence", "0.9")
    assert compare(SHARE, "F", "M", "--odds-ratio").startswith(f"{SHARE}: odds of F over M: ")
    assert compare(COUNTS, "--shares").startswith(f"share of {COUNTS} (95%)\n  F, False  ")
    assert f"{COUNTS}: p " in compare(COUNTS, "--test")
    assert 0 < json.loads(compare(SHARE, "--test", "--json"))["p_value"] <= 1
    answer = json.loads(compare(COUNTS, "F, True", "M, True", "--json"))
    assert answer["lower"] <= answer["values"] <= answer["upper"]
    with open_ledger(folder / "study.db") as ledger:
        assert len(list(ledger.entries("people"))) == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((SHARE, "F", "X"), "must be a group of 'mean of smoker by sex'; there are: F, M"),
        ((SHARE, "F"), "must be two"),
        ((SHARE, "F", "--shares"), "must be left out with --shares"),
        ((SHARE, "F", "M", "--test"), "must be left out for this test"),
        (("mean of age", "F", "M"), "must be a statistic of the release"),
        ((SHARE, "F", "M", "--confidence", "nan"), "must be above 0 and below 1"),
    ],
)
def test_what_cannot_be_compared_is_refused(folder: Path, words: tuple[str, ...], said: str) -> None:
    assert run("release", "study.toml", "--yes").exit_code == 0
    result = run("compare", "study.toml", *words)
    assert result.exit_code == 2, result.output
    assert said in result.output

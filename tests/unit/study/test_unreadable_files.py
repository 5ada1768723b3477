"""A file whose quotes do not close is refused before anything is charged, and nothing is written for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import farthing as ft
from farthing.cli import main
from farthing.errors import InvalidData

BROKEN = 'sex,age\nF,30\nM,"40\nF,50\n'
SCHEMA: dict[str, Any] = {"sex": ["F", "M"], "age": (0, 110)}

SPENT_BY: dict[str, Callable[[ft.Study], object]] = {
    "a release": lambda study: study.plan(ft.count()).release(),
    "a count of rows": lambda study: study.count_rows(),
    "a query session": lambda study: study.query_session(alpha=0.2, queries=10, columns=["sex"], rows=100_000),
    "a monitor": lambda study: study.monitor("age >= 65", threshold=1_000, alerts=1),
    "a synthetic table": lambda study: study.synthesise(columns=["sex"], rows=10),
    "parts": lambda study: study.split("sex", epsilon=0.5),
}


@pytest.mark.draws(false_alarm=0, miss=0)  # refused before any noise
@pytest.mark.parametrize("spent_by", SPENT_BY)
def test_no_account_is_opened_for_a_file_that_cannot_be_read(tmp_path: Path, spent_by: str) -> None:
    (tmp_path / "visits.csv").write_text(BROKEN, encoding="utf-8")
    visits = ft.dataset(tmp_path / "visits.csv", schema=SCHEMA)
    study = ft.Study(visits, epsilon=1.0, delta=1e-9, ledger=tmp_path / "ledger.db", account="visits")
    with pytest.raises(InvalidData, match="a quote is not closed"):
        SPENT_BY[spent_by](study)
    assert study.ledger.datasets() == [] and not study.is_registered
    study.close()


@pytest.mark.draws(false_alarm=0, miss=0)  # refused before any noise
def test_a_command_says_that_nothing_was_charged_and_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text(BROKEN, encoding="utf-8")
    file = tmp_path / "study.toml"
    file.write_text(
        '[dataset]\nsource = "visits.csv"\n[schema]\nage = { range = [0, 110] }\n[study]\nepsilon = 1.0\n'
        'ledger = "study.db"\n[[statistics]]\nkind = "count"\n',
        encoding="utf-8",
    )
    refused = CliRunner().invoke(main, ["release", str(file), "--yes"])
    assert refused.exit_code == 2 and "a quote is not closed" in refused.output
    assert "Nothing was charged." in refused.output and "opens the account" not in refused.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["study.toml", "visits.csv"]

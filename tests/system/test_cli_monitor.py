"""`farthing monitor`: shown and confirmed first, one look a call or many, and exit codes for scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from farthing.cli import main, monitor_command
from farthing.ledger import open_ledger

STUDY = """\
[dataset]
source = "cases.parquet"
[schema]
region = { categories = ["north", "south"] }
[study]
epsilon = 1.0
delta = 1e-9
ledger = "study.db"
name = "cases"
"""
WORDS = ("--threshold", "1000", "--by", "region", "--alerts", "3")


def write(folder: Path, north: int, south: int) -> None:
    pq.write_table(pa.table({"region": ["north"] * north + ["south"] * south}), folder / "cases.parquet")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    write(tmp_path, 10, 10)
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    return tmp_path / "study.toml"


def run(study: Path, *words: str, said: str | None = None) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(main, ["monitor", str(study), *words], input=said)


def spent(study: Path) -> float:
    with open_ledger(study.parent / "study.db") as ledger:
        return ledger.budget("cases").spent_upper if "cases" in ledger.datasets() else 0.0


def test_a_plan_shows_price_and_error_and_spends_nothing(study: Path) -> None:
    shown = run(study, *WORDS, "--plan")
    assert shown.exit_code == 0, shown.output
    assert "up to 3 alerts for epsilon 1" in shown.stdout and "below its threshold" in shown.stdout
    data = json.loads(run(study, *WORDS, "--plan", "--json").stdout)
    assert [one["threshold"] for one in data["series"]] == [1000, 1000] and data["error"] > 0
    assert spent(study) == 0


@pytest.mark.slow
def test_each_fresh_call_is_a_look_and_uses_up_a_round(study: Path) -> None:
    first = run(study, *WORDS, "--yes")
    assert first.exit_code == 0, first.output
    assert "no alert" in first.stdout and "2 of 3 alerts left" in first.stdout
    write(study.parent, 50_000, 10)
    for _ in range(2):
        same = run(study, *WORDS)  # opened before: no question
        assert same.exit_code == 0 and "repeated: the last look as it was" in same.stdout
        assert "look 1: no alert" in same.stdout and "2 of 3 alerts left;" in same.stdout
    second = run(study, *WORDS, "--fresh")
    assert second.exit_code == 3, second.output
    assert "ALERT" in second.stdout and "north has reached 1,000" in second.stdout
    # No round was begun for the south, which this process could not have gone on with.
    assert "1 of 3 alerts left;" in second.stdout
    assert "the next call with --fresh does: count by region: south" in second.stdout
    same = run(study, *WORDS, "--json")
    assert same.exit_code == 3 and json.loads(same.stdout)["repeated"] and json.loads(same.stdout)["look"] == 2
    third = run(study, *WORDS, "--fresh")
    assert third.exit_code == 0 and "0 of 3 alerts left" in third.stdout
    fourth = run(study, *WORDS, "--fresh")
    assert fourth.exit_code == 2 and "all 3 rounds" in fourth.output
    assert "reported before" in fourth.stdout and "north has reached 1,000" in fourth.stdout


@pytest.mark.slow
def test_watching_looks_many_times_in_one_round(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 5:
            write(study.parent, 50_000, 10)

    monkeypatch.setattr(monitor_command.time, "sleep", sleep)
    result = run(study, *WORDS, "--yes", "--json", "--watch", "60", "--looks", "8")
    assert result.exit_code == 3, result.output
    looks = [json.loads(line) for line in result.stdout.splitlines()]
    assert [len(look["alerts"]) for look in looks] == [0, 0, 0, 0, 0, 1, 0, 0]
    assert looks[-1]["alerts_left"] == 2 and pauses == [60.0] * 7


@pytest.mark.slow
def test_watching_ends_when_every_series_was_reported(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_command.time, "sleep", lambda seconds: pytest.fail("nothing is left to watch"))
    write(study.parent, 50_000, 50_000)
    result = run(study, *WORDS, "--yes", "--watch", "60")
    assert result.exit_code == 3 and result.stdout.count("ALERT") == 2, result.output
    again = run(study, *WORDS, "--fresh")
    assert again.exit_code == 0 and "every series was reported before" in again.stdout
    assert "1 of 3 alerts left;" in again.stdout  # and no round was begun for nothing


@pytest.mark.slow
def test_watching_outlives_an_engine_that_fails(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[float] = []

    def sleep(seconds: float) -> None:
        said.append(seconds)
        if len(said) == 1:
            (study.parent / "cases.parquet").write_bytes(b"broken")
        else:
            write(study.parent, 10, 10)

    monkeypatch.setattr(monitor_command.time, "sleep", sleep)
    result = run(study, *WORDS, "--yes", "--watch", "1", "--looks", "3")
    assert result.exit_code == 0, result.output
    assert "no look: duckdb failed" in result.stderr
    assert result.stdout.count("no alert") == 2 and "2 of 3 alerts left" in result.stdout


def test_nothing_is_spent_without_a_yes(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = run(study, *WORDS)
    assert refused.exit_code == 2 and "add --yes" in refused.output
    assert spent(study) == 0


@pytest.mark.parametrize(
    "words",
    [
        ("--threshold", "x", "--alerts", "3"),
        ("--threshold", "5", "--threshold", "6", "--alerts", "3"),
        ("--threshold", "nowhere=5", "--threshold", "6", "--alerts", "3"),
        ("--threshold", "5", "--alerts", "0"),
        ("--threshold", "5", "--alerts", "3", "--by", "planet"),
        ("--threshold", "5", "--alerts", "3", "--where", "region ="),
        ("--threshold", "5", "--alerts", "3", "--looks", "2"),
        ("--threshold", "5", "--alerts", "3", "--watch", "0"),
        ("--threshold", "5", "--alerts", "3", "--epsilon", "7"),
        ("--alerts", "3"),
    ],
)
def test_bad_words_are_refused_with_code_two(study: Path, words: tuple[str, ...]) -> None:
    result = run(study, *words, "--yes")
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert spent(study) == 0

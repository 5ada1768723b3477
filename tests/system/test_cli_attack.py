"""`farthing attack`: tables, JSON and a picture, on made-up data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from farthing.cli import main


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(main, ["attack", *words])


def test_differencing_is_shown_to_work_and_to_fail() -> None:
    shown = run("difference", "--repetitions", "2000")
    assert shown.exit_code == 0, shown.output
    exact = next(line for line in shown.stdout.splitlines() if line.startswith("exact"))
    assert "100.0%" in exact and "73.1%" in shown.stdout
    assert "Rounding is no protection" in shown.stdout and "standard error" in shown.stdout
    data = json.loads(run("difference", "--epsilon", "0.5", "--repetitions", "2000", "--json").stdout)
    shares = {one["answers"]: one["guessed_right"] for one in data["attacks"]}
    assert shares["exact counts"] == 1.0 and shares["farthing, two counts"] < 0.75


WORDS = ("reconstruct", "--rows", "60", "--repetitions", "5")


def test_reconstruction_is_shown_to_work_and_to_fail() -> None:
    shown = run(*WORDS)
    assert shown.exit_code == 0, shown.output
    assert "240 counts over random subsets of 60 rows" in shown.stdout
    data = json.loads(run(*WORDS, "--json").stdout)
    shares = {one["answers"]: one["guessed_right"] for one in data["attacks"]}
    assert shares["exact counts"] > 0.95 > 0.75 > shares["farthing"]


def test_a_table_of_one_row_is_attacked_like_any_other() -> None:
    shown = run("reconstruct", "--rows", "1")
    assert shown.exit_code == 0 and "exact counts" in shown.stdout, shown.output


@pytest.mark.slow
def test_reconstruction_is_drawn_with_points_from_too_little_noise_to_enough(tmp_path: Path) -> None:
    place = tmp_path / "shares.html"
    assert run(*WORDS, "--plot", str(place)).exit_code == 0
    assert place.read_text(encoding="utf-8").count('{"noise": ') >= 11


@pytest.mark.parametrize(
    "words",
    [
        ("difference", "--epsilon", "0"),
        ("difference", "--epsilon", "x"),
        ("difference", "--repetitions", "0"),
        ("reconstruct", "--rows", "0"),
        ("reconstruct", "--rows", "1000000"),
        ("reconstruct", "--queries", "-1"),
        ("reconstruct", "--delta", "1"),
        ("reconstruct", "--plot", "shares.pdf"),
        ("steal",),
    ],
)
def test_bad_words_are_refused_with_code_two(words: tuple[str, ...]) -> None:
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output

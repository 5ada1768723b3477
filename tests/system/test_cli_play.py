"""`farthing play`: by a list, with somebody at the keyboard, many games."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from farthing.cli import main


def run(*words: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, ["play", *words], input=text)


def test_a_listed_game_is_the_same_again_and_in_json() -> None:
    words = ("--charges", "0.3 0.1x5 gaussian:4 2", "--seed", "7")
    first, second = run(*words), run(*words)
    assert first.exit_code == 0 and first.stdout == second.stdout
    assert "8. 2: refused" in first.stdout and "one charge of epsilon 1 would fit" in first.stdout
    data = json.loads(run(*words, "--json").stdout)
    assert len(data["rounds"]) == 8 and data["rounds"][-1]["refused"] and data["sentence"] in first.stdout
    assert data["right"] == (data["secret"] == data["guess"])


def test_somebody_plays_until_they_press_enter_and_slips_are_forgiven() -> None:
    result = run("--seed", "2", text="0.1\nfoo\nbounded-range:0.1\nlaplace:3x2\n\n")
    assert result.exit_code == 0
    assert "charge='foo'" in result.stdout and "is not played here" in result.stdout
    assert "3. laplace:3" in result.stdout and "The secret was" in result.stdout


@pytest.mark.slow
def test_many_games_stay_near_what_the_filter_allows() -> None:
    result = run("--charges", "0.2x30", "--games", "300", "--seed", "3", "--json")
    data = json.loads(result.stdout)
    assert data["games"] == 300 and data["delta_reached"] <= 0.01 + 5 * data["standard_error"]


def test_wrong_input_is_refused() -> None:
    for words, reason in (
        (("--json",), "must be given with --json and --games"),
        (("--charges", "0.1x20000"), "at most 10,000 rounds"),
        (("--charges", "0.1", "--delta", "0"), "delta='0': must be above 0 and below 1"),
        (("--charges", "0.1,1e-3"), "charge='0.1,1e-3': is not played here"),
        (("--charges", "discrete-laplace:10"), "ask with an epsilon, laplace:B or gaussian:B"),
        (("--charges", "0.1", "--games", "0"), "from 1 to 100,000"),
        (("--seed", "x"), "seed"),
    ):
        result = run(*words)
        assert result.exit_code == 2 and reason in result.stderr, words

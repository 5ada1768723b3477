"""`farthing compose`: numbers, words, JSON, refusals, as a person or a program meets them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from farthing import compose
from farthing.cli import main
from farthing.privacy import (
    BoundedRange,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)


def run(*words: str, text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["compose", *words], input=text)


def answer(*words: str, text: str | None = None) -> dict[str, Any]:
    """The JSON answer, read by a parser that knows no NaN and no Infinity."""

    def refuse(constant: str) -> float:
        raise AssertionError(f"{constant} is not JSON")

    result = run(*words, "--json", text=text)
    assert result.exit_code == 0, result.stderr
    data = json.loads(result.stdout, parse_constant=refuse)
    assert isinstance(data, dict)
    return data


def test_a_hundred_tenths_cost_4_774568() -> None:
    data = answer("0.1x100", "--delta", "1e-6")
    optimal = data["optimal"]
    assert optimal["lower"] <= optimal["estimate"] <= optimal["upper"]
    assert round(optimal["estimate"], 6) == 4.774568
    assert optimal["upper"] - optimal["lower"] < 1e-9
    assert optimal["proven"] is True
    assert (data["k"], data["delta"]) == (100, 1e-6)
    assert data["engine"] and data["engine_reason"]
    assert data["seconds"] > 0


def test_every_theorem_wastes_what_it_says_and_none_beats_the_optimum() -> None:
    data = answer("0.1x60", "0.05,1e-9x20", "--delta", "1e-6")
    lines = [line for line in data["theorems"] if line["applies"]]
    assert len(lines) >= 6
    for line in lines:
        assert set(line) >= {"name", "epsilon", "source", "waste"}
        assert line["epsilon"] >= data["optimal"]["lower"], line
        assert line["waste"] == max(0.0, line["epsilon"] - data["optimal"]["upper"]), line
        assert line["waste_percent"] == pytest.approx(100 * line["waste"] / data["optimal"]["upper"])
    by_name = {line["name"]: line for line in lines}
    assert by_name["basic sum"]["epsilon"] == pytest.approx(7.0, rel=1e-12)
    assert by_name["basic sum"]["waste"] > 1


@pytest.mark.slow
def test_every_kind_of_word_is_the_event_it_names() -> None:
    """Each word alone equals the composition built by hand: no kind is mistaken for another."""
    meant = {
        "0.3": ([0.3], 1),
        "0.05,1e-7x20": ([(0.05, 1e-7)], 20),
        "rr:0.5x4": ([RandomizedResponse(0.5)], 4),
        "bounded-range:0.5x4": ([BoundedRange(0.5)], 4),
        "laplace:2": ([LaplaceNoise(2.0)], 1),
        "gaussian:4x10": ([GaussianNoise(4.0)], 10),
        "discrete-laplace:2x3": ([DiscreteLaplaceNoise(2.0)], 3),
        "discrete-laplace:2:3": ([DiscreteLaplaceNoise(2.0, 3)], 1),
        "sampled:0.25:laplace:0.5x2": ([Sampled(LaplaceNoise(0.5), 0.25)], 2),
    }
    for word, (charges, count) in meant.items():
        by_hand = compose(charges, counts=[count]).epsilon_at(1e-5)
        data = answer(word, "--delta", "1e-5")
        assert data["optimal"]["upper"] == by_hand.upper, word
        assert data["k"] == count, word


@pytest.mark.slow
def test_all_words_together_make_one_composition() -> None:
    words = [
        "0.1x10",
        "0.05,1e-7x2",
        "gaussian:4x2",
        "laplace:2",
        "discrete-laplace:2x3",
        "discrete-gaussian:5",
        "rr:0.5x4",
    ]
    data = answer(*words, "--delta", "1e-5")
    by_hand = (
        compose([0.1, 0.05], [0.0, 1e-7], [10, 2])
        .plus([GaussianNoise(4.0), LaplaceNoise(2.0), DiscreteLaplaceNoise(2.0)], counts=[2, 1, 3])
        .plus([DiscreteGaussianNoise(5.0), RandomizedResponse(0.5)], counts=[1, 4])
        .epsilon_at(1e-5)
    )
    assert data["k"] == 23
    assert data["optimal"]["upper"] >= by_hand.lower
    assert data["optimal"]["lower"] <= by_hand.upper
    assert math.isfinite(data["optimal"]["upper"])


def test_case_and_order_of_words_do_not_matter() -> None:
    one = answer("0.1x3", "Laplace:2X2")["optimal"]["estimate"]
    other = answer("laplace:2", "0.1", "0.1x2", "laplace:2")["optimal"]["estimate"]
    assert one == pytest.approx(other, abs=1e-9)


def test_a_count_may_be_written_like_a_number() -> None:
    assert answer("0.001x1e4")["k"] == 10_000
    assert answer("0.1x0")["k"] == 0
    assert answer("0.1x0")["optimal"]["upper"] == 0


def test_the_default_delta_is_said() -> None:
    result = run("0.1x100")
    assert "delta = 1e-06 (the default" in result.stdout
    assert "default" not in run("0.1x100", "--delta", "1e-6").stdout


def test_epsilon_asks_for_delta_too() -> None:
    data = answer("0.1x100", "--epsilon", "3")
    bounds = compose([0.1], counts=[100]).delta_at(3.0)
    assert data["at_epsilon"]["epsilon"] == 3.0
    assert data["at_epsilon"]["delta"]["upper"] == bounds.upper
    assert "At epsilon = 3: delta = 0.0013613" in run("0.1x100", "--epsilon", "3").stdout


def test_a_tiny_delta_is_never_printed_as_zero() -> None:
    result = run("0.1x100", "--delta", "1e-300", "--epsilon", "9.9")
    assert "delta = 1e-300" in result.stdout
    assert "delta = 0," not in result.stdout
    delta = answer("0.1x100", "--epsilon", "9.9")["at_epsilon"]["delta"]
    assert 0 < delta["lower"] <= delta["upper"] < 1e-28


def test_without_proof_the_answer_says_so() -> None:
    data = answer("0.1x100", "--no-proof")
    assert data["optimal"]["proven"] is False
    assert round(data["optimal"]["estimate"], 6) == 4.774568
    assert "not proven" in run("0.1x100", "--no-proof").stdout


def test_an_infeasible_delta_is_answered_with_the_reason_and_a_delta_that_works() -> None:
    result = run("0.1,1e-3x5", "--delta", "1e-6")
    assert result.exit_code == 0
    assert "no finite epsilon exists: the leaks compose to" in result.stdout.replace("\n", " ")
    data = answer("0.1,1e-3x5", "--delta", "1e-6")
    assert data["optimal"] == {"lower": "inf", "upper": "inf", "estimate": "inf", "proven": True}
    least = data["reason"].rsplit(" ", 1)[-1]
    feasible = answer("0.1,1e-3x5", "--delta", least)
    assert feasible["optimal"]["upper"] <= 0.5 + 1e-12
    assert "reason" not in feasible


def test_gaussian_noise_at_delta_zero_has_no_epsilon_and_the_reason_is_told() -> None:
    data = answer("gaussian:4x10", "--delta", "0")
    assert data["optimal"]["upper"] == "inf"
    assert "larger delta" in data["reason"]


def test_theorems_see_gaussian_noise_through_a_share_of_delta() -> None:
    data = answer("gaussian:4x10", "--delta", "1e-6")
    by_name = {line["name"]: line for line in data["theorems"]}
    upper = data["optimal"]["upper"]
    assert upper < by_name["Renyi, noise known"]["epsilon"] < 1.3 * upper
    assert by_name["optimal, noise unknown"]["epsilon"] > 1.5 * upper
    # The sum spends the whole delta on the shares, one tenth each.
    each = compose([GaussianNoise(4.0)]).epsilon_at(1e-7).upper
    assert by_name["basic sum"]["epsilon"] == pytest.approx(10 * each, rel=1e-6)
    assert any("even share of delta" in note for note in data["notes"])


def test_known_laplace_noise_costs_less_than_its_class() -> None:
    by_name = {line["name"]: line for line in answer("laplace:10x100")["theorems"]}
    assert by_name["optimal, noise unknown"]["epsilon"] == pytest.approx(4.774568, abs=1e-6)
    assert by_name["optimal, noise unknown"]["waste"] > 0.01


@pytest.mark.parametrize(
    ("words", "value", "rule"),
    [
        (["-0.1x3"], "-0.1x3", "epsilon must be a finite number >= 0"),
        (["nan"], "nan", "must be a plain number"),
        (["inf"], "inf", "must be a plain number"),
        (["1e400"], "1e400", "epsilon must be a finite number >= 0"),
        (["True"], "True", "must be a plain number"),
        (["0.1x-3"], "-3", "must be a whole number >= 0"),
        (["0.1x1.5"], "1.5", "must be a whole number >= 0"),
        (["0.1x"], "0.1x", "must be a whole number >= 0"),
        (["0.1x1e20"], "1e20", "must be below 2^53"),
        (["0.1,1"], "0.1,1", "delta must be >= 0 and < 1"),
        (["0.1,-1e-9"], "0.1,-1e-9", "delta must be >= 0 and < 1"),
        (["0.1,"], "0.1,", "delta '' must be a plain number"),
        (["0.1,0.1,3"], "0.1,0.1,3", "must be a plain number"),
        (["1_0"], "1_0", "must be a plain number"),
        (["poisson:2"], "poisson", "must be one of bounded-range"),
        (["gaussian:0"], "gaussian:0", "noise_multiplier must be a finite number > 0"),
        (["gaussian:-1"], "gaussian:-1", "noise_multiplier must be a finite number > 0"),
        (["gaussian:"], "gaussian:", "must be a plain number"),
        (["discrete-laplace:2:0"], "discrete-laplace:2:0", "must be a whole number >= 1"),
        (["sampled:2:0.1"], "sampled:2:0.1", "probability must be between 0 and 1"),
        (["sampled:0.1"], "sampled:0.1", "is missing after sampled:P:"),
        (["sampled:0.5:sampled:0.5:0.1"], "sampled:0.5:sampled:0.5:0.1", "must not be sampled twice"),
        (["0.1", "--delta", "1"], "delta=1.0", "must be >= 0 and < 1"),
        (["0.1", "--delta", "-1e-9"], "delta=-1e-09", "must be >= 0 and < 1"),
        (["0.1", "--delta", "nan"], "delta='nan'", "must be a plain number"),
        (["0.1", "--epsilon", "-1"], "epsilon=-1.0", "must be a finite number >= 0"),
        (["0.1", "--epsilon", "much"], "epsilon='much'", "must be a plain number"),
        (["0.1", "--plot", "chart.pdf"], "chart.pdf", "must end in .svg, .png or .html"),
        (["0.1", "--plot", "no/such/folder/chart.svg"], "chart.svg", "must lie in a directory that exists"),
        (["--file", "no-such-file.csv"], "no-such-file.csv", "cannot be read"),
        (["--file", "-", "-"], "-", "must be given at most once"),
        ([], "charges=[]", "must name at least one charge"),
    ],
)
def test_bad_input_is_refused_with_value_and_rule(words: list[str], value: str, rule: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert value in result.stderr
    assert rule in result.stderr
    assert "Traceback" not in result.stderr


def test_a_misspelt_option_is_not_taken_for_a_charge() -> None:
    result = run("0.1x100", "--detla", "1e-6")
    assert result.exit_code == 2
    assert "--detla" in result.stderr and "--delta" in result.stderr


def test_text_for_people_holds_the_interval_the_engine_and_the_waste() -> None:
    text = run("0.1x100", "--delta", "1e-6").stdout
    assert "Optimum: epsilon = 4.774568, proven in [4.7745675" in text
    assert "Engine: " in text and "because" in text
    assert "+109 %" in text
    assert "\x1b[" not in text  # no colour codes in a pipe


def test_narrow_terminals_lose_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    text = run("0.1x100").stdout
    for number in ("4.774568", "6.308231", "+32.1 %"):
        assert number in text
    assert max(len(line) for line in text.splitlines()) <= 50


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_plot_is_written_and_named(tmp_path: Path, ending: str) -> None:
    place = tmp_path / f"bars.{ending}"
    result = run("0.1x100", "--plot", str(place), "--json")
    assert result.exit_code == 0, result.stderr
    json.loads(result.stdout)  # the note about the picture stays out of the JSON
    assert str(place) in result.stderr
    start = {"svg": b"<svg", "png": b"\x89PNG"}[ending]
    assert place.read_bytes().startswith(start)


def test_a_missing_extra_is_named_before_anything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "vl_convert", None)
    result = run("0.1x100", "--plot", "bars.svg")
    assert result.exit_code == 2
    assert "farthing[plots]" in result.stderr
    assert result.stdout == ""


@pytest.mark.slow
def test_adaptive_counts_what_fits_and_never_more_than_the_optimum() -> None:
    data = answer("0.01x400", "--adaptive", "--epsilon", "1", "--delta", "1e-9")
    fits = {line["name"]: line["fits"] for line in data["accounts"]}
    assert fits["fixed in advance"] == 336 and fits["plain sums"] == 100
    assert 325 <= fits["clock"] <= 336
    assert data["sentence"].startswith(f"Deciding as you go, {fits['clock']} of these charges fit instead of 336")
    assert data["epsilon"] == 1.0 and data["k"] == 400


@pytest.mark.slow
def test_adaptive_says_in_words_and_json_what_epsilon_is_needed() -> None:
    data = answer("0.1,1e-3x5", "--adaptive")
    assert [line["epsilon"] for line in data["accounts"]] == ["inf"] * 5
    words = run("0.1x100", "--adaptive").stdout
    assert "fixed in advance    4.7746" in words and "(the default; choose with --delta)" in words


def test_adaptive_goes_with_neither_a_plot_nor_an_estimate() -> None:
    for words in (("--plot", "x.svg"), ("--no-proof",)):
        result = run("0.1x10", "--adaptive", *words)
        assert result.exit_code == 2 and "does not go with --adaptive" in result.stderr

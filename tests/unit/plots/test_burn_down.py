"""The picture of a budget shows every level where the ledger put it, and opens at any size."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from farthing.errors import InvalidValue
from farthing.plots import Moment, burn_down, save

STORY = [
    Moment(2, "budget", 0.0, 1.0),
    Moment(3, "charge", 0.25, 1.0, who="ada"),
    Moment(5, "reserve", 0.25, 1.0, withheld=0.5),
    Moment(6, "refused", 0.25, 1.0, withheld=0.5, requested=0.3, who="eve"),
    Moment(7, "budget", 0.25, 2.0, withheld=0.5),
]


def levels(chart: Any, what: str) -> list[tuple[int, float]]:
    data = chart.to_dict()
    # Layers may share one table, which Altair then lifts out of them.
    tables = [layer["data"]["values"] for layer in data["layer"] if "data" in layer] + [
        data.get("data", {}).get("values", [])
    ]
    found = {(row["sequence"], row["epsilon"]) for rows in tables for row in rows if row["what"] == what}
    return sorted(found)


@pytest.mark.slow
def test_every_level_stands_where_the_ledger_put_it() -> None:
    chart = burn_down(STORY, dataset="survey", delta=1e-9)
    assert levels(chart, "spent") == [(2, 0.0), (3, 0.25), (5, 0.25), (6, 0.25), (7, 0.25), (8, 0.25)]
    assert levels(chart, "budget") == [(2, 1.0), (3, 1.0), (5, 1.0), (6, 1.0), (7, 2.0), (8, 2.0)]
    assert levels(chart, "budget less what is set aside") == [
        (2, 1.0), (3, 1.0), (5, 0.5), (6, 0.5), (7, 1.5), (8, 1.5),
    ]  # fmt: skip
    assert levels(chart, "refused") == [(6, 0.55)]


def test_the_title_and_the_lines_below_say_what_is_left() -> None:
    title = burn_down(STORY, dataset="survey", delta=1e-9).to_dict()["title"]
    assert title["text"] == "12.5% of the budget of 'survey' is spent"
    assert title["subtitle"] == [
        "epsilon 0.25 of 2, 0.5 of it set aside, at delta = 1e-09.",
        "1 charge, 1 refused.",
    ]


@pytest.mark.slow
def test_what_nobody_set_aside_or_asked_for_has_no_line() -> None:
    chart = burn_down(STORY[:2], dataset="survey")
    assert levels(chart, "budget less what is set aside") == levels(chart, "refused") == []
    assert "none refused" in chart.to_dict()["title"]["subtitle"][1]


def test_a_wild_request_does_not_flatten_the_picture() -> None:
    wild = Moment(9, "refused", 0.25, 1.0, requested=float("inf"))
    assert levels(burn_down([*STORY, wild], dataset="survey"), "refused")[-1] == (9, 1.1)


@pytest.mark.slow
def test_a_long_ledger_is_thinned_and_keeps_its_ends_and_its_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["farthing.plots.burn_down"], "MOST_POINTS", 100)
    many = [Moment(n, "charge", n / 1e4, 1.0 if n < 7_777 else 2.0) for n in range(10_000)]
    chart = burn_down(many, dataset="survey")
    spent = levels(chart, "spent")
    assert 50 <= len(spent) <= 100
    assert spent[0] == (0, 0.0) and spent[-1] == (10_000, 0.9999)
    assert (7_777, 2.0) in levels(chart, "budget")
    told = chart.to_dict()["title"]["subtitle"][1]
    assert told == "10,000 charges, none refused; 100 points at most are drawn."


def test_an_empty_ledger_is_refused_with_a_way_out() -> None:
    with pytest.raises(InvalidValue, match="set a budget first"):
        burn_down([], dataset="survey")


def test_a_dataset_without_a_budget_says_so() -> None:
    assert burn_down([Moment(1, "dataset", 0.0, 0.0)], dataset="x").to_dict()["title"]["text"].endswith("no budget")


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["svg", "png", "html"])
def test_it_is_drawn_to_a_file(tmp_path: Path, ending: str) -> None:
    assert save(burn_down(STORY, dataset="survey"), tmp_path / f"burn.{ending}").stat().st_size > 1000

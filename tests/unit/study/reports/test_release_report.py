"""The report: what was told, what it cost and what it means, on one page that needs nothing else."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InvalidValue
from farthing.inference import Answer, ErrorDistribution, Term
from farthing.numerics.bounds import number_text
from farthing.study.attacker_odds import Risk
from farthing.study.reports.release_report import budget_bar, curve, error_bars, price_bars, report_page

Make = Callable[..., ft.Study]


class Balanced(HTMLParser):
    """Every tag is closed in the order it was opened."""

    VOID = ("meta", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Closed by itself."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def release(make_study: Make) -> ft.study.Release:
    study = make_study(0.5)
    return study.plan(ft.count(by="sex", name="<b>people</b>"), ft.mean("age"), epsilon=0.25).release()


def test_a_place_that_cannot_be_written_is_named(release: ft.study.Release, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "no" / "report.html"):
        with pytest.raises(InvalidValue, match=r"cannot be written \(.*\); name a file in a directory that exists"):
            release.report(str(place))


def test_the_page_has_everything_and_loads_nothing(release: ft.study.Release, tmp_path: Path) -> None:
    path = release.report(str(tmp_path / "report.html"))
    page = path.read_text(encoding="utf-8")
    for part in (
        "What was spent", "What it means", "The receipt", "The study that produced it", "mean of age",
        release.request_id, "study.plan(", "plain sum", "exact curves", release.receipt.mac, "epsilon left",
        "assumed to have 10,000 rows",
    ):  # fmt: skip
        assert part in page, part
    assert not re.search(r"<script|<link|<img|src=|href=|@import|url\(", page)
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []


def test_names_are_text_and_not_markup(release: ft.study.Release) -> None:
    page = report_page(release)
    assert "<b>people</b>" not in page and "&lt;b&gt;people&lt;/b&gt;" in page


def test_unknown_and_very_many_cells_are_shown_as_such(release: ft.study.Release) -> None:
    distribution = ErrorDistribution([Term("laplace", 2.0)])
    many = Answer.around("many", [1.0] * 500, distribution, tuple(range(500)))
    lost = Answer.within("lost", math.nan, math.inf, lambda _: (np.array([-math.inf]), np.array([math.inf])))
    page = report_page(replace(release, answers={"many": many, "lost": lost}))
    assert "and 300 more cells" in page and "unknown" in page and ">nan" not in page


def test_a_note_stands_under_its_statistic(release: ft.study.Release) -> None:
    ends = np.array([0.0]), np.array([2.0])
    one = Answer.within("one", 1.0, 1.0, lambda _: ends, note="rests on <a guess>")
    cells = Answer.within("cells", [1.0], [1.0], lambda _: ends, ("a",), note="rests on another")
    page = report_page(replace(release, answers={"one": one, "cells": cells}))
    places = [page.index(part) for part in ("<h3>one", "rests on &lt;a guess&gt;", "<h3>cells", "rests on another")]
    assert places == sorted(places)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 10.0, 14.0, 20.0, 800.0])
def test_the_odds_are_those_of_the_definition(epsilon: float) -> None:
    risk = Risk(epsilon, 1e-9)
    if epsilon < 13.8:
        assert f"{number_text(math.exp(epsilon))} to 1" in risk.odds
        assert f"= {number_text(math.exp(epsilon))} times" in risk.economic
    else:  # beyond a million a number says no more than words
        assert "more than a million to one after" in risk.odds and "more than a million times" in risk.economic
        assert "less than one in a million to more than a million" in risk.bayesian
        assert not re.search(r"\d{3},\d{3}|unlimited|e\+", " ".join(risk.sentences))
    most = int(re.search(r"at most (\d+) times", risk.chances)[1])  # type: ignore[index]
    assert 100 / (1 + math.exp(-epsilon)) <= most <= 100
    assert "1e-09" in risk.exception and len(risk.sentences) == 5


def test_the_posterior_moves_by_twice_epsilon() -> None:
    assert "e^(±2 epsilon), that is 0.135 to 7.39," in Risk(1.0, 0.0).bayesian
    assert Risk(1.0, 0.0).exception == "There is no exception: delta is 0."


def test_ticks_tell_neighbours_apart() -> None:
    chart = error_bars([("a", 25.47, 25.46, 25.48), ("b", 25.49, 25.48, 25.50)])
    ticks = re.findall(r'text-anchor="middle">([^<]+)<', chart)
    assert len(ticks) >= 3 and len(set(ticks)) == len(ticks)


@pytest.mark.parametrize(
    "numbers", [None, (math.nan, 0.0, 1.0), (0.0, 0.0, 0.0), (1e300, 0.0, 1e300), (-5.0, -9.0, -1.0)]
)
def test_charts_survive_odd_values(numbers: tuple[float, float, float] | None) -> None:
    chart = error_bars([] if numbers is None else [("a", *numbers)])
    assert chart == "" or (chart.startswith("<svg") and "nan" not in chart and "inf" not in chart)


def test_prices_that_no_theorem_bounds_are_left_out() -> None:
    assert price_bars([("a", math.inf)]) == ""
    assert price_bars([("a", 1.0), ("b", math.inf), ("c", 0.0)]).count("<rect") == 2
    assert budget_bar(0.0, 0.0, 0.0).startswith("<svg")


@pytest.mark.slow
def test_many_cells_are_all_drawn_or_said_to_be_left_out(make_study: Make) -> None:
    study = make_study(2.0, 1e-9)
    pairs = ft.marginals(["sex", "age"], name="pairs")
    page = report_page(study.plan(ft.ranges("age"), pairs, epsilon=1.0).release())
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert "The curve shows all 111 cells." in page and "The chart shows the first 60 of 222 cells." in page
    assert "release[&#x27;ranges of age&#x27;].query(&#x27;age &lt; 110&#x27;)" in page
    assert "2 statistics, each" in page
    assert "1 statistic, each" in report_page(study.plan(ft.count(), epsilon=0.1).release())


def test_a_curve_holds_every_cell() -> None:
    """A peak between two points of the picture is still inside the band."""
    rows = [(str(place), 1.0, 0.0, 2.0) for place in range(5000)]
    flat = curve(rows)
    rows[2501] = ("2501", 900.0, 890.0, 1000.0)
    assert "1,000" in curve(rows) and "1,000" not in flat
    assert curve([("x", math.nan, 0.0, 1.0)]) == ""


@pytest.mark.parametrize(
    ("epsilon", "delta", "rows", "warned"),
    [
        (10.0, 0.0, None, ""),
        (
            10.5,
            0.0,
            None,
            "Epsilon 10.5 protects almost nobody: odds can grow by a factor of up to 36,400. "
            "Somebody who thought it 1 in 1,000 that a person is in the table can be up to 97.4% sure",
        ),
        (40.0, 0.0, None, "odds can grow by a factor of more than a million"),
        (1.0, 1e-5, 99_000, ""),
        (1.0, 1e-5, 101_000, "Delta 1e-05 is more than 1 in 101,000, the number of rows"),
        (1.0, 1e-3, None, "Delta 0.001 is large"),
        (1.0, 1e-3, 400, "Delta 0.001 is large"),
        (1.0, 1e-2, 400, "Delta 0.01 is more than 1 in 400, the number of rows"),
    ],
)
def test_a_budget_that_protects_little_is_warned_of_in_words(
    people: ft.Dataset, tmp_path: Path, epsilon: float, delta: float, rows: int | None, warned: str
) -> None:
    """In the plan, in the release, in their JSON, and the page does not say that nothing depends on anybody."""
    study = ft.Study(people, epsilon, delta, ledger=tmp_path / "study.db", account="people")
    plan = study.plan(ft.count(by="sex"), expected={} if rows is None else {"rows": rows})
    release = plan.release()
    page = " ".join(report_page(release).split())
    for told in (str(plan), str(release)):
        assert ("warning: " in told) == bool(warned) and warned in " ".join(told.split())
    assert ("nothing here depends noticeably on any one row" in page) == (not warned)
    assert warned in page and ("<b>Warning:</b>" in page) == bool(warned)
    assert bool(plan.to_dict()["warnings"]) == bool(release.to_dict()["warnings"]) == bool(warned)

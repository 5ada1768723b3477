"""The plan as a table: all statistics at a glance, a picture on made-up numbers, and steps that can be taken back."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from system.server.accessibility import faults_of_all_looks
from system.server.browser import DATASET, DECLARATION, NewPage, Site, fits, go, kept_plan, screenshot, settled

pytestmark = pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever noise the server's workers draw

EXPECTED = {"rows": 400, "income": [40_000, 12_000]}
TWELVE: tuple[dict[str, Any], ...] = (
    {"kind": "count"},
    {"kind": "count", "by": ["sex"]},
    {"kind": "count", "by": ["region"]},
    {"kind": "count", "where": "age >= 65"},
    {"kind": "histogram", "column": "age", "bins": 11},
    {"kind": "contingency", "columns": ["sex", "region"]},
    {"kind": "mean", "column": "income"},
    {"kind": "mean", "column": "age", "by": ["sex"]},
    {"kind": "sum", "column": "income"},
    {"kind": "variance", "column": "income"},
    {"kind": "median", "column": "income"},
    {"kind": "quantiles", "column": "age", "probabilities": [0.25, 0.5, 0.75]},
)


def _opened(page: Page, site: Site, *entries: dict[str, Any], dataset: str = DATASET, **told: Any) -> None:
    kept_plan(page, "ada", dataset, *entries, **{"expected": EXPECTED, **told})
    go(page, site, f"#/plan/{dataset}", f"Plan for {dataset}")
    expect(page.locator("#plan-proof")).to_have_text("proven")


def test_twelve_statistics_are_seen_together_with_all_their_controls(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    page.set_viewport_size({"width": 1280, "height": 900})
    _opened(page, site, *TWELVE)
    foot = page.locator(".plan-foot").bounding_box()
    assert foot is not None
    rows = page.locator(".statistic")
    expect(rows).to_have_count(12)
    for place in range(12):
        for part in (".statistic-name", ".error-number", ".statistic-importance input", ".make-it input", ".lock"):
            box = rows.nth(place).locator(part).bounding_box()
            assert box is not None
            assert box["y"] >= 0 and box["y"] + box["height"] <= foot["y"], (place, part)
    assert fits(page)
    settled(page)
    assert faults_of_all_looks(page) == {}
    screenshot(page, "planner-twelve")


def test_the_chosen_statistic_is_drawn_on_numbers_that_are_called_made_up(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    _opened(page, site, {"kind": "count", "by": ["region"]}, {"kind": "mean", "column": "income"})
    card = page.locator(".chosen-card")
    expect(card).to_contain_text("Made up. No row was read")
    expect(card.get_by_role("img", name="count by region")).to_be_visible()
    expect(card.locator(".mark-value")).to_have_count(4)  # bars from zero
    page.locator('.statistic[data-name="mean of income"] .statistic-open').click()
    expect(card.get_by_role("img", name="mean of income")).to_be_visible()
    expect(card.locator(".mark-value")).to_have_count(0)  # an average is no length
    before = card.locator(".whisker-value").get_attribute("cx")
    page.locator('.statistic[data-name="mean of income"]').get_by_label("Importance").press("ArrowRight")
    expect(card.locator(".whisker-value")).not_to_have_attribute("cx", before or "")  # it shakes with the noise


def test_every_step_is_taken_back_and_done_again(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    _opened(page, site, {"kind": "count"}, {"kind": "sum", "column": "income"})
    count = page.locator('.statistic[data-name="count"]')
    first = count.locator(".error-number").inner_text()
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()
    count.get_by_label("Importance").fill("2")
    expect(count.locator(".error-change")).to_contain_text("smaller than before the last change")
    count.get_by_role("button", name="Remove count").click()
    expect(page.locator(".statistic")).to_have_count(1)
    page.keyboard.press("Control+z")
    expect(page.locator(".statistic")).to_have_count(2)
    page.get_by_role("button", name="Undo").click()
    expect(count.locator(".error-number")).to_have_text(first)
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()
    page.get_by_role("button", name="Redo").click()
    page.keyboard.press("Control+Shift+z")
    expect(page.locator(".statistic")).to_have_count(1)
    expect(page.get_by_role("button", name="Redo")).to_be_disabled()


# One drag is one step, and a step that was refused is none; times are told, because a machine may be slow.
DRAGS = """async () => {
  const { EditHistory } = await import("./static/js/planner/edit_history.js");
  const history = new EditHistory();
  const noted = [[0, "weight", 0], [1, "weight", 900], [2, "weight", 1800], [3, "weight", 9000], [4, null, 9001]]
    .map(([draft, edit, time]) => history.note(draft, edit, time));
  history.refused();
  return { noted, back: [history.back(5), history.back(3), history.back(0)], forth: history.forth(0) };
}"""


def test_a_drag_is_one_step_and_what_was_refused_is_none(new_page: NewPage, site: Site) -> None:
    found = new_page("ada").evaluate(DRAGS)
    assert found == {"noted": [True, False, False, True, True], "back": [3, 0, None], "forth": 3}


def test_a_refused_wish_leaves_nothing_to_take_back(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    _opened(page, site, {"kind": "mean", "column": "income"})
    page.get_by_label("Make it ±").fill("0.001")
    page.get_by_role("button", name="Set this error").click()
    expect(page.get_by_text("This does not fit as things stand")).to_be_visible()
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()


def test_a_statistic_is_duplicated_under_a_name_of_its_own(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    _opened(page, site, {"kind": "sum", "column": "income"})
    page.locator(".statistic-open").click()
    page.get_by_role("button", name="Duplicate sum of income").click()
    expect(page.locator(".statistic")).to_have_count(2)
    expect(page.locator('.statistic[data-name="sum of income (again)"] .error-number')).to_be_visible()


def test_a_release_lists_every_error_and_asks_for_the_number_of_rows(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    site.declare({**DECLARATION, "name": "unsized"})
    _opened(page, site, {"kind": "count"}, {"kind": "mean", "column": "income"}, dataset="unsized", expected={})
    page.get_by_label("This plan may use").press("Home")
    expect(page.locator("#plan-proof")).to_have_text("proven")
    page.get_by_role("button", name="Release …").click()
    dialog = page.get_by_role("dialog")
    for name in ("count", "mean of income"):
        expect(dialog.get_by_role("row", name=re.compile(f"^{name} .*±"))).to_be_visible()
    expect(dialog.locator(".confirm-assumed li")).not_to_have_count(0)
    spend = dialog.get_by_role("button", name=re.compile("Release and spend"))
    expect(spend).to_be_disabled()
    dialog.get_by_label(re.compile("nobody said how many rows there are: 10,000 are assumed")).check()
    assert faults_of_all_looks(page) == {}
    spend.click()
    expect(page.locator(".answer")).to_have_count(2)
    page.go_back()
    expect(page.locator("#plan-proof")).to_have_text("proven")
    expect(page.locator("#plan-released")).to_be_visible()  # and the button that pays is not offered first
    page.get_by_role("button", name="Released: see or repeat …").click()
    expect(dialog.get_by_role("button", name="Show what was released")).to_be_visible()
    assert site.state.root.budget("unsized").count == 1

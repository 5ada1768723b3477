"""The planner and the release screens in a real browser: never above the budget, and nothing is spent twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from system.server.accessibility import faults_of_all_looks
from system.server.browser import (
    DATASET,
    DECLARATION,
    PHONE,
    WIDE,
    NewPage,
    Site,
    fits,
    go,
    kept_plan,
    screenshot,
    settled,
)

pytestmark = pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever noise the server's workers draw

NO_NUMBER = re.compile(r"NaN|undefined|Infinity|\bnull\b|±\s*nan", re.IGNORECASE)
COUNT = {"kind": "count"}
MEAN = {"kind": "mean", "column": "income"}
SUM = {"kind": "sum", "column": "income"}  # cheaper to plan than a mean
AGES = {"kind": "histogram", "column": "age", "bins": 11}
EXPECTED = {"rows": 400, "income": [40_000, 12_000]}

# A question that takes as long as its draft says, or is `held` until the next draft comes; answers are painted into a
# list. `until` is what must have been painted or told before the next draft comes: a machine may be slow.
REPLANNER = """async (steps) => {
  const { Replanner } = await import("./static/js/planner/replanner.js");
  const painted = [], told = [];
  let flying = 0, most = 0, wanted = 0;
  const tick = () => new Promise((resolve) => setTimeout(resolve, 5));
  const pause = (time, signal) => new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, time);
    signal.addEventListener("abort", () => { clearTimeout(timer); reject(new DOMException("", "AbortError")); });
  });
  const replanner = new Replanner({
    price: async (draft, { proof, signal }) => {
      flying += 1;
      most = Math.max(most, flying);
      try {
        while (draft.held && wanted === draft.place) await tick();
        await pause(proof ? draft.proof : draft.time, signal);
      } finally {
        flying -= 1;
      }
      if (draft.refused) throw new Error(draft.name);
      return `${draft.name}${proof ? " proven" : ""}`;
    },
    paint: (view) => painted.push(view),
    fail: (error) => painted.push(`refused ${error.message}`),
    status: (text) => told.push(text),
    rest: 30,
  });
  for (const step of steps) {
    wanted += 1;
    replanner.want({ ...step, place: wanted });
    await new Promise((resolve) => setTimeout(resolve, 1));
    while (!(step.until ?? []).every((text) => painted.includes(text) || told.includes(text))) await tick();
  }
  const last = steps.at(-1);
  const end = last.refused ? `refused ${last.name}` : `${last.name} proven`;
  while (painted.at(-1) !== end) await tick();
  return { painted, most, told };
}"""


def replanned(page: Page, *steps: dict[str, Any]) -> dict[str, Any]:
    """What a stream of drafts paints; each takes `time` and its proof `proof` milliseconds."""
    usual = {"time": 10, "proof": 10}
    found: dict[str, Any] = page.evaluate(REPLANNER, [{**usual, **step} for step in steps])
    return found


@pytest.fixture(scope="module")
def bare(browser: Browser, site: Site) -> Iterator[Page]:
    """A page on which modules can be tried alone."""
    with closing(browser.new_context(base_url=site.url)) as context:
        page = context.new_page()
        page.goto("/")
        yield page


def test_a_stream_of_changes_has_one_question_in_flight_and_ends_with_the_newest(bare: Page) -> None:
    found = replanned(bare, *({"name": str(n)} for n in range(30)))
    assert found["most"] == 1
    assert found["painted"][-2:] == ["29", "29 proven"]
    order = [int(name) for name in found["painted"][:-1]]
    assert order == sorted(set(order))


def test_a_slow_proof_gives_way_to_a_newer_draft_and_is_never_painted(bare: Page) -> None:
    found = replanned(bare, {"name": "a", "proof": 60_000, "until": ["a", "proving"]}, {"name": "b"})
    assert found["painted"] == ["a", "b", "b proven"]
    assert found["told"].count("proving") == 2


def test_a_slower_answer_never_overwrites_a_newer_one(bare: Page) -> None:
    found = replanned(bare, {"name": "slow", "held": True}, {"name": "quick", "time": 1})
    # The slow one may still come before the next frame, or too late for it.
    assert found["painted"] in (["slow", "quick", "quick proven"], ["quick", "quick proven"])


def test_a_refusal_of_an_older_draft_is_not_shown(bare: Page) -> None:
    found = replanned(bare, {"name": "a", "refused": True, "held": True}, {"name": "b"})
    assert found["painted"] == ["b", "b proven"]
    assert replanned(bare, {"name": "c", "refused": True})["painted"] == ["refused c"]


# What the bar says after every change of it, with the time of the change.
WATCH_THE_BAR = """() => {
  window.seen = [];
  const look = () => {
    const parts = [...document.querySelectorAll("#plan-bar .bar .bar-part")];
    window.seen.push(Object.fromEntries(parts.map((part) => [part.classList[1], Number(part.dataset.value)])));
  };
  new MutationObserver(look).observe(document.querySelector("#plan-bar"), {
    attributes: true, childList: true, subtree: true,
  });
}"""


def row_of(page: Page, name: str) -> Locator:
    """The line of one statistic, and what is unfolded below it."""
    return page.locator(f'.statistic[data-name="{name}"]')


def unfolded(page: Page, name: str) -> Locator:
    """The line of one statistic with its details in sight."""
    row = row_of(page, name)
    opener = row.locator(".statistic-open")
    if opener.get_attribute("aria-expanded") == "false":
        opener.click()
    return row


def opened(page: Page, site: Site, user: str, *entries: dict[str, Any], dataset: str = DATASET) -> None:
    """Open the planner with these statistics, as a tab that was reloaded, and wait for the proof."""
    kept_plan(page, user, dataset, *entries, expected=EXPECTED)
    go(page, site, f"#/plan/{dataset}", f"Plan for {dataset}")
    proven(page)


def proven(page: Page) -> None:
    """Wait until the plan on the screen has its proof."""
    expect(page.locator("#plan-proof")).to_have_text("proven")


def error_of(row: Locator) -> float:
    """The error that a row shows."""
    return float(re.sub("[±,]", "", row.locator(".error-number").inner_text()))


def made(row: Locator, within: float) -> None:
    """Ask for an error in a row."""
    row.get_by_label("Make it ±").fill(f"{within:g}")
    row.get_by_role("button", name="Set this error").click()


def charges_of(site: Site, dataset: str) -> int:
    """How often the ledger was charged."""
    return site.state.root.budget(dataset).count


def test_a_stranger_asks_in_plain_words_and_sees_errors_first(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    go(page, site, f"#/plan/{DATASET}", f"Plan for {DATASET}")
    page.get_by_role("button", name="+ How many of each sex").click()
    page.get_by_role("button", name="Add a statistic").click()
    page.get_by_label("What do you want to know?").select_option("The average of a column")
    page.get_by_label("Which column?").select_option("income")
    page.get_by_text("Only some of the rows").click()
    condition = page.get_by_role("group", name="A condition")
    condition.get_by_label("Column").select_option("sex")
    condition.get_by_role("button", name="Use this").click()
    condition.get_by_label("Column").select_option("age")
    condition.get_by_label("Value").fill("18")
    condition.get_by_role("button", name="And this").click()
    page.get_by_role("button", name="Add to the plan").click()
    row = row_of(page, "mean of income where sex = 'F' and age >= 18")
    expect(row.locator(".error-number")).to_be_visible()
    page.get_by_role("button", name="Add a statistic").click()
    page.get_by_label("What do you want to know?").select_option("The average of a column")
    page.get_by_role("button", name="Add to the plan").click()
    row = unfolded(page, "mean of age")
    row.get_by_text("What do you expect?").click()
    row.get_by_label("Average").fill("41")
    expect(row.get_by_text("you expect 41; the answer would lie between 4")).to_be_visible()
    row = unfolded(page, "count by sex")
    row.get_by_text("What do you expect?").click()
    row.get_by_label("F", exact=True).fill("60")
    expect(row.get_by_label("M", exact=True)).to_have_value("40")  # the others share the rest
    row.get_by_label("F", exact=True).fill("170")
    expect(row.get_by_role("alert")).to_contain_text("These add up to 210%, not 100%.")
    row.get_by_label("F", exact=True).fill("60")
    expect(row.get_by_role("alert")).to_have_count(0)
    page.get_by_label("About how many rows are there?").fill("30000")
    proven(page)
    page.get_by_text("Composition saves nothing here").click()
    expect(
        page.get_by_text(re.compile("^Choosing each measurement after seeing the answers before it"))
    ).to_be_visible()
    whole = "Budget of people: 0 spent, 3 this plan, 0 set aside, 0 free, of 3 in all"
    expect(page.get_by_role("img", name=whole)).to_be_visible()
    assert not NO_NUMBER.search(page.locator("main").inner_text())
    assert faults_of_all_looks(page) == {}
    go(page, site, f"#/ask/{DATASET}", f"Ask about {DATASET}")
    expect(page.get_by_label("About how many rows are there?")).to_have_value("30000")  # said once


def test_a_cost_that_delta_covers_is_not_told_as_nothing(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    opened(page, site, "ada", {**COUNT, "within": 1e9})
    page.get_by_role("button", name="Release …").click()
    expect(page.get_by_role("button", name=re.compile("Release and spend"))).to_contain_text("under 1e−9")
    expect(page.get_by_role("dialog")).not_to_contain_text(re.compile(r"ε\s0(?![.\d])"))


def test_a_budget_that_protects_little_is_called_so_before_it_is_spent(new_page: NewPage, site: Site) -> None:
    site.declare({**DECLARATION, "name": "generous", "epsilon": 20.0})
    page = new_page("ada")
    opened(page, site, "ada", {**COUNT, "by": ["sex"]}, dataset="generous")
    expect(page.locator(".notice.warn")).to_contain_text("Epsilon 20 protects almost nobody")
    page.get_by_role("button", name="Release …").click()
    expect(page.get_by_role("dialog")).to_contain_text("Epsilon 20 protects almost nobody")
    assert faults_of_all_looks(page) == {}


def test_a_condition_that_cannot_be_read_is_refused_and_the_plan_stays(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    opened(page, site, "ada", COUNT)
    page.get_by_role("button", name="Add a statistic").click()
    page.get_by_text("Only some of the rows").click()
    page.get_by_label("The condition").fill("sex = 'female'")
    page.get_by_role("button", name="Add to the plan").click()
    expect(page.get_by_role("alert")).to_contain_text("the statistic was not added")
    expect(page.get_by_role("alert")).to_contain_text("'female' is not among the categories")
    expect(page.locator(".statistic")).to_have_count(1)
    proven(page)
    page.get_by_label("What do you want to know?").select_option("The average of a column")
    page.get_by_label("Which column?").select_option("income")
    page.get_by_label("The condition").fill("agee >= 65 annd sex = 'F'")
    page.get_by_role("button", name="Add to the plan").click()
    expect(page.get_by_role("alert")).to_contain_text("agee")
    asked, caret = page.locator(".fault-caret").inner_text().split("\n")[:2]
    assert asked[caret.index("^") :].startswith("annd")  # the caret points at what cannot be read
    expect(page.get_by_label("The condition")).to_be_focused()
    expect(page.get_by_label("The condition")).to_have_value("agee >= 65 annd sex = 'F'")
    expect(page.get_by_label("Which column?")).to_have_value("income")  # nothing that was typed is lost
    assert faults_of_all_looks(page) == {}
    page.get_by_label("The condition").fill("age >= 65 and sex = 'F'")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.get_by_role("button", name="Add to the plan").click()
    expect(row_of(page, "mean of income where age >= 65 and sex = 'F'")).to_be_visible()
    expect(page.get_by_label("The condition")).to_have_count(0)


@pytest.mark.slow
def test_a_slider_moved_fifty_times_never_shows_more_than_the_budget(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    opened(page, site, "ada", COUNT, SUM, AGES)
    total = site.state.root.budget(DATASET).total.epsilon
    page.evaluate(WATCH_THE_BAR)
    slider = row_of(page, "sum of income").get_by_label("Importance")
    before = error_of(row_of(page, "sum of income"))
    for step in range(50):
        painted = page.evaluate("window.seen.length")
        slider.press(("ArrowRight", "ArrowRight", "ArrowLeft", "PageUp", "End", "Home", "PageDown")[step % 7])
        # Most moves come faster than plans do; some are waited for, on a slow machine too.
        patience = 1000 if step % 4 == 3 else 0
        while patience and page.evaluate("window.seen.length") == painted:
            page.wait_for_timeout(10)
            patience -= 1
    slider.press("End")
    expect(page.locator("#plan-proof")).to_have_text("proven")
    page.get_by_label("This plan may use").press("ArrowLeft")
    proven(page)
    seen = page.evaluate("window.seen")
    assert len(seen) > 10
    for parts in seen:
        assert all(size >= 0 for size in parts.values())
        assert sum(parts.values()) <= total * (1 + 1e-12)
    assert error_of(row_of(page, "sum of income")) < before
    assert page.evaluate("performance.getEntriesByName('replan').length") > 5


def test_make_it_solves_for_the_error_and_the_others_share_the_rest(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    opened(page, site, "ada", COUNT, MEAN)
    row, other = row_of(page, "mean of income"), row_of(page, "count")
    wish, before = 0.8 * error_of(row), error_of(other)
    made(row, wish)
    expect(row.get_by_role("button", name="Unlock")).to_have_text(re.compile("Locked at ±"))
    proven(page)
    assert 0.9 * wish <= error_of(row) <= wish  # its widest interval is what was wished for
    assert error_of(other) >= before


def test_a_wish_beyond_the_budget_offers_the_closest_that_fits(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    opened(page, site, "ada", COUNT, MEAN)
    row = row_of(page, "mean of income")
    made(row, 0.001)
    expect(row.get_by_text("This does not fit as things stand")).to_be_visible()
    proven(page)  # the plan itself goes on without the wish
    row.get_by_role("button", name=re.compile("Closest possible: ±.* in 999 of 1,000 releases")).click()
    expect(row.get_by_role("button", name="Unlock")).to_be_visible()
    expect(row.get_by_text("That cannot be")).to_have_count(0)
    proven(page)


def test_a_lock_that_stands_in_the_way_is_named_and_can_be_opened(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    opened(page, site, "ada", {**COUNT, "weight": 1000.0}, SUM)
    count, other = row_of(page, "count"), row_of(page, "sum of income")
    count.get_by_role("button", name="Lock count at its present error").click()
    expect(count.get_by_label("Importance")).to_be_disabled()
    proven(page)
    wish = float(f"{0.6 * error_of(other):.2g}")  # as many digits as are shown
    made(other, wish)
    expect(other.get_by_text(re.compile("conflicts with the lock on count"))).to_be_visible()
    proven(page)  # the plan itself goes on without the wish
    assert faults_of_all_looks(page) == {}
    screenshot(page, "planner-lock", about=other.locator(".notice"))
    other.get_by_role("button", name="Unlock count").click()
    proven(page)
    expect(count.get_by_label("Importance")).to_be_enabled()
    assert 0.9 * wish <= error_of(other) <= wish  # its widest interval is what was wished for


def test_a_double_click_and_reloads_spend_once(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    site.declare({**DECLARATION, "name": "once"})
    opened(page, site, "ada", COUNT, AGES, dataset="once")
    for way_back in ("Escape", "Not yet"):
        page.get_by_role("button", name="Release …").press("Enter")
        expect(page.get_by_role("dialog")).to_contain_text("This cannot be undone.")
        if way_back == "Escape":
            page.keyboard.press("Escape")
        else:
            page.get_by_role("button", name=way_back).press("Enter")
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.get_by_role("button", name="Release …")).to_be_focused()
    page.get_by_role("button", name="Release …").click()
    page.get_by_role("button", name="Release and spend").dblclick()
    page.reload()
    page.reload()
    expect(page.locator(".answer")).to_have_count(2)
    page.reload()
    expect(page.locator(".answer")).to_have_count(2)
    assert charges_of(site, "once") == 1
    assert not NO_NUMBER.search(page.locator("main").inner_text())
    with page.expect_download() as found:
        page.get_by_role("link", name="Table (CSV)").click()
    assert found.value.path().read_text().startswith("statistic")
    go(page, site, "#/plan/once", "Plan for once")
    expect(page.get_by_text("The budget is spent")).to_be_visible()
    expect(page.get_by_role("link", name=re.compile("20"))).to_have_count(1)
    settled(page)
    assert faults_of_all_looks(page) == {}
    screenshot(page, "planner-exhausted")


def test_a_release_is_followed_without_events_and_the_same_plan_is_not_paid_twice(
    new_page: NewPage, site: Site
) -> None:
    page = new_page("bob")
    page.route("**/events", lambda route: route.fulfill(status=404, body=""))
    opened(page, site, "bob", COUNT)
    page.get_by_label("This plan may use").press("Home")
    proven(page)
    page.get_by_role("button", name="Release …").click()
    expect(page.get_by_role("dialog")).to_contain_text("your grant in people (bob)")
    page.get_by_role("button", name="Release and spend").click()
    expect(page.locator(".answer")).to_have_count(1)
    page.go_back()
    proven(page)
    page.get_by_role("button", name="Released: see or repeat …").click()
    expect(page.get_by_role("dialog")).to_contain_text("You have released exactly this already")
    page.get_by_role("button", name="Show what was released").click()
    expect(page.locator(".answer")).to_have_count(1)
    assert charges_of(site, DATASET) == 1


def test_a_budget_that_shrank_meanwhile_refuses_and_nothing_is_spent(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    site.declare({**DECLARATION, "name": "shrunk"})
    opened(page, site, "ada", COUNT, dataset="shrunk")
    page.get_by_role("button", name="Release …").click()
    site.state.ledger(site.caller("ada")).set_budget("shrunk", 0.5, 1e-7)
    page.get_by_role("button", name="Release and spend").click()
    expect(page.get_by_text("This was refused, and nothing was spent")).to_be_visible()
    assert charges_of(site, "shrunk") == 0
    assert faults_of_all_looks(page) == {}
    page.get_by_role("link", name="Back to the plan").click()
    expect(page.get_by_role("img", name=re.compile("free, of 0.5 in all$"))).to_be_visible()


def test_drafts_are_saved_under_a_name_and_never_overwrite_each_other(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    opened(page, site, "ada", COUNT, SUM)
    page.get_by_label("Name of this draft").fill("for the yearbook")
    page.get_by_role("button", name="Save draft").click()
    expect(page.get_by_role("row", name=re.compile("for the yearbook open"))).to_be_visible()
    other = new_page("ada")
    go(other, site, f"#/plan/{DATASET}/{page.url.rsplit('/', 1)[1]}", f"Plan for {DATASET}")
    other.get_by_label("Name of this draft").fill("for the board")
    other.get_by_role("button", name="Save", exact=True).click()
    expect(other.get_by_role("row", name=re.compile("for the board open"))).to_be_visible()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("This draft was changed elsewhere")
    page.get_by_role("button", name="Show me the other one").click()
    expect(page.get_by_label("Name of this draft")).to_have_value("for the board")


def test_an_auditor_plans_and_cannot_release(new_page: NewPage, site: Site) -> None:
    page = new_page("eve")
    opened(page, site, "eve", COUNT)
    expect(page.get_by_text("can plan but not release")).to_be_visible()
    expect(page.get_by_role("button", name="Release …")).to_have_count(0)
    expect(page.get_by_role("button", name="Save draft")).to_have_count(0)


def test_the_planner_and_a_release_fit_a_phone(new_page: NewPage, site: Site) -> None:
    page = new_page("ada", width=PHONE)
    site.declare({**DECLARATION, "name": "small"})
    table = {"kind": "contingency", "columns": ["age", "income"], "bins": {"age": 10, "income": 10}}
    quarters = {"kind": "quantiles", "column": "age", "probabilities": [0.25, 0.5, 0.75], "name": "quarters"}
    opened(page, site, "ada", COUNT, SUM, AGES, table, quarters, dataset="small")
    assert fits(page)
    page.get_by_role("button", name="Add a statistic").click()
    assert fits(page)
    page.get_by_role("button", name="Release …").click()
    assert fits(page)
    page.get_by_role("button", name="Release and spend").click()
    expect(page.locator(".answer")).to_have_count(5)
    settled(page)
    assert fits(page)
    expect(page.get_by_role("rowheader", name="25%", exact=True)).to_be_visible()
    expect(page.get_by_text("100 numbers; scroll to see them all")).to_be_visible()
    for width in (PHONE, WIDE):
        page.set_viewport_size({"width": width, "height": 800})
        labels = page.locator(".answer", has_text="100 numbers").locator(".chart-drawing .axis-text[y='217']")
        boxes = [labels.nth(place).bounding_box() for place in range(labels.count())]
        assert len(boxes) >= 1
        for left, right in pairwise(boxes):
            assert left is not None and right is not None
            assert left["x"] + left["width"] < right["x"]  # no label stands on another


def test_a_table_is_divided_and_its_parts_are_planned_by_themselves(new_page: NewPage, site: Site) -> None:
    site.declare({**DECLARATION, "name": "divided"})
    page = new_page("ada")
    go(page, site, "#/plan/divided", "Plan for divided")
    page.get_by_text("Divide the table into disjoint parts").click()
    page.get_by_role("button", name="Show the price").press("Enter")  # nothing was typed
    expect(page.get_by_role("link", name="Epsilon is a number above 0")).to_be_visible()
    page.get_by_label("Each part by itself").select_option("sex")
    page.get_by_label("Epsilon (ε) of each part").fill("0.5")
    settled(page)
    assert faults_of_all_looks(page) == {}
    page.get_by_role("button", name="Show the price").press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("all of them together cost epsilon 0.5")).to_be_visible()
    page.get_by_role("button", name="Divide and spend").press("Enter")
    expect(page.get_by_role("link", name="sex = F")).to_be_visible()
    assert round(site.state.root.budget("divided").spent_upper, 6) == 0.5
    page.get_by_role("link", name="sex = F").click()
    page.get_by_role("heading", level=1, name="Plan for divided sex F").wait_for()
    expect(page.get_by_text("costs divided nothing more")).to_be_visible()
    settled(page)
    assert faults_of_all_looks(page) == {}
    page.get_by_role("link", name="sex = M").click()
    page.get_by_role("heading", level=1, name="Plan for divided sex M").wait_for()
    assert round(site.state.root.budget("divided").spent_upper, 6) == 0.5

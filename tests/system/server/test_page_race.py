"""Two browsers for the last of a budget: one wins, the other is told what is left, and both pages agree afterwards."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from system.server.accessibility import faults_of_all_looks
from system.server.browser import (
    DECLARATION,
    NewPage,
    Site,
    go,
    kept_plan,
    screenshot,
    serving,
    settled,
)

pytestmark = [pytest.mark.slow, pytest.mark.draws(false_alarm=0, miss=0)]  # holds whatever the processes draw
# Both windows read one clock, so both buttons are pressed within the same few milliseconds.
PRESS_AT = """(at) => {
  const button = [...document.querySelectorAll("dialog[open] button")].find((one) => one.textContent.startsWith("Release and spend"));
  setTimeout(() => button.click(), at - Date.now());
}"""  # noqa: E501
# How many can win is raced for at length in test_instances.
YEARS = itertools.count(2020)  # a dataset of its own for every race


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """With somebody more. A worker runs several releases at once; workers of their own race in test_instances."""
    with serving(tmp_path_factory.mktemp("site")) as made:
        made.add("carol", "analyst")
        yield made


@pytest.mark.parametrize(
    ("first", "second", "share"),
    [("ada", "bob", 1.0), ("bob", "carol", 0.7), ("ada", "ada", 0.6)],
    ids=["curator and analyst", "two analysts", "two windows"],
)
def test_one_of_two_wins_the_last_of_a_budget_and_the_other_is_told_what_is_left(
    new_page: NewPage, site: Site, first: str, second: str, share: float
) -> None:
    pages = (new_page(first), new_page(second))
    name = f"clinics {next(YEARS)}"
    whole = {"bob": (1.0, 1e-6), "carol": (1.0, 1e-6)}
    site.declare({**DECLARATION, "name": name, "epsilon": 1.0, "delta": 1e-6}, whole)
    for page, user, column in zip(pages, (first, second), ("age", "income"), strict=True):
        _ready(page, site, user, name, column, share)
    at = pages[0].evaluate("Date.now()") + 500
    for page in pages:
        page.evaluate(PRESS_AT, at)
    winner, loser = _told_apart(pages)

    budget = site.state.root.budget(name)
    assert budget.count == 1 and budget.spent_upper <= 1.0
    assert share * 0.99 <= budget.spent_upper <= share * (1 + 1e-9)
    kinds = [entry.kind for entry in site.state.root.entries(name)]
    assert kinds.count("charge") == 1
    expect(winner.locator("#release-charged")).to_have_text(re.compile(f"{share:g}$"))

    left = f"ε\u202f{1 - share:.3g} is left" if share < 1 else "nothing is left"
    expect(loser.locator(".notice[role=status]")).to_contain_text(
        f"It needs ε\u202f{share:g}, and {left} of this budget."
    )
    if second == "carol":  # the screens of the others differ in numbers alone
        assert faults_of_all_looks(loser) == {}
        screenshot(loser, "release-refused")
    _agree(winner, loser, site, name, share)
    if second == "carol":
        assert faults_of_all_looks(loser) == {}


def _ready(page: Page, site: Site, user: str, dataset: str, column: str, share: float) -> None:
    """A plan for a share of the budget, with the last question on the screen."""
    kept_plan(
        page, user, dataset, {"kind": "histogram", "column": column, "bins": 4}, epsilon=None if share == 1 else share
    )
    go(page, site, f"#/plan/{dataset}", f"Plan for {dataset}")
    expect(page.locator("#plan-proof")).to_have_text("proven")
    page.get_by_role("button", name="Release …").click()
    expect(page.get_by_role("dialog")).to_contain_text("This cannot be undone.")


def _told_apart(pages: tuple[Page, Page]) -> tuple[Page, Page]:
    """The page that got answers, and the one that was refused."""
    ended = [page.locator(".answer").or_(page.get_by_text("This was refused, and nothing was spent")) for page in pages]
    for one in ended:
        expect(one.first).to_be_visible()
    won = [page.locator(".answer").count() == 1 for page in pages]
    assert sorted(won) == [False, True]
    return (pages[0], pages[1]) if won[0] else (pages[1], pages[0])


def _agree(winner: Page, loser: Page, site: Site, dataset: str, share: float) -> None:
    """A reload changes neither verdict; both then see the same amount free, and nothing is charged again."""
    for page in (winner, loser):
        page.reload()
        settled(page)
    expect(winner.locator(".answer")).to_have_count(1)
    loser.get_by_role("link", name="Back to the plan").click()
    winner.get_by_role("link", name="Plan more").click()
    for page in (winner, loser):
        if share == 1:
            expect(page.get_by_text("The budget is spent")).to_be_visible()
            expect(page.get_by_role("img", name=re.compile(", 0 free, of 1 in all$"))).to_be_visible()
        else:
            proof = page.locator("#plan-proof")
            expect(proof).to_have_text("proven")  # the plan fits into what is left, without a word from anybody
            expect(page.get_by_text("Less budget is left than this plan was made for")).to_be_visible()
            shown = page.locator("output", has_text="100% of what is free")
            expect(shown).to_contain_text(f"{1 - share:.3g}")
    assert site.state.root.budget(dataset).count == 1

"""What nobody knows, in a real browser: declared in the wizard, found for a price that is shown, and planned with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from system.server.accessibility import faults_of_all_looks
from system.server.browser import DECLARATION, NewPage, Site, go, serving, settled

pytestmark = pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever noise the server's workers draw


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server of its own: elsewhere another test may have given visits.csv an account already."""
    with serving(tmp_path_factory.mktemp("site")) as made:
        yield made


def test_what_nobody_knows_is_declared_found_and_planned_with(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    page.get_by_role("link", name="Declare a dataset").press("Enter")
    page.get_by_label("visits.csv").check()
    page.get_by_label("What should it be called?").fill("unknown visits")
    forward = page.get_by_role("button", name="Next")
    forward.press("Enter")
    page.get_by_label("A column names the person").check()
    page.get_by_label("Nobody knows how many rows of one person").check()
    expect(page.get_by_text("as many as are found to be best of them count")).to_be_visible()
    forward.press("Enter")
    page.get_by_label("age: What does it hold?").select_option("integers")
    page.get_by_label("age: Nobody knows its range").check()
    expect(page.get_by_label("age: Lowest")).to_have_count(0)
    page.get_by_label("place: What does it hold?").select_option("categories")
    page.get_by_label("place: Nobody knows its values").check()
    page.get_by_label("place: Ignore case").check()
    page.get_by_label("insured: What does it hold?").select_option("flags")
    expect(page.get_by_text("age is whole number: its range is not known")).to_be_visible()
    assert faults_of_all_looks(page) == {}
    forward.press("Enter")
    page.get_by_label("Epsilon").fill("50")
    forward.press("Enter")
    expect(page.get_by_text("The declaration is valid")).to_be_visible()
    page.get_by_role("button", name="Declare this dataset").press("Enter")
    page.get_by_role("heading", level=1, name="unknown visits is declared").wait_for()

    go(page, site, "#/plan/unknown%20visits", "Plan for unknown visits")
    card = page.locator("#unknown-facts")
    button = card.get_by_role("button", name="Find it (costs")
    expect(button).to_be_visible()
    expect(card.get_by_text("rows of one person")).to_be_visible()
    settled(page)
    assert faults_of_all_looks(page) == {}
    page.get_by_label("What do you want to know?").select_option("count_distinct")
    page.get_by_label("For how many values may one person count?").fill("2")
    before = site.state.root.budget("unknown visits").count
    button.press("Enter")
    page.get_by_role("button", name="Find it and spend").press("Enter")
    expect(card.locator("#findings li")).to_have_count(3, timeout=60_000)
    expect(button).to_have_count(0)
    assert (before, site.state.root.budget("unknown visits").count) == (0, 3)

    page.get_by_label("What do you want to know?").select_option("top")
    expect(page.get_by_label("How many values?")).to_have_value("10")


def test_a_count_by_a_text_that_nobody_listed_finds_its_values_in_one_step(new_page: NewPage, site: Site) -> None:
    columns = {**DECLARATION["columns"], "region": {"unknown": "text"}}
    site.declare({**DECLARATION, "name": "regions", "columns": columns, "epsilon": 40.0, "delta": 1e-6})
    page = new_page("ada")
    go(page, site, "#/plan/regions", "Plan for regions")
    page.get_by_label("What do you want to know?").select_option("count_distinct")
    page.get_by_label("Which column?").select_option("region")
    expect(page.get_by_text("text whose values nobody listed: all different ones are counted")).to_be_visible()
    page.get_by_role("button", name="Add to the plan").press("Enter")
    expect(page.get_by_text("number of different values of region")).not_to_have_count(0)
    settled(page)
    page.get_by_role("button", name="Add a statistic").click()
    page.get_by_label("What do you want to know?").select_option("count")
    page.get_by_text("For each group separately").click()
    expect(page.get_by_text("Nobody listed the values of region")).to_be_visible()
    page.get_by_label("region", exact=True).check()
    page.get_by_role("button", name="Add to the plan").press("Enter")
    expect(page.get_by_text("appears 95 times in 100, with a count within")).to_be_visible()
    settled(page)
    page.get_by_role("button", name="Release …").click()
    page.get_by_role("button", name="Release and spend").click()
    for value in ("north", "south", "east"):
        expect(page.get_by_text(value, exact=True).first).to_be_visible(timeout=60_000)
    assert site.state.root.budget("regions").count == 1
    expect(page.get_by_text("the values of region were found in the data: others count as missing")).to_be_visible()
    go(page, site, "#/dataset/regions", "About regions")
    expect(page.get_by_text("from common knowledge, or found in the rows for a part of the budget")).to_be_visible()
    expect(page.get_by_role("row", name="region")).to_contain_text("(found)")


def test_a_plan_with_a_range_that_nobody_knows_is_shown_in_two_stages_before_anything_is_spent(
    new_page: NewPage, site: Site
) -> None:
    columns = {**DECLARATION["columns"], "income": {"unknown": "number"}}
    site.declare({**DECLARATION, "name": "incomes", "columns": columns, "epsilon": 20.0, "delta": 1e-6})
    page = new_page("ada")
    go(page, site, "#/plan/incomes", "Plan for incomes")
    page.get_by_label("What do you want to know?").select_option("mean")
    page.get_by_label("Which column?").select_option("income")
    expect(page.get_by_text("numbers whose range nobody knows yet")).to_be_visible()
    page.get_by_role("button", name="Add to the plan").press("Enter")
    stages = page.locator("#stages")
    expect(stages.get_by_text("It costs ε\u202f1:")).to_be_visible()  # 5% of what is left
    expect(stages.get_by_text("a range of income whose ends")).to_be_visible()
    expect(page.get_by_role("button", name="Find it (costs")).to_have_count(1)  # one search has one price
    expect(stages.get_by_text("The second stage then has ε\u202f19")).to_be_visible()
    head = [stages.get_by_role("columnheader").nth(place).inner_text() for place in range(3)]
    assert head == ["Statistic", "income: 0 to 100", "income: 0 to 1,000,000"]
    narrow, wide = (stages.get_by_role("cell").nth(place).inner_text() for place in range(2))
    assert 0 < 1_000 * float(narrow.strip("±")) < float(wide.strip("±").replace(",", "")) < 1_000_000
    settled(page)
    assert faults_of_all_looks(page) == {}
    assert site.state.root.budget("incomes").count == 0
    stages.get_by_role("button", name="Find it (costs ε\u202f1)").press("Enter")
    page.get_by_role("button", name="Find it and spend").press("Enter")
    expect(page.locator("#findings li")).to_have_count(1, timeout=60_000)
    expect(stages).to_have_count(0)
    assert site.state.root.budget("incomes").count == 1
    page.get_by_role("button", name="Add to the plan").press("Enter")  # what was typed is still there
    expect(page.get_by_role("heading", name="mean of income")).to_be_visible()


def test_who_cancels_a_statistic_no_longer_sees_its_two_stages(new_page: NewPage, site: Site) -> None:
    columns = {**DECLARATION["columns"], "income": {"unknown": "number"}}
    site.declare({**DECLARATION, "name": "wages", "columns": columns, "epsilon": 20.0, "delta": 1e-6})
    page = new_page("ada")
    go(page, site, "#/plan/wages", "Plan for wages")
    page.get_by_role("button", name="Add to the plan").press("Enter")
    page.get_by_role("button", name="Add a statistic").press("Enter")
    page.get_by_label("What do you want to know?").select_option("mean")
    page.get_by_label("Which column?").select_option("income")
    page.get_by_role("button", name="Add to the plan").press("Enter")
    stages = page.locator("#stages")
    expect(stages.get_by_text("With this statistic, the plan has two stages")).to_be_visible()
    page.get_by_role("button", name="Cancel").press("Enter")
    expect(stages).to_have_count(0)
    expect(page.locator(".statistic")).to_have_count(1)

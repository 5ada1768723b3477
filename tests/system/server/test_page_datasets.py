"""From a file to a protected dataset in a real browser: the wizard, home, and the page about a dataset."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from farthing.server.services.dataset_service import declaration_of
from system.server.accessibility import faults_of_all_looks
from system.server.browser import DATASET, DECLARATION, NewPage, Site, go, screenshot, serving, settled

pytestmark = pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever noise the server's workers draw


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server that nobody asks for a release: it needs no worker."""
    with serving(tmp_path_factory.mktemp("site"), works=False) as made:
        yield made


def press_next(page: Page) -> None:
    page.get_by_role("button", name="Next").press("Enter")


def told_about_columns(page: Page) -> None:
    page.get_by_label("age: What does it hold?").select_option("integers")
    page.get_by_label("age: Lowest").fill("0")
    page.get_by_label("age: Highest").fill("110")
    page.get_by_label("place: What does it hold?").select_option("categories")
    page.get_by_label("place: Which values can it have?").fill("ward, clinic")
    page.get_by_label("insured: What does it hold?").select_option("flags")


def test_the_wizard_leads_from_a_file_to_a_plan(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    page.get_by_role("link", name="Declare a dataset").press("Enter")
    page.get_by_label("visits.csv").check()
    expect(page.get_by_label("What should it be called?")).to_have_value("visits")
    page.get_by_label("What should it be called?").fill("visits 2024")
    settled(page)
    assert faults_of_all_looks(page) == {}
    screenshot(page, "wizard-file")
    press_next(page)
    step = page.get_by_role("navigation", name="Steps").locator("[aria-current=step]")
    expect(step).to_have_text("Person")
    expect(page.get_by_role("heading", name="Whom does it protect?")).to_be_focused()
    press_next(page)  # neither answer is the server's to give
    expect(page.get_by_role("link", name="Say where one person is in this file.")).to_be_visible()
    page.get_by_label("One row is one person").check()
    expect(page.get_by_text("The file has person. If somebody may have several rows")).to_be_visible()
    page.get_by_label("A column names the person").check()
    expect(page.get_by_label("Which column names the person?")).to_have_value("person")
    script = "(names) => import('/static/js/wizard/declaration_draft.js').then((module) => module.personColumns(names))"
    proposed = page.evaluate(script, {"sourceColumns": [{"name": "visit_id"}, {"name": "personId"}, {"name": "ward"}]})
    assert proposed == ["personId"]  # the number of a visit names nobody
    page.get_by_label("At most how many rows of one person count?").fill("3")
    expect(page.get_by_text("and at most 3 of them count")).to_be_visible()
    assert faults_of_all_looks(page) == {}
    screenshot(page, "wizard-person")
    press_next(page)
    told_about_columns(page)
    expect(page.get_by_text("age outside 0 to 110 is moved to the nearest end")).to_be_visible()
    assert faults_of_all_looks(page) == {}
    screenshot(page, "wizard-columns")
    page.get_by_label("place: Ignore blanks before and after").check()
    page.get_by_label("place: Ignore case").check()
    press_next(page)
    page.get_by_label("What should the account be called?").fill("patients")
    page.get_by_role("slider").press("ArrowRight")
    expect(page.get_by_text(re.compile("can be at most 7[3-5].* sure"))).to_be_visible()
    page.get_by_label("Epsilon").fill("2")
    expect(page.get_by_text("can be at most 88.1% sure")).to_be_visible()
    assert faults_of_all_looks(page) == {}
    screenshot(page, "wizard-budget")
    press_next(page)
    expect(page.get_by_text("The declaration is valid")).to_be_visible()
    expect(page.get_by_text("Opens the account 'patients' (protects person, add-remove")).to_be_visible()
    assert faults_of_all_looks(page) == {}
    screenshot(page, "wizard-check")
    told = page.evaluate("sessionStorage.getItem('farthing-wizard')")
    page.get_by_role("button", name="Declare this dataset").press("Enter")
    page.get_by_role("heading", level=1, name="visits 2024 is declared").wait_for()
    assert site.state.ledger(site.caller("ada")).budget("patients").total.epsilon == 2.0
    declared = declaration_of(site.state.store, "visits 2024")
    assert declared is not None
    place = {"categories": ["ward", "clinic"], "trim": True, "lower": True}
    assert {key: value for key, value in declared.facts["columns"]["place"].items() if value is not None} == place
    page.get_by_role("link", name="Plan a release").press("Enter")
    page.wait_for_url("**/#/plan/visits%202024")
    expect(page.get_by_role("heading", name="visits 2024 is declared")).to_have_count(0)
    again = told.replace("visits 2024", "visits again").replace('"accountName":"patients"', '"accountName":""')
    page.evaluate("text => sessionStorage.setItem('farthing-wizard', text)", again)
    go(page, site, "#/wizard?step=4", "Declare a dataset")  # a file has one account, and no second budget
    expect(page.get_by_label("Which account protects these people?")).to_have_value("patients")
    expect(page.get_by_text("The account patients pays")).to_be_visible()
    expect(page.get_by_label("Epsilon")).to_have_count(0)
    assert faults_of_all_looks(page) == {}
    press_next(page)
    expect(page.get_by_text("Pays from the account 'patients', to which the table belongs.")).to_be_visible()
    expect(page.get_by_text("The declaration is valid")).to_be_visible()


def test_the_wizard_says_what_is_missing_and_a_reload_loses_nothing(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    go(page, site, "#/wizard", "Declare a dataset")
    press_next(page)
    summary = page.get_by_role("group", name="2 entries are missing")
    expect(summary).to_be_focused()
    page.get_by_role("link", name="Give it a name").click()
    expect(page.get_by_label("What should it be called?")).to_be_focused()
    page.get_by_label("visits.csv").check()
    press_next(page)
    page.get_by_label("One row is one person").check()
    press_next(page)
    page.get_by_label("person: What does it hold?").select_option("none")
    told_about_columns(page)
    page.get_by_label("age: Highest").fill("a lot")
    press_next(page)
    expect(page.get_by_label("age: Highest")).to_have_attribute("aria-invalid", "true")
    tops = [page.get_by_label(f"age: {end}").bounding_box()["y"] for end in ("Lowest", "Highest")]  # type: ignore[index]
    assert tops[0] == tops[1]  # an error below one does not move it out of line
    page.reload()
    expect(page.get_by_label("age: Highest")).to_have_value("a lot")
    page.get_by_label("age: Highest").fill("1,000")
    press_next(page)
    expect(page.get_by_role("group", name="One entry is missing or wrong")).to_contain_text("without a comma")
    page.get_by_label("age: Highest").fill("-1")
    press_next(page)
    expect(page.get_by_role("link", name="age: the highest value is not above the lowest.")).to_be_visible()
    page.go_back()  # one step, and nothing that was said is lost
    expect(page.get_by_label("One row is one person")).to_be_checked()
    page.go_forward()
    expect(page.get_by_label("age: Highest")).to_have_value("-1")
    go(page, site, "#/wizard?step=5", "Declare a dataset")  # not before the columns are right
    expect(page.get_by_role("heading", name="What can the columns hold?")).to_be_visible()
    page.get_by_role("button", name="File: done; go back to it").click()
    expect(page.get_by_role("heading", name="Which file is it?")).to_be_focused()


def test_what_the_server_objects_to_is_told_with_the_way_back(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    go(page, site, "#/wizard", "Declare a dataset")
    page.get_by_label("people.csv").check()
    page.get_by_label("What should it be called?").fill(DATASET)  # there is one of that name
    press_next(page)
    page.get_by_label("One row is one person").check()
    press_next(page)
    for column in ("sex", "region", "income"):
        page.get_by_label(f"{column}: What does it hold?").select_option("none")
    page.get_by_label("age: What does it hold?").select_option("integers")
    page.get_by_label("age: Lowest").fill("0")
    page.get_by_label("age: Highest").fill("1" + 30 * "0")
    expect(page.locator(".wizard-column .field-error")).to_contain_text("age")
    press_next(page)
    press_next(page)
    expect(page.get_by_text("This does not fit yet")).to_be_visible()
    expect(page.get_by_role("button", name="Declare this dataset")).to_be_disabled()
    page.get_by_role("button", name="Change the columns").click()
    page.get_by_label("age: Highest").fill("120")
    press_next(page)
    press_next(page)
    expect(page.get_by_role("alert")).to_contain_text("there is a dataset 'people' already")
    expect(page.get_by_text("The declaration is valid")).to_have_count(0)
    page.get_by_role("button", name="Change the name").click()
    page.get_by_label("What should it be called?").fill("everybody")
    for _ in range(3):
        press_next(page)
    # An account that was proposed while it was called people went with that name.
    expect(page.get_by_label("Which account protects these people?")).to_have_value("")
    page.get_by_label("Epsilon").fill("100")
    page.get_by_label("Delta").fill("0,5")
    expect(page.get_by_text("Write it without a comma.")).to_be_visible()
    page.get_by_label("Delta").fill("0.01")
    press_next(page)
    expect(page.get_by_text("Epsilon 100 protects almost nobody")).to_be_visible()
    expect(page.get_by_text("everything about 1 in 100 of the people")).to_be_visible()
    expect(page.get_by_text("The declaration is valid")).to_be_visible()
    site.declare({**DECLARATION, "name": "everybody"})  # by somebody else, in the meantime
    page.get_by_role("button", name="Declare this dataset").click()
    expect(page.get_by_role("alert")).to_contain_text("It was not declared")
    expect(page.get_by_text("The declaration is valid")).to_have_count(0)


def test_only_a_curator_can_declare_a_dataset(new_page: NewPage, site: Site) -> None:
    page = new_page("bob")
    expect(page.get_by_role("link", name="Declare a dataset")).to_have_count(0)
    go(page, site, "#/wizard", "Declare a dataset")
    expect(page.locator("main")).to_contain_text("Only a curator can declare a dataset")


def test_home_shows_each_budget_and_what_can_be_done(new_page: NewPage) -> None:
    for user, bar, ways in (
        ("ada", "Budget: 0 spent, 3 free, of 3 in all", {"Plan", "Ask", "About"}),
        ("bob", "Your budget: 0 spent, 1 free, of 1 in all", {"Plan", "Ask", "About"}),
        ("eve", "Budget: 0 spent, 3 free, of 3 in all", {"About", "Ledger"}),
    ):
        page = new_page(user)
        card = page.locator(".dataset-card", has=page.get_by_role("link", name=DATASET, exact=True))
        expect(card.get_by_role("img", name=bar)).to_be_visible()
        assert set(card.locator(".row a").all_inner_texts()) == ways
        assert faults_of_all_looks(page) == {}
        if user == "ada":
            screenshot(page, "home")


def test_a_curator_divides_a_budget(new_page: NewPage, site: Site) -> None:
    site.add("carol", "analyst")
    page = new_page("ada")
    go(page, site, f"#/dataset/{DATASET}", f"About {DATASET}")
    page.get_by_text("Grant a part of it").click()
    page.get_by_role("button", name="Grant it").click()
    expect(page.get_by_role("group", name="2 entries are missing")).to_be_focused()
    page.get_by_label("Analyst", exact=True).select_option("carol")
    page.locator("#grant-epsilon").fill("0.5")
    page.get_by_role("button", name="Grant it").click()
    expect(page.get_by_role("row", name="carol 0.5 0 0.5")).to_be_visible()
    page.get_by_label("Analyst", exact=True).select_option("carol")
    page.locator("#grant-epsilon").fill("0")  # who may plan and ask, and spend nothing
    page.get_by_role("button", name="Grant it").click()
    expect(page.get_by_text("carol may now plan, and ask you for each release.")).to_be_visible()
    page.get_by_label("Analyst", exact=True).select_option("carol")
    page.locator("#grant-epsilon").fill("5")  # both limits hold, and the toast says which one is nearer
    page.get_by_role("button", name="Grant it").click()
    expect(page.get_by_text("The budget of people has only ε 3 left")).to_be_visible()
    page.get_by_label("Analyst", exact=True).select_option("carol")
    page.locator("#grant-epsilon").fill("0.5")
    page.get_by_role("button", name="Grant it").click()
    expect(page.get_by_role("row", name="carol 0.5 0 0.5")).to_be_visible()
    page.get_by_text("Set something aside").click()
    page.get_by_label("For what?").fill("next wave")
    page.locator("#reserve-epsilon").fill("0.25")
    page.get_by_role("button", name="Set it aside").click()
    expect(page.get_by_role("img", name="Budget: 0 spent, 0.25 set aside, 2.75 free, of 3 in all")).to_be_visible()
    page.evaluate("for (const one of document.querySelectorAll('details.more')) one.open = true")
    page.get_by_label("What was declared wrongly?").select_option(label="age")
    expect(page.get_by_label("Highest")).to_have_value("110")
    page.get_by_label("Highest").fill("120")
    page.get_by_role("button", name="See what it changes").click()
    expect(page.get_by_role("group", name="One entry is missing or wrong")).to_be_focused()
    page.get_by_label("Why?").fill("some are older than 110")
    page.get_by_role("button", name="See what it changes").click()
    expect(page.get_by_role("row", name="age 0 to 110 0 to 120")).to_be_visible()
    assert faults_of_all_looks(page) == {}
    screenshot(page, "dataset")
    page.get_by_role("button", name="Correct it").click()
    expect(page.get_by_role("row", name="age whole numbers 0 to 120")).to_be_visible()
    page.get_by_label("What was declared wrongly?").select_option(label="age")
    page.get_by_label("Highest").fill("110")
    page.get_by_label("Why?").fill("nobody is")
    page.get_by_role("button", name="See what it changes").click()
    page.get_by_role("button", name="Correct it").click()
    expect(page.get_by_role("row", name="age whole numbers 0 to 110")).to_be_visible()
    page.get_by_label("For what?").fill("next wave")
    page.locator("#reserve-epsilon").fill("0")
    page.get_by_role("button", name="Set it aside").click()
    expect(page.get_by_text("Nothing is set aside. A part")).to_be_visible()
    assert site.state.ledger(site.caller("ada")).budget(DATASET, "carol").total.epsilon == 0.5


def test_others_see_a_dataset_without_what_is_not_theirs(new_page: NewPage, site: Site) -> None:
    page = new_page("bob")
    go(page, site, f"#/dataset/{DATASET}", f"About {DATASET}")
    expect(page.get_by_role("row", name="age whole numbers 0 to 110")).to_be_visible()
    for hidden in (
        "people.csv",
        "Grants of analysts",
        "Change the budget",
        "Set aside for later",
        "Correct the declaration",
    ):
        expect(page.get_by_text(hidden)).to_have_count(0)
    page = new_page("eve")
    go(page, site, f"#/dataset/{DATASET}", f"About {DATASET}")
    expect(page.get_by_role("heading", name="Grants of analysts")).to_be_visible()
    expect(page.get_by_text("Grant a part of it")).to_have_count(0)
    go(page, site, "#/dataset/nothing", "About nothing")
    expect(page.get_by_role("alert")).to_contain_text("does not exist")
    page.get_by_role("link", name="Back to the datasets").click()
    page.get_by_role("heading", level=1, name="Datasets").wait_for()


def test_a_spent_budget_says_what_can_still_be_done(new_page: NewPage, site: Site) -> None:
    site.add("dora", "analyst")
    site.declare({**DECLARATION, "name": "spent"}, {"dora": (0.5, 0.0)})
    site.state.ledger(site.caller("dora", "analyst")).charge("spent", 0.5, request_id="all of it")
    page = new_page("dora")
    card = page.locator(".dataset-card")
    expect(card).to_contain_text("A curator can grant more.")
    assert set(card.locator(".row a").all_inner_texts()) == {"About", "Ledger"}
    go(page, site, "#/dataset/spent", "About spent")
    expect(page.get_by_text("Nothing is left to spend")).to_be_visible()
    assert faults_of_all_looks(page) == {}


def test_a_budget_lowered_below_what_is_spent_still_shows_what_is_spent(new_page: NewPage, site: Site) -> None:
    site.declare({**DECLARATION, "name": "lowered", "epsilon": 2.0})
    ledger = site.state.ledger(site.caller("ada"))
    ledger.release(ledger.charge("lowered", 1.8, request_id="ada:most"), "{}")
    page = new_page("ada")
    go(page, site, "#/dataset/lowered", "About lowered")
    page.get_by_text("Change the budget").first.click()
    page.locator("#budget-epsilon").fill("0.5")
    page.get_by_role("button", name="Change the budget").click()
    expect(page.get_by_role("img", name="Budget: 1.8 spent, 0 free, of 0.5 in all")).to_be_visible()
    expect(page.get_by_text("Epsilon 1.8 is spent, more than the 0.5")).to_be_visible()
    go(page, site, "#/", "Datasets")
    card = page.locator(".dataset-card", has=page.get_by_role("link", name="lowered", exact=True))
    expect(card.get_by_role("img", name="Budget: 1.8 spent, 0 free, of 0.5 in all")).to_be_visible()
    go(page, site, "#/ledger/lowered", "Ledger of lowered")
    name = re.compile("More is spent than the budget now allows: 1.8, of 0.5")
    expect(page.get_by_role("img", name=name)).to_be_visible()
    # The budget's line is at 2 until the last entry and falls there: it is a step, as what was spent is.
    heights = re.findall(r"[V,]([0-9.]+)", page.locator("path.burn-total").get_attribute("d") or "")
    assert float(heights[0]) < float(heights[-1])

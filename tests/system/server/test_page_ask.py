"""The ask screen in a real browser: a session from its price to its last answer."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from farthing.server.schemas.dataset_schema import Declaration
from farthing.server.services.dataset_registry import register
from system.server.accessibility import faults_of_all_looks
from system.server.browser import DECLARATION, PHONE, NewPage, Site, fits, go, screenshot, settled

pytestmark = pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever noise the server's workers draw

# In the table of `browser.people_csv` sex and region follow from the age, which no first guess can know.
SURPRISES = [
    *(f"sex = '{sex}' and age % 2 = {rest}" for sex in "FM" for rest in (0, 1)),
    *(f"region = '{region}' and age % 3 = {rest}" for region in ("north", "south", "east") for rest in (0, 1, 2)),
    *(f"age >= {age}" for age in range(20, 60, 5)),
]


def _ask(page: Page, question: str) -> None:
    """Ask, and wait until something was said."""
    page.locator("#ask-question").fill(question)
    with page.expect_response(re.compile(r"/ask$")):
        page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".ask-form [aria-busy=true]")).to_have_count(0)


def _left(page: Page, what: str) -> int:
    return int(page.locator(f"[data-stat='{what}']").inner_text().replace(",", ""))


@pytest.mark.slow
def test_an_analyst_asks_until_refused(new_page: NewPage, site: Site) -> None:
    page = new_page("bob")
    go(page, site, "#/ask/people")
    page.get_by_label(re.compile("About how many rows")).fill("400")
    # All that is left, and as exact as can be: the session then ends early.
    for slider in (page.get_by_label("What may it cost?"), page.locator("input[name=alpha]")):
        slider.focus()
        page.keyboard.press("End")
    expect(page.get_by_text("More accurate than this price allows")).to_be_visible()
    page.get_by_role("button", name=re.compile("^Make it within")).click()
    expect(page.get_by_role("button", name="Open the session")).to_be_enabled()
    screenshot(page, "ask-open")
    assert faults_of_all_looks(page) == {}
    page.get_by_role("button", name="Open the session").click()
    page.get_by_role("button", name=re.compile("^Spend")).dblclick()  # a second press opens no second session
    page.locator("#ask-question").wait_for()
    updates = _left(page, "updates left")
    assert updates >= 1

    _ask(page, "age >= 50 and height > 180")
    pointed = page.locator(".fault-caret").inner_text()
    assert pointed.splitlines() == ["age >= 50 and height > 180", " " * 14 + "^"]
    assert _left(page, "updates left") == updates
    _ask(page, "income > 30000")  # which the dataset has, and the session has not
    expect(page.get_by_text("income is a column of people, but this session was opened without it")).to_be_visible()

    ended = page.get_by_text("The updates of this session are used up")
    for question in SURPRISES:
        _ask(page, question)
        if ended.is_visible() and page.locator(".ask-answer").count() == 0:
            break
    expect(ended).to_be_visible()
    screenshot(page, "ask-ended")
    assert faults_of_all_looks(page) == {}
    assert _left(page, "updates left") == 0

    again = page.locator(".notice .ask-chip").first
    question = again.inner_text()
    again.click()
    _ask(page, question)
    first = page.get_by_role("row", name=re.compile(re.escape(question)))
    expect(page.locator(".ask-number")).to_contain_text(first.locator("td").nth(1).inner_text())
    expect(page.locator(".ask-answer")).to_contain_text("you asked this before, and the same answer is free")
    expect(page.locator(".ask-answer .badge")).to_have_text("free")

    go(page, site, "#/ask/people")
    expect(page.get_by_role("link", name=re.compile("^Ask in session"))).to_have_count(1)
    expect(page.get_by_text("The budget is used up")).to_be_visible()
    assert page.get_by_role("button", name="Open the session").count() == 0


@pytest.mark.slow
def test_conditions_are_built_by_pressing_columns_and_values(new_page: NewPage, site: Site) -> None:
    page = new_page("ada", width=PHONE, dark=True)
    go(page, site, "#/ask/people")
    assert fits(page)
    page.get_by_label(re.compile("About how many rows")).fill("400")
    expect(page.get_by_role("button", name="Open the session")).to_be_enabled()
    page.get_by_role("button", name="Open the session").click()
    page.get_by_role("button", name=re.compile("^Spend")).click()
    field = page.locator("#ask-question")
    field.wait_for()
    columns = page.get_by_role("group", name="Columns that may be asked about")
    columns.get_by_role("button", name=re.compile("^region")).click()
    page.get_by_role("button", name="north", exact=True).click()
    assert field.input_value() == "region = 'north'"
    page.get_by_label("Join with").select_option("or")
    page.get_by_role("button", name="south", exact=True).click()
    columns.get_by_role("button", name=re.compile("^age")).click()
    page.get_by_label("Join with").select_option("and")
    page.get_by_label("Value").fill("30")
    page.get_by_role("button", name="Add it").click()
    assert field.input_value() == "(region = 'north' or region = 'south') and age >= 30"
    page.keyboard.press("Enter")
    page.locator(".ask-answer").wait_for()
    assert fits(page)
    settled(page)
    screenshot(page, "ask")
    assert faults_of_all_looks(page) == {}


def test_an_auditor_is_told_that_asking_is_not_for_them(new_page: NewPage, site: Site) -> None:
    page = new_page("eve")
    go(page, site, "#/ask/people")
    expect(page.get_by_text("Your role cannot ask questions")).to_be_visible()
    assert page.get_by_role("button", name="Open the session").count() == 0


def test_a_running_series_is_planned_opened_and_continued(new_page: NewPage, site: Site) -> None:
    rows = [f"p{n},2024-{n % 12 + 1:02d}-15,{'FM'[n % 2]}" for n in range(600)]
    table = "\n".join(["person,admitted,sex", *rows, ""])
    (site.settings.data / "registry.csv").write_text(table, encoding="utf-8")
    columns = {"admitted": {"range": ["2024-01-01", "2033-12-31"]}, "sex": {"categories": ["F", "M"]}}
    about = {"name": "registry", "source": "registry.csv", "unit": "person", "max_rows": 1, "columns": columns}
    register(site.state, site.caller("ada"), Declaration.model_validate({**about, "epsilon": 1.0, "delta": 1e-9}))
    page = new_page("ada")
    go(page, site, "#/series/registry", "Running series of registry")
    page.get_by_label("For how many periods?").fill("0")
    page.get_by_role("button", name="Show the errors").click()
    expect(page.get_by_role("group", name="One entry is missing or wrong")).to_be_focused()
    page.get_by_label("For how many periods?").fill("60")
    page.get_by_label("First period").fill("2024-01")
    page.get_by_label("Rows are only ever added to this table").check()
    page.get_by_label("What all periods together may cost").fill("0.5")
    page.get_by_role("button", name="Show the errors").click()
    expect(page.get_by_role("img", name=re.compile("^The error of 60 months, from 2024-01 to 2028-12"))).to_be_visible()
    expect(page.get_by_text("All 60 periods together cost epsilon 0.5")).to_be_visible()
    assert faults_of_all_looks(page) == {}
    screenshot(page, "series-plan")
    page.get_by_role("button", name="Open it …").click()
    page.get_by_role("button", name=re.compile("^Open it and spend")).click()
    page.get_by_role("button", name="Release 2024-01").click()
    expect(page.get_by_role("row", name=re.compile("^2024-01"))).to_have_count(1)
    page.get_by_role("button", name=re.compile("^Release all")).click()
    expect(page.get_by_role("row", name=re.compile("^2024-12"))).to_have_count(1)
    assert site.state.root.budget("registry").spent_upper == pytest.approx(0.5, abs=1e-6)
    assert faults_of_all_looks(page) == {}
    page.get_by_role("link", name="All series of registry").click()
    expect(page.get_by_role("row", name=re.compile("It is open: all its periods are paid for"))).to_be_visible()


def test_an_account_with_a_budget_for_each_month_is_opened_and_continued(new_page: NewPage, site: Site) -> None:
    rows = [f"p{n},2024-{n % 12 + 1:02d}-15" for n in range(60)]
    (site.settings.data / "months.csv").write_text("\n".join(["person,day", *rows, ""]), encoding="utf-8")
    page = new_page("ada")
    go(page, site, "#/wizard", "Declare a dataset")
    page.get_by_label("months.csv").check()
    page.get_by_label("What should it be called?").fill("months 2024-01")
    page.get_by_role("button", name="Next").click()
    page.get_by_label("A column names the person").check()
    page.get_by_label("At most how many rows of one person count?").fill("1")
    page.get_by_role("button", name="Next").click()
    page.get_by_label("day: What does it hold?").select_option("dates")
    page.get_by_label("day: First day").fill("2024-01-01")
    page.get_by_label("day: Last day").fill("2033-12-31")
    page.get_by_role("button", name="Next").click()
    page.get_by_label("What should the account be called?").fill("by month")
    page.get_by_label("Epsilon").fill("0.1")
    page.get_by_text("Does the table grow, with a budget for each period?").click()
    page.get_by_label("Does the budget renew?").select_option("month")
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("link", name="Name the period, such as 2026-03.")).to_be_visible()
    page.get_by_label("This dataset is the rows of").fill("2024-01")
    assert faults_of_all_looks(page) == {}
    page.get_by_role("button", name="Next").click()
    whole_year = "somebody in all 12 months of a year is protected by epsilon"
    expect(page.get_by_text(whole_year)).to_be_visible()
    expect(page.get_by_text("The declaration is valid")).to_be_visible()
    page.get_by_role("button", name="Declare this dataset").click()
    page.get_by_role("link", name="About months 2024-01").click()
    expect(page.get_by_text(whole_year)).to_be_visible()
    page.get_by_text("Open another month").click()
    page.get_by_label("Which month?").fill("2024-02")
    page.get_by_role("button", name="Open it", exact=True).click()
    page.get_by_role("heading", level=1, name="About months 2024-02").wait_for()
    assert site.state.root.budget("by month, 2024-02").total.epsilon == 0.1
    go(page, site, "#/plan/months 2024-02", "Plan for months 2024-02")
    expect(page.get_by_text(whole_year)).to_be_visible()


def test_a_session_that_answers_every_question_says_what_that_rests_on(new_page: NewPage, site: Site) -> None:
    site.declare({**DECLARATION, "name": "promised"})
    page = new_page("ada")
    go(page, site, "#/ask/promised")
    page.get_by_label(re.compile("About how many rows")).fill("100000")
    page.get_by_label("How many questions?").select_option("100")
    page.get_by_label(re.compile("Answer every question, whatever I ask")).check()
    expect(page.get_by_text("No questions use up the updates before 100 are answered, in one sitting")).to_be_visible()
    expect(page.locator("input[name=alpha]")).to_have_count(0)
    expect(page.get_by_role("button", name="Open the session")).to_be_enabled()
    settled(page)
    assert fits(page) and faults_of_all_looks(page) == {}

"""The learn screen in a real browser: sliders move the theorems and the attacker's region."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from system.server.accessibility import faults_of_all_looks
from system.server.browser import PHONE, NewPage, Site, fits, go, screenshot, serving, settled

pytestmark = pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever noise the server's workers draw

OPTIMAL = "path[data-region=optimal]"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server that nobody asks for a release: it needs no worker."""
    with serving(tmp_path_factory.mktemp("site"), works=False) as made:
        yield made


def _slide(page: Page, name: str, place: int) -> None:
    """Move a slider to one of its stops, as a hand does."""
    page.locator(f"input[name={name}]").evaluate(
        "(slider, to) => { slider.value = to; slider.dispatchEvent(new Event('input', {bubbles: true})); }",
        place,
    )


def _curve(page: Page) -> str:
    return page.locator(OPTIMAL).get_attribute("d") or ""


def _best_guess(page: Page) -> int:
    """How often, of 100, the best guess is right at most."""
    found = re.search(r"at most (\d+) times", page.locator(".learn-odds").inner_text())
    assert found is not None
    return int(found[1])


@pytest.mark.slow
def test_each_slider_moves_the_region_and_the_odds(new_page: NewPage, site: Site) -> None:
    page = new_page("eve")
    go(page, site, "#/learn")
    page.locator(OPTIMAL).wait_for()
    before, odds = _curve(page), _best_guess(page)
    page.locator("input[name=k]").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(OPTIMAL)).not_to_have_attribute("d", before)
    settled(page)
    assert _best_guess(page) >= odds
    page.get_by_text(re.compile("40 answers at epsilon 0.1 add up to 4")).wait_for()
    assert faults_of_all_looks(page) == {}
    screenshot(page, "learn")
    for name, place in (("epsilon", 9), ("delta", 9)):
        before = _curve(page)
        _slide(page, name, place)
        expect(page.locator(OPTIMAL)).not_to_have_attribute("d", before)
    settled(page)
    assert _best_guess(page) > odds


def test_the_last_of_many_moves_is_shown_and_one_answer_is_no_gain(new_page: NewPage, site: Site) -> None:
    page = new_page("bob")
    go(page, site, "#/learn")
    page.locator(OPTIMAL).wait_for()
    for place in (20, 3, 18, 9, 22, 7):  # 7 stands for 10 answers
        _slide(page, "k", place)
    page.get_by_text(re.compile("^10 answers at epsilon 0.1")).wait_for()
    settled(page)
    assert page.locator("output").first.inner_text() == "10"
    _slide(page, "k", 0)
    page.get_by_text(re.compile("One answer at epsilon 0.1 costs just that. No gain yet")).wait_for()
    settled(page)
    assert page.locator(".learn-idea .badge", has_text="no gain yet").count() == 3


def test_pictures_can_be_read_as_tables_and_on_a_phone(new_page: NewPage, site: Site) -> None:
    page = new_page("ada", width=PHONE, dark=True)
    go(page, site, "#/learn")
    page.locator(OPTIMAL).wait_for()
    assert fits(page)
    for summary in page.get_by_text("Show as table").all():
        summary.click()
    assert page.get_by_role("row", name=re.compile("^30 3 ")).count() == 1
    assert page.get_by_role("img", name=re.compile("No guess can get below")).count() == 1
    assert faults_of_all_looks(page) == {}
    assert "NaN" not in page.locator("main").inner_text()


def test_the_game_answers_refuses_and_ends_with_the_secret(new_page: NewPage, site: Site) -> None:
    """By the keyboard alone: ask, be refused, end the game, begin another."""
    page = new_page("bob")
    go(page, site, "#/learn")
    card = page.locator(".learn-game")
    card.wait_for()
    standing = card.locator(".learn-game-standing")
    card.get_by_label("Epsilon").fill("0.4")
    card.get_by_label("Epsilon").press("Enter")
    expect(standing).to_contain_text(re.compile(r"The answers speak for [01], with odds of 1\.\d+ to 1"))
    card.get_by_label("Ask for").select_option("gaussian")
    card.get_by_label("Standard deviation of the noise").fill("6")
    card.get_by_label("Standard deviation of the noise").press("Enter")
    expect(card.get_by_role("row")).to_have_count(3)
    card.get_by_label("Ask for").select_option("response")
    card.get_by_label("Epsilon").fill("3")
    card.get_by_label("Epsilon").press("Enter")
    expect(standing).to_contain_text("Refused: this would be more than the budget allows")
    expect(card.get_by_role("row", name=re.compile("^3 epsilon 3 refused"))).to_have_count(1)
    card.get_by_role("button", name="Tell me the secret").press("Enter")
    expect(standing).to_contain_text(re.compile(r"^The secret was [01], and the answers say [01]"))
    expect(card.get_by_role("button", name="Ask")).to_be_disabled()
    settled(page)
    assert faults_of_all_looks(page) == {}
    screenshot(page, "learn-game", about=card)
    card.get_by_role("button", name="New game").press("Enter")
    expect(standing).to_contain_text("Nothing has been asked")


def test_with_fixed_prices_only_the_mechanism_is_chosen_and_the_total_stays_below_the_sum(
    new_page: NewPage, site: Site
) -> None:
    page = new_page("bob")
    go(page, site, "#/learn")
    card = page.locator(".learn-game")
    card.get_by_label("Rules").select_option("fixed")
    standing = card.locator(".learn-game-standing")
    expect(standing).to_contain_text("12 answers are left")
    expect(card.get_by_label("Epsilon")).to_have_count(0)
    for place, kind in enumerate(("response", "laplace", "laplace")):
        card.get_by_label("Ask for").select_option(kind)
        card.get_by_role("button", name="Ask").click()
        expect(card.get_by_role("row", name=re.compile(rf"^{place + 1} "))).to_have_count(1)
    expect(standing).to_contain_text("9 answers are left")
    expect(card.get_by_text("Adding up would make it 0.6 by now")).to_be_visible()
    card.get_by_role("button", name="Let rivals play").click()
    expect(card.get_by_role("row", name=re.compile("half as much every time"))).to_have_count(1)
    expect(card.get_by_text(re.compile(r"No strategy is right more than \d+(\.\d+)?% of the time"))).to_be_visible()
    settled(page)
    assert faults_of_all_looks(page) == {}


def test_two_typed_mechanisms_are_compared_with_a_recipe_or_a_reason(new_page: NewPage, site: Site) -> None:
    page = new_page("eve")
    go(page, site, "#/learn")
    card = page.locator(".learn-mechanisms")
    card.get_by_role("button", name="Compare", exact=True).click()
    expect(card.locator("p.strong")).to_contain_text("The second reveals no more than the first")
    expect(card.get_by_role("row", name="1 3/5 3/10 1/10", exact=True)).to_have_count(1)
    expect(card.get_by_role("heading", name="The first from the second: impossible")).to_be_visible()
    screenshot(page, "learn-mechanisms", about=card)
    card.get_by_role("button", name="neither from the other").click()
    expect(card.locator("p.strong")).to_contain_text("Neither can be made from the other")
    card.get_by_role("button", name="randomized response dominates").click()
    expect(card.get_by_role("row", name=re.compile(r"^surely the first table 0\.9966 "))).to_have_count(1)
    assert fits(page) and faults_of_all_looks(page) == {}
    card.get_by_label("Chances of the second, with the person").fill("0.5 0.6 0.1")
    card.get_by_role("button", name="Compare", exact=True).click()
    expect(card.get_by_text(re.compile("must add up to 1"))).to_be_visible()


def test_the_reading_on_hardness_and_traitors_runs_and_questions_hide_their_answers(
    new_page: NewPage, site: Site
) -> None:
    page = new_page("ada", width=PHONE)
    go(page, site, "#/learn")
    hardness = page.locator(".learn-hardness")
    hardness.get_by_label("Numbers").fill("2 2 2 2 3 3 3 3")
    hardness.get_by_role("button", name="Count by asking for prices").click()
    expect(hardness.get_by_text("can be split into equal products in 18 ways")).to_be_visible()
    hardness.get_by_label("Numbers").fill("2 3 0")
    expect(hardness.get_by_role("button", name="Count by asking for prices")).to_be_disabled()
    traitors = page.locator(".learn-traitors")
    for kind in ("exact", "rounded"):
        traitors.get_by_label("It answers").select_option(kind)
        traitors.get_by_role("button", name="Trace").click()
        expect(traitors.get_by_role("status")).to_contain_text("and the key is in the table")
    questions = page.locator(".learn-questions")
    expect(questions.get_by_role("listitem")).to_have_count(10)
    answer = questions.get_by_text("1, their sum. Adding up is always true")
    expect(answer).to_be_hidden()
    questions.get_by_text("Ten answers cost epsilon 0.1 each").click()
    expect(answer).to_be_visible()
    settled(page)
    assert fits(page) and faults_of_all_looks(page) == {}

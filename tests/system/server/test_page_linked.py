"""Several files of the same people, in a real browser: declared in the wizard with their keys, planned and released."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from system.server.accessibility import faults_of_all_looks
from system.server.browser import NewPage, Site, go, screenshot, serving, settled

pytestmark = pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever noise the server's workers draw


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server of its own, with a hospital of three files."""
    with serving(tmp_path_factory.mktemp("site")) as made:
        persons = [f"{n},{'FM'[n % 2]}" for n in range(300)]
        stays = [f"{n},{n % 300},{('heart', 'bones')[n % 2]}" for n in range(600)]
        drugs = [f"{n % 600},{('aspirin', 'codeine')[n % 2]}" for n in range(900)]
        for name, head, lines in (
            ("persons", "person_id,sex", persons),
            ("stays", "stay_id,person_id,ward", stays),
            ("drugs", "stay_id,drug", drugs),
        ):
            (made.settings.data / f"{name}.csv").write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
        yield made


def listed(page: Page, column: str, values: str) -> None:
    page.get_by_label(f"{column}: What does it hold?").select_option("categories")
    page.get_by_label(f"{column}: Which values can it have?").fill(values)


def test_three_files_are_linked_declared_and_released(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    page.get_by_role("link", name="Declare a dataset").press("Enter")
    page.get_by_label("The same people are in several files").check()
    forward = page.get_by_role("button", name="Next")
    page.get_by_label("What should it be called?").fill("hospital")
    page.get_by_label("drugs.csv").check()
    forward.press("Enter")
    expect(page.get_by_role("link", name="Choose two files or more.")).to_be_visible()
    page.get_by_label("persons.csv").check()
    page.get_by_label("stays.csv").check()
    settled(page)
    assert faults_of_all_looks(page) == {}
    forward.press("Enter")

    expect(page.get_by_label("Which column names the person?")).to_have_value("persons.person_id")
    expect(page.get_by_label("drugs: leads to")).to_have_value("stays.stay_id")  # guessed from the names
    page.get_by_label("stays: leads to").select_option("")
    expect(page.get_by_text("Not every file leads to a person yet")).to_be_visible()
    forward.press("Enter")
    expect(page.get_by_role("link", name="stays: choose where it leads.")).to_be_visible()
    page.get_by_label("stays: leads to").select_option("persons.person_id")
    expect(page.get_by_text("drugs → stays → persons")).to_be_visible()
    page.get_by_label("stays: At most how many of its rows").fill("ten")
    forward.press("Enter")
    expect(page.get_by_role("link", name="stays: the number of rows is a whole number from 1")).to_be_visible()
    expect(page.get_by_label("stays: At most how many of its rows")).to_have_value("ten")
    page.get_by_label("stays: At most how many of its rows").fill("3")
    page.get_by_label("stays: leads to").select_option("drugs.stay_id")
    forward.press("Enter")
    expect(page.get_by_role("link", name="stays: its rows lead in a circle and never to persons")).to_be_visible()
    page.get_by_label("stays: leads to").select_option("persons.person_id")
    page.get_by_label("drugs: At most how many of its rows").fill("4")
    settled(page)
    assert faults_of_all_looks(page) == {}
    screenshot(page, "wizard-links")
    forward.press("Enter")

    listed(page, "persons.sex", "F, M")
    listed(page, "stays.ward", "heart, bones")
    listed(page, "drugs.drug", "aspirin, codeine")
    expect(page.get_by_label("stays.stay_id: What does it hold?")).to_have_count(0)  # keys are not declared
    expect(page.get_by_text("ward is one of heart, bones")).to_be_visible()
    assert faults_of_all_looks(page) == {}
    forward.press("Enter")
    page.get_by_label("Epsilon").fill("3")
    forward.press("Enter")
    expect(page.get_by_text("The declaration is valid")).to_be_visible()
    expect(page.get_by_text("Opens the account 'hospital'")).to_be_visible()
    settled(page)
    assert faults_of_all_looks(page) == {}
    page.get_by_role("button", name="Declare these datasets").press("Enter")
    page.get_by_role("heading", level=1, name="3 datasets are declared").wait_for()
    assert site.state.root.budget("hospital").total.epsilon == 3.0
    assert faults_of_all_looks(page) == {}

    go(page, site, "#/dataset/hospital%20drugs", "About hospital drugs")
    expect(page.get_by_role("row", name="drugs (asked about here)")).to_contain_text("stay_id → stays.stay_id")
    settled(page)
    assert faults_of_all_looks(page) == {}
    page.get_by_role("link", name="Plan a release").press("Enter")
    page.get_by_label("What do you want to know?").select_option("top")
    page.get_by_label("Which column?").select_option("drug")
    page.get_by_label("people (one per person_id)").check()
    expect(page.get_by_text("There are 2: with that many, nobody is left out.")).to_be_visible()
    page.get_by_role("button", name="Add to the plan").click()
    expect(page.get_by_text("Say in how many cells one person may count")).to_be_visible()
    page.get_by_label("In how many cells may one person count?").fill("1")
    page.get_by_role("button", name="Add to the plan").click()
    expect(page.locator(".statistic-counts")).to_have_text("people (one per person_id, in at most 1 cell); 2 numbers")
    page.get_by_role("button", name="Add a statistic").click()
    page.get_by_label("What do you want to know?").select_option("count")
    page.get_by_label("people (one per person_id)").check()
    page.get_by_text("For each group separately").click()
    page.get_by_role("checkbox", name="drug").check()
    page.get_by_label("In how many cells may one person count?").fill("2")
    page.get_by_role("button", name="Add to the plan").click()
    page.get_by_role("button", name="Release …").click()
    page.get_by_role("button", name="Release and spend").click()
    expect(page.locator(".answer")).to_have_count(2)
    expect(page.locator(".answer").last).to_contain_text("aspirin")
    ranked = page.locator(".answer").first
    counted = "over people (one per person_id, in at most 1 cell)"
    expect(ranked.locator("figcaption")).to_have_text(f"95% intervals {counted}")
    expect(ranked.get_by_text(f"2 numbers {counted}")).to_be_visible()
    settled(page)
    assert faults_of_all_looks(page) == {}
    assert site.state.root.budget("hospital").count == 1  # of all three tables

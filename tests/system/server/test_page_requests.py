"""Requests in a real browser: an analyst without a grant asks, a curator decides, the analyst releases once."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from farthing.server.schemas.dataset_schema import Declaration
from farthing.server.services.dataset_registry import register
from system.server.accessibility import faults_of_all_looks
from system.server.browser import GRANT, PHONE, NewPage, Site, fits, go, screenshot, settled

pytestmark = pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever noise the server's workers draw


@pytest.fixture(scope="module", autouse=True)
def zoe(site: Site) -> str:
    """An analyst who may ask, and spend nothing."""
    site.add("zoe", "analyst")
    site.state.ledger(site.caller("ada")).grant("people", "zoe", 0.0)
    return "zoe"


def test_a_plan_is_asked_for_approved_and_released_on_the_page(new_page: NewPage, site: Site) -> None:
    hers = new_page("zoe")
    expect(hers.get_by_text("There is no grant: a curator approves what you ask for.")).to_be_visible()
    expect(hers.get_by_text("budget spent")).to_have_count(0)  # she never had one
    hers.get_by_role("link", name="Plan", exact=True).click()
    hers.get_by_role("button", name="+ How many of each sex").click()
    expect(hers.locator("#plan-proof")).to_have_text("proven")
    expect(hers.get_by_text("out of reach")).to_have_count(0)
    hers.get_by_role("button", name="Ask a curator …").click()
    expect(hers.get_by_role("button", name=re.compile("^Ask for"))).to_be_disabled()
    hers.get_by_label("What are the answers for?").fill("table 4 of the yearbook")
    hers.get_by_role("button", name=re.compile("^Ask for")).press("Enter")
    expect(hers.get_by_role("heading", name="Waiting for a curator")).to_be_visible()
    number = hers.url.rpartition("/")[2]

    page = new_page("ada")
    go(page, site, "#/requests")
    expect(page.get_by_role("heading", name="Waiting for a decision")).to_be_visible()
    settled(page)
    screenshot(page, "requests")
    assert faults_of_all_looks(page) == {}
    page.get_by_role("link", name=re.compile(f"^{number}: ")).press("Enter")
    expect(page.get_by_text("table 4 of the yearbook")).to_be_visible()
    expect(page.get_by_text(re.compile("Somebody who thought it 1 in 2"))).to_be_visible()
    page.get_by_role("button", name="Decline").click()  # not without a reason
    expect(page.get_by_text("Say why: the analyst reads it.")).to_be_visible()
    expect(page.get_by_label("Reason")).to_be_focused()
    page.get_by_role("button", name="Change the plan …").click()
    settled(page)
    screenshot(page, "request")
    assert faults_of_all_looks(page) == {}
    page.set_viewport_size({"width": PHONE, "height": 800})
    assert fits(page)
    page.get_by_role("button", name=re.compile("^Approve ε")).press("Enter")
    expect(page.get_by_role("heading", name="Approved, and not used yet")).to_be_visible()

    go(hers, site, f"#/requests/{number}")
    hers.reload()
    hers.get_by_role("button", name="Release …").click()
    hers.get_by_role("button", name=re.compile("^Release and spend")).click()
    expect(hers.get_by_text("These are the answers")).to_be_visible()
    assert site.state.root.budget("people").count == 1
    go(hers, site, f"#/requests/{number}")
    expect(hers.get_by_role("link", name="Read the answers")).to_be_visible()

    his = new_page("bob")  # who has a grant, and asks for more than it holds
    go(his, site, "#/plan/people")
    his.get_by_role("button", name="+ How many of each sex").click()
    expect(his.get_by_role("button", name="Release …")).to_be_visible()
    his.get_by_label("Ask a curator for more than my grant").check()
    expect(his.get_by_role("button", name="Release …")).to_have_count(0)
    his.get_by_role("slider", name="This plan may use").press("End")
    expect(his.locator("#plan-proof")).to_have_text("proven")
    assert faults_of_all_looks(his) == {}
    his.get_by_role("button", name="Ask a curator …").click()
    his.get_by_label("What are the answers for?").fill("more than my grant")
    his.get_by_role("button", name=re.compile("^Ask for")).press("Enter")
    expect(his.get_by_role("heading", name="Waiting for a curator")).to_be_visible()
    (asked,) = site.state.root.requests.all("people", "open")
    assert asked.analyst == "bob" and asked.epsilon > GRANT[0]


def test_a_query_session_is_asked_for_approved_and_opened_on_the_page(new_page: NewPage, site: Site) -> None:
    hers, count = new_page("zoe"), site.state.root.budget("people").count
    go(hers, site, "#/ask/people")
    expect(hers.get_by_text("Nothing is left of your grant")).to_be_visible()
    hers.get_by_label("What may it cost?").fill("0.5")
    if hers.get_by_label("About how many rows are there?").count():
        hers.get_by_label("About how many rows are there?").fill("100000")
    hers.get_by_role("button", name="Ask a curator …").click()
    hers.get_by_label("What are the answers for?").fill("questions of the press")
    hers.get_by_role("button", name=re.compile("^Ask for")).press("Enter")
    expect(hers.get_by_role("heading", name="Waiting for a curator")).to_be_visible()
    number = hers.url.rpartition("/")[2]

    page = new_page("ada")
    go(page, site, f"#/requests/{number}")
    expect(page.get_by_text("query session over")).to_be_visible()
    expect(page.get_by_role("button", name="Change the plan …")).to_have_count(0)
    settled(page)
    assert faults_of_all_looks(page) == {}
    page.set_viewport_size({"width": PHONE, "height": 800})
    assert fits(page)
    page.get_by_role("button", name=re.compile("^Approve ε")).press("Enter")
    expect(page.get_by_role("heading", name="Approved, and not used yet")).to_be_visible()

    go(hers, site, f"#/requests/{number}")
    hers.reload()
    hers.get_by_role("button", name="Open …").click()
    hers.get_by_role("button", name=re.compile("^Open and spend")).click()
    expect(hers.get_by_role("heading", name="Build a condition")).to_be_visible()
    assert site.state.root.budget("people").count == count + 1
    go(hers, site, f"#/requests/{number}")
    expect(hers.get_by_role("link", name="Ask questions")).to_be_visible()


def test_a_running_series_is_asked_for_approved_and_opened_on_the_page(new_page: NewPage, site: Site) -> None:
    rows = [f"p{n},2024-{n % 12 + 1:02d}-15" for n in range(240)]
    (site.settings.data / "wards.csv").write_text("\n".join(["person,admitted", *rows, ""]), encoding="utf-8")
    columns = {"admitted": {"range": ["2024-01-01", "2033-12-31"]}}
    about = {"name": "wards", "source": "wards.csv", "unit": "person", "max_rows": 1, "columns": columns}
    register(site.state, site.caller("ada"), Declaration.model_validate({**about, "epsilon": 1.0, "delta": 1e-9}))
    site.state.ledger(site.caller("ada")).grant("wards", "zoe", 0.0)
    hers = new_page("zoe")
    go(hers, site, "#/series/wards", "Running series of wards")
    expect(hers.get_by_text("Nothing is left of your grant: a curator can allow you this series.")).to_be_visible()
    hers.get_by_label("First period").fill("2024-01")
    hers.get_by_role("button", name="Show the errors").click()
    expect(hers.get_by_role("link", name="Say what you ask the curator for")).to_be_visible()
    hers.get_by_label("What all periods together may cost").fill("0.4")
    hers.get_by_role("button", name="Show the errors").click()
    hers.get_by_role("button", name="Ask a curator …").click()
    hers.get_by_label("What are the answers for?").fill("the weekly bulletin")
    settled(hers)
    assert faults_of_all_looks(hers) == {}
    hers.get_by_role("button", name=re.compile("^Ask for")).press("Enter")
    expect(hers.get_by_role("heading", name="Waiting for a curator")).to_be_visible()
    number = hers.url.rpartition("/")[2]
    assert site.state.root.budget("wards").count == 0

    page = new_page("ada")
    go(page, site, f"#/requests/{number}")
    expect(page.get_by_text("running series of 1 count, 12 months")).to_be_visible()
    page.get_by_role("button", name=re.compile("^Approve ε")).press("Enter")
    expect(page.get_by_role("heading", name="Approved, and not used yet")).to_be_visible()

    hers.reload()
    hers.get_by_role("button", name="Open …").click()
    hers.get_by_role("button", name=re.compile("^Open and spend")).click()
    hers.get_by_role("button", name="Release 2024-01").click()
    expect(hers.get_by_role("row", name=re.compile("^2024-01"))).to_have_count(1)
    assert site.state.root.budget("wards").spent_upper == pytest.approx(0.4, abs=1e-6)


def test_a_synthetic_table_is_asked_for_approved_and_made_on_the_page(new_page: NewPage, site: Site) -> None:
    rows = [f"p{n},{'fm'[n % 2]},{'yn'[n % 3 == 0]}" for n in range(240)]
    (site.settings.data / "smokers.csv").write_text("\n".join(["person,sex,smokes", *rows, ""]), encoding="utf-8")
    columns = {"sex": {"categories": ["f", "m"]}, "smokes": {"categories": ["y", "n"]}}
    about = {"name": "smokers", "source": "smokers.csv", "unit": "person", "max_rows": 1, "columns": columns}
    register(site.state, site.caller("ada"), Declaration.model_validate({**about, "epsilon": 3.0, "delta": 1e-9}))
    site.state.ledger(site.caller("ada")).grant("smokers", "zoe", 0.0)
    hers = new_page("zoe")
    go(hers, site, "#/synthetic/smokers", "Synthetic tables of smokers")
    expect(hers.get_by_text("Nothing is left of your grant: a curator can allow you this table.")).to_be_visible()
    hers.get_by_label("Values may be missing").uncheck()
    hers.get_by_role("button", name="Show the price").click()
    hers.get_by_role("link", name="Say what you ask the curator for").click()
    expect(hers.get_by_label("What the table may cost")).to_be_focused()
    hers.get_by_label("What the table may cost").fill("2")
    hers.get_by_role("button", name="Show the price").click()
    expect(hers.get_by_text("How good it is can be said when it is made.")).to_be_visible()
    settled(hers)
    assert faults_of_all_looks(hers) == {}
    hers.get_by_role("button", name="Ask a curator …").click()
    hers.get_by_label("What are the answers for?").fill("exercises for students")
    hers.get_by_role("button", name=re.compile("^Ask for")).press("Enter")
    expect(hers.get_by_role("heading", name="Waiting for a curator")).to_be_visible()
    number = hers.url.rpartition("/")[2]
    assert site.state.root.budget("smokers").count == 0

    page = new_page("ada")
    go(page, site, f"#/requests/{number}")
    expect(page.get_by_text("synthesis of 2 columns")).to_be_visible()
    page.get_by_role("button", name=re.compile("^Approve ε")).press("Enter")
    expect(page.get_by_role("heading", name="Approved, and not used yet")).to_be_visible()
    hers.reload()
    hers.get_by_role("button", name="Make …").click()
    hers.get_by_role("button", name=re.compile("^Make and spend")).click()
    expect(hers.get_by_role("heading", name="Where it can be trusted")).to_be_visible()
    expect(hers.get_by_role("row", name=re.compile("^sex and smokes"))).to_have_count(1)
    settled(hers)
    assert faults_of_all_looks(hers) == {}
    hers.set_viewport_size({"width": PHONE, "height": 800})
    assert fits(hers)
    with hers.expect_download() as saved:
        hers.get_by_role("link", name="CSV").click()
    assert saved.value.path().read_text().splitlines()[0] == '"sex","smokes"'
    assert site.state.root.budget("smokers").count == 1
    go(hers, site, "#/synthetic/smokers", "Synthetic tables of smokers")
    expect(hers.get_by_role("row")).to_have_count(2)
    go(page, site, "#/ledger/smokers")
    expect(page.get_by_role("link", name="a synthetic table").first).to_be_visible()


def test_a_curator_declines_with_a_reason_and_grants_a_policy(new_page: NewPage, site: Site) -> None:
    ledger = site.state.ledger(site.caller("zoe", "analyst"))
    asked = ledger.requests.submit("people", 0.01, digest="d", purpose="curiosity", title="by hand")
    page = new_page("ada")
    go(page, site, f"#/requests/{asked.id}")
    page.get_by_label("Reason").fill("not without a purpose")
    page.get_by_role("button", name="Decline").click()
    expect(page.get_by_text("What the curator says")).to_be_visible()
    go(page, site, "#/requests")
    page.get_by_text("Grant a policy").click()
    page.get_by_label("Analyst").fill("zoe")
    page.get_by_label("Epsilon").fill("0.25")
    page.get_by_label("Only these statistics").fill("count, histogram")
    page.get_by_role("button", name="Grant", exact=True).click()
    expect(page.get_by_text(re.compile("epsilon 0.25 per quarter; only count, histogram"))).to_be_visible()
    assert ledger.requests.policies()[0].left == 0.25
    page.get_by_role("button", name="End the policy of zoe").click()
    expect(page.get_by_text("There are none")).to_be_visible()

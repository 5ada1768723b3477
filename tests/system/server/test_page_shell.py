"""The frame of the page in a real browser: signing in, finding one's way, colours, people and their tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from farthing.server.auth.login_sessions import login_link
from system.server.accessibility import faults_of_all_looks
from system.server.browser import PASSWORD, PHONE, NewPage, Site, go, screenshot, serving, settled, sign_in

pytestmark = pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever noise the server's workers draw

FIRST = {"level": 1}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server that nobody asks for a release: it needs no worker."""
    with serving(tmp_path_factory.mktemp("site"), works=False) as made:
        yield made


def test_a_stranger_signs_in_with_a_password_and_out_again(new_page: NewPage, site: Site) -> None:
    page = new_page()
    page.goto(site.url + "/#/ledger")
    page.get_by_role("button", name="Sign in").wait_for()
    screenshot(page, "sign-in")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("2 entries are missing")).to_be_visible()
    assert page.evaluate("document.activeElement.getAttribute('aria-labelledby')") == "error-summary-title"
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill("not the password")
    page.get_by_label("Password").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("do not match")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Password").press("Enter")
    page.get_by_role("heading", name="Ledger", **FIRST).wait_for()  # where they wanted to go
    page.locator("summary", has_text="ada").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("heading", name="Sign in", **FIRST).wait_for()
    page.reload()
    page.get_by_role("heading", name="Sign in", **FIRST).wait_for()


def test_a_link_that_no_longer_works_says_what_to_do(new_page: NewPage, site: Site) -> None:
    page = new_page()
    page.goto(site.url + "/login?token=used-before")
    expect(page.get_by_role("status").first).to_contain_text("older than ten minutes")
    settled(page)
    assert faults_of_all_looks(page) == {}
    screenshot(page, "sign-in-link")


def test_an_address_that_does_not_exist_says_so(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    for name in ("nowhere", "constructor", "__proto__", "toString", "<img src=x>"):
        page.goto(f"{site.url}/#/{name}")
        expect(page.get_by_role("heading", **FIRST)).to_have_text("There is nothing here")
        go(page, site, "#/", "Datasets")


def test_the_choice_of_colours_is_remembered(new_page: NewPage) -> None:
    page = new_page("ada")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_role("button", name="Use dark colours").click()
    dark = page.evaluate(paper)
    page.reload()
    page.get_by_role("button", name="Use light colours").wait_for()
    assert page.evaluate(paper) == dark != light


def test_the_keyboard_finds_its_way_and_each_screen_is_announced(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="People").press("Enter")
    expect(page.get_by_role("heading", name="People", **FIRST)).to_be_focused()
    expect(page).to_have_title("People · farthing")
    current = page.get_by_role("navigation", name="Main").locator("[aria-current=page]")
    expect(current).to_have_text("People")
    page.locator("summary", has_text="ada").press("Enter")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Sign out")).to_be_hidden()
    go(page, site, "#/nowhere/at/all", "There is nothing here")
    assert faults_of_all_looks(page) == {}
    page.get_by_role("link", name="Go to the datasets").press("Enter")
    expect(page.get_by_role("heading", name="Datasets", **FIRST)).to_be_focused()


def test_a_token_is_shown_once_and_revoked(new_page: NewPage, site: Site) -> None:
    page = new_page("bob")
    go(page, site, "#/people", "Your account")
    page.get_by_text("Make a token", exact=True).click()
    expect(page.get_by_role("checkbox", name="Manage")).to_have_count(0)  # not an analyst's to give
    page.get_by_role("button", name="Make the token").click()
    expect(page.get_by_role("group", name="One entry is missing")).to_be_focused()
    assert faults_of_all_looks(page) == {}
    page.get_by_label("What is it for?").fill("monthly report")
    page.get_by_role("checkbox", name="Spend Release").check()
    expect(page.get_by_text("can spend your budget")).to_be_visible()
    page.get_by_role("button", name="Make the token").click()
    word = page.get_by_label("The token", exact=True).inner_text().strip()
    answer = page.context.request.get("/api/v1/me", headers={"Authorization": f"Bearer {word}"})
    assert (answer.status, answer.json()["scopes"]) == (200, ["read", "spend"])
    page.keyboard.press("Escape")
    expect(page.get_by_text(word)).to_have_count(0)
    page.get_by_role("button", name="Revoke monthly report").click()
    page.get_by_role("button", name="Revoke it").click()
    expect(page.get_by_text("You have no valid token.")).to_be_visible()


def test_a_curator_adds_somebody_and_locks_them_out(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    go(page, site, "#/people", "People")
    page.get_by_text("Add somebody").click()
    page.get_by_label("Name", exact=True).fill("grace.hopper")
    page.get_by_role("button", name="Suggest a password").click()
    password = page.get_by_label("First password").input_value()
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("A dataset's page is where you grant them a budget.")).to_be_visible()
    expect(page.get_by_label("First password of grace.hopper")).to_have_text(password)
    page.get_by_role("button", name="I have it").click()
    expect(page.get_by_text(password)).to_have_count(0)
    row = page.get_by_role("row", name=re.compile("grace.hopper"))
    row.get_by_label("Role of grace.hopper").select_option("auditor")
    expect(page.get_by_text("grace.hopper is now auditor.")).to_be_visible()
    other = new_page()
    other.goto(site.url)
    other.get_by_label("Name").fill("grace.hopper")
    other.get_by_label("Password").fill(password)
    other.get_by_role("button", name="Sign in").click()
    other.get_by_role("heading", name="Datasets", **FIRST).wait_for()
    page.evaluate("for (const one of document.querySelectorAll('details.more')) one.open = true")
    assert faults_of_all_looks(page) == {}
    screenshot(page, "people")
    page.set_viewport_size({"width": PHONE, "height": 800})
    for button in (row.get_by_role("button", name="Remove"), row.get_by_role("button", name="Lock out")):
        box = button.bounding_box()  # nobody has to scroll sideways to what can be done
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= PHONE
    row.get_by_role("button", name="Lock out").click()
    expect(row).to_contain_text("locked out")
    other.get_by_role("link", name="People", exact=True).click()
    other.get_by_role("heading", name="Sign in", **FIRST).wait_for()
    expect(other.get_by_text("a curator has locked you out")).to_be_visible()


def test_whoever_came_by_a_link_is_warned_before_there_is_no_way_back(new_page: NewPage, site: Site) -> None:
    page = new_page()
    page.goto(f"{site.url}/login?{urlsplit(login_link(site.state, user='owner')).query}")
    page.get_by_role("heading", name="Datasets", **FIRST).wait_for()
    who = page.locator(".who summary")
    who.click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("dialog")).to_contain_text("only a new link lets you in again")
    page.get_by_role("link", name="Set a password first").click()
    page.get_by_role("heading", name="People", **FIRST).wait_for()
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_text("The password is changed.")).to_be_visible()
    page.reload()
    who.click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("heading", name="Sign in", **FIRST).wait_for()


def test_a_wrong_old_password_is_told_and_signs_nobody_out(new_page: NewPage, site: Site) -> None:
    page = new_page("eve")
    go(page, site, "#/people", "Your account")
    page.get_by_label("Password now").fill("not my password")
    page.get_by_label("New password").fill("four other words here")
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_role("alert")).to_contain_text("not the password you have now")
    page.get_by_label("Password now").fill(PASSWORD)
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_text("The password is changed.")).to_be_visible()
    expect(page.get_by_label("New password")).to_have_value("")


def test_numbers_are_written_in_one_way_and_never_as_nan(new_page: NewPage) -> None:
    page = new_page()
    page.goto("/")  # any page of the same origin that names its icon; for others a browser asks in vain
    cases: list[tuple[str, list[Any], str]] = [
        ("privacy", [1.0], "1"),
        ("privacy", [0.12345], "0.123"),
        ("privacy", [1e-6], "1e−6"),
        ("privacy", [12345.6], "12,300"),
        ("privacy", [None], "—"),
        ("amount", [1234.567], "1,235"),
        ("amount", [12.3456, 0.92], "12.35"),
        ("amount", [-0.0], "0"),
        ("plusMinus", [0.9213], "±0.922"),
        ("plusMinus", [0.3], "±0.3"),
        ("plusMinus", [1004.2], "±1,010"),
        ("plusMinus", [99.96], "±100"),
        ("plusMinus", [2], "±2"),
        ("plusMinus", [None], "—"),
        ("percent", [4.312], "4.3%"),
        ("percentAtMost", [73.1058], "73.2%"),
        ("percentAtMost", [50], "50%"),
        ("count", [1e6], "1,000,000"),
    ]
    shown = page.evaluate(
        """async (cases) => {
            const format = await import('/static/js/format.js');
            const names = ['privacy', 'amount', 'plusMinus', 'percent', 'percentAtMost', 'count'];
            const strange = [NaN, Infinity, -Infinity, undefined, 'x', {}]
                .flatMap((value) => names.map((name) => format[name](value)));
            return [cases.map(([name, given]) => format[name](...given)), strange];
        }""",
        [[name, given] for name, given, _ in cases],
    )
    assert shown[0] == [words for *_, words in cases]
    assert set(shown[1]) == {"—", "no limit"}


def answering(page: Page, path: str, status: int, body: object) -> None:
    """Let the server seem to answer this; the rest stays real."""

    def answer(route: Route) -> None:
        route.fulfill(status=status, content_type="application/json", body=json.dumps(body))

    page.route(f"**/api/v1{path}", answer)


def test_the_sign_in_screen_offers_the_ways_that_there_are(new_page: NewPage, site: Site) -> None:
    page = new_page()
    answering(page, "/sign-in", 200, {"local": False, "oidc": {"name": "Example", "start": "/oidc/start"}})
    go(page, site, "#/login", "Sign in")
    expect(page.get_by_role("link", name="Sign in with Example")).to_have_attribute("href", "oidc/start")
    expect(page.get_by_label("Password")).to_have_count(0)
    answering(page, "/sign-in", 200, {"local": False, "oidc": None})
    page.reload()
    expect(page.get_by_text("There are no accounts yet")).to_be_visible()


def test_a_failure_is_told_and_can_be_tried_again(new_page: NewPage, site: Site) -> None:
    page = new_page()
    refusal = {"error": {"code": "engine_error", "message": "the disk is out of reach.", "fields": {}}}
    answering(page, "/datasets", 424, refusal)
    sign_in(page, "ada", site)
    expect(page.get_by_role("alert")).to_contain_text("the disk is out of reach.")
    page.unroute_all()
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("link", name="people", exact=True)).to_be_visible()


@pytest.mark.parametrize(
    ("user", "says", "leads"),
    [
        ("ada", "No dataset has been declared yet", True),
        ("bob", "grant a budget to bob", False),
        ("eve", "As soon as", False),
    ],
)
def test_an_empty_home_says_what_to_do_next(new_page: NewPage, site: Site, user: str, says: str, leads: bool) -> None:
    page = new_page()
    answering(page, "/datasets", 200, {"datasets": []})
    sign_in(page, user, site)
    expect(page.locator("main")).to_contain_text(says)
    expect(page.get_by_role("link", name="Declare the first dataset")).to_have_count(int(leads))
    assert faults_of_all_looks(page) == {}


def test_a_release_without_answers_says_how_it_stands(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    error = {"code": "answer_forfeited", "message": "the worker was stopped.", "fields": {}}
    for state, says in (
        ("queued", "Waiting for its turn"),
        ("running", "Reading the table and adding noise"),
        ("forfeited", "This was paid for, and its answer is lost"),
        ("failed", "This could not be run, and nothing was spent"),
    ):
        paid = state in ("running", "forfeited")
        release = {
            "request_id": f"ada:{state}", "state": state, "progress": 0.4, "dataset": "people", "owner": "ada",
            "created": "2026-11-16T19:41:00Z", "charged": {"epsilon": 0.5, "delta": 0.0} if paid else None,
            "error": error if state in ("forfeited", "failed") else None, "answers": None, "receipt": None,
            "sentence": "",
        }  # fmt: skip
        answering(page, f"/releases/{state}", 200, release)
        page.goto(f"{site.url}/#/release/{state}")
        expect(page.locator("main")).to_contain_text(says)
        expect(page.get_by_text("Loading releases")).to_have_count(0)
        assert faults_of_all_looks(page) == {}

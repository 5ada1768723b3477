"""The whole story in a real browser: a curator's file becomes a dataset, a plan, a release, files and a ledger."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from system.server.accessibility import faults_of_all_looks
from system.server.browser import NewPage, Site, screenshot, serving, settled, visits_csv

pytestmark = pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever noise the server's workers draw

NO_NUMBER = re.compile(r"NaN|undefined|Infinity|\bnull\b|±\s*nan", re.IGNORECASE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server on which nothing is declared yet, with a file of many visits."""
    with serving(tmp_path_factory.mktemp("site"), declared=False) as made:
        (made.folder / "data" / "visits.csv").write_text(visits_csv(6_000, 2_500), encoding="utf-8")
        yield made


@pytest.mark.slow
def test_a_curator_comes_from_a_file_to_files_and_an_entry_of_the_ledger(
    new_page: NewPage, site: Site, browser: Browser, tmp_path: Path
) -> None:
    page = new_page("ada")
    settled(page)
    assert faults_of_all_looks(page) == {}
    page.get_by_role("link", name="Declare the first dataset").click()
    _declared(page)
    page.get_by_role("link", name="Plan a release").click()
    spent = _released(page)
    whole = site.state.root.budget("visits")
    assert (whole.count, whole.spent_upper <= 1.04) == (2, True)  # the rows were counted, for 0.04
    assert f"ε\u202f{whole.spent_upper - 0.04:.3g}" in spent
    names = page.locator(".answer h2").all_inner_texts()
    assert names == ["count by place", "histogram of age", "mean of age"]
    _files_are_readable(page, site, browser, tmp_path, names)
    released = page.url
    _ledger_holds_it(page)
    (site.folder / "data" / "visits.csv").write_text(visits_csv(5_900, 2_500), encoding="utf-8")
    page.goto(released)
    expect(page.locator("#table-changed")).to_contain_text("plan the same again")
    assert faults_of_all_looks(page) == {}


def _declared(page: Page) -> None:
    """Through the wizard, as somebody who knows the file's story and has not looked into it."""
    following = page.get_by_role("button", name="Next")
    page.get_by_label("visits.csv").check()
    following.click()
    page.get_by_label("A column names the person").check()
    page.get_by_label("Which column names the person?").select_option("person")
    page.get_by_label("At most how many rows of one person count?").fill("3")
    following.click()
    page.get_by_label("age: What does it hold?").select_option("integers")
    page.get_by_label("age: Lowest").fill("0")
    page.get_by_label("age: Highest").fill("110")
    page.get_by_label("place: What does it hold?").select_option("categories")
    page.get_by_label("place: Which values can it have?").fill("ward, clinic")
    page.get_by_label("insured: What does it hold?").select_option("flags")
    following.click()
    page.get_by_label("Epsilon").fill("2")
    following.click()
    expect(page.get_by_text("The declaration is valid")).to_be_visible()
    page.get_by_role("button", name="Declare this dataset").click()
    page.get_by_role("heading", level=1, name="visits is declared").wait_for()
    settled(page)
    assert faults_of_all_looks(page) == {}


def _released(page: Page) -> str:
    """Half of the budget for three statistics; what the page says that it cost."""
    page.get_by_role("heading", level=1, name="Plan for visits").wait_for()
    settled(page)
    assert faults_of_all_looks(page) == {}
    screenshot(page, "planner-empty")
    page.get_by_role("button", name="+ How many of each place").click()
    for kind in ("How many in each band or category", "The average of a column"):
        page.get_by_role("button", name="Add a statistic").click()
        page.get_by_label("What do you want to know?").select_option(kind)
        page.get_by_label("Which column?").select_option("age")
        if kind.startswith("How many"):
            expect(page.get_by_label("How many bands?")).to_have_value("10")  # what is shown is what is asked
            page.get_by_label("How many bands?").fill("11")
        page.get_by_role("button", name="Add to the plan").click()
    expect(page.locator("#plan-opening")).to_contain_text(
        "The error of mean of age is for an assumed size: 10,000 rows"
    )
    assert faults_of_all_looks(page) == {}
    screenshot(page, "planner-rows")
    page.get_by_role("button", name="Count the rows first (costs ε\u202f0.04)").click()
    page.get_by_role("button", name="Count and spend").click()
    expect(page.locator("#plan-counted")).to_contain_text("rows were counted")
    expect(page.locator("#plan-opening")).to_have_count(0)
    settled(page)
    assert faults_of_all_looks(page) == {}
    page.get_by_label("About how many rows are there?").fill("6000")
    share = page.get_by_label("This plan may use")
    share.focus()
    for _ in range(5):
        page.keyboard.press("PageDown")  # a tenth each
    row = page.locator('.statistic[data-name="mean of age"]')
    row.locator(".statistic-open").click()
    row.get_by_text("What do you expect?").click()
    row.get_by_label("Average").fill("50")
    row.get_by_label("Spread").fill("20")
    expect(row.get_by_text("you expect 50; the answer would lie between")).to_be_visible()
    expect(page.locator("#plan-proof")).to_have_text("proven")
    page.get_by_role("heading", name="Statistics").click()
    settled(page)
    assert not NO_NUMBER.search(page.locator("main").inner_text())
    assert faults_of_all_looks(page) == {}
    screenshot(page, "planner")
    page.get_by_role("button", name="Release …").click()
    expect(page.get_by_role("dialog")).to_contain_text("This cannot be undone.")
    assert faults_of_all_looks(page) == {}
    screenshot(page, "confirm")
    page.get_by_role("button", name="Release and spend").click()
    expect(page.locator(".answer")).to_have_count(3)
    settled(page)
    assert not NO_NUMBER.search(page.locator("main").inner_text())
    assert faults_of_all_looks(page) == {}
    screenshot(page, "release")
    return page.locator("#release-charged").inner_text()


def _files_are_readable(page: Page, site: Site, browser: Browser, folder: Path, names: list[str]) -> None:
    """Each download says the same; the Python code reads it again and pays nothing."""
    files = {}
    for link, ending in (
        ("Table (CSV)", "csv"),
        ("Data (JSON)", "json"),
        ("Report (HTML)", "html"),
        ("Python", "py"),
    ):
        with page.expect_download() as download:
            page.get_by_role("link", name=link, exact=True).click()
        found = download.value
        assert found.suggested_filename.startswith("visits-")
        assert found.suggested_filename.endswith("." + ending)
        files[ending] = folder / found.suggested_filename
        found.save_as(files[ending])

    with files["csv"].open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert list(dict.fromkeys(row["statistic"] for row in rows)) == names
    for row in rows:
        assert float(row["lower"]) <= float(row["value"]) <= float(row["upper"])

    told = json.loads(files["json"].read_text(encoding="utf-8"))
    assert [answer["name"] for answer in told["answers"]] == names

    with closing(browser.new_context(offline=True)) as elsewhere:  # whoever gets the report has no server
        report = elsewhere.new_page()
        asked: list[str] = []
        report.on("request", lambda request: asked.append(request.url))
        report.goto(files["html"].as_uri())
        for name in names:
            expect(report.get_by_text(name).first).to_be_visible()
        assert asked == [files["html"].as_uri()]

    before = site.state.root.budget("visits")
    code = files["py"].read_text(encoding="utf-8").replace("ft_...", site.token("ada", "read"))
    space: dict[str, Any] = {}
    exec(compile(code, files["py"].name, "exec"), space)
    space["client"].close()
    assert list(space["release"].answers) == names
    means = [float(row["value"]) for row in rows if row["statistic"] == "mean of age"]
    assert means == [float(space["release"]["mean of age"].values)]
    assert site.state.root.budget("visits").count == before.count


def _ledger_holds_it(page: Page) -> None:
    """The entry is there, the chain is whole, and the receipt belongs to it."""
    page.get_by_text("Show it", exact=True).click()
    receipt = page.get_by_label("Receipt", exact=True).inner_text()
    page.get_by_role("link", name="Check it in the ledger").click()
    page.get_by_role("heading", level=1, name="Ledger of visits").wait_for()
    settled(page)
    kinds = page.locator(".table tbody .badge").all_inner_texts()
    assert kinds == [*["released", "charge"] * 2, "budget opened"]
    expect(page.get_by_role("row", name=re.compile("ada was charged epsilon")).first).to_be_visible()
    released = page.locator(".card", has=page.get_by_role("heading", name="Releases"))
    expect(released.get_by_role("row", name=re.compile("person, add-remove version 1 of visits.csv"))).to_have_count(2)
    expect(released.get_by_role("link").first).to_have_attribute("href", re.compile("^#/release/ada"))
    page.get_by_role("button", name="Verify the whole ledger").click()
    expect(page.get_by_text(re.compile(r"The ledger is intact: \d+ entries checked"))).to_be_visible()
    screenshot(page, "ledger")
    expect(page.get_by_label("Or paste it")).to_have_value(receipt)  # it was brought along
    page.get_by_role("button", name="Check this receipt").click()
    expect(page.get_by_text("The receipt belongs to this ledger")).to_be_visible()
    assert faults_of_all_looks(page) == {}

"""The ledger screen in a real browser: what was spent, and the proof that nothing was altered."""

from __future__ import annotations

import json
import re

from playwright.sync_api import expect

from system.server.browser import PHONE, NewPage, Site, fits, go, screenshot, settled


def test_a_curator_reads_filters_and_verifies_the_ledger(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    go(page, site, "#/ledger/people")
    page.get_by_role("button", name="Verify the whole ledger").click()
    expect(page.get_by_text(re.compile(r"The ledger is intact: \d+ entries checked"))).to_be_visible()
    assert page.get_by_role("img", name=re.compile("of the budget is spent")).count() == 1
    rows = page.locator(".table tbody tr")
    before = rows.count()
    page.get_by_label("Find").fill("bob")
    expect(rows).not_to_have_count(before)
    assert all("bob" in text for text in rows.all_inner_texts())
    page.get_by_label("Find").fill("")
    settled(page)
    screenshot(page, "ledger")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export all entries").click()
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    assert len(lines) >= before and all(isinstance(json.loads(line), dict) for line in lines)


def test_a_receipt_that_is_none_is_told_before_it_is_sent(new_page: NewPage, site: Site) -> None:
    page = new_page("eve")
    go(page, site, "#/ledger")
    page.get_by_text("Check a receipt").first.click()
    page.get_by_label("Or paste it").fill("not a receipt")
    expect(page.get_by_text("This is not a receipt")).to_be_visible()
    expect(page.get_by_role("button", name="Check this receipt")).to_be_disabled()


def test_an_analyst_sees_the_own_grant_on_a_phone(new_page: NewPage, site: Site) -> None:
    page = new_page("bob", width=PHONE, dark=True)
    go(page, site, "#/ledger/people")
    expect(page.get_by_role("heading", name="How your grant is used up")).to_be_visible()
    assert page.get_by_role("link", name="Export all entries").count() == 0
    assert fits(page)

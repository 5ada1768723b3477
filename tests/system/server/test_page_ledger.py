"""The ledger screen in a real browser: what was spent, and the proof that nothing was altered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from farthing.errors import BudgetExceeded
from system.server.accessibility import faults_of_all_looks
from system.server.browser import PHONE, NewPage, Site, fits, go, serving, settled

pytestmark = pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever noise the server's workers draw


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server that nobody asks for a release: it needs no worker."""
    with serving(tmp_path_factory.mktemp("site"), works=False) as made:
        yield made


@pytest.fixture(scope="module")
def receipt(site: Site) -> str:
    """Of the second of two charges; a third one was refused."""
    ledger = site.state.ledger(site.caller("ada"))
    ledger.release(ledger.charge("people", 0.4, request_id="ada:first"), "{}")
    found = ledger.release(ledger.charge("people", 0.7, request_id="ada:second"), "{}")
    with pytest.raises(BudgetExceeded):
        ledger.charge("people", 9.0, request_id="ada:too-much")
    return found.to_json()


@pytest.mark.usefixtures("receipt")
def test_a_curator_reads_filters_and_verifies_the_ledger(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    go(page, site, "#/ledger/people")
    page.get_by_role("button", name="Verify the whole ledger").click()
    expect(page.get_by_text(re.compile(r"The ledger is intact: \d+ entries checked"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("37% of the budget is spent: 1.1 of 3"))).to_be_visible()
    assert page.locator(".burn-refused").count() == 1
    expect(page.get_by_role("row", name=re.compile("^ada:second .* ada "))).to_be_visible()
    rows = page.locator(".card", has=page.get_by_role("heading", name="Entries")).locator(".table tbody tr")
    before = rows.count()
    page.get_by_label("Find").fill("bob")
    expect(rows).not_to_have_count(before)
    assert all("bob" in text for text in rows.all_inner_texts())
    page.get_by_label("Find").fill("")
    settled(page)
    assert faults_of_all_looks(page) == {}
    with page.expect_download() as download:
        page.get_by_role("link", name="Export all entries").click()
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    assert len(lines) >= before and all(isinstance(json.loads(line), dict) for line in lines)


def test_a_receipt_is_found_or_told_to_be_none(new_page: NewPage, site: Site, receipt: str) -> None:
    page = new_page("eve")
    go(page, site, "#/ledger")
    page.get_by_text("Check a receipt").first.click()
    pasted, check = page.get_by_label("Or paste it"), page.get_by_role("button", name="Check this receipt")
    pasted.fill("not a receipt")
    expect(page.get_by_text("This is not a receipt")).to_be_visible()
    expect(check).to_be_disabled()
    file = {"name": "receipt.json", "mimeType": "application/json", "buffer": receipt.encode()}
    page.get_by_label("From a file").set_input_files([file])
    expect(pasted).to_have_value(receipt)
    check.click()
    expect(page.get_by_text("The receipt belongs to this ledger")).to_be_visible()
    pasted.fill(receipt.replace("ada:second", "ada:third"))
    check.click()
    expect(page.locator(".ledger-result .notice")).to_contain_text("the ledger itself is intact")
    expect(page.get_by_text("Something is wrong with this ledger")).to_have_count(0)
    pasted.fill("rubbish")
    expect(page.locator(".ledger-result .notice")).to_have_count(0)


def test_an_analyst_sees_the_own_grant_on_a_phone(new_page: NewPage, site: Site) -> None:
    page = new_page("bob", width=PHONE, dark=True)
    go(page, site, "#/ledger/people")
    expect(page.get_by_role("heading", name="How your grant is used up")).to_be_visible()
    assert page.get_by_role("link", name="Export all entries").count() == 0
    assert fits(page)

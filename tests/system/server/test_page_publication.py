"""Publishing a release in a real browser: the form, a look at the landing page, and files that verify."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from farthing.publication.verification import verify_publication
from system.server.accessibility import faults_of_all_looks
from system.server.browser import PHONE, NewPage, Site, fits, go, screenshot, settled

pytestmark = pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever noise the server's workers draw


def released(new_page: NewPage, site: Site) -> str:
    """A release of ada's, asked for over the page's own routes."""
    page = new_page("ada")
    draft = {"dataset": "people", "statistics": [{"kind": "count", "by": "sex"}], "epsilon": 0.1}
    answer = page.evaluate(
        """async (body) => {
          const me = await (await fetch("api/v1/me")).json();
          const headers = { "Content-Type": "application/json", "X-CSRF-Token": me.csrf };
          const sent = await fetch("api/v1/releases", { method: "POST", headers, body: JSON.stringify(body) });
          return [sent.status, await sent.json()];
        }""",
        {"draft": draft, "request_id": "published", "wait": 30},
    )
    assert answer[0] in (200, 202), answer
    return str(answer[1]["request_id"])


def test_a_curator_publishes_what_anybody_can_verify(new_page: NewPage, site: Site, tmp_path: Path) -> None:
    name = released(new_page, site)
    page = new_page("ada")
    go(page, site, f"#/release/{name}", re.compile("Release of people"))
    page.get_by_text("Write a publication of this release").click()
    page.get_by_label("Title").fill("People & <i>others</i>")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("Something is missing")).to_be_visible()
    expect(page.get_by_role("button", name="Make the files")).to_be_disabled()
    for label in ("Description", "Purpose", "Why this unit and this epsilon", "Region"):
        page.get_by_label(label).fill(f"{label} of nobody")
    page.get_by_label("Authors").fill("Finch, Fiona\nInstitute of Birds")
    page.get_by_label("Contact", exact=True).fill("Finch, Fiona")
    page.get_by_label("E-mail of the contact").fill("data@example.org")
    page.get_by_role("button", name="Preview").click()
    landing = page.frame_locator("iframe.landing-page")
    expect(landing.get_by_role("heading", level=1)).to_have_text("People & <i>others</i>")
    expect(landing.get_by_text("Finch, Fiona; Institute of Birds").first).to_be_visible()
    key = page.locator("code.request-id", has_text=re.compile("^[0-9a-f]{64}$")).inner_text()
    settled(page)
    assert faults_of_all_looks(page) == {}
    screenshot(page, "publication", about=page.locator("iframe.landing-page"))
    page.get_by_role("button", name="Make the files").click()
    with page.expect_download() as download:
        page.get_by_role("link", name=re.compile("^Save people")).click()
    download.value.save_as(tmp_path / "bundle.zip")
    found = verify_publication(tmp_path / "bundle.zip", key)
    assert found.ok, found.findings
    page.set_viewport_size({"width": PHONE, "height": 800})
    assert fits(page)


def test_nobody_else_is_offered_it(new_page: NewPage, site: Site) -> None:
    name = released(new_page, site)
    page = new_page("eve")
    go(page, site, f"#/release/{name}", re.compile("Release of people"))
    expect(page.get_by_role("heading", name="Downloads")).to_be_visible()
    assert page.get_by_text("Write a publication of this release").count() == 0

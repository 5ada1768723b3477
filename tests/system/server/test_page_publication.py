"""Publishing a release in a real browser: the form, the landing page, files that verify, and a deposit."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from dataverse_server import TOKEN, State, launch_link
from dataverse_server import serving as dataverse
from farthing.publication.verification import verify_publication
from publications import FORM
from system.server.accessibility import faults_of_all_looks
from system.server.browser import PHONE, NewPage, Site, fits, go, screenshot, serving, settled

pytestmark = pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever noise the server's workers draw


@pytest.fixture(scope="module")
def archive() -> Iterator[tuple[State, str]]:
    """A Dataverse, and its address."""
    state = State()
    with dataverse(state) as url:
        yield state, url


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, archive: tuple[State, str]) -> Iterator[Site]:
    """A server that may deposit in it."""
    with serving(tmp_path_factory.mktemp("site"), dataverses=(archive[1],)) as made:
        yield made


def filled(page: Page, title: str) -> None:
    """The form as somebody fills it in who has little time."""
    page.get_by_text("Write a publication of this release").wait_for()
    if not page.get_by_label("Title").is_visible():  # opened by an earlier deposit, or by the address
        page.get_by_text("Write a publication of this release").click()
    page.get_by_label("Title").fill(title)
    for label in ("Description", "Purpose", "Why this unit and this epsilon", "Region"):
        page.get_by_label(label).fill(f"{label} of nobody")
    author = page.get_by_role("group", name="Author 1")
    author.get_by_label("Name").fill("Finch, Fiona")
    author.get_by_label("Affiliation").fill("Institute of Birds")
    author.get_by_label("ORCID").fill("0000-0002-1825-0097")
    contact = page.get_by_role("group", name="Contact")
    contact.get_by_label("Name").fill("Finch, Fiona")
    contact.get_by_label("E-mail").fill("data@example.org")
    page.get_by_label("Social Sciences").check()
    page.get_by_label("Licence").select_option("CC-BY-4.0")


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
    filled(page, "People & <i>others</i>")
    page.get_by_role("button", name="Add another author").click()
    page.get_by_role("group", name="Author 2").get_by_label("Name").fill("Institute of Birds")
    page.get_by_text("Details that you may add").click()
    page.get_by_label("Keywords").fill("sparrows\n\nfinches & wrens")
    page.get_by_label("Version").fill("3")
    page.get_by_role("button", name="Preview").click()
    landing = page.frame_locator("iframe.landing-page")
    expect(landing.get_by_role("heading", level=1)).to_have_text("People & <i>others</i>")
    expect(landing.get_by_text("Finch, Fiona (Institute of Birds); Institute of Birds").first).to_be_visible()
    expect(landing.get_by_text("Version 3").first).to_be_visible()
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
    with zipfile.ZipFile(tmp_path / "bundle.zip") as bundle:
        said = json.loads(bundle.read("publication.json"))
    assert said["keywords"] == ["sparrows", "finches & wrens"]
    assert said["authors"][0] == {
        "name": "Finch, Fiona",
        "affiliation": "Institute of Birds",
        "orcid": "0000-0002-1825-0097",
    }
    page.set_viewport_size({"width": PHONE, "height": 800})
    assert fits(page)


def test_a_curator_deposits_and_sees_how_far_it_is(new_page: NewPage, site: Site, archive: tuple[State, str]) -> None:
    state, url = archive
    name = released(new_page, site)
    page = new_page("ada")
    go(page, site, f"#/release/{name}?original=7&dataverse={url}", re.compile("Release of people"))
    filled(page, "People who do not exist, by sex")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_label("Number of the restricted file")).to_have_value("7")
    page.get_by_label("Collection").fill("birds")
    page.get_by_label("API token").fill("a-token-of-somebody-else")
    page.get_by_role("button", name="Deposit").click()
    expect(page.get_by_text("The deposit stopped")).to_be_visible()
    expect(page.get_by_text("refused with 401")).to_be_visible()
    expect(page.get_by_label("API token")).to_have_value("")
    page.get_by_label("API token").fill(TOKEN)
    page.get_by_role("button", name="Continue the deposit").click()
    expect(page.get_by_text("Deposited as a draft")).to_be_visible()
    link = page.get_by_role("link", name=re.compile("^doi:"))
    assert str(link.get_attribute("href")).startswith(f"{url}/dataset.xhtml?persistentId=doi:10.5072/FK2/")
    assert len(state.datasets) == 1 and len(state.auxiliary) == 2 and state.faults == []
    settled(page)
    assert faults_of_all_looks(page) == {}
    screenshot(page, "deposit", about=page.get_by_role("button", name="Deposit", exact=True))
    page.set_viewport_size({"width": PHONE, "height": 800})
    assert fits(page)
    page.reload()  # what was said is still there, and what was done
    expect(page.get_by_label("Title")).to_have_value("People who do not exist, by sex")
    expect(page.get_by_text("Deposited as a draft")).to_be_visible()
    assert TOKEN not in page.content()


def test_a_link_from_a_dataverse_leads_to_the_deposit(
    new_page: NewPage, site: Site, archive: tuple[State, str]
) -> None:
    state, url = archive
    name = released(new_page, site)
    page = new_page("ada")
    page.goto(f"{site.url}/?callback={quote(launch_link(url))}&locale=en")
    expect(page.get_by_text("birds & <b>people</b>.tab")).to_be_visible()
    assert "callback" not in page.url  # nor in the history: going back does not send it again
    expect(page.get_by_role("link", name="doi:10.5072/FK2/ORIGINAL")).to_be_visible()
    settled(page)
    assert faults_of_all_looks(page) == {}
    screenshot(page, "launch")
    page.get_by_role("link", name="Release of people").first.click()
    page.get_by_role("heading", level=1, name=re.compile("Release of people")).wait_for()
    assert f"#/release/{name}".replace(":", "%3A") in page.url
    filled(page, "People")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_label("Number of the restricted file")).to_have_value("7")
    expect(page.get_by_label("Dataverse", exact=True)).to_have_value(url)
    page.goto(f"{site.url}/?callback={quote(launch_link('https://evil.example.org'))}")
    expect(page.get_by_text("an allowed Dataverse launches a tool")).to_be_visible()
    assert state.faults == []


def test_a_server_that_may_deposit_nowhere_says_how_to_allow_it(new_page: NewPage, site: Site) -> None:
    name = released(new_page, site)
    page = new_page("ada")
    page.route("**/api/v1/publishing", lambda route: route.fulfill(json={**route.fetch().json(), "dataverses": []}))
    go(page, site, f"#/release/{name}", re.compile("Release of people"))
    filled(page, "People")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("farthing serve --dataverse URL")).to_be_visible()


def test_the_landing_page_and_the_dataset_can_be_read(
    browser: Browser, new_page: NewPage, site: Site, archive: tuple[State, str], tmp_path: Path
) -> None:
    """As readers meet them: the bundle as files on a disk, and what a Dataverse was told."""
    state, url = archive
    name = released(new_page, site)
    token = site.token("ada", "read", "manage")
    path, headers = f"{site.url}/api/v1/releases/{name}/publication", {"Authorization": f"Bearer {token}"}
    (tmp_path / "bundle.zip").write_bytes(httpx.post(path, json=FORM, headers=headers, timeout=300).content)
    with zipfile.ZipFile(tmp_path / "bundle.zip") as held:
        held.extractall(tmp_path / "bundle")
    with closing(browser.new_context()) as context:
        page = context.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "bundle" / "index.html").as_uri())
        expect(page.get_by_role("heading", level=1)).to_have_text(FORM["title"])
        assert page.get_by_role("img", name="Chart of count by sex").evaluate("(one) => one.naturalWidth") > 100
        assert all(one.startswith("file:") for one in asked)
        for link in page.get_by_role("link").all():
            target = str(link.get_attribute("href"))
            assert target.startswith(("http", "mailto:")) or (tmp_path / "bundle" / target).is_file(), target
        assert faults_of_all_looks(page) == {}
        screenshot(page, "landing")
        page.set_viewport_size({"width": PHONE, "height": 800})
        assert fits(page)
        persistent = next(iter(state.datasets), "")
        if persistent:  # as the deposit left it
            page.goto(f"{url}/dataset.xhtml?persistentId={persistent}")
            expect(page.get_by_text("manifest.json")).to_be_visible()
            screenshot(page, "archive")


def test_nobody_else_is_offered_it(new_page: NewPage, site: Site) -> None:
    name = released(new_page, site)
    page = new_page("eve")
    go(page, site, f"#/release/{name}", re.compile("Release of people"))
    expect(page.get_by_role("heading", name="Downloads")).to_be_visible()
    assert page.get_by_text("Write a publication of this release").count() == 0

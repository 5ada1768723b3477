"""The frame of the page in a real browser: signing in, finding one's way, light and dark, keyboard, phone."""

from __future__ import annotations

from system.server.browser import PASSWORD, PHONE, NewPage, Site, fits, go


def test_a_stranger_signs_in_with_a_password_and_sees_the_datasets(new_page: NewPage, site: Site) -> None:
    page = new_page()
    page.goto(site.url + "/")
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", level=1, name="Datasets").wait_for()
    page.locator("summary", has_text="ada").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("heading", level=1, name="Sign in").wait_for()


def test_the_frame_fits_a_phone(new_page: NewPage, site: Site) -> None:
    page = new_page("ada", width=PHONE)
    assert fits(page)
    go(page, site, "#/wizard")
    assert fits(page)


def test_the_choice_of_colours_is_remembered(new_page: NewPage, site: Site) -> None:
    page = new_page("ada")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_role("button", name="Use dark colours").click()
    dark = page.evaluate(paper)
    page.reload()
    page.get_by_role("button", name="Use light colours").wait_for()
    assert page.evaluate(paper) == dark != light

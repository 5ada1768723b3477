"""One browser and one server a module, windows that report every fault."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from system.server.browser import PATIENCE, NewPage, Site, launch, serving, watched


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever needs a browser is slow."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


# Not of the whole run: while Playwright is there, no other test of this process could run a loop of its own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, which reaches nothing but this machine."""
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        found = launch(playwright)
        yield found
        found.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A running server with the dataset `people`, ada, bob and eve."""
    with serving(tmp_path_factory.mktemp("site")) as made:
        yield made


@pytest.fixture
def new_page(browser: Browser, site: Site) -> Iterator[NewPage]:
    """Windows of this test; each must end without a fault."""
    with watched(browser, site) as made:
        yield made

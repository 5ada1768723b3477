"""The small functions below charts and conditions, run where they run: in the browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from system.server.browser import Site, serving, watched

pytestmark = pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever noise the server's workers draw


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server that nobody asks for a release: it needs no worker."""
    with serving(tmp_path_factory.mktemp("site"), works=False) as made:
        yield made


@pytest.fixture(scope="module")
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """One window for all: nothing here changes anything."""
    with watched(browser, site) as new_page:
        found = new_page()
        found.goto(site.url + "/")
        yield found


def _called(page: Page, module: str, name: str, *given: Any) -> Any:
    """What an exported function of a file of the page returns."""
    return page.evaluate(
        "([file, name, given]) => import(`/static/js/${file}.js`).then((module) => module[name](...given))",
        [module, name, list(given)],
    )


def test_axes_have_few_round_numbers(page: Page) -> None:
    assert _called(page, "charts/scale", "roundTicks", 0, 1, 5) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert _called(page, "charts/scale", "roundTicks", 0, 4.77, 5) == [0, 1, 2, 3, 4]
    assert _called(page, "charts/scale", "roundTicks", 3, 3, 5) == [3]
    assert _called(page, "charts/scale", "powerTicks", 1, 1000, 7) == [1, 10, 100, 1000]
    assert _called(page, "charts/scale", "powerTicks", 0, 1000, 7) == []


def test_a_number_that_is_missing_is_a_dash(page: Page) -> None:
    assert _called(page, "charts/scale", "tickText", None) == "—"
    assert _called(page, "charts/scale", "pathOf", [[0, 0], None, [1, 1], [2, 1]]) == "M0.0,0.0M1.0,1.0L2.0,1.0"
    assert _called(page, "ask/column_cells", "giveOrTake", None) == "—"


def test_an_error_is_never_rounded_down(page: Page) -> None:
    assert _called(page, "ask/column_cells", "giveOrTake", 1234.2) == "±1,235"
    assert _called(page, "ask/quote", "twoDigits", 0.1708) == 0.18
    # Halves of a percent are rounded towards the attacker.
    assert _called(page, "charts/region", "rightInHundred", [[0, 1], [0.395, 0.395], [1, 0]]) == 61


def test_a_region_reaches_from_one_blind_guess_to_the_other(page: Page) -> None:
    lower = _called(page, "charts/region", "lowerPart", [[0, 0.4], [0.4, 0], [1, 0], [0.9, 0.9]])
    assert lower == [[0, 1], [0, 0.4], [0.4, 0], [1, 0], [1, 0]]


def test_a_condition_that_is_added_means_what_it_looks_like(page: Page) -> None:
    assert _called(page, "ask/column_cells", "joinedBy", "and", " ", "a = 1") == "a = 1"
    assert (
        _called(page, "ask/column_cells", "joinedBy", "and", "a = 1 or b = 2", "c = 3") == "(a = 1 or b = 2) and c = 3"
    )
    assert _called(page, "ask/column_cells", "joinedBy", "and", "(a or b) and (c or d)", "e") == (
        "((a or b) and (c or d)) and e"
    )
    assert _called(page, "ask/column_cells", "joinedBy", "or", "a = 1 and b = 2", "c = 3") == "a = 1 and b = 2 or c = 3"


def test_the_caret_counts_letters_as_people_do(page: Page) -> None:
    assert _called(page, "ask/column_cells", "pointed", "x = '🦊' and", 6)["caret"] == " " * 6 + "^"
    assert (
        _called(page, "ask/column_cells", "pointed", "x = '🦊' and", 6)["at"] == 7
    )  # halves of letters, for the field
    assert _called(page, "ask/column_cells", "pointed", "x", 99)["caret"] == " ^"


def test_examples_fit_the_columns(page: Page) -> None:
    columns = [
        {"name": "first name", "kind": "categories", "categories": ["it's", "b"]},
        {"name": "age", "kind": "integers", "lower": 0, "upper": 110},
        {"name": "income", "kind": "reals", "lower": 0.0, "upper": 100.0, "edges": [0, 25, 50, 75, 100]},
    ]
    assert _called(page, "ask/column_cells", "examplesFor", columns) == [
        "\"first name\" = 'it''s'",
        "age >= 60",
        "\"first name\" = 'it''s' and age >= 60",
        "\"first name\" = 'it''s' and (age >= 60 or income >= 50)",
    ]


def test_a_receipt_is_found_in_what_was_saved(page: Page) -> None:
    exact = '{"a": 1.0, "b": 12345678901234567890}'
    assert _called(page, "ledger/verify", "readReceipt", exact) == exact  # JavaScript would round it
    assert _called(page, "ledger/verify", "readReceipt", json.dumps({"receipt": exact, "answers": []})) == exact
    for text in ("", "[1]", "3", "null", "{"):
        assert _called(page, "ledger/verify", "readReceipt", text) is None

"""There is one map of the documentation: the nav of mkdocs.yml. README and the overview show it as a table."""

from __future__ import annotations

import re

import pytest
import yaml
from tree import TOP

DOCS = TOP / "docs"
TABLE = re.compile(r"^## Where to read on\n+((?:\|.*\n)+)", re.MULTILINE)
Section = tuple[str, list[tuple[str, str]]]


def nav() -> list[Section]:
    """The sections of the nav, each with its pages; the overview itself stands in no section."""
    entries = yaml.safe_load((TOP / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    sections = [(title, pages) for entry in entries for title, pages in entry.items() if pages != "index.md"]
    return [(title, [(name, path) for page in pages for name, path in page.items()]) for title, pages in sections]


def table_of(sections: list[Section], prefix: str = "") -> str:
    """One row per section. A section with an overview of its own (index.md) is shown by that page alone."""
    rows = ["| | |", "|---|---|"]
    for title, pages in sections:
        shown = [(name, path) for name, path in pages if path.endswith("/index.md")] or pages
        rows.append(f"| **{title}** | {', '.join(f'[{name}]({prefix}{path})' for name, path in shown)} |")
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(("page", "prefix"), [("README.md", "docs/"), ("docs/index.md", "")])
def test_readme_and_overview_show_the_nav(page: str, prefix: str) -> None:
    found = TABLE.search((TOP / page).read_text(encoding="utf-8"))
    wanted = table_of(nav(), prefix)
    assert found is not None and found[1] == wanted, f"the table of {page} must be\n{wanted}"


def test_every_page_is_in_the_nav_once() -> None:
    listed = ["index.md", *(path for _, pages in nav() for _, path in pages)]
    assert sorted(listed) == sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


def test_a_page_is_called_in_the_nav_what_it_calls_itself() -> None:
    """A heading may say more after a colon or a comma, and may name the place: `on a server`."""
    other = [
        (path, name, heading)
        for _, pages in nav()
        for name, path in pages
        if not (heading := heading_of(path)).startswith(name)
    ]
    assert other == []


def heading_of(path: str) -> str:
    found = re.search(r"^# (.*)$", (DOCS / path).read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None, path
    return found[1]

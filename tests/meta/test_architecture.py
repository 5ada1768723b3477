"""The pages about the architecture say what the tables say, and the walks on them lead through the files they name."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
from import_arrows import ARROWS, ROOT
from tree import TOP


def _pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("architecture_pages", TOP / "docs" / "architecture.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = _pages()
TABLES = PAGES.architecture()


@pytest.mark.parametrize("path", PAGES.made(), ids=lambda path: path.name)
def test_every_page_is_what_make_map_makes(path) -> None:
    assert path.read_text(encoding="utf-8") == PAGES.made()[path], "run `make map`"


def test_the_picture_the_page_and_the_map_show_every_package() -> None:
    pages = PAGES.made()
    picture = pages[TOP / "docs" / "architecture.svg"]
    map_of_packages = PAGES._map(TABLES)
    for name in TABLES["packages"]:
        assert f">{PAGES._shown(name)}</text>" in picture
        assert f"### `{PAGES._door(name)}`" in pages[TOP / "docs" / "architecture.md"]
        assert f"  {PAGES._door(name)} " in map_of_packages


def test_the_pages_and_the_checker_read_the_same_arrows() -> None:
    pages = {ROOT if name == "__init__" else name: set(row) for name, row in PAGES.arrows(TABLES).items()}
    checker = {name: {one or "__init__" for one in row} - {name} for name, row in ARROWS.items()}
    assert pages == checker


def test_an_arrow_that_is_left_out_of_the_picture_has_a_longer_way() -> None:
    allowed = PAGES.arrows(TABLES)
    drawn = PAGES.nearest(allowed)

    def reached(name: str) -> set[str]:
        return {deeper for one in drawn[name] for deeper in {one, *reached(one)}}

    assert {name: reached(name) >= set(row) for name, row in allowed.items()} == dict.fromkeys(allowed, True)


@pytest.mark.slow
def test_the_walks_lead_through_the_files_they_name() -> None:
    from benchmarks.walks import walks

    traced = {walk.name: set(walk.files) for walk in walks()}
    missing = {walk["title"]: set(walk["files"]) - traced[walk["trace"]] for walk in TABLES["walks"]}
    assert {title: files for title, files in missing.items() if files} == {}

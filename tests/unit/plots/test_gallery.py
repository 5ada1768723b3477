"""The gallery: every picture on the page is committed, drawn by the script, and small."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

TOP = Path(__file__).parents[3]
PAGE = TOP / "docs" / "gallery.md"
FOLDER = TOP / "docs" / "gallery"


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_gallery", FOLDER / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_script_and_files_name_the_same_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))  # as when the script is run
    shown = re.findall(r"!\[[^\]]+\]\(gallery/([\w-]+)\.svg\)", PAGE.read_text(encoding="utf-8"))
    committed = {path.stem for path in FOLDER.glob("*.svg")}
    assert sorted(shown) == sorted(set(shown))
    assert set(shown) == committed == set(_script().PICTURES)


def test_pictures_are_small_and_fetch_nothing() -> None:
    for path in FOLDER.glob("*.svg"):
        text = path.read_text(encoding="utf-8")
        assert len(text) < 120_000, path.name
        assert "href=" not in text.replace('xlink:href="#', ""), path.name
        assert set(re.findall(r"https?://[^\s\"'<>)]+", text)) <= {
            "http://www.w3.org/2000/svg",
            "http://www.w3.org/1999/xlink",
        }

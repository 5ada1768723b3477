"""The page's files: all in the wheel, all local, and light."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from farthing.web import static_folder

TOP = Path(__file__).parents[3]
FILES = sorted(path for path in static_folder().rglob("*") if path.is_file())
TEXTS = {path: path.read_text(encoding="utf-8") for path in FILES if path.suffix in {".js", ".css", ".html", ".svg"}}
# Names of XML vocabularies look like addresses and are never fetched.
_VOCABULARY = re.compile(r"http://www\.w3\.org/(?:2000/svg|1999/xlink|1999/xhtml|1998/Math/MathML)")
_ADDRESS = re.compile(r"(?:https?:|wss?:)?//(?:[\w-]+\.)+[a-z]{2,}|(?:https?|wss?)://", re.IGNORECASE)
_IMPORT = re.compile(r"""(?:from|import)\s*\(?\s*['"]([^'"]+)['"]""")
_LOADED = re.compile(r"""(?:src|href)="(static/[^"]+)\"""")


def _outside(text: str) -> list[str]:
    return _ADDRESS.findall(_VOCABULARY.sub("", text))


def test_no_file_of_the_page_names_a_foreign_address() -> None:
    """Licence texts are the exception: they are not loaded by the page."""
    assert {path.name: found for path, text in TEXTS.items() if (found := _outside(text))} == {}


@pytest.mark.parametrize("text", ["https://cdn.example.org/x.js", 'src="//cdn.example.org/x.js"', "ws://a"])
def test_the_search_for_foreign_addresses_finds_one(text: str) -> None:
    assert _outside(text)


def test_everything_together_weighs_less_than_the_limit() -> None:
    assert sum(path.stat().st_size for path in FILES) < 1_500_000


def test_every_file_that_is_asked_for_exists() -> None:
    folder = static_folder()
    index = TEXTS[folder / "index.html"]
    loaded = [folder / name.removeprefix("static/") for name in _LOADED.findall(index)]
    imported = [
        (path.parent / name).resolve()
        for path, text in TEXTS.items()
        if path.suffix == ".js" and "vendor" not in path.parts
        for name in _IMPORT.findall(text)
    ]
    assert len(loaded) > 5
    assert len(imported) > 20
    assert [str(path) for path in [*loaded, *imported] if not path.is_file()] == []


def test_what_the_page_starts_with_is_asked_for_at_once() -> None:
    """Otherwise a browser finds out file by file what it needs next."""
    folder = static_folder()
    needed, waiting = set(), [folder / "js" / "main.js"]
    while waiting:
        file = waiting.pop()
        found = {(file.parent / name).resolve() for name in _IMPORT.findall(TEXTS[file])} - needed
        needed |= found
        waiting += [path for path in found if "vendor" not in path.parts]
    asked = re.findall(r'rel="modulepreload" href="static/([^"]+)"', TEXTS[folder / "index.html"])
    assert sorted(asked) == sorted(path.relative_to(folder).as_posix() for path in needed)


def test_every_route_of_the_page_has_its_screen() -> None:
    router = TEXTS[static_folder() / "js" / "router.js"]
    screens = set(re.findall(r'^  \S+: \["(\w+)", \[', router, re.MULTILINE))
    assert len(screens) == 14
    assert screens == {path.stem for path in (static_folder() / "js" / "screens").glob("*.js")}


def test_nothing_in_the_page_needs_a_weaker_content_policy() -> None:
    """No inline script, no handler or style in an attribute, no eval: the policy is `default-src 'self'`."""
    index = TEXTS[static_folder() / "index.html"]
    assert re.findall(r"<script(?![^>]*\bsrc=)", index) == []
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=", index) == []
    assert [p.name for p, text in TEXTS.items() if re.search(r"\beval\(|new Function\(", text)] == []


def test_the_licences_of_what_is_not_ours_stand_beside_it() -> None:
    text = (static_folder() / "vendor" / "LICENSES.txt").read_text(encoding="utf-8")
    assert "MIT License" in text
    assert "Apache License" in text


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_the_wheel_carries_every_file_of_the_page(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)],
        cwd=TOP,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("farthing-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    ours = {"farthing/web/static/" + path.relative_to(static_folder()).as_posix() for path in FILES}
    assert ours - names == set()

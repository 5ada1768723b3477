"""Prose is tested: the API page forgets no name, every command and option is explained, the site builds."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest
from public_names import PUBLIC, names_of
from tree import TOP

DOCS = TOP / "docs"


def test_the_api_page_has_every_public_module_and_name() -> None:
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    hook = _api_page()
    assert hook.modules_of(page) == list(PUBLIC)
    filled = hook.on_page_markdown(page)
    missing = [f"{m}.{name}" for m in PUBLIC for name in names_of(m) if f"### `{name}`" not in filled]
    assert missing == []


def test_every_command_and_option_is_explained() -> None:
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    missing = [word for word in _words_of_the_command_line() if word not in page]
    assert missing == []


def test_prose_is_wrapped_at_the_line_length_of_the_code() -> None:
    """Tables, examples and pictures cannot be wrapped; the page that `make map` makes is not written by hand."""
    ruff = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]
    length = ruff["lint"]["pycodestyle"]["max-line-length"]
    pages = [TOP / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    pages += [path for path in DOCS.rglob("*.md") if path.name != "architecture.md"]
    long = [
        f"{page.relative_to(TOP)}: {line[:60]}"
        for page in pages
        for line in re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S).splitlines()
        if len(line) > length and not line.startswith(("|", "<", "![", "    "))
    ]
    assert long == []


def test_links_from_the_top_lead_somewhere() -> None:
    """mkdocs checks the links of its own pages; these two files are read on a forge."""
    broken = [
        f"{page}: {target}"
        for page in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", (TOP / page).read_text(encoding="utf-8"))
        if not (TOP / target).exists()
    ]
    assert broken == []


def test_the_pictures_of_the_page_are_all_there_all_shown_and_small() -> None:
    """mkdocs checks pictures that Markdown names; those beside them are written in HTML."""
    page = (DOCS / "server" / "page.md").read_text(encoding="utf-8")
    pictures = {path.name: path.stat().st_size for path in (DOCS / "server" / "pictures").iterdir()}
    assert set(re.findall(r"pictures/([\w-]+\.webp)", page)) == set(pictures)
    taken = {
        f"{name}-{look}.webp"
        for test in (TOP / "tests" / "system" / "server").glob("test_*.py")
        for name in re.findall(r'screenshot\(\w+, "([\w-]+)"', test.read_text(encoding="utf-8"))
        for look in ("light", "dark", "phone")
    }
    assert taken == set(pictures)
    assert sum(pictures.values()) < 60e3 * len(pictures) and max(pictures.values()) < 150e3
    assert page.count("alt=") + page.count("![") == len(pictures)


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_the_site_builds_without_a_warning_and_without_the_network(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=TOP, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    index = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    for host in ("fonts.googleapis.com", "fonts.gstatic.com", "cdn.", "unpkg.com"):
        assert host not in index


def _words_of_the_command_line() -> Iterator[str]:
    from farthing.cli import main

    def walk(command: click.Command, path: str) -> Iterator[str]:
        yield path
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                yield from (option for option in parameter.opts if option.startswith("--"))
        if isinstance(command, click.Group):
            for name, below in command.commands.items():
                yield from walk(below, f"{path} {name}")

    return walk(main, "farthing")


def _api_page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("api_page", DOCS / "api_page.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

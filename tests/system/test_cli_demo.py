"""`farthing demo`: the story is told, and its report stands alone."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from farthing.cli import main


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, str]:
    folder = tmp_path_factory.mktemp("demo") / "made" / "here"
    result = CliRunner().invoke(main, ["demo", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    assert str(folder / "report.html") in result.stdout.replace("\n", "")
    return result, (folder / "report.html").read_text(encoding="utf-8")


def test_the_story_has_its_five_chapters_and_its_numbers(told: tuple[Result, str]) -> None:
    for text in (told[0].stdout, told[1]):
        for number in range(1, 6):
            assert re.search(rf"(^|>){number}\. ", text, re.M)
        for fact in ("4.77457", "1e-300", "Laplace", "Gaussian", "basic sums", "fully adaptive", "proven"):
            assert fact in text


def test_a_filter_that_knows_more_answers_more(told: tuple[Result, str]) -> None:
    counts = [
        int(re.search(rf"<td>{name}</td><td>([\d,]+)</td>", told[1])[1].replace(",", ""))  # type: ignore[index]
        for name in ("basic sums", "fully adaptive", "Renyi")
    ]
    assert counts == sorted(counts) and counts[0] > 50


class Addresses(HTMLParser):
    """Every attribute that could make a browser fetch something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.found += [
            f"{tag} {name}={value}" for name, value in attrs if name in {"src", "href", "xlink:href", "data"}
        ]


def test_the_report_loads_nothing(told: tuple[Result, str]) -> None:
    page = told[1]
    parser = Addresses()
    parser.feed(page)
    assert parser.found == []
    assert not parser.tags & {"script", "link", "iframe", "img", "object", "embed"}
    assert "svg" in parser.tags
    assert set(re.findall(r"https?://[^\s\"'<>)]+", page)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert "url(" not in page.replace("url(#", "")  # only references inside the page


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "altair" in result.stderr and "farthing[plots]" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_place_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("here first")
    result = CliRunner().invoke(main, ["demo", "--out", str(place)])
    assert result.exit_code == 2
    assert "cannot be made a directory" in result.stderr

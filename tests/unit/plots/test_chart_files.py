"""Charts to files: the right format, nothing fetched, missing parts named."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from farthing import compose
from farthing.errors import FarthingError, InvalidValue, MissingExtra
from farthing.plots import save, tradeoff_curve


@pytest.fixture(scope="module")
def chart() -> Any:
    return tradeoff_curve(compose([0.5, 0.5]))


@pytest.mark.slow
def test_svg_is_well_formed_and_has_its_title(chart: Any, tmp_path: Path) -> None:
    place = save(chart, tmp_path / "curve.svg")
    text = place.read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert "No test of one person" in text


@pytest.mark.slow
def test_png_is_an_image_of_some_size(chart: Any, tmp_path: Path) -> None:
    data = save(chart, str(tmp_path / "curve.PNG")).read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    assert width > 600 and height > 600


class Fetches(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [f"{tag} {name}" for name, _ in attrs if name in {"src", "href"}]


@pytest.mark.slow
def test_html_carries_its_viewer_and_fetches_nothing(chart: Any, tmp_path: Path) -> None:
    page = save(chart, tmp_path / "curve.html").read_text(encoding="utf-8")
    parser = Fetches()
    parser.feed(page)
    assert parser.found == []
    assert "No test of one person" in page
    # What is left are names of XML namespaces, names of schemas and an address inside a warning text.
    hosts = set(re.findall(r"https?://([^/\s\"'`\\]+)", page))
    assert hosts <= {"www.w3.org", "vega.github.io", "github.com"}
    assert "vega.github.io/editor" not in page
    assert "cdn." not in page


@pytest.mark.parametrize("name", ["curve.pdf", "curve", "curve.svg.gz"])
def test_an_unknown_ending_is_refused(chart: Any, tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidValue, match=r"must end in \.svg, \.png or \.html"):
        save(chart, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_directory_is_refused(chart: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="must lie in a directory that exists"):
        save(chart, tmp_path / "none" / "curve.svg")


def test_a_place_that_cannot_be_written_is_refused(chart: Any, tmp_path: Path) -> None:
    (tmp_path / "taken.svg").mkdir()
    with pytest.raises(InvalidValue, match=r"cannot be written \(Is a directory\); choose another"):
        save(chart, tmp_path / "taken.svg")


@pytest.mark.parametrize(("module", "package"), [("altair", "altair"), ("vl_convert", "vl-convert-python")])
def test_a_missing_package_is_named_with_its_extra(
    chart: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=re.escape(package)) as caught:
        save(chart, tmp_path / "curve.svg")
    assert isinstance(caught.value, FarthingError) and isinstance(caught.value, ImportError)
    assert "farthing[plots]" in str(caught.value)
    assert (caught.value.package, caught.value.extra) == (package, "plots")

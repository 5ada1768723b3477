"""Every fragment of the changelog can be assembled without reading it first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tree import TOP

FOLDER = TOP / "changelog.d"
KINDS = ("added", "changed", "fixed", "removed", "security")


def faults_of(path: Path) -> list[str]:
    """What keeps a fragment from being assembled; empty for a good one."""
    found = []
    if not re.fullmatch(rf"[a-z0-9]+(-[a-z0-9]+)*\.({'|'.join(KINDS)})\.md", path.name):
        found.append(f"{path.name}: must be named what-it-is.kind.md, kind one of {', '.join(KINDS)}")
    text = path.read_text(encoding="utf-8")
    if not text.strip():
        return [*found, f"{path.name}: is empty"]
    if not text.endswith(".\n"):
        found.append(f"{path.name}: must end with a full stop and a newline")
    if "\n\n" in text or text.startswith(("#", "-", "*")):
        found.append(f"{path.name}: must be one paragraph, without heading or bullet")
    return found


def test_every_fragment_is_well_formed() -> None:
    fragments = [path for path in FOLDER.iterdir() if path.name != "README.md"]
    assert [fault for path in fragments for fault in faults_of(path)] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a-thing.added.md", ""),
        ("a-thing.added.md", "No full stop\n"),
        ("a-thing.added.md", "Two.\n\nParagraphs.\n"),
        ("a-thing.added.md", "- A bullet.\n"),
        ("a-thing.new.md", "A kind nobody knows.\n"),
        ("A_Thing.added.md", "A name out of shape.\n"),
    ],
)
def test_a_bad_fragment_is_named(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert len(faults_of(path)) == 1


def test_the_changelog_says_where_the_fragments_are() -> None:
    assert "changelog.d/" in (TOP / "CHANGELOG.md").read_text(encoding="utf-8")
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"`{kind}`" in readme for kind in KINDS)

"""The changelog has a section for what is unreleased, one for this version, and nothing beside it."""

from __future__ import annotations

import re
import tomllib

import pytest
from tree import TOP

VERSION = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def faults_of(text: str, version: str) -> list[str]:
    """What keeps readers from finding their version; empty for a good changelog."""
    found = []
    sections = re.findall(r"^## (.*)$", text, re.MULTILINE)
    if sections[:1] != ["Unreleased"]:
        found.append("the first section must be called Unreleased")
    if sections[1:2] != [version]:
        found.append(f"the second section must be {version}, the version in pyproject.toml")
    entries = re.findall(r"^- .*(?:\n  .*)*", text, re.MULTILINE)
    found += [f"must end with a full stop: {entry}" for entry in entries if not entry.endswith(".")]
    return found


def test_the_changelog_is_in_order() -> None:
    assert faults_of((TOP / "CHANGELOG.md").read_text(encoding="utf-8"), VERSION) == []


def test_changes_are_written_in_one_place() -> None:
    assert not (TOP / "changelog.d").exists(), "write a line under Unreleased in CHANGELOG.md instead"


@pytest.mark.parametrize(
    "text",
    [
        "# Changelog\n\n## 1.0\n",
        "## Unreleased\n\n## 0.9\n",
        "## Unreleased\n\n- No full stop\n\n## 1.0\n",
        "## Unreleased\n\n- Two lines\n  without one\n\n## 1.0\n",
    ],
)
def test_a_fault_is_named(text: str) -> None:
    assert faults_of(text, "1.0")


def test_a_good_changelog_has_no_fault() -> None:
    assert faults_of("## Unreleased\n\n- A thing that\n  is new.\n\n## 1.0\n\nThe first.\n", "1.0") == []

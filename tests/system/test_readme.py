"""The README's tour prints what the README shows."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).parents[2]
NUMBER = re.compile(r"\d[\d,.]*")


def tour() -> list[tuple[str, str]]:
    """Each block of code of the tour, with the output shown below it."""
    section = (TOP / "README.md").read_text(encoding="utf-8").partition("\n## A tour in ten lines\n")[2]
    section = section.partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```.*?```text\n(.*?)```", section, re.DOTALL)


def test_the_tour_has_ten_lines() -> None:
    lines = [line for code, _ in tour() for line in code.splitlines() if line]
    assert len(lines) == 10


@pytest.mark.slow
def test_the_tour_prints_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The numbers of the plan are compared as they are; those of the release hold noise, so only their places are."""
    monkeypatch.chdir(tmp_path)
    (planned, plan), (released, release) = tour()
    space: dict[str, Any] = {}
    exec(compile(planned, "README.md", "exec"), space)
    assert_alike(capsys.readouterr().out, plan)
    exec(compile(released, "README.md", "exec"), space)
    assert_alike(NUMBER.sub("#", capsys.readouterr().out), NUMBER.sub("#", release))


def assert_alike(printed: str, shown: str) -> None:
    """Equal but for runs of blanks and what the page leaves out with three dots."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    checker = doctest.OutputChecker()
    example = doctest.Example("the tour", shown)
    assert checker.check_output(shown, printed, flags), checker.output_difference(example, printed, flags)

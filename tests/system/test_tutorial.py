"""The tutorial is run from its first line to its last, in an empty folder, and prints what it shows."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from farthing.cli import main
from farthing.ledger import open_ledger

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(?P<kind>python|toml|console)\n(?P<text>.*?)^```", re.S | re.M)


@pytest.mark.slow
def test_the_tutorial_works_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = [(match["kind"], match["text"]) for match in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]
    assert [kind for kind, _ in blocks].count("console") >= 6
    for kind, text in blocks:
        if kind == "python":
            exec(compile(text, str(PAGE), "exec"), {})
        elif kind == "toml":
            (tmp_path / "study.toml").write_text(text, encoding="utf-8")
        else:
            _prints_what_is_shown(text)
    for name in ("study.db", "another.db"):
        with open_ledger(tmp_path / name) as ledger:
            assert ledger.budget("people.csv").count == 1
    assert (tmp_path / "report.html").exists()


def _prints_what_is_shown(text: str) -> None:
    command, shown = text.removeprefix("$ ").split("\n", 1)
    words = shlex.split(command)
    assert words[0] == "farthing"
    printed = CliRunner(env={"COLUMNS": "120"}).invoke(main, words[1:]).output
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    checker = doctest.OutputChecker()
    difference = checker.output_difference(doctest.Example(command, shown), printed, flags)
    assert checker.check_output(shown, printed, flags), difference

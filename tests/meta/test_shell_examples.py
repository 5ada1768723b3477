"""Commands shown in the README and on the first pages run, and print what the page says."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tree import TOP

PAGES = [TOP / "README.md", TOP / "docs" / "index.md", TOP / "docs" / "getting-started.md"]
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Example:
    """One `$ command` and the output shown below it; `...` stands for anything."""

    command: str
    output: str


def examples_in(text: str) -> list[Example]:
    """Every command of every console block."""
    found = []
    for block in _BLOCK.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append(Example(command, output))
    return found


EXAMPLES = [
    pytest.param(e, id=f"{page.name}: {e.command}")
    for page in PAGES
    for e in examples_in(page.read_text("utf-8"))
]


def test_the_readme_shows_commands() -> None:
    assert any("README" in str(e.id) for e in EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_shown_command_prints_what_is_shown(example: Example, tmp_path: Path) -> None:
    program, *arguments = shlex.split(example.command)
    assert program == "farthing"
    run = subprocess.run(
        [str(Path(sys.executable).with_name("farthing")), *arguments],
        cwd=tmp_path, env=os.environ | {"COLUMNS": "100"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert doctest.OutputChecker().check_output(example.output, run.stdout, _FLAGS), run.stdout

"""The pages show what the command prints: every console block is run and compared."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from farthing.cli import main

TOP = Path(__file__).parents[2]
BLOCK = re.compile(r"```console\n\$ (?P<command>[^\n]*)\n(?P<shown>.*?)```", re.S)
CASES = [
    pytest.param(match["command"], match["shown"], id=f"{page}: {match['command'][:60]}")
    for page in ("docs/cli.md", "docs/tour.md")
    for match in BLOCK.finditer((TOP / page).read_text(encoding="utf-8"))
    if "farthing " in match["command"]
]


def printed_by(command: str) -> str:
    """What a console line prints; the one pipe form that the pages use is `printf '...' | farthing ...`."""
    text = None
    if "|" in command:
        source, command = command.split("|", 1)
        text = shlex.split(source)[1].encode().decode("unicode_escape")
    words = shlex.split(command)
    assert words[0] == "farthing"
    return CliRunner(env={"COLUMNS": "120"}).invoke(main, words[1:], input=text).output


def test_the_pages_have_examples() -> None:
    assert len(CASES) >= 7


@pytest.mark.parametrize(("command", "shown"), CASES)
def test_a_page_shows_what_the_command_prints(command: str, shown: str) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    printed = printed_by(command)
    checker = doctest.OutputChecker()
    example = doctest.Example(command, shown)
    assert checker.check_output(shown, printed, flags), checker.output_difference(example, printed, flags)


@pytest.mark.parametrize("group", ["", "ledger", "requests", "users", "attack"])
def test_what_a_command_does_is_said_in_one_whole_line(group: str) -> None:
    printed = CliRunner(env={"COLUMNS": "80"}).invoke(main, [*group.split(), "--help"]).output
    listed = printed.split("Commands:\n")[1].splitlines()
    assert len(listed) > 1 and not [line for line in listed if line.endswith("...") or not line[2:3].strip()]

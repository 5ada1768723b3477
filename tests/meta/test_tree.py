"""What may stand in the tree: no unfinished marks, no traces of one machine, no giants."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tree import TOP, parsed, project_files, text_of

# Written in pieces so that this file does not find itself.
_UNFINISHED = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "Not" + "Implemented" + "Error")))
_MERGE = re.compile(r"^(?:<{7}|>{7}) ")
_MACHINE = re.compile(r"(?<![\w.~])/(?:work|farm|home|root|Users|opt|mnt)/\w")
_INDEX_SETTING = re.compile(r"(?:--(?:extra-)?index-url|--find-links|--trusted-host|PIP_(?:EXTRA_)?INDEX_URL)\b")
_INDEX_HOST = re.compile(r"https?://[^\s\"')]*/simple\b")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def _texts() -> dict[Path, str]:
    """Every file that is text; read by the first test that needs it, not by every process that collects it."""
    return {path: text for path in project_files() if (text := text_of(path)) is not None}


def _found(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(TOP)}:{number}: {line.strip()[:100]}"
        for path, text in _texts().items()
        if path != Path(__file__)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_the_tree_is_read_at_all() -> None:
    assert TOP / "README.md" in _texts()
    assert TOP / "src/farthing/errors.py" in _texts()


def test_nothing_is_marked_unfinished() -> None:
    assert _found(_UNFINISHED) == []


def test_no_merge_is_left_open() -> None:
    assert _found(_MERGE) == []


def test_no_path_of_one_machine_is_named() -> None:
    assert _found(_MACHINE) == []


def test_no_package_index_is_named() -> None:
    """Which index to install from is the reader's own setting; ours would not work for them."""
    assert _found(_INDEX_SETTING) + _found(_INDEX_HOST) == []


@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_no_host_of_this_machines_pip_settings_is_named() -> None:
    hosts = {host for url in _configured_urls() if (host := urlsplit(url).hostname)}
    named = [host for host in hosts if any(host in text for text in _texts().values())]
    assert named == []


def _configured_urls() -> list[str]:
    settings = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    return re.findall(r"[a-z+]+://[^\s'\"]+", settings + " " + os.environ.get("PIP_INDEX_URL", ""))


@pytest.mark.parametrize(
    ("pattern", "bad", "good"),
    [
        (_UNFINISHED, "# TO" + "DO later", "a to-do list"),
        (_MERGE, "<" * 7 + " HEAD", ">>> 1 < 2"),
        (_MACHINE, "see /ho" + "me/someone/x", "src/home/x and ~/home/x"),
        (_INDEX_SETTING, "pip install --index" + "-url x", "an index of urls"),
        (_INDEX_HOST, "https://example.org/sim" + "ple/", "https://arxiv.org/abs/1311.0776"),
    ],
)
def test_each_pattern_finds_what_it_is_for(pattern: re.Pattern[str], bad: str, good: str) -> None:
    assert pattern.search(bad)
    assert not pattern.search(good)


def _lines_without_docstrings(source: str) -> int:
    nodes = [node for node in ast.walk(parsed(source)) if isinstance(node, _DOCUMENTED)]
    docstrings = [node.body[0] for node in nodes if ast.get_docstring(node, clean=False) is not None]
    return source.count("\n") - sum(1 + (text.end_lineno or text.lineno) - text.lineno for text in docstrings)


def test_no_python_file_grows_past_five_hundred_lines() -> None:
    """A file that long holds more than one idea. Docstrings do not count: nobody should write less of them for it."""
    giants = {
        str(path.relative_to(TOP)): lines
        for path, text in _texts().items()
        if path.suffix == ".py" and text.count("\n") > 500 and (lines := _lines_without_docstrings(text)) > 500
    }
    assert giants == {}


def test_docstrings_are_left_out_of_the_count_of_lines() -> None:
    source = '"""A module\nin two lines."""\n\ndef f():\n    """One."""\n    return """not\nthis"""\n'
    assert _lines_without_docstrings(source) == 4


def test_no_file_is_a_drawer() -> None:
    drawers = {"utils.py", "util.py", "common.py", "helpers.py", "misc.py"}
    assert [str(path.relative_to(TOP)) for path in _texts() if path.name in drawers] == []


@pytest.mark.parametrize("face", sorted((TOP / "src").rglob("__init__.py")), ids=lambda path: path.parent.name)
def test_a_package_lists_only_what_it_holds(face: Path) -> None:
    """Lines like `module, other   what they hold` in its docstring name modules, packages or exported names."""
    text = face.read_text(encoding="utf-8")
    there = {path.stem for path in face.parent.iterdir()} | set(re.findall(r"\w+", text.rpartition('"""')[2]))
    rows = re.findall(r"^((?:\w+, )*\w+)  +\S", ast.get_docstring(parsed(text)) or "", re.MULTILINE)
    assert [name for row in rows for name in row.split(", ") if name not in there] == []

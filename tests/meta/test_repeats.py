"""In the source nothing of length stands twice, no function is too long, and names and docstrings say something."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tree import TOP, parsed, statements

SOURCE = TOP / "src" / "farthing"
MOST_REPEATED = 12
MOST_LINES = 60
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_LAYOUT = re.compile(r"(?:^|\s+)#.*|\s+")  # comments, and blanks


def code_lines(source: str) -> list[tuple[int, str]]:
    """The lines of a file with their numbers, without blanks.

    Comments, docstrings, imports, `__all__` and lists of parameters are left out: two public functions that take the
    same arguments have to say so twice.
    """
    tree = parsed(source)
    left_out: set[int] = set()
    for node in (tree, *statements(tree)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            left_out |= _lines_of(node.body[0])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            left_out |= set(range(node.lineno + 1, node.body[0].lineno))
        elif isinstance(node, ast.Import | ast.ImportFrom) or _is_export(node):
            left_out |= _lines_of(node)
    lines = enumerate(source.splitlines(), 1)
    code = [(number, _LAYOUT.sub("", line)) for number, line in lines if number not in left_out]
    return [(number, text) for number, text in code if text]


def repeats(sources: Mapping[str, str], most: int = MOST_REPEATED) -> list[str]:
    """Runs of more than `most` lines that stand twice: where each begins."""
    places: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, source in sources.items():
        lines = code_lines(source)
        for start in range(len(lines) - most):
            window = lines[start : start + most + 1]
            places[tuple(text for _, text in window)].append(f"{name}:{window[0][0]}")
    return [" = ".join(found) for found in places.values() if len(found) > 1]


def long_functions(source: str, most: int = MOST_LINES) -> Iterator[str]:
    """Functions of more than `most` lines, their docstrings left out."""
    for node in statements(parsed(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            documented = ast.get_docstring(node, clean=False) is not None
            lines = len(_lines_of(node)) - (len(_lines_of(node.body[0])) if documented else 0)
            if lines > most:
                yield f"{node.lineno}: {node.name} has {lines} lines"


def _is_export(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and [ast.unparse(one) for one in node.targets] == ["__all__"]


def _lines_of(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def _sources(folder: Path = SOURCE) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}


def test_no_run_of_more_than_twelve_lines_stands_twice() -> None:
    assert repeats(_sources()) == []


def test_no_function_has_more_than_sixty_lines() -> None:
    assert {name: said for name, text in _sources().items() if (said := list(long_functions(text)))} == {}


def test_a_repeated_run_is_found_whatever_its_comments_and_spaces() -> None:
    body = [f"x{n} = f({n})" for n in range(4)]
    other = [f"x{n} = f( {n} )  # again" for n in range(4)]
    sources = {"a.py": "import os\n" + "\n".join(body), "b.py": '"""Doc."""\n\n' + "\n\n".join(other)}
    assert repeats(sources, 3) == ["a.py:2 = b.py:3"]
    assert repeats(sources, 4) == []


def test_a_long_function_is_found_without_its_docstring() -> None:
    source = 'def f():\n    """One\n    two\n    """\n    x = 1\n    return x\n'
    assert list(long_functions(source, 2)) == ["1: f has 3 lines"]
    assert list(long_functions(source, 3)) == []


_NO_NAMES = {"found", "told", "shown", "meant"}  # of what?
_SUCH_A_NAME = re.compile(rf"(?i)\b_*({'|'.join(_NO_NAMES)})_*\b")
_FEWEST_WORDS = 5  # a docstring with fewer is written for a linter


def _flaws(source: str) -> list[str]:
    """Names that do not say what a thing is, and docstrings that say nothing."""
    flaws = []
    tree = parsed(source)
    for node in ast.walk(tree) if _SUCH_A_NAME.search(source) else statements(tree):  # a tenth of the nodes
        name = ""
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = node.name
            if 0 < len((ast.get_docstring(node) or "").split()) < _FEWEST_WORDS:
                flaws.append(f"line {node.lineno}: the docstring of {name}")
        if name.strip("_").lower() in _NO_NAMES:
            flaws.append(f"line {node.lineno}: the name {name}")
    return flaws


def test_names_and_docstrings_of_the_source_say_something() -> None:
    assert {name: flaws for name, text in _sources().items() if (flaws := _flaws(text))} == {}


@pytest.mark.parametrize(
    ("source", "flaws"),
    [
        ("found = 1", ["line 1: the name found"]),
        ("self._told = 1", ["line 1: the name _told"]),
        ("lambda shown: 0", ["line 1: the name shown"]),
        ('def f():\n    """The name of it."""', ["line 1: the docstring of f"]),
        ('def f():\n    """The name of the column."""\n    return found.shown', []),
        ("def f():\n    foundation = 1", []),
    ],
)
def test_a_name_or_docstring_that_says_nothing_is_noticed(source: str, flaws: list[str]) -> None:
    assert _flaws(source) == flaws

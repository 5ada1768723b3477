"""The files of the project, as git sees them (or as an unpacked archive holds them)."""

from __future__ import annotations

import ast
import gc
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TOP = Path(__file__).parents[2]
_BUILT = {".venv", "site", "dist", "build", "results", "farthing-demo", "__pycache__"}


PARTS = (ast.stmt, ast.excepthandler, ast.match_case)
"""What a statement can stand in; nine tenths of a tree are expressions, which hold none."""


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Every statement, those of functions and classes included."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        waiting.extend(child for child in ast.iter_child_nodes(node) if isinstance(child, PARTS))


@cache
def parsed(source: str) -> ast.Module:
    """The tree of a source, which several tests look at and none changes; to search it for garbage takes longest."""
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        gc.freeze()
        gc.enable()


def project_files() -> list[Path]:
    """Every file that belongs to the project, new ones included, ignored ones not."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=TOP, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listing.returncode == 0:
        found = [TOP / name for name in listing.stdout.split("\0") if name]
    else:  # an archive without git: everything but what the tools made
        found = [path for path in TOP.rglob("*") if not any(p in _BUILT or p.endswith("_cache") for p in path.parts)]
    return sorted(path for path in found if path.is_file())


def text_of(path: Path) -> str | None:
    """The file as text, or None for a picture or another binary."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None

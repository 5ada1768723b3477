"""Every docstring that states a theorem, read from source without importing it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from tree import parsed

HEADINGS = ["Statement", "Source", "Assumes", "Direction", "Checked by"]
_HEADING = re.compile(r"^ *(Statement|Source|Assumes|Direction|Checked by|Departs from source):", re.MULTILINE)
_TEST_FILE = re.compile(r"tests/[\w/]+\.py")


@dataclass(frozen=True)
class Theorem:
    """A function, class or method whose docstring has a `Statement:`."""

    where: str
    name: str
    docstring: str

    @property
    def headings(self) -> list[str]:
        """The fixed headings, as they stand; `Departs from source` is free to come or not."""
        return [h for h in _HEADING.findall(self.docstring) if h != "Departs from source"]

    @property
    def checked_by(self) -> list[str]:
        """The test files that the last heading names."""
        return _TEST_FILE.findall(self.docstring.partition("Checked by:")[2])

    def faults(self, top: Path) -> list[str]:
        """What is missing; empty for a theorem that is stated and tested as it should be."""
        found = []
        if self.headings != HEADINGS:
            found.append(f"{self.where}: {self.name} has the headings {self.headings}")
        if not self.checked_by:
            found.append(f"{self.where}: {self.name} names no test file")
        for name in self.checked_by:
            path = top / name
            if not path.is_file():
                found.append(f"{self.where}: {self.name} is checked by {name}, which does not exist")
            elif self.name not in path.read_text(encoding="utf-8"):
                found.append(f"{self.where}: {self.name} is checked by {name}, which never mentions it")
        return found


def theorems_below(folder: Path) -> list[Theorem]:
    """Theorems in every Python file below `folder`."""
    return [theorem for path in sorted(folder.rglob("*.py")) for theorem in _theorems_in(path)]


def _theorems_in(path: Path) -> list[Theorem]:
    text = path.read_text(encoding="utf-8")
    if not any(f"{heading}:" in text for heading in HEADINGS):
        return []  # most files, and parsing takes its time
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return [
        Theorem(f"{path.name}:{node.lineno}", node.name, docstring)
        for node in ast.walk(parsed(text))
        if isinstance(node, kinds) and (docstring := ast.get_docstring(node)) and _HEADING.search(docstring)
    ]

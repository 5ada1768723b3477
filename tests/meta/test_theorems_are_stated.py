"""A theorem in code has its five headings in order and a test that exists and mentions it."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from theorems_in_source import HEADINGS, Theorem, theorems_below
from tree import TOP


@pytest.fixture(scope="module")
def stated_theorems() -> list[Theorem]:
    """Every theorem of the package."""
    return theorems_below(TOP / "src" / "farthing")


def test_every_theorem_has_its_headings_and_its_test(stated_theorems: list[Theorem]) -> None:
    assert [fault for theorem in stated_theorems for fault in theorem.faults(TOP)] == []


def test_every_public_function_of_the_theorems_states_one(stated_theorems: list[Theorem]) -> None:
    from farthing.accounting import theorems

    stated = {theorem.name for theorem in stated_theorems}
    functions = {name for name in theorems.__all__ if inspect.isroutine(getattr(theorems, name))}
    assert functions - stated == set()
    assert functions


@pytest.mark.parametrize(
    ("headings", "test_file", "fault"),
    [
        (HEADINGS[:-1], "", "has the headings"),
        ([*HEADINGS[1:4], "Statement", "Checked by"], "tests/t.py", "has the headings"),
        (HEADINGS, "", "names no test file"),
        (HEADINGS, "tests/nowhere.py", "does not exist"),
        (HEADINGS, "tests/silent.py", "never mentions it"),
    ],
)
def test_a_badly_stated_theorem_is_named(tmp_path: Path, headings: list[str], test_file: str, fault: str) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "t.py").write_text("assert a_bound() > 0\n", encoding="utf-8")
    (tmp_path / "tests" / "silent.py").write_text("assert True\n", encoding="utf-8")
    docstring = "A bound.\n\n" + "\n".join(f"{h}: something" for h in headings) + f" {test_file}\n"
    assert any(fault in text for text in Theorem("here", "a_bound", docstring).faults(tmp_path))


def test_a_well_stated_theorem_passes(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "t.py").write_text("assert a_bound() > 0\n", encoding="utf-8")
    docstring = "Statement: a\nSource: b\nDeparts from source: c\nAssumes: d\nDirection: e\nChecked by: tests/t.py"
    assert Theorem("here", "a_bound", docstring).faults(tmp_path) == []

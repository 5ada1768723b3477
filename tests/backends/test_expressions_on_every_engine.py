"""Ordinary and hostile expressions: the integers written down in their table, on every engine."""

from __future__ import annotations

from typing import Any

import pytest

from backends.engine_under_test import EngineUnderTest
from backends.expression_cases import HOSTILE, ORDINARY, ROWS, expression, integer_column, table

AT_ONCE = 25  # expressions in one query: Spark needs most of a second for any query
HARMLESS = [case for case in HOSTILE if not case.refused]


@pytest.fixture(scope="session")
def rows(engine: EngineUnderTest) -> Any:
    """The nine rows of the cases, in the engine."""
    return engine.load(table())


def _results(engine: EngineUnderTest, rows: Any, texts: list[str]) -> list[dict[int, int | None]]:
    """For each expression its integer on every row, by the number of the row."""
    columns = {f"c{place}": integer_column(expression(text), rows) for place, text in enumerate(texts)}
    found = engine.engine.rows(engine.engine.sql(rows.select("n", **columns)))
    return [{row[0]: row[place + 1] for row in found} for place in range(len(texts))]


def _faults(engine: EngineUnderTest, rows: Any, cases: list[Any], without: int | None = None) -> list[str]:
    numbers = [row["n"] for row in ROWS if row["n"] != without]
    faults = []
    for some in _batches(cases):
        for case, found in zip(some, _results(engine, rows, [case.text for case in some]), strict=True):
            expected = {number: case.expected[number] for number in numbers}
            if {number: found.get(number, "no row") for number in numbers} != expected:
                faults.append(f"{case.name}: {case.text}: {found} and not {expected}")
    return faults


def _batches(cases: list[Any]) -> list[list[Any]]:
    return [cases[start : start + AT_ONCE] for start in range(0, len(cases), AT_ONCE)]


def test_there_are_enough_of_both() -> None:
    assert len(ORDINARY) >= 60
    assert len(HOSTILE) >= 30
    assert len(HARMLESS) >= 10


def test_ordinary_expressions_give_their_integers(engine: EngineUnderTest, rows: Any) -> None:
    assert _faults(engine, rows, ORDINARY) == []


def test_hostile_expressions_give_their_defined_integers(engine: EngineUnderTest, rows: Any) -> None:
    assert _faults(engine, rows, HARMLESS) == []


def test_hostile_expressions_do_not_notice_that_their_row_is_gone(engine: EngineUnderTest, rows: Any) -> None:
    """The row is taken out by a filter below the expression, which an engine may well evaluate later."""
    triggers = sorted({case.trigger for case in HARMLESS})
    for trigger in triggers:
        remaining = rows.filter(rows.n != trigger)
        some = [case for case in HARMLESS if case.trigger == trigger]
        assert _faults(engine, remaining, some, without=trigger) == []

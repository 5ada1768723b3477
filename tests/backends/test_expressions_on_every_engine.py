"""Ordinary and hostile expressions: the integers written down in their table, on every engine."""

from __future__ import annotations

from typing import Any

import pytest

from backends.engine_under_test import EngineUnderTest
from backends.expression_cases import HOSTILE, ORDINARY, table
from backends.expression_faults import faults

HARMLESS = [case for case in HOSTILE if not case.refused]


@pytest.fixture(scope="session")
def rows(engine: EngineUnderTest) -> Any:
    """The nine rows of the cases, in the engine."""
    return engine.load(table())


def test_there_are_enough_of_both() -> None:
    assert len(ORDINARY) >= 60
    assert len(HOSTILE) >= 30
    assert len(HARMLESS) >= 10


@pytest.mark.slow
def test_ordinary_expressions_give_their_integers(engine: EngineUnderTest, rows: Any) -> None:
    assert faults(engine, rows, ORDINARY) == []


@pytest.mark.slow
def test_hostile_expressions_give_their_defined_integers(engine: EngineUnderTest, rows: Any) -> None:
    assert faults(engine, rows, HARMLESS) == []


@pytest.mark.slow
def test_hostile_expressions_do_not_notice_that_their_row_is_gone(engine: EngineUnderTest, rows: Any) -> None:
    """The row is taken out by a filter below the expression, which an engine may well evaluate later."""
    triggers = sorted({case.trigger for case in HARMLESS})
    for trigger in triggers:
        remaining = rows.filter(rows.n != trigger)
        some = [case for case in HARMLESS if case.trigger == trigger]
        assert faults(engine, remaining, some, without=trigger) == []

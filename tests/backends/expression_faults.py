"""Expression cases on an engine, many in one query."""

from __future__ import annotations

from typing import Any

from backends.engine_under_test import EngineUnderTest
from backends.expression_cases import ROWS, expression, integer_column

AT_ONCE = 25  # expressions in one query: Spark needs most of a second for any query


def _results(engine: EngineUnderTest, rows: Any, texts: list[str]) -> list[dict[int, int | None]]:
    """For each expression its integer on every row, by the number of the row."""
    columns = {f"c{place}": integer_column(expression(text), rows) for place, text in enumerate(texts)}
    found = engine.engine.rows(engine.engine.sql(rows.select("n", **columns)))
    return [{row[0]: row[place + 1] for row in found} for place in range(len(texts))]


def faults(engine: EngineUnderTest, rows: Any, cases: list[Any], without: int | None = None) -> list[str]:
    """Where an engine gives other integers than the table of cases; `without` is a row that was taken out."""
    numbers = [row["n"] for row in ROWS if row["n"] != without]
    found_faults = []
    for some in _batches(cases):
        for case, found in zip(some, _results(engine, rows, [case.text for case in some]), strict=True):
            expected = {number: case.expected[number] for number in numbers}
            if {number: found.get(number, "no row") for number in numbers} != expected:
                found_faults.append(f"{case.name}: {case.text}: {found} and not {expected}")
    return found_faults


def _batches(cases: list[Any]) -> list[list[Any]]:
    return [cases[start : start + AT_ONCE] for start in range(0, len(cases), AT_ONCE)]

"""The table of cases, ordinary and hostile, on DuckDB and by the plain definition."""

from __future__ import annotations

import itertools
from typing import Any

import duckdb
import ibis
import pytest

from backends.expression_cases import (
    HOSTILE,
    ORDINARY,
    ROWS,
    SCHEMA,
    Case,
    Hostile,
    expression,
    integer,
    query,
    table,
)
from farthing.data.expressions import read
from farthing.errors import InvalidExpression

REFUSED = [case for case in HOSTILE if case.refused]
DEFINED = [case for case in HOSTILE if not case.refused]


def on_duckdb(cases: list[Any], rows: list[dict[str, Any]]) -> list[tuple[int | None, ...]]:
    """The integers of every case, case by case."""
    loaded = table(rows)
    connection = duckdb.connect()
    connection.register("t", loaded)
    unbound = ibis.table(ibis.Schema.from_pyarrow(loaded.schema), name="t")
    found = connection.execute(ibis.to_sql(query(unbound, cases), dialect="duckdb")).fetchall()
    return [tuple(column) for column in itertools.islice(zip(*found, strict=True), 1, None)]


def test_there_are_enough_cases_with_names_of_their_own() -> None:
    assert len(ORDINARY) >= 60 and len(HOSTILE) >= 30
    names = [case.name for case in (*ORDINARY, *HOSTILE)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", [*ORDINARY, *DEFINED], ids=lambda case: case.name)
def test_the_definition_gives_the_integers_that_are_written_down(case: Case | Hostile) -> None:
    assert tuple(integer(expression(case.text), row) for row in ROWS) == case.expected


@pytest.mark.slow
def test_duckdb_gives_the_integers_that_are_written_down() -> None:
    cases = [*ORDINARY, *DEFINED]
    wrong = {
        case.name: found for case, found in zip(cases, on_duckdb(cases, ROWS), strict=True) if found != case.expected
    }
    assert wrong == {}


@pytest.mark.slow
def test_a_defined_hostile_case_gives_the_same_without_the_row_that_sets_it_off() -> None:
    for trigger in sorted({case.trigger for case in DEFINED}):
        cases = [case for case in DEFINED if case.trigger == trigger]
        without = [row for row in ROWS if row["n"] != trigger]
        expected = [tuple(v for n, v in enumerate(case.expected) if n != trigger) for case in cases]
        assert on_duckdb(cases, without) == expected


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_a_hostile_expression_is_refused_before_any_row_is_seen(case: Hostile) -> None:
    with pytest.raises(InvalidExpression) as caught:
        read(case.text, SCHEMA)
    error = caught.value
    assert case.refused in error.rule
    assert error.text == case.text
    assert error.position is not None and 0 <= error.position <= len(case.text)
    message = str(error)
    assert (len(message) < 600 and "\x00" not in message and message.isascii()) or "\n" in message
    cells = {str(cell) for row in ROWS for cell in row.values() if isinstance(cell, str) and len(cell) > 6}
    assert not any(cell in message for cell in cells - set(SCHEMA["note"].values))  # type: ignore[union-attr]


def test_the_message_points_at_the_fault() -> None:
    with pytest.raises(InvalidExpression) as caught:
        read("sex = 'F' and error(note)", SCHEMA)
    line, pointed = str(caught.value).splitlines()[-2:]
    assert line[pointed.index("^") :].startswith("error(note)")


def test_a_careless_engine_would_have_shown_a_cell() -> None:
    """The rows are fit to set a cast off: DuckDB itself prints the cell."""
    connection = duckdb.connect()
    connection.register("t", table())
    with pytest.raises(duckdb.Error, match="private-cell"):
        connection.execute("select cast(note as integer) from t where note like 'p%'").fetchall()

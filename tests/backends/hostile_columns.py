"""Tables whose columns have the types that engines compare in ways of their own, made in each engine's own words."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from backends.engine_under_test import (
    DuckDBUnderTest,
    EngineUnderTest,
    PostgresUnderTest,
    SparkUnderTest,
)
from farthing.data.engines.duckdb import quiet

# Types of text: what a column is declared as, and whether blanks at the end of its text are no part of it.
TEXT = {
    "duckdb": {
        "varchar": False,
        "varchar collate nocase": False,
        "varchar collate noaccent": False,
        "varchar collate nocase.noaccent": False,
        "char(8)": False,
    },
    "postgres": {
        "text": False,
        'text collate "no_case"': False,
        'varchar(40) collate "no_case"': False,
        "varchar(40)": False,
        "citext": False,
        "char(40)": True,
    },
    "spark": {
        "string": False,
        "string collate utf8_lcase": False,
        "char(40)": True,
    },
}
PLAIN = {"duckdb": "varchar", "postgres": "text", "spark": "string"}

_COMMON = {"int64": "bigint", "bool": "boolean", "date32[day]": "date"}
_TYPES = {
    "duckdb": {**_COMMON, "double": "double", "string": "varchar", "list<item: string>": "varchar[]"},
    "postgres": {**_COMMON, "double": "double precision", "string": "text", "list<item: string>": "text[]"},
    "spark": {**_COMMON, "double": "double", "string": "string", "list<item: string>": "array<string>"},
}

_NEEDED = """
CREATE EXTENSION IF NOT EXISTS citext;
CREATE COLLATION IF NOT EXISTS no_case (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
"""


def hostile(engine: EngineUnderTest, columns: dict[str, str], rows: Sequence[Sequence[str]]) -> Any:
    """The Ibis table of a new table with these column types; a cell is written as the engine writes a constant."""
    values = ", ".join(f"({', '.join(row)})" for row in rows)
    return _made(engine, columns, f"VALUES {values}" if rows else "")


def retyped(engine: EngineUnderTest, table: pa.Table, kinds: dict[str, str]) -> Any:
    """The Ibis table of an Arrow table, with other types for some of its columns."""
    names = _TYPES[engine.name]
    columns = {field.name: kinds.get(field.name) or names[str(field.type)] for field in table.schema}
    return _made(engine, columns, f"SELECT * FROM {engine.load(table).get_name()}")


def _made(engine: EngineUnderTest, columns: dict[str, str], rows: str) -> Any:
    name = f"h{os.getpid()}_{uuid.uuid4().hex[:12]}"
    shape = ", ".join(f"{column} {kind}" for column, kind in columns.items())
    if isinstance(engine, PostgresUnderTest):
        with engine._owner.transaction():  # two processes must not make the collation at one moment
            engine._owner.execute("SELECT pg_advisory_xact_lock(20261117)")
            engine._owner.execute(_NEEDED)
        run, ending = engine._owner.execute, ""
    elif isinstance(engine, SparkUnderTest):
        session = engine._backend._session
        run, ending = (lambda sql: session.sql(sql).collect()), "USING parquet"
    else:
        assert isinstance(engine, DuckDBUnderTest)
        run, ending = engine._backend.con.execute, ""
    run(f"CREATE TABLE {name} ({shape}) {ending}")
    if rows:
        run(f"INSERT INTO {name} {rows}")
    with quiet():
        return engine._backend.table(name)  # type: ignore[attr-defined]


def quoted(text: str) -> str:
    """A constant of text in SQL."""
    return "'" + text.replace("'", "''") + "'"

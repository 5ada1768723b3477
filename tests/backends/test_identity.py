"""A table of a server is known again, however it is named; another one is another."""

from __future__ import annotations

import os
from typing import Any

import psycopg
import pytest

from backends.engine_under_test import EngineUnderTest, SparkUnderTest, address, url
from backends.tables import TABLES
from farthing.data import postgres_table
from farthing.data.sources import open_source
from farthing.data.table_identity import pieces_of


def _known(table: Any) -> list[set[str]]:
    return [set(piece.known_by) for piece in pieces_of(open_source(table))]


def test_a_postgres_table_is_known_by_number_and_name(postgres_server: dict[str, Any]) -> None:
    one, other = f"identity_{os.getpid()}", f"Identity {os.getpid()}"
    reader = url(postgres_server, "reader")
    with psycopg.connect(**address(postgres_server, "owner"), autocommit=True) as owner:
        owner.execute(f"CREATE SCHEMA {one}")
        owner.execute(f"GRANT USAGE ON SCHEMA {one} TO reader")
        owner.execute(f"CREATE TABLE {one} (age integer) PARTITION BY RANGE (age)")
        owner.execute(f"CREATE TABLE {one}_young PARTITION OF {one} FOR VALUES FROM (0) TO (30)")
        owner.execute(f"CREATE TABLE {one}.{one} (age integer)")
        owner.execute(f'CREATE TABLE "{other}" (age integer)')
        for table in (one, f"{one}_young", f"{one}.{one}", f'"{other}"'):
            owner.execute(f"GRANT SELECT ON {table} TO reader")
        whole, young = _known(postgres_table(reader, one))
        assert _known(postgres_table(reader, f"public.{one}")) == [whole, young]
        assert _known(postgres_table(reader, f"{one}_young")) == [young]
        owner.execute(f"CREATE VIEW {one}_view AS SELECT * FROM {one} WHERE age > 0")
        owner.execute(f"CREATE MATERIALIZED VIEW {one}_kept AS SELECT * FROM {one}_view")
        owner.execute(f"GRANT SELECT ON {one}_view, {one}_kept TO reader")
        for view in ("view", "kept"):  # a view is known by what it reads as well
            own, *read = _known(postgres_table(reader, f"{one}_{view}"))
            assert whole in read and young in read and own not in (whole, young)
        elsewhere, quoted = postgres_table(reader, f"{one}.{one}"), postgres_table(reader, other)
        (there,), (named,) = _known(elsewhere), _known(quoted)
        assert not (whole & there or whole & named or there & named)
        owner.execute(f"ALTER TABLE {one}.{one} RENAME TO renamed")
        (renamed,) = _known(postgres_table(reader, f"{one}.renamed"))
        assert renamed & there


@pytest.mark.slow
def test_a_spark_view_is_known_by_what_it_reads(spark_engine: SparkUnderTest) -> None:
    one, backend = f"identity_{os.getpid()}", spark_engine._backend
    for made in (
        f"CREATE TABLE {one} USING parquet AS SELECT 1 AS age",
        f"CREATE VIEW {one}_view AS SELECT * FROM {one}",
        f"CREATE TABLE {one}_same (age INT) USING parquet LOCATION '{spark_engine.facts['directory']}/warehouse/{one}'",
    ):
        backend._session.sql(made).collect()
    named, place = _known(backend.table(one))
    assert _known(backend.table(one.upper())) == [named, place]
    assert _known(backend.table(f"{one}_view"))[1:] == [named, place]
    assert _known(backend.table(f"{one}_same"))[1:] == [place]


@pytest.mark.parametrize("engine", ["duckdb", "postgres", pytest.param("spark", marks=pytest.mark.slow)])
def test_two_tables_of_an_engine_are_two(engine: str, request: pytest.FixtureRequest) -> None:
    under_test: EngineUnderTest = request.getfixturevalue(f"{engine}_engine")
    one, other = under_test.load(TABLES["people"]), under_test.load(TABLES["people"])
    assert _known(one) == _known(one)
    if engine == "duckdb":
        assert _known(one) == []  # in memory: it goes with its process
    else:
        assert not _known(one)[0] & _known(other)[0]

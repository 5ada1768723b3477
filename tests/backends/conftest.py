"""The real engines: one PostgreSQL and one Spark cluster for the whole run, shared by all of its processes."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backends.engine_under_test import DuckDBUnderTest, EngineUnderTest, PostgresUnderTest, SparkUnderTest
from backends.keeper import CannotStart, kept


def _server(module: str, run: str) -> Iterator[dict[str, Any]]:
    # Not in pytest's own directory, which only this user may enter: PostgreSQL runs under another name.
    place = Path(tempfile.gettempdir()) / f"farthing-{module}-{run}"
    try:
        with kept(f"backends.{module}", place) as facts:
            yield facts
    except CannotStart as reason:
        pytest.skip(f"{module}: {reason}")


@pytest.fixture(scope="session")
def postgres_server(run_id: str) -> Iterator[dict[str, Any]]:
    """The facts of the PostgreSQL that the whole run shares."""
    yield from _server("postgres_server", run_id)


@pytest.fixture
def mortal_postgres() -> Iterator[dict[str, Any]]:
    """A PostgreSQL of one test's own, which it may kill."""
    yield from _server("postgres_server", uuid.uuid4().hex)


@pytest.fixture(scope="session")
def spark_cluster(run_id: str) -> Iterator[dict[str, Any]]:
    """The facts of the Spark cluster that the whole run shares."""
    yield from _server("spark_cluster", run_id)


@pytest.fixture(scope="session")
def duckdb_engine() -> DuckDBUnderTest:
    """DuckDB in this process."""
    return DuckDBUnderTest()


@pytest.fixture(scope="session")
def postgres_engine(postgres_server: dict[str, Any]) -> Iterator[PostgresUnderTest]:
    """PostgreSQL, where the owner loads and the reader asks."""
    engine = PostgresUnderTest(postgres_server)
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def spark_engine(spark_cluster: dict[str, Any]) -> Iterator[SparkUnderTest]:
    """Spark, through Spark Connect."""
    engine = SparkUnderTest(spark_cluster)
    yield engine
    engine.close()


@pytest.fixture(
    scope="session",
    params=["duckdb", "postgres", pytest.param("spark", marks=pytest.mark.slow)],
)
def engine(request: pytest.FixtureRequest) -> EngineUnderTest:
    """Each engine in turn; Spark counts as slow."""
    found: EngineUnderTest = request.getfixturevalue(f"{request.param}_engine")
    return found

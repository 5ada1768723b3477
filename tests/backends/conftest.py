"""The real engines: one PostgreSQL and one Spark cluster for the whole run, shared by all of its processes."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from backends.engine_under_test import DuckDBUnderTest, EngineUnderTest, PostgresUnderTest, SparkUnderTest
from backends.keeper import CannotStart, kept
from forks import RUN_ID


def _place(module: str, run: str) -> Path:
    # Not in pytest's own directory, which only this user may enter: PostgreSQL runs under another name.
    return Path(tempfile.gettempdir()) / f"farthing-{module}-{run}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure on Spark comes with what its driver logged, because our own message, rightly, does not show that."""
    report = yield
    if report.failed and "spark" in item.nodeid.lower():
        log = _place("spark_cluster", item.config.stash[RUN_ID]) / "connect.log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        telling = [line[:300] for line in lines if "ERROR" in line or "Exception" in line or "OutOfMemory" in line]
        report.sections.append(("Spark's driver", "\n".join(telling[-20:])))
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A process that meets Spark imports its client, opens a session and loads tables: few do."""
    for item in items:
        told = getattr(item, "callspec", None)
        asks = {"spark_cluster", "spark_engine"} & set(getattr(item, "fixturenames", ()))
        if asks or (told is not None and told.params.get("engine") == "spark"):
            item.add_marker(pytest.mark.together("spark"))


def _server(module: str, run: str) -> Iterator[dict[str, Any]]:
    try:
        with kept(f"backends.{module}", _place(module, run)) as facts:
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

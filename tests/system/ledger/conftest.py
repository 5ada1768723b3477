"""Ledgers on SQLite and on PostgreSQL, and a nursery of clients."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backends.keeper import CannotStart, kept
from system.ledger.nursery import Forker, Nursery, forker, nursery
from system.ledger.places import Place, postgres_place, sqlite_place

NewPlace = Callable[[], Place]


def _server(run: str) -> Iterator[dict[str, Any]]:
    # The same directory as for the tests of the engines, so that one run needs one server.
    place = Path(tempfile.gettempdir()) / f"farthing-postgres_server-{run}"
    try:
        with kept("backends.postgres_server", place) as facts:
            yield facts
    except CannotStart as reason:
        pytest.skip(f"postgres_server: {reason}")


@pytest.fixture(scope="session")
def postgres_server(run_id: str) -> Iterator[dict[str, Any]]:
    """The facts of the PostgreSQL that the whole run shares."""
    yield from _server(run_id)


@pytest.fixture
def mortal_postgres() -> Iterator[dict[str, Any]]:
    """A PostgreSQL of one test's own, which it may stop."""
    yield from _server(uuid.uuid4().hex)


@pytest.fixture(scope="session")
def client_forker() -> Iterator[Forker]:
    """The process that forks the clients of all tests."""
    with forker() as found:
        yield found


@pytest.fixture
def clients(tmp_path: Path, client_forker: Forker) -> Iterator[Nursery]:
    """A nursery whose clients write into this test's directory."""
    with nursery(tmp_path, client_forker) as found:
        yield found


@pytest.fixture(params=["sqlite", "postgres"])
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> NewPlace:
    """Makes places for ledgers, on each kind of database."""
    if request.param == "sqlite":
        return lambda: sqlite_place(tmp_path)
    facts = request.getfixturevalue("postgres_server")
    return lambda: postgres_place(facts, tmp_path)

"""The server's store: made once however many start, durable or undone, closed to other users of the machine."""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from farthing.errors import InvalidValue, LedgerUnavailable
from farthing.server.store import Store, now
from farthing.server.store.store_engine import file_beside
from farthing.server.store.store_tables import SCHEMA, declarations, metadata
from system.ledger.conftest import postgres_server
from system.ledger.places import postgres_place

__all__ = ["postgres_server"]
ROW = {"name": "people", "body": "{}", "created_by": "ada", "created": 1}
COUNT = sa.select(sa.func.count()).select_from(declarations)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A ledger's address; there need not be one."""
    if request.param == "sqlite":
        return str(tmp_path / "study.db")
    return postgres_place(request.getfixturevalue("postgres_server"), tmp_path).url


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    """A fresh store."""
    made = Store.beside(address)
    yield made
    made.close()


def _count(store: Store) -> int:
    with store.reading() as connection:
        return connection.execute(COUNT).scalar_one()


def test_of_many_who_start_at_once_all_find_the_tables(address: str) -> None:
    barrier = threading.Barrier(8)

    def start() -> set[str]:
        barrier.wait()
        made = Store.beside(address)
        schema = SCHEMA if made.engine.dialect.name == "postgresql" else None
        names = set(sa.inspect(made.engine).get_table_names(schema))
        made.close()
        return names

    with ThreadPoolExecutor(8) as pool:
        found = [each.result() for each in [pool.submit(start) for _ in range(8)]]
    assert found == [{table.name for table in metadata.tables.values()}] * 8


def test_what_raises_is_undone_and_what_ends_is_kept(store: Store, address: str) -> None:
    with pytest.raises(ZeroDivisionError), store.begin() as connection:
        connection.execute(declarations.insert().values(ROW))
        raise ZeroDivisionError
    assert _count(store) == 0
    with store.begin() as connection:
        connection.execute(declarations.insert().values(ROW))
    other = Store.beside(address)
    assert _count(other) == 1
    other.close()


def test_whoever_reads_does_not_wait_for_whoever_writes(store: Store) -> None:
    with store.begin() as connection:
        connection.execute(declarations.insert().values(ROW))
        assert _count(store) == 0
    assert _count(store) == 1


def test_two_who_read_and_then_write_both_succeed(store: Store) -> None:
    def add(number: int) -> None:
        with store.begin() as connection:
            connection.execute(COUNT)
            connection.execute(declarations.insert().values({**ROW, "name": f"people {number}"}))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(24)))
    assert _count(store) == 24


def test_a_row_that_is_there_is_a_matter_for_whoever_writes_it(store: Store) -> None:
    for expected in (None, sa.exc.IntegrityError):
        try:
            with store.begin() as connection:
                connection.execute(declarations.insert().values(ROW))
        except sa.exc.IntegrityError as problem:
            assert expected is type(problem)
            assert "ada" not in str(problem)  # what was written is in no message
        else:
            assert expected is None


def test_what_no_database_can_keep_is_refused_and_not_shown(store: Store) -> None:
    with pytest.raises(InvalidValue, match=r"request='\.\.\.'"), store.begin() as connection:
        connection.execute(declarations.insert().values({**ROW, "created": 2**70}))


@pytest.mark.slow
def test_of_many_who_make_a_file_at_once_nobody_is_turned_away(tmp_path: Path) -> None:
    """SQLite does not wait by itself for whoever changes how a file is written: one of thirty was turned away."""
    with ThreadPoolExecutor(4) as pool:
        for n in range(40):
            gate = threading.Barrier(4)

            def made(ledger: Path = tmp_path / f"{n}.db", gate: threading.Barrier = gate) -> Store:
                gate.wait()
                return Store.beside(ledger)

            for found in [pool.submit(made) for _ in range(4)]:
                found.result().close()


def test_the_file_is_closed_to_others(tmp_path: Path) -> None:
    store = Store.beside(tmp_path / "study.db")
    with store.begin() as connection:
        connection.execute(declarations.insert().values(ROW))
        modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    store.close()
    assert modes == {0o600}
    assert file_beside(tmp_path / "study.db").is_file()


def test_a_place_that_cannot_be_written_is_named_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="right to write the ledger's directory"):
        Store.beside(tmp_path / "nowhere" / "study.db")


@pytest.mark.parametrize("address", ["mysql://user:canary@host/x", "://canary"])
def test_an_address_that_is_none_is_not_shown(address: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        Store.beside(address)
    assert "canary" not in str(caught.value)


def test_a_server_that_does_not_answer_is_said_without_its_password() -> None:
    with pytest.raises(LedgerUnavailable) as caught:
        Store.beside("postgresql://ada:canary@127.0.0.1:9/none")
    assert "does not answer" in str(caught.value)
    assert "canary" not in str(caught.value)


@pytest.mark.slow
def test_a_user_who_may_not_make_a_schema_is_told_what_to_ask_for(
    postgres_server: dict[str, Any], tmp_path: Path
) -> None:
    """And once somebody has made it for them they need no right to make any."""
    place = postgres_place(postgres_server, tmp_path)
    owner = sa.make_url(place.url)
    reader = owner.set(username="reader", password=postgres_server["passwords"]["reader"])
    address = reader.render_as_string(hide_password=False)
    with pytest.raises(LedgerUnavailable, match="CREATE SCHEMA farthing_server AUTHORIZATION"):
        Store.beside(address)
    engine = sa.create_engine(owner.set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {SCHEMA}")
        connection.exec_driver_sql(f"GRANT USAGE, CREATE ON SCHEMA {SCHEMA} TO reader")
    engine.dispose()
    store = Store.beside(address)
    with store.begin() as connection:
        connection.execute(declarations.insert().values({**ROW, "created": now()}))
    store.close()

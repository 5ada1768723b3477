"""PostgreSQL from outside: opening it, what a reader's role suffices for, and every way it fails, without a cell."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from backends.engine_under_test import PostgresUnderTest, address, url
from backends.tables import SCHEMA, TABLES
from farthing.data import Count, Sum, dataset
from farthing.data.engines.postgres import PostgresEngine, postgres_table
from farthing.errors import EngineError, FarthingError, InvalidValue

SLEEP = "SELECT pg_sleep(600)"


def _engine(facts: dict[str, Any], **options: Any) -> PostgresEngine:
    nothing = f"nothing_{os.getpid()}"  # "IF NOT EXISTS" does not help two that create at the same moment
    with psycopg.connect(**address(facts, "owner"), autocommit=True) as owner:
        owner.execute(f"CREATE TABLE IF NOT EXISTS {nothing} (x integer)")
    table = postgres_table(url(facts, "reader"), nothing, **options)
    return PostgresEngine.around(table.get_backend())


def _told(error: BaseException) -> str:
    """Everything that a log would show of an error, causes and contexts included."""
    assert error.__cause__ is None
    assert error.__context__ is None
    return str(error) + repr(error) + "".join(traceback.format_exception(error, chain=True))


@pytest.mark.draws(false_alarm=0, miss=0)  # holds whichever rows a server keeps
def test_a_reader_can_do_everything(postgres_engine: PostgresUnderTest) -> None:
    """Units, a list, a public table, a sample: farthing never needs to create anything."""
    table = postgres_engine.load(TABLES["people"])
    people = dataset(table, unit="person", max_rows=3, schema=SCHEMA)
    chain = (
        people.sample(0.999).where("age > 18").explode("visits", limit=3).derive(b="visits * 2").bin(age=[0, 50])
        .join([{"city": "Zürich", "region": "EU"}], on="city", how="left")
    )  # fmt: skip
    found = chain.exact({"rows": Count(by="region"), "sum": Sum("b")})
    assert found["rows"].shape == (1,)


def test_the_connection_cannot_write_whatever_the_role_may(postgres_server: dict[str, Any]) -> None:
    with psycopg.connect(**address(postgres_server, "owner"), autocommit=True) as owner:
        owner.execute("CREATE TABLE IF NOT EXISTS nothing (x integer)")
    table = postgres_table(url(postgres_server, "owner"), "public.nothing")
    engine = PostgresEngine.around(table.get_backend())
    with pytest.raises(EngineError, match="ReadOnlySqlTransaction"):
        engine.rows("INSERT INTO nothing VALUES (1) RETURNING x")
    assert engine.rows("SELECT count(*) FROM nothing") == [(0,)]


def test_a_connection_of_ones_own_cannot_write_either(postgres_server: dict[str, Any]) -> None:
    import ibis

    facts = address(postgres_server, "owner")
    facts["database"] = facts.pop("dbname")
    backend = ibis.postgres.connect(**facts)
    backend.raw_sql("CREATE TABLE IF NOT EXISTS nothing (x integer)").close()
    with pytest.raises(EngineError, match="ReadOnlySqlTransaction"):
        PostgresEngine.around(backend).rows("INSERT INTO nothing VALUES (1) RETURNING x")
    backend.disconnect()


@pytest.mark.parametrize(
    ("change", "table", "error", "said"),
    [
        (lambda u: u.replace("reader:", "reader:x"), "nothing", EngineError, "the password of role reader was refused"),
        (lambda u: u.partition("reader:")[0] + "reader@" + u.partition("@")[2], "nothing", EngineError, "PGPASSWORD"),
        (lambda u: u.replace("registry", "elsewhere"), "nothing", EngineError, "there is no database elsewhere"),
        (lambda u: u, "people", InvalidValue, "table='people': must be a table that this role may read"),
        (lambda u: u, "nowhere.people", InvalidValue, "ask its owner for GRANT SELECT"),
        (lambda u: u, "", InvalidValue, "must be a name such as people"),
        (lambda u: u, "a.", InvalidValue, "must be a name such as people"),
        (lambda u: u + "?sslmode=disable", "nothing", InvalidValue, "must end with the name of the database"),
        (lambda u: u.replace("postgresql", "mysql"), "nothing", InvalidValue, "must begin with postgresql://"),
        (lambda u: u.replace("127.0.0.1", "no.host.invalid"), "nothing", EngineError, "no server answers at no.host"),
        (lambda u: u.replace("reader:", "reader:x/"), "nothing", InvalidValue, "in a password as %2F"),
        (lambda u: u.replace("127.0.0.1:", "127.0.0.1:9"), "nothing", FarthingError, ""),
    ],
)
def test_opening_fails_with_the_reason_and_without_the_password(
    postgres_server: dict[str, Any], monkeypatch: pytest.MonkeyPatch,
    change: Callable[[str], str], table: str, error: type[FarthingError], said: str,
) -> None:  # fmt: skip
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", os.devnull)
    with pytest.raises(error) as refusal:
        postgres_table(change(url(postgres_server, "reader")), table)
    assert said in str(refusal.value)
    assert postgres_server["passwords"]["reader"] not in _told(refusal.value)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf")])
def test_a_timeout_must_be_a_time(timeout: float) -> None:
    with pytest.raises(InvalidValue, match="timeout"):
        postgres_table("postgresql://reader@127.0.0.1:1/registry", "people", timeout=timeout)


def test_without_the_driver_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(EngineError, match=r"pip install 'farthing\[postgres\]'"):
        postgres_table("postgresql://reader@127.0.0.1:1/registry", "people")


def test_a_dead_server_is_named(postgres_server: dict[str, Any]) -> None:
    with pytest.raises(EngineError, match=r"no server answers at 127.0.0.1:1\)"):
        postgres_table("postgresql://reader:secret@127.0.0.1:1/registry", "people")


def test_no_cell_is_in_any_message(postgres_engine: PostgresUnderTest, capfd: pytest.CaptureFixture[str]) -> None:
    """Queries farthing would never write, because they fail on a cell: still the cell does not come out."""
    canary = f"cell-{os.urandom(8).hex()}"
    table = postgres_engine.load(pa.table({"s": [canary], "n": [2**62 + 12345]})).get_name()
    for sql in (
        f"SELECT CAST(s AS integer) FROM {table}",
        f"SELECT n * n FROM {table}",
        f"SELECT CAST(s AS date) FROM {table}",
        f"SELECT 1 / (n - n) FROM {table}",
        f"SELECT s::json FROM {table}",
        f"SELECT set_bit(decode(s, 'hex'), 1, 1) FROM {table}",
    ):
        with pytest.raises(EngineError) as failure:
            postgres_engine.engine.rows(sql)
        assert canary not in _told(failure.value)
        assert str(2**62 + 12345) not in _told(failure.value)
    shown = capfd.readouterr()
    assert canary not in shown.out + shown.err


def test_a_query_that_takes_too_long_is_stopped_by_the_server(postgres_server: dict[str, Any]) -> None:
    engine = _engine(postgres_server, timeout=5)
    with pytest.raises(EngineError, match=r"QueryCanceled.*statement_timeout"):
        engine.rows(SLEEP)
    assert engine.rows("SELECT 1") == [(1,)]


def test_cancel_stops_the_query_on_the_server(postgres_server: dict[str, Any]) -> None:
    engine = _engine(postgres_server)
    process = _once_it_sleeps(postgres_server, engine, engine.cancel)
    with pytest.raises(EngineError, match="QueryCanceled"):
        engine.rows(SLEEP)
    assert not _sleeps(postgres_server, process)
    assert engine.rows("SELECT 1") == [(1,)]


def test_control_c_stops_the_query_on_the_server(postgres_server: dict[str, Any]) -> None:
    from farthing.data.engines.engine import rows_of

    engine = _engine(postgres_server)
    process = _once_it_sleeps(postgres_server, engine, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        rows_of(engine, SLEEP)
    assert not _sleeps(postgres_server, process)
    assert engine.rows("SELECT 1") == [(1,)]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT, signal.SIGKILL], ids=lambda how: how.name)
def test_a_server_that_dies_during_a_query_is_a_clean_error(
    mortal_postgres: dict[str, Any], how: signal.Signals
) -> None:
    engine = _engine(mortal_postgres)

    def die() -> None:
        os.kill(mortal_postgres["pid"], how)
        if how is signal.SIGKILL:  # the server's own children live on for a while; the query's is killed as well
            os.kill(process, how)

    process = _once_it_sleeps(mortal_postgres, engine, die)
    with pytest.raises(EngineError) as failure:
        engine.rows(SLEEP)
    assert failure.value.way_out
    _told(failure.value)
    _wait_until_dead(mortal_postgres["pid"])
    with pytest.raises(EngineError, match="open the table again"):
        engine.rows("SELECT 1")
    with pytest.raises(EngineError, match="no server answers"):
        postgres_table(url(mortal_postgres, "reader"), "nothing")


def _once_it_sleeps(facts: dict[str, Any], engine: PostgresEngine, act: Callable[[], None]) -> int:
    """Act as soon as the server runs `SLEEP` for this engine; the number of the process that will run it."""
    process = int(engine.rows("SELECT pg_backend_pid()")[0][0])

    def wait_and_act() -> None:
        until = time.monotonic() + 600
        while not _sleeps(facts, process) and time.monotonic() < until:
            time.sleep(0.02)
        act()

    threading.Thread(target=wait_and_act, daemon=True).start()
    return process


def _sleeps(facts: dict[str, Any], process: int) -> bool:
    with psycopg.connect(**address(facts, "postgres")) as watcher:
        sql = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = %s AND pid = %s"
        row = watcher.execute(sql, (SLEEP, process)).fetchone()
        assert row is not None
        return bool(row[0])


def _wait_until_dead(pid: int) -> None:
    until = time.monotonic() + 600
    while time.monotonic() < until:
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return
        except FileNotFoundError:
            return
        time.sleep(0.05)
    raise AssertionError("the server did not die")

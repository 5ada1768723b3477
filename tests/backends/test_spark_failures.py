"""Spark from outside: opening it, losing a worker or the server, stopping a query, and no cell in what is said."""

from __future__ import annotations

import fcntl
import logging
import logging.config
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from backends.engine_under_test import SparkUnderTest
from backends.keeper import wish
from farthing.data import Count, Sum, dataset
from farthing.data.engines.engine import rows_of
from farthing.data.engines.spark import SparkEngine, spark_table
from farthing.errors import EngineError, FarthingError, InvalidValue

ROWS, PAUSE = 400, 20  # how many, and how many milliseconds each takes
# The pause is part of a value that is asked for, or Spark would leave it out.
SLOW = f"""
    SELECT id % 100 AS person, id % 90 + least(0, length(java_method('java.lang.Thread', 'sleep', {PAUSE}L))) AS age
    FROM range(0, {ROWS}, 1, 20)
"""
ENDLESS = SLOW.replace(f"{PAUSE}L", "100L")  # 20 seconds on two workers: over soon, should all else fail
pytestmark = pytest.mark.slow


def _told(error: BaseException) -> str:
    """Everything that a log would show of an error, causes and contexts included."""
    assert error.__cause__ is None
    assert error.__context__ is None
    return str(error) + repr(error) + "".join(traceback.format_exception(error, chain=True))


@pytest.fixture(autouse=True)
def alone(spark_cluster: dict[str, Any]) -> Iterator[None]:
    """Two of these at the same time would wait for each other's pauses."""
    with (Path(spark_cluster["directory"]) / "alone").open("a") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def _once_it_runs(engine: Any, act: Callable[[], None]) -> None:
    """Act a second after the next query of this engine was sent."""

    def wait_and_act() -> None:
        while engine._tag is None:
            time.sleep(0.02)
        time.sleep(1)
        act()

    threading.Thread(target=wait_and_act, daemon=True).start()


def _slow_table(spark: SparkUnderTest) -> Any:
    backend = spark.engine.backend
    backend._session.sql(f"CREATE OR REPLACE TEMPORARY VIEW slow AS {SLOW}").collect()
    return backend.table("slow")


@pytest.mark.draws(false_alarm=0, miss=0)  # holds whichever rows a server keeps
def test_the_answer_still_comes_or_a_clean_error_does_when_a_worker_is_killed(
    spark_engine: SparkUnderTest,
) -> None:
    people = dataset(_slow_table(spark_engine), unit="person", max_rows=10, schema={"age": (0, 110)})
    place = Path(spark_engine.facts["directory"])
    workers = wish(place, "a worker for each dead one")["workers"]
    killed: list[int] = []

    def kill_one(share: float) -> None:
        if not killed and 0 < share < 1:
            killed.append(workers[0])
            os.killpg(workers[0], signal.SIGKILL)  # with its executor, as when the machine goes

    try:
        found = people.exact({"rows": Count(), "age": Sum("age")}, progress=kill_one)
        assert killed
        assert found["rows"].tolist() == ROWS
        assert found["age"].tolist() == sum(number % 90 for number in range(ROWS))
    except EngineError as failure:
        assert killed
        _told(failure)
    finally:
        facts = wish(place, "a worker for each dead one")
    assert len(facts["workers"]) == 2
    assert workers[0] not in facts["workers"]
    assert spark_engine.engine.rows("SELECT count(*) FROM range(0, 100, 1, 8)") == [(100,)]


def test_progress_is_told_and_ends_at_one(spark_engine: SparkUnderTest) -> None:
    shares: list[float] = []
    people = dataset(_slow_table(spark_engine), schema={"age": (0, 110)})
    people.exact({"rows": Count(), "age": Sum("age")}, progress=shares.append)
    assert shares[-1] == 1
    assert any(0 < share < 1 for share in shares)


def test_a_query_is_sent_once(spark_engine: SparkUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    client = spark_engine.engine.backend._session.client
    sent: list[Any] = []
    send = client._execute_plan_request_with_metadata
    monkeypatch.setattr(client, "_execute_plan_request_with_metadata", lambda: sent.append(1) or send())
    assert spark_engine.engine.rows("SELECT 1") == [(1,)]
    assert len(sent) == 1


def test_cancel_stops_this_query_and_no_other_of_the_session(spark_engine: SparkUnderTest) -> None:
    engine = spark_engine.engine
    others: list[Any] = []
    session = spark_engine.engine.backend._session
    beside = threading.Thread(target=lambda: others.extend(session.sql(f"SELECT sum(age) FROM ({SLOW})").collect()))
    beside.start()
    _once_it_runs(engine, engine.cancel)
    with pytest.raises(EngineError, match="OPERATION_CANCELED"):
        engine.rows(f"SELECT sum(age) FROM ({ENDLESS})")
    beside.join()
    assert len(others) == 1
    assert engine.rows("SELECT 1") == [(1,)]


def test_control_c_stops_the_query_on_the_cluster(spark_engine: SparkUnderTest) -> None:
    _once_it_runs(spark_engine.engine, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        rows_of(spark_engine.engine, f"SELECT sum(age) FROM ({ENDLESS})")
    assert spark_engine.engine.rows("SELECT 1") == [(1,)]


def test_a_query_that_takes_too_long_is_stopped(spark_engine: SparkUnderTest) -> None:
    table = spark_table(spark_engine.facts["url"], spark_engine.opened, timeout=0.5)
    with pytest.raises(EngineError, match=r"OPERATION_CANCELED.*timeout"):
        SparkEngine.around(table.get_backend()).rows(f"SELECT sum(age) FROM ({ENDLESS})")
    table.get_backend().disconnect()


def test_no_cell_is_in_any_message_or_log(spark_engine: SparkUnderTest) -> None:
    """Queries farthing would never write, because they fail on a cell: still the cell does not come out."""
    from pyspark.logger import PySparkLogger

    records: list[logging.LogRecord] = []
    listener = logging.Handler()
    listener.emit = records.append  # type: ignore[method-assign]
    names = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging")
    for name in names:
        PySparkLogger.getLogger(name).addHandler(listener)
    logging.getLogger().addHandler(listener)
    # Web servers configure logging like this; it switches on what Spark's client had switched off.
    logging.config.dictConfig({"version": 1, "disable_existing_loggers": False})
    assert not logging.getLogger(names[-1]).disabled
    canary = f"cell-{os.urandom(8).hex()}"
    table = spark_engine.load(pa.table({"s": [canary], "n": [2**62 + 12345]})).get_name()
    for sql in (
        f"SELECT CAST(s AS integer) FROM {table}",
        f"SELECT CAST(s AS date) FROM {table}",
        f"SELECT n * n FROM {table}",
        f"SELECT raise_error(s) FROM {table}",
        f"SELECT n / (n - n) FROM {table}",
    ):
        with pytest.raises(EngineError) as failure:
            spark_engine.engine.rows(sql)
        assert canary not in _told(failure.value)
        assert str(2**62 + 12345) not in _told(failure.value)
    assert not any(canary in str(record.__dict__) for record in records)
    assert not any("Exception" in str(record.__dict__) for record in records)
    # The client does log errors of queries that are not ours: the silence above is no accident.
    with suppress(Exception):
        spark_engine.engine.backend._session.sql(f"SELECT n * n FROM {table}").collect()
    assert any("ARITHMETIC_OVERFLOW" in record.getMessage() for record in records)
    for name in ("", *names):
        logging.getLogger(name).removeHandler(listener)
    logging.getLogger(names[-1]).disabled = True


@pytest.mark.parametrize(
    ("change", "table", "error", "said"),
    [
        (lambda u: u, "missing", InvalidValue, "table='missing': must be a table that this user may read"),
        (lambda u: u, "nowhere.people", InvalidValue, "SHOW TABLES"),
        (lambda u: u, "no.where.people", InvalidValue, "SHOW TABLES"),
        (lambda u: u, "", InvalidValue, "must be a name such as people"),
        (lambda u: u, "a.b.c.d", InvalidValue, "must be a name such as people"),
        (
            lambda u: u.replace("sc:", "http:"),
            "people",
            InvalidValue,
            "must be the address of a Spark Connect server",
        ),
        (lambda u: u + "9", "people", FarthingError, ""),
        (lambda u: "sc://127.0.0.1:1", "people", EngineError, "no server answers at 127.0.0.1:1"),
        (
            lambda u: "sc://no.host.invalid",
            "people",
            EngineError,
            "no server answers at no.host.invalid:15002",
        ),
    ],
)
def test_opening_fails_with_the_reason_and_without_the_parameters_of_the_address(
    spark_cluster: dict[str, Any],
    change: Callable[[str], str],
    table: str,
    error: type[FarthingError],
    said: str,
) -> None:
    user = os.urandom(8).hex()
    with pytest.raises(error) as refusal:
        spark_table(f"{change(spark_cluster['url'])}/;user_id={user}", table)
    assert said in str(refusal.value)
    assert user not in _told(refusal.value)


def test_without_the_client_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark.sql  # first: pyspark cannot be imported a second time once its import has failed

    assert pyspark.sql
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(EngineError, match=r"pip install 'farthing\[spark\]'"):
        spark_table("sc://127.0.0.1:1", "people")


def test_a_server_that_goes_away_during_a_query_is_a_clean_error(spark_engine: SparkUnderTest) -> None:
    """A cable between client and server that can be cut stands for the death of the server."""
    with _cable(spark_engine.facts["url"]) as (url, cut):
        table = spark_table(url, spark_engine.opened)
        engine = SparkEngine.around(table.get_backend())
        _once_it_runs(engine, cut)
        with pytest.raises(EngineError, match="open the table again") as failure:
            engine.rows(f"SELECT sum(age) FROM ({ENDLESS})")
        _told(failure.value)


@contextmanager
def _cable(url: str) -> Iterator[tuple[str, Callable[[], None]]]:
    target = ("127.0.0.1", int(url.rpartition(":")[2]))
    listener = socket.create_server(("127.0.0.1", 0))
    ends: list[socket.socket] = [listener]

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)

    def accept() -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(target)
                ends.extend((near, far))
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    def cut() -> None:
        for end in ends:  # shut down first: closing alone would not wake the thread that accepts
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"sc://127.0.0.1:{listener.getsockname()[1]}", cut
    finally:
        cut()


def test_a_table_of_csv_files_is_refused(spark_engine: SparkUnderTest, tmp_path: Path) -> None:
    """Spark makes rows of the lines in a quoted cell, and takes a backslash before its last quote for an escape."""
    (tmp_path / "people.csv").write_text('age,note\n30,"two\n31,lines"\n', encoding="utf-8")
    backend = spark_engine.engine.backend
    for kind, options in (("csv", "header true, inferSchema true"), ("json", "inferSchema false")):
        backend._session.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW of_files (age INT, note STRING) USING {kind} "
            f"OPTIONS ({options}, path '{tmp_path}')"
        ).collect()
        if kind == "csv":
            with pytest.raises(InvalidValue, match="must not be a view of a text file"):
                dataset(backend.table("of_files"), schema={"age": (0, 110)})
        else:
            dataset(backend.table("of_files"), schema={"age": (0, 110)})

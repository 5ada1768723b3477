"""Queries tell their progress, stop when they are interrupted, and fail without quoting a cell."""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
import threading
import time
import traceback
from typing import Any

import pyarrow as pa
import pytest

from farthing.data import Count, Sum, dataset
from farthing.data.engines.duckdb import DuckDBEngine, connection
from farthing.data.engines.engine import rows_of, way_out_of
from farthing.errors import EngineError

LONG = "SELECT count(*) FROM range(100000) a, range(100000) b WHERE (a.range * 31 + b.range) % 7 = 3"


class Raising:
    """An engine that fails with whatever it is given."""

    name = "duckdb"

    def __init__(self, problem: BaseException) -> None:
        self.problem = problem

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        raise self.problem

    def progress(self) -> float | None:
        return None

    def cancel(self) -> None:
        pass


@pytest.mark.parametrize("kind", [ValueError, RuntimeError, KeyboardInterrupt, SystemExit, MemoryError])
def test_the_words_of_an_engine_stay_inside(kind: type[BaseException]) -> None:
    cell = secrets.token_hex(8)
    with pytest.raises(EngineError) as refusal:
        rows_of(Raising(kind(f"Could not convert string '{cell}' to INT32")), "SELECT 1")  # type: ignore[arg-type]
    assert str(refusal.value).startswith(f"duckdb failed ({kind.__name__}); check that")
    assert cell not in "".join(traceback.format_exception(refusal.value))
    assert refusal.value.__context__ is None and refusal.value.__cause__ is None


def test_a_cell_in_a_real_error_of_duckdb_does_not_come_out(capfd: pytest.CaptureFixture[str]) -> None:
    cell = secrets.token_hex(8)
    engine = DuckDBEngine.around(connection())
    for sql in (
        f"SELECT CAST('{cell}' AS INTEGER)",
        f"SELECT error('{cell}')",
        f"SELECT strptime('{cell}', '%Y')",
    ):
        with pytest.raises(EngineError) as refusal:
            rows_of(engine, sql)
        assert cell not in "".join(traceback.format_exception(refusal.value))
    shown = capfd.readouterr()
    assert cell not in shown.out + shown.err


def test_progress_rises_to_one() -> None:
    people = dataset(
        pa.table({"v": [1, 2, 3]}),
        schema={
            "v": (0, 9),
        },
    )
    heard: list[float] = []
    people.exact({"n": Count(), "s": Sum("v")}, progress=heard.append)
    people.sample(0.5).exact({"n": Count(), "s": Sum("v")}, progress=heard.append)
    assert heard[-1] == 1.0 and heard.count(0.5) >= 1
    assert all(0 <= share <= 1 for share in heard)


def test_a_long_query_tells_its_progress_and_hears_an_interruption() -> None:
    """The query would take minutes; whoever listens to its progress stops it by raising."""
    engine = DuckDBEngine.around(connection())
    heard: list[float] = []

    class Enough(Exception):
        pass

    def listen(share: float) -> None:
        heard.append(share)
        if len(heard) == 3:
            raise Enough

    with pytest.raises(Enough):
        rows_of(engine, LONG, listen)
    assert len(heard) == 3
    assert rows_of(engine, "SELECT 42") == [(42,)]  # the connection is as good as before


def test_two_queries_on_one_connection_take_turns() -> None:
    engine = DuckDBEngine.around(connection())
    found: list[Any] = []
    workers = [
        threading.Thread(target=lambda n=n: found.append(rows_of(engine, f"SELECT {n}")[0][0])) for n in range(8)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(found) == list(range(8))


@pytest.mark.slow
def test_a_query_waits_for_its_turn_and_runs_after_an_interrupted_one() -> None:
    """A long query has the turn and a second one waits; the interruption stops the first and not the second."""
    engine = DuckDBEngine.around(connection())
    found: list[Any] = []
    first_is_running, stop = threading.Event(), threading.Event()

    class Enough(Exception):
        pass

    def listen(share: float) -> None:
        first_is_running.set()
        if stop.is_set():
            raise Enough

    def long() -> None:
        try:
            rows_of(engine, LONG, listen)
        except BaseException as problem:
            found.append(type(problem).__name__)

    worker = threading.Thread(target=long)
    worker.start()
    assert first_is_running.wait(600)
    waiting = threading.Thread(target=lambda: found.append(rows_of(engine, "SELECT 7")[0][0]))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive() and found == []
    stop.set()
    worker.join()
    waiting.join()
    assert found == ["Enough", 7]


class Silent:
    """An engine that never says how far it is, and works until it is told to stop."""

    name = "postgres"

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        assert self.stopped.wait(600)
        raise RuntimeError

    def progress(self) -> float | None:
        return None

    def cancel(self) -> None:
        self.stopped.set()


class _Enough(Exception):
    pass


def _enough(share: float) -> None:
    raise _Enough


def test_whoever_listens_can_stop_an_engine_that_tells_no_progress() -> None:
    engine = Silent()
    with pytest.raises(_Enough):
        rows_of(engine, "SELECT 1", _enough)  # type: ignore[arg-type]
    assert engine.stopped.is_set()


def test_whoever_listens_can_give_up_waiting_for_a_turn() -> None:
    """The one who gives up does not stop the query that has the turn."""
    engine = Silent()
    first_is_running = threading.Event()

    def first() -> None:
        with pytest.raises(EngineError):
            rows_of(engine, "SELECT 1", lambda _: first_is_running.set())  # type: ignore[arg-type]

    worker = threading.Thread(target=first)
    worker.start()
    assert first_is_running.wait(600)
    with pytest.raises(_Enough):
        rows_of(engine, "SELECT 2", _enough)  # type: ignore[arg-type]
    assert not engine.stopped.is_set()
    engine.cancel()
    worker.join()


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_ctrl_c_stops_the_engine_and_not_only_python() -> None:
    """A process that would run for minutes is sent SIGINT; it ends with KeyboardInterrupt and no words of DuckDB."""
    code = f"""
import farthing.data as data
from farthing.data.engines.duckdb import DuckDBEngine
from farthing.data.engines.engine import rows_of
engine = DuckDBEngine.around(data.connection())
rows_of(engine, "SELECT 1")
print("started", flush=True)
rows_of(engine, {LONG!r})
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors and "INTERRUPT" not in errors


def test_every_kind_of_failure_has_a_way_out() -> None:
    kinds = [
        "OutOfMemoryException",
        "IOException",
        "HTTPException",
        "ConnectionException",
        "OperationalError",
        "Error",
    ]
    assert all(way_out_of(kind) for kind in kinds)
    assert "memory limit" in way_out_of("OutOfMemoryException")

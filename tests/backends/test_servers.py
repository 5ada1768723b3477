"""What the tests run on is real: roles that may not write, two workers, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from backends.engine_under_test import EngineUnderTest, SparkUnderTest, address
from backends.keeper import CannotStart, kept, wish

ROWS = pa.table({"x": pa.array([1, 2, None]), "s": pa.array(["a", "é'\\", None])})


def test_a_loaded_table_comes_back_whole(engine: EngineUnderTest) -> None:
    table = engine.load(ROWS)
    rows = engine.engine.rows(engine.engine.sql(table.select("x", "s")))
    assert sorted(rows, key=str) == sorted([(1, "a"), (2, "é'\\"), (None, None)], key=str)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (x integer)",
        "CREATE TEMPORARY TABLE t (x integer)",
        "INSERT INTO nothing VALUES (1)",
        "CREATE SCHEMA s",
    ],
)
def test_the_reader_may_only_read(postgres_server: dict[str, Any], statement: str) -> None:
    with psycopg.connect(**address(postgres_server, "owner"), autocommit=True) as owner:
        owner.execute("CREATE TABLE IF NOT EXISTS nothing (x integer)")
    with psycopg.connect(**address(postgres_server, "reader")) as reader:
        assert reader.execute("SELECT count(*) FROM nothing").fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute(statement)


@pytest.mark.slow
def test_both_workers_take_part(spark_engine: SparkUnderTest) -> None:
    session = spark_engine.load(ROWS).get_backend()._session
    # Each task waits a little, so that one worker alone does not get them all; the second may be late.
    places: set[str] = set()
    for _ in range(200):
        parts = session.sql(
            "SELECT java_method('java.lang.System', 'getProperty', 'user.dir') AS place, "
            "java_method('java.lang.Thread', 'sleep', 300L) AS pause FROM range(0, 4, 1, 4)"
        ).collect()
        places |= {row.place for row in parts}
        if len(places) > 1:
            break
    assert len(places) == 2


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_server_ends_with_the_last_process_that_used_it_even_if_that_was_killed(tmp_path: Path) -> None:
    place = tmp_path / "kept"
    program = (
        "import sys, time; from pathlib import Path; from backends.keeper import kept\n"
        "with kept('backends.test_servers', Path(sys.argv[1])) as facts:\n"
        "    print(facts['pid'], flush=True)\n"
        "    time.sleep(60)"
    )
    users = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(place)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        )
        for _ in range(2)
    ]
    pids = {int(user.stdout.readline()) for user in users if user.stdout}
    assert len(pids) == 1
    users[0].kill()
    users[0].wait()
    with kept("backends.test_servers", place) as facts:
        assert facts["pid"] in pids
        assert _lives(facts["pid"])
        assert wish(place, "something") == {"pid": facts["pid"], "granted": "something"}
        users[1].kill()
        users[1].wait()
        assert _lives(facts["pid"])
    _wait_until(lambda: not _lives(facts["pid"]) and not place.exists())
    for user in users:
        assert user.stdout is not None
        user.stdout.close()


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(CannotStart, match="no_such_server"),
        kept("backends.no_such_server", tmp_path / "kept"),
    ):
        pass


class _Sleeper:
    """A server that only sleeps."""

    def start(self) -> dict[str, Any]:
        self._process = subprocess.Popen(["sleep", "60"])
        return {"pid": self._process.pid}

    def grant(self, wish: str) -> dict[str, Any]:
        return {"pid": self._process.pid, "granted": wish}

    def stop(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


def server(directory: Path) -> _Sleeper:
    """What a keeper looks for."""
    return _Sleeper()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _wait_until(condition: Any) -> None:
    until = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)

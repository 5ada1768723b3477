"""Spark through Spark Connect: tagged queries that can be stopped, progress by tasks, errors and logs without cells.

The client needs no Java. The rows stay in the cluster: what comes back is one row per cell of an answer.
"""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from farthing.data.engines.engine import (
    PART,
    UNKNOWN_TYPE,
    Bits,
    BytesAsKeys,
    columns_of_rows,
    exact_rows,
    function,
    split_address,
)
from farthing.errors import EngineError, InvalidValue

__all__ = ["SparkEngine", "spark_table"]

T = TypeVar("T")
CONNECT_TIMEOUT = 10.0  # seconds until a server that does not answer is called dead
CANCEL_TIMEOUT = 10.0  # seconds during which a query that is only starting is told again to stop
_TIMEOUT_KEY = "spark.farthing.timeout"  # kept in the Spark session, so that it lives as long as the connection

_DECLARED_TYPE = "__CHAR_VARCHAR_TYPE_STRING"

# By the first word of Spark's error condition, from a fixed catalogue; the text of an error is never read.
_WAY_OUT = {
    "OPERATION_CANCELED": "the query was stopped: by Ctrl-C, by its timeout, or by somebody at the cluster",
    "TABLE_OR_VIEW_NOT_FOUND": "the table is not there any more: check its name",
    "UNRESOLVED_COLUMN": "a column is not there any more: describe the dataset again",
    "INSUFFICIENT_PERMISSIONS": "this user may not read the table: ask its owner",
    "INVALID_HANDLE": "the server was started again, or it closed the session: open the table again",
    "UNAVAILABLE": "the Spark Connect server is gone: start it, and open the table again",
    "RETRIES_EXCEEDED": "the Spark Connect server does not answer: check that it runs, and open the table again",
    # What the server says when its own Java fails, not the query: no condition, and the transport's word for that.
    "UNKNOWN": "the cluster's driver gave up, most often for want of memory (spark.driver.memory); its log says why",
    "FAILED_READ_FILE": "a worker cannot read a file of the table: every worker needs the same path",
}
_MISSING = ("TableNotFound", "TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND")
_UNKNOWN = "the cluster's log says why; its text may quote a row, so it is not shown here"

_engines: weakref.WeakValueDictionary[int, SparkEngine] = weakref.WeakValueDictionary()
_making = threading.Lock()

# One session for an address, so that two of its tables can be joined.
_backends: dict[tuple[str, float | None], Any] = {}
# Sessions are never let go. When the garbage collector finds one, it closes a pool of threads that all sessions share,
# and waits for a lock that the query it interrupted may be holding (pyspark 4.0.5, SparkSession.__del__): forever.
_sessions: dict[int, Any] = {}


class SparkEngine(BytesAsKeys):
    """One Spark session; queries take turns on it, each under a tag of its own."""

    name = "pyspark"

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        _sessions[id(backend._session)] = backend._session
        self._turn = threading.Lock()
        self._tag: str | None = None
        self._share: float | None = None
        self._timeout = _with_safe_errors(lambda: backend._session.conf.get(_TIMEOUT_KEY, None))
        if hasattr(backend._session, "registerProgressHandler") and hasattr(backend._session, "client"):
            backend._session.registerProgressHandler(_Listener(self))

    @staticmethod
    def around(backend: Any) -> SparkEngine:
        """The engine of a backend, always the same one."""
        with _making:
            engine = _engines.get(id(backend))
            if engine is None:
                _engines[id(backend)] = engine = SparkEngine(backend)
            return engine

    def sql(self, expression: Any, *, pretty: bool = False) -> str:
        """The text that Spark runs; every join in it is by shuffles, because all that we join is private.

        By itself Spark sends a small side of a join to all workers, and collects it at the driver for that. A hint
        says so in the query alone: a setting would change the other queries of a session that is not ours.
        """
        import sqlglot.expressions as sql

        query = self.backend.compiler.to_sqlglot(expression)
        for select in query.find_all(sql.Select):
            if names := [join.alias_or_name for join in select.args.get("joins") or ()]:
                sides = [sql.to_identifier(name, quoted=True) for name in names]
                select.set("hint", sql.Hint(expressions=[sql.Anonymous(this="MERGE", expressions=sides)]))
        return str(query.sql(dialect=self.backend.dialect, pretty=pretty, copy=False))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run and fetch; a sum of decimals comes back as a Python integer."""
        return self._fetched(sql, lambda frame: exact_rows(frame.collect()))

    def columns(self, sql: str, bits: Bits) -> list[Sequence[Any]]:
        return columns_of_rows(self.rows(sql), bits)

    def each(self, sql: str, take: Callable[[list[tuple[Any, ...]]], None]) -> None:
        """Run, fetch as Arrow, and turn that into Python values in parts."""

        def parts(frame: Any) -> None:
            for batch in frame.toArrow().to_batches(max_chunksize=PART):
                take(exact_rows(zip(*(column.to_pylist() for column in batch.columns), strict=True)))

        self._fetched(sql, parts)

    def _fetched(self, sql: str, fetch: Callable[[Any], T]) -> T:
        with self._turn:
            session, tag = self.backend._session, f"farthing-{uuid.uuid4().hex}"
            timer = threading.Timer(float(self._timeout), self.cancel) if self._timeout else None
            # Tags belong to a thread: what else runs in this session is not stopped with ours.
            session.addTag(tag)
            self._tag, self._share = tag, None
            try:
                if timer:
                    timer.start()
                return _with_safe_errors(lambda: fetch(_frame(session, sql)))
            except KeyboardInterrupt:
                self._interrupt(tag, patience=1.0)  # the client has let go; the cluster would work on
                raise
            finally:
                self._tag = None
                if timer:
                    timer.cancel()
                session.removeTag(tag)

    def cancel(self) -> None:
        """Stop the running query on the cluster; a task that is in the middle of a batch finishes that batch."""
        if (tag := self._tag) is not None:
            self._interrupt(tag, CANCEL_TIMEOUT)

    def _interrupt(self, tag: str, patience: float) -> None:
        """A query that is still being planned cannot hear it yet, so it is told again until it ends."""
        until = time.monotonic() + patience
        while self._tag == tag and time.monotonic() < until:
            if _with_safe_errors(lambda: self.backend._session.interruptTag(tag)):
                return
            time.sleep(0.2)

    def progress(self) -> float | None:
        """The share of tasks done among the stages known so far; it can fall when Spark plans another stage."""
        return self._share

    def files(self, table: Any) -> list[str]:
        """The addresses of the files that a table or view reads; nothing of what Spark has cached."""
        return self._fetched(self.sql(table), lambda frame: list(frame.inputFiles()))

    def padded(self, table: Any) -> frozenset[str]:
        """Spark keeps the declared type of a CHAR(n) in the metadata of its column, and calls it a string."""
        named = _with_safe_errors(lambda: _frame(self.backend._session, self.sql(table)).schema)
        declared = {field.name: (field.metadata or {}).get(_DECLARED_TYPE, "") for field in named}
        return frozenset(name for name, kind in declared.items() if re.search(r"\bchar\(", kind.lower()))

    def plain(self, column: Any, *, padded: bool = False) -> Any:
        """As it is, without the blanks that fill up a CHAR(n)."""
        return function("rtrim", ("string",), "string")(column) if padded else column

    def octets(self, text: Any) -> Any:
        return function("octet_length", ("string",), "int64")(text)

    def bytes_of(self, text: Any) -> Any:
        return text.cast("binary")

    def sha256(self, data: Any) -> Any:
        digits = function("sha2", ("binary", "int64"), "string")(data, 256)
        return function("unhex", ("string",), "binary")(digits)

    def text_of_key(self, key: Any) -> Any:
        """CAST(key AS STRING), without the collation; bytes that are no text, which files may hold, are missing."""
        return function("try_validate_utf8", ("string",), "string")(key.cast("string"))

    def first(self, column: Any, limit: int) -> Any:
        return column[:limit]

    def token(self) -> Any:
        """Two rand() side by side: Ibis knows that these differ from row to row, which it does not know of uuid()."""
        import ibis

        return ibis.random().cast("string") + "/" + ibis.random().cast("string")


def _frame(session: Any, sql: str) -> Any:
    """The rows of a query. A Connect server analyses it when they are fetched, and not once before.

    `session.sql` would send it ahead, for the server to find that it is no command.
    """
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.plan import SQL
    from pyspark.sql.connect.session import SparkSession

    return DataFrame(SQL(sql), session) if isinstance(session, SparkSession) else session.sql(sql)


class _Listener:
    """Hears of stages and tasks; holds its engine weakly, because the session holds the listener."""

    def __init__(self, engine: SparkEngine) -> None:
        self._engine = weakref.ref(engine)

    def __call__(self, stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        engine = self._engine()
        known = list(stages or [])
        tasks = sum(stage.num_tasks for stage in known)
        if engine is not None and tasks:
            engine._share = min(1.0, sum(stage.num_completed_tasks for stage in known) / tasks)


def spark_table(url: str, table: str, *, timeout: float | None = None) -> Any:
    """A table of a Spark Connect server. Nothing but the names and types of its columns is read.

    Args:
        url: `sc://host:port`, with Spark's own parameters where needed (`sc://host:443/;use_ssl=true;token=...`).
        table: Its name, with its catalog and schema where needed (`lake.registry.people`).
        timeout: The longest a query may take, in seconds.

    Returns:
        An Ibis table for `farthing.dataset`.

    Raises:
        InvalidValue: If an argument is wrong, or there is no such table that the user may read.
        EngineError: If the extra `spark` is not installed, or the server cannot be reached. No message shows the
            address's parameters.

    >>> spark_table("sc://127.0.0.1:1", "people")
    Traceback (most recent call last):
        ...
    farthing.errors.EngineError: spark failed (no server answers at 127.0.0.1:1); start Spark Connect, or check the ...
    """
    host, port = _address(url)
    if timeout is not None and not 0 < timeout < threading.TIMEOUT_MAX:
        raise InvalidValue("timeout", timeout, "must be > 0 seconds", "or None for no limit")
    *place, name = table.split(".")
    if not all((*place, name)) or len(place) > 2:
        raise InvalidValue("table", table, "must be a name such as people or registry.people")
    connect = _connector()
    if connect is None:
        raise EngineError("spark", "its client is not installed", "pip install 'farthing[spark]'")
    if not _answers(host, port):
        raise EngineError("spark", f"no server answers at {host}:{port}", "start Spark Connect, or check the address")

    def opened() -> Any:
        backend = _backends.get((url, timeout))
        if backend is None or backend._session.is_stopped:
            backend = _backends[url, timeout] = connect(url, timeout)
        return backend.table(name, database=tuple(place) or None)

    try:
        return _with_safe_errors(opened)
    except EngineError as failure:
        rule, way_out = "must be a table that this user may read", "SHOW TABLES lists them"
        if failure.kind.startswith("NotImpl"):  # from Ibis, about the type of a column
            rule, way_out = UNKNOWN_TYPE
        elif not failure.kind.startswith(_MISSING):
            raise
    raise InvalidValue("table", table, rule, way_out)


def _connector() -> Callable[[str, float | None], Any] | None:
    """What makes an Ibis backend of an address and a timeout; None where the client is not installed."""
    try:
        import ibis
        from pyspark.sql import SparkSession
        from pyspark.sql.connect.client.retries import DefaultPolicy

        backend_of = ibis.pyspark.connect
    except ImportError:
        return None

    def connect(url: str, timeout: float | None) -> Any:
        session = SparkSession.builder.remote(url).create()
        _sessions[id(session)] = session
        # By default the client asks a dead server for ten minutes; with this, for some ten seconds.
        session.client.set_retry_policies([DefaultPolicy(max_retries=6, max_backoff=3000)])
        # Overflow and division by zero must be errors and not wrong numbers, whatever the server's default is.
        session.conf.set("spark.sql.ansi.enabled", "true")
        if timeout is not None:
            session.conf.set(_TIMEOUT_KEY, str(timeout))
        return backend_of(session)

    return connect


def _address(url: str) -> tuple[str, int]:
    """Host and port. A refused address is not shown: its parameters may hold a token."""
    parts, port = split_address(url)
    if parts.scheme != "sc" or not parts.hostname:
        rule = "must be the address of a Spark Connect server"
        raise InvalidValue("url", f"{parts.scheme}://...", rule, "write sc://host:port")
    return parts.hostname, port or 15002


def _answers(host: str, port: int) -> bool:
    """Asked first: Spark's own client would go on asking for minutes."""
    try:
        with socket.create_connection((host, port), timeout=CONNECT_TIMEOUT):
            return True
    except (OSError, UnicodeError):
        return False


class _NoCells(logging.Filter):
    """Keeps the client from logging errors of our queries: it writes their text, cells included, to stderr."""

    def __init__(self) -> None:
        super().__init__()
        self.here = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        return not getattr(self.here, "running", False)


_no_cells = _NoCells()
# The last one is off at first, but whoever configures logging, as web servers do, switches it on without knowing.
_TELLING = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging")


def _with_safe_errors(call: Callable[[], T]) -> T:
    """Spark's errors as ours: their condition and what to do, without their text, in messages and in logs."""
    from pyspark.logger import PySparkLogger

    for name in _TELLING:
        # Asked for by Spark's own class: a plain logger made before it would break the client's calls.
        PySparkLogger.getLogger(name).addFilter(_no_cells)
    _no_cells.here.running = True
    try:
        return call()
    except Exception as error:
        failure = _failure(error)
    finally:
        _no_cells.here.running = False
    raise failure  # outside of the handler: inside, Spark's error would be printed with it


def _failure(error: Exception) -> EngineError:
    kind = _condition(error)
    return EngineError("spark", kind, _WAY_OUT.get(kind.split(".")[0], _UNKNOWN))


def _condition(error: Exception) -> str:
    """The word for what happened: Spark's condition, the transport's status, or the name of the class."""
    condition = getattr(error, "getCondition", lambda: None)()
    if condition:
        return str(condition)
    for cause in (error, error.__cause__, error.__context__):
        code = getattr(cause, "code", None)
        if callable(code) and hasattr(code(), "name"):
            return str(code().name)
    return type(error).__name__

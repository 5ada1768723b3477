"""PostgreSQL: queries in read-only transactions, stopped on the server, with errors that hold no cell and no password.

A role that may SELECT from the table is enough: farthing creates nothing, not even a temporary table.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import unquote

from farthing.data.engines.engine import PART, UNKNOWN_TYPE, Bits, columns_of_rows, exact_rows, function, split_address
from farthing.errors import EngineError, InvalidValue

__all__ = ["PostgresEngine", "postgres_table"]

T = TypeVar("T")

CONNECT_TIMEOUT = 10  # seconds until a server that does not answer is called dead
CANCEL_TIMEOUT = 5.0  # seconds for the server to hear that a query is not wanted any more

# By SQLSTATE, or by its first two characters, the standard's class of a failure; the text of a failure is never read.
_WAY_OUT: Mapping[str, str] = {
    "08": "the connection is gone: check that the server runs, and open the table again",
    "25": "the transaction was refused or ended by the server: try again",
    "28": "the role was refused: check its name and password",
    "40": "the server gave way to another transaction: try again",
    "42": "farthing wrote a query that this server does not take: please report it",
    "42501": "the role may not read the table: ask its owner for GRANT SELECT",
    "42703": "a column is not there any more: describe the dataset again",
    "42P01": "the table is not there any more, or not in the role's search_path: check its name",
    "53": "the server has no memory, disk or connections left: try again when it has",
    "54": "the query is too large for the server: ask for fewer statistics at a time",
    "57": "the query was stopped: by Ctrl-C, by statement_timeout, or because the server was shut down",
    "58": "the server could not read its own files: its log says which",
    "XX": "the server met a fault of its own: its log says which",
}
_LOST = "the connection is gone: check that the server runs, and open the table again"
_UNKNOWN = "the server's log says why; its text may quote a row, so it is not shown here"

# By identity, as for DuckDB: Ibis calls two connections equal when they were opened with equal arguments.
_engines: weakref.WeakValueDictionary[int, PostgresEngine] = weakref.WeakValueDictionary()
_making = threading.Lock()


class PostgresEngine:
    """One connection; queries take turns on it, each in a read-only transaction of its own."""

    name = "postgres"

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self._turn = threading.Lock()

    @staticmethod
    def around(backend: Any) -> PostgresEngine:
        """The engine of a backend, always the same one."""
        with _making:
            engine = _engines.get(id(backend))
            if engine is None:
                _engines[id(backend)] = engine = PostgresEngine(backend)
            return engine

    def sql(self, expression: Any, *, pretty: bool = False) -> str:
        """The text that PostgreSQL runs."""
        return str(self.backend.compile(expression, pretty=pretty))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run and fetch. A sum of integers is a `numeric` here; it comes back as a Python integer, not as a float."""
        return self._fetched(sql, lambda cursor: exact_rows(cursor.fetchall()))

    def columns(self, sql: str, bits: Bits) -> list[Sequence[Any]]:
        return columns_of_rows(self.rows(sql), bits)

    def each(self, sql: str, take: Callable[[list[tuple[Any, ...]]], None]) -> None:
        """Run and turn the server's answer into Python values in parts."""

        def parts(cursor: Any) -> None:
            while part := cursor.fetchmany(PART):
                take(exact_rows(part))

        self._fetched(sql, parts)

    def _fetched(self, sql: str, fetch: Callable[[Any], T]) -> T:
        connection = self.backend.con

        def fetched() -> T:
            with self._turn, connection.transaction(), connection.cursor() as cursor:
                # Whatever the role may do elsewhere, this query cannot write.
                cursor.execute("SET TRANSACTION READ ONLY")
                return fetch(cursor.execute(sql))

        return _with_safe_errors(fetched)

    def cancel(self) -> None:
        """Ask the server, over a second connection, to stop the running query."""
        _with_safe_errors(lambda: self.backend.con.cancel_safe(timeout=CANCEL_TIMEOUT))

    def progress(self) -> float | None:
        """PostgreSQL does not say how far a SELECT is."""
        return None

    def padded(self, table: Any) -> frozenset[str]:
        """None: a cast to text leaves the blanks of a CHAR(n) out."""
        return frozenset()

    def plain(self, column: Any, *, padded: bool = False) -> Any:
        """Ibis calls CHAR(n), citext, name and enumerations text, oid a whole number and money a decimal."""
        import ibis

        kind = column.type()
        if kind.is_string():
            return function("text", ("string",), "string")(column)
        if kind.is_int64():
            return function("int8", ("int64",), "int64")(column)
        if kind.is_decimal():
            number = column.cast("decimal")
            return number.nullif(ibis.literal("NaN").cast("decimal"))
        return column

    def octets(self, text: Any) -> Any:
        """octet_length(), which does not unpack what is stored elsewhere."""
        return function("octet_length", ("string",), "int64")(text)

    def bytes_of(self, text: Any) -> Any:
        """convert_to() the encoding of the database itself: to any other, the conversion can fail at a row."""
        return function("convert_to", ("string", "string"), "binary")(text, _encoding())

    def sha256(self, data: Any) -> Any:
        return function("sha256", ("binary",), "binary")(data)

    def constant_bytes(self, value: bytes) -> Any:
        """decode(): Ibis writes a bytea that PostgreSQL does not read."""
        return function("decode", ("string", "string"), "binary")(value.hex(), "hex")

    def hexadecimal(self, data: Any) -> Any:
        return function("encode", ("binary", "string"), "string")(data, "hex")

    def key(self, text: Any) -> Any:
        """The same text by way of its bytes: it comes back with the collation "C", which compares bytes."""
        return function("convert_from", ("binary", "string"), "string")(self.bytes_of(text), _encoding())

    def constant_key(self, value: str) -> Any:
        """The text itself, which takes on the collation of what it is compared with."""
        import ibis

        return ibis.literal(value)

    def text_of_key(self, key: Any) -> Any:
        return key

    def first(self, column: Any, limit: int) -> Any:
        """As it is: a slice cuts the first dimension of an array alone, and its subscripts may begin anywhere."""
        return column

    def token(self) -> Any:
        import ibis

        return ibis.uuid().cast("string")


def postgres_table(url: str, table: str, *, timeout: float | None = None, beside: Any = None) -> Any:
    """A table of Postgres, opened for reading only. Nothing but the names and types of its columns is read.

    Args:
        url: `postgresql://role@host:port/database`. The password comes from the address or, better, from where libpq
            looks: `PGPASSWORD` or `~/.pgpass`.
        table: Its name, with its schema where needed (`registry.people`).
        timeout: The longest a query may take, in seconds, by the server's clock.
        beside: A table that `postgres_table` opened at the same address. The new one shares its connection and its
            timeout, so that the two can be linked or joined.

    Returns:
        An Ibis table for `farthing.dataset`.

    Raises:
        InvalidValue: If an argument is wrong, or there is no such table that the role may read.
        EngineError: If the extra `postgres` is not installed, or the server cannot be reached. No message holds the
            password.

    >>> postgres_table("postgresql://reader@127.0.0.1:1/registry", "people")
    Traceback (most recent call last):
        ...
    farthing.errors.EngineError: postgres failed (no server answers at 127.0.0.1:1); start it, or check the address.
    """
    address = _address(url)
    schema, name = _table_name(table)
    options = {
        "application_name": "farthing",
        "connect_timeout": CONNECT_TIMEOUT,
        # A server that vanished without a word is noticed after a minute, not after two hours.
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "options": f"-c default_transaction_read_only=on -c statement_timeout={_milliseconds(timeout)}",
    }
    if beside is None:
        return _table(_connected(address, options), schema, name, table)
    backend = beside.get_backend()
    _refuse_elsewhere(backend, address, timeout)
    with PostgresEngine.around(backend)._turn:  # a query that runs on the connection has it to itself
        return _table(backend, schema, name, table)


def _refuse_elsewhere(backend: Any, address: Mapping[str, Any], timeout: float | None) -> None:
    """Refuse to share a connection that is lost, or that was made to another database or by another role."""
    if timeout is not None:
        raise InvalidValue("timeout", timeout, "must be left out: it is that of the table beside this one")
    there: dict[str, Any] = {}
    if backend.name == "postgres":
        if backend.con.closed:
            raise EngineError("postgres", "ConnectionLost", _LOST)
        info = backend.con.info
        there = {"host": info.host, "port": info.port, "user": info.user, "database": info.dbname}
    if any(there.get(fact) != value for fact, value in address.items() if fact != "password"):
        way_out = "open it with the same address as this one"
        raise InvalidValue("beside", f"a table of {backend.name}", "must be at the same address", way_out)


def _encoding() -> Any:
    return function("getdatabaseencoding", (), "string")()


def _connected(address: dict[str, Any], options: Mapping[str, Any]) -> Any:
    try:
        import ibis
        import psycopg

        connect = ibis.postgres.connect
    except ImportError:
        connect = None
    if connect is None:
        raise EngineError(
            "postgres", "its driver is not installed", "pip install 'farthing[postgres]', or install psycopg"
        )
    try:
        backend = connect(**address, **options)
        # A dataset has no end of its own: the last table closes it.
        weakref.finalize(backend, backend.con.close)
        return backend
    except psycopg.Error as error:
        refusal = _refusal(error, address)
    except UnicodeError:  # a host name that cannot be one
        refusal = EngineError("postgres", "the host has no valid name", "check the address")
    raise refusal  # outside of the handler, so that nothing of the driver's error travels along


def _table(backend: Any, schema: str | None, name: str, title: str) -> Any:
    from ibis.common.exceptions import TableNotFound

    rule = "must be a table that this role may read"
    way_out = "write its name as it is stored, case included and without quotes, or ask its owner for GRANT SELECT"
    try:
        return _with_safe_errors(lambda: backend.table(name, database=schema))
    except TableNotFound:
        pass  # said below, without Ibis's words
    # From Ibis, about the type of a column.
    except (
        ValueError,
        TypeError,
        AttributeError,
        RuntimeError,
    ):
        rule, way_out = UNKNOWN_TYPE
    raise InvalidValue("table", title, rule, way_out)


def _address(url: str) -> dict[str, Any]:
    """The parts of the address. A refused address is not shown: it may hold a password."""
    way_out = "write postgresql://role@host:port/database"
    parts, port = split_address(url)
    if parts.scheme not in ("postgresql", "postgres"):
        raise InvalidValue("url", f"{parts.scheme}://...", "must begin with postgresql://", way_out)
    database = unquote(parts.path.lstrip("/"))
    if parts.query or parts.fragment or "/" in database:
        raise InvalidValue("url", "postgresql://...", "must end with the name of the database", way_out)
    address = {
        "host": parts.hostname,
        "port": port or 5432,
        "user": unquote(parts.username) if parts.username else None,
        "password": unquote(parts.password) if parts.password else None,
        "database": database or None,
    }
    return {key: value for key, value in address.items() if value is not None}


def _table_name(table: str) -> tuple[str | None, str]:
    schema, dot, name = table.rpartition(".")
    if not name or (dot and not schema):
        raise InvalidValue("table", table, "must be a name such as people or registry.people")
    return schema or None, name


def _milliseconds(timeout: float | None) -> int:
    if timeout is None:
        return 0  # what PostgreSQL calls no limit
    if not 0.001 <= timeout <= 2_000_000:
        raise InvalidValue("timeout", timeout, "must be between 0.001 and 2,000,000 seconds", "or None for no limit")
    return math.ceil(timeout * 1000)


def _refusal(error: Any, address: Mapping[str, Any]) -> EngineError:
    """Why no connection came about. No row has been read yet; still only known phrases are looked for."""
    text = str(error)
    role, database = address.get("user", "this user"), address.get("database", "its default")
    place = f"{address.get('host', 'the local socket')}:{address['port']}"
    if "password authentication failed" in text or "no password supplied" in text:
        return EngineError(
            "postgres",
            f"the password of role {role} was refused",
            "set PGPASSWORD, or write it into ~/.pgpass",
        )
    if "does not exist" in text and "database" in text:
        return EngineError("postgres", f"there is no database {database} at {place}", "check the address")
    if "pg_hba.conf" in text or "not permitted to log in" in text:
        return EngineError(
            "postgres", f"the server does not let role {role} in", "ask its owner for a line in pg_hba.conf"
        )
    if "too many" in text:
        return EngineError("postgres", f"the server at {place} has no connection left", _WAY_OUT["53"])
    return EngineError("postgres", f"no server answers at {place}", "start it, or check the address")


def _with_safe_errors(call: Callable[[], T]) -> T:
    """The driver's errors as ours: their class and what to do, without their text."""
    import psycopg

    try:
        return call()
    except psycopg.Error as error:
        failure = _failure(error)
    raise failure  # outside of the handler: inside, the driver's error would be printed with it


def _failure(error: Any) -> EngineError:
    state = error.sqlstate
    if state is None:  # no word from the server: the connection itself
        return EngineError("postgres", "ConnectionLost", _LOST)
    way_out = _WAY_OUT.get(state) or _WAY_OUT.get(state[:2]) or _UNKNOWN
    return EngineError("postgres", type(error).__name__, way_out)

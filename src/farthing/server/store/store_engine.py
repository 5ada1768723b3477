"""The server's own database: a schema beside a ledger on PostgreSQL, or a file beside a ledger in a file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from farthing.errors import InvalidValue, LedgerUnavailable, MissingExtra
from farthing.server.store.store_tables import SCHEMA, metadata

_MAKING = 4_714_009  # any fixed number: the advisory lock for making the schema
_WAIT = 10  # seconds to wait for others before giving up
_READING = "farthing_reading"


def now() -> int:
    """The time as the tables keep it.

    Returns:
        Nanoseconds since 1970.

    >>> now() > 1_700_000_000_000_000_000
    True
    """
    return time.time_ns()


def file_beside(ledger: str | os.PathLike[str]) -> Path:
    """The file of the store of a ledger in a file.

    >>> file_beside("folder/study.db").as_posix(), file_beside("study").as_posix()
    ('folder/study.server.db', 'study.server.db')
    """
    path = Path(ledger)
    return path.with_name((path.stem if path.suffix == ".db" else path.name) + ".server.db")


class Store:
    """Transactions on the server's database; the tables are made when it is opened.

    Args:
        engine: The database.
        place: What messages call it; never with a password.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store.beside(folder.name + "/study.db")
    >>> with store.begin() as connection:
    ...     connection.execute(sa.text("SELECT 1")).scalar_one()
    1
    >>> store.close(); folder.cleanup()
    """

    def __init__(self, engine: sa.Engine, place: str) -> None:
        self.engine = engine
        self.place = place  # for messages: never with a password
        self._make()

    @classmethod
    def beside(cls, ledger: str | os.PathLike[str]) -> Store:
        """The store of the ledger at that path or address; made if there is none."""
        if isinstance(ledger, str) and "://" in ledger:
            return cls._addressed(ledger)
        return cls._in_file(file_beside(ledger))

    @classmethod
    def _addressed(cls, address: str) -> Store:
        try:
            url = sa.make_url(address)
        except (sa.exc.ArgumentError, ValueError):
            raise InvalidValue("ledger", "...", "must be a path or an address that can be read") from None
        system = url.drivername.partition("+")[0]
        if system == "sqlite" and url.database:
            return cls._in_file(file_beside(url.database))
        if system not in ("postgresql", "postgres"):
            raise InvalidValue("ledger", system, "must name an SQLite file or a PostgreSQL server")
        try:
            engine = sa.create_engine(
                url.set(drivername="postgresql+psycopg"),
                hide_parameters=True,
                pool_pre_ping=True,
                pool_size=5,
                max_overflow=20,
                pool_timeout=_WAIT,
                connect_args={"connect_timeout": _WAIT, "client_encoding": "utf8"},
            )
        except ImportError:
            raise MissingExtra("ledgers on PostgreSQL", "psycopg", "postgres") from None
        sa.event.listen(engine, "connect", _settle_postgres)
        return cls(engine, url.set(query={}).render_as_string(hide_password=True))

    @classmethod
    def _in_file(cls, path: Path) -> Store:
        path = Path(os.path.realpath(path))
        try:
            # Made first, so that nobody else may read it for a moment: SQLite gives its log the rights of the file.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise LedgerUnavailable(
                f"the server's store {path.name} cannot be made ({type(error).__name__})",
                "give this user the right to write the ledger's directory",
            ) from None
        engine = sa.create_engine(
            "sqlite://",
            creator=lambda: _connected(path),
            poolclass=sa.pool.QueuePool,
            pool_size=5,
            max_overflow=20,
            hide_parameters=True,
        ).execution_options(schema_translate_map={SCHEMA: None})
        sa.event.listen(engine, "begin", _begin)
        return cls(engine, str(path))

    @contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        """One transaction that may write: durable when the block has ended, undone if it raises."""
        with _understood(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """One transaction that only reads, and holds up nobody who writes."""
        with _understood(), self.engine.connect() as connection:
            quiet = connection.execution_options(**{_READING: True})
            with quiet.begin():
                yield quiet

    def close(self) -> None:
        """Close all connections to the server's database."""
        self.engine.dispose()

    def _make(self) -> None:
        """Make what is not there; of several who start at once one makes it and the others find it."""
        try:
            with self.begin() as connection:
                if connection.dialect.name == "postgresql":
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MAKING)))
                    # Asked first: IF NOT EXISTS wants the right to make one even where there is one.
                    if connection.scalar(sa.text("SELECT to_regnamespace(:it)"), {"it": SCHEMA}) is None:
                        connection.execute(sa.schema.CreateSchema(SCHEMA))
                metadata.create_all(connection)
        except sa.exc.ProgrammingError as error:
            self.close()
            raise LedgerUnavailable(
                f"the schema {SCHEMA} cannot be made in {self.place} ({type(error.orig).__name__})",
                f"let the database's owner run: CREATE SCHEMA {SCHEMA} AUTHORIZATION the_user_of_the_server",
            ) from None
        except BaseException:
            self.close()
            raise


@contextmanager
def _understood() -> Iterator[None]:
    """A database that cannot be reached or is busy, in farthing's words; its own text may quote what was written."""
    try:
        yield
    except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.TimeoutError) as error:
        kind = type(getattr(error, "orig", None) or error).__name__
        raise LedgerUnavailable(f"the server's store does not answer ({kind})", "try again") from None
    except (sa.exc.DataError, OverflowError):
        # Such as a text with a NUL in it, or a number of more than 64 bits; it is not shown.
        raise InvalidValue("request", "...", "holds something that a database cannot keep") from None


def _connected(path: Path) -> Any:
    import sqlite3

    connection = sqlite3.connect(path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
    until = time.monotonic() + _WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError:  # two who make the file at once: SQLite does not wait here by itself
            if time.monotonic() >= until:
                connection.close()
                raise
            time.sleep(0.01)
    for pragma in ("synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _begin(connection: sa.Connection) -> None:
    # A transaction that reads first and writes later would be refused, not delayed, if somebody wrote in between.
    reading = connection.get_execution_options().get(_READING)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


def _settle_postgres(connection: Any, _: object) -> None:
    limits = {
        "lock_timeout": _WAIT,
        "statement_timeout": 3 * _WAIT,
        "idle_in_transaction_session_timeout": 6 * _WAIT,
    }
    connection.autocommit = True
    connection.execute(
        "SELECT " + ", ".join(f"set_config('{name}', '{wait}s', false)" for name, wait in limits.items())
    )
    connection.autocommit = False

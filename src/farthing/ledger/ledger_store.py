"""Connections and transactions: what is the same for both databases.

A store belongs to one process. It has one connection for writing and short reading, used by one thread at a time,
and opens another for long reading. After a fork the child starts afresh with connections of its own.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from farthing.errors import LedgerError, LedgerTampered, LedgerUnavailable
from farthing.ledger.entries import APPEND, KEEP_ACCOUNT, MOVE_HEAD, OPEN_ACCOUNT, STORE_ANSWER, Change
from farthing.ledger.ledger_change import ASK, ONE_ACCOUNT, Question, Snapshot, snapshot_in

_AGAIN = "retry with the same request id"
_SQLITE: dict[str, tuple[str, str]] = {
    "SQLITE_BUSY": ("another program holds the file", f"close it, then {_AGAIN}"),
    "SQLITE_LOCKED": ("another program holds the file", f"close it, then {_AGAIN}"),
    "SQLITE_FULL": ("the disk or the file's page limit is full", f"make room, then {_AGAIN}"),
    "SQLITE_READONLY": ("the file or its directory is read-only", "give this user the right to write both"),
    "SQLITE_CANTOPEN": ("the file cannot be opened", "check the path and the rights to its directory"),
    "SQLITE_PERM": ("the file cannot be opened", "check the rights to it and to its directory"),
    "SQLITE_IOERR": ("the disk failed to read or write", f"check the disk, then {_AGAIN}"),
}
_SQLITE_DAMAGE = {
    "SQLITE_CORRUPT": "the ledger file is damaged",
    "SQLITE_NOTADB": "the file is not a ledger",
    "SQLITE_CONSTRAINT": "the tables hold rows that the head does not know",
    "SQLITE_ERROR": "the tables are not those of a ledger",
    "SQLITE_MISMATCH": "the tables are not those of a ledger",
    "SQLITE_SCHEMA": "the tables were changed while the ledger was open",
}
# The first two characters of an SQLSTATE are its class.
_POSTGRES: dict[str, tuple[str, str]] = {
    "53": ("the server has run out of disk, memory or connections", f"make room, then {_AGAIN}"),
    "55P03": ("another client holds the ledger", _AGAIN),
    "57014": ("the server took too long", _AGAIN),
    # A pooler between us and the server hands out one connection to several clients, and their statements with it.
    "26": ("the connection is shared with other clients", "connect to the server itself, or in session mode"),
    "42P05": (
        "the connection is shared with other clients",
        "connect to the server itself, or in session mode",
    ),
    "25006": ("the server is read-only", "connect to the primary server"),
    "0A000": ("the server is a standby, or lacks what a ledger needs", "connect to the primary server"),
    "22P05": ("the database's encoding lacks a character of what is to be stored", "use one made with UTF8"),
    "28": ("the server refused the user or password", "check the address of the ledger"),
    "3D": ("the server has no such database", "check the address of the ledger"),
    "42501": ("the user lacks a right on the tables", "ask the owner of the database"),
}
_CONFIRMING = "pg_logical_emit_message"
_POSTGRES_DAMAGE = {
    "21000": "the tables hold a row twice",
    "23502": "a row that was just read is gone",
    "23": "the tables hold rows that the head does not know",
    "42": "the tables are not those of a ledger",
    "XX001": "the server reports damaged data",
    "XX002": "the server reports a damaged index",
    "P0001": "something tried to change what is append-only",
}


def translated(error: Exception) -> LedgerError:
    """The error of ours for an error of the database, without its text."""
    original = getattr(error, "orig", None) or error
    name = getattr(original, "sqlite_errorname", None)
    if isinstance(name, str):
        return _named(name, "_", _SQLITE, _SQLITE_DAMAGE)
    state = getattr(original, "sqlstate", None)
    if state == "42501" and _CONFIRMING in str(original):  # of the text, nothing but this name is repeated
        return LedgerUnavailable(
            f"the user may not execute {_CONFIRMING}, which confirms that a charge is on disk (42501)",
            "ask the server's administrator for GRANT EXECUTE on it",
        )
    if isinstance(state, str):
        return _named(state, "", _POSTGRES, _POSTGRES_DAMAGE)
    unread = type(original).__module__ == "sqlite3" and type(original).__name__ == "OperationalError"
    if unread or isinstance(original, UnicodeDecodeError):
        # Raised by Python and not by SQLite: a text column, or a message about the schema, does not hold text.
        return LedgerTampered("the ledger file holds text that cannot be read")
    return LedgerUnavailable(f"the connection was lost or refused ({type(original).__name__})")


def _named(code: str, joint: str, known: dict[str, tuple[str, str]], damage: dict[str, str]) -> LedgerError:
    """The entry for `code` or for the longest beginning of it that is listed."""
    for beginning in sorted({*known, *damage}, key=len, reverse=True):
        if code == beginning or code.startswith(beginning + joint):
            if beginning in damage:
                return LedgerTampered(f"{damage[beginning]} ({code})")
            reason, way_out = known[beginning]
            return LedgerUnavailable(f"{reason} ({code})", way_out)
    return LedgerUnavailable(f"the database failed ({code})")


_Read = TypeVar("_Read")
Run = Callable[..., Any]
"""The driver's own `execute`: a statement, then a tuple of parameters; it returns a cursor."""


@dataclass(frozen=True, slots=True)
class Link:
    """A connection: the driver's `run` for every statement, and what closes it."""

    run: Run
    connection: Any
    messages: Any = None  # what sends several statements at once, where that saves journeys
    prepared: set[str] = field(default_factory=set)  # what this connection need not be told again


class Store(ABC):
    """A database that can hold a ledger."""

    begin_writing: str
    begin_reading: str
    list_tables: str
    list_shape: str  # (kind, name, definition) of all that stands on the ledger's tables
    placeholder: str
    name: str

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._process = os.getpid()
        # An RLock knows its owner: after Ctrl-C at an awkward moment the same thread is not locked out forever.
        self._threads = threading.RLock()
        self._inside: int | None = None
        self._closed = False
        self._engine: Any = None
        self._writer: Link | None = None
        self._readers: set[object] = set()  # one for each snapshot that is being read
        self._spoken: dict[str, str] = {}

    @abstractmethod
    def new_engine(self) -> Any:
        """What connects, without a pool, and whose connections do nothing by themselves (AUTOCOMMIT).

        An SQLAlchemy engine, or what has as much of one as is used here.
        """

    @abstractmethod
    def driver_errors(self) -> tuple[type[Exception], ...]:
        """What the driver raises, asked once there is an engine."""

    @abstractmethod
    def create_tables(self, link: Link) -> None:
        """Make the tables of an empty database, inside the transaction that writes the first entry."""

    def link(self, connection: Any) -> Link:
        """The two ways into a connection."""
        return Link(connection.connection.dbapi_connection.execute, connection)

    @abstractmethod
    def prepare(self, run: Run) -> None:
        """Settings of a fresh connection."""

    def acquire(self) -> None:
        """Keep other processes out, where the database cannot do it well by itself."""
        return

    def release(self) -> None:
        """Let the next process in."""
        return

    def lock_making(self, run: Run) -> None:
        """Keep others from making tables until this transaction ends, where `acquire` does not."""
        return

    def connected(self) -> None:
        """Take note of what the connection for writing, made just now, has open."""
        return

    def is_cut_off(self) -> bool:
        """Whether that connection writes where nobody else looks."""
        return False

    def check_place(self) -> None:
        """Refuse a database that is not the one that was opened, where a connection would not notice."""
        return

    def is_own(self, path: Path) -> bool:
        """Whether a path is that of the database or of a file beside it."""
        return False

    def prepare_long_reading(self, run: Run) -> None:
        """Settings of a transaction that reads everything."""
        return

    def integrity(self, run: Run) -> str | None:
        """What is wrong with the database's own structures, such as its indexes; None if nothing is known."""
        return None

    def notes(self, run: Run) -> list[str]:
        """What a curator should know about the database, though it proves nothing about the ledger."""
        return []

    def begin(self, link: Link, question: Question) -> Snapshot | None:
        """Begin a transaction in which nobody else writes, and answer a question in it; None without a head."""
        link.run(self.begin_writing)
        self.check_place()
        return self.snapshot_of(link, question)

    def snapshot_of(self, link: Link, question: Question) -> Snapshot | None:
        """The answer to a question, in whatever transaction there is."""
        return self.with_others(link, question, snapshot_in(link.run(self.sql(ASK), question.parameters).fetchall()))

    def with_others(self, link: Link, question: Question, snapshot: Snapshot | None) -> Snapshot | None:
        """And the accounts of the other datasets, which few questions are about."""
        if snapshot is None or not question.others:
            return snapshot
        rows = {}
        for whose in question.accounts:
            row = link.run(self.sql(ONE_ACCOUNT), whose).fetchone()
            rows[whose] = None if row is None else tuple(row)
        return snapshot._replace(others=rows)

    def finish(self, link: Link, change: Change | None) -> None:
        """Write a change, or nothing, and make the transaction durable; or raise."""
        if change is not None:
            run, sql = link.run, self.sql
            run(sql(APPEND), change.entry)
            statement = sql(OPEN_ACCOUNT if change.new else KEEP_ACCOUNT)
            done = [run(statement, account) for account in change.accounts]
            if change.answer is not None:
                run(sql(STORE_ANSWER), (change.entry.sequence, change.answer))
            done.append(run(sql(MOVE_HEAD), change.head_move))
            if any(cursor.rowcount != 1 for cursor in done):
                raise LedgerTampered("a row that was just read is gone")
        self.commit(link.run)

    def confirm(self, link: Link) -> None:
        """Wait until all that was seen is durable, where others' changes can be seen before they are."""
        return

    def confirm_snapshot(self) -> None:
        """The same for what a snapshot, taken just now, will see."""
        return

    def commit(self, run: Run) -> None:
        """Make the transaction durable, or raise."""
        run("COMMIT")

    def undo(self, link: Link, problem: BaseException) -> None:
        """End a transaction that went wrong, so that the next one does not find it half done."""
        try:
            link.run("ROLLBACK")
        except BaseException:
            self._discard()

    def sql(self, statement: str) -> str:
        """A statement with `?` for parameters, in the driver's spelling."""
        spoken = self._spoken.get(statement)
        if spoken is None:
            spoken = self._spoken[statement] = statement.replace("?", self.placeholder)
        return spoken

    def change(
        self,
        question: Question,
        decide: Callable[[Snapshot | None], Change | None],
        then: Callable[[Change | None], None],
    ) -> None:
        """One transaction: ask, decide, write what was decided. It is durable on return, or never happened.

        `then` is called once it is durable; on a file, before the next writer is let in.
        """
        with self._alone():
            try:
                self.acquire()
                link = self._linked()
                try:
                    change = decide(self.begin(link, question))
                    self.finish(link, change)
                except BaseException as problem:
                    self.undo(link, problem)
                    raise
                if change is not None:
                    self._check_log()
                then(change)
            finally:
                self.release()

    @contextmanager
    def writing(self) -> Iterator[Link]:
        """A connection inside a transaction that is durable when the block has ended, or never happened."""
        with self._alone():
            try:
                self.acquire()
                with self._transaction(self.begin_writing) as link:
                    yield link
                self._check_log()
            finally:
                self.release()

    def ask(self, question: Question, read: Callable[[Snapshot | None], _Read]) -> _Read:
        """What `read` makes of the answer to a question: one statement, so one state of everything.

        Other threads wait until it is read: what they write next would make this state look like an old one.
        """
        with self._alone():
            link = self._linked()
            self.check_place()
            try:
                snapshot = self.snapshot_of(link, question)
                self.confirm(link)
            except BaseException as problem:
                self.undo(link, problem)
                raise
            return read(snapshot)

    @contextmanager
    def reading(self) -> Iterator[Link]:
        """The same connection inside a transaction that only reads: for a few rows."""
        with self._alone(), self._transaction(self.begin_reading) as link:
            yield link

    @contextmanager
    def snapshot(self) -> Iterator[Link]:
        """A connection of its own that sees one state of everything for as long as it takes."""
        self._check_process()
        reader = object()
        self._readers.add(reader)
        try:
            link = self._connect()
            try:
                with self._translating():
                    link.run(self.begin_reading)
                    self.prepare_long_reading(link.run)
                    self.confirm_snapshot()
                    yield link
            finally:
                with suppress(Exception):
                    link.run("ROLLBACK")
                with suppress(Exception):
                    link.connection.close()
        finally:
            self._readers.discard(reader)

    def close(self) -> None:
        """Close the connection for good."""
        if not self._closed:
            self._check_process()
            with self._threads:
                self._closed = True
                self._discard()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time; errors of the database come out as errors of ours, without their text."""
        self._check_process()
        threads, me = self._threads, threading.get_ident()
        if self._inside == me:
            # A signal handler that charges in the middle of a charge: its COMMIT would end the other's transaction.
            raise LedgerUnavailable("this thread is in the middle of using it", "charge when that is done")
        try:
            if not threads.acquire(timeout=self.timeout):
                raise LedgerUnavailable(f"another thread has held the ledger for {self.timeout:g} s")
            self._inside = me
            yield
        except self._driver_errors() as error:
            raise translated(error) from None
        finally:
            if self._inside == me:
                self._inside = None
            try:  # noqa: SIM105 - a signal that arrives while `suppress` is called would leave the lock held forever
                threads.release()
            except RuntimeError:  # it was never had
                pass

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Link]:
        link = self._linked()
        try:
            link.run(begin)
            self.check_place()
            yield link
            self.commit(link.run)
            self.confirm(link)
        except BaseException as problem:
            self.undo(link, problem)
            raise

    def _linked(self) -> Link:
        """The connection for writing and short reading, made again if there is none or it is cut off."""
        if self.is_cut_off():
            self._discard()
        link = self._writer
        if link is None:
            link = self._writer = self._connect()
            self.connected()
        return link

    def _check_log(self) -> None:
        """What was committed just now must be where others look."""
        if self.is_cut_off():
            self._discard()
            raise LedgerUnavailable("what was written may be lost, because its log was removed")

    def _connect(self) -> Link:
        if self._engine is None:
            self._engine = self.new_engine()
        with self._translating():
            connection = self._engine.connect()
            try:
                link = self.link(connection)
                self.prepare(link.run)
            except BaseException:
                with suppress(Exception):
                    connection.close()
                raise
        return link

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Errors of the database as errors of ours, without their text."""
        try:
            yield
        except self._driver_errors() as error:
            raise translated(error) from None

    def _driver_errors(self) -> tuple[type[Exception], ...]:
        return () if self._engine is None else self.driver_errors()

    def _discard(self) -> None:
        link, self._writer = self._writer, None
        if link is not None:
            with suppress(Exception):
                link.connection.invalidate()
            with suppress(Exception):
                link.connection.close()

    def _check_process(self) -> None:
        if self._closed:
            raise LedgerUnavailable("it was closed", "open it again with open_ledger")
        if os.getpid() == self._process:
            return
        # In a child: the parent's connections must neither be used nor closed here, so they are leaked on purpose.
        if self._writer is not None:
            _leak(self._writer.connection)
            _leak(self._writer.connection.connection.dbapi_connection)
        self._process = os.getpid()
        self._threads = threading.RLock()
        self._inside = None
        self._engine = None
        self._writer = None
        self._readers = set()
        self.after_fork()

    def after_fork(self) -> None:
        """Forget what else belongs to the parent."""
        return


def _leak(thing: object) -> None:
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))

"""A ledger in a file: SQLite with a write-ahead log, synced to disk before a transaction counts as done.

Writers take turns by a lock on a file beside it, so that a process that dies leaves no lock behind.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import weakref
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from farthing.errors import LedgerUnavailable
from farthing.ledger.ledger_store import Link, Run, Store
from farthing.ledger.ledger_tables import SQLITE_GUARDS, TABLES, tables

# Where SQLite keeps the locks of all who have the file open, and how many bytes.
_SHARED = (
    0x40000000 + 2,
    510,
)


class FileGuard:
    """A lock next to SQLite's own SHARED lock on `path`. A seat belt: where it cannot be had, nothing is said."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def hold(self) -> None:
        """Nobody may remove the log from now on."""
        with suppress(OSError):
            if self._handle is None:
                self._handle = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            self._set(fcntl.F_RDLCK)

    def let_go(self) -> None:
        with suppress(OSError):
            self._set(fcntl.F_UNLCK)

    def close(self) -> None:
        """Close the file; only when SQLite has closed it, or it would lose its locks."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def __del__(self) -> None:
        with suppress(OSError):
            self.close()

    def _set(self, kind: int) -> None:
        command = getattr(fcntl, "F_OFD_SETLK", None)
        if command is not None and self._handle is not None:
            fcntl.fcntl(self._handle, command, struct.pack("hhqqi4x", kind, os.SEEK_SET, *_SHARED, 0))


_OPEN: weakref.WeakSet[FileLock] = weakref.WeakSet()


class FileLock:
    """An exclusive lock on `path`; not reentrant, and used under the thread lock of its store.

    SQLite's own waiting polls with sleeps; a file lock wakes the next writer when the last one is done, in the order in
    which they came, and the kernel gives it back when its owner dies. The lock is on a file of its own beside the
    ledger: SQLite keeps POSIX locks on the ledger itself, which a process loses when it closes any handle on that file.
    """

    def __init__(self, path: Path, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._file: int | None = None
        self._waiter: _Waiter | None = None
        _forget_in_children()
        _OPEN.add(self)

    def acquire(self) -> None:
        """Wait for the lock, at most `timeout` seconds."""
        handle = self._handle()
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait(handle)

    def release(self) -> None:
        """Give the lock back; the next waiter wakes."""
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Forget the file; a lock that is held is given back by the kernel."""
        handle, self._file = self._file, None
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.retire()
        if handle is not None:
            os.close(handle)

    def _handle(self) -> int:
        if self._file is None:
            try:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise LedgerUnavailable(
                    f"the lock file beside it cannot be opened ({type(error).__name__})",
                    "give this user the right to write the directory",
                ) from None
        return self._file

    def _wait(self, handle: int) -> None:
        """Block in a thread: flock has no timeout, and a thread that comes too late can be left behind."""
        waiter = self._waiter
        if waiter is None:
            waiter = self._waiter = _Waiter(handle)
            weakref.finalize(self, waiter.retire)
            waiter.start()
        try:
            arrived = waiter.wait(self._timeout)
        except BaseException:  # Ctrl-C while waiting: leave no lock behind
            if self._abandoned(waiter):
                raise
            self.release()
            raise
        if not arrived and self._abandoned(waiter):
            raise LedgerUnavailable(
                f"another process has held the ledger for {self._timeout:g} s",
                "retry with the same request id",
            )
        if waiter.problem is not None:
            kind = type(waiter.problem).__name__
            self.close()
            raise LedgerUnavailable(f"the lock file failed ({kind})")

    def _abandoned(self, waiter: _Waiter) -> bool:
        """Leave a waiter behind with the file handle it waits on; False if it had the lock after all."""
        if not waiter.abandon():
            return False
        self._file = self._waiter = None  # the waiter closes the file, which gives the lock back
        return True


class _Waiter(threading.Thread):
    """Waits for the lock whenever it is told to. It stays, because starting a thread costs more than a charge.

    If it is abandoned while it waits, it closes the handle as soon as it has the lock, and ends.
    """

    def __init__(self, handle: int) -> None:
        super().__init__(daemon=True, name="farthing-ledger-lock")
        self._handle = handle
        self._go = threading.Lock()
        self._done = threading.Lock()
        self._go.acquire()
        self._done.acquire()
        self._state = threading.Lock()
        self._granted = False
        self._abandoned = False
        self._retired = False
        self.problem: OSError | None = None

    def wait(self, timeout: float) -> bool:
        """Whether the lock was had in time."""
        self._granted = False
        self._go.release()
        return self._done.acquire(timeout=timeout)

    def abandon(self) -> bool:
        """Leave it with the handle; False if it was done already, so that the lock is the caller's."""
        with self._state:
            if self._granted:
                self._done.acquire(blocking=False)
                return False
            self._abandoned = True
        self._wake()  # in case it was never told to begin
        return True

    def retire(self) -> None:
        """End the thread, which is not waiting; its handle stays the caller's."""
        self._retired = True
        self._wake()

    def run(self) -> None:
        while True:
            self._go.acquire()
            if self._retired:
                return
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX)
            except OSError as error:
                self.problem = error
            with self._state:
                if self._abandoned:
                    # A child forked meanwhile may have the handle too: closing ours would not give the lock back.
                    fcntl.flock(self._handle, fcntl.LOCK_UN)
                    os.close(self._handle)
                    return
                self._granted = True
                self._done.release()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # it is awake
            self._go.release()


@cache
def _forget_in_children() -> None:
    """Once, and not on import. A child that kept its parent's handle would keep the lock when the parent is killed."""
    os.register_at_fork(after_in_child=_close_all)


def _close_all() -> None:
    for lock in list(_OPEN):
        lock.close()


_stores: weakref.WeakSet[SQLiteStore] = weakref.WeakSet()
_paused: list[SQLiteStore] = []
_inherited: set[Path] = set()


def watch(store: SQLiteStore) -> None:
    """Close the connections of this store before every fork from now on."""
    _stores.add(store)
    _register()


def is_inherited(path: Path) -> bool:
    """Whether this process was forked while its parent had the file open."""
    return path in _inherited


@cache
def _register() -> None:
    """Once, and not on import."""
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


def _before() -> None:
    for store in list(_stores):
        if store.pause():
            _paused.append(store)


def _in_parent() -> None:
    while _paused:
        _paused.pop().go_on()


def _in_child() -> None:
    _inherited.update(store.path for store in list(_stores) if store.is_connected)
    _in_parent()


class FileEngine:
    """Opens the file of a store, as an SQLAlchemy engine would; that takes longer to import than a plan to make."""

    def __init__(self, store: SQLiteStore) -> None:
        self._store = store

    def connect(self) -> FileConnection:
        """A new connection, in which transactions begin and end by hand."""
        import sqlite3

        store = self._store
        if is_inherited(store.path):
            raise LedgerUnavailable(
                "this process was forked while another thread had the ledger open",
                'start processes with the method "spawn"',
            )
        store.check_place()
        return FileConnection(
            sqlite3.connect(
                store.path.as_uri() + "?mode=rw",
                uri=True,
                timeout=store.timeout,
                isolation_level=None,
                check_same_thread=False,
            )
        )


class FileConnection:
    """A connection of SQLite where its user looks for it in one of SQLAlchemy."""

    def __init__(self, dbapi_connection: Any) -> None:
        self.dbapi_connection = dbapi_connection

    @property
    def connection(self) -> FileConnection:
        """What has the driver's connection."""
        return self

    def invalidate(self) -> None:
        """Close it, whatever state it is in."""
        self.close()

    def close(self) -> None:
        self.dbapi_connection.close()


# How long the log gets before it is brought into the file, which takes milliseconds and somebody has to wait for it:
# a few hundred charges fit into it, so that fewer than one charge in a hundred waits.
_LOG_PAGES = 2500
_ENDINGS = ("", "-wal", "-shm", "-journal", ".key", ".witness", ".lock")


class SQLiteStore(Store):
    """The ledger `path`, with `<path>.lock` beside it."""

    begin_writing = "BEGIN IMMEDIATE"
    begin_reading = "BEGIN"
    list_tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    list_shape = (
        "SELECT type, name, sql FROM sqlite_master WHERE tbl_name LIKE 'farthing\\_%' ESCAPE '\\' "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    )
    placeholder = "?"

    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__(timeout)
        # Resolved: a later change of directory, or another name for the file, must not make another ledger of it.
        self.path = Path(os.path.realpath(path))
        self.name = str(path)
        self._lock = FileLock(self.beside(".lock"), timeout)
        self._place, self._log_place = os.fspath(self.path), os.fspath(self.beside("-wal"))
        self._file: tuple[int, int] | None = None
        self._log: tuple[int, int] | None = None
        self._guard = FileGuard(self.path)
        watch(self)

    def beside(self, ending: str) -> Path:
        """The file of that ending next to the ledger."""
        return self.path.with_name(self.path.name + ending)

    def is_own(self, path: Path) -> bool:
        """The file, its log, and what farthing keeps beside it."""
        return Path(os.path.realpath(path)) in {self.beside(ending) for ending in _ENDINGS}

    def new_engine(self) -> FileEngine:
        """An engine that opens the file and never makes one; making is `open_ledger`'s decision."""
        return FileEngine(self)

    def driver_errors(self) -> tuple[type[Exception], ...]:
        import sqlite3

        # SQLite quotes a damaged schema in its message, and Python fails to read that as text.
        return (sqlite3.Error, UnicodeDecodeError)

    def create_tables(self, link: Link) -> None:
        import sqlalchemy as sa

        words: Any = sa.create_mock_engine(
            "sqlite://", lambda made, *_: link.run(str(made.compile(dialect=words.dialect)))
        )
        tables().create_all(words, checkfirst=False)
        for statement in SQLITE_GUARDS:
            link.run(statement)

    def prepare(self, run: Run) -> None:
        """A write-ahead log, synced at every commit."""
        if run("PRAGMA journal_mode").fetchone()[0] != "wal":
            present = {name for (name,) in run(self.list_tables).fetchall()}
            if present and not present & set(TABLES):  # the log would change a file that is not ours
                raise LedgerUnavailable(f"{self.name} is a database of something else", "choose another path")
            self._begin_log(run)
        run("PRAGMA synchronous=FULL")
        run(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
        run("PRAGMA trusted_schema=OFF")
        run("SELECT COUNT(*) FROM sqlite_master").fetchone()  # which opens the log

    def _begin_log(self, run: Run) -> None:
        if run("PRAGMA journal_mode=WAL").fetchone()[0] != "wal":
            raise LedgerUnavailable(
                "the file's directory does not allow a write-ahead log",
                "use a local disk that can be written",
            )

    def check_place(self) -> None:
        """The file that was opened must still be the one of that name, and have no other name.

        SQLite goes on with a file that was moved away, and what is charged there is in no ledger. Under another name
        it would look for another write-ahead log, and not see what is in this one.
        """
        try:
            status = os.stat(self._place)
        except OSError as error:
            raise LedgerUnavailable(
                f"its file is gone or cannot be reached ({type(error).__name__})", "put it back"
            ) from None
        if self._file is None:
            self._file = status.st_dev, status.st_ino
        if self._file != (status.st_dev, status.st_ino):
            raise LedgerUnavailable(
                "another file was put in its place while it was open", "open it again, which verifies it"
            )
        if status.st_nlink > 1:
            raise LedgerUnavailable("its file has a second name (a hard link)", "remove one of the two")

    def connected(self) -> None:
        """Remember which write-ahead log the connection has open, and keep others from removing it."""
        self._guard.hold()
        self._log = self._log_now()

    def is_cut_off(self) -> bool:
        """Whether the log is gone or another: what is written to it from there on would be lost."""
        if self._log is None:  # before the first transaction of a new file there is no log
            self._log = self._log_now()
        return self._writer is not None and self._log_now() != self._log

    def _log_now(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self._log_place)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def acquire(self) -> None:
        """Wait for the lock beside the file."""
        self._lock.acquire()

    def release(self) -> None:
        self._lock.release()

    def integrity(self, run: Run) -> str | None:
        """SQLite's own check, which also compares every index with its table."""
        (verdict,) = run("PRAGMA integrity_check(1)").fetchone()
        return None if verdict == "ok" else "the ledger file is damaged (integrity_check)"

    def close(self) -> None:
        """Close the connection and the files beside it."""
        if not self._closed:
            super().close()
            self._lock.close()
            if not self._readers:
                self._guard.close()

    def _discard(self) -> None:
        # The last one to close brings its log into the file and removes it. If another log is in its place, that would
        # be the log of others, so the guard stays. If none is, this one was removed, and all of it must come in.
        if self._log_now() in (None, self._log):
            self._guard.let_go()
        super()._discard()
        self._log = None

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection to the file, of this process or of the one that it was forked from."""
        return self._writer is not None or bool(self._readers)

    def pause(self) -> bool:
        """Close the connection and keep other threads from opening it again; False if they are in the middle."""
        if self._process != os.getpid() or self._inside == threading.get_ident():
            return False
        if not self._threads.acquire(timeout=self.timeout):
            return False
        self._discard()
        return True

    def go_on(self) -> None:
        """Let threads in again after `pause`."""
        self._threads.release()

    def after_fork(self) -> None:
        """A lock of the child's own."""
        self._lock = FileLock(self.beside(".lock"), self.timeout)
        self._guard.close()
        self._log = None

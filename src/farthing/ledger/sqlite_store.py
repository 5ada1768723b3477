"""A ledger in a file: SQLite with a write-ahead log, synced to disk before a transaction counts as done."""

from __future__ import annotations

import os
import threading
import weakref
from functools import cache
from pathlib import Path
from typing import Any

from farthing.errors import LedgerUnavailable
from farthing.ledger.file_lock import FileGuard, FileLock
from farthing.ledger.ledger_store import Run, Store
from farthing.ledger.ledger_tables import TABLES

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


# How long the log gets before it is brought into the file, which takes milliseconds and somebody has to wait for it:
# a few hundred charges fit into it, so that fewer than one charge in a hundred waits.
_LOG_PAGES = 2500
_ENDINGS = ("", "-wal", "-shm", "-journal", ".key", ".witness", ".lock")


class SQLiteStore(Store):
    """The ledger `path`, with `<path>.lock` beside it."""

    begin_writing = "BEGIN IMMEDIATE"
    begin_reading = "BEGIN"
    list_tables = (
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    )
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

    def new_engine(self) -> Any:
        """An engine that opens the file and never makes one; making is `open_ledger`'s decision."""
        import sqlite3

        import sqlalchemy as sa
        from sqlalchemy.pool import NullPool

        address = self.path.as_uri() + "?mode=rw"

        def connect() -> sqlite3.Connection:
            if is_inherited(self.path):
                raise LedgerUnavailable(
                    "this process was forked while another thread had the ledger open",
                    'start processes with the method "spawn"',
                )
            self.check_place()
            return sqlite3.connect(
                address, uri=True, timeout=self.timeout, isolation_level=None, check_same_thread=False
            )

        return sa.create_engine(
            "sqlite://",
            creator=connect,
            poolclass=NullPool,
            pool_reset_on_return=None,  # transactions end by hand, and a failed reset would log the driver's text
            isolation_level="AUTOCOMMIT",
            hide_parameters=True,
        )

    def prepare(self, run: Run) -> None:
        """A write-ahead log, synced at every commit."""
        if run("PRAGMA journal_mode").fetchone()[0] != "wal":
            tables = {name for (name,) in run(self.list_tables).fetchall()}
            if tables and not tables & set(TABLES):  # the log would change a file that is not ours
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
            found = os.stat(self._place)
        except OSError as error:
            raise LedgerUnavailable(
                f"its file is gone or cannot be reached ({type(error).__name__})", "put it back"
            ) from None
        if self._file is None:
            self._file = found.st_dev, found.st_ino
        if self._file != (found.st_dev, found.st_ino):
            raise LedgerUnavailable(
                "another file was put in its place while it was open", "open it again, which verifies it"
            )
        if found.st_nlink > 1:
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
            found = os.stat(self._log_place)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def acquire(self) -> None:
        """Wait for the lock beside the file."""
        self._lock.acquire()

    def release(self) -> None:
        """Wake the next writer."""
        self._lock.release()

    def integrity(self, run: Run) -> str | None:
        """SQLite's own check, which also compares every index with its table."""
        (found,) = run("PRAGMA integrity_check(1)").fetchone()
        return None if found == "ok" else "the ledger file is damaged (integrity_check)"

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

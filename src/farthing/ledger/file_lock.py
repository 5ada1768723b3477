"""One writer at a time among all processes of a machine, woken at once and never waiting for ever.

SQLite's own waiting polls with sleeps; a file lock wakes the next writer when the last one is done, and the kernel
gives it back when its owner dies. The lock is on a file of its own beside the ledger: SQLite keeps POSIX locks on
the ledger itself, which a process loses when it closes any handle on that file.
"""

from __future__ import annotations

import fcntl
import os
import threading
import weakref
from functools import cache
from pathlib import Path

from farthing.errors import LedgerUnavailable

_OPEN: weakref.WeakSet[FileLock] = weakref.WeakSet()


class FileLock:
    """An exclusive lock on `path`; not reentrant, and used under the thread lock of its store."""

    def __init__(self, path: Path, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._file: int | None = None
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
        waiter = _Waiter(handle)
        waiter.start()
        try:
            arrived = waiter.done.wait(self._timeout)
        except BaseException:  # Ctrl-C while waiting: leave no lock behind
            if self._abandon(waiter):
                self.release()
            raise
        if not arrived and not self._abandon(waiter):
            raise LedgerUnavailable(
                f"another process has held the ledger for {self._timeout:g} s",
                "retry with the same request id",
            )
        if waiter.problem is not None:
            raise LedgerUnavailable(f"the lock file failed ({type(waiter.problem).__name__})")

    def _abandon(self, waiter: _Waiter) -> bool:
        """Leave a waiter behind with the file handle it waits on; True if it had the lock after all."""
        with waiter.lock:
            if waiter.done.is_set() and waiter.problem is None:
                return True
            waiter.abandoned = True
        self._file = None  # the waiter closes it, which gives the lock back
        return False


class _Waiter(threading.Thread):
    """Waits for one lock. If it is abandoned it closes the handle as soon as it can."""

    def __init__(self, handle: int) -> None:
        super().__init__(daemon=True, name="farthing-ledger-lock")
        self._handle = handle
        self.done = threading.Event()
        self.lock = threading.Lock()
        self.abandoned = False
        self.problem: OSError | None = None

    def run(self) -> None:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX)
        except OSError as error:
            self.problem = error
        with self.lock:
            self.done.set()
            if self.abandoned:
                os.close(self._handle)


@cache
def _forget_in_children() -> None:
    """Once, and not on import. A child that kept its parent's handle would keep the lock when the parent is killed."""
    os.register_at_fork(after_in_child=_close_all)


def _close_all() -> None:
    for lock in list(_OPEN):
        lock.close()

"""One writer at a time among all processes of a machine, woken at once and never waiting for ever.

SQLite's own waiting polls with sleeps; a file lock wakes the next writer when the last one is done, in the order in
which they came, and the kernel gives it back when its owner dies. The lock is on a file of its own beside the ledger:
SQLite keeps POSIX locks on the ledger itself, which a process loses when it closes any handle on that file.
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

from farthing.errors import LedgerUnavailable

_SHARED = (
    0x40000000 + 2,
    510,
)  # where SQLite keeps the locks of all who have the file open, and how many bytes


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
        """Whoever is last may."""
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
    """An exclusive lock on `path`; not reentrant, and used under the thread lock of its store."""

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

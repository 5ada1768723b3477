"""Keeps others from taking an SQLite file for unused while a connection is open.

Whoever closes a file that the process has open twice loses SQLite's locks on it: a backup that reads the ledger is
enough. The next process to close the ledger then takes itself for the last one and removes the log that this one goes
on writing to. A lock that belongs to a handle, and not to the process, survives that (Linux has them).
"""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import suppress
from pathlib import Path

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

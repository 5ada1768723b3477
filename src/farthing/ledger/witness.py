"""The last entry seen, noted beside the ledger: a ledger put back to an older state no longer contains it.

The note is written after every commit without waiting for the disk, so after a power cut it may be old or unreadable;
it is a lower bound and never more. Whoever can write the ledger's directory can remove it: receipts kept elsewhere are
the stronger witness.
"""

from __future__ import annotations

import hmac
import os
import re
from contextlib import suppress
from pathlib import Path

from farthing.ledger.chain import Chain

_LINE = re.compile(rb"([0-9]{20}) ([0-9a-f]{64}) ([0-9a-f]{64})\n")
_LENGTH = 20 + 1 + 64 + 1 + 64 + 1


class Witness:
    """The note in `path`; always one line of the same length, so that a write replaces it whole."""

    def __init__(self, path: Path | None) -> None:
        self._path = None if path is None else os.fspath(path)
        self._handle: int | None = None
        self._process = os.getpid()

    def read(self, chain: Chain, known: tuple[int, str, str] | None = None) -> tuple[int, str] | None:
        """The (sequence, mark) that was seen last, or None if there is no note that can be believed.

        None as well if the note is the very one of the head `known`: there is nothing to compare then.
        """
        found = self._content()
        line = None if found is None or (known and found == _line(known)) else _LINE.fullmatch(found)
        if line is None:
            return None
        sequence, mac, seal = int(line[1]), line[2].decode(), line[3].decode()
        return (sequence, mac) if hmac.compare_digest(seal, chain.head(sequence, mac)) else None

    def _content(self) -> bytes | None:
        if self._path is None:
            return None
        try:
            # By its name: others write what stands there now.
            handle = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                # Whatever follows the line is not ours, and must not make it unreadable for ever.
                return os.read(handle, _LENGTH)
            finally:
                os.close(handle)
        except OSError:
            return None

    @property
    def exists(self) -> bool:
        """Whether there is a note at all, readable or not."""
        return self._path is not None and os.path.exists(self._path)

    @property
    def place(self) -> str:
        """Where the note is, for messages."""
        return str(self._path)

    def note(self, head: tuple[int, str, str]) -> None:
        """Note a head that is durable. Best effort: the charge stands whether or not the note can be written."""
        if self._path is None:
            return
        with suppress(OSError):
            os.pwrite(self._open(), _line(head), 0)

    def note_place(self, place: str) -> None:
        """Write below the note where the ledger is, unless it is there already; best effort as well."""
        if self._path is None:
            return
        with suppress(OSError):
            handle = self._open()
            if not os.pread(handle, 1, _LENGTH):
                os.pwrite(handle, f"{place}\n".encode(), _LENGTH)

    def close(self) -> None:
        """Close the file."""
        handle, self._handle = self._handle, None
        if handle is not None and self._process == os.getpid():
            os.close(handle)

    def _open(self) -> int:
        assert self._path is not None
        if self._handle is None or self._process != os.getpid():
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._process = os.getpid()
        return self._handle


def witness_of(place: str, folder: Path) -> Path | None:
    """The witness in a folder that has seen a ledger at this place, if there is one."""
    with suppress(OSError):
        for path in sorted(folder.glob("*.witness")):
            if path.read_bytes()[_LENGTH:] == f"{place}\n".encode():
                return path
    return None


def _line(head: tuple[int, str, str]) -> bytes:
    """A head (sequence, mark, seal) as a line; the seal is the one that the head row carries."""
    return b"%020d %s %s\n" % (head[0], head[1].encode(), head[2].encode())

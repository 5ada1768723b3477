"""The key that signs a ledger: 32 random bytes in a file that only its owner may read.

Whoever has the key can forge entries; whoever lacks it cannot open the ledger. Keep a copy apart from the ledger.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import stat
import string
from contextlib import suppress
from pathlib import Path

from farthing.errors import InvalidValue, LedgerUnavailable
from farthing.ledger.hash_chain import Chain

_LINE = re.compile(rb"([0-9]{20}) ([0-9a-f]{64}) ([0-9a-f]{64})\n")
_WITNESS_LENGTH = 20 + 1 + 64 + 1 + 64 + 1


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
                return os.read(handle, _WITNESS_LENGTH)
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
            if not os.pread(handle, 1, _WITNESS_LENGTH):
                os.pwrite(handle, f"{place}\n".encode(), _WITNESS_LENGTH)

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
            if path.read_bytes()[_WITNESS_LENGTH:] == f"{place}\n".encode():
                return path
    return None


def _line(head: tuple[int, str, str]) -> bytes:
    """A head (sequence, mark, seal) as a line; the seal is the one that the head row carries."""
    return b"%020d %s %s\n" % (head[0], head[1].encode(), head[2].encode())


KEY_FILE_VARIABLE = "FARTHING_LEDGER_KEY_FILE"
_LENGTH = 32
Key = str | os.PathLike[str] | bytes | None


def given_key(key: Key) -> bytes | Path | None:
    """The argument `key`: bytes as they are, a path as a path, nothing as nothing."""
    if key is None:
        return None
    if isinstance(key, bytes):
        if len(key) < _LENGTH:
            # The key itself is in no message.
            raise InvalidValue("len(key)", len(key), f"must be at least {_LENGTH} bytes")
        return key
    if isinstance(key, str) and len(key) >= 2 * _LENGTH and set(key) <= set(string.hexdigits):
        # As a path it would be shown in messages.
        raise InvalidValue("len(key)", len(key), "must be a path or bytes", "use bytes.fromhex for a key")
    if isinstance(key, str | os.PathLike) and os.fspath(key):
        return Path(os.fspath(key))
    raise InvalidValue("type(key)", type(key).__name__, "must be bytes or the path of a key file")


def default_key_file(ledger: str) -> Path:
    """Where the key of a ledger on a server is kept by default."""
    named = os.environ.get(KEY_FILE_VARIABLE)
    if named:
        return Path(named)
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(config) / "farthing" / f"{ledger}.key"


def read_key(path: Path) -> bytes | None:
    """The key in a file; None if there is no such file."""
    try:
        text = path.read_text(encoding="ascii").strip()
        key = bytes.fromhex(text)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise LedgerUnavailable(
            f"the key file {path} cannot be read ({type(error).__name__})", "restore it from your copy"
        ) from None
    if len(key) < _LENGTH:
        raise LedgerUnavailable(f"the key file {path} is too short", "restore it from your copy")
    return key


def notes_on_key(path: Path) -> tuple[str, ...]:
    """Whether others on this machine can read a key, and so forge entries."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return ()
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        return (f"the key file {path} is open to every user of this machine; chmod 600 closes it",)
    return ()


def made_key(path: Path) -> bytes:
    """The key in a file, made with fresh random bytes if there is none. Of several makers at once, one wins."""
    found = read_key(path)
    if found is not None:
        return found
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, secrets.token_hex(_LENGTH).encode() + b"\n")
            os.fsync(handle)
        finally:
            os.close(handle)
        try:
            os.link(draft, path)  # unlike a rename, this never replaces a key
        except FileExistsError:
            pass
        finally:
            os.unlink(draft)
        sync_directory(path.parent)
    except OSError as error:
        raise LedgerUnavailable(
            f"the key file {path} cannot be made ({type(error).__name__})",
            "give this user the right to write its directory",
        ) from None
    key = read_key(path)
    assert key is not None
    return key


def needed_key(path: Path) -> bytes:
    """The key of a ledger that exists; without it nothing can be verified."""
    key = read_key(path)
    if key is None:
        raise LedgerUnavailable(
            f"its key file {path} is missing",
            f"restore it from your copy, or name it with key= or ${KEY_FILE_VARIABLE}",
        )
    return key


def sync_directory(path: Path) -> None:
    """Make new names in a directory survive a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

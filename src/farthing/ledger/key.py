"""The key that signs a ledger: 32 random bytes in a file that only its owner may read.

Whoever has the key can forge entries; whoever lacks it cannot open the ledger. Keep a copy apart from the ledger.
"""

from __future__ import annotations

import os
import secrets
import stat
import string
from pathlib import Path

from farthing.errors import InvalidValue, LedgerUnavailable

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

"""What makes an edit visible: the signing key, the chain of signatures, and the witness beside the ledger.

Every entry is signed together with the signature of the entry before it. All signatures are HMAC-SHA256 under the
ledger's key, as 64 hexadecimal digits. Each kind of signature starts its message with a word of its own and the
ledger's identity, so that a signature of one kind or of another ledger fits nowhere else. The key is 32 random bytes in
a file that only its owner may read: anybody who has it can forge entries; without it nobody can open the ledger. Keep a
copy apart from the ledger.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
import string
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from farthing.errors import InvalidValue, LedgerUnavailable

GENESIS = "0" * 64  # what is before the first entry
_BLOCK = 64  # bytes that SHA-256 takes in at a time
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


def canonical(value: object) -> str:
    """`value` as JSON in the one spelling that gets signed; NaN and infinities are refused.

    >>> canonical({"b": 1, "a": [2, None]})
    '{"a":[2,null],"b":1}'
    """
    return _CANONICAL(value)


def fingerprint(text: str) -> str:
    """A short public digest of a text, for comparing states; not a secret and not a signature.

    >>> fingerprint("one")[:8]
    '7692c3ad'
    """
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Chain:
    """Signs for one ledger. The key never shows in its repr.

    >>> chain = Chain(bytes(32), "a-ledger")
    >>> chain.head(7, "ab") == chain.head(8, "ab")
    False
    >>> Chain(bytes(32), "other").head(7, "ab") == chain.head(7, "ab")
    False
    """

    key: bytes = field(repr=False)
    ledger: str
    _begun: dict[str, Any] = field(init=False, repr=False, compare=False)
    _outer: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # HMAC (RFC 2104) with what is the same for every signature of a kind hashed once: the key, the kind, the
        # ledger.
        key = self.key if len(self.key) <= _BLOCK else hashlib.sha256(self.key).digest()
        inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key.ljust(_BLOCK, b"\0")))
        outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in key.ljust(_BLOCK, b"\0")))
        begun = {}
        for kind in ("entry", "head", "account", "answer", "source", "table", "seal", "publication"):
            begun[kind] = inner.copy()
            begun[kind].update(_spelled((kind, self.ledger)))
        object.__setattr__(self, "_begun", begun)
        object.__setattr__(self, "_outer", outer)

    def entry(self, fields: tuple[object, ...]) -> str:
        """The signature of an entry with these fields, the last of which is the signature of the entry before it."""
        return self._signature("entry", _spelled_entry(fields))

    def head(self, sequence: int, mac: str) -> str:
        """The signature of the head: which entry is the last one. The witness beside the ledger carries it too."""
        return self._signature("head", _spelled((sequence, mac)))

    def account(self, dataset: str, analyst: str, sequence: int, state: str) -> str:
        """The signature of a row of accounts, last changed by entry `sequence`."""
        return self._signature("account", _spelled((dataset, analyst, sequence, state)))

    def answer(self, request_id: str, text: str) -> str:
        """The signature of a stored answer, which its entry repeats."""
        return self._signature("answer", _spelled((request_id, text)))

    def source(self, identity: str) -> str:
        """The signature of a table's identity, such as the path of a file: it says nothing to who lacks the key."""
        return self._signature("source", _spelled((identity,)))[:32]

    def table(self, request_id: str, fingerprint: str) -> str:
        """The signature of what a table held when a request was charged; those of two requests cannot be compared."""
        return self._signature("table", _spelled((request_id, fingerprint)))

    def publication_seed(self) -> bytes:
        """The 32 bytes from which the key for publications is derived: see `publication_key`.

        >>> len(Chain(bytes(32), "a-ledger").publication_seed())
        32
        """
        return bytes.fromhex(self._signature("publication", _spelled(("Ed25519",))))

    def sealed(self, data: bytes) -> str:
        """Data that says nothing but its length to who lacks the key: a stream cipher under a fresh number.

        The stream is SHAKE-256 of a key that HMAC makes of the ledger's key and the number, which is drawn anew for
        every seal. An entry that holds it is signed, so nobody can change it unseen.

        >>> chain = Chain(bytes(32), "a-ledger")
        >>> chain.opened(chain.sealed(b"secret")), chain.sealed(b"secret") == chain.sealed(b"secret")
        (b'secret', False)
        """
        number = secrets.token_bytes(16)
        return base64.b64encode(number + self._streamed(number, data)).decode()

    def opened(self, text: str) -> bytes:
        """The data that `sealed` made this text of."""
        whole = base64.b64decode(text, validate=True)
        return self._streamed(whole[:16], whole[16:])

    def _streamed(self, number: bytes, data: bytes) -> bytes:
        key = bytes.fromhex(self._signature("seal", _spelled((number.hex(),))))
        stream = hashlib.shake_256(key).digest(len(data))
        return (int.from_bytes(data) ^ int.from_bytes(stream)).to_bytes(len(data))

    def _signature(self, kind: str, message: bytes) -> str:
        inner, outer = self._begun[kind].copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        signature: str = outer.hexdigest()
        return signature


def _spelled(parts: tuple[object, ...]) -> bytes:
    """Parts with their kinds and lengths: unlike plain concatenation, no two lists of parts have the same spelling."""
    pieces = []
    for part in parts:
        if type(part) is str:
            pieces.append(f"s{len(part)}:{part}")
        elif type(part) is int:
            pieces.append(f"i{part};")
        else:
            raise TypeError("only text and whole numbers are signed")
    return "".join(pieces).encode()


_ENTRY = (int, str, str, str, str, str, int, str, str, str, str)


def _spelled_entry(fields: tuple[object, ...]) -> bytes:
    """The same as `_spelled`, at once where every field is of the kind that it should be."""
    if tuple(map(type, fields)) != _ENTRY:
        return _spelled(fields)
    a, b, c, d, e, f, g, h, i, j, k = cast(tuple[Any, ...], fields)
    return (
        f"i{a};s{len(b)}:{b}s{len(c)}:{c}s{len(d)}:{d}s{len(e)}:{e}s{len(f)}:{f}i{g};s{len(h)}:{h}"
        f"s{len(i)}:{i}s{len(j)}:{j}s{len(k)}:{k}"
    ).encode()


_LINE = re.compile(rb"([0-9]{20}) ([0-9a-f]{64}) ([0-9a-f]{64})\n")
_WITNESS_LENGTH = 20 + 1 + 64 + 1 + 64 + 1


class Witness:
    """The note in `path`; always one line of the same length, so that a write replaces it whole."""

    def __init__(self, path: Path | None) -> None:
        self._path = None if path is None else os.fspath(path)
        self._handle: int | None = None
        self._process = os.getpid()

    def read(self, chain: Chain, known: tuple[int, str, str] | None = None) -> tuple[int, str] | None:
        """The (sequence, signature) that was seen last, or None if there is no note that can be believed.

        None as well if the note is the very one of the head `known`: there is nothing to compare then.
        """
        content = self._content()
        line = None if content is None or (known and content == _line(known)) else _LINE.fullmatch(content)
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
                # Whatever follows the line is not ours, and must not make it unreadable forever.
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
    """A head (sequence, signature, seal) as a line; the seal is the one that the head row carries."""
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
    existing = read_key(path)
    if existing is not None:
        return existing
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

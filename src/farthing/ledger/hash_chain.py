"""The marks that make an edit visible: every entry is signed together with the mark of the entry before it.

All marks are HMAC-SHA256 under the ledger's key, as 64 hexadecimal digits. Each kind of mark starts its message with
a word of its own and the ledger's identity, so that a mark of one kind or of another ledger fits nowhere else.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, cast

GENESIS = "0" * 64  # what stands before the first entry
_BLOCK = 64  # bytes that SHA-256 takes in at a time
_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
).encode


def canonical(value: object) -> str:
    """`value` as JSON in the one spelling that gets signed; NaN and infinities are refused.

    >>> canonical({"b": 1, "a": [2, None]})
    '{"a":[2,null],"b":1}'
    """
    return _CANONICAL(value)


def fingerprint(text: str) -> str:
    """A short public digest of a text, for comparing states; not a secret and not a mark.

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
        # HMAC (RFC 2104) with what is the same for every mark of a kind hashed once: the key, the kind, the ledger.
        key = self.key if len(self.key) <= _BLOCK else hashlib.sha256(self.key).digest()
        inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key.ljust(_BLOCK, b"\0")))
        outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in key.ljust(_BLOCK, b"\0")))
        begun = {}
        for kind in ("entry", "head", "account", "answer", "source", "table"):
            begun[kind] = inner.copy()
            begun[kind].update(_spelled((kind, self.ledger)))
        object.__setattr__(self, "_begun", begun)
        object.__setattr__(self, "_outer", outer)

    def entry(self, fields: tuple[object, ...]) -> str:
        """The mark of an entry with these fields, the last of which is the mark of the entry before it."""
        return self._mark("entry", _spelled_entry(fields))

    def head(self, sequence: int, mac: str) -> str:
        """The mark of the head: which entry is the last one. The witness beside the ledger carries it too."""
        return self._mark("head", _spelled((sequence, mac)))

    def account(self, dataset: str, analyst: str, sequence: int, state: str) -> str:
        """The mark of a row of accounts, last changed by entry `sequence`."""
        return self._mark("account", _spelled((dataset, analyst, sequence, state)))

    def answer(self, request_id: str, text: str) -> str:
        """The mark of a stored answer, which its entry repeats."""
        return self._mark("answer", _spelled((request_id, text)))

    def source(self, identity: str) -> str:
        """The mark of a table's identity, such as the path of a file: it says nothing to who lacks the key."""
        return self._mark("source", _spelled((identity,)))[:32]

    def table(self, request_id: str, fingerprint: str) -> str:
        """The mark of what a table held when a request was charged; those of two requests cannot be compared."""
        return self._mark("table", _spelled((request_id, fingerprint)))

    def _mark(self, kind: str, message: bytes) -> str:
        inner, outer = self._begun[kind].copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        mark: str = outer.hexdigest()
        return mark


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

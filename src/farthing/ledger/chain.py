"""The marks that make an edit visible: every entry is signed together with the mark of the entry before it.

All marks are HMAC-SHA256 under the ledger's key, as 64 hexadecimal digits. Each kind of mark starts its message with
a word of its own and the ledger's identity, so that a mark of one kind or of another ledger fits nowhere else.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass, field

GENESIS = "0" * 64  # what stands before the first entry
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

    def entry(self, previous: str, fields: tuple[object, ...]) -> str:
        """The mark of an entry with these fields after an entry with the mark `previous`."""
        return self._mark("entry", (previous, *fields))

    def head(self, sequence: int, mac: str) -> str:
        """The mark of the head row: which entry is the last one."""
        return self._mark("head", (sequence, mac))

    def account(self, dataset: str, analyst: str, sequence: int, state: str) -> str:
        """The mark of a row of accounts, last changed by entry `sequence`."""
        return self._mark("account", (dataset, analyst, sequence, state))

    def answer(self, request_id: str, text: str) -> str:
        """The mark of a stored answer, which its entry repeats."""
        return self._mark("answer", (request_id, text))

    def witness(self, sequence: int, mac: str) -> str:
        """The mark of the witness beside the ledger."""
        return self._mark("witness", (sequence, mac))

    def _mark(self, kind: str, parts: tuple[object, ...]) -> str:
        message = "".join(map(_framed, (kind, self.ledger, *parts)))
        return hmac.digest(self.key, message.encode(), "sha256").hex()


def _framed(part: object) -> str:
    """A part with its kind and length: unlike plain concatenation, no two lists of parts have the same spelling."""
    if type(part) is str:
        return f"s{len(part)}:{part}"
    if type(part) is int:
        return f"i{part};"
    raise TypeError("only text and whole numbers are signed")

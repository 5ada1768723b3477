"""Which version of its table a request was charged for: numbered as they came, for curators and auditors.

A charge carries a sealed note of its table and of what that held. Whoever may open it can number the versions; to
anybody else all notes look alike, so that an analyst does not learn whether a table has changed: that depends on rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from farthing.ledger.entries import Entry
from farthing.ledger.tamper_evidence import Chain

_MARK = 16  # bytes


class Version(NamedTuple):
    """A version of a table: 1 is the first that was charged for, and the same rows have the same number.

    Args:
        number: Its number.
        source: What people call the table.

    >>> print(Version(2, "people.csv"))
    version 2 of people.csv
    """

    number: int
    source: str

    def __str__(self) -> str:
        return f"version {self.number} of {self.source}"


def sealed_version(chain: Chain, source: str, title: str, fingerprint: str) -> str:
    """The note of a table with this identity, called this, that holds what has this fingerprint.

    >>> chain = Chain(bytes(32), "a-ledger")
    >>> one, other = (sealed_version(chain, "file /people.csv", "people.csv", "ab") for _ in range(2))
    >>> one == other, len(one) == len(other)
    (False, True)
    """
    marks = bytes.fromhex(chain.source(source)) + _content(chain, fingerprint)
    return chain.sealed(marks + title.encode())


class TableVersions:
    """The versions that the charges of a ledger speak of, in their order.

    >>> chain = Chain(bytes(32), "a-ledger")
    >>> versions = TableVersions(chain)
    >>> for rows in ("as in May", "as in June", "as in May"):
    ...     print(versions.add(sealed_version(chain, "file /people.csv", "people.csv", rows)))
    version 1 of people.csv
    version 2 of people.csv
    version 1 of people.csv
    >>> versions.of("file /people.csv", "as in June"), versions.of("file /people.csv", "as in July")
    (Version(number=2, source='people.csv'), None)
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._known: dict[bytes, dict[bytes, Version]] = {}
        self.by_request: dict[str, Version] = {}

    def read(self, entries: Iterable[Entry]) -> TableVersions:
        """The same after these entries, of which charges may carry notes."""
        for entry in entries:
            if entry.kind == "charge" and '"version":' in entry.body_text:
                self.by_request[entry.request_id] = self.add(str(entry.body["version"]))
        return self

    def add(self, note: str) -> Version:
        """The version of one note, a new one where its rows are new."""
        data = self._chain.opened(note)
        versions = self._known.setdefault(data[:_MARK], {})
        title = data[2 * _MARK :].decode()
        return versions.setdefault(data[_MARK : 2 * _MARK], Version(len(versions) + 1, title))

    def of(self, source: str, fingerprint: str) -> Version | None:
        """The version of a table with this identity that has this fingerprint; None if none was charged for."""
        known = self._known.get(bytes.fromhex(self._chain.source(source)), {})
        return known.get(_content(self._chain, fingerprint))


def _content(chain: Chain, fingerprint: str) -> bytes:
    # No request has an empty name, so that this is no signature of a table at a charge.
    return bytes.fromhex(chain.table("", fingerprint))[:_MARK]

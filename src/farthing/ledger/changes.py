"""What one change writes, all of it or nothing: an entry, the accounts it leaves, an answer, and the head."""

from __future__ import annotations

from typing import Any, NamedTuple

from farthing.ledger.entries import Entry
from farthing.ledger.tables import ACCOUNTS, ANSWERS, COLUMNS, ENTRIES, HEAD

APPEND = f"INSERT INTO {ENTRIES} ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
OPEN_ACCOUNT = f"INSERT INTO {ACCOUNTS} (sequence, state, mac, dataset, analyst) VALUES (?, ?, ?, ?, ?)"
KEEP_ACCOUNT = f"UPDATE {ACCOUNTS} SET sequence = ?, state = ?, mac = ? WHERE dataset = ? AND analyst = ?"
STORE_ANSWER = f"INSERT INTO {ANSWERS} (sequence, body) VALUES (?, ?)"
MOVE_HEAD = f"UPDATE {HEAD} SET sequence = ?, mac = ?, seal = ? WHERE one = 1 AND sequence = ? AND mac = ?"


class AccountRow(NamedTuple):
    """A row of accounts as it is after the change."""

    sequence: int
    state: str
    mac: str
    dataset: str
    analyst: str


class Change(NamedTuple):
    """One entry and what changes with it. `new` says that the accounts are opened and not kept.

    >>> Change(Entry(1, "created", "", "", "ada", "curator", 0, "", "{}", "", "0" * 64, "ab"), "cd").head
    (1, 'ab', 'cd')
    """

    entry: Entry
    seal: str
    accounts: tuple[AccountRow, ...] = ()
    new: bool = False
    answer: str | None = None

    @property
    def head(self) -> tuple[int, str, str]:
        """The head after the change."""
        return self.entry.sequence, self.entry.mac, self.seal

    @property
    def head_move(self) -> tuple[Any, ...]:
        """The values for `MOVE_HEAD`: the head after the change, and the one that it must find."""
        return (*self.head, self.entry.sequence - 1, self.entry.previous)

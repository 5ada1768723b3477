"""One change of the ledger: read the head, read the accounts it concerns, append one entry, move the head."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

from farthing.errors import FarthingError, LedgerTampered
from farthing.ledger.chain import Chain, canonical
from farthing.ledger.entries import Entry
from farthing.ledger.holdings import Holding
from farthing.ledger.store import Link, Store
from farthing.ledger.tables import ACCOUNTS, ANSWERS, COLUMNS, ENTRIES, HEAD

_FIELDS = ", ".join(COLUMNS)
_HEAD = f"SELECT ledger, sequence, mac, seal FROM {HEAD} WHERE one = 1"
_ACCOUNT = f"SELECT sequence, state, mac FROM {ACCOUNTS} WHERE dataset = ? AND analyst = ?"
_CHARGE = f"SELECT {_FIELDS} FROM {ENTRIES} WHERE request_id = ? AND kind = 'charge'"
_OUTCOME = f"SELECT {_FIELDS} FROM {ENTRIES} WHERE request_id = ? AND kind IN ('released', 'forfeited')"
_APPEND = f"INSERT INTO {ENTRIES} ({_FIELDS}) VALUES ({', '.join('?' * len(COLUMNS))})"
_OPEN_ACCOUNT = f"INSERT INTO {ACCOUNTS} (sequence, state, mac, dataset, analyst) VALUES (?, ?, ?, ?, ?)"
_KEEP_ACCOUNT = f"UPDATE {ACCOUNTS} SET sequence = ?, state = ?, mac = ? WHERE dataset = ? AND analyst = ?"
_MOVE_HEAD = (
    f"UPDATE {HEAD} SET sequence = ?, mac = ?, seal = ? WHERE one = 1 AND sequence = ? RETURNING sequence"
)
_ANSWER = f"SELECT body FROM {ANSWERS} WHERE sequence = ?"
_STORE_ANSWER = f"INSERT INTO {ANSWERS} (sequence, body) VALUES (?, ?)"


class Memory:
    """What this process has seen of a ledger: it may only grow."""

    def __init__(self, sequence: int, mac: str) -> None:
        self.last = (sequence, mac)  # in one piece: other threads read it without a lock
        self.accounts: dict[tuple[str, str], int] = {}
        self.holdings: dict[tuple[str, str], tuple[tuple[Any, ...], Holding]] = {}

    @property
    def sequence(self) -> int:
        """The number of the last entry seen."""
        return self.last[0]

    def copy(self) -> Memory:
        """What is known now, for a check that goes on while others write."""
        known = Memory(*self.last)
        known.accounts.update(self.accounts)
        return known


Question = tuple[str, tuple[str, ...]]
"""A statement and its parameters, asked before it is known whether the answer will be needed."""


def about_charge(request_id: str) -> Question:
    """What `Reader.charge_of` will ask."""
    return _CHARGE, (request_id,)


def about_outcome(request_id: str) -> Question:
    """What `Reader.outcome_of` will ask."""
    return _OUTCOME, (request_id,)


def about_holding(dataset: str, analyst: str = "") -> Question:
    """What `Reader.holding` will ask."""
    return _ACCOUNT, (dataset, analyst)


class Reader:
    """Rows of one transaction, each checked against its mark before it is believed.

    The head row is read first (and held, by a writer), so that every other row is seen as the last writer left it.
    `asking` is sent along with it: one journey to a server instead of several.
    """

    locking = False

    def __init__(
        self, store: Store, link: Link, chain: Chain, memory: Memory, asking: Iterable[Question] = ()
    ) -> None:
        self._run = link.run
        self._sql = store.sql
        self._chain = chain
        self._memory = memory
        head = self._run(_HEAD + (store.lock_head if self.locking else ""))
        sent = {question: self._run(self._sql(question[0]), question[1]) for question in asking}
        row = head.fetchone()
        # Read to the end, needed or not: a cursor left half-read, and kept alive by the traceback of an error, would
        # hold SQLite to this state of the ledger long after the transaction.
        self._asked = {question: cursor.fetchone() for question, cursor in sent.items()}
        self.last = self._checked_head(row)

    def _checked_head(self, row: tuple[Any, ...] | None) -> tuple[int, str]:
        """The last entry's sequence and mark."""
        if row is None:
            raise LedgerTampered("the head row is missing")
        ledger, sequence, mac, seal = row
        try:
            genuine = ledger == self._chain.ledger and _same(seal, self._chain.head(sequence, mac))
        except (TypeError, ValueError):
            genuine = False
        if not genuine:
            raise LedgerTampered("the head row does not carry the mark it was written with")
        self.check_seen(self._memory.last, "this process", sequence, mac)
        return sequence, mac

    @staticmethod
    def check_seen(seen: tuple[int, str] | None, by: str, sequence: int, mac: str) -> None:
        """Refuse a ledger whose last entry is older than one that was seen, or another of the same number."""
        if seen is not None and (sequence < seen[0] or (sequence == seen[0] and mac != seen[1])):
            raise LedgerTampered(
                f"the ledger ends at entry {sequence}, and {by} has seen entry {seen[0]}: "
                "it was put back to an older state",
                sequence=sequence + 1,
            )

    def holding(self, dataset: str, analyst: str = "") -> Holding | None:
        """The account of a dataset, or of an analyst in it."""
        row = self._row(about_holding(dataset, analyst))
        if row is None:
            if (dataset, analyst) in self._memory.accounts:
                raise LedgerTampered(f"the account of {dataset!r} is gone")
            return None
        remembered = self._memory.holdings.get((dataset, analyst))
        known = self._memory.accounts.get((dataset, analyst), 0)
        # The very row that was checked before, unless a newer one was written since and this one was put back.
        if remembered is not None and remembered[0] == row and row[0] >= known:
            return remembered[1]
        holding = checked_account(self._chain, self._memory, dataset, analyst, *row)
        self._memory.holdings[dataset, analyst] = (row, holding)
        self._memory.accounts[dataset, analyst] = row[0]
        return holding

    def charge_of(self, request_id: str) -> Entry | None:
        """The charge that was made under a request id."""
        return self._entry(about_charge(request_id))

    def outcome_of(self, request_id: str) -> Entry | None:
        """How the charge of a request id ended: released or forfeited."""
        return self._entry(about_outcome(request_id))

    def answer_of(self, outcome: Entry) -> str:
        """The stored answer of a released request."""
        row = self._run(self._sql(_ANSWER), (outcome.sequence,)).fetchone()
        return checked_answer_of(self._chain, outcome, None if row is None else row[0])

    def column(self, statement: str) -> list[Any]:
        """The first column of what a statement without parameters selects."""
        return [row[0] for row in self._run(statement)]

    def _entry(self, question: Question) -> Entry | None:
        row = self._row(question)
        return None if row is None else entry_of(self._chain, row)

    def _row(self, question: Question) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None
        if question in self._asked:
            row = self._asked[question]
        else:
            row = self._run(self._sql(question[0]), question[1]).fetchone()
        return row


class Transaction(Reader):
    """A reader that may append one entry."""

    locking = True

    def __init__(
        self,
        store: Store,
        link: Link,
        chain: Chain,
        memory: Memory,
        asking: Iterable[Question],
        actor: str,
        role: str,
    ) -> None:
        super().__init__(store, link, chain, memory, asking)
        self.actor = actor
        self.role = role
        self.appended: Entry | None = None
        self._changed: dict[tuple[str, str], tuple[tuple[Any, ...], Holding]] = {}

    def append(
        self,
        kind: str,
        dataset: str,
        body: dict[str, Any],
        *,
        analyst: str = "",
        request_id: str = "",
        keep: Mapping[str, Holding] | None = None,
        new: bool = False,
        answer: str | None = None,
    ) -> Entry:
        """Append an entry that leaves the accounts in `keep` (by analyst, "" for the dataset itself) as given."""
        assert self.appended is None, "one transaction appends one entry"
        sequence, previous = self.last[0] + 1, self.last[1]
        states = {who: (holding, *holding.written()) for who, holding in (keep or {}).items()}
        if states:
            body = {**body, "after": {who: totals for who, (_, _, totals) in states.items()}}
        text = canonical(body)
        fields = (
            sequence, kind, dataset, analyst, self.actor, self.role, time.time_ns(), request_id, text,
        )  # fmt: skip
        mac = self._chain.entry(previous, fields)
        self._run(self._sql(_APPEND), (*fields, previous, mac))
        changes = []
        for who, (holding, state, _) in states.items():
            row = (sequence, state, self._chain.account(dataset, who, sequence, state))
            statement = _OPEN_ACCOUNT if new else _KEEP_ACCOUNT
            changes.append(self._run(self._sql(statement), (*row, dataset, who)))
            self._changed[dataset, who] = (row, holding)
        if answer is not None:
            self._run(self._sql(_STORE_ANSWER), (sequence, answer))
        seal = self._chain.head(sequence, mac)
        moved = self._run(self._sql(_MOVE_HEAD), (sequence, mac, seal, sequence - 1)).fetchall()
        # The rows of the last statement are here, so the counts of those before it are known as well.
        if len(moved) != 1 or any(change.rowcount != 1 for change in changes):
            raise LedgerTampered("a row that was just read is gone")
        self.appended = Entry(*fields[:-1], body, previous, mac)
        return self.appended

    def remember(self) -> Entry | None:
        """Take note of what is durable now; the entry that was appended, if any."""
        entry = self.appended
        if entry is not None:
            self._memory.last = (entry.sequence, entry.mac)
            self._memory.holdings.update(self._changed)
            self._memory.accounts.update({whose: row[0] for whose, (row, _) in self._changed.items()})
        return entry


def entry_of(chain: Chain, row: tuple[Any, ...]) -> Entry:
    """A row of entries, if it carries the mark it was written with."""
    fields, previous, mac = row[:-2], row[-2], row[-1]
    sequence = fields[0] if isinstance(fields[0], int) else None
    problem = f"entry {sequence} does not carry the mark it was written with"
    try:
        genuine = _same(mac, chain.entry(previous, fields))
    except (TypeError, ValueError):  # a column holds something that cannot even be spelled
        genuine = False
    if not genuine:
        raise LedgerTampered(problem, sequence=sequence)
    values = (*fields[:-1], json.loads(fields[-1]), previous, mac)
    return Entry(*values)


def checked_answer_of(chain: Chain, entry: Entry, text: object) -> str:
    """The stored answer of a released entry, if it is the one that was stored."""
    if isinstance(text, str) and _same(entry.body.get("answer"), chain.answer(entry.request_id, text)):
        return text
    raise LedgerTampered(f"the answer of entry {entry.sequence} was changed", sequence=entry.sequence)


def checked_account(
    chain: Chain, memory: Memory, dataset: str, analyst: str, sequence: Any, state: Any, mac: Any
) -> Holding:
    """A row of accounts, if it carries its mark and is no older than one seen before."""
    whose = f"the account of {dataset!r}" + (f" for {analyst!r}" if analyst else "")
    try:
        genuine = _same(mac, chain.account(dataset, analyst, sequence, state))
        holding = Holding.of_text(state) if genuine else None
    except (TypeError, ValueError, KeyError, AttributeError, FarthingError):
        holding = None
    if holding is None:
        raise LedgerTampered(f"{whose} does not carry the mark it was written with")
    if sequence < memory.accounts.get((dataset, analyst), 0):
        raise LedgerTampered(f"{whose} was put back to an older state", sequence=sequence)
    return holding


def _same(one: object, other: str) -> bool:
    return isinstance(one, str) and one.isascii() and hmac.compare_digest(one, other)

"""One change of the ledger: what it asks, what is known now, each part checked, and the one entry that may follow.

A question is answered by one row of the database: the head, the accounts and the request.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from farthing.errors import FarthingError, InvalidValue, LedgerTampered
from farthing.ledger.account_state import Holding
from farthing.ledger.entries import AccountRow, Change, Entry, clock, label_of, totals_of
from farthing.ledger.ledger_tables import ACCOUNTS, ANSWERS, COLUMNS, ENTRIES, HEAD
from farthing.ledger.tamper_evidence import Chain


class Question(NamedTuple):
    """Which accounts and which request a change is about; empty where it is about none.

    `fresh` says that the request is not expected to have any entries, so that it is worth looking first. `others` are
    further datasets whose accounts are charged with the first.

    >>> Question("census", request_id="r-1").parameters
    ('census', 'census', '', 'r-1', 'r-1')
    """

    dataset: str = ""
    analyst: str = ""
    request_id: str = ""
    fresh: bool = False
    others: tuple[str, ...] = ()

    @property
    def accounts(self) -> list[tuple[str, str]]:
        """The accounts of the other datasets: each one's own and, if an analyst is named, the analyst's in it."""
        whose = ("", self.analyst) if self.analyst else ("",)
        return [(dataset, analyst) for dataset in self.others for analyst in whose]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The values for the question marks of `ASK`, in order; `LOOK` has all but the last."""
        return (self.dataset, self.dataset, self.analyst, self.request_id, self.request_id)


class Snapshot(NamedTuple):
    """The row that answers a question, in parts; None where there is nothing.

    head              ledger, sequence, mac, seal
    whole, own        sequence, state, mac of the dataset's account and of the analyst's
    charge, outcome   the columns of the two entries of the request
    answer            the stored answer
    others            by (dataset, analyst), what `whole` and `own` are for the other datasets
    """

    head: tuple[Any, ...]
    whole: tuple[Any, ...] | None
    own: tuple[Any, ...] | None
    charge: tuple[Any, ...] | None
    outcome: tuple[Any, ...] | None
    answer: Any
    others: Mapping[tuple[str, str], tuple[Any, ...] | None] = MappingProxyType({})


def _columns(table: str, names: tuple[str, ...]) -> str:
    return ", ".join(f"{table}.{name}" for name in names)


_STATE = ("sequence", "state", "mac")
_STANDING = f"{_columns('h', ('ledger', 'sequence', 'mac', 'seal'))}, {_columns('w', _STATE)}, {_columns('o', _STATE)}"
_FOUND_BY = f"""
FROM {HEAD} h
LEFT JOIN {ACCOUNTS} w ON w.dataset = ? AND w.analyst = ''
LEFT JOIN {ACCOUNTS} o ON o.dataset = ? AND o.analyst = ? AND o.analyst <> ''
LEFT JOIN {ENTRIES} c ON c.request_id = ? AND c.kind = 'charge'
"""
LOOK = f"SELECT {_STANDING}, c.sequence {_FOUND_BY} WHERE h.one = 1"
"""The beginning of `ASK`: all there is to find if the request has no entries."""
ASK = f"""
SELECT {_STANDING}, {_columns("c", COLUMNS)}, {_columns("s", COLUMNS)}, n.body
{_FOUND_BY}
LEFT JOIN {ENTRIES} s ON s.request_id = ? AND s.kind IN ('released', 'forfeited')
LEFT JOIN {ANSWERS} n ON n.sequence = s.sequence
WHERE h.one = 1
"""
ONE_ACCOUNT = f"SELECT {', '.join(_STATE)} FROM {ACCOUNTS} WHERE dataset = ? AND analyst = ?"
_WHOLE, _OWN, _CHARGE = 4, 7, 10
_OUTCOME = _CHARGE + len(COLUMNS)
_ANSWER = _OUTCOME + len(COLUMNS)
_NOTHING = (None,) * (_ANSWER + 1)


def is_taken(rows: list[tuple[Any, ...]]) -> bool:
    """Whether `LOOK` found the request charged: then only `ASK` says all of it."""
    return any(row[_CHARGE] is not None for row in rows)


def snapshot_in(rows: list[tuple[Any, ...]]) -> Snapshot | None:
    """What `ASK` found, in parts, or `LOOK` where it was enough; None without a head.

    No column of a table may be empty, so an empty sequence means: no such row. All rows are fetched, because a cursor
    left half-read, and kept alive by the traceback of an error, would hold SQLite to this state of the ledger.
    """
    if len(rows) > 1:
        raise LedgerTampered("a request has two entries of one kind")
    if not rows:
        return None
    row = rows[0] + _NOTHING[len(rows[0]) :]
    return Snapshot(
        row[:_WHOLE],
        None if row[_WHOLE] is None else row[_WHOLE:_OWN],
        None if row[_OWN] is None else row[_OWN:_CHARGE],
        None if row[_CHARGE] is None else row[_CHARGE:_OUTCOME],
        None if row[_OUTCOME] is None else row[_OUTCOME:_ANSWER],
        row[_ANSWER],
    )


Whose = tuple[str, str]
"""Whose account: a dataset, and an analyst in it ("" for the dataset's own)."""


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

    def holding(self, dataset: str, analyst: str = "") -> Holding | None:
        """The account as it was seen last; it may be another by now."""
        remembered = self.holdings.get((dataset, analyst))
        return None if remembered is None else remembered[1]

    def copy(self) -> Memory:
        """What is known now, for a check that goes on while others write."""
        known = Memory(*self.last)
        known.accounts.update(self.accounts)
        return known


class Reader:
    """The answer to a question, each part checked against its signature before it is believed."""

    def __init__(self, question: Question, snapshot: Snapshot | None, chain: Chain, memory: Memory) -> None:
        if snapshot is None:
            raise LedgerTampered("the head row is missing")
        self._question = question
        self._snapshot = snapshot
        self._chain = chain
        self._memory = memory
        self._checked: dict[Whose, Holding | None] = {}
        self._seen: dict[tuple[str, str], int] = {}
        self.last = self._checked_head(*snapshot.head)

    def _checked_head(self, ledger: Any, sequence: Any, mac: Any, seal: Any) -> tuple[int, str]:
        """The last entry's sequence and signature."""
        try:
            genuine = ledger == self._chain.ledger and _same(seal, self._chain.head(sequence, mac))
        except (TypeError, ValueError):
            genuine = False
        if not genuine:
            raise LedgerTampered("the head row does not carry the signature it was written with")
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

    def whole(self) -> Holding | None:
        """The account of the dataset."""
        return self._holding("", self._snapshot.whole)

    def own(self) -> Holding | None:
        """The account of the analyst in it, if the question names one."""
        return self._holding(self._question.analyst, self._snapshot.own) if self._question.analyst else None

    def other(self, dataset: str) -> tuple[Holding | None, Holding | None]:
        """The account of another dataset that the question names, and that of the analyst in it."""
        analyst, others = self._question.analyst, self._snapshot.others
        own = self._holding(analyst, others[dataset, analyst], dataset) if analyst else None
        return self._holding("", others[dataset, ""], dataset), own

    def charge(self) -> Entry | None:
        """The charge that was made under the request id."""
        return None if self._snapshot.charge is None else entry_of(self._chain, self._snapshot.charge)

    def outcome(self) -> Entry | None:
        """How that charge ended: released or forfeited."""
        return None if self._snapshot.outcome is None else entry_of(self._chain, self._snapshot.outcome)

    def answer(self, outcome: Entry) -> str:
        """The stored answer of a released request."""
        return checked_answer_of(self._chain, outcome, self._snapshot.answer)

    def _holding(self, analyst: str, row: tuple[Any, ...] | None, dataset: str | None = None) -> Holding | None:
        whose = (self._question.dataset if dataset is None else dataset, analyst)
        if whose not in self._checked:
            self._checked[whose] = self._believed(whose, row)
        return self._checked[whose]

    def _believed(self, whose: Whose, row: tuple[Any, ...] | None) -> Holding | None:
        known = self._memory.accounts.get(whose, 0)
        if row is None:
            if known:
                raise LedgerTampered(f"the account of {whose[0]!r} is gone")
            return None
        self._seen[whose] = row[0]
        remembered = self._memory.holdings.get(whose)
        # The very row that was checked before, unless a newer one was written since and this one was put back.
        if remembered is not None and remembered[0] == row and row[0] >= known:
            return remembered[1]
        holding = checked_account(self._chain, self._memory, *whose, *row)
        self._memory.holdings[whose] = (row, holding)
        return holding

    def remember_seen(self) -> None:
        """Take note of what was seen, once it is durable: what a crash may yet undo is no proof of anything."""
        self._memory.accounts.update(self._seen)


class Transaction(Reader):
    """A reader, while nobody else writes, that may append one entry."""

    def __init__(
        self,
        question: Question,
        snapshot: Snapshot | None,
        chain: Chain,
        memory: Memory,
        actor: str,
        role: str,
    ) -> None:
        super().__init__(question, snapshot, chain, memory)
        self.actor = actor
        self.role = role
        self.change: Change | None = None
        self._holdings: list[Holding] = []

    def append(
        self,
        kind: str,
        dataset: str,
        body: str,
        *,
        analyst: str = "",
        request_id: str = "",
        keep: Mapping[Whose, Holding] | None = None,
        new: bool = False,
        answer: str | None = None,
    ) -> Entry:
        """Append an entry that leaves the accounts in `keep` as given."""
        assert self.change is None, "one transaction appends one entry"
        chain, sequence, previous = self._chain, self.last[0] + 1, self.last[1]
        states = {whose: (holding, holding.text()) for whose, holding in keep.items()} if keep else {}
        fields = (
            sequence,
            kind,
            dataset,
            analyst,
            self.actor,
            self.role,
            clock(),
            request_id,
            body,
            totals_of({label_of(dataset, *whose): state for whose, state in states.items()}),
            previous,
        )
        entry = Entry(*fields, chain.entry(fields))
        accounts = tuple(
            AccountRow(sequence, text, chain.account(*whose, sequence, text), *whose)
            for whose, (_, text) in states.items()
        )
        self._holdings = [holding for holding, _ in states.values()]
        self.change = Change(entry, chain.head(sequence, entry.mac), accounts, new, answer)
        return entry

    def remember(self, change: Change | None) -> None:
        """Take note of what is durable now."""
        self.remember_seen()
        if change is None:
            return
        self._memory.last = (change.entry.sequence, change.entry.mac)
        for account, holding in zip(change.accounts, self._holdings, strict=True):
            whose = account.dataset, account.analyst
            self._memory.holdings[whose] = (account[:3], holding)
            self._memory.accounts[whose] = account.sequence


def entry_of(chain: Chain, row: tuple[Any, ...]) -> Entry:
    """A row of entries, if it carries the signature it was written with."""
    try:
        genuine = _same(row[-1], chain.entry(row[:-1]))
    except (TypeError, ValueError):  # a column holds something that cannot even be spelled
        genuine = False
    if not genuine:
        sequence = row[0] if isinstance(row[0], int) else None
        raise LedgerTampered(f"entry {sequence} does not carry the signature it was written with", sequence=sequence)
    return Entry._make(row)


def checked_answer_of(chain: Chain, entry: Entry, text: object) -> str:
    """The stored answer of a released entry, if it is the one that was stored."""
    if isinstance(text, str) and _same(entry.body.get("answer"), chain.answer(entry.request_id, text)):
        return text
    raise LedgerTampered(f"the answer of entry {entry.sequence} was changed", sequence=entry.sequence)


def checked_account(
    chain: Chain, memory: Memory, dataset: str, analyst: str, sequence: Any, state: Any, mac: Any
) -> Holding:
    """A row of accounts, if it carries its signature and is no older than one seen before."""
    whose = f"the account of {dataset!r}" + (f" for {analyst!r}" if analyst else "")
    try:
        genuine = _same(mac, chain.account(dataset, analyst, sequence, state))
        holding = Holding.of_text(state) if genuine else None
    except (TypeError, ValueError, KeyError, AttributeError, FarthingError):
        holding = None
    if holding is None:
        raise LedgerTampered(f"{whose} does not carry the signature it was written with")
    if sequence < memory.accounts.get((dataset, analyst), 0):
        raise LedgerTampered(f"{whose} was put back to an older state", sequence=sequence)
    return holding


def _same(one: object, other: str) -> bool:
    return isinstance(one, str) and one.isascii() and hmac.compare_digest(one, other)


def known(reader: Reader, dataset: str) -> Holding:
    """The account of a dataset that is registered."""
    return registered(reader.whole(), dataset)


def registered(holding: Holding | None, dataset: str) -> Holding:
    """The account of a dataset, if there is one."""
    if holding is None:
        raise InvalidValue(
            "dataset",
            dataset,
            "must be registered in this ledger",
            "a curator registers it with Ledger.register",
        )
    return holding

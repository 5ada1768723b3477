"""What can be read from an open ledger, by whoever may see it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from farthing.errors import InvalidValue, NotAllowed
from farthing.ledger.budget_policy import known
from farthing.ledger.budgets import Budget
from farthing.ledger.charge_lifecycle import charge_of, check_owner, state_after
from farthing.ledger.charge_limits import command_for_more, total_for
from farthing.ledger.entries import Entry, Receipt, Stored
from farthing.ledger.hash_chain import Chain
from farthing.ledger.integer_amounts import delta_down, epsilon_down, epsilon_up
from farthing.ledger.ledger_arguments import checked_name, event_of
from farthing.ledger.ledger_store import Store
from farthing.ledger.ledger_tables import ACCOUNTS
from farthing.ledger.signing_key import Witness
from farthing.ledger.snapshot import Found, Question
from farthing.ledger.transaction import Memory, Reader, checked_account, entry_of
from farthing.ledger.verification import Known, Progress, Verification, rows, verify_store
from farthing.privacy.events import ApproxDP, Event, checked_count
from farthing.privacy.units import Unit

_DATASETS = f"SELECT dataset FROM {ACCOUNTS} WHERE analyst = '' ORDER BY dataset"
_STATES = f"SELECT dataset, sequence, state, mac FROM {ACCOUNTS} WHERE analyst = '' ORDER BY dataset"
_ANALYSTS = f"SELECT analyst FROM {ACCOUNTS} WHERE dataset = ? AND analyst <> '' ORDER BY analyst"
_LAST = 2**63 - 1  # the largest number of an entry that a database can be asked about


class OpenLedger:
    """An open ledger, read only: who has it open, and everything that can be asked of it."""

    def __init__(
        self,
        store: Store,
        chain: Chain,
        witness: Witness,
        memory: Memory,
        actor: str,
        role: str,
        opening: Verification,
        notes: tuple[str, ...],
    ) -> None:
        self._store = store
        self._chain = chain
        self._witness = witness
        self._memory = memory
        self._actor = actor
        self._role = role
        self._opening = opening
        self._notes = notes
        self._lent = False  # the connections are somebody else's, who closes them

    @property
    def actor(self) -> str:
        """Who acts; fixed when the ledger was opened."""
        return self._actor

    @property
    def role(self) -> str:
        """What they may do; fixed when the ledger was opened."""
        return self._role

    @property
    def place(self) -> str:
        """Where it was opened, as a command is told it, without a password; nothing if it was lent."""
        return "" if self._lent else self._store.name

    @property
    def id(self) -> str:
        """The identity of this ledger; receipts carry it."""
        return self._chain.ledger

    @property
    def opening(self) -> Verification:
        """What verifying it came to when it was opened."""
        return self._opening

    def stored(self, request_id: str) -> Stored | None:
        """What is known of a request id: its charge, state, answer and receipt; None if it was never charged."""
        name = checked_name(request_id, "request_id")
        reader = self._asked(Question(request_id=name))
        entry = reader.charge()
        if entry is None:
            return None
        check_owner(entry, self.actor, self.role)
        outcome = reader.outcome()
        state = state_after(outcome)
        answer = reader.answer(outcome) if outcome is not None and state == "released" else None
        return Stored(charge_of(self.id, entry, state), state, answer, self._receipt(outcome or entry))

    def receipt(self, request_id: str) -> Receipt | None:
        """The receipt of a request id: of its outcome, or of its charge while it waits."""
        found = self.stored(request_id)
        return None if found is None else found.receipt

    def last(self) -> int:
        """The number of the last entry."""
        return self._asked(Question()).last[0]

    def datasets(self) -> list[str]:
        """The names of all datasets."""
        self._asked(Question())  # the head must be genuine
        with self._store.reading() as link:
            return [str(name) for (name,) in link.run(_DATASETS).fetchall()]

    def analysts(self, dataset: str) -> list[str]:
        """The names of all who have a grant in a dataset; not for analysts, who see their own."""
        name = checked_name(dataset, "dataset")
        if self.role == "analyst":
            raise NotAllowed(self.role, "see the grants of others")
        known(self._asked(Question(name)), name)
        with self._store.reading() as link:
            return [str(who) for (who,) in link.run(self._store.sql(_ANALYSTS), (name,)).fetchall()]

    def sources(self) -> dict[str, frozenset[str] | None]:
        """By dataset, the marks of the tables that its budget stands for; None where an older version opened it."""
        self._asked(Question())
        with self._store.reading() as link:
            rows = link.run(_STATES).fetchall()
        found = {}
        for dataset, *row in rows:
            found[str(dataset)] = checked_account(self._chain, self._memory, dataset, "", *row).sources
        return found

    def marks(self, sources: Iterable[str]) -> list[str]:
        """What the ledger keeps of the names of tables."""
        return [self._chain.source(str(source)) for source in sources]

    def table_changed(self, request_id: str, table: str) -> bool | None:
        """Whether a table has another fingerprint than when a request was charged; None where nobody can tell.

        What it says depends on private rows, so that it is not for analysts.
        """
        if self.role == "analyst":
            raise NotAllowed(self.role, "see whether a table has changed")
        name = checked_name(request_id, "request_id")
        entry = self._asked(Question(request_id=name)).charge()
        mark = None if entry is None else entry.body.get("table")
        return None if not mark or not table else mark != self._chain.table(name, table)

    def budget(self, dataset: str, analyst: str | None = None) -> Budget:
        """How a budget stands: the dataset's own, or an analyst's grant in it."""
        name = checked_name(dataset, "dataset")
        who = "" if analyst is None else checked_name(analyst, "analyst")
        if who and self.role == "analyst" and who != self.actor:
            raise NotAllowed(self.role, "see the grant of somebody else")
        reader = self._asked(Question(name, who))
        whole = known(reader, name)
        holding = reader.own() if who else whole
        if holding is None:
            raise InvalidValue(
                "analyst",
                who,
                f"must have a grant in {name!r}",
                command_for_more(
                    self.place, name, who, whole.account.remaining_beside(whole.withheld()), None
                ),
            )
        account = holding.account
        return Budget(
            name,
            who,
            account.budget,
            account.spent_upper,
            epsilon_up(holding.waiting_nano),
            {
                label: ApproxDP(epsilon_down(nano), delta_down(units))
                for label, (nano, units) in holding.reserves.items()
            },
            account.remaining_beside(holding.withheld()),
            account.count,
            str(whole.unit),
            account.untouched,
            whole.unit if isinstance(whole.unit, Unit) else None,
            lambda: self._events(name, who),
            self.place,
            lambda epsilon: total_for(account, epsilon, holding.withheld()),
        )

    def entries(self, dataset: str | None = None, since: int = 0) -> Iterator[Entry]:
        """All entries after `since` in order, or those of one dataset; an analyst sees those of their own grant."""
        name = None if dataset is None else checked_name(dataset, "dataset")
        first = min(checked_count(since, "since"), _LAST)
        return (
            entry
            for entry in self._entries(first)
            if (name is None or entry.is_about(name))
            and (self.role != "analyst" or entry.analyst == self.actor)
        )

    def verify(self, receipt: Receipt | None = None, progress: Progress | None = None) -> Verification:
        """Read everything again and say whether it is what was written, and contains the receipt if one is given."""
        memory = self._memory.copy()
        witness = self._witness.read(self._chain)  # before the snapshot, which is then no older
        known = Known(witness, self._witness.place, receipt, memory, self._notes)
        return verify_store(self._store, self._chain, known, progress)[0]

    def export(self, target: str | os.PathLike[str] | IO[str]) -> int:
        """Write all entries as JSON lines to a path or an open text file; the number of entries."""
        if isinstance(target, str | os.PathLike):
            if self._store.is_own(Path(target)):
                raise InvalidValue("target", str(target), "must not be a file of the ledger", "name another")
            with Path(target).open("w", encoding="utf-8") as file:
                return _written(self.entries(), file)
        return _written(self.entries(), target)

    def close(self) -> None:
        """Close the connections; what was charged stays charged."""
        if self._lent:
            return
        self._store.close()
        self._witness.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self._store.name!r}, actor={self.actor!r}, role={self.role!r})"

    def _asked(self, question: Question) -> Reader:
        def read(found: Found | None) -> Reader:
            reader = Reader(question, found, self._chain, self._memory)
            reader.whole(), reader.own()  # compared with what was seen before anybody sees more
            reader.remember_seen()
            return reader

        return self._store.ask(question, read)

    def _receipt(self, entry: Entry) -> Receipt:
        receipt = Receipt.of(self.id, entry)
        assert receipt is not None
        return receipt

    def _entries(self, since: int = 0) -> Iterator[Entry]:
        """All entries, each checked against its mark."""
        while True:
            # A page at a time: a reader that is left half way must not hold up the database.
            with self._store.reading() as link:
                page = [
                    entry_of(self._chain, row) for row in rows(self._store, link.run, since, one_page=True)
                ]
            yield from page
            if not page:
                return
            since = page[-1].sequence

    def _events(self, dataset: str, analyst: str) -> Iterable[Event]:
        for entry in self._entries():
            if entry.kind == "charge" and entry.is_about(dataset) and analyst in ("", entry.analyst):
                yield event_of(entry.body["event"])


def _written(entries: Iterable[Entry], file: IO[str]) -> int:
    count = 0
    for entry in entries:
        file.write(json.dumps(entry.to_dict(), sort_keys=True, allow_nan=False) + "\n")
        count += 1
    return count

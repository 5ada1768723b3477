"""The ledger that people open: what may be done with it, by whom."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO

from farthing.errors import BudgetExceeded, InvalidValue, NotAllowed
from farthing.ledger import charging, policy
from farthing.ledger.amounts import delta_down, epsilon_down, epsilon_up
from farthing.ledger.budgets import Budget
from farthing.ledger.chain import Chain
from farthing.ledger.charging import Request, charge_of, check_owner, state_after
from farthing.ledger.entries import Charge, Entry, Stored
from farthing.ledger.receipts import Receipt
from farthing.ledger.store import Store
from farthing.ledger.tables import ACCOUNTS
from farthing.ledger.transaction import (
    Memory,
    Question,
    Reader,
    Transaction,
    about_charge,
    about_outcome,
    entry_of,
)
from farthing.ledger.values import (
    WORLDS,
    checked_answer,
    checked_budget,
    checked_choice,
    checked_event,
    checked_name,
    checked_note,
    event_of,
)
from farthing.ledger.verification import Known, Progress, Verification, rows, verify_store
from farthing.ledger.witness import Witness
from farthing.privacy.events import ApproxDP, Event, checked_count, checked_delta

_DATASETS = f"SELECT dataset FROM {ACCOUNTS} WHERE analyst = '' ORDER BY dataset"

_PRICES_REMEMBERED = 4096
_LAST = 2**63 - 1  # the largest number of an entry that a database can be asked about


class Ledger:
    """Budgets, charges and answers in an append-only, signed store. Made by `farthing.open_ledger`.

    >>> import tempfile, os
    >>> from farthing.ledger import open_ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = open_ledger(os.path.join(folder.name, "study.db"))
    >>> _ = ledger.register("census", epsilon=1.0)

    Charge first, then run, then release; the same request id finds what it had.

    >>> charge = ledger.charge("census", 0.25, request_id="r-1")
    >>> receipt = ledger.release(charge, '{"count": 41}')
    >>> ledger.budget("census").remaining, ledger.stored("r-1").answer
    (ApproxDP(epsilon=0.75, delta=0.0), '{"count": 41}')
    >>> ledger.charge("census", 0.25, request_id="r-1").repeated
    True
    >>> ledger.charge("census", 0.9, request_id="r-2")
    Traceback (most recent call last):
        ...
    farthing.errors.BudgetExceeded: charge of epsilon=0.9 exceeds the epsilon=0.75 left in budget 'census'; ...
    >>> ledger.forfeit(ledger.charge("census", 0.05, request_id="r-3"), "the engine died").state
    'forfeited'

    A curator decides who may spend how much, and what is set aside.

    >>> _ = ledger.grant("census", "bob", 0.2)
    >>> _ = ledger.reserve("census", 0.3, name="census day")
    >>> ledger.budget("census").remaining.epsilon, ledger.budget("census", "bob").remaining.epsilon
    (0.4, 0.2)
    >>> ledger.set_budget("census", 1.5).body["raised"], ledger.datasets()
    (True, ['census'])

    Everything stays readable, and is checked.

    >>> [entry.kind for entry in ledger.entries("census")][:4]
    ['dataset', 'charge', 'released', 'refused']
    >>> ledger.verify(receipt).ok, ledger.receipt("r-1") == receipt
    (True, True)
    >>> ledger.export(os.path.join(folder.name, "entries.jsonl"))
    10
    >>> ledger.close(); folder.cleanup()
    """

    def __init__(
        self, store: Store, chain: Chain, witness: Witness, memory: Memory, actor: str, role: str
    ) -> None:
        self._store = store
        self._chain = chain
        self._witness = witness
        self._memory = memory
        self._priced: set[tuple[str, str, Event, float | None]] = set()
        self._actor = actor
        self._role = role

    @property
    def actor(self) -> str:
        """Who acts; fixed when the ledger was opened."""
        return self._actor

    @property
    def role(self) -> str:
        """What they may do; fixed when the ledger was opened."""
        return self._role

    @property
    def id(self) -> str:
        """The identity of this ledger; receipts carry it."""
        return self._chain.ledger

    # What a curator decides.

    def register(self, dataset: str, epsilon: float, delta: float = 0.0, *, unit: str = "") -> Entry:
        """Open the budget of a dataset; `unit` says whose privacy it is, in the curator's words."""
        self._only("register a dataset", "curator")
        name, budget = checked_name(dataset, "dataset"), checked_budget(epsilon, delta)
        words = checked_note(unit, "unit")
        with self._writing() as tx:
            return policy.register(tx, name, *budget, words)

    def set_budget(self, dataset: str, epsilon: float, delta: float = 0.0) -> Entry:
        """Give a dataset another budget. A raise is allowed, and is an entry that says so for ever."""
        self._only("set a budget", "curator")
        name, budget = checked_name(dataset, "dataset"), checked_budget(epsilon, delta)
        with self._writing() as tx:
            return policy.set_budget(tx, name, *budget)

    def grant(self, dataset: str, analyst: str, epsilon: float, delta: float = 0.0) -> Entry:
        """Let an analyst spend at most so much in all; the dataset's own budget still rules above it."""
        self._only("grant a budget", "curator")
        name, who = checked_name(dataset, "dataset"), checked_name(analyst, "analyst")
        budget = checked_budget(epsilon, delta)
        with self._writing() as tx:
            return policy.grant(tx, name, who, *budget)

    def reserve(self, dataset: str, epsilon: float, delta: float = 0.0, name: str = "reserve") -> Entry:
        """Set aside a part of a budget under a name, for charges that name it; 0 frees it."""
        self._only("set aside a reserve", "curator")
        whole, label = checked_name(dataset, "dataset"), checked_name(name, "name")
        budget = checked_budget(epsilon, delta)
        with self._writing() as tx:
            return policy.reserve(tx, whole, *budget, label)

    # What is spent.

    def charge(
        self,
        dataset: str,
        event: Event | float | tuple[float, float],
        *,
        request_id: str,
        world: str = "planned",
        delta: float | None = None,
        analyst: str | None = None,
        digest: str = "",
        use_reserve: str | None = None,
    ) -> Charge:
        """Charge an event, durably, before anything is computed; the same request id is never charged twice.

        `delta` is the delta at which an event without a pure epsilon enters the plain sums (chosen if not given).
        `digest` is the caller's fingerprint of the request: a repeated request id must bring the same one. Raises
        BudgetExceeded if it does not fit; then an entry says so and no account has changed.
        """
        self._only("charge", "curator", "analyst")
        request = Request(
            checked_name(dataset, "dataset"),
            self._spender(analyst),
            checked_event(event),
            checked_name(request_id, "request_id"),
            checked_choice(world, "world", WORLDS),
            None if delta is None else checked_delta(delta),
            checked_note(digest, "digest"),
            None if use_reserve is None else checked_name(use_reserve, "use_reserve"),
        )
        if request.reserve is not None:
            self._only("use a reserve", "curator")
        self._price_ahead(request)
        with self._writing(*charging.questions(request)) as tx:
            outcome = charging.charge(tx, request)
        if isinstance(outcome, BudgetExceeded):
            raise outcome
        return charge_of(self.id, outcome.entry, outcome.state, repeated=outcome.repeated)

    def release(self, charge: Charge, answer: str) -> Receipt:
        """Store the answer of a charge and mark it released; a charge that has an answer keeps the one it has."""
        text = checked_answer(answer)
        entry = self._settle(
            "released",
            charge,
            {"answer": self._chain.answer(_id_of(charge), text), "bytes": len(text.encode())},
            text,
        )
        if entry.kind != "released":
            raise InvalidValue(
                "charge", charge.request_id, "was forfeited and cannot be released", "use a new request id"
            )
        return self._receipt(entry)

    def forfeit(self, charge: Charge, reason: str) -> Receipt:
        """Mark a charge that will never have an answer; it stays spent. A released charge stays released."""
        return self._receipt(self._settle("forfeited", charge, {"reason": checked_name(reason, "reason")}))

    # What can be read.

    def stored(self, request_id: str) -> Stored | None:
        """What is known of a request id: its charge, state, answer and receipt; None if it was never charged."""
        name = checked_name(request_id, "request_id")
        with self._reading() as reader:
            entry = reader.charge_of(name)
            if entry is None:
                return None
            check_owner(entry, self.actor, self.role)
            outcome = reader.outcome_of(name)
            state = state_after(outcome)
            answer = reader.answer_of(outcome) if outcome is not None and state == "released" else None
        charge = charge_of(self.id, entry, state, repeated=True)
        return Stored(charge, state, answer, self._receipt(outcome or entry))

    def receipt(self, request_id: str) -> Receipt | None:
        """The receipt of a request id: of its outcome, or of its charge while it waits."""
        found = self.stored(request_id)
        return None if found is None else found.receipt

    def datasets(self) -> list[str]:
        """The names of all datasets."""
        with self._reading() as reader:
            return [str(name) for name in reader.column(_DATASETS)]

    def budget(self, dataset: str, analyst: str | None = None) -> Budget:
        """How a budget stands: the dataset's own, or an analyst's grant in it."""
        name = checked_name(dataset, "dataset")
        who = "" if analyst is None else checked_name(analyst, "analyst")
        if who and self.role == "analyst" and who != self.actor:
            raise NotAllowed(self.role, "see the grant of somebody else")
        with self._reading() as reader:
            whole = policy.known(reader, name)
            holding = reader.holding(name, who) if who else whole
        if holding is None:
            raise InvalidValue("analyst", who, f"must have a grant in {name!r}", "a curator gives one")
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
            whole.unit,
            lambda: self._events(name, who),
        )

    def entries(self, dataset: str | None = None, since: int = 0) -> Iterator[Entry]:
        """All entries after `since` in order, or those of one dataset; an analyst sees those of their own grant."""
        name = None if dataset is None else checked_name(dataset, "dataset")
        first = min(checked_count(since, "since"), _LAST)
        return (
            entry
            for entry in self._entries(first)
            if name in (None, entry.dataset) and (self.role != "analyst" or entry.analyst == self.actor)
        )

    def verify(self, receipt: Receipt | None = None, progress: Progress | None = None) -> Verification:
        """Read everything again and say whether it is what was written, and contains the receipt if one is given."""
        memory = self._memory.copy()
        witness = self._witness.read(self._chain)  # before the snapshot, which is then no older
        known = Known(witness, self._witness.place, receipt, memory)
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
        self._store.close()
        self._witness.close()

    def __enter__(self) -> Ledger:
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

    def _settle(
        self, kind: str, charge: Charge, words: dict[str, object], answer: str | None = None
    ) -> Entry:
        self._only("settle a charge", "curator", "analyst")
        _id_of(charge)
        with self._writing(about_charge(charge.request_id), about_outcome(charge.request_id)) as tx:
            return charging.settle(tx, kind, charge, words, answer)

    def _receipt(self, entry: Entry) -> Receipt:
        receipt = Receipt.of(self.id, entry)
        assert receipt is not None
        return receipt

    def _spender(self, analyst: str | None) -> str:
        """Whose grant pays: an analyst's own; for a curator the dataset's budget alone, or a named analyst's."""
        if self.role != "analyst":
            return "" if analyst is None else checked_name(analyst, "analyst")
        if analyst is not None and checked_name(analyst, "analyst") != self.actor:
            raise NotAllowed(self.role, "spend the grant of somebody else", "spend your own")
        return self.actor

    def _price_ahead(self, request: Request) -> None:
        """Price outside the transaction: a large plan may take a second, and prices are remembered."""
        key = (request.dataset, request.analyst, request.event, request.delta)
        if key in self._priced:
            return
        if len(self._priced) >= _PRICES_REMEMBERED:
            self._priced.clear()
        with self._reading() as reader:
            holdings = [reader.holding(request.dataset, who) for who in {"", request.analyst}]
        for holding in holdings:
            if holding is not None:
                holding.account.priced(request.event, request.delta)
        self._priced.add(key)

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
            if (entry.kind, entry.dataset) == ("charge", dataset) and analyst in ("", entry.analyst):
                yield event_of(entry.body["event"])

    def _only(self, action: str, *roles: str) -> None:
        if self.role not in roles:
            raise NotAllowed(self.role, action, f"open the ledger as {' or '.join(roles)}")

    @contextmanager
    def _writing(self, *asking: Question) -> Iterator[Transaction]:
        made: list[Transaction] = []

        def then() -> None:
            entry = made[0].remember()
            if entry is not None:
                self._witness.note(self._chain, entry.sequence, entry.mac)

        with self._store.writing(then) as link:
            tx = Transaction(self._store, link, self._chain, self._memory, asking, self.actor, self.role)
            # Nobody writes or notes now: if others have noted more than is seen here, they write to another file.
            tx.check_seen(self._witness.read(self._chain), f"the witness {self._witness.place}", *tx.last)
            made.append(tx)
            yield tx

    @contextmanager
    def _reading(self) -> Iterator[Reader]:
        with self._store.reading() as link:
            yield Reader(self._store, link, self._chain, self._memory)


def _id_of(charge: object) -> str:
    if not isinstance(charge, Charge):
        raise InvalidValue("charge", charge, "must be a Charge that Ledger.charge returned")
    return charge.request_id


def _written(entries: Iterable[Entry], file: IO[str]) -> int:
    count = 0
    for entry in entries:
        file.write(json.dumps(entry.to_dict(), sort_keys=True, allow_nan=False) + "\n")
        count += 1
    return count

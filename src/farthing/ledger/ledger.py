"""The ledger that people open: what can be read from it, what may be done with it, and by whom."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TypeVar

from farthing.errors import InvalidValue, NotAllowed
from farthing.ledger import budget_policy, charge_lifecycle
from farthing.ledger.budget import Budget, budget_standing
from farthing.ledger.charge_lifecycle import (
    charge_of,
    check_owner,
    checked_charge,
    command_for_more,
    refusal,
    state_after,
)
from farthing.ledger.charge_quotes import Quote, Request, quoted
from farthing.ledger.entries import (
    ROLES,
    WORLDS,
    Change,
    Charge,
    Entry,
    Receipt,
    Stored,
    checked_answer,
    checked_budget,
    checked_change,
    checked_choice,
    checked_event,
    checked_name,
    checked_note,
    event_of,
    write_lines,
)
from farthing.ledger.holding import Holding, usage_in
from farthing.ledger.ledger_change import (
    Memory,
    Question,
    Reader,
    Snapshot,
    Transaction,
    checked_account,
    entry_of,
    known,
)
from farthing.ledger.ledger_store import Store
from farthing.ledger.ledger_tables import ACCOUNTS
from farthing.ledger.partitions import Part
from farthing.ledger.people_sketches import PeopleSketches
from farthing.ledger.plan_requests import PlanRequests
from farthing.ledger.rights import Contents
from farthing.ledger.tamper_evidence import Chain, Witness
from farthing.ledger.verification import Known, Progress, Verification, rows, verify_store
from farthing.privacy.events import Event, checked_count, checked_delta
from farthing.privacy.units import Unit

_DATASETS = f"SELECT dataset FROM {ACCOUNTS} WHERE analyst = '' ORDER BY dataset"
_STATES = f"SELECT dataset, sequence, state, mac FROM {ACCOUNTS} WHERE analyst = '' ORDER BY dataset"
_ANALYSTS = f"SELECT analyst FROM {ACCOUNTS} WHERE dataset = ? AND analyst <> '' ORDER BY analyst"
SourceText = str | tuple[str, str]
"""What a table is known by; a pair for a pattern: the folder, and the steps below it."""

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
        """Where it was opened, as a command takes it, without a password; nothing if it was lent."""
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
        """What is known of a request id: its charge, state, answer and receipt; None if it was never charged.

        Args:
            request_id: The name of the request.

        Returns:
            What is stored, or None.

        Raises:
            NotAllowed: If an analyst asks for the request of somebody else.

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     charge = ledger.charge("survey", 0.25, request_id="r-1")
        ...     ledger.stored("r-1").state, ledger.stored("r-2")
        ('reserved', None)
        """
        name = checked_name(request_id, "request_id")
        reader = self._reader(Question(request_id=name))
        entry = reader.charge()
        if entry is None:
            return None
        check_owner(entry, self.actor, self.role)
        outcome = reader.outcome()
        state = state_after(outcome)
        answer = reader.answer(outcome) if outcome is not None and state == "released" else None
        return Stored(charge_of(self.id, entry, state), state, answer, self._receipt(outcome or entry))

    def receipt(self, request_id: str) -> Receipt | None:
        """The receipt of a request id: of its outcome, or of its charge while it waits.

        Args:
            request_id: The name of the request.

        Returns:
            The receipt, or None if the request was never charged.

        Raises:
            NotAllowed: If an analyst asks for the request of somebody else.

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     _ = ledger.charge("survey", 0.25, request_id="r-1")
        ...     ledger.receipt("r-1").epsilon
        0.25
        """
        record = self.stored(request_id)
        return None if record is None else record.receipt

    def last(self) -> int:
        """The number of the last entry."""
        return self._reader(Question()).last[0]

    def datasets(self) -> list[str]:
        """The names of all datasets.

        Returns:
            The names, sorted.

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     ledger.datasets()
        ['survey']
        """
        self._reader(Question())  # the head must be genuine
        with self._store.reading() as link:
            return [str(name) for (name,) in link.run(_DATASETS).fetchall()]

    def analysts(self, dataset: str) -> list[str]:
        """The names of all who have a grant in a dataset; not for analysts, who see their own."""
        name = checked_name(dataset, "dataset")
        if self.role == "analyst":
            raise NotAllowed(self.role, "see the grants of others")
        known(self._reader(Question(name)), name)
        with self._store.reading() as link:
            return [str(who) for (who,) in link.run(self._store.sql(_ANALYSTS), (name,)).fetchall()]

    def _holdings(self) -> dict[str, Holding]:
        """All accounts as they stand, by name, each checked against its signature."""
        self._reader(Question())
        with self._store.reading() as link:
            rows = link.run(_STATES).fetchall()
        return {str(name): checked_account(self._chain, self._memory, name, "", *row) for name, *row in rows}

    def sources(self) -> dict[str, frozenset[str] | None]:
        """By dataset, the signatures of the tables of its budget; None where an older version opened it."""
        return {name: holding.sources for name, holding in self._holdings().items()}

    def parts(self) -> dict[str, Part]:
        """By the name of its own account, every part of an account."""
        return {name: holding.part for name, holding in self._holdings().items() if holding.part is not None}

    def source_signatures(self, sources: Iterable[SourceText]) -> list[str]:
        """What the ledger stores of the texts that tables are known by: signatures under its key.

        Of a pair, the first text is signed, and the second stands after it as it is: the steps of a pattern.
        """
        pairs = (source if isinstance(source, tuple) else (str(source), "") for source in sources)
        return [f"{self._chain.source(text)} {below}".rstrip() for text, below in pairs]

    marks = source_signatures  # deprecated: the name before 0.1, there until 1.0

    def table_changed(self, request_id: str, table: str) -> bool | None:
        """Whether a table has another fingerprint than when a request was charged; None where nobody can tell.

        What it says depends on private rows, so that it is not for analysts.
        """
        if self.role == "analyst":
            raise NotAllowed(self.role, "see whether a table has changed")
        name = checked_name(request_id, "request_id")
        entry = self._reader(Question(request_id=name)).charge()
        signature = None if entry is None else entry.body.get("table")
        return None if not signature or not table else signature != self._chain.table(name, table)

    def digest(self, request_id: str) -> str:
        """The fingerprint that a request was charged with; nothing where it was never charged, or had none."""
        entry = self._reader(Question(request_id=checked_name(request_id, "request_id"))).charge()
        return "" if entry is None else str(entry.body["digest"])

    def budget(self, dataset: str, analyst: str | None = None) -> Budget:
        """The state of a budget: the dataset's own, or an analyst's grant in it.

        Args:
            dataset: The name of the dataset.
            analyst: Whose grant; by default the dataset's own budget.

        Returns:
            The budget as it is now.

        Raises:
            InvalidValue: If there is no such dataset or grant.
            NotAllowed: If an analyst asks for the grant of somebody else.

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     _ = ledger.charge("survey", 0.25, request_id="r-1")
        ...     ledger.budget("survey").remaining
        ApproxDP(epsilon=0.75, delta=0.0)
        """
        name = checked_name(dataset, "dataset")
        who = "" if analyst is None else checked_name(analyst, "analyst")
        if who and self.role == "analyst" and who != self.actor:
            raise NotAllowed(self.role, "see the grant of somebody else")
        reader = self._reader(Question(name, who))
        whole = known(reader, name)
        holding = reader.own() if who else whole
        if holding is None:
            left = whole.account.remaining_beside(whole.withheld())
            way_out = command_for_more(self.place, name, who, left, None)
            raise InvalidValue("analyst", who, f"must have a grant in {name!r}", way_out)
        return budget_standing(name, who, whole, holding, self.place, lambda: self._events(name, who))

    def accounts(self) -> list[Budget]:
        """All accounts: whom each protects, its budget, what is left, and its sources as people call them.

        Returns:
            The accounts, by name.

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("patients", 1.0, unit="person, add-remove", sources=["a"], titles=["visits.csv"])
        ...     [(each.dataset, each.unit, each.remaining.epsilon, each.sources) for each in ledger.accounts()]
        [('patients', 'person, add-remove', 1.0, ('visits.csv',))]
        """
        return [self.budget(name) for name in self.datasets()]

    def entries(self, dataset: str | None = None, since: int = 0) -> Iterator[Entry]:
        """All entries after `since` in order, or those of one dataset; an analyst sees those of their own grant.

        Args:
            dataset: Only entries that concern this dataset.
            since: The number of the entry after which to begin.

        Returns:
            An iterator that reads a page of entries at a time and checks the signature of each.

        Raises:
            LedgerTampered: If an entry is not the one that was written.

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     [entry.kind for entry in ledger.entries()]
        ['created', 'dataset']
        """
        name = None if dataset is None else checked_name(dataset, "dataset")
        first = min(checked_count(since, "since"), _LAST)
        return (
            entry
            for entry in self._entries(first)
            if (name is None or entry.is_about(name)) and (self.role != "analyst" or entry.analyst == self.actor)
        )

    def verify(self, receipt: Receipt | None = None, progress: Progress | None = None) -> Verification:
        """Read everything again and say whether it is what was written, and contains the receipt if one is given.

        Args:
            receipt: A receipt that the ledger must still contain.
            progress: Called with how many entries were read.

        Returns:
            Whether it verifies, and what is wrong with it.

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     ledger.verify().ok, ledger.verify().entries
        (True, 2)
        """
        memory = self._memory.copy()
        witness = self._witness.read(self._chain)  # before the snapshot, which is then no older
        known = Known(witness, self._witness.place, receipt, memory, self._notes)
        return verify_store(self._store, self._chain, known, progress)[0]

    def export(self, target: str | os.PathLike[str] | IO[str]) -> int:
        """Write all entries as JSON lines.

        Args:
            target: A path or an open text file.

        Returns:
            The number of entries.

        Raises:
            InvalidValue: If the path is a file of the ledger itself.

        >>> import io, tempfile
        >>> from farthing.ledger import open_ledger
        >>> lines = io.StringIO()
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     ledger.export(lines)
        1
        """
        if isinstance(target, str | os.PathLike):
            if self._store.is_own(Path(target)):
                raise InvalidValue("target", str(target), "must not be a file of the ledger", "name another")
            with Path(target).open("w", encoding="utf-8") as file:
                return write_lines(self.entries(), file)
        return write_lines(self.entries(), target)

    def close(self) -> None:
        """Close the connections; what was charged stays charged."""
        if not self._lent:
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

    def _reader(self, question: Question) -> Reader:
        def read(snapshot: Snapshot | None) -> Reader:
            reader = Reader(question, snapshot, self._chain, self._memory)
            reader.whole(), reader.own()  # compared with what was seen before anybody sees more
            reader.remember_seen()
            return reader

        return self._store.ask(question, read)

    def _receipt(self, entry: Entry) -> Receipt:
        receipt = Receipt.of(self.id, entry)
        assert receipt is not None
        return receipt

    def _entries(self, since: int = 0) -> Iterator[Entry]:
        """All entries, each checked against its signature."""
        while True:
            # A page at a time: a reader that is left half way must not hold up the database.
            with self._store.reading() as link:
                page = [entry_of(self._chain, row) for row in rows(self._store, link.run, since, one_page=True)]
            yield from page
            if not page:
                return
            since = page[-1].sequence

    def _events(self, dataset: str, analyst: str) -> Iterable[Event]:
        for entry in self._entries():
            mine = not analyst or (entry.analyst == analyst and entry.right is None)
            if entry.kind == "charge" and entry.is_about(dataset) and mine:
                yield event_of(entry.body["event"])


_Done = TypeVar("_Done")


class Ledger(OpenLedger):
    """Budgets, charges and answers in an append-only, signed store. Made by `farthing.open_ledger`.

    Args:
        store: Where the entries are.
        chain: The key that signs them.
        witness: What was seen of the ledger, kept outside it.
        memory: What this process has seen of it.
        actor: Who acts.
        role: "curator", "analyst" or "auditor".
        opening: What verifying it came to when it was opened.
        notes: What is not wrong with the ledger but about it.

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

    A curator's ledger can be lent to somebody else; it stays open until the one it was lent from is closed.

    >>> bob = ledger.acting("bob", "analyst")
    >>> bob.charge("census", 0.1, request_id="bob:1").analyst, bob.actor, bob.role
    ('bob', 'bob', 'analyst')
    >>> bob.acting("ada", "curator")
    Traceback (most recent call last):
        ...
    farthing.errors.NotAllowed: role 'analyst' may not let somebody else act; open the ledger as curator.
    >>> ledger.close(); folder.cleanup()
    """

    def acting(self, actor: str, role: str) -> Ledger:
        """The same open ledger with another actor and role; only a curator's can be lent.

        Args:
            actor: Who acts.
            role: "curator", "analyst" or "auditor".

        Returns:
            A ledger that stays open until the one it was lent from is closed.

        Raises:
            InvalidValue: If the role is not one of these.
            NotAllowed: If the role of this one is not "curator".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     ledger.acting("bob", "analyst").role
        'analyst'
        """
        self._only("let somebody else act", "curator")
        lent = Ledger(
            self._store,
            self._chain,
            self._witness,
            self._memory,
            checked_name(actor, "actor"),
            checked_choice(role, "role", ROLES),
            self._opening,
            self._notes,
        )
        lent._lent = True
        return lent

    @property
    def requests(self) -> PlanRequests:
        """What analysts have asked for, and what curators have allowed them."""
        return PlanRequests(self)

    @property
    def people(self) -> PeopleSketches:
        """What is kept of the people of each table, so that a curator can tell where they are again."""
        return PeopleSketches(self)

    # What a curator decides.

    def register(
        self,
        dataset: str,
        epsilon: float,
        delta: float = 0.0,
        *,
        unit: Unit | str = "",
        sources: Iterable[SourceText] = (),
        titles: Iterable[str] = (),
    ) -> Entry:
        """Open an account: a budget, and the people whom it protects.

        Args:
            dataset: The name of the dataset.
            epsilon: Its epsilon; rounded down to whole billionths.
            delta: Its delta; rounded down to whole units of 1e-40.
            unit: Whose privacy it is. Words such as "row, add-remove" or "person, replace" are stored as data: `row` is
                one row, and a column of that name is written in quotes. Other words are stored as they are, and no
                dataset has such a unit.
            sources: Texts by which tables are known whose people it protects (see `attach`).
            titles: What people call these tables.

        Returns:
            The entry.

        Raises:
            InvalidValue: If there is an account of that name, however it is spelled, or an argument has the wrong form.
            NotAllowed: If the role is not "curator".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     ledger.register("survey", epsilon=1.0, delta=1e-9, unit="person, add-remove").kind
        'dataset'
        """
        self._only("register a dataset", "curator")
        name, budget = checked_name(dataset, "dataset"), checked_budget(epsilon, delta)
        words = unit if isinstance(unit, Unit) else checked_note(unit, "unit")
        if isinstance(words, str):
            words = Unit.read(words) or words
        signatures, called = self.source_signatures(sources), [checked_name(title, "titles") for title in titles]
        budget_policy.refuse_spelling(name, self.datasets())
        return self._append(
            Question(name), lambda tx: budget_policy.register(tx, name, *budget, words, signatures, called)
        )

    def attach(self, dataset: str, sources: Iterable[SourceText], titles: Iterable[str] = ()) -> Entry | None:
        """Let an account stand for the people in further tables too; `Study.register` and `Curator.attach` do it.

        Whatever is computed from such a table is charged to this account, under whichever name it is asked for.

        Args:
            dataset: The name of the account.
            sources: Texts by which tables are known, as `farthing.data.table_identity` writes them. Only their
                signatures under the ledger's key are kept; of a pair, the second is kept as it is.
            titles: What people call these tables.

        Returns:
            The entry; None if the account stands for all of them already.

        Raises:
            InvalidValue: If there is no such account.
            NotAllowed: If the role is "auditor".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     ledger.attach("survey", ["survey.csv"]).kind, ledger.attach("survey", ["survey.csv"])
        ('source', None)
        """
        self._only("attach a source", "curator", "analyst")
        name, signatures = checked_name(dataset, "dataset"), self.source_signatures(sources)
        called = [checked_name(title, "titles") for title in titles]
        return self._append(Question(name), lambda tx: budget_policy.attach(tx, name, signatures, called))

    def open_part(self, part: Part, epsilon: float, delta: float, unit: Unit) -> Entry | None:
        """Open the account of a part of a partition that was charged; `Study.split` does it.

        Args:
            part: The part.
            epsilon: Its epsilon, which the charge of the partition reserved.
            delta: Its delta.
            unit: Whom it protects.

        Returns:
            The entry; None if it is open.

        Raises:
            InvalidValue: If no charge reserved it.
            NotAllowed: If the role is not "curator".
        """
        self._only("open a part", "curator")
        question, budget = Question(part.name, request_id=part.request_id), checked_budget(epsilon, delta)
        return self._append(question, lambda tx: budget_policy.open_part(tx, part, *budget, unit))

    def correct(self, dataset: str, changes: Mapping[str, tuple[str, str]], reason: str, source: str = "") -> Entry:
        """Write down that a declaration was corrected: the account, its budget and whom it protects stay as they are.

        Args:
            dataset: The name of the account.
            changes: By what was declared, such as a column, how it stood and how it stands now.
            reason: Why, in a few words that are not computed from rows.
            source: What people call the table.

        Returns:
            The entry.

        Raises:
            InvalidValue: If there is no such account, nothing changes, or the unit or neighbours would.
            NotAllowed: If the role is not "curator".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     ledger.correct("survey", {"age": ("0 to 110", "0 to 120")}, "some are older").kind
        'correction'
        """
        self._only("correct a declaration", "curator")
        name, body = checked_name(dataset, "dataset"), budget_policy.correction_body(changes, reason, source)
        return self._append(Question(name), lambda tx: budget_policy.correct(tx, name, body))

    def set_budget(self, dataset: str, epsilon: float, delta: float | None = None) -> Entry:
        """Give a dataset another budget.

        A raise is allowed, and is an entry that says so forever. A budget may be lowered below what was spent, but not
        to a delta at which no epsilon covers it.

        Args:
            dataset: The name of the dataset.
            epsilon: Its new epsilon.
            delta: Its new delta; by default it stays as it is.

        Returns:
            The entry.

        Raises:
            InvalidValue: If there is no such dataset, or an argument has the wrong form.
            NotAllowed: If the role is not "curator".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     ledger.set_budget("survey", 1.5).body["raised"], ledger.budget("survey").total.epsilon
        (True, 1.5)
        """
        self._only("set a budget", "curator")
        name, budget = checked_name(dataset, "dataset"), checked_change(epsilon, delta)
        return self._append(Question(name), lambda tx: budget_policy.set_budget(tx, name, *budget))

    def grant(self, dataset: str, analyst: str, epsilon: float, delta: float | None = None) -> Entry:
        """Let an analyst spend at most so much in all; the dataset's own budget still rules above it.

        Args:
            dataset: The name of the dataset.
            analyst: The name of the analyst.
            epsilon: The epsilon of the grant; a second grant replaces the first.
            delta: Its delta; by default a grant that is there keeps its own, and a new one has 0.

        Returns:
            The entry.

        Raises:
            InvalidValue: If there is no such dataset, or an argument has the wrong form.
            NotAllowed: If the role is not "curator".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     _ = ledger.grant("survey", "bob", 0.2)
        ...     ledger.budget("survey", "bob").remaining.epsilon
        0.2
        """
        self._only("grant a budget", "curator")
        name, who = checked_name(dataset, "dataset"), checked_name(analyst, "analyst")
        budget = checked_change(epsilon, delta)
        return self._append(Question(name, who), lambda tx: budget_policy.grant(tx, name, who, *budget))

    def reserve(self, dataset: str, epsilon: float, delta: float | None = None, name: str = "reserve") -> Entry:
        """Set aside a part of a budget under a name, for charges that name it.

        Args:
            dataset: The name of the dataset.
            epsilon: How much is set aside; 0 frees it.
            delta: Its delta; by default a reserve that is there keeps its own unless it is freed, and a new one has 0.
            name: The name of the reserve.

        Returns:
            The entry.

        Raises:
            InvalidValue: If there is no such dataset, or the budget does not have so much left.
            NotAllowed: If the role is not "curator".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     _ = ledger.reserve("survey", 0.25, name="spring")
        ...     ledger.budget("survey").remaining.epsilon
        0.75
        """
        self._only("set aside a reserve", "curator")
        whole, label = checked_name(dataset, "dataset"), checked_name(name, "name")
        budget = checked_change(epsilon, delta)
        return self._append(Question(whole), lambda tx: budget_policy.reserve(tx, whole, *budget, label))

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
        others: Iterable[str] = (),
        table: str = "",
        contents: Contents | None = None,
    ) -> Charge:
        """Charge an event, durably, before anything is computed; the same request id is never charged twice.

        Args:
            dataset: Whose budget pays.
            event: What is charged: an event, an epsilon, or an (epsilon, delta) pair.
            request_id: The name of the request.
            world: "planned" if the parameters were fixed in advance, "adaptive" if they depend on earlier answers.
            delta: The delta at which an event without a pure epsilon enters the plain sums; chosen by default.
            analyst: Whose grant pays too, if a curator charges for an analyst.
            digest: The caller's fingerprint of the request: a repeated request id must bring the same one.
            use_reserve: The reserve that pays, for curators.
            others: Further datasets whose people are touched: each pays from its own budget, all of them or none.
            table: A fingerprint of the rows, of which a signature is stored for `table_changed`.
            contents: What a policy looks at in a plan; without it no policy covers the charge.

        Returns:
            The charge, durable by now.

        Raises:
            BudgetExceeded: If it does not fit; then an entry says so and no account has changed.
            InvalidValue: If an argument has the wrong form, or the request id was charged for another request.
            NotAllowed: If the role may not charge.

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     first = ledger.charge("survey", 0.25, request_id="r-1")
        ...     again = ledger.charge("survey", 0.25, request_id="r-1")
        ...     first.repeated, again.repeated, ledger.budget("survey").remaining.epsilon
        (False, True, 0.75)
        """
        self._only("charge", "curator", "analyst")
        name = checked_name(dataset, "dataset")
        request = Request(
            name,
            self._spender(analyst),
            checked_event(event),
            checked_name(request_id, "request_id"),
            checked_choice(world, "world", WORLDS),
            None if delta is None else checked_delta(delta),
            checked_note(digest, "digest"),
            None if use_reserve is None else checked_name(use_reserve, "use_reserve"),
            tuple(sorted({checked_name(other, "others") for other in others} - {name})),
            self._chain.table(request_id, table) if table else "",
            contents,
        )
        return self._charged(request)

    def _charged(self, request: Request) -> Charge:
        if request.reserve is not None:
            self._only("use a reserve", "curator")
        quote = self._quoted(request)
        question = Question(request.dataset, request.analyst, request.request_id, fresh=True, others=request.others)
        outcome = self._append(question, lambda tx: charge_lifecycle.charge(tx, request, quote))
        if isinstance(outcome, tuple):
            raise refusal(outcome, request, self.place)
        return charge_lifecycle.charge_made(self.id, request, outcome)

    def admits(
        self,
        dataset: str,
        event: Event | float | tuple[float, float],
        *,
        delta: float | None = None,
        analyst: str | None = None,
        requested: bool = False,
    ) -> bool:
        """Whether `charge` with the same arguments would be admitted now; nothing is written.

        Args:
            dataset: Whose budget would pay.
            event: What would be charged: an event, an epsilon, or an (epsilon, delta) pair.
            delta: The delta at which an event without a pure epsilon would enter the plain sums.
            analyst: Whose grant would pay too.
            requested: Whether a curator would have to approve it first, so that no grant pays.

        Returns:
            True if the budget, and the grant if there is one, have room for it.

        Raises:
            InvalidValue: If there is no such dataset, or an argument has the wrong form.
            NotAllowed: If an analyst asks for the grant of somebody else.

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     ledger.admits("survey", 1.0), ledger.admits("survey", 1.5)
        (True, False)
        """
        return self.usage(dataset, event, delta=delta, analyst=analyst, requested=requested) <= 1

    def usage(
        self,
        dataset: str,
        event: Event | float | tuple[float, float],
        *,
        delta: float | None = None,
        analyst: str | None = None,
        requested: bool = False,
    ) -> float:
        """The part of what is left that `charge` with the same arguments would take; nothing is written.

        Of the clock, or of plain sums if that is less; of those it is squared, because what a clock pays grows with the
        square of an epsilon.

        Args:
            dataset: Whose budget would pay.
            event: What would be charged: an event, an epsilon, or an (epsilon, delta) pair.
            delta: The delta at which an event without a pure epsilon would enter the plain sums.
            analyst: Whose grant would pay too.
            requested: Whether a curator would have to approve it first, so that no grant pays.

        Returns:
            At most 1 if the budget, and the grant if there is one, have room for it; above 1 if not.

        Raises:
            InvalidValue: If there is no such dataset, or an argument has the wrong form.
            NotAllowed: If an analyst asks for the grant of somebody else.

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     ledger.usage("survey", 0.5), ledger.usage("survey", 1.5)
        (0.25, 2.25)
        """
        who = "" if requested else self._spender(analyst)
        name, priced = checked_name(dataset, "dataset"), checked_event(event)
        target_delta = None if delta is None else checked_delta(delta)
        reader = self._reader(Question(name, who))
        whole = known(reader, name)
        return usage_in([whole, reader.own()] if who else [whole], priced, target_delta)

    def release(self, charge: Charge, answer: str) -> Receipt:
        """Store the answer of a charge and mark it released; a charge that has an answer keeps the one it has.

        Args:
            charge: The charge that `charge` returned.
            answer: The answer as text, such as JSON.

        Returns:
            The receipt.

        Raises:
            InvalidValue: If the charge was forfeited.
            InvalidData: If the answer is not text that both databases can hold.
            NotAllowed: If the role is "auditor".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     receipt = ledger.release(ledger.charge("survey", 0.25, request_id="r-1"), '{"count": 41}')
        ...     receipt.state, ledger.stored("r-1").answer
        ('released', '{"count": 41}')
        """
        text = checked_answer(answer)
        words = {"answer": self._chain.answer(checked_charge(charge).request_id, text), "bytes": len(text.encode())}
        entry = self._settle("released", charge, words, text)
        if entry.kind != "released":
            rule = "was forfeited and cannot be released"
            raise InvalidValue("charge", charge.request_id, rule, "use a new request id")
        return self._receipt(entry)

    def forfeit(self, charge: Charge, reason: str) -> Receipt:
        """Mark a charge that will never have an answer; it stays spent. A released charge stays released.

        Args:
            charge: The charge that `charge` returned.
            reason: Why there is no answer, in a few words that are not computed from rows.

        Returns:
            The receipt.

        Raises:
            InvalidValue: If an argument has the wrong form.
            NotAllowed: If the role is "auditor".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     receipt = ledger.forfeit(ledger.charge("survey", 0.25, request_id="r-1"), "the engine died")
        ...     receipt.state, ledger.budget("survey").remaining.epsilon
        ('forfeited', 0.75)
        """
        return self._receipt(self._settle("forfeited", charge, {"reason": checked_name(reason, "reason")}))

    def _settle(self, kind: str, charge: Charge, words: dict[str, object], answer: str | None = None) -> Entry:
        self._only("settle a charge", "curator", "analyst")
        checked_charge(charge)
        question = Question(charge.dataset, charge.analyst, charge.request_id, others=charge.others)
        return self._append(question, lambda tx: charge_lifecycle.settle(tx, kind, charge, words, answer))

    def _spender(self, analyst: str | None) -> str:
        """Whose grant pays: an analyst's own; for a curator the dataset's budget alone, or a named analyst's."""
        if self.role != "analyst":
            return "" if analyst is None else checked_name(analyst, "analyst")
        if analyst is not None and checked_name(analyst, "analyst") != self.actor:
            raise NotAllowed(self.role, "spend the grant of somebody else", "spend your own")
        return self.actor

    def _quoted(self, request: Request) -> Quote | None:
        """The price and the entry, worked out before the lock is taken from the accounts as they were seen last."""
        dataset, analyst = request.dataset, request.analyst
        whole = self._memory.holding(dataset)
        own = self._memory.holding(dataset, analyst) if analyst else None
        if whole is None or (analyst and own is None):
            reader = self._reader(Question(dataset, analyst))
            whole, own = reader.whole(), reader.own()
        # With others, or rights that may cover it, it is quoted under the lock: few requests have them.
        late = bool(request.others) or (own is not None and bool(own.rights))
        return None if whole is None or late else quoted(request, whole, own)

    def _only(self, action: str, *roles: str) -> None:
        if self.role not in roles:
            raise NotAllowed(self.role, action, f"open the ledger as {' or '.join(roles)}")

    def _append(self, question: Question, act: Callable[[Transaction], _Done]) -> _Done:
        """What `act` returns, once the entry that it appended is durable."""
        outcomes: list[tuple[Transaction, _Done]] = []

        def decide(snapshot: Snapshot | None) -> Change | None:
            tx = Transaction(question, snapshot, self._chain, self._memory, self._actor, self._role)
            assert snapshot is not None
            # Nobody writes now, and others note what they wrote before: if that is not seen here, they write elsewhere.
            noted = self._witness.read(self._chain, known=snapshot.head[1:])
            tx.check_seen(noted, f"the witness {self._witness.place}", *tx.last)
            outcomes.append((tx, act(tx)))
            return tx.change

        def then(change: Change | None) -> None:
            outcomes[0][0].remember(change)
            if change is not None:
                self._witness.note(change.head)

        self._store.change(question, decide, then)
        return outcomes[0][1]

"""An open ledger, as far as it is read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from farthing.errors import InvalidValue, NotAllowed
from farthing.ledger.account_state import Holding
from farthing.ledger.budget import Budget, budget_standing
from farthing.ledger.charge_lifecycle import (
    charge_of,
    check_owner,
    command_to_let_ask,
    state_after,
)
from farthing.ledger.entries import (
    Entry,
    Receipt,
    Stored,
    checked_name,
    event_of,
    write_lines,
)
from farthing.ledger.ledger_change import (
    Memory,
    Question,
    Reader,
    Snapshot,
    checked_account,
    entry_of,
    known,
)
from farthing.ledger.ledger_store import Store
from farthing.ledger.ledger_tables import ACCOUNTS
from farthing.ledger.partitions import Part
from farthing.ledger.table_versions import TableVersions
from farthing.ledger.tamper_evidence import Chain, Witness
from farthing.ledger.verification import Known, Progress, Verification, rows, verify_store
from farthing.numerics.bounds import number_text
from farthing.numerics.notebook_tables import html_table, share_bar
from farthing.privacy.events import Event, checked_count

_DATASETS = f"SELECT dataset FROM {ACCOUNTS} WHERE analyst = '' ORDER BY dataset"
_STATES = f"SELECT dataset, sequence, state, mac FROM {ACCOUNTS} WHERE analyst = '' ORDER BY dataset"
_ANALYSTS = f"SELECT analyst FROM {ACCOUNTS} WHERE dataset = ? AND analyst <> '' ORDER BY analyst"
SourceText = str | tuple[str, str]
"""What a table is known by; a pair for a pattern: the folder, and the steps below it."""

_LAST = 2**63 - 1  # the largest number of an entry that a database can be asked about


class LedgerReader:
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
    def is_lent(self) -> bool:
        """Whether a process that has it open for others lent it, as a server does."""
        return self._lent

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
            # Other threads wait until they are checked: what they write next would make these look like old ones.
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

    def versions(self, dataset: str | None = None) -> TableVersions:
        """Which version of its table each request was charged for; not for analysts, because it depends on rows.

        Args:
            dataset: Only requests that this account paid for; by default all.

        Returns:
            The versions by request id (`by_request`); charges of older versions of farthing have none.

        Raises:
            NotAllowed: If the role is "analyst".

        >>> import tempfile
        >>> from farthing.ledger import open_ledger
        >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
        ...     _ = ledger.register("survey", 1.0)
        ...     for rows in ("as in May", "as in June"):
        ...         _ = ledger.charge("survey", 0.1, request_id=rows, table=rows, source=("survey", "survey.csv"))
        ...     print(ledger.versions().by_request["as in June"])
        version 2 of survey.csv
        """
        if self.role == "analyst":
            raise NotAllowed(self.role, "see which version of a table was read")
        return TableVersions(self._chain).read(self.entries(dataset))

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
            way_out = command_to_let_ask(self.place, name, who)
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

    def _repr_html_(self) -> str:
        rows = []
        for name in self.datasets():
            budget = self.budget(name, self.actor if self.role == "analyst" else None)
            total = budget.total.epsilon
            bar = share_bar([budget.spent_upper / total]) if total > 0 else ""
            rows.append([name, number_text(total), number_text(budget.spent_upper), budget.count, bar])
        heads = ["account", "epsilon", "spent", "charges", ""]
        return html_table(heads, rows, title=f"Ledger {self._store.name}, as {self.role}", numbers=[1, 2, 3])

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

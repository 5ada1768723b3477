"""Which release stands where in a repository, in a ledger: its persistent identifier, and who is depositing just now.

An entry charges nothing and changes no account. It holds the address of a repository and the identifier of a dataset,
both of which the dataset shows to everybody who may see it; a token is never given to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields

from farthing.errors import InvalidValue, LedgerUnavailable
from farthing.ledger.entries import Entry, Receipt, checked_name, checked_note
from farthing.ledger.ledger_change import Question, Transaction, entry_of, known
from farthing.ledger.ledger_tables import COLUMNS, ENTRIES
from farthing.ledger.people_sketches import Doors
from farthing.ledger.tamper_evidence import canonical

PATIENCE = 15 * 60 * 10**9  # nanoseconds after which a deposit that says nothing counts as left
DEPOSIT = "deposit"
_DEPOSITS = f"SELECT {', '.join(COLUMNS)} FROM {ENTRIES} WHERE kind = '{DEPOSIT}' ORDER BY sequence"
_ENTRY = f"SELECT {', '.join(COLUMNS)} FROM {ENTRIES} WHERE sequence = ?"
_TRIES = 1_000


@dataclass(frozen=True)
class DepositRecord:
    """What a ledger says of one deposit.

    Args:
        account: The account that paid for the release.
        publication: The name of the publication, which its versions share.
        version: Its version.
        release: The number of the entry of the release.
        server: The address of the repository.
        persistent_id: The dataset; empty while it is created.
        digest: The digest of the manifest.
        state: "creating", "uploading", "done" or "published".
        attempt: A random name of whoever deposits.
        running: Whether the deposit goes on after this was written.
        time_ns: What the writer's clock showed.

    >>> DepositRecord("survey", "health", 2, 4, "https://d.org", "doi:10.5072/A", state="published").words
    'health, version 2 (entry 4): doi:10.5072/A at https://d.org, published'
    """

    account: str
    publication: str
    version: int
    release: int
    server: str
    persistent_id: str = ""
    digest: str = ""
    state: str = ""
    attempt: str = ""
    running: bool = False
    time_ns: int = 0

    @property
    def words(self) -> str:
        """What it says, for people."""
        name = f"{self.publication}, version {self.version} (entry {self.release})"
        if not self.persistent_id:
            return f"{name}: the creation of a dataset at {self.server} has begun"
        going = "being deposited" if self.running else "broken off"
        state = {"done": "a draft", "published": "published"}.get(self.state, going)
        return f"{name}: {self.persistent_id} at {self.server}, {state}"

    @classmethod
    def of(cls, entry: Entry) -> DepositRecord:
        """The record that an entry of this kind holds."""
        said = {name: value for name, value in entry.body.items() if name in _IN_BODY}
        return cls(account=entry.dataset, time_ns=entry.time_ns, **said)

    def is_under_way(self, now: int) -> bool:
        """Whether somebody may be at it still."""
        return self.running and abs(now - self.time_ns) < PATIENCE

    def _body(self) -> str:
        checked_name(self.publication, "publication")
        for name in ("persistent_id", "digest", "state", "attempt"):
            checked_note(getattr(self, name), name)
        if "@" in checked_name(self.server, "server") or "?" in self.server:
            raise InvalidValue("server", "...", "must be an address without a name, a password or options")
        return canonical({name: value for name, value in asdict(self).items() if name in _IN_BODY})


_IN_BODY = frozenset(each.name for each in fields(DepositRecord)) - {"account", "time_ns"}


class DepositRecords:
    """The deposits of a ledger's releases; `Ledger.deposits`.

    Args:
        ledger: The open ledger.

    >>> import tempfile
    >>> from farthing.ledger import open_ledger
    >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
    ...     _ = ledger.register("survey", 1.0)
    ...     made = DepositRecord("survey", "health", 1, 4, "https://d.org", "doi:10.5072/A", state="done")
    ...     ledger.deposits.keep(made).kind, ledger.deposits.keep(made), len(ledger.deposits.all())
    ('deposit', None, 1)
    """

    def __init__(self, ledger: Doors) -> None:
        self._ledger = ledger

    def all(self) -> list[DepositRecord]:
        """Everything that was written down, in order.

        Raises:
            NotAllowed: If the role is neither "curator" nor "auditor".
        """
        self._ledger._only("see deposits", "curator", "auditor")
        self._ledger._reader(Question())  # the head must be genuine
        with self._ledger._store.reading() as link:
            entries = [entry_of(self._ledger._chain, row) for row in link.run(_DEPOSITS).fetchall()]
        return [DepositRecord.of(entry) for entry in entries]

    def receipt(self, release: int) -> Receipt | None:
        """The receipt of a release, by the number of its entry; without the names of whoever asked for it.

        Args:
            release: The number.

        Returns:
            The receipt; None if the entry is no release.

        Raises:
            NotAllowed: If the role is neither "curator" nor "auditor".
        """
        self._ledger._only("see deposits", "curator", "auditor")
        with self._ledger._store.reading() as link:
            entries = [entry_of(self._ledger._chain, row) for row in link.run(_ENTRY, (release,)).fetchall()]
        if not entries or entries[0].kind != "released":
            return None
        receipt = Receipt.of(self._ledger._chain.ledger, entries[0])
        return None if receipt is None else receipt.without_names()

    def keep(
        self, record: DepositRecord, allowed: Callable[[Sequence[DepositRecord]], object] = lambda _: None
    ) -> Entry | None:
        """Write a record down, unless the last one of its release and server says the same and nothing runs.

        Args:
            record: What is to be written.
            allowed: Called with all records; what it raises is raised, and nothing is written. Nobody else writes
                between this look and the entry.

        Returns:
            The entry; None if it stands there already.

        Raises:
            InvalidValue: If there is no such account, or a part has the wrong form.
            LedgerUnavailable: If others write all the time.
            NotAllowed: If the role is not "curator".
        """
        self._ledger._only("write down a deposit", "curator")
        name, body = checked_name(record.account, "account"), record._body()
        for _ in range(_TRIES):
            head = self._ledger._reader(Question()).last[0]
            before = self.all()
            allowed(before)
            own = [each for each in before if (each.release, each.server) == (record.release, record.server)]
            if own and own[-1]._body() == body and not record.running:
                return None

            def append(tx: Transaction, head: int = head) -> Entry | None:
                known(tx, name)
                return tx.append(DEPOSIT, name, body) if tx.last[0] == head else None

            entry = self._ledger._append(Question(name), append)
            if entry is not None:
                return entry
        raise LedgerUnavailable("others write to it all the time; try again")

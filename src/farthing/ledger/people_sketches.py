"""Sketches of the people of tables, in a ledger: sealed under its key, for curators alone.

An entry holds the sketch of one table. Analysts do not see such entries, and whoever sees them without the key learns
nothing but that there is a sketch: all are of one length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from farthing.ledger.entries import Entry, checked_name
from farthing.ledger.ledger_change import Question, Reader, Transaction, entry_of, known
from farthing.ledger.ledger_store import Store
from farthing.ledger.ledger_tables import COLUMNS, ENTRIES
from farthing.ledger.tamper_evidence import Chain, canonical

_PEOPLE = f"SELECT {', '.join(COLUMNS)} FROM {ENTRIES} WHERE kind = 'people' ORDER BY sequence"
_AGES = f"SELECT dataset FROM {ENTRIES} WHERE dataset <> '' GROUP BY dataset ORDER BY MIN(sequence)"
_Done = TypeVar("_Done")


class Doors(Protocol):
    """What sketches need of an open ledger."""

    def source_signatures(self, sources: Iterable[str]) -> list[str]:
        """What the ledger stores of the names of tables."""

    def _only(self, action: str, *roles: str) -> None: ...

    def _append(self, question: Question, act: Callable[[Transaction], _Done]) -> _Done: ...

    def _reader(self, question: Question) -> Reader: ...

    _store: Store
    _chain: Chain


class PeopleSketches:
    """The sketches that a ledger keeps; `Ledger.people`.

    Args:
        ledger: The open ledger.

    >>> import tempfile
    >>> from farthing.ledger import open_ledger
    >>> with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/study.db") as ledger:
    ...     _ = ledger.register("survey", 1.0)
    ...     _ = ledger.people.keep("survey", "survey.csv", b"sketch", "of May")
    ...     print([list(tables.values()) for tables in ledger.people.all().values()])
    ...     print([ledger.people.has("survey", "survey.csv", version) for version in ("of May", "of June")])
    [[b'sketch']]
    [True, False]
    """

    def __init__(self, ledger: Doors) -> None:
        self._ledger = ledger

    def all(self) -> dict[str, dict[str, bytes]]:
        """By account, the last sketch of each of its tables, by the table's signature.

        Returns:
            The sketches as they were kept.

        Raises:
            NotAllowed: If the role is not "curator".
        """
        chain = self._ledger._chain
        by_account: dict[str, dict[str, bytes]] = {}
        for entry in self._entries():
            by_account.setdefault(entry.dataset, {})[str(entry.body["source"])] = chain.opened(entry.body["sketch"])
        return by_account

    def has(self, account: str, source: str, version: str) -> bool:
        """Whether the last sketch of a table was made of this version of it.

        Args:
            account: The name of the account.
            source: A text that names the table, as `keep` was given it.
            version: A text that differs when the table does.

        Returns:
            False also where there is none.

        Raises:
            NotAllowed: If the role is not "curator".
        """
        table, made_of = self._ledger.source_signatures([source, version])
        about = [entry.body for entry in self._entries() if (entry.dataset, entry.body["source"]) == (account, table)]
        return bool(about) and about[-1].get("version") == made_of

    def keep(self, account: str, source: str, sketch: bytes, version: str = "") -> Entry | None:
        """Keep a sketch of the people of a table.

        Args:
            account: The name of the account that protects them.
            source: A text that names the table (see `Ledger.attach`).
            sketch: What is kept of its people.
            version: A text that differs when the table does, for `has`.

        Returns:
            The entry; None if the last sketch of the table is this one, of this version.

        Raises:
            InvalidValue: If there is no such account.
            NotAllowed: If the role is not "curator".
        """
        name, (table, made_of) = checked_name(account, "account"), self._ledger.source_signatures([source, version])
        if self.has(name, source, version) and self.all()[name][table] == sketch:
            return None
        body = canonical({"sketch": self._ledger._chain.sealed(sketch), "source": table, "version": made_of})

        def append(tx: Transaction) -> Entry:
            known(tx, name)
            return tx.append("people", name, body)

        return self._ledger._append(Question(name), append)

    def oldest_first(self) -> list[str]:
        """The names of all accounts in the order in which they were opened."""
        self._ledger._only("see whose people tables share", "curator")
        with self._ledger._store.reading() as link:
            return [str(name) for (name,) in link.run(_AGES).fetchall()]

    def _entries(self) -> list[Entry]:
        """The entries that hold sketches; few, whatever else the ledger holds."""
        self._ledger._only("see whose people tables share", "curator")
        self._ledger._reader(Question())  # the head must be genuine
        store = self._ledger._store
        with store.reading() as link:
            return [entry_of(self._ledger._chain, row) for row in link.run(_PEOPLE).fetchall()]

"""A small ledger in which everything has happened that can happen, and copies of it at earlier moments."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from farthing.errors import BudgetExceeded
from farthing.ledger import Ledger, Receipt
from system.ledger.places import DATASET, Place

Rows = dict[str, list[dict[str, Any]]]


@dataclass
class History:
    """What happened: receipts in order, answers by request id, and how many charges there are."""

    receipts: list[Receipt] = field(default_factory=list)
    answers: dict[str, str | None] = field(default_factory=dict)

    def live(self, ledger: Ledger, times: int, start: int = 0) -> None:
        """Charges that are answered, left open, forfeited and refused, and budgets that change."""
        for n in range(start, start + times):
            request = f"request-{n}"
            charge = ledger.charge(DATASET, 0.01 * (1 + n % 3), request_id=request)
            self.answers[request] = None
            if n % 5 == 3:
                ledger.forfeit(charge, "stopped after 30 s")
            elif n % 5 != 4:
                self.answers[request] = f"answer {n}"
                self.receipts.append(ledger.release(charge, f"answer {n}"))
            if n % 7 == 6:
                ledger.set_budget("other", 2.0 + n, 1e-9)
                with pytest.raises(BudgetExceeded):
                    ledger.charge("other", 100.0 + n, request_id=f"too much {n}")


def made(place: Place, times: int) -> History:
    """A ledger with a history at `place`."""
    history = History()
    with place.open(actor="steward") as ledger:
        ledger.register(DATASET, 5.0, 1e-6)
        ledger.register("other", 1.0, 1e-9, unit="household")
        ledger.grant("other", "ada", 0.5)
        ledger.grant("other", "bob", 0.25, 1e-10)
        ledger.reserve("other", 0.1, name="census")
        ledger.charge("other", 0.125, request_id="ada's", analyst="ada")
        history.answers["ada's"] = None
        history.live(ledger, times)
    return history


def files_of(place: Place) -> list[Path]:
    """Everything on disk that belongs to a SQLite ledger: the database, its log, its key, its witness, its lock."""
    database = Path(place.url)
    return sorted(path for path in database.parent.glob(f"{database.name}*") if path.is_file())


def copied(place: Place, folder: Path, *, witness: bool = True) -> Place:
    """The same files elsewhere, as `cp` makes them; the witness may stay behind."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in files_of(place):
        if witness or not path.name.endswith(".witness"):
            shutil.copy2(path, folder / path.name)
    return Place(str(folder / Path(place.url).name), place.key)


def settled(place: Place) -> None:
    """Everything in the database file itself, nothing in its log."""
    with sqlite3.connect(place.url) as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()


def rows_of(place: Place) -> Rows:
    """All that the tables hold, read without farthing; raises `sqlite3.DatabaseError` if SQLite cannot."""
    store = sqlite3.connect(place.url)
    try:
        store.row_factory = sqlite3.Row
        names = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: [dict(row) for row in store.execute(f'SELECT * FROM "{name}"')]
            for name in names
            if not name.startswith("sqlite_")
        }
    finally:
        store.close()


def write_rows(place: Place, rows: Rows) -> None:
    """Put these rows in place of those that are there, as somebody with the file in hand can: without triggers."""
    store = sqlite3.connect(place.url, isolation_level=None)
    try:
        store.execute("PRAGMA synchronous = OFF")  # what is in the file matters, not when the disk has it
        triggers = store.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            store.execute(f'DROP TRIGGER "{name}"')
        store.execute("BEGIN")
        for table, own in rows.items():
            store.execute(f'DELETE FROM "{table}"')
            for row in own:
                columns = ", ".join(f'"{column}"' for column in row)
                marks = ", ".join("?" * len(row))
                store.execute(f'INSERT INTO "{table}" ({columns}) VALUES ({marks})', list(row.values()))
        store.execute("COMMIT")
        for _, sql in triggers:
            store.execute(sql)
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        store.close()

"""A ledger with the mistake that everybody makes first, for the harness to find: it looks, then it writes."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from farthing.errors import BudgetExceeded


@dataclass(frozen=True)
class ToyPlace:
    """Stands where a `Place` stands."""

    url: str
    key: str | None = None

    def open(self, **_: Any) -> ToyLedger:
        """Its ledger."""
        return ToyLedger(self.url)


@dataclass(frozen=True)
class ToyCharge:
    """What a client reads of a charge."""

    sequence: int
    repeated: bool = False


class ToyLedger:
    """Durable and in one file, but the sum is read before the transaction that writes."""

    def __init__(self, path: str) -> None:
        self._store = sqlite3.connect(path, timeout=60, isolation_level=None)
        self._store.execute("CREATE TABLE IF NOT EXISTS charges (sequence INTEGER PRIMARY KEY, epsilon REAL)")
        self._store.execute("CREATE TABLE IF NOT EXISTS budget (epsilon REAL)")

    def register(self, _: str, epsilon: float) -> None:
        """The one budget."""
        self._store.execute("INSERT INTO budget VALUES (?)", (epsilon,))

    def charge(self, _: str, epsilon: float, *, request_id: str, others: tuple[str, ...] = ()) -> ToyCharge:
        """Read, compare, write."""
        del request_id, others
        (spent,) = self._store.execute("SELECT coalesce(sum(epsilon), 0) FROM charges").fetchone()
        (total,) = self._store.execute("SELECT epsilon FROM budget").fetchone()
        if spent + epsilon > total + 1e-9:
            raise BudgetExceeded("too much", requested=epsilon, remaining=total - spent)
        written = self._store.execute("INSERT INTO charges (epsilon) VALUES (?)", (epsilon,))
        return ToyCharge(written.lastrowid or 0)

"""Where a ledger under test lives: a SQLite file, or a database of its own on a PostgreSQL of the tests."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farthing.ledger import Ledger, open_ledger

DATASET = "people"
OTHERS = ("crews", "planes")  # further accounts, which charges touch as well


def others_of(request: str) -> tuple[str, ...]:
    """The further accounts that pay for a request: none, one or both of them."""
    return OTHERS[: sum(request.encode()) % 3]


@dataclass(frozen=True)
class Place:
    """The address of a ledger and, for PostgreSQL, the file with its key; plain text, so it fits into a task."""

    url: str
    key: str | None = None

    def open(self, **options: Any) -> Ledger:
        """A ledger at this place; on a busy machine others may hold it for long."""
        return open_ledger(self.url, key=self.key, **{"timeout": 600.0} | options)

    def prepare(self, epsilon: float, delta: float = 0.0) -> None:
        """Make the ledger, with its accounts."""
        with self.open(actor="steward") as ledger:
            for name in (DATASET, *OTHERS):
                ledger.register(name, epsilon, delta)


def sqlite_place(folder: Path) -> Place:
    """A new file in `folder`."""
    return Place(str(folder / f"ledger-{uuid.uuid4().hex[:8]}.db"))


def postgres_place(facts: dict[str, Any], folder: Path) -> Place:
    """A new database on the server with these facts; its key will be in `folder`."""
    import psycopg

    name = f"ledger_{uuid.uuid4().hex[:12]}"
    administrator = {
        "host": facts["host"], "port": facts["port"], "dbname": "postgres",
        "user": "postgres", "password": facts["passwords"]["postgres"],
    }  # fmt: skip
    with psycopg.connect(**administrator, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} OWNER owner")
    password = facts["passwords"]["owner"]
    return Place(f"postgresql://owner:{password}@{facts['host']}:{facts['port']}/{name}", str(folder / f"{name}.key"))

"""A server's ledger, read from afar: budgets, entries, and whether it is what was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from farthing.client.connection import Connection, part
from farthing.client.studies import budget_from
from farthing.ledger import Budget, Receipt

_PAGE = 500


@dataclass(frozen=True, slots=True)
class RemoteEntry:
    """One line of a server's ledger, as far as the caller may see it."""

    sequence: int
    kind: str
    dataset: str
    analyst: str
    actor: str
    when: datetime
    request_id: str
    epsilon: float | None
    delta: float | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What a server found when it read its whole ledger again."""

    ok: bool
    entries: int
    problems: tuple[str, ...]
    notes: tuple[str, ...]


class RemoteLedger:
    """The account, from where one stands: an analyst sees their own grant and entries."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def datasets(self) -> list[str]:
        """The names of all datasets that may be seen."""
        return [str(one["name"]) for one in self._connection.get("/datasets")["datasets"]]

    def budget(self, dataset: str) -> Budget:
        """How a budget stands: the dataset's own, or an analyst's grant in it."""
        return budget_from(self._connection.get(f"/datasets/{part(dataset)}/budget"))

    def entries(self, dataset: str | None = None, since: int = 0) -> Iterator[RemoteEntry]:
        """All entries after `since` in order, or those of one dataset."""
        while True:
            page = self._connection.get("/ledger/entries", dataset=dataset, since=since, limit=_PAGE)
            yield from map(_entry, page["entries"])
            if page["next"] is None:
                return
            since = int(page["next"])

    def verify(self, receipt: Receipt | None = None) -> Verified:
        """Let the server read everything again, and say whether it contains the receipt if one is given."""
        body = {} if receipt is None else {"receipt": receipt.to_json()}
        found = self._connection.post("/ledger/verify", body)
        return Verified(
            bool(found["ok"]), int(found["entries"]), tuple(found["problems"]), tuple(found["notes"])
        )


def _entry(view: Mapping[str, Any]) -> RemoteEntry:
    return RemoteEntry(
        int(view["sequence"]),
        str(view["kind"]),
        str(view["dataset"]),
        str(view["analyst"] or ""),
        str(view["actor"]),
        datetime.fromisoformat(view["when"]),
        str(view["request_id"] or ""),
        view["epsilon"],
        view["delta"],
        str(view["sentence"]),
    )

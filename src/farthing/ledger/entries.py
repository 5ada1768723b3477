"""What a ledger holds and hands out: entries, charges, and the stored outcome of a request."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from farthing.privacy.events import Event

if TYPE_CHECKING:
    from farthing.ledger.receipts import Receipt

KINDS = (
    "created", "dataset", "source", "budget", "grant", "reserve", "charge", "released", "forfeited", "refused",
)  # fmt: skip
RESERVED, RELEASED, FORFEITED = "reserved", "released", "forfeited"
_LATEST = 2**63 - 1  # in the year 2262: the largest number that both databases hold


def clock() -> int:
    """What this machine's clock shows, in nanoseconds; one that is centuries off shows the nearest that can be kept.

    >>> clock() > 1_700_000_000_000_000_000
    True
    """
    return max(-_LATEST, min(time.time_ns(), _LATEST))


class Entry(NamedTuple):
    """One line of the ledger: never changed, never removed, signed together with the line before it.

    Order is `sequence`. `time_ns` is what the writer's clock showed, for people; nothing depends on it. `body` says
    what was done and at what price, `totals` how the accounts stood afterwards; both are kept as the text that is
    signed, and read when they are asked for. The fields are those of the table's columns, in their order.

    >>> entry = Entry(1, "created", "", "", "ada", "curator", 0, "", '{"format":2}', "", "0" * 64, "ab" * 32)
    >>> entry.when.year, entry.kind, entry.body, entry.totals
    (1970, 'created', {'format': 2}, {})
    """

    sequence: int
    kind: str
    dataset: str
    analyst: str
    actor: str
    role: str
    time_ns: int
    request_id: str
    body_text: str
    totals_text: str
    previous: str
    mac: str

    @property
    def body(self) -> dict[str, Any]:
        """What was done, as JSON-ready data of the caller's own."""
        data: dict[str, Any] = json.loads(self.body_text)
        return data

    @property
    def totals(self) -> dict[str, dict[str, Any]]:
        """The plain sums of the accounts after it, by analyst ("" is the dataset's own); empty if none changed."""
        data: dict[str, dict[str, Any]] = json.loads(self.totals_text) if self.totals_text else {}
        return data

    @property
    def others(self) -> tuple[str, ...]:
        """Further datasets whose budgets pay, or paid, with the first."""
        return tuple(self.body.get("others", ())) if '"others":' in self.body_text else ()

    def is_about(self, dataset: str) -> bool:
        """Whether it concerns the budget of a dataset."""
        return dataset == self.dataset or dataset in self.others

    @property
    def when(self) -> datetime:
        """The writer's clock, in UTC."""
        return datetime.fromtimestamp(self.time_ns // 10**9, UTC)

    def to_dict(self) -> dict[str, Any]:
        """The entry as JSON-ready data."""
        texts = {"body_text": ("body", self.body), "totals_text": ("totals", self.totals)}
        return dict(texts.get(name, (name, value)) for name, value in zip(self._fields, self, strict=True))


@dataclass(frozen=True, slots=True)
class Charge:
    """A durable charge: it counts as spent from this moment on, whatever happens next.

    `epsilon` and `delta` are its point in the plain sums, rounded up. `repeated` says that the request id had been
    charged before: nothing was charged now, and `state` says how far the earlier attempt came. `others` are further
    datasets whose budgets paid as well.

    >>> from farthing.privacy import ApproxDP
    >>> Charge("l", "census", "", "r-1", 3, ApproxDP(0.1), 0.1, 0.0, "reserved", False, "ab").request_id
    'r-1'
    """

    ledger: str
    dataset: str
    analyst: str
    request_id: str
    sequence: int
    event: Event
    epsilon: float
    delta: float
    state: str
    repeated: bool
    mac: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stored:
    """What the ledger knows of a request: the charge, its state, the answer if there is one, the receipt.

    >>> Stored.__slots__
    ('charge', 'state', 'answer', 'receipt')
    """

    charge: Charge
    state: str
    answer: str | None
    receipt: Receipt

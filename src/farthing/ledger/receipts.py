"""A receipt: what was charged and where it stands in the ledger, for someone who does not keep the ledger."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from farthing.errors import InvalidValue
from farthing.ledger.amounts import delta_up, epsilon_up
from farthing.ledger.entries import Entry

_KEYS = {
    "ledger": str, "dataset": str, "analyst": str, "request_id": str, "state": str, "sequence": int, "mac": str,
    "epsilon": float, "delta": float, "charges": int, "total_nano": int, "total_units": int, "time_ns": int,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Receipt:
    """One entry of a ledger, with its mark: later the ledger must still contain it, and everything before it.

    `mac` is the head of the chain when the entry was written. `epsilon` and `delta` are what was charged; `charges`,
    `total_nano` and `total_units` are the dataset's plain sums after it (billionths, 1e-40ths; -1 is infinite).

    >>> receipt = Receipt("l", "census", "", "r-1", "released", 4, "ab", 0.1, 0.0, 2, 300_000_000, 0, 0)
    >>> Receipt.from_json(receipt.to_json()) == receipt
    True
    """

    ledger: str
    dataset: str
    analyst: str
    request_id: str
    state: str
    sequence: int
    mac: str
    epsilon: float
    delta: float
    charges: int
    total_nano: int
    total_units: int
    time_ns: int

    @classmethod
    def of(cls, ledger: str, entry: Entry) -> Receipt | None:
        """The receipt of a charge or of its outcome; other entries have none."""
        if entry.kind not in ("charge", "released", "forfeited"):
            return None
        body, after = entry.body, entry.totals[""]
        return cls(
            ledger, entry.dataset, entry.analyst, entry.request_id,
            "reserved" if entry.kind == "charge" else entry.kind, entry.sequence, entry.mac,
            epsilon_of(body["nano"]), delta_up(body["units"]),
            after["count"], after["sum_nano"], after["sum_units"], entry.time_ns,
        )  # fmt: skip

    @property
    def when(self) -> datetime:
        """The writer's clock, in UTC."""
        return datetime.fromtimestamp(self.time_ns // 10**9, UTC)

    def to_dict(self) -> dict[str, Any]:
        """The receipt as JSON-ready data; an infinite epsilon is written as null."""
        data = asdict(self)
        return {**data, "epsilon": None if self.epsilon == float("inf") else self.epsilon}

    def to_json(self) -> str:
        """The receipt as text, one key a line."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Receipt:
        """The receipt that `to_json` wrote; anything else is refused."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            raise InvalidValue("receipt", text, "must be the JSON text of a receipt") from None
        if not isinstance(data, dict) or set(data) != set(_KEYS):
            raise InvalidValue("receipt", text, f"must have the keys {', '.join(_KEYS)}")
        if data["epsilon"] is None:
            data["epsilon"] = float("inf")
        for key, kind in _KEYS.items():
            if kind is float and type(data[key]) is int and abs(data[key]) < 2**53:
                data[key] = float(data[key])
            if type(data[key]) is not kind or data[key] != data[key]:
                raise InvalidValue(key, data[key], f"must be a JSON value of type {kind.__name__}")
        return cls(**data)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the receipt to a file and return its path; of what is there already only a receipt is replaced."""
        place = Path(path)
        if place.exists():
            try:
                Receipt.load(place)
            except (InvalidValue, UnicodeDecodeError):
                raise InvalidValue(
                    "path", str(path), "is a file of something else", "choose another"
                ) from None
        place.write_text(self.to_json(), encoding="utf-8")
        return place

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Receipt:
        """The receipt in a file."""
        return cls.from_json(Path(path).read_text(encoding="utf-8"))


def epsilon_of(nano: int) -> float:
    """Stored billionths as an epsilon; -1 is infinite."""
    return float("inf") if nano < 0 else epsilon_up(nano)

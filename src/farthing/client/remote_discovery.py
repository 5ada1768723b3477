"""Finding what nobody knows, on a server: the same words as `study.discover` of a local study."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from farthing.adaptive.discovery import Finding, finding_of
from farthing.client.http_connection import WAIT, Connection, part


@dataclass(frozen=True)
class RemoteSearch:
    """One thing that would be found: its price, what will be known, and what was found before."""

    name: str
    epsilon: float
    delta: float
    prediction: str
    finding: Finding | None


class RemoteDiscoveryPlan:
    """What will be searched, at which price, and what will be known; nothing is spent before `release()`."""

    def __init__(self, connection: Connection, dataset: str, asked: Mapping[str, Any], view: Mapping[str, Any]) -> None:
        self._connection, self._asked, self._view = connection, dict(asked), dict(view)
        self._path = f"/datasets/{part(dataset)}/discoveries"

    @property
    def searches(self) -> tuple[RemoteSearch, ...]:
        """All that is searched, each with its price."""
        return tuple(
            RemoteSearch(
                str(one["name"]),
                float(one["epsilon"]),
                float(one["delta"]),
                str(one["prediction"]),
                None if one["finding"] is None else finding_of(one["finding"]["facts"]),
            )
            for one in self._view["searches"]
        )

    @property
    def cost(self) -> float:
        """The sum of what the searches may cost."""
        return float(self._view["epsilon"])

    @property
    def delta(self) -> float:
        """The sum of their deltas."""
        return float(self._view["delta"])

    def release(self, progress: Callable[[float], None] | None = None) -> dict[str, Finding]:
        """Charge for each search and run it; what was found before is returned as it is, and costs nothing.

        Never more than `cost` is charged: what has become dearer is refused.
        """
        body = {**self._asked, "request_id": f"find-{secrets.token_hex(12)}", "confirmed_epsilon": self.cost}
        while True:  # the same request id is the same job, so that asking again only looks
            view = self._connection.post(self._path, {**body, "wait": WAIT})
            if view["state"] not in ("queued", "running"):
                break
            if progress is not None:
                progress(float(view["progress"]))
        return {str(one["name"]): finding_of(one["facts"]) for one in view["findings"]}

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data."""
        return dict(self._view)

    def __str__(self) -> str:
        return str(self._view["sentence"])

    def __repr__(self) -> str:
        return f"RemoteDiscoveryPlan({len(self.searches)} searches, nothing spent)"


def discovery_plan_at(
    connection: Connection, dataset: str, columns: tuple[str, ...], options: Mapping[str, Any]
) -> RemoteDiscoveryPlan:
    """The plan of a search as a server prices it; what is left open stays out."""
    asked = {"columns": list(columns), **{name: value for name, value in options.items() if value is not None}}
    view = connection.post(f"/datasets/{part(dataset)}/discoveries/price", asked)
    return RemoteDiscoveryPlan(connection, dataset, asked, view)

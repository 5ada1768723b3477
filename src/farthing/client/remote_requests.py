"""Requests and policies on a server: the same words as `ledger.requests` of a local ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from farthing.client.http_connection import Connection, awaited, part, refusal_of
from farthing.client.remote_plan import RemotePlan, release_from, request_from
from farthing.ledger import PlanRequest, Policy
from farthing.study import Release


class RemoteRequests:
    """What analysts have asked for on a server, and what curators have allowed them; `client.requests`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self, dataset: str | None = None, state: str | None = None) -> list[PlanRequest]:
        """All requests that the token may see, oldest first; `one` has the whole of each."""
        query = {name: value for name, value in (("dataset", dataset), ("state", state)) if value is not None}
        return [request_from(view) for view in reversed(self._connection.get("/requests", **query)["requests"])]

    def one(self, request: int) -> PlanRequest:
        """A request by its number, with the errors that were shown, the risk as odds and all its steps."""
        return request_from(self._connection.get(f"/requests/{int(request)}"))

    def approve(self, request: int | PlanRequest, *, expires: str | None = None) -> PlanRequest:
        """Allow exactly the plan that was asked for, once (curators)."""
        looked_at = request if isinstance(request, PlanRequest) else self.one(request)
        return self._step(looked_at.id, "approve", {"version": looked_at.version, **_known(expires=expires)})

    def change(
        self, request: int | PlanRequest, plan: RemotePlan, reason: str, *, expires: str | None = None
    ) -> PlanRequest:
        """Allow another plan in its place: a new version, which the analyst may release (curators)."""
        return self._step(request, "change", {"draft": plan.draft, "reason": reason, **_known(expires=expires)})

    def decline(self, request: int | PlanRequest, reason: str) -> PlanRequest:
        """Say no, or take an approval back that was not used (curators)."""
        return self._step(request, "decline", {"reason": reason})

    def withdraw(self, request: int | PlanRequest) -> PlanRequest:
        """Take back a request of your own."""
        return self._step(request, "withdraw", {})

    def release(self, request: int | PlanRequest, progress: Callable[[float], None] | None = None) -> Release:
        """Release the plan of a request of yours as it was approved, or as a curator changed it; once."""
        number = _number(request)
        name = self.one(number).name
        body = {"request": number, "request_id": name}
        view = awaited(self._connection, "/releases", body, progress, f"ask again as {name}")
        if view["state"] != "released":
            raise refusal_of(view["error"] or {"code": "internal", "message": str(view["sentence"])})
        document = self._connection.text(f"/releases/{part(view['request_id'])}/download", format="json")
        return release_from(document, repeated=False)

    def grant_policy(
        self,
        dataset: str,
        analyst: str,
        epsilon: float,
        delta: float = 0.0,
        *,
        per: str = "quarter",
        expires: str | None = None,
        statistics: Iterable[str] | None = None,
        columns: Iterable[str] | None = None,
        cell: int = 0,
    ) -> Policy:
        """Let an analyst release plans of some kind without asking: so much in every period (curators)."""
        body = {"epsilon": epsilon, "delta": delta, "per": per, "cell": cell}
        lists = {name: list(given) for name, given in (("statistics", statistics), ("columns", columns)) if given}
        path = f"/datasets/{part(dataset)}/policies/{part(analyst)}"
        return policy_from(self._connection.put(path, {**body, **lists, **_known(expires=expires)}))

    def policies(self, dataset: str | None = None) -> list[Policy]:
        """The policies that the token may see, with what is left of them."""
        return [policy_from(view) for view in self._connection.get("/policies", **_known(dataset=dataset))["policies"]]

    def _step(self, request: int | PlanRequest, word: str, body: Mapping[str, Any]) -> PlanRequest:
        path = f"/requests/{_number(request)}/{word}"
        return request_from(self._connection.post(path, body, repeatable=False))


def policy_from(view: Mapping[str, Any]) -> Policy:
    """The policy that a server sends, as the local class has it."""
    facts = {name: value for name, value in view.items() if name != "sentence"}
    for name in ("statistics", "columns"):
        facts[name] = None if facts[name] is None else tuple(facts[name])
    return Policy(**{**facts, "expires": datetime.fromisoformat(facts["expires"])})


def _number(request: int | PlanRequest) -> int:
    return request.id if isinstance(request, PlanRequest) else int(request)


def _known(**words: Any) -> dict[str, Any]:
    return {name: value for name, value in words.items() if value is not None}

"""A session of questions on a server: paid for once, then asked as often as it was made for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from farthing.adaptive.online import Answer
from farthing.client.connection import Connection, part
from farthing.client.jobs import awaited
from farthing.client.refusals import refusal_of
from farthing.study.words import shown


@dataclass(frozen=True)
class RemoteAnswererPlan:
    """What a session costs and promises, under the names of a local plan; all fixed when it is opened."""

    alpha: float
    queries: int
    updates: int
    epsilon: float
    delta: float
    error: int
    paid_error: int
    rows: int
    cells: int
    confidence: float
    promise: str
    caution: str | None
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON-ready data."""
        return asdict(self)

    def __str__(self) -> str:
        several = "1 answer" if self.updates == 1 else f"{self.updates:,} answers"
        cost = (
            f"It costs epsilon {shown(self.epsilon)}, once; {several} may be a surprise, all others are free."
        )
        return "\n".join([self.promise, cost, *filter(None, [self.caution]), *self.notes])


class RemoteAnswerer:
    """Answers to a stream of counting questions, as a local answerer gives them."""

    def __init__(self, connection: Connection, view: Mapping[str, Any]) -> None:
        self._connection = connection
        self._view = dict(view)

    def ask(self, question: str) -> Answer:
        """How many rows meet `question`; the same question has the same answer."""
        found = self._connection.post(f"/sessions/{part(self.request_id)}/ask", {"question": question})
        self._view["updates_left"], self._view["questions_left"] = (
            found["updates_left"],
            found["questions_left"],
        )
        error = None if found["error"] is None else round(found["error"])
        return Answer(round(found["value"]), error, bool(found["paid"]), self.rows)

    @property
    def request_id(self) -> str:
        """The session's own; `study.answerer(..., request_id=...)` takes it up again."""
        return str(self._view["id"])

    @property
    def plan(self) -> RemoteAnswererPlan:
        """What was paid and promised."""
        return plan_from(self._view["plan"])

    @property
    def rows(self) -> int:
        """The number of rows that the plan speaks of."""
        return max(1, self.plan.rows)

    @property
    def updates_left(self) -> int:
        """How many answers may still be paid for out of what the session has cost."""
        return int(self._view["updates_left"])

    @property
    def questions_left(self) -> int:
        """How many questions the promise still covers."""
        return int(self._view["questions_left"])

    @property
    def history(self) -> list[dict[str, Any]]:
        """What was asked and answered, oldest first."""
        found = self._connection.get(f"/sessions/{part(self.request_id)}")
        return [dict(one) for one in found["history"]]

    def __repr__(self) -> str:
        return f"RemoteAnswerer({self.request_id!r}, {self.updates_left} updates left)"


def opened(
    connection: Connection,
    body: Mapping[str, Any],
    request_id: str | None,
    progress: Callable[[float], None] | None,
) -> RemoteAnswerer:
    """Open a session, or take it up, and wait until it can be asked."""
    name = request_id or name_of(body)
    asked = {**body, "request_id": name}
    view = awaited(connection, "/sessions", asked, progress, f"take it up as {name}")
    if view["error"]:
        raise refusal_of(view["error"])
    if progress is not None:
        progress(1.0)
    return RemoteAnswerer(connection, view)


def name_of(body: Mapping[str, Any]) -> str:
    """The name of a session that was given none: the same words take up the same session.

    >>> name_of({"dataset": "people", "alpha": 0.05}) == name_of({"alpha": 0.05, "dataset": "people"})
    True
    """
    words = json.dumps(body, sort_keys=True, default=str)
    return f"answers-{hashlib.sha256(words.encode()).hexdigest()[:24]}"


def plan_from(view: Mapping[str, Any]) -> RemoteAnswererPlan:
    """The plan that a server tells."""
    told = {name: view[name] for name in RemoteAnswererPlan.__dataclass_fields__ if name != "notes"}
    return RemoteAnswererPlan(**told, notes=tuple(view.get("notes", ())))

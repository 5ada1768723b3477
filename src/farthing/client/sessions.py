"""A session of questions on a server: paid for once, then asked as often as it was made for."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

from farthing.adaptive.online import Answer
from farthing.client.connection import Connection, part
from farthing.client.refusals import refusal_of

_WAIT = 20.0  # seconds that the server may hold a request for us
_LOOK = 0.3  # seconds between two looks at a session that is being opened


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
    def plan(self) -> Mapping[str, Any]:
        """What was paid and promised."""
        return dict(self._view["plan"])

    @property
    def rows(self) -> int:
        """The number of rows that the plan speaks of."""
        return int(self._view["plan"].get("rows") or 1)

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
    name = request_id or f"answers-{secrets.token_hex(12)}"
    view = connection.post("/sessions", {**body, "request_id": name, "wait": _WAIT})
    while view["state"] in ("queued", "running"):
        if progress is not None:
            progress(float(view["progress"]))
        time.sleep(_LOOK)
        view = connection.get(f"/sessions/{part(view['id'])}")
    if view["error"]:
        raise refusal_of(view["error"])
    if progress is not None:
        progress(1.0)
    return RemoteAnswerer(connection, view)

"""Work that outlives a request: asked for once, then looked at until something became of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from farthing.client.connection import Connection, part

WAIT = 20.0  # seconds that the server may hold a request for us
_LOOK = 0.3  # seconds between two looks at what is waiting or running


def awaited(
    connection: Connection,
    path: str,
    body: Mapping[str, Any],
    progress: Callable[[float], None] | None,
    again: str,
) -> dict[str, Any]:
    """What became of the job that `body` asks for; whoever interrupts the wait is told that they can ask `again`."""
    try:
        view: dict[str, Any] = connection.post(path, {**body, "wait": WAIT})
        while view["state"] in ("queued", "running"):
            if progress is not None:
                progress(float(view["progress"]))
            time.sleep(_LOOK)
            view = connection.get(f"{path}/{part(view.get('request_id') or view['id'])}")
    except KeyboardInterrupt as stopped:
        stopped.add_note(f"the server goes on, and what it charges stays spent; {again}")
        raise
    return view

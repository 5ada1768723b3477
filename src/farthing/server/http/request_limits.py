"""Limits on a request: how long its head and body may take to arrive, and how long the body may be.

Uvicorn waits forever for the rest of a request. A few hundred connections that send nothing, from anybody on the
network, would use up the files that a process may open, and nobody else could connect.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from farthing.errors import RequestRefused
from farthing.server.http.error_envelope import refusal
from farthing.server.settings import Settings

HEAD = 20.0  # seconds for the lines of a request, from the first moment of a connection
BODY = 60.0  # seconds for what follows them, of which there is little


class TimedProtocol(H11Protocol):
    """Uvicorn's way of reading requests, with a limit of time for each; answers may take as long as they like."""

    _stage: tuple[int, str] | None = None
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The clock runs from here on."""
        super().connection_made(transport)
        self._look()

    def data_received(self, data: bytes) -> None:
        """Some more of a request."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """The next request may come."""
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Restart the clock when another part of a request is expected; a part that drips does not stop it."""
        stage = self._expected()
        if stage == self._stage:
            return
        self._cancel()
        self._stage = stage
        if stage[1] != "nothing":
            self._wait(HEAD if stage[1] == "head" else BODY)

    def _expected(self) -> tuple[int, str]:
        cycle: Any = self.cycle
        if cycle is not None and cycle.more_body:
            return id(cycle), "body"
        if cycle is not None and not cycle.response_complete:
            return id(cycle), "nothing"
        return id(cycle), "head"

    def _wait(self, seconds: float) -> None:
        self._timer = self.loop.call_later(seconds, self._give_up, seconds)

    def _give_up(self, seconds: float) -> None:
        cycle: Any = self.cycle
        if cycle is not None and cycle.more_body and cycle.body and not cycle.response_complete:
            self._wait(seconds)  # what has come was not read yet: it is our turn
        elif not self.transport.is_closing():
            self.transport.abort()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class BodyLimit:
    """Stops reading a body that is larger than any valid one."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.limit = settings.body_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on; reading past the limit raises, and what was announced too large is refused at once."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        if not announced.isdecimal() or int(announced[:20]) > self.limit:
            await refusal(
                RequestRefused("too_large", f"the body must be at most {self.limit:,} bytes; send less at once.")
            )(scope, receive, send)
            return
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self.limit:
                raise HTTPException(413)
            return message

        await self.app(scope, counted, send)

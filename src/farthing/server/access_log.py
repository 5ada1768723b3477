"""One line per request, and one per failure: who, what, how it ended, and never what was said.

Query strings, cookies, bodies and the words of exceptions stay out: the first three hold secrets, and an engine's
words may quote a row.
"""

from __future__ import annotations

import logging
import secrets
import time
import traceback
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from farthing.errors import RequestRefused
from farthing.server.envelope import refusal
from farthing.server.metrics import Metrics
from farthing.server.settings import Settings

requests = logging.getLogger("farthing.server.requests")
failures = logging.getLogger("farthing.server.failures")


class AccessLog:
    """Counts, times and logs every request."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics
        self.speaks = settings.log_requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and note how it ended."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, started = 500, time.perf_counter()
        scope.setdefault("state", {})["request_number"] = number = secrets.token_hex(6)

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            seconds = time.perf_counter() - started
            self.metrics.count(_template(scope), scope["method"], status, seconds)
            if self.speaks:
                who = getattr(scope["state"].get("caller"), "name", "-")
                path = quote(scope["path"], safe="/:@-._~")[:200]
                client = (scope.get("client") or ("-",))[0]
                requests.info(
                    "%s %s %s %s %d %.0fms %s",
                    client, who, scope["method"][:10], path, status, 1000 * seconds, number,
                )  # fmt: skip


class Failures:
    """Whatever nobody foresaw becomes a 500 with a number, under which the log says where it happened."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on; an exception ends here."""
        started = False

        async def noted(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, noted)
        except Exception as problem:
            if scope["type"] != "http":
                raise
            number = scope.get("state", {}).get("request_number", "-")
            failures.error("%s %s", number, where_it_failed(problem))
            if started:
                raise ConnectionAbortedError("the response had begun") from None
            refused = RequestRefused("internal", f"something went wrong; the log has it under {number}.")
            await refusal(refused)(scope, receive, send)


def where_it_failed(problem: BaseException) -> str:
    """The kind of an exception and the lines it came through, without its words, which may quote a row.

    >>> try:
    ...     {}["a private cell"]
    ... except KeyError as problem:
    ...     print(where_it_failed(problem))
    KeyError at <doctest ...>:2 <module>
    """
    lines: list[str] = []
    seen: BaseException | None = problem
    while seen is not None and len(lines) < 5:
        frames = traceback.extract_tb(seen.__traceback__)[-12:]
        places = " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
        lines.append(f"{type(seen).__name__} at {places}")
        seen = seen.__cause__ or seen.__context__
    return " | after ".join(lines)


def _template(scope: Scope) -> str:
    return str(getattr(scope.get("route"), "path", "unknown"))

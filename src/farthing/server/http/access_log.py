"""One line per request, and one per failure: who, what, how it ended, and never what was said.

Query strings, cookies, bodies and the texts of exceptions stay out: the first three hold secrets, and an engine's
text may quote a row.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
import traceback
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from farthing.errors import RequestRefused
from farthing.server.http.error_envelope import refusal
from farthing.server.settings import Settings

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """What this process has answered since it started.

    >>> metrics = Metrics()
    >>> metrics.count("/healthz", "GET", 200, 0.003)
    >>> print(metrics.text({"queued": 2}))
    # HELP farthing_requests_total Requests answered.
    # TYPE farthing_requests_total counter
    farthing_requests_total{route="/healthz",method="GET",status="200"} 1
    ...
    farthing_jobs{state="queued"} 2
    <BLANKLINE>
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._durations: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Note one request; `route` is the template, never the path that was asked for."""
        with self._lock:
            self._requests[route, method if method in _METHODS else "other", status] += 1
            self._durations.setdefault(route, [0] * (len(BUCKETS) + 1))[bisect_left(BUCKETS, seconds)] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]

    def text(self, jobs: Mapping[str, int]) -> str:
        """All counters in the text format that Prometheus reads."""
        with self._lock:
            requests = sorted(self._requests.items())
            durations = sorted((route, list(counts)) for route, counts in self._durations.items())
            seconds = dict(self._seconds)
        lines = _headed("farthing_requests_total", "counter", "Requests answered.")
        lines += [
            f'farthing_requests_total{{route="{route}",method="{method}",status="{status}"}} {count}'
            for (route, method, status), count in requests
        ]
        name = "farthing_request_duration_seconds"
        lines += _headed(name, "histogram", "How long requests took.")
        for route, counts in durations:
            total = 0
            for bound, count in zip((*BUCKETS, "+Inf"), counts, strict=True):
                total += count
                lines.append(f'{name}_bucket{{route="{route}",le="{bound}"}} {total}')
            lines.append(f'{name}_sum{{route="{route}"}} {seconds[route]:.6f}')
            lines.append(f'{name}_count{{route="{route}"}} {total}')
        lines += _headed("farthing_jobs", "gauge", "Releases and query sessions by state.")
        lines += [f'farthing_jobs{{state="{state}"}} {count}' for state, count in sorted(jobs.items())]
        return "\n".join(lines) + "\n"


def _headed(name: str, kind: str, words: str) -> list[str]:
    return [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]


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
                    client,
                    who,
                    scope["method"][:10],
                    path,
                    status,
                    1000 * seconds,
                    number,
                )


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
            refused = RequestRefused("internal", f"something went wrong; the log has the details under {number}.")
            await refusal(refused)(scope, receive, send)


def where_it_failed(problem: BaseException) -> str:
    """The kind of an exception and the lines it came through, without its text, which may quote a row.

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

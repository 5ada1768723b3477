"""Before anything else looks at a request: is it for us, from our own page, and of a size that can be read?

Pure ASGI, so that a stream of events passes as it comes.
"""

from __future__ import annotations

from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from farthing.errors import RequestRefused
from farthing.server.auth.login_sessions import COOKIE
from farthing.server.http.error_envelope import refusal
from farthing.server.http.listen_address import Names
from farthing.server.settings import Settings

POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'"
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=(), interest-cohort=()",
}


def described_headers(headers: dict[str, str]) -> dict[str, Any]:
    """Headers as the description of a response has them.

    >>> described_headers({"Set-Cookie": "the session"})
    {'Set-Cookie': {'description': 'the session', 'schema': {'type': 'string'}}}
    """
    return {name: {"description": words, "schema": {"type": "string"}} for name, words in headers.items()}


class SafeHeaders:
    """Adds them to every response, and keeps every answer but the page's own files out of caches."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.headers = dict(HEADERS)
        if settings.is_https:
            self.headers["Strict-Transport-Security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on; the headers are added on the way back."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                found = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    found[name] = value
                found.setdefault("Cache-Control", "no-store")
            await send(message)

        await self.app(scope, receive, with_headers if scope["type"] == "http" else send)


_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Forwarded:
    """Believes a declared proxy, and nobody else, about who calls and whether they came over TLS."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.believed = settings.proxy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, with the facts the proxy has added."""
        if self.believed and scope["type"] == "http":
            headers = Headers(scope=scope)
            address = _last(headers, "x-forwarded-for")
            if address:
                scope["client"] = (address[:64], 0)
            if _last(headers, "x-forwarded-proto").lower() == "https":
                scope["scheme"] = "https"
        await self.app(scope, receive, send)


class Doors:
    """Refuses foreign hosts, and changes that another site's page has sent."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.names = Names(settings)
        self.origins = {settings.origin}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or refuse."""
        problem = self._problem(scope) if scope["type"] == "http" else None
        if problem is None:
            await self.app(scope, receive, send)
        else:
            await refusal(problem)(scope, receive, send)

    def _problem(self, scope: Scope) -> RequestRefused | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.names.allow(hosts[0]):
            return RequestRefused(
                "host_refused",
                "this server is not called by that name; use the address it printed, or start it with --allow-host.",
            )
        if scope["method"] in _SAFE or self._is_own(headers, f"{scope['scheme']}://{hosts[0].lower()}"):
            return None
        return RequestRefused("csrf", "this change comes from another site's page; use farthing's own.")

    def _is_own(self, headers: Headers, here: str) -> bool:
        """Whether a change comes from our page, or from a program, which has neither cookie nor origin."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None and site not in ("same-origin", "none"):
            return False
        if origin is not None:
            return origin.lower() in self.origins | {here}
        return site is not None or not _has_session(headers)


class BodyLimit:
    """Stops reading a body that is larger than any that is meant."""

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
                RequestRefused(
                    "too_large", f"the body must be at most {self.limit:,} bytes; send less at once."
                )
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


def _last(headers: Headers, name: str) -> str:
    """What our proxy has added, at the end of the line or in a line of its own; all before it the client claims."""
    return ",".join(headers.getlist(name)).rpartition(",")[2].strip()


def _has_session(headers: Headers) -> bool:
    return any(COOKIE in part for part in headers.getlist("cookie"))

"""The headers of every response: the Content-Security-Policy and its companions."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from farthing.publication.landing_page import STYLE_DIGEST
from farthing.server.settings import Settings

POLICY = (
    "default-src 'self'; "
    f"style-src 'self' '{STYLE_DIGEST}'; "  # of the landing page of a publication, which a preview shows in a frame
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'"
)
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
    return {name: {"description": description, "schema": {"type": "string"}} for name, description in headers.items()}


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
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self.app(scope, receive, with_headers if scope["type"] == "http" else send)

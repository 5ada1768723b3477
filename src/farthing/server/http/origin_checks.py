"""Before anything else looks at a request: is it for this server, and from its own page? And where a server may listen.

Pure ASGI, so that a stream of events passes as it comes.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from farthing.errors import InvalidValue, RequestRefused
from farthing.server.http.error_envelope import refusal
from farthing.server.settings import Settings

COOKIE = "farthing_session"  # holds the secret of a login session
EVERYWHERE = ("", "0.0.0.0", "::")  # every address of this machine
_LOOPBACK_NAMES = frozenset({"localhost", "ip6-localhost"})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host.lower() in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_binding(settings: Settings, users: int) -> None:
    """Refuse to listen where others can come before there are users, or where they would send passwords in clear.

    >>> check_binding(Settings(ledger="study.db"), users=0)
    >>> check_binding(Settings(ledger="study.db", host="0.0.0.0"), users=0)
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: host='0.0.0.0': can be reached by others and nobody has an account; ...
    >>> check_binding(Settings(ledger="study.db", host="0.0.0.0"), users=1)
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: host='0.0.0.0': can be reached by others, who would send passwords unencrypted; ...
    """
    if is_loopback(settings.host) and not settings.proxy:
        return
    name, value = ("host", settings.host) if not is_loopback(settings.host) else ("behind_proxy", "yes")
    if not users:
        raise InvalidValue(
            name,
            value,
            "can be reached by others and nobody has an account",
            "make a curator first: farthing users add NAME --role curator",
        )
    if not is_loopback(settings.host) and settings.tls_certificate is None and not settings.proxy:
        raise InvalidValue(
            name,
            value,
            "can be reached by others, who would send passwords unencrypted",
            "give --tls-certificate and --tls-key, or --behind-proxy and --public-url if a proxy has them",
        )
    if settings.public_url is None and (settings.proxy or settings.host in EVERYWHERE):
        raise InvalidValue(
            "behind_proxy" if settings.proxy else "host",
            "yes" if settings.proxy else settings.host,
            "needs the address that people type, and refuses every other name",
            "give --public-url https://farthing.example.org",
        )


class HostNames:
    """The names under which a server may be called: a request for another is a trick, or a wrong set-up.

    A web page elsewhere can make its own name point to this machine, and then its scripts would be let in as ours;
    only the name in the request gives it away.

    >>> names = HostNames(Settings(ledger="study.db", public_url="https://farthing.example.org"))
    >>> [names.allow(host) for host in ("localhost:9000", "[::1]:8642", "farthing.example.org", "evil", "")]
    [True, True, True, False, False]
    """

    def __init__(self, settings: Settings) -> None:
        self._exact = {name.lower() for name in settings.allowed_hosts}
        if settings.public_url is not None:
            parts = urlsplit(settings.public_url)
            self._exact.add(parts.netloc.lower())
            if parts.port is None:
                self._exact.add(f"{parts.hostname}:{443 if parts.scheme == 'https' else 80}")
        if settings.host not in EVERYWHERE:
            host = f"[{settings.host}]" if ":" in settings.host else settings.host
            self._exact |= {host.lower(), f"{host}:{settings.port}".lower()}

    def allow(self, host: str) -> bool:
        """Whether a request may name this host."""
        named = host.lower()
        if named in self._exact:
            return True
        # People who forward a port to this machine call it localhost with a port of their own.
        try:
            parts = urlsplit(f"//{named}")
            name, _ = parts.hostname, parts.port
        except ValueError:
            return False
        clean = parts.netloc == named and not (parts.path or parts.query or parts.fragment or "@" in named)
        return clean and name is not None and is_loopback(name)


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


class OriginChecks:
    """Refuses foreign hosts, and changes that another site's page has sent."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.names = HostNames(settings)
        self.origins = {settings.origin}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
                "this server does not use that host name; use the address it printed, or start it with --allow-host.",
            )
        if scope["method"] in _SAFE or self._is_own(headers, f"{scope['scheme']}://{hosts[0].lower()}"):
            return None
        return RequestRefused("csrf", "this change comes from another site's page; use farthing's page.")

    def _is_own(self, headers: Headers, here: str) -> bool:
        """Whether a change comes from our page, or from a program, which has neither cookie nor origin."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None and site not in ("same-origin", "none"):
            return False
        if origin is not None:
            return origin.lower() in self.origins | {here}
        return site is not None or not _has_session(headers)


def _last(headers: Headers, name: str) -> str:
    """What our proxy has added, at the end of the line or in a line of its own; all before it the client claims."""
    return ",".join(headers.getlist(name)).rpartition(",")[2].strip()


def _has_session(headers: Headers) -> bool:
    return any(COOKIE in part for part in headers.getlist("cookie"))

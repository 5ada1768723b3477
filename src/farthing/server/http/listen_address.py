"""Where a server may listen, and under which names it may be called."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from farthing.errors import InvalidValue
from farthing.server.settings import Settings

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
    farthing.errors.InvalidValue: host='0.0.0.0': can be reached by others, who would send passwords in clear; ...
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
            "can be reached by others, who would send passwords in clear",
            "give --tls-certificate and --tls-key, or --behind-proxy and --public-url if a proxy has them",
        )
    if settings.public_url is None and (settings.proxy or settings.host in EVERYWHERE):
        raise InvalidValue(
            "behind_proxy" if settings.proxy else "host",
            "yes" if settings.proxy else settings.host,
            "needs to know what people type, and refuses every other name",
            "give --public-url https://farthing.example.org",
        )


class Names:
    """The names under which a server may be called: a request for another is a trick, or a wrong set-up.

    A web page elsewhere can make its own name point to this machine, and then its scripts would be let in as ours;
    only the name in the request gives it away.

    >>> names = Names(Settings(ledger="study.db", public_url="https://farthing.example.org"))
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
            shown = f"[{settings.host}]" if ":" in settings.host else settings.host
            self._exact |= {shown.lower(), f"{shown}:{settings.port}".lower()}

    def allow(self, host: str) -> bool:
        """Whether a request may name this host."""
        named = host.lower()
        if named in self._exact:
            return True
        # Whoever forwards a port to this machine calls it localhost with a port of their own.
        try:
            parts = urlsplit(f"//{named}")
            name, _ = parts.hostname, parts.port
        except ValueError:
            return False
        clean = parts.netloc == named and not (parts.path or parts.query or parts.fragment or "@" in named)
        return clean and name is not None and is_loopback(name)

"""The settings of a server; none of them changes while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from farthing.errors import InvalidValue
from farthing.publication.dataverse import checked_address

PORT = 8642
ACTOR = "server"  # what the server calls itself in the ledger


@dataclass(frozen=True)
class OidcSettings:
    """The provider that signs people in: its issuer, and who we are to it.

    Args:
        issuer: The address of the provider.
        client_id: What the provider calls this server.
        client_secret: The secret that it gave to this server, if it gave one.
        claim: Which claim of the identity names the user here.
        create: Whether somebody whom nobody has added becomes an analyst.
        name: What the page calls the provider.

    >>> OidcSettings("https://login.example.org", "farthing").claim
    'email'
    """

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    claim: str = "email"  # which claim of the identity names the user here
    create: bool = False  # whether somebody whom nobody has added becomes an analyst
    name: str = "single sign-on"  # what the page calls it


@dataclass(frozen=True)
class WebhookSettings:
    """Where the server reports what happens to requests; only whoever starts it can say so.

    Args:
        url: An http or https address.
        secret: What its messages are signed with, at least 16 characters.

    Raises:
        InvalidValue: If the address or the secret is none.

    >>> WebhookSettings("https://hooks.example.org/farthing", "a long enough secret").url
    'https://hooks.example.org/farthing'
    >>> WebhookSettings("file:///etc/passwd", "a long enough secret")
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: webhook='file:///etc/passwd': must be an http or https address; ...
    """

    url: str = field(repr=False)  # many such addresses are secrets themselves
    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        written = self.url.isprintable() and self.url.isascii() and " " not in self.url and _has_port(parts)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or not written:
            public_part = "..." if "@" in parts.netloc else self.url
            raise InvalidValue("webhook", public_part, "must be an http or https address", "leave passwords out of it")
        if not len(self.secret) >= 16:
            raise InvalidValue("webhook_secret", "...", "must have at least 16 characters", "openssl rand -hex 32")


@dataclass(frozen=True)
class Settings:
    """Where the ledger and the tables are, where to listen, and who may be believed.

    Args:
        ledger: A file, or the address of a Postgres database.
        data: The folder whose files can become datasets.
        host: The address to listen on.
        port: The port to listen on.
        public_url: What people type, such as https://farthing.example.org.
        allowed_hosts: Further names under which the server may be called.
        tls_certificate: The file of a certificate, for TLS without a proxy.
        tls_key: The file of its key.
        proxy: Declares a proxy: what it forwards in X-Forwarded-* is believed.
        oidc: The provider that signs people in, if there is one.
        ledger_key: The file of the ledger's key, where it is not beside the ledger.
        metrics_open: Whether the metrics can be read without signing in.
        cheap_passwords: For tests: argon2 with its least parameters.
        session_hours: How long a login session lasts.
        workers: How many processes run plans and releases; 0 runs them in the server's own process.
        body_limit: The largest request, in bytes.
        log_requests: Whether every request is a line of the log.
        webhook: Where it reports what happens to requests, if anywhere.
        dataverses: The addresses of the Dataverses that curators may deposit in.
        dataverse_token_file: A file with an API token of the only one, for curators who give none.

    Raises:
        InvalidValue: If a setting is out of range, or only one of certificate and key is given.

    >>> settings = Settings(ledger="study.db", data=Path("."))
    >>> settings.origin, settings.is_https
    ('http://127.0.0.1:8642', False)
    >>> Settings(ledger="study.db", data=Path("."), public_url="ftp://x")
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: public_url='ftp://x': must be an http or https address without a path; ...
    """

    ledger: str = field(repr=False)  # an address may hold a password
    data: Path = Path(".")
    host: str = "127.0.0.1"
    port: int = PORT
    public_url: str | None = None  # what people type: https://farthing.example.org
    allowed_hosts: tuple[str, ...] = ()
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    proxy: bool = False  # declared: what it forwards in X-Forwarded-* is believed
    oidc: OidcSettings | None = None
    ledger_key: Path | None = None
    metrics_open: bool = False
    cheap_passwords: bool = False  # for tests: argon2 with its least parameters
    session_hours: int = 12
    workers: int = 1
    body_limit: int = 1 << 20  # bytes
    log_requests: bool = True
    webhook: WebhookSettings | None = None
    dataverses: tuple[str, ...] = ()
    dataverse_token_file: Path | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dataverses", tuple(checked_address(url) for url in self.dataverses))
        if self.dataverse_token_file is not None and len(self.dataverses) != 1:
            raise InvalidValue(
                "dataverse_token_file",
                self.dataverse_token_file.name,
                "is for one Dataverse: no other may see the token",
                "give --dataverse once, or let curators paste their tokens",
            )
        if self.public_url is not None:
            _check_public_url(self.public_url)
        if (self.tls_certificate is None) != (self.tls_key is None):
            only = self.tls_certificate or self.tls_key
            raise InvalidValue("tls", str(only), "needs a certificate and its key", "give both files")
        if not 0 <= self.port <= 65535:
            raise InvalidValue("port", self.port, "must be from 0 to 65535")
        if not 0 <= self.workers <= 64:
            raise InvalidValue("workers", self.workers, "must be from 0 to 64")

    @cached_property
    def origin(self) -> str:
        """The address of the page, as a browser spells its origin."""
        if self.public_url is not None:
            parts = urlsplit(self.public_url)
            return f"{parts.scheme}://{parts.netloc}".lower()
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls_certificate else 'http'}://{host}:{self.port}"

    @property
    def is_https(self) -> bool:
        """Whether people reach it over TLS, ours or a proxy's."""
        return self.origin.startswith("https://")


def _check_public_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
        public_part = url if "@" not in url else "..."
        raise InvalidValue(
            "public_url",
            public_part,
            "must be an http or https address without a path",
            "write it as people type it, https://farthing.example.org",
        )


def _has_port(parts: SplitResult) -> bool:
    """Whether the port of an address is one, or left out."""
    try:
        return parts.port is None or parts.port > 0
    except ValueError:
        return False

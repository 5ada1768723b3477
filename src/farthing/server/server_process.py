"""Listen, say where, and stop in good order: what `farthing serve` does once it has its settings."""

from __future__ import annotations

import errno
import logging
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from types import FrameType

import sqlalchemy as sa
import uvicorn
from fastapi import FastAPI

from farthing.errors import InvalidValue
from farthing.server.app import create_app
from farthing.server.auth.api_tokens import ROLES
from farthing.server.auth.login_sessions import allows_links, login_link, login_name
from farthing.server.http.origin_checks import check_binding
from farthing.server.http.request_limits import TimedProtocol
from farthing.server.services.app_state import State
from farthing.server.settings import Settings
from farthing.server.store import Store
from farthing.server.store.store_tables import users
from farthing.server.store.user_rows import find, was_removed

NEXT_PORTS = 20  # how many ports after the usual one are tried
PATIENCE = 15  # seconds that requests have to finish when the server stops


@dataclass(frozen=True)
class Started:
    """What the person who started the server needs to know."""

    settings: Settings
    url: str
    login: str | None  # a one-time link, where only this machine can reach the server
    user: str | None  # whom it signs in
    is_new: bool = False  # whether the link makes that user: before it is opened nobody can make a token for them


def serve(settings: Settings, *, exact_port: bool, started: Callable[[Started], None]) -> None:
    """Serve until stopped by SIGTERM or Ctrl-C; `started` is called once requests are answered.

    A port that is taken is refused if it was asked for (`exact_port`); otherwise one of the next is used.
    """
    check_binding(settings, users=1)  # what can be said before anything is made
    _check_tls(settings)
    if not allows_links(settings):  # others can come: before a ledger is made, not after
        check_binding(settings, people(settings))
    listener, port = listening_socket(settings.host, settings.port, exact=exact_port)
    settings = replace(settings, port=port)
    with listener:
        app = create_app(settings)
        state: State = app.state.farthing
        try:
            server = Server(app, settings, started)
            # Also before uvicorn listens to signals; and after, when it raises those that it heard once more.
            for each in (signal.SIGTERM, signal.SIGINT):
                with suppress(ValueError):  # not the main thread, where there are no signals
                    signal.signal(each, server.handle_exit)
            server.run(sockets=[listener])
        finally:
            state.close()


def listening_socket(host: str, port: int, *, exact: bool) -> tuple[socket.socket, int]:
    """A socket that has the port, or one of the next; nobody can connect to it yet."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    last = min(port if exact or port == 0 else port + NEXT_PORTS, 65535)
    for number in range(port, last + 1):
        # Said by name: asyncio sends small answers at once only on sockets that say they speak TCP.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, number))
            listener.listen(1)  # with SO_REUSEADDR two may bind and only one may listen
            return listener, listener.getsockname()[1]
        except OSError as problem:
            listener.close()
            if problem.errno == errno.EADDRINUSE and number < last:
                continue
            raise _cannot_listen(host, number, problem) from None
    raise AssertionError("the last port is either had or refused")


class Server(uvicorn.Server):
    """Uvicorn, without its own log of requests and without belief in anybody's X-Forwarded-For."""

    def __init__(self, app: FastAPI, settings: Settings, started: Callable[[Started], None]) -> None:
        self._state: State = app.state.farthing
        self._settings = settings
        self._say = started
        super().__init__(
            uvicorn.Config(
                app,
                http=TimedProtocol,
                ws="none",
                loop="asyncio",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                ssl_certfile=settings.tls_certificate,
                ssl_keyfile=settings.tls_key,
                timeout_graceful_shutdown=PATIENCE,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        link = login_link(self._state) if allows_links(self._settings) else None
        user = login_name() if link else None
        self._say(Started(self._settings, self._settings.origin, link, user, self._is_new(user)))

    def _is_new(self, user: str | None) -> bool:
        if user is None:
            return False
        with self._state.store.reading() as connection:
            return find(connection, user) is None and not was_removed(connection, user)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take no new requests and finish those that run; streams of events end at once."""
        self._state.stopping.set()
        super().handle_exit(sig, frame)


def people(settings: Settings) -> int:
    """How many people can sign in."""
    counted = sa.select(sa.func.count()).select_from(users).where(users.c.disabled.is_(False), users.c.role.in_(ROLES))
    store = Store.beside(settings.ledger)
    try:
        with store.reading() as connection:
            return connection.execute(counted).scalar_one()
    finally:
        store.close()


@contextmanager
def log_on_stderr() -> Iterator[None]:
    """Requests, failures and changes of people on the standard error stream, one line each, while it serves."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    loggers = [logging.getLogger(name) for name in ("farthing.server", "uvicorn")]
    before = [(logger.level, logger.propagate) for logger in loggers]
    for logger, level in zip(loggers, (logging.INFO, logging.WARNING), strict=True):
        logger.setLevel(level)
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, (level, propagate) in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = propagate


def _check_tls(settings: Settings) -> None:
    if settings.tls_certificate is None or settings.tls_key is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_certificate, settings.tls_key)
    except (OSError, ssl.SSLError) as problem:
        raise InvalidValue(
            "tls_certificate",
            str(settings.tls_certificate),
            f"must be a certificate in PEM form that fits its key ({type(problem).__name__})",
            "check both files, and that this user may read them",
        ) from None


def _cannot_listen(host: str, port: int, problem: OSError) -> InvalidValue:
    if problem.errno == errno.EADDRINUSE:
        return InvalidValue("port", port, "is in use", "stop the process that has it, or choose another with --port")
    if problem.errno == errno.EACCES:
        return InvalidValue("port", port, "needs more rights than this user has", "choose one above 1023")
    return InvalidValue("host", host, "is no address of this machine", "use 127.0.0.1, or one that it has")

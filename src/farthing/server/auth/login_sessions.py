"""Login sessions: a random secret in a cookie, its hash in the store, an end after some hours; and one-time links."""

from __future__ import annotations

import getpass
import hmac
import logging

from fastapi import Request, Response

from farthing.errors import RequestRefused
from farthing.server.auth.api_tokens import derived_secret, new_secret, secret_hash
from farthing.server.auth.auth_state import AuthState
from farthing.server.auth.password_sign_in import address_of
from farthing.server.auth.user_rules import RESERVED, add_user, usable_name
from farthing.server.http.origin_checks import COOKIE, is_loopback
from farthing.server.settings import Settings
from farthing.server.store import login_rows, now, user_rows
from farthing.server.store.login_rows import Login
from farthing.server.store.user_rows import User

MINUTES = 10
_log = logging.getLogger("farthing.server.people")


def login_link(state: AuthState, origin: str | None = None, user: str | None = None) -> str:
    """A new link for a user, by default the person who runs the server; `origin` is where it listens."""
    if not allows_links(state.settings):
        raise RequestRefused(
            "not_allowed",
            "one-time links are for a server that only this machine can reach; add a user with `farthing users add`.",
        )
    secret, at = new_secret(), now()
    with state.store.begin() as connection:
        name = user or login_name()
        login_rows.write_link(connection, secret_hash(secret), name, at + MINUTES * 60 * 10**9, at)
    return f"{origin or state.settings.origin}/login?token={secret}"


def user_by_link(state: AuthState, request: Request, secret: str) -> User:
    """Whom the link signs in; made a curator on first use, if nobody of that name is there."""
    if not allows_links(state.settings) or not is_loopback(address_of(request)):
        raise _refused()
    with state.store.begin() as connection:
        name = login_rows.use_link(connection, secret_hash(secret), now())
    if name is None:
        raise _refused()
    with state.store.reading() as connection:
        user = user_rows.find(connection, name)
        was_removed = user_rows.was_removed(connection, name)
    if user is None and not was_removed:
        user = add_user(state.store, state.passwords, name, "curator", by="the one-time link")
    if user is None or user.disabled:
        raise _refused()
    _log.info("user %s signed in with a one-time link", user.name)
    return user


def allows_links(settings: Settings) -> bool:
    """Whether only this machine can reach the server; behind a proxy everybody seems to come from this machine."""
    return is_loopback(settings.host) and not settings.proxy


def login_name() -> str:
    """A user name made of the name under which the server's owner is logged in on this machine."""
    try:
        system_name = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container without a name for its user
        system_name = ""
    name = usable_name(system_name)
    return name if name and name not in RESERVED else "curator"


def _refused() -> RequestRefused:
    return RequestRefused(
        "unauthenticated",
        "this link does not work: it can be used once, within ten minutes and from the server's own machine; "
        "start the server again for a new one, or sign in with a password.",
    )


CSRF_HEADER = "X-CSRF-Token"


def csrf_of(session: str) -> str:
    """The secret that belongs to a session's cookie.

    >>> csrf_of("a session") == csrf_of("a session") != csrf_of("another")
    True
    """
    return derived_secret(session, "farthing csrf")


def csrf_fits(session: str, secret: str | None) -> bool:
    """Whether `secret` is the one that belongs to the session; the time it takes says nothing.

    >>> csrf_fits("a session", csrf_of("a session")), csrf_fits("a session", ""), csrf_fits("a session", None)
    (True, False, False)
    """
    return hmac.compare_digest(csrf_of(session).encode(), (secret or "").encode("utf-8", "surrogatepass"))


_HOUR = 3600 * 10**9


def open_session(state: AuthState, user: str, via: str) -> str:
    """A new session of a user; returns the secret for the cookie, which nobody can look up later."""
    secret = new_secret()
    at = now()
    login = Login(user, via, at + state.settings.session_hours * _HOUR)
    with state.store.begin() as connection:
        login_rows.open_login(connection, secret_hash(secret), login, secret_hash(csrf_of(secret)), at)
    return secret


def close_session(state: AuthState, secret: str) -> None:
    """End a session: its cookie is worth nothing from now on."""
    with state.store.begin() as connection:
        login_rows.close_login(connection, secret_hash(secret))


def session_secret(request: Request) -> str | None:
    """The secret in the request's cookie."""
    return request.cookies.get(COOKIE) or None


def begin(state: AuthState, request: Request, response: Response, user: str, via: str) -> str:
    """Open a session and put it into the cookie; the session that the browser had before ends."""
    before = session_secret(request)
    if before is not None:
        close_session(state, before)
    secret = open_session(state, user, via)
    set_cookie(response, state.settings, secret)
    return secret


def set_cookie(response: Response, settings: Settings, secret: str) -> None:
    """The cookie: not for scripts, not for other sites, over TLS only where there is TLS."""
    response.set_cookie(
        COOKIE,
        secret,
        max_age=settings.session_hours * 3600,
        path="/",
        secure=settings.is_https,
        httponly=True,
        samesite="strict",
    )


def clear_cookie(response: Response, settings: Settings) -> None:
    """Tell the browser to forget the cookie of a login session."""
    response.delete_cookie(COOKIE, path="/", secure=settings.is_https, httponly=True, samesite="strict")


def user_by_session(state: AuthState, secret: str) -> tuple[User | None, str]:
    """Whose login session it is, None if it has ended or its user is disabled; and how they signed in."""
    with state.store.reading() as connection:
        login = login_rows.find_login(connection, secret_hash(secret), now())
        user = None if login is None else user_rows.find(connection, login.user)
    if login is None or user is None or user.disabled:
        return None, ""
    return user, "link" if login.via == "link" else "session"

"""Web sessions: a random word in a cookie, its mark in the store, an end after some hours."""

from __future__ import annotations

from fastapi import Request, Response

from farthing.server.auth.csrf import csrf_of
from farthing.server.auth.secret_words import fresh_word, mark_of
from farthing.server.settings import Settings
from farthing.server.state import State
from farthing.server.store import logins, now
from farthing.server.store.logins import Login

COOKIE = "farthing_session"
_HOUR = 3600 * 10**9


def open_session(state: State, user: str, via: str) -> str:
    """A new session of a user; returns the word for the cookie, which nobody can look up later."""
    word = fresh_word()
    at = now()
    login = Login(user, via, at + state.settings.session_hours * _HOUR)
    with state.store.begin() as connection:
        logins.open_login(connection, mark_of(word), login, mark_of(csrf_of(word)), at)
    return word


def close_session(state: State, word: str) -> None:
    """End a session: its cookie is worth nothing from now on."""
    with state.store.begin() as connection:
        logins.close_login(connection, mark_of(word))


def session_word(request: Request) -> str | None:
    """The word in the request's cookie."""
    return request.cookies.get(COOKIE) or None


def begin(state: State, request: Request, response: Response, user: str, via: str) -> str:
    """Open a session and put it into the cookie; the session that the browser had before ends."""
    before = session_word(request)
    if before is not None:
        close_session(state, before)
    word = open_session(state, user, via)
    set_cookie(response, state.settings, word)
    return word


def set_cookie(response: Response, settings: Settings, word: str) -> None:
    """The cookie: not for scripts, not for other sites, over TLS only where there is TLS."""
    response.set_cookie(
        COOKIE,
        word,
        max_age=settings.session_hours * 3600,
        path="/",
        secure=settings.is_https,
        httponly=True,
        samesite="strict",
    )


def clear_cookie(response: Response, settings: Settings) -> None:
    """Take the cookie away."""
    response.delete_cookie(COOKIE, path="/", secure=settings.is_https, httponly=True, samesite="strict")

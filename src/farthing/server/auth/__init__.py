"""Who is there: passwords, web sessions, one-time links, tokens for scripts, and sign-in at a provider.

authenticated   the caller of a request, by its token or its cookie
csrf_holds      whether a change was asked for by our own page
COOKIE          the name of the cookie of a web session
"""

from __future__ import annotations

from fastapi import Request

from farthing.errors import RequestRefused
from farthing.server.app_state import State
from farthing.server.auth.api_tokens import user_by_token
from farthing.server.auth.login_sessions import COOKIE, HEADER, csrf_fits, session_word
from farthing.server.auth.permissions import SCOPES_OF_ROLE, Caller
from farthing.server.auth.token_hashes import mark_of
from farthing.server.store import login_rows, now, user_rows

__all__ = ["COOKIE", "authenticated", "csrf_holds"]


def authenticated(request: Request, state: State) -> Caller | None:
    """Who makes the request, None if nobody is signed in; a token that is sent must be good, cookie or not."""
    header = request.headers.get("authorization")
    if header is not None:
        return _by_token(header, state)
    word = session_word(request)
    return None if word is None else _by_session(word, state)


def csrf_holds(request: Request, state: State, who: Caller) -> bool:
    """Whether the request repeats the word that only our own page could read."""
    word = session_word(request)
    return word is not None and csrf_fits(word, request.headers.get(HEADER))


def _by_token(header: str, state: State) -> Caller:
    scheme, _, word = header.partition(" ")
    found = user_by_token(state.store, word.strip()) if scheme.lower() == "bearer" else None
    if found is None:
        # One sentence for all of them: whoever found a token need not learn whether it was ever good.
        raise RequestRefused(
            "unauthenticated",
            "this token lets nobody in: it is unknown, expired or revoked, or its owner is disabled; "
            "make a new one on the page under People, or with `farthing users token`.",
        )
    user, scopes = found
    return Caller(user.name, user.role, scopes, "token")


def _by_session(word: str, state: State) -> Caller | None:
    with state.store.reading() as connection:
        login = login_rows.find_login(connection, mark_of(word), now())
        user = None if login is None else user_rows.find(connection, login.user)
    if login is None or user is None or user.disabled:
        return None
    via = "link" if login.via == "link" else "session"
    return Caller(user.name, user.role, SCOPES_OF_ROLE[user.role], via)

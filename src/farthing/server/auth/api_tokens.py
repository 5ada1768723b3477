"""Tokens for scripts: scoped, expiring, shown once, kept as a mark."""

from __future__ import annotations

import logging
import secrets

from farthing.errors import InvalidValue, RequestRefused
from farthing.server.auth.permissions import SCOPES, SCOPES_OF_ROLE
from farthing.server.auth.token_hashes import TOKEN_PREFIX, fresh_word, mark_of
from farthing.server.store import Store, now, token_rows, user_rows
from farthing.server.store.token_rows import Token
from farthing.server.store.user_rows import User

LONGEST = 365  # days
MOST = 100  # live tokens of one user
_DAY = 24 * 3600 * 10**9
_log = logging.getLogger("farthing.server.people")


def make_token(
    store: Store, user: User, label: str, scopes: frozenset[str], days: int, *, by: str
) -> tuple[Token, str]:
    """A new token of a user, and the word itself, which is shown now and never again."""
    _check(user, scopes, days)
    word, at = fresh_word(TOKEN_PREFIX), now()
    token = Token(secrets.token_hex(8), user.name, label, scopes, at, at + days * _DAY, None)
    with store.begin() as connection:
        token_rows.forget_ended(connection, user.name, at - 30 * _DAY)
        live = sum(each.is_live(at) for each in token_rows.of_user(connection, user.name))
        if live >= MOST:
            raise RequestRefused("conflict", f"{user.name!r} has {live} tokens already; revoke some first.")
        token_rows.insert(connection, token, mark_of(word))
    _log.info(
        "token %s of user %s made for %s, %d days, by %s", token.id, user.name, _shown(scopes), days, by
    )
    return token, word


def revoke_token(store: Store, user: str, token_id: str, *, by: str) -> None:
    """End one of a user's tokens at once."""
    with store.begin() as connection:
        found = token_rows.revoke(connection, user, token_id, now())
    if not found:
        raise RequestRefused("not_found", "you have no such token; look at the list.")
    _log.info("token %s of user %s revoked, by %s", token_id, user, by)


def tokens_of(store: Store, user: str) -> list[Token]:
    """A user's tokens, the newest first; not the words."""
    with store.reading() as connection:
        return token_rows.of_user(connection, user)


def user_by_token(store: Store, word: str) -> tuple[User, frozenset[str]] | None:
    """Whose token it is and what it may do now: never more than its owner's role; None if it lets nobody in."""
    if not word.startswith(TOKEN_PREFIX):
        return None
    with store.reading() as connection:
        token = token_rows.find_by_mark(connection, mark_of(word))
        if token is None or not token.is_live(now()):
            return None
        user = user_rows.find(connection, token.user)
    if user is None or user.disabled:
        return None
    return user, token.scopes & SCOPES_OF_ROLE[user.role]


def _check(user: User, scopes: frozenset[str], days: int) -> None:
    if user.disabled:
        raise RequestRefused("conflict", f"user {user.name!r} is disabled; enable them first.")
    if not scopes or not scopes <= set(SCOPES):
        raise InvalidValue("scopes", _shown(scopes), f"must be some of {', '.join(SCOPES)}")
    above = scopes - SCOPES_OF_ROLE[user.role]
    if above:
        raise InvalidValue(
            "scopes",
            _shown(scopes),
            f"must not be more than the role {user.role} has",
            f"leave out {_shown(above)}",
        )
    if not 1 <= days <= LONGEST:
        raise InvalidValue("days", days, f"must be from 1 to {LONGEST}")


def _shown(scopes: frozenset[str]) -> str:
    return ", ".join(sorted(scopes))

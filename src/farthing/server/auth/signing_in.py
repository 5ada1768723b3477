"""Signing in with a name and a password."""

from __future__ import annotations

import logging

from fastapi import Request

from farthing.errors import RequestRefused
from farthing.server.auth.limits import counted_attempt
from farthing.server.state import State
from farthing.server.store import users
from farthing.server.store.users import User

_log = logging.getLogger("farthing.server.people")


def address_of(request: Request) -> str:
    """Where the request comes from; behind a declared proxy that is what the proxy says."""
    return request.client.host if request.client is not None else ""


def user_by_password(state: State, name: str, password: str, address: str) -> User:
    """Who signs in, if this is their password."""
    user = proven_user(state, name, password, address)
    _log.info("user %s signed in with a password, from %s", name, address)
    return user


def proven_user(state: State, name: str, password: str, address: str) -> User:
    """The user, if this is their password; the refusal is the same, and takes as long, whatever is wrong."""
    attempt = counted_attempt(state.store, name, address)
    with state.store.reading() as connection:
        user = users.find(connection, name)
        kept = users.password_hash(connection, name)
    if not state.passwords.fits(kept, password) or kept is None or user is None or user.disabled:
        # A name that nobody has is not logged: people type their password into the wrong field.
        _log.warning(
            "password refused: user %s, from %s", "(unknown)" if user is None else user.name, address
        )
        raise RequestRefused(
            "unauthenticated",
            "no such user with this password, or the user is disabled; try again, or ask a curator.",
        )
    attempt.take_back(state.store)
    if state.passwords.is_outdated(kept):
        stronger = state.passwords.hash_of(password)
        with state.store.begin() as connection:
            if users.replace_hash(connection, name, kept, stronger):
                user = users.find(connection, name) or user
    return user

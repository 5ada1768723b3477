"""Signing in with a name and a password."""

from __future__ import annotations

import ipaddress
import logging
from dataclasses import dataclass

from fastapi import Request

from farthing.errors import RequestRefused
from farthing.server.auth.auth_state import AuthState
from farthing.server.store import Store, login_rows, now, user_rows
from farthing.server.store.user_rows import User

PER_USER, PER_ADDRESS = 5, 20
WINDOW = 60 * 10**9  # nanoseconds


@dataclass(frozen=True)
class Attempt:
    """One attempt that was counted."""

    keys: list[str]
    at: int

    def take_back(self, store: Store) -> None:
        """It was a success: it counts no more."""
        with store.begin() as connection:
            login_rows.take_back_attempt(connection, self.keys, self.at)


def counted_attempt(store: Store, user: str, address: str) -> Attempt:
    """Count an attempt, or refuse it and say how long to wait; a refused one is not counted."""
    limits = {f"user:{user}": PER_USER, f"address:{neighbourhood(address)}": PER_ADDRESS}
    attempt = Attempt(list(limits), now())
    with store.begin() as connection:
        login_rows.forget_attempts(connection, attempt.at - WINDOW)
        login_rows.write_attempt(connection, attempt.keys, attempt.at)
    # Counted in a second transaction: every other writer by now has committed, and is seen.
    wait = 0
    with store.begin() as connection:
        for key, limit in limits.items():
            others = login_rows.attempts_since(connection, key, attempt.at - WINDOW)
            if attempt.at in others:  # not if an instance whose clock is far ahead has swept it away
                others.remove(attempt.at)
            if len(others) >= limit:
                wait = max(wait, others[-limit] + WINDOW - attempt.at)
        if wait:
            login_rows.take_back_attempt(connection, attempt.keys, attempt.at)
    if wait:
        seconds = max(1, -(-wait // 10**9))
        raise RequestRefused(
            "rate_limited",
            f"too many attempts to sign in; wait {seconds} seconds and try again.",
            {"retry_after": seconds},
        )
    return attempt


def neighbourhood(address: str) -> str:
    """What counts as one address: with IPv6, anybody who has one has 2**64 of them.

    >>> neighbourhood("192.0.2.7"), neighbourhood("2001:db8:1:2:3::4"), neighbourhood("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8:1:2::', '192.0.2.7')
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False).network_address)


_log = logging.getLogger("farthing.server.people")


def address_of(request: Request) -> str:
    """Where the request comes from; behind a declared proxy that is what the proxy says."""
    return request.client.host if request.client is not None else ""


def user_by_password(state: AuthState, name: str, password: str, address: str) -> User:
    """Who signs in, if this is their password."""
    user = proven_user(state, name, password, address)
    _log.info("user %s signed in with a password, from %s", name, address)
    return user


def proven_user(state: AuthState, name: str, password: str, address: str) -> User:
    """The user, if this is their password; the refusal is the same, and takes as long, whatever is wrong."""
    attempt = counted_attempt(state.store, name, address)
    with state.store.reading() as connection:
        user = user_rows.find(connection, name)
        password_hash = user_rows.password_hash(connection, name)
    if not state.passwords.fits(password_hash, password) or password_hash is None or user is None or user.disabled:
        # A name that nobody has is not logged: people type their password into the wrong field.
        _log.warning("password refused: user %s, from %s", "(unknown)" if user is None else user.name, address)
        raise RequestRefused(
            "unauthenticated",
            "wrong user name or password, or the user is disabled; try again, or ask a curator.",
        )
    attempt.take_back(state.store)
    if state.passwords.is_outdated(password_hash):
        stronger = state.passwords.hash_of(password)
        with state.store.begin() as connection:
            if user_rows.replace_hash(connection, name, password_hash, stronger):
                user = user_rows.find(connection, name) or user
    return user

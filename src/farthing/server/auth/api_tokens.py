"""Random secrets that let somebody in, and the API tokens of scripts: scoped, expiring, shown once, kept as a hash.

A secret has 256 random bits, so nobody can guess it from its hash and a fast hash without salt is enough; people's
passwords, which can be guessed, are hashed slowly (`passwords.py`). The store never holds a secret itself.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import secrets

from farthing.errors import InvalidValue, RequestRefused
from farthing.server.store import Store, now, user_rows
from farthing.server.store.user_rows import Token, User

SCOPES = ("read", "plan", "spend", "manage")
SCOPES_OF_ROLE: dict[str, frozenset[str]] = {
    "curator": frozenset(SCOPES),
    "analyst": frozenset({"read", "plan", "spend"}),
    "auditor": frozenset({"read", "plan"}),  # prices read no row and save nothing
}
ROLES = tuple(SCOPES_OF_ROLE)
TOKEN_PREFIX = "ft_"  # so that scanners of repositories and logs can find a token that was left in them
LONGEST = 365  # days
MOST = 100  # live tokens of one user
_DAY = 24 * 3600 * 10**9
_log = logging.getLogger("farthing.server.people")


def new_secret(prefix: str = "") -> str:
    """A new secret of 256 random bits.

    >>> len(new_secret()), new_secret("ft_")[:3], new_secret() == new_secret()
    (43, 'ft_', False)
    """
    return prefix + secrets.token_urlsafe(32)


def secret_hash(secret: str) -> str:
    """What the store keeps of a secret.

    >>> secret_hash("word")
    '98c1eb4ee93476743763878fcb96a25fbc9a175074d64004779ecb5242f645e6'
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def derived_secret(secret: str, purpose: str) -> str:
    """A second secret that only a holder of the first can make, and that does not give the first away.

    >>> derived_secret("word", "csrf") == derived_secret("word", "csrf") != derived_secret("word", "other")
    True
    """
    mac = hmac.digest(secret.encode("utf-8", "surrogatepass"), purpose.encode(), "sha256")
    return base64.urlsafe_b64encode(mac).rstrip(b"=").decode()


def make_token(
    store: Store, user: User, label: str, scopes: frozenset[str], days: int, *, by: str
) -> tuple[Token, str]:
    """A new token of a user, and the secret itself, which is shown now and never again."""
    _check(user, scopes, days)
    secret, at = new_secret(TOKEN_PREFIX), now()
    token = Token(secrets.token_hex(8), user.name, label, scopes, at, at + days * _DAY, None)
    with store.begin() as connection:
        user_rows.forget_ended_tokens(connection, user.name, at - 30 * _DAY)
        live = sum(each.is_live(at) for each in user_rows.tokens_of_user(connection, user.name))
        if live >= MOST:
            raise RequestRefused("conflict", f"{user.name!r} has {live} tokens already; revoke some first.")
        user_rows.insert_token(connection, token, secret_hash(secret))
    _log.info("token %s of user %s made for %s, %d days, by %s", token.id, user.name, _listed(scopes), days, by)
    return token, secret


def revoke_token(store: Store, user: str, token_id: str, *, by: str) -> None:
    """End one of a user's tokens at once."""
    with store.begin() as connection:
        was_there = user_rows.revoke_token(connection, user, token_id, now())
    if not was_there:
        raise RequestRefused("not_found", "you have no such token; look at the list.")
    _log.info("token %s of user %s revoked, by %s", token_id, user, by)


def tokens_of(store: Store, user: str) -> list[Token]:
    """A user's tokens, the newest first; not the words."""
    with store.reading() as connection:
        return user_rows.tokens_of_user(connection, user)


def user_by_token(store: Store, secret: str) -> tuple[User, frozenset[str]] | None:
    """Whose token it is and what it may do now: never more than its owner's role; None if it lets nobody in."""
    if not secret.startswith(TOKEN_PREFIX):
        return None
    with store.reading() as connection:
        token = user_rows.find_token(connection, secret_hash(secret))
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
        raise InvalidValue("scopes", _listed(scopes), f"must be some of {', '.join(SCOPES)}")
    above = scopes - SCOPES_OF_ROLE[user.role]
    if above:
        raise InvalidValue(
            "scopes",
            _listed(scopes),
            f"must not be more than the role {user.role} has",
            f"leave out {_listed(above)}",
        )
    if not 1 <= days <= LONGEST:
        raise InvalidValue("days", days, f"must be from 1 to {LONGEST}")


def _listed(scopes: frozenset[str]) -> str:
    return ", ".join(sorted(scopes))

"""Rows about API tokens: the mark of each, its scopes and its end, never the token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from farthing.server.store.store_tables import tokens


@dataclass(frozen=True)
class Token:
    """One token as the store knows it."""

    id: str
    user: str
    label: str
    scopes: frozenset[str]
    created: int
    expires: int
    revoked: int | None

    def is_live(self, now: int) -> bool:
        """Whether it still lets somebody in."""
        return self.revoked is None and now < self.expires


def insert(connection: sa.Connection, token: Token, mark: str) -> None:
    """Write a new token down."""
    connection.execute(
        tokens.insert().values(
            id=token.id,
            user=token.user,
            label=token.label,
            hash=mark,
            scopes=" ".join(sorted(token.scopes)),
            created=token.created,
            expires=token.expires,
            revoked=token.revoked,
        )
    )


def find_by_mark(connection: sa.Connection, mark: str) -> Token | None:
    """The token that has this mark."""
    row = connection.execute(sa.select(tokens).where(tokens.c.hash == mark)).first()
    return None if row is None else _token_of(row)


def of_user(connection: sa.Connection, user: str) -> list[Token]:
    """A user's tokens, the newest first."""
    statement = sa.select(tokens).where(tokens.c.user == user).order_by(tokens.c.created.desc(), tokens.c.id)
    return [_token_of(row) for row in connection.execute(statement)]


def revoke(connection: sa.Connection, user: str, token_id: str, now: int) -> bool:
    """End one token of a user; whether there was one. What is revoked already keeps its time."""
    mine = (tokens.c.user == user) & (tokens.c.id == token_id)
    connection.execute(tokens.update().where(mine, tokens.c.revoked.is_(None)).values(revoked=now))
    return connection.execute(sa.select(tokens.c.id).where(mine)).first() is not None


def revoke_all(connection: sa.Connection, user: str, now: int) -> None:
    """End every token of a user."""
    mine = (tokens.c.user == user) & tokens.c.revoked.is_(None)
    connection.execute(tokens.update().where(mine).values(revoked=now))


def forget_ended(connection: sa.Connection, user: str, before: int) -> None:
    """Drop rows of tokens that ended before this time, so that lists stay short."""
    ended = (tokens.c.expires < before) | (tokens.c.revoked < before)
    connection.execute(tokens.delete().where(tokens.c.user == user, ended))


def _token_of(row: Any) -> Token:
    return Token(
        row.id, row.user, row.label, frozenset(row.scopes.split()), row.created, row.expires, row.revoked
    )

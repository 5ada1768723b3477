"""Rows about attempts to sign in, counted in the store so that several instances count together."""

from __future__ import annotations

import sqlalchemy as sa

from farthing.server.store.tables import attempts


def write(connection: sa.Connection, keys: list[str], at: int) -> None:
    """One attempt under each key."""
    connection.execute(attempts.insert(), [{"key": key, "at": at} for key in keys])


def take_back(connection: sa.Connection, keys: list[str], at: int) -> None:
    """Forget the attempt of this very time under these keys, and no other."""
    connection.execute(attempts.delete().where(attempts.c.key.in_(keys), attempts.c.at == at))


def times_since(connection: sa.Connection, key: str, since: int) -> list[int]:
    """When there were attempts under a key, the oldest first."""
    statement = sa.select(attempts.c.at).where(attempts.c.key == key, attempts.c.at > since)
    return list(connection.execute(statement.order_by(attempts.c.at)).scalars())


def forget_before(connection: sa.Connection, before: int) -> None:
    """Drop what no limit looks at any more."""
    connection.execute(attempts.delete().where(attempts.c.at <= before))

"""Rows about people: who there is, in which role, and what the store keeps of their password.

Functions take a connection inside a transaction; the rules about who may change whom are in `auth/people.py`.
A removed user's row stays, without credentials, so that the name is not given to somebody else by accident: grants,
answers and drafts stand under the name.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from farthing.server.store.store_tables import users

REMOVED = "removed"  # stands in the place of a role


@dataclass(frozen=True)
class User:
    """One person as the store knows them; the password's hash is not shown by `repr`."""

    name: str
    role: str
    disabled: bool
    oidc_subject: str | None
    created: int
    has_password: bool
    password_mark: str = field(default="", repr=False)  # another one after every change of the password


def find(connection: sa.Connection, name: str) -> User | None:
    """The user of this name, disabled or not."""
    return _user_of(connection.execute(sa.select(users).where(users.c.name == name, _is_here())).first())


def find_by_subject(connection: sa.Connection, subject: str, *, any_case: bool = False) -> User | None:
    """The user who signs in elsewhere under this subject; nobody if several could be meant."""
    column: sa.ColumnElement[str] = sa.func.lower(users.c.oidc_subject) if any_case else users.c.oidc_subject
    wanted = subject.lower() if any_case else subject
    rows = connection.execute(sa.select(users).where(column == wanted, _is_here()).limit(2)).all()
    return _user_of(rows[0]) if len(rows) == 1 else None


def everybody(connection: sa.Connection) -> list[User]:
    """All users by name."""
    rows = connection.execute(sa.select(users).where(_is_here()).order_by(users.c.name))
    return [user for row in rows if (user := _user_of(row)) is not None]


def was_removed(connection: sa.Connection, name: str) -> bool:
    """Whether somebody of this name was here before."""
    row = connection.execute(sa.select(users.c.role).where(users.c.name == name)).first()
    return row is not None and row.role == REMOVED


def password_hash(connection: sa.Connection, name: str) -> str | None:
    """What is kept of a user's password; None without one, and without a user."""
    statement = sa.select(users.c.password_hash).where(users.c.name == name, _is_here())
    return connection.execute(statement).scalar()


def anybody_has_a_password(connection: sa.Connection) -> bool:
    """Whether signing in with a password can succeed at all."""
    statement = sa.select(users.c.name).where(users.c.password_hash.is_not(None), users.c.disabled.is_(False))
    return connection.execute(statement.limit(1)).first() is not None


def lock_curators(connection: sa.Connection) -> None:
    """Let one transaction at a time change who is a curator, on any database: it writes all their rows unchanged."""
    connection.execute(users.update().where(users.c.role == "curator").values(role="curator"))


def active_curators(connection: sa.Connection) -> list[str]:
    """The names of curators who can sign in."""
    statement = sa.select(users.c.name).where(users.c.role == "curator", users.c.disabled.is_(False))
    return list(connection.execute(statement).scalars())


def insert(connection: sa.Connection, name: str, **values: Any) -> None:
    """A new user; a name that is taken is an IntegrityError."""
    connection.execute(users.insert().values(name=name, **values))


def change(connection: sa.Connection, name: str, **values: Any) -> None:
    """Change columns of one user."""
    connection.execute(users.update().where(users.c.name == name).values(**values))


def replace_hash(connection: sa.Connection, name: str, before: str, after: str) -> bool:
    """Keep the same password better; False if it was changed in the meantime."""
    same = (users.c.name == name) & (users.c.password_hash == before)
    return connection.execute(users.update().where(same).values(password_hash=after)).rowcount == 1


def _is_here() -> sa.ColumnElement[bool]:
    return users.c.role != REMOVED


def _user_of(row: Any) -> User | None:
    if row is None:
        return None
    return User(
        row.name, row.role, bool(row.disabled), row.oidc_subject, row.created, row.password_hash is not None,
        hashlib.sha256((row.password_hash or "").encode()).hexdigest(),
    )  # fmt: skip

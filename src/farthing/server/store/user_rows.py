"""Rows about people and their API tokens: who there is, in which role, and the hashes of passwords and tokens.

Functions take a connection inside a transaction; the rules about who may change whom are in `auth/user_rules.py`.
A removed user's row stays, without credentials, so that the name is not given to somebody else by accident: grants,
answers and drafts stand under the name.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from farthing.server.store.store_tables import tokens, users

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
    password_version: str = field(default="", repr=False)  # another one after every change of the password


def find(connection: sa.Connection, name: str) -> User | None:
    """The user of this name, disabled or not."""
    return _user_of(connection.execute(sa.select(users).where(users.c.name == name, _is_here())).first())


def find_by_subject(connection: sa.Connection, subject: str, *, any_case: bool = False) -> User | None:
    """The user who signs in elsewhere under this subject; nobody if several could be meant."""
    column: sa.ColumnElement[str] = sa.func.lower(users.c.oidc_subject) if any_case else users.c.oidc_subject
    spelling = subject.lower() if any_case else subject
    rows = connection.execute(sa.select(users).where(column == spelling, _is_here()).limit(2)).all()
    return _user_of(rows[0]) if len(rows) == 1 else None


def everybody(connection: sa.Connection) -> list[User]:
    """The rows of all users, by name."""
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
        row.name,
        row.role,
        bool(row.disabled),
        row.oidc_subject,
        row.created,
        row.password_hash is not None,
        hashlib.sha256((row.password_hash or "").encode()).hexdigest(),
    )


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


def insert_token(connection: sa.Connection, token: Token, secret_hash: str) -> None:
    """Write a new token down."""
    connection.execute(
        tokens.insert().values(
            id=token.id,
            user=token.user,
            label=token.label,
            hash=secret_hash,
            scopes=" ".join(sorted(token.scopes)),
            created=token.created,
            expires=token.expires,
            revoked=token.revoked,
        )
    )


def find_token(connection: sa.Connection, secret_hash: str) -> Token | None:
    """The token whose secret has this hash."""
    row = connection.execute(sa.select(tokens).where(tokens.c.hash == secret_hash)).first()
    return None if row is None else _token_of(row)


def tokens_of_user(connection: sa.Connection, user: str) -> list[Token]:
    """A user's tokens, the newest first."""
    statement = sa.select(tokens).where(tokens.c.user == user).order_by(tokens.c.created.desc(), tokens.c.id)
    return [_token_of(row) for row in connection.execute(statement)]


def revoke_token(connection: sa.Connection, user: str, token_id: str, now: int) -> bool:
    """End one token of a user; whether there was one. What is revoked already keeps its time."""
    mine = (tokens.c.user == user) & (tokens.c.id == token_id)
    connection.execute(tokens.update().where(mine, tokens.c.revoked.is_(None)).values(revoked=now))
    return connection.execute(sa.select(tokens.c.id).where(mine)).first() is not None


def revoke_tokens(connection: sa.Connection, user: str, now: int) -> None:
    """End every token of a user."""
    mine = (tokens.c.user == user) & tokens.c.revoked.is_(None)
    connection.execute(tokens.update().where(mine).values(revoked=now))


def forget_ended_tokens(connection: sa.Connection, user: str, before: int) -> None:
    """Drop rows of tokens that ended before this time, so that lists stay short."""
    ended = (tokens.c.expires < before) | (tokens.c.revoked < before)
    connection.execute(tokens.delete().where(tokens.c.user == user, ended))


def _token_of(row: Any) -> Token:
    return Token(row.id, row.user, row.label, frozenset(row.scopes.split()), row.created, row.expires, row.revoked)

"""Rows about login sessions, one-time links, sign-ins elsewhere and attempts; secrets are known by their hash only."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from farthing.server.store.store_tables import attempts, links, logins, oidc_flows


def write_attempt(connection: sa.Connection, keys: list[str], at: int) -> None:
    """One attempt under each key."""
    connection.execute(attempts.insert(), [{"key": key, "at": at} for key in keys])


def take_back_attempt(connection: sa.Connection, keys: list[str], at: int) -> None:
    """Forget the attempt of this very time under these keys, and no other."""
    connection.execute(attempts.delete().where(attempts.c.key.in_(keys), attempts.c.at == at))


def attempts_since(connection: sa.Connection, key: str, since: int) -> list[int]:
    """When there were attempts under a key, the oldest first."""
    statement = sa.select(attempts.c.at).where(attempts.c.key == key, attempts.c.at > since)
    return list(connection.execute(statement.order_by(attempts.c.at)).scalars())


def forget_attempts(connection: sa.Connection, before: int) -> None:
    """Drop what no limit looks at any more."""
    connection.execute(attempts.delete().where(attempts.c.at <= before))


@dataclass(frozen=True)
class Login:
    """A login session: whose it is, how they came in, when it ends."""

    user: str
    via: str
    expires: int


@dataclass(frozen=True)
class Flow:
    """A sign-in at the provider that is under way; neither of its secrets may be shown."""

    nonce: str
    verifier: str
    expires: int


def open_login(connection: sa.Connection, secret_hash: str, login: Login, csrf_hash: str, now: int) -> None:
    """Write a session down, and forget those that have ended."""
    connection.execute(logins.delete().where(logins.c.expires <= now))
    connection.execute(
        logins.insert().values(
            hash=secret_hash, user=login.user, csrf_hash=csrf_hash, expires=login.expires, via=login.via
        )
    )


def find_login(connection: sa.Connection, secret_hash: str, now: int) -> Login | None:
    """The session of this hash, unless it has ended."""
    statement = sa.select(logins).where(logins.c.hash == secret_hash, logins.c.expires > now)
    row = connection.execute(statement).first()
    return None if row is None else Login(row.user, row.via, row.expires)


def close_login(connection: sa.Connection, secret_hash: str) -> None:
    """End one login session; its cookie is worth nothing any more."""
    connection.execute(logins.delete().where(logins.c.hash == secret_hash))


def close_logins_of(connection: sa.Connection, user: str, but: str | None = None) -> None:
    """End all sessions and unused links of a user, but for the session of one hash."""
    theirs = logins.delete().where(logins.c.user == user)
    connection.execute(theirs if but is None else theirs.where(logins.c.hash != but))
    connection.execute(links.delete().where(links.c.user == user))


def write_link(connection: sa.Connection, secret_hash: str, user: str, expires: int, now: int) -> None:
    """Write a one-time link down, and forget those that have ended."""
    connection.execute(links.delete().where(links.c.expires <= now))
    connection.execute(links.insert().values(hash=secret_hash, user=user, expires=expires, used=None))


def use_link(connection: sa.Connection, secret_hash: str, now: int) -> str | None:
    """Whom the link signs in, if nobody has used it yet: of two who race, the database lets one win."""
    unused = (links.c.hash == secret_hash) & (links.c.expires > now) & links.c.used.is_(None)
    if connection.execute(links.update().where(unused).values(used=now)).rowcount != 1:
        return None
    return connection.execute(sa.select(links.c.user).where(links.c.hash == secret_hash)).scalar()


def write_flow(connection: sa.Connection, secret_hash: str, flow: Flow, now: int) -> None:
    """Remember what a sign-in at the provider began with, and forget those that were not finished."""
    connection.execute(oidc_flows.delete().where(oidc_flows.c.expires <= now))
    connection.execute(
        oidc_flows.insert().values(
            state_hash=secret_hash, nonce=flow.nonce, verifier=flow.verifier, expires=flow.expires
        )
    )


def take_flow(connection: sa.Connection, secret_hash: str, now: int) -> Flow | None:
    """What the sign-in began with; it can be taken once, of two who race one gets it."""
    row = connection.execute(sa.select(oidc_flows).where(oidc_flows.c.state_hash == secret_hash)).first()
    if connection.execute(oidc_flows.delete().where(oidc_flows.c.state_hash == secret_hash)).rowcount != 1:
        return None
    if row is None or row.expires <= now:
        return None
    return Flow(row.nonce, row.verifier, row.expires)

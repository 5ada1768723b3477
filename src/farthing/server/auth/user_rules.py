"""Changes of users and the rules about them; the page, the API and the command line all change people here.

There is always a curator who can sign in, nobody changes their own role, and a user who is disabled or removed loses
sessions, links and tokens in the same transaction. Every change is logged with who made it; no secret is.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from farthing.errors import InvalidValue, RequestRefused
from farthing.server.auth.api_tokens import ROLES
from farthing.server.auth.passwords import Passwords, checked_password
from farthing.server.schemas.person_schema import NAME, SUBJECT
from farthing.server.settings import ACTOR
from farthing.server.store import Store, login_rows, now, user_rows
from farthing.server.store.user_rows import REMOVED, User

RESERVED = frozenset({ACTOR})
_log = logging.getLogger("farthing.server.people")


class Unchanged:
    """Stands for a value that a change leaves as it is, where None means none."""


UNCHANGED = Unchanged()


def add_user(
    store: Store,
    passwords: Passwords,
    name: str,
    role: str,
    *,
    by: str,
    password: str | None = None,
    subject: str | None = None,
    returning: bool = False,
) -> User:
    """Add somebody; `returning` says that they are the one who had this name before."""
    _check(name, role, subject)
    password_hash = None if password is None else passwords.hash_of(checked_password(password, name))
    values = {
        "role": role,
        "password_hash": password_hash,
        "oidc_subject": subject,
        "disabled": False,
        "created": now(),
    }
    with _unique(name, subject, new=True), store.begin() as connection:
        if not user_rows.was_removed(connection, name):
            user_rows.insert(connection, name, **values)
        elif returning:
            user_rows.change(connection, name, **values)
        else:
            raise RequestRefused(
                "conflict",
                f"there was a user {name!r} before, whose grants and answers are kept under that name; use another "
                "name, or say that the same person is returning.",
                {"name": name, "rule": "must not have been somebody else's", "way_out": "returning"},
            )
        added = _existing_user(connection, name)
    _log.info("user %s added as %s, by %s", name, role, by)
    return added


def change_user(
    store: Store,
    passwords: Passwords,
    name: str,
    *,
    by: str,
    role: str | None = None,
    disabled: bool | None = None,
    password: str | None = None,
    subject: str | Unchanged | None = UNCHANGED,
) -> User:
    """Change what is given and leave the rest; a new password or being disabled ends the user's sessions."""
    given_subject = None if isinstance(subject, Unchanged) else subject
    _check(name, role, given_subject)
    password_hash = None if password is None else passwords.hash_of(checked_password(password, name))
    changes = []
    with _unique(name, given_subject), store.begin() as connection:
        user_rows.lock_curators(connection)
        before = _existing_user(connection, name)
        if by == name:
            _check_own(before, role, disabled, password_hash)
        if role is not None and role != before.role:
            user_rows.change(connection, name, role=role)
            changes.append(f"role {before.role} became {role}")
        if disabled is not None and disabled != before.disabled:
            user_rows.change(connection, name, disabled=disabled)
            changes.append("disabled" if disabled else "enabled")
        if password_hash is not None:
            user_rows.change(connection, name, password_hash=password_hash)
            changes.append("new password")
        if not isinstance(subject, Unchanged) and subject != before.oidc_subject:
            user_rows.change(connection, name, oidc_subject=subject)
            changes.append("signs in elsewhere under another name")
        if disabled or password_hash is not None:
            login_rows.close_logins_of(connection, name)
        if disabled:
            user_rows.revoke_tokens(connection, name, now())
        _keep_a_curator(connection, before)
        after = _existing_user(connection, name)
    for change in changes:
        _log.info("user %s: %s, by %s", name, change, by)
    return after


def remove_user(store: Store, name: str, *, by: str) -> None:
    """Remove somebody; their name stays taken, because grants and answers stand under it."""
    with store.begin() as connection:
        user_rows.lock_curators(connection)
        before = _existing_user(connection, name)
        if by == name:
            raise RequestRefused("not_allowed", "you cannot remove yourself; ask another curator.")
        gone = {"role": REMOVED, "password_hash": None, "oidc_subject": None, "disabled": True}
        user_rows.change(connection, name, **gone)
        login_rows.close_logins_of(connection, name)
        user_rows.revoke_tokens(connection, name, now())
        _keep_a_curator(connection, before)
    _log.info("user %s removed, by %s", name, by)


def change_own_password(store: Store, passwords: Passwords, name: str, new: str, session_hash: str | None) -> None:
    """Set the password of somebody who has just shown the old one; their other sessions end."""
    password_hash = passwords.hash_of(checked_password(new, name))
    with store.begin() as connection:
        user_rows.change(connection, name, password_hash=password_hash)
        login_rows.close_logins_of(connection, name, but=session_hash)
    _log.info("user %s: new password, by %s", name, name)


def known_user(store: Store, name: str) -> User:
    """The user of this name, or a refusal that says that there is none."""
    with store.reading() as connection:
        return _existing_user(connection, name)


def _check(name: str, role: str | None, subject: str | None) -> None:
    if not re.fullmatch(NAME.rstrip("$"), name):
        rule = (
            "must be 1 to 64 lower-case letters, digits, dots, dashes or underscores, beginning with a letter or digit"
        )
        raise InvalidValue("name", name, rule, f"write it like {_suggestion(name)!r}")
    if name in RESERVED:
        raise InvalidValue("name", name, "is what the server calls itself in the ledger", "use another name")
    if role is not None and role not in ROLES:
        raise InvalidValue("role", role, "must be curator, analyst or auditor")
    if subject is not None and not re.fullmatch(SUBJECT.rstrip("$"), subject):
        raise InvalidValue("oidc_subject", subject, "must be 1 to 255 printable characters")


def _check_own(user: User, role: str | None, disabled: bool | None, password_hash: str | None) -> None:
    """What nobody does to themselves: it needs a second person, or the old password."""
    if (role or user.role) != user.role or disabled:
        raise RequestRefused("not_allowed", "you cannot change your own role or disable yourself; ask another curator.")
    if password_hash is not None:
        raise RequestRefused(
            "not_allowed",
            "to change your own password, give the old one: on the page under People, or with POST /api/v1/password.",
        )


def _suggestion(name: str) -> str:
    """The nearest name that is allowed.

    >>> _suggestion("Ada Lovelace"), _suggestion("???")
    ('ada.lovelace', 'ada')
    """
    return usable_name(name) or "ada"


def usable_name(text: str) -> str:
    """A user name made of whatever text another system calls somebody by; empty if nothing is left of it.

    >>> usable_name("CORP\\\\Ada Lovelace"), usable_name("_root")
    ('corp.ada.lovelace', 'root')
    """
    return re.sub(r"[^a-z0-9._-]+", ".", text.lower()).strip("._-")[:64].rstrip("._-")


def _existing_user(connection: sa.Connection, name: str) -> User:
    user = user_rows.find(connection, name)
    if user is None:
        raise RequestRefused("not_found", f"there is no user {name!r}; see the list of users.", {"name": name})
    return user


def _keep_a_curator(connection: sa.Connection, before: User) -> None:
    """Refuse, and so undo, what leaves nobody who could ever add a curator again."""
    was_one = before.role == "curator" and not before.disabled
    if was_one and not user_rows.active_curators(connection):
        raise RequestRefused(
            "conflict",
            f"{before.name!r} is the last curator who can sign in; make somebody else a curator first.",
            {"name": before.name, "rule": "one curator must remain", "way_out": "make somebody else a curator"},
        )


@contextmanager
def _unique(name: str, subject: str | None, *, new: bool = False) -> Iterator[None]:
    try:
        yield
    except sa.exc.IntegrityError:  # its text quotes the row
        problems = [f"there is a user {name!r} already"] * new
        problems += [f"somebody else signs in under {subject!r}"] * (subject is not None)
        raise RequestRefused("conflict", f"{', or '.join(problems)}; use another.", {"name": name}) from None

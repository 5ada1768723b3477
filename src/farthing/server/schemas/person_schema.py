"""People and tokens as the API shows them; no view has a field for a secret but the one that makes it."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from farthing.server.auth.permissions import Caller
from farthing.server.auth.user_rules import NAME, SUBJECT
from farthing.server.store import now
from farthing.server.store.token_rows import Token
from farthing.server.store.user_rows import User

Role = Literal["curator", "analyst", "auditor"]
Scope = Literal["read", "plan", "spend", "manage"]
UserName = Annotated[str, StringConstraints(pattern=NAME, max_length=64)]
Subject = Annotated[str, StringConstraints(pattern=SUBJECT, max_length=255)]
Password = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Label = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=100)]


class Body(BaseModel):
    """What is sent: no field that is not known, no value of another kind."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class View(BaseModel):
    """What is shown."""

    model_config = ConfigDict(extra="forbid")


class LoginBody(Body):
    """A name and a password."""

    # Capitals are allowed here, because phones begin with one.
    user: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", max_length=64)]
    password: Password


class PasswordBody(Body):
    """The old password and a new one; somebody who came by a one-time link may have no old one."""

    old: Password | None = None
    new: Password


class NewUserBody(Body):
    """Somebody to add; without a password they sign in elsewhere, or not yet."""

    name: UserName
    role: Role
    password: Password | None = None
    oidc_subject: Subject | None = None
    returning: bool = False


class ChangedUserBody(Body):
    """What to change of somebody; what is left out stays."""

    role: Role | None = None
    disabled: bool | None = None
    password: Password | None = None
    oidc_subject: Subject | None = None


class NewTokenBody(Body):
    """A token to make."""

    label: Label = ""
    # A list, not a set: JSON has no sets, and strict models do not take one for the other.
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4)]
    days: Annotated[int, Field(ge=1, le=365)] = 30


class Me(View):
    """Who is signed in; `csrf` is what changes must repeat, None for a token."""

    name: str
    role: Role
    scopes: list[Scope]
    via: Literal["session", "token", "link"]
    csrf: str | None
    has_password: bool
    version: str


class Elsewhere(View):
    """Where people can sign in elsewhere: what it is called, and where it starts."""

    name: str
    start: str


class Ways(View):
    """The ways to sign in."""

    local: bool
    oidc: Elsewhere | None


class UserView(View):
    """One user."""

    name: str
    role: Role
    disabled: bool
    has_password: bool
    oidc_subject: str | None
    created: str


class UsersView(View):
    """All users."""

    users: list[UserView]


class TokenView(View):
    """One token, without the word."""

    id: str
    label: str
    scopes: list[Scope]
    created: str
    expires: str
    state: Literal["live", "expired", "revoked"]


class NewTokenView(TokenView):
    """A token just made: the only time the word is shown."""

    token: str


class TokensView(View):
    """A user's tokens."""

    tokens: list[TokenView]


def me_of(who: Caller, csrf: str | None, has_password: bool) -> Me:
    """The caller as they see themselves."""
    facts = {"name": who.name, "role": who.role, "scopes": ordered(who.scopes), "via": who.via}
    return Me.model_validate(facts | {"csrf": csrf, "has_password": has_password, "version": _version()})


def view_of_user(user: User) -> UserView:
    """A user as curators see them."""
    return UserView.model_validate(
        {
            "name": user.name,
            "role": user.role,
            "disabled": user.disabled,
            "has_password": user.has_password,
            "oidc_subject": user.oidc_subject,
            "created": moment(user.created),
        }
    )


def view_of_token(token: Token) -> TokenView:
    """A token as its owner sees it."""
    return TokenView.model_validate(_facts(token))


def view_of_new_token(token: Token, word: str) -> NewTokenView:
    """A token with the word itself."""
    return NewTokenView.model_validate(_facts(token) | {"token": word})


def moment(nanoseconds: int) -> str:
    """A time as people and browsers read it.

    >>> moment(1_800_000_000 * 10**9)
    '2027-01-15T08:00:00Z'
    """
    return datetime.fromtimestamp(nanoseconds // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def ordered(scopes: frozenset[str]) -> list[str]:
    """Scopes from the least to the most.

    >>> ordered(frozenset({"spend", "read"}))
    ['read', 'spend']
    """
    return [scope for scope in ("read", "plan", "spend", "manage") if scope in scopes]


@cache
def _version() -> str:
    return version("farthing")


def _facts(token: Token) -> dict[str, object]:
    if token.revoked is not None:
        state = "revoked"
    else:
        state = "live" if token.is_live(now()) else "expired"
    return {
        "id": token.id,
        "label": token.label,
        "scopes": ordered(token.scopes),
        "created": moment(token.created),
        "expires": moment(token.expires),
        "state": state,
    }

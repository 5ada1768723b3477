"""People and tokens as the API shows them; no view has a field for a secret but the one that makes it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

NAME = r"^[a-z0-9][a-z0-9._-]{0,63}$"
SUBJECT = r"^[!-~]([ -~]{0,253}[!-~])?$"  # printable ASCII without blanks at the ends
Role = Literal["curator", "analyst", "auditor"]
Scope = Literal["read", "plan", "spend", "manage"]
UserName = Annotated[str, StringConstraints(pattern=NAME, max_length=64)]
Subject = Annotated[str, StringConstraints(pattern=SUBJECT, max_length=255)]
Password = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Label = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=100)]


class Body(BaseModel):
    """The base of what is sent: no unknown field, no value of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class View(BaseModel):
    """The base of what is answered."""

    model_config = ConfigDict(extra="forbid")


class LoginBody(Body):
    """A name and a password."""

    # Capitals are allowed here, because phones begin with one.
    user: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", max_length=64)]
    password: Password


class PasswordBody(Body):
    """The old password and a new one; somebody who signed in with a one-time link may have no old one."""

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
    """Changes to a user; what is left out stays as it is."""

    role: Role | None = None
    disabled: bool | None = None
    password: Password | None = None
    oidc_subject: Subject | None = None


class NewTokenBody(Body):
    """A token to make: its label, scopes and days."""

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
    """A provider where people sign in: its name, and the address that starts it."""

    name: str
    start: str


class Ways(View):
    """The ways to sign in."""

    local: bool
    oidc: Elsewhere | None


class UserView(View):
    """One user with a role and a state."""

    name: str
    role: Role
    disabled: bool
    has_password: bool
    oidc_subject: str | None
    created: str


class UsersView(View):
    """All users, for those who may see them."""

    users: list[UserView]


class TokenView(View):
    """One token, without its secret."""

    id: str
    label: str
    scopes: list[Scope]
    created: str
    expires: str
    state: Literal["live", "expired", "revoked"]


class NewTokenView(TokenView):
    """A new token: the only time its secret is shown."""

    token: str


class TokensView(View):
    """The tokens of one user, without their secrets."""

    tokens: list[TokenView]

"""People and their tokens as the API shows them; only a token that was just made comes with its secret."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version

from farthing.server.auth.permissions import Caller
from farthing.server.schemas.person_schema import Me, NewTokenView, TokensView, TokenView, UsersView, UserView
from farthing.server.store import Store, now, user_rows
from farthing.server.store.user_rows import Token, User


def has_passwords(store: Store) -> bool:
    """Whether anybody can sign in with a password."""
    with store.reading() as connection:
        return user_rows.anybody_has_a_password(connection)


def user_list(store: Store) -> UsersView:
    """Everybody who can sign in, or could."""
    with store.reading() as connection:
        return UsersView(users=[view_of_user(user) for user in user_rows.everybody(connection)])


def token_list(tokens: list[Token]) -> TokensView:
    """The tokens of a user, without their secrets."""
    return TokensView(tokens=[_view_of_token(token) for token in tokens])


def me_of(who: Caller, csrf: str | None, has_password: bool) -> Me:
    """The caller as they see themselves."""
    facts = {"name": who.name, "role": who.role, "scopes": ordered(who.scopes), "via": who.via}
    return Me.model_validate(facts | {"csrf": csrf, "has_password": has_password, "version": _version()})


@cache
def _version() -> str:
    return version("farthing")


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


def _view_of_token(token: Token) -> TokenView:
    """A token as its owner sees it."""
    return TokenView.model_validate(_facts(token))


def view_of_new_token(token: Token, secret: str) -> NewTokenView:
    """A token with the secret itself."""
    return NewTokenView.model_validate(_facts(token) | {"token": secret})


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

"""Routes about people: signing in and out, users and their roles, tokens."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request, Response

from farthing.errors import RequestRefused
from farthing.server.auth.api_tokens import SCOPES_OF_ROLE, make_token, revoke_token, secret_hash, tokens_of
from farthing.server.auth.login_sessions import begin, clear_cookie, close_session, csrf_of, session_secret
from farthing.server.auth.password_sign_in import address_of, proven_user, user_by_password
from farthing.server.auth.permissions import Caller, Who, guarded
from farthing.server.auth.user_rules import (
    UNCHANGED,
    add_user,
    change_own_password,
    change_user,
    known_user,
    remove_user,
)
from farthing.server.http.error_envelope import refusals
from farthing.server.http.security_headers import described_headers
from farthing.server.schemas.person_schema import (
    NAME,
    ChangedUserBody,
    Elsewhere,
    LoginBody,
    Me,
    NewTokenBody,
    NewTokenView,
    NewUserBody,
    PasswordBody,
    TokensView,
    UsersView,
    UserView,
    Ways,
)
from farthing.server.services.account_views import (
    has_passwords,
    me_of,
    token_list,
    user_list,
    view_of_new_token,
    view_of_user,
)
from farthing.server.services.app_state import TheState

router = guarded("people")

Named = Annotated[str, Path(pattern=NAME, max_length=64)]
TokenId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]


@router.get("/sign-in")
def ways_to_sign_in(state: TheState) -> Ways:
    """How people can sign in here; anybody may ask."""
    oidc = state.settings.oidc
    return Ways(
        local=has_passwords(state.store),
        oidc=None if oidc is None else Elsewhere(name=oidc.name, start="/oidc/start"),
    )


@router.post("/login", responses={200: {"headers": described_headers({"Set-Cookie": "the session"})}})
def sign_in(body: LoginBody, request: Request, response: Response, state: TheState) -> Me:
    """Sign in with a password: a cookie for the browser, and who it is."""
    user = user_by_password(state, body.user.lower(), body.password, address_of(request))
    secret = begin(state, request, response, user.name, "password")
    if known_user(state.store, user.name).password_version != user.password_version:
        # Changed while it was checked, which takes its time: the session came too late to be ended with the others.
        close_session(state, secret)
        raise RequestRefused("unauthenticated", "the password was changed just now; sign in with the new one.")
    return me_of(Caller(user.name, user.role, SCOPES_OF_ROLE[user.role], "session"), csrf_of(secret), True)


@router.post(
    "/logout",
    status_code=204,
    responses={204: {"headers": described_headers({"Set-Cookie": "takes the session away"})}},
)
def sign_out(request: Request, response: Response, state: TheState) -> None:
    """End this session; its cookie is worth nothing afterwards."""
    secret = session_secret(request)
    if secret is not None:
        close_session(state, secret)
    clear_cookie(response, state.settings)


@router.get("/me")
def me(request: Request, state: TheState, who: Who) -> Me:
    """Who is signed in, and what they may do."""
    secret = session_secret(request)
    has_password = known_user(state.store, who.name).has_password
    return me_of(who, None if who.via == "token" or secret is None else csrf_of(secret), has_password)


@router.post("/password", status_code=204, responses=refusals("conflict"))
def change_password(body: PasswordBody, request: Request, state: TheState, who: Who) -> None:
    """Change your own password; all other login sessions end, tokens stay."""
    user = known_user(state.store, who.name)
    if user.has_password:
        if body.old is None:
            raise RequestRefused("invalid_value", "old: must be your current password.", {"name": "old"})
        proven_user(state, who.name, body.old, address_of(request))
    elif who.via != "link":
        # A session that was stolen must not become a password that stays.
        raise RequestRefused("conflict", "you use single sign-on and have no password here; ask a curator to set one.")
    secret = session_secret(request)
    change_own_password(
        state.store, state.passwords, who.name, body.new, None if secret is None else secret_hash(secret)
    )


@router.get("/users")
def users(state: TheState) -> UsersView:
    """Everybody who can sign in, or could."""
    return user_list(state.store)


@router.post("/users", status_code=201, responses=refusals("conflict"))
def new_user(body: NewUserBody, state: TheState, who: Who) -> UserView:
    """Add a user with a role, and a password where they sign in with one."""
    user = add_user(
        state.store,
        state.passwords,
        body.name,
        body.role,
        by=who.name,
        password=body.password,
        subject=body.oidc_subject,
        returning=body.returning,
    )
    return view_of_user(user)


@router.patch("/users/{name}", responses=refusals("not_found", "conflict"))
def changed_user(name: Named, body: ChangedUserBody, state: TheState, who: Who) -> UserView:
    """Change somebody's role or password, or whether they can sign in."""
    user = change_user(
        state.store,
        state.passwords,
        name,
        by=who.name,
        role=body.role,
        disabled=body.disabled,
        password=body.password,
        subject=body.oidc_subject if "oidc_subject" in body.model_fields_set else UNCHANGED,
    )
    return view_of_user(user)


@router.delete("/users/{name}", status_code=204, responses=refusals("not_found", "conflict"))
def removed_user(name: Named, state: TheState, who: Who) -> None:
    """Remove somebody for good; to lock them out for a while, disable them."""
    remove_user(state.store, name, by=who.name)


@router.get("/tokens")
def tokens(state: TheState, who: Who) -> TokensView:
    """Your own tokens, without their secrets."""
    return token_list(tokens_of(state.store, who.name))


@router.post("/tokens", status_code=201, responses=refusals("conflict"))
def new_token(body: NewTokenBody, state: TheState, who: Who) -> NewTokenView:
    """Make a token for a script; the secret is in this answer and nowhere else."""
    user = known_user(state.store, who.name)
    token, secret = make_token(state.store, user, body.label, frozenset(body.scopes), body.days, by=who.name)
    return view_of_new_token(token, secret)


@router.delete("/tokens/{id}", status_code=204, responses=refusals("not_found"))
def revoked_token(id: TokenId, state: TheState, who: Who) -> None:
    """Revoke one of your own tokens at once."""
    revoke_token(state.store, who.name, id, by=who.name)

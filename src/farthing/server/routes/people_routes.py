"""Routes about people: signing in and out, users and their roles, tokens."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Request, Response

from farthing.errors import RequestRefused
from farthing.server.app_state import State
from farthing.server.auth.api_tokens import make_token, revoke_token, tokens_of
from farthing.server.auth.login_sessions import begin, clear_cookie, close_session, csrf_of, session_word
from farthing.server.auth.password_sign_in import address_of, proven_user, user_by_password
from farthing.server.auth.permissions import SCOPES_OF_ROLE, Caller, caller, the_state
from farthing.server.auth.route_guard import guarded
from farthing.server.auth.token_hashes import mark_of
from farthing.server.auth.user_rules import (
    NAME,
    UNCHANGED,
    add_user,
    change_own_password,
    change_user,
    known_user,
    remove_user,
)
from farthing.server.http.error_envelope import refusals
from farthing.server.http.origin_checks import described_headers
from farthing.server.schemas.person_schema import (
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
    me_of,
    view_of_new_token,
    view_of_token,
    view_of_user,
)
from farthing.server.store import user_rows as user_rows

router = guarded("people")

Who = Annotated[Caller, Depends(caller)]
Here = Annotated[State, Depends(the_state)]
Named = Annotated[str, Path(pattern=NAME, max_length=64)]
TokenId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]


@router.get("/sign-in")
def ways_to_sign_in(state: Here) -> Ways:
    """How people can sign in here; anybody may ask."""
    with state.store.reading() as connection:
        local = user_rows.anybody_has_a_password(connection)
    oidc = state.settings.oidc
    return Ways(local=local, oidc=None if oidc is None else Elsewhere(name=oidc.name, start="/oidc/start"))


@router.post("/login", responses={200: {"headers": described_headers({"Set-Cookie": "the session"})}})
def sign_in(body: LoginBody, request: Request, response: Response, state: Here) -> Me:
    """Sign in with a password: a cookie for the browser, and who it is."""
    user = user_by_password(state, body.user.lower(), body.password, address_of(request))
    word = begin(state, request, response, user.name, "password")
    if known_user(state.store, user.name).password_mark != user.password_mark:
        # Changed while it was checked, which takes its time: the session came too late to be ended with the others.
        close_session(state, word)
        raise RequestRefused(
            "unauthenticated", "the password was changed just now; sign in with the new one."
        )
    return me_of(Caller(user.name, user.role, SCOPES_OF_ROLE[user.role], "session"), csrf_of(word), True)


@router.post(
    "/logout",
    status_code=204,
    responses={204: {"headers": described_headers({"Set-Cookie": "takes the session away"})}},
)
def sign_out(request: Request, response: Response, state: Here) -> None:
    """End this session; its cookie is worth nothing afterwards."""
    word = session_word(request)
    if word is not None:
        close_session(state, word)
    clear_cookie(response, state.settings)


@router.get("/me")
def me(request: Request, state: Here, who: Who) -> Me:
    """Who is signed in, and what they may do."""
    word = session_word(request)
    has_password = known_user(state.store, who.name).has_password
    return me_of(who, None if who.via == "token" or word is None else csrf_of(word), has_password)


@router.post("/password", status_code=204, responses=refusals("conflict"))
def change_password(body: PasswordBody, request: Request, state: Here, who: Who) -> None:
    """Change one's own password; all other sessions end, tokens stay."""
    user = known_user(state.store, who.name)
    if user.has_password:
        if body.old is None:
            raise RequestRefused("invalid_value", "old: must be the password so far.", {"name": "old"})
        proven_user(state, who.name, body.old, address_of(request))
    elif who.via != "link":
        # A session that was stolen must not become a password that stays.
        raise RequestRefused(
            "conflict", "you sign in elsewhere and have no password; ask a curator to set one."
        )
    word = session_word(request)
    change_own_password(
        state.store, state.passwords, who.name, body.new, None if word is None else mark_of(word)
    )


@router.get("/users")
def users(state: Here) -> UsersView:
    """Everybody who can sign in, or could."""
    with state.store.reading() as connection:
        return UsersView(users=[view_of_user(user) for user in user_rows.everybody(connection)])


@router.post("/users", status_code=201, responses=refusals("conflict"))
def new_user(body: NewUserBody, state: Here, who: Who) -> UserView:
    """Add somebody."""
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
def changed_user(name: Named, body: ChangedUserBody, state: Here, who: Who) -> UserView:
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
def removed_user(name: Named, state: Here, who: Who) -> None:
    """Remove somebody for good; to lock them out for a while, disable them."""
    remove_user(state.store, name, by=who.name)


@router.get("/tokens")
def tokens(state: Here, who: Who) -> TokensView:
    """One's own tokens, without the words."""
    return TokensView(tokens=[view_of_token(token) for token in tokens_of(state.store, who.name)])


@router.post("/tokens", status_code=201, responses=refusals("conflict"))
def new_token(body: NewTokenBody, state: Here, who: Who) -> NewTokenView:
    """Make a token for a script; the word is in this answer and nowhere else."""
    user = known_user(state.store, who.name)
    token, word = make_token(state.store, user, body.label, frozenset(body.scopes), body.days, by=who.name)
    return view_of_new_token(token, word)


@router.delete("/tokens/{id}", status_code=204, responses=refusals("not_found"))
def revoked_token(id: TokenId, state: Here, who: Who) -> None:
    """Revoke one of one's own tokens at once."""
    revoke_token(state.store, who.name, id, by=who.name)

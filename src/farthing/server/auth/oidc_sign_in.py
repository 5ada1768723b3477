"""Signing in at a provider: authorization code with PKCE, bound to the browser that began it.

The browser carries the state in a cookie of its own besides the address, so that nobody can finish in another's
browser what they began in theirs. The way back is fixed by the settings; no address comes from a request.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
from typing import Any

from farthing.errors import RequestRefused
from farthing.server.auth.api_tokens import new_secret, secret_hash
from farthing.server.auth.auth_state import AuthState
from farthing.server.auth.oidc_provider import Provider, SignInFailed
from farthing.server.auth.user_rules import RESERVED, add_user, usable_name
from farthing.server.settings import Settings
from farthing.server.store import login_rows, now, user_rows
from farthing.server.store.login_rows import Flow
from farthing.server.store.user_rows import User

FLOW_COOKIE = "farthing_flow"
MINUTES = 10
_log = logging.getLogger("farthing.server.people")


def redirect_uri(settings: Settings) -> str:
    """Where the provider sends people back to; it must be registered there."""
    return f"{settings.origin}/oidc/callback"


def started(state: AuthState) -> tuple[str, str]:
    """Begin a sign-in: the address at the provider, and the state for the browser's cookie."""
    provider = _provider(state)
    secret, nonce, verifier = new_secret(), new_secret(), new_secret()
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    address = provider.address_to_start(redirect_uri(state.settings), secret, nonce, challenge)
    at = now()
    with state.store.begin() as connection:
        flow = Flow(nonce, verifier, at + MINUTES * 60 * 10**9)
        login_rows.write_flow(connection, secret_hash(secret), flow, at)
    return address, secret


def finished(state: AuthState, *, code: str, secret: str, cookie: str | None, issuer: str | None) -> User:
    """Who came back from the provider; each sign-in that was begun can be finished once, in the same browser."""
    provider = _provider(state)
    if not hmac.compare_digest(secret_hash(secret), secret_hash(cookie or "")):
        raise SignInFailed("it was started in another browser")
    with state.store.begin() as connection:
        flow = login_rows.take_flow(connection, secret_hash(secret), now())
    if flow is None:
        raise SignInFailed("it was never started, took too long, or was finished before")
    if issuer is not None and issuer != provider.settings.issuer:  # RFC 9207
        raise SignInFailed("another issuer answered")
    claims = provider.identity_for(code, flow.verifier, redirect_uri(state.settings), flow.nonce)
    user = _user_of(state, provider, claims)
    _log.info("user %s signed in through the provider", user.name)
    return user


def _provider(state: AuthState) -> Provider:
    if state.provider is None:
        raise RequestRefused("not_found", "this server has no single sign-on; sign in with a password.")
    return state.provider


def _user_of(state: AuthState, provider: Provider, claims: dict[str, Any]) -> User:
    claim = provider.settings.claim
    subject = _text(claims, claim)
    if claim == "email":
        # An address that nobody has verified is whatever its owner wrote into a form.
        subject = subject if claims.get("email_verified") is True else None
    user = None
    with state.store.reading() as connection:
        if subject is not None:
            any_case = claim == "email" and subject.isascii()
            user = user_rows.find_by_subject(connection, subject, any_case=any_case)
        stable = _text(claims, "sub")
        if user is None and claim == "email" and stable is not None and "@" not in stable:
            user = user_rows.find_by_subject(connection, stable)
            subject = subject or stable
    if user is None and subject is not None and provider.settings.create:
        return _added(state, subject, claims)
    if user is None or user.disabled:
        raise SignInFailed("nobody here has that identity, or they are disabled")
    return user


def _added(state: AuthState, subject: str, claims: dict[str, Any]) -> User:
    """A new analyst, who has no grant yet.

    People choose what a provider calls them: a name that is taken, or has a grant waiting for somebody, is not given.
    """
    wanted = _text(claims, "preferred_username") or (_text(claims, "email") or "").partition("@")[0]
    name = usable_name(wanted)[:60] or "analyst"
    ledger = state.root
    granted = {analyst for dataset in ledger.datasets() for analyst in ledger.analysts(dataset)}
    for number in range(1, 100):
        candidate = name if number == 1 else f"{name}-{number}"
        if candidate in granted | RESERVED:
            continue
        try:
            return add_user(
                state.store,
                state.passwords,
                candidate,
                "analyst",
                subject=subject,
                by="the provider's sign-in",
            )
        except RequestRefused as refusal:
            if refusal.code != "conflict":
                raise
    raise SignInFailed("no free name was found")


def _text(claims: dict[str, Any], name: str) -> str | None:
    value = claims.get(name)
    usable = isinstance(value, str) and 0 < len(value) <= 255 and value.isprintable()
    return value if usable else None

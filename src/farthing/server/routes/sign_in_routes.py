"""Addresses that a browser is sent to: the one-time link, and the way to the provider and back.

People see where these lead, not what they answer, so a failure goes to the sign-in screen, which says what to do. All
ways lead to our own page: no address is taken from the request.
"""

from __future__ import annotations

import logging
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import RedirectResponse

from farthing.errors import FarthingError
from farthing.server.auth.login_sessions import begin, user_by_link
from farthing.server.auth.oidc_provider import SignInFailed
from farthing.server.auth.oidc_sign_in import FLOW_COOKIE, MINUTES, finished, started
from farthing.server.auth.permissions import guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.services.app_state import TheState
from farthing.server.settings import Settings

router = guarded("people", prefix="")

_log = logging.getLogger("farthing.server.people")
_WAY_ON: dict[int | str, dict[str, Any]] = {303: {"description": "to the page, signed in or with what went wrong"}}

Parameter = Annotated[str, Query(max_length=4096)]


@router.get("/login", status_code=303, response_class=RedirectResponse, responses=_WAY_ON)
def by_link(request: Request, state: TheState, token: Parameter = "") -> RedirectResponse:
    """Sign in with the one-time link that the server printed."""
    try:
        user = user_by_link(state, request, token)
    except FarthingError:
        return _to_sign_in("link" if token else "")
    response = _to("/")
    begin(state, request, response, user.name, "link")
    return response


@router.get(
    "/oidc/start",
    status_code=303,
    response_class=RedirectResponse,
    responses=_WAY_ON | refusals("not_found"),
)
def to_provider(state: TheState) -> RedirectResponse:
    """Go to the provider to sign in there."""
    try:
        address, secret = started(state)
    except SignInFailed as failure:
        _log.warning("sign-in at the provider failed: %s", failure.reason)
        return _to_sign_in("provider")
    response = _to(address)
    # Lax: the browser comes back from another site, and must bring it along.
    response.set_cookie(
        FLOW_COOKIE,
        secret,
        max_age=MINUTES * 60,
        path="/oidc",
        secure=state.settings.is_https,
        httponly=True,
        samesite="lax",
    )
    return response


@router.get(
    "/oidc/callback",
    status_code=303,
    response_class=RedirectResponse,
    responses=_WAY_ON | refusals("not_found"),
)
def from_provider(
    request: Request,
    state: TheState,
    code: Parameter = "",
    secret: Annotated[str, Query(alias="state", max_length=4096)] = "",
    issuer: Annotated[str | None, Query(alias="iss", max_length=4096)] = None,
    error: Parameter = "",
) -> RedirectResponse:
    """Come back from the provider."""
    try:
        if error or not code:
            raise SignInFailed("it let nobody in")
        cookie = request.cookies.get(FLOW_COOKIE)
        user = finished(state, code=code, secret=secret, cookie=cookie, issuer=issuer)
    except SignInFailed as failure:
        _log.warning("sign-in at the provider failed: %s", failure.reason)
        return _without_flow(_to_sign_in("provider"), state.settings)
    response = _without_flow(_to("/"), state.settings)
    begin(state, request, response, user.name, "oidc")
    return response


def _to(address: str) -> RedirectResponse:
    return RedirectResponse(address, status_code=303)


def _to_sign_in(problem: str) -> RedirectResponse:
    """The sign-in screen; `problem` is one of a few fixed words that it knows."""
    return _to(f"/#/login?problem={problem}" if problem else "/#/login")


def _without_flow(response: RedirectResponse, settings: Settings) -> RedirectResponse:
    response.delete_cookie(FLOW_COOKIE, path="/oidc", secure=settings.is_https, httponly=True, samesite="lax")
    return response

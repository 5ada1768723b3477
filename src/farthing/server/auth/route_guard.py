"""No route runs before its row in the table of permissions has been read and obeyed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from inspect import iscoroutinefunction
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from farthing.errors import RequestRefused
from farthing.server.app_state import State
from farthing.server.auth import authenticated, csrf_holds
from farthing.server.auth.permissions import Caller, Rule, rule_of, the_state
from farthing.server.http.error_envelope import COMMON

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class GuardedRoute(APIRoute):
    """A route that asks who is there before the body is read."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, behind the guard."""
        inner, path = super().get_route_handler(), self.path
        in_a_thread = not iscoroutinefunction(self.endpoint)

        async def handler(request: Request) -> Response:
            rule = rule_of(request.method, path)
            state = the_state(request)
            request.state.caller = None
            if rule is None or (rule.open_if and getattr(state.settings, rule.open_if)):
                return await inner(request)
            request.state.caller = who = await run_in_threadpool(admitted, request, state, rule)
            if not in_a_thread:
                return await inner(request)
            async with state.turns.of(who.name):
                return await inner(request)

        return handler


def admitted(request: Request, state: State, rule: Rule) -> Caller:
    """Who makes the request, if they may make it; otherwise raises."""
    who = authenticated(request, state)
    if who is None:
        raise RequestRefused("unauthenticated", "nobody is signed in, or no longer; sign in again.")
    if who.role not in rule.roles:
        allowed = " or ".join(f"{'an' if role[0] == 'a' else 'a'} {role}" for role in sorted(rule.roles))
        raise RequestRefused(
            "not_allowed", f"role {who.role!r} may not do this; ask {allowed}.", {"role": who.role}
        )
    if rule.session_only and who.via == "token":
        raise RequestRefused("not_allowed", "a token may not do this; sign in on the page.")
    if rule.scope not in who.scopes:
        raise RequestRefused(
            "not_allowed",
            f"this token does not have the scope {rule.scope!r}; make one that has it.",
            {"scope": rule.scope},
        )
    if who.via != "token" and request.method not in SAFE and not csrf_holds(request, state, who):
        raise RequestRefused(
            "csrf", "the header X-CSRF-Token is missing or not this session's; reload the page and try again."
        )
    return who


def guarded(tag: str, *, prefix: str = "/api/v1") -> APIRouter:
    """A router whose routes are all behind the guard."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=GuardedRoute,
        responses=COMMON,
        generate_unique_id_function=lambda route: f"{tag}_{route.name}",  # what generated clients call it
    )

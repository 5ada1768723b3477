"""Who may call which route: one table, and what is not in it is refused before the server starts.

Roles: a curator may do everything; an analyst reads their own, plans, asks, and spends what was granted or approved; an
auditor reads everything, and neither spends nor manages. A token has scopes, which may be fewer than its owner's role
has: "read" (looking), "plan" (pricing, composing, saving drafts, asking), "spend" (releases, sessions, questions),
"manage" (datasets, budgets, grants, requests, people). A login session has all scopes of its role.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Annotated, Any, Protocol, cast

from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from farthing.errors import RequestRefused
from farthing.server.auth.api_tokens import SCOPES_OF_ROLE, user_by_token
from farthing.server.auth.auth_state import AuthState
from farthing.server.auth.login_sessions import CSRF_HEADER, csrf_fits, session_secret, user_by_session
from farthing.server.http.error_envelope import COMMON


@dataclass(frozen=True)
class Caller:
    """Somebody who has shown who they are: by a login session, a token or a one-time link."""

    name: str
    role: str  # "curator", "analyst" or "auditor"
    scopes: frozenset[str]
    via: str  # "session", "token" or "link"


def caller(request: Request) -> Caller:
    """Who makes this request; a dependency of routes. The guard has put them there before the route runs."""
    who = request.state.caller
    assert isinstance(who, Caller), "the route is public: nobody is known here"
    return who


Who = Annotated[Caller, Depends(caller)]


CURATOR = frozenset({"curator"})
ANALYST = frozenset({"analyst"})
SPENDERS = frozenset({"curator", "analyst"})
READERS = frozenset({"curator", "auditor"})
ALL = frozenset({"curator", "analyst", "auditor"})


@dataclass(frozen=True)
class Rule:
    """Which roles may call a route, and which scope their token must have."""

    roles: frozenset[str]
    scope: str
    session_only: bool = False  # a token must not make tokens, nor change a password
    open_if: str = ""  # the setting that opens the route to everybody


_V = "/api/v1"
# Routes that anybody may call, because who calls is not known yet or does not matter.
PUBLIC: frozenset[tuple[str, str]] = frozenset(
    {
        ("GET", "/"),
        ("GET", "/static/{path:path}"),
        ("GET", "/login"),
        ("GET", "/oidc/start"),
        ("GET", "/oidc/callback"),
        ("GET", f"{_V}/sign-in"),
        ("POST", f"{_V}/login"),
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/openapi.json"),
    }
)
PERMISSIONS: dict[tuple[str, str], Rule] = {
    ("GET", "/metrics"): Rule(READERS, "read", open_if="metrics_open"),
    # People.
    ("POST", f"{_V}/logout"): Rule(ALL, "read", session_only=True),
    ("GET", f"{_V}/me"): Rule(ALL, "read"),
    ("POST", f"{_V}/password"): Rule(ALL, "read", session_only=True),
    ("GET", f"{_V}/users"): Rule(CURATOR, "manage"),
    ("POST", f"{_V}/users"): Rule(CURATOR, "manage"),
    ("PATCH", f"{_V}/users/{{name}}"): Rule(CURATOR, "manage"),
    ("DELETE", f"{_V}/users/{{name}}"): Rule(CURATOR, "manage"),
    ("GET", f"{_V}/tokens"): Rule(ALL, "read"),
    ("POST", f"{_V}/tokens"): Rule(ALL, "read", session_only=True),
    ("DELETE", f"{_V}/tokens/{{id}}"): Rule(ALL, "read", session_only=True),
    # Datasets.
    ("GET", f"{_V}/sources"): Rule(CURATOR, "manage"),
    ("GET", f"{_V}/datasets"): Rule(ALL, "read"),
    ("POST", f"{_V}/datasets"): Rule(CURATOR, "manage"),
    ("POST", f"{_V}/datasets/check"): Rule(CURATOR, "manage"),
    ("GET", f"{_V}/datasets/{{name}}"): Rule(ALL, "read"),
    ("GET", f"{_V}/datasets/{{name}}/budget"): Rule(ALL, "read"),
    ("POST", f"{_V}/datasets/{{name}}/rows"): Rule(SPENDERS, "spend"),
    ("POST", f"{_V}/datasets/{{name}}/discoveries/price"): Rule(ALL, "plan"),
    ("POST", f"{_V}/datasets/{{name}}/discoveries"): Rule(SPENDERS, "spend"),
    ("PUT", f"{_V}/datasets/{{name}}/budget"): Rule(CURATOR, "manage"),
    ("POST", f"{_V}/datasets/{{name}}/corrections/check"): Rule(CURATOR, "manage"),
    ("POST", f"{_V}/datasets/{{name}}/corrections"): Rule(CURATOR, "manage"),
    ("POST", f"{_V}/datasets/{{name}}/periods"): Rule(CURATOR, "manage"),
    ("POST", f"{_V}/datasets/{{name}}/parts/price"): Rule(CURATOR, "plan"),
    ("POST", f"{_V}/datasets/{{name}}/parts"): Rule(CURATOR, "spend"),
    ("PUT", f"{_V}/datasets/{{name}}/grants/{{user}}"): Rule(CURATOR, "manage"),
    ("PUT", f"{_V}/datasets/{{name}}/reserves/{{label}}"): Rule(CURATOR, "manage"),
    # Studies and plans.
    ("GET", f"{_V}/studies"): Rule(ALL, "read"),
    ("POST", f"{_V}/studies"): Rule(SPENDERS, "plan"),
    ("GET", f"{_V}/studies/{{id}}"): Rule(ALL, "read"),
    ("DELETE", f"{_V}/studies/{{id}}"): Rule(SPENDERS, "plan"),
    ("POST", f"{_V}/plans/price"): Rule(ALL, "plan"),
    ("POST", f"{_V}/sql"): Rule(ALL, "plan"),
    ("GET", f"{_V}/plans"): Rule(ALL, "read"),
    ("POST", f"{_V}/plans"): Rule(SPENDERS, "plan"),
    ("GET", f"{_V}/plans/{{id}}"): Rule(ALL, "read"),
    ("PUT", f"{_V}/plans/{{id}}"): Rule(SPENDERS, "plan"),
    ("DELETE", f"{_V}/plans/{{id}}"): Rule(SPENDERS, "plan"),
    # Releases.
    ("GET", f"{_V}/releases"): Rule(ALL, "read"),
    ("POST", f"{_V}/releases"): Rule(SPENDERS, "spend"),
    ("GET", f"{_V}/releases/{{request_id}}"): Rule(ALL, "read"),
    ("GET", f"{_V}/releases/{{request_id}}/events"): Rule(ALL, "read"),
    ("GET", f"{_V}/releases/{{request_id}}/download"): Rule(ALL, "read"),
    ("GET", f"{_V}/releases/{{request_id}}/table"): Rule(CURATOR, "read"),
    ("POST", f"{_V}/releases/{{request_id}}/publication/preview"): Rule(CURATOR, "manage"),
    ("POST", f"{_V}/releases/{{request_id}}/publication"): Rule(CURATOR, "manage"),
    ("GET", f"{_V}/publishing"): Rule(CURATOR, "manage"),
    ("POST", f"{_V}/launches"): Rule(CURATOR, "manage"),
    ("GET", f"{_V}/releases/{{request_id}}/deposits"): Rule(CURATOR, "manage"),
    ("POST", f"{_V}/releases/{{request_id}}/deposits"): Rule(CURATOR, "manage"),
    # Requests.
    ("GET", f"{_V}/requests"): Rule(ALL, "read"),
    ("POST", f"{_V}/requests"): Rule(ANALYST, "plan"),
    ("GET", f"{_V}/requests/{{id}}"): Rule(ALL, "read"),
    ("POST", f"{_V}/requests/{{id}}/approve"): Rule(CURATOR, "manage"),
    ("POST", f"{_V}/requests/{{id}}/change"): Rule(CURATOR, "manage"),
    ("POST", f"{_V}/requests/{{id}}/decline"): Rule(CURATOR, "manage"),
    ("POST", f"{_V}/requests/{{id}}/withdraw"): Rule(ANALYST, "plan"),
    ("GET", f"{_V}/policies"): Rule(ALL, "read"),
    ("PUT", f"{_V}/datasets/{{name}}/policies/{{user}}"): Rule(CURATOR, "manage"),
    # Sessions.
    ("POST", f"{_V}/sessions/price"): Rule(ALL, "plan"),
    ("GET", f"{_V}/sessions"): Rule(ALL, "read"),
    ("POST", f"{_V}/sessions"): Rule(SPENDERS, "spend"),
    ("GET", f"{_V}/sessions/{{id}}"): Rule(ALL, "read"),
    ("POST", f"{_V}/sessions/{{id}}/ask"): Rule(SPENDERS, "spend"),
    # Running series.
    ("POST", f"{_V}/series/price"): Rule(ALL, "plan"),
    ("GET", f"{_V}/series"): Rule(ALL, "read"),
    ("POST", f"{_V}/series"): Rule(SPENDERS, "spend"),
    ("GET", f"{_V}/series/{{id}}"): Rule(ALL, "read"),
    ("POST", f"{_V}/series/{{id}}/release"): Rule(SPENDERS, "spend"),
    # Synthetic tables.
    ("POST", f"{_V}/synthetic-tables/price"): Rule(ALL, "plan"),
    ("GET", f"{_V}/synthetic-tables"): Rule(ALL, "read"),
    ("POST", f"{_V}/synthetic-tables"): Rule(SPENDERS, "spend"),
    ("GET", f"{_V}/synthetic-tables/{{id}}"): Rule(ALL, "read"),
    ("GET", f"{_V}/synthetic-tables/{{id}}/download"): Rule(ALL, "read"),
    # The ledger.
    ("GET", f"{_V}/ledger"): Rule(ALL, "read"),
    ("GET", f"{_V}/ledger/entries"): Rule(ALL, "read"),
    ("GET", f"{_V}/ledger/releases"): Rule(ALL, "read"),
    ("POST", f"{_V}/ledger/verify"): Rule(ALL, "read"),
    ("GET", f"{_V}/ledger/burn-down"): Rule(ALL, "read"),
    ("GET", f"{_V}/ledger/export"): Rule(READERS, "read"),
    # The accountant.
    ("POST", f"{_V}/compose"): Rule(ALL, "plan"),
    ("POST", f"{_V}/regions"): Rule(ALL, "plan"),
    ("POST", f"{_V}/play"): Rule(ALL, "plan"),
    ("POST", f"{_V}/rivals"): Rule(ALL, "plan"),
    ("POST", f"{_V}/simulate"): Rule(ALL, "plan"),
    ("POST", f"{_V}/partitions"): Rule(ALL, "plan"),
}


def rule_of(method: str, path: str) -> Rule | None:
    """The rule of a route, None for a public one; a caller who may GET it may ask for its head.

    >>> rule_of("GET", "/healthz") is None, rule_of("HEAD", "/api/v1/me").scope
    (True, 'read')
    >>> rule_of("GET", "/api/v1/forgotten")
    Traceback (most recent call last):
        ...
    LookupError: GET /api/v1/forgotten has no row in the table of permissions
    """
    key = ("GET" if method == "HEAD" else method, path)
    if key in PUBLIC:
        return None
    if key not in PERMISSIONS:
        raise LookupError(f"{method} {path} has no row in the table of permissions")
    return PERMISSIONS[key]


def check_every(routes: Iterable[tuple[str, str]]) -> None:
    """Raise for the first route without a row: an app with such a route must not start."""
    for method, path in routes:
        rule_of(method, path)


AT_A_TIME = 8  # requests of one person
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class RequestSlots:
    """Who is being served, by name; what it counts is forgotten when the last request has ended."""

    def __init__(self, at_a_time: int = AT_A_TIME) -> None:
        self._at_a_time = at_a_time
        self._rooms: dict[tuple[asyncio.AbstractEventLoop, str], asyncio.Semaphore] = {}
        self._inside: Counter[tuple[asyncio.AbstractEventLoop, str]] = Counter()

    @asynccontextmanager
    async def of(self, name: str) -> AsyncIterator[None]:
        """The turn of one request of somebody."""
        key = asyncio.get_running_loop(), name  # a lock belongs to the loop that made it
        room = self._rooms.setdefault(key, asyncio.Semaphore(self._at_a_time))
        self._inside[key] += 1
        try:
            async with room:
                yield
        finally:
            self._inside[key] -= 1
            if not self._inside[key]:
                del self._inside[key], self._rooms[key]

    def __len__(self) -> int:
        return len(self._rooms)


class GuardState(AuthState, Protocol):
    """The part of the application's state that the guard sees."""

    @property
    def slots(self) -> RequestSlots:
        """How many requests of one person run at a time."""


class GuardedRoute(APIRoute):
    """A route that asks who is there before the body is read."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, behind the guard."""
        inner, path = super().get_route_handler(), self.path
        in_a_thread = not iscoroutinefunction(self.endpoint)

        async def handler(request: Request) -> Response:
            rule = rule_of(request.method, path)
            state = cast(GuardState, request.app.state.farthing)
            request.state.caller = None
            if rule is None or (rule.open_if and getattr(state.settings, rule.open_if)):
                return await inner(request)
            request.state.caller = who = await run_in_threadpool(admitted, request, state, rule)
            if not in_a_thread:
                return await inner(request)
            async with state.slots.of(who.name):
                return await inner(request)

        return handler


def admitted(request: Request, state: AuthState, rule: Rule) -> Caller:
    """Who makes the request, if they may make it; otherwise raises."""
    who = authenticated(request, state)
    if who is None:
        raise RequestRefused("unauthenticated", "you are not signed in, or no longer; sign in again.")
    if who.role not in rule.roles:
        allowed = " or ".join(f"{'an' if role[0] == 'a' else 'a'} {role}" for role in sorted(rule.roles))
        raise RequestRefused("not_allowed", f"role {who.role!r} may not do this; ask {allowed}.", {"role": who.role})
    if rule.session_only and who.via == "token":
        raise RequestRefused("not_allowed", "a token may not do this; sign in on the page.")
    if rule.scope not in who.scopes:
        raise RequestRefused(
            "not_allowed",
            f"this token does not have the scope {rule.scope!r}; make one that has it.",
            {"scope": rule.scope},
        )
    if who.via != "token" and request.method not in SAFE and not _csrf_holds(request):
        raise RequestRefused(
            "csrf", "the header X-CSRF-Token is missing or not this login session's; reload the page and try again."
        )
    return who


def authenticated(request: Request, state: AuthState) -> Caller | None:
    """Who makes the request, None if nobody is signed in; a token that is sent must be good, cookie or not."""
    header = request.headers.get("authorization")
    if header is not None:
        return _by_token(header, state)
    secret = session_secret(request)
    if secret is None:
        return None
    user, via = user_by_session(state, secret)
    return None if user is None else Caller(user.name, user.role, SCOPES_OF_ROLE[user.role], via)


def _by_token(header: str, state: AuthState) -> Caller:
    scheme, _, secret = header.partition(" ")
    owner = user_by_token(state.store, secret.strip()) if scheme.lower() == "bearer" else None
    if owner is None:
        # One sentence for all of them: somebody who found a token need not learn whether it was ever good.
        raise RequestRefused(
            "unauthenticated",
            "this token is not accepted: it is unknown, expired or revoked, or its owner is disabled; "
            "make a new one on the page under People, or with `farthing users token`.",
        )
    user, scopes = owner
    return Caller(user.name, user.role, scopes, "token")


def _csrf_holds(request: Request) -> bool:
    """Whether the request repeats the token that only our own page could read."""
    secret = session_secret(request)
    return secret is not None and csrf_fits(secret, request.headers.get(CSRF_HEADER))


def guarded(tag: str, *, prefix: str = "/api/v1") -> APIRouter:
    """A router whose routes are all behind the guard."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=GuardedRoute,
        responses=COMMON,
        generate_unique_id_function=lambda route: f"{tag}_{route.name}",  # what generated clients call it
    )

"""Who may call which route: one table, and what is not in it is refused before the server starts.

Roles: a curator may do everything; an analyst reads their own, plans, and spends their grant; an auditor reads
everything, and neither spends nor manages. A token has scopes, which may be fewer than its owner's role has: "read"
(looking), "plan" (pricing, composing, saving drafts), "spend" (releases, sessions, questions), "manage" (datasets,
budgets, grants, people). A web session has all scopes of its role.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fastapi import Request

from farthing.server.app_state import State


@dataclass(frozen=True)
class Caller:
    """Somebody who has shown who they are: by a web session, a token or a one-time link."""

    name: str
    role: str  # "curator", "analyst" or "auditor"
    scopes: frozenset[str]
    via: str  # "session", "token" or "link"


def caller(request: Request) -> Caller:
    """Who makes this request; a dependency of routes. The guard has put them there before the route runs."""
    found = request.state.caller
    assert isinstance(found, Caller), "the route is public: nobody is known here"
    return found


def the_state(request: Request) -> State:
    """What the app holds open: settings, store and ledger; a dependency of routes."""
    state = request.app.state.farthing
    assert isinstance(state, State)
    return state


CURATOR = frozenset({"curator"})
SPENDERS = frozenset({"curator", "analyst"})
READERS = frozenset({"curator", "auditor"})
ALL = frozenset({"curator", "analyst", "auditor"})

ROLES = ("curator", "analyst", "auditor")
SCOPES = ("read", "plan", "spend", "manage")
SCOPES_OF_ROLE: dict[str, frozenset[str]] = {
    "curator": frozenset(SCOPES),
    "analyst": frozenset({"read", "plan", "spend"}),
    "auditor": frozenset({"read", "plan"}),  # prices read no row and save nothing
}


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
    ("PUT", f"{_V}/datasets/{{name}}/budget"): Rule(CURATOR, "manage"),
    ("PUT", f"{_V}/datasets/{{name}}/grants/{{user}}"): Rule(CURATOR, "manage"),
    ("PUT", f"{_V}/datasets/{{name}}/reserves/{{label}}"): Rule(CURATOR, "manage"),
    # Studies and plans.
    ("GET", f"{_V}/studies"): Rule(ALL, "read"),
    ("POST", f"{_V}/studies"): Rule(SPENDERS, "plan"),
    ("GET", f"{_V}/studies/{{id}}"): Rule(ALL, "read"),
    ("DELETE", f"{_V}/studies/{{id}}"): Rule(SPENDERS, "plan"),
    ("POST", f"{_V}/plans/price"): Rule(ALL, "plan"),
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
    # Sessions.
    ("POST", f"{_V}/sessions/price"): Rule(ALL, "plan"),
    ("GET", f"{_V}/sessions"): Rule(ALL, "read"),
    ("POST", f"{_V}/sessions"): Rule(SPENDERS, "spend"),
    ("GET", f"{_V}/sessions/{{id}}"): Rule(ALL, "read"),
    ("POST", f"{_V}/sessions/{{id}}/ask"): Rule(SPENDERS, "spend"),
    # The ledger.
    ("GET", f"{_V}/ledger"): Rule(ALL, "read"),
    ("GET", f"{_V}/ledger/entries"): Rule(ALL, "read"),
    ("POST", f"{_V}/ledger/verify"): Rule(ALL, "read"),
    ("GET", f"{_V}/ledger/burn-down"): Rule(ALL, "read"),
    ("GET", f"{_V}/ledger/export"): Rule(READERS, "read"),
    # The accountant.
    ("POST", f"{_V}/compose"): Rule(ALL, "plan"),
    ("POST", f"{_V}/regions"): Rule(ALL, "plan"),
}


def rule_of(method: str, path: str) -> Rule | None:
    """The rule of a route, None for a public one; whoever may GET it may ask for its head.

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

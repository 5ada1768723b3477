"""Every route x role x way of coming in, made from the table of permissions, so that no route can be forgotten.

The guard is the real one; whoever it lets through is stopped right behind it, so that no route does anything.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from farthing.errors import RequestRefused
from farthing.server.auth import permissions
from farthing.server.auth.api_tokens import ROLES, SCOPES, SCOPES_OF_ROLE, new_secret, secret_hash
from farthing.server.auth.login_sessions import COOKIE, csrf_of, open_session
from farthing.server.auth.permissions import PERMISSIONS, PUBLIC, SAFE, GuardedRoute, Rule, rule_of
from farthing.server.store import now
from farthing.server.store.store_tables import logins, tokens, users
from unit.server.conftest import once_a_module

HERE = "http://127.0.0.1:8642"
LET_IN, UNKNOWN, NOT_ALLOWED, CSRF = "let in", "unauthenticated", "not_allowed", "csrf"
HOUR = 3600 * 10**9
ROWS = sorted(PERMISSIONS)  # all of them: one without a route ends as not_found


class Ways:
    """Headers for every way of coming in."""

    def __init__(self, state: Any) -> None:
        self.state = state
        with state.store.begin() as connection:
            for role in ROLES:
                for name, disabled in ((f"a.{role}", False), (f"no.{role}", True)):
                    connection.execute(users.insert().values(name=name, role=role, disabled=disabled, created=now()))
        self.sessions = {name: open_session(state, name, "password") for name in self.names()}
        self.links = {role: open_session(state, f"a.{role}", "link") for role in ROLES}
        self.ended = open_session(state, "a.curator", "password")
        self.closed = open_session(state, "a.curator", "password")
        with state.store.begin() as connection:
            connection.execute(
                logins.update().where(logins.c.hash == secret_hash(self.ended)).values(expires=now() - 1)
            )
            connection.execute(logins.delete().where(logins.c.hash == secret_hash(self.closed)))
        self.tokens = {(name, scope): self.token(name, scope) for name in self.names() for scope in SCOPES}
        self.expired = self.token("a.curator", *SCOPES, expires=now() - 1)
        self.revoked = self.token("a.curator", *SCOPES, revoked=now())

    def names(self) -> Iterator[str]:
        return (f"{prefix}.{role}" for role in ROLES for prefix in ("a", "no"))

    def token(self, user: str, *scopes: str, expires: int | None = None, revoked: int | None = None) -> str:
        word = new_secret("ft_")
        with self.state.store.begin() as connection:
            connection.execute(
                tokens.insert().values(
                    id=new_secret(),
                    user=user,
                    label="",
                    hash=secret_hash(word),
                    scopes=" ".join(scopes),
                    expires=expires or now() + HOUR,
                    created=now(),
                    revoked=revoked,
                )
            )
        return word

    def cases(self, method: str, rule: Rule) -> Iterator[tuple[str, dict[str, str], str]]:
        """What is tried, its headers, and how it must end."""
        yield "nobody", {}, UNKNOWN
        yield "a session that has ended", page(self.ended), UNKNOWN
        yield "a token of another server", bearer(new_secret("ft_")), UNKNOWN
        yield "an expired token", bearer(self.expired), UNKNOWN
        yield "a revoked token", bearer(self.revoked), UNKNOWN
        for role in ROLES:
            here = f"a.{role}"
            may = LET_IN if role in rule.roles else NOT_ALLOWED
            yield f"{role}'s session", page(self.sessions[here]), may
            if method not in SAFE:
                bare = {"Cookie": f"{COOKIE}={self.sessions[here]}", "Origin": HERE}
                wrong = NOT_ALLOWED if may == NOT_ALLOWED else CSRF
                yield f"{role}'s session without the page's word", bare, wrong
            for scope in SCOPES:
                owns = scope in SCOPES_OF_ROLE[role]  # a token made before its owner was demoted may say more
                good = may == LET_IN and scope == rule.scope and owns and not rule.session_only
                wanted = LET_IN if good else NOT_ALLOWED
                yield f"{role}'s token for {scope}", bearer(self.tokens[here, scope]), wanted

    def tricks(self) -> Iterator[tuple[str, dict[str, str], str]]:
        """What is tried at one route only, because it never gets as far as a row of the table."""
        mine = page(self.sessions["a.curator"])
        yield "an empty cookie", {"Cookie": f"{COOKIE}=", "Origin": HERE}, UNKNOWN
        yield "a made-up session", page(new_secret()), UNKNOWN
        yield "a session that was closed", page(self.closed), UNKNOWN
        yield "a session's mark", page(secret_hash(self.sessions["a.curator"])), UNKNOWN
        yield "a token in the cookie", page(self.tokens["a.curator", "manage"]), UNKNOWN
        yield "a token's mark", bearer(secret_hash(self.tokens["a.curator", "read"])), UNKNOWN
        yield "a session as a token", bearer(self.sessions["a.curator"]), UNKNOWN
        yield "a password", {"Authorization": "Basic YWRhOmFkYQ=="}, UNKNOWN
        yield "an empty token", {"Authorization": ""}, UNKNOWN
        yield "a bad token beside a good session", mine | bearer(new_secret("ft_")), UNKNOWN
        yield "a session by a link", page(self.links["curator"]), LET_IN
        other = mine | {"X-CSRF-Token": csrf_of(self.links["curator"])}
        yield "a session with another's word", other, CSRF
        yield "a session with an empty word", mine | {"X-CSRF-Token": ""}, CSRF
        yield "a session from another site", mine | {"Origin": "https://evil"}, CSRF
        yield "a session from a page without an origin", mine | {"Origin": "null"}, CSRF
        yield "a session from a part of the site", mine | {"Sec-Fetch-Site": "same-site"}, CSRF
        for role in ROLES:
            yield f"a disabled {role}'s session", page(self.sessions[f"no.{role}"]), UNKNOWN
            for scope in SCOPES:
                yield f"a disabled {role}'s token", bearer(self.tokens[f"no.{role}", scope]), UNKNOWN


def page(session: str) -> dict[str, str]:
    """Headers as the page sends them."""
    return {"Cookie": f"{COOKIE}={session}", "Origin": HERE, "X-CSRF-Token": csrf_of(session)}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope=once_a_module)
def ways(served: Any) -> Ways:
    return Ways(served.state)


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever the guard lets through gets 410 instead of the route."""
    admitted = permissions.admitted

    def then_stopped(*arguments: Any) -> Any:
        admitted(*arguments)
        raise RequestRefused("answer_forfeited", LET_IN)

    monkeypatch.setattr(permissions, "admitted", then_stopped)


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize(("method", "path"), ROWS, ids=[" ".join(row) for row in ROWS])
def test_a_route_lets_in_whom_its_row_names_and_nobody_else(served: Any, ways: Ways, method: str, path: str) -> None:
    assert not wrongs(served.app, method, path, list(ways.cases(method, PERMISSIONS[method, path])))


@pytest.mark.usefixtures("stopped")
def test_tricks_with_cookies_and_tokens_let_nobody_in(served: Any, ways: Ways) -> None:
    assert not wrongs(served.app, "POST", "/api/v1/users", list(ways.tricks()))


def wrongs(app: Any, method: str, path: str, cases: list[tuple[str, dict[str, str], str]]) -> list[str]:
    """What ended otherwise than it must."""
    address = re.sub(r"\{[^}]+\}", "x1", path)

    async def ended() -> list[str]:
        return [await outcome(app, method, address, headers) for _, headers, _ in cases]

    return [
        f"{what}: {seen}, not {wanted}"
        for (what, _, wanted), seen in zip(cases, asyncio.run(ended()), strict=True)
        if seen != wanted
    ]


async def outcome(app: Any, method: str, path: str, headers: dict[str, str]) -> str:
    """How a request ends, without a client: there are thousands of them."""
    sent: list[Any] = []
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1:8642")]
        + [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 5000),
        "server": ("127.0.0.1", 8642),
    }

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    status = sent[0]["status"]
    code = json.loads(b"".join(message.get("body", b"") for message in sent))["error"]["code"]
    assert (code == UNKNOWN) == (status == 401)
    assert (code in (NOT_ALLOWED, CSRF)) == (status == 403)
    return LET_IN if code == "answer_forfeited" else str(code)


def test_every_route_of_the_app_is_guarded_and_in_the_table(served: Any) -> None:
    for route in served.app.routes:
        assert isinstance(route, GuardedRoute), route
        for method in route.methods:
            rule_of(method, route.path)


def test_what_is_public_is_a_short_list_that_nobody_extends_by_accident() -> None:
    assert {
        ("GET", "/"),
        ("GET", "/favicon.ico"),
        ("GET", "/static/{path:path}"),
        ("GET", "/login"),
        ("GET", "/oidc/start"),
        ("GET", "/oidc/callback"),
        ("GET", "/api/v1/sign-in"),
        ("POST", "/api/v1/login"),
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/openapi.json"),
    } >= PUBLIC
    assert not PUBLIC & set(PERMISSIONS)


def test_nobody_but_a_curator_manages() -> None:
    assert {rule.roles for rule in PERMISSIONS.values() if rule.scope == "manage"} == {frozenset({"curator"})}


def test_an_auditor_changes_nothing_and_spends_nothing() -> None:
    """They may send what only computes, and what concerns their own account."""
    changes = {
        path.removeprefix("/api/v1")
        for (method, path), rule in PERMISSIONS.items()
        if "auditor" in rule.roles and method not in SAFE
    }
    own = {"/logout", "/password", "/tokens", "/tokens/{id}"}
    computed = {
        "/plans/price",
        "/sql",
        "/sessions/price",
        "/series/price",
        "/synthetic-tables/price",
        "/datasets/{name}/discoveries/price",
    }
    computed |= {"/ledger/verify", "/compose", "/regions", "/play", "/rivals", "/simulate", "/partitions"}
    assert changes - own <= computed
    assert not any("auditor" in rule.roles for rule in PERMISSIONS.values() if rule.scope == "spend")


def test_a_token_cannot_make_tokens_or_set_ones_own_password() -> None:
    for row in (("POST", "/tokens"), ("DELETE", "/tokens/{id}"), ("POST", "/password"), ("POST", "/logout")):
        assert PERMISSIONS[row[0], f"/api/v1{row[1]}"].session_only

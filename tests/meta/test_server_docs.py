"""The page of routes forgets none, invents none, says who may call them, and its examples can be sent."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tree import TOP

from farthing.server import Settings, create_app
from farthing.server.auth.permissions import PERMISSIONS, PUBLIC
from farthing.server.http.error_envelope import STATUS

PAGE = (TOP / "docs" / "server" / "api.md").read_text(encoding="utf-8")
METHODS = ("get", "post", "put", "patch", "delete")
Route = tuple[str, str]
WORDS = {
    frozenset({"curator"}): "curator",
    frozenset({"analyst"}): "analyst",
    frozenset({"curator", "analyst"}): "curator, analyst",
    frozenset({"curator", "auditor"}): "curator, auditor",
    frozenset({"curator", "analyst", "auditor"}): "all roles",
}


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the application says of itself."""
    folder = tmp_path_factory.mktemp("described")
    app = create_app(Settings(ledger=str(folder / "study.db"), data=Path(folder)))
    yield app.openapi()
    app.state.farthing.close()


def routes_of(described: dict[str, Any]) -> dict[Route, dict[str, Any]]:
    return {
        (method.upper(), path): operations[method]
        for path, operations in described["paths"].items()
        for method in METHODS
        if method in operations
    }


def rows() -> dict[Route, tuple[str, str]]:
    found = re.findall(r"^\| `([A-Z]+) (\S+)` \| ([^|]+) \| ([^|]+) \|", PAGE, re.M)
    return {(method, path): (who.strip(), scope.strip()) for method, path, who, scope in found}


def examples() -> Iterator[tuple[Route, str | None]]:
    """Method, address and body of every curl command of the page."""
    for line in re.findall(r"^curl .*$", PAGE, re.M):
        words = shlex.split(line)
        body = words[words.index("-d") + 1] if "-d" in words else None
        method = words[words.index("-X") + 1] if "-X" in words else "GET" if body is None else "POST"
        address = next(word for word in words if word.startswith(("$API", "$SERVER")))
        path = address.replace("$API", "/api/v1").replace("$SERVER", "").partition("?")[0]
        yield (method, path), body


def fits(path: str, template: str) -> bool:
    return re.fullmatch(re.sub(r"\{[^}]+\}", "[^/]+", template), path) is not None


def test_every_route_is_in_a_table_and_every_row_is_a_route(described: dict[str, Any]) -> None:
    documented = {route for route in rows() if route != ("GET", "/openapi.json")}
    assert documented == set(routes_of(described))


def test_the_tables_say_who_may_call() -> None:
    for route, (who, scope) in rows().items():
        if route in PUBLIC:
            assert (who, scope) == ("anybody", "-"), route
        else:
            rule = PERMISSIONS[route]
            assert (who, scope) == (WORDS[rule.roles], "page only" if rule.session_only else rule.scope), route


def test_every_route_has_an_example_that_it_would_take(described: dict[str, Any]) -> None:
    routes = routes_of(described)
    shown = set()
    for (method, path), body in examples():
        exact = [route for route in rows() if route[0] == method and route[1] == path]
        found = exact or [route for route in rows() if route[0] == method and fits(path, route[1])]
        assert found, (method, path)
        shown.add(found[0])
        if found[0] not in routes:
            continue
        wanted = routes[found[0]].get("requestBody", {}).get("content", {}).get("application/json", {})
        assert (body is not None) == bool(wanted), found[0]
        if body is not None:
            schema = {**wanted["schema"], "components": described["components"]}
            jsonschema.Draft202012Validator(schema).validate(json.loads(body))
    assert shown == set(rows())


def test_every_code_of_a_refusal_is_listed_with_its_status() -> None:
    listed = {
        code: int(status)
        for status, line in re.findall(r"^\| (\d{3}) \| (.*) \|$", PAGE, re.M)
        for code in re.findall(r"`([a-z_]+)`", line)
        if code in STATUS
    }
    assert listed == STATUS

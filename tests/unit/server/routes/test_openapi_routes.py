"""The description of the routes is whole: who may call each, what it can answer, and how it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from farthing.server.auth.permissions import PERMISSIONS, PUBLIC, rule_of
from farthing.server.routes.openapi_routes import TAGS
from unit.server.conftest import once_a_module


@pytest.fixture(scope=once_a_module)
def document(stranger: TestClient) -> dict[str, Any]:
    """What anybody can read."""
    answer = stranger.get("/openapi.json")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method.upper(), path, operation


@pytest.mark.slow
def test_it_says_what_it_is(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    assert document["info"]["title"] == "farthing"
    assert {tag["name"] for tag in document["tags"]} == set(TAGS)
    assert set(document["components"]["securitySchemes"]) == {"session", "token"}


@pytest.mark.slow
def test_every_operation_has_a_name_of_its_own_a_tag_and_a_sentence(document: dict[str, Any]) -> None:
    operations = list(_operations(document))
    names = [operation["operationId"] for _, _, operation in operations]
    assert len(set(names)) == len(names)
    for method, path, operation in operations:
        assert set(operation["tags"]) <= set(TAGS), (method, path)
        assert operation["description"].strip(), (method, path)


def test_every_operation_says_who_may_call_it(document: dict[str, Any]) -> None:
    for method, path, operation in _operations(document):
        rule = rule_of(method, path)
        ways = [] if rule is None else [{"session": []}]
        if rule is not None and not rule.session_only:
            ways.append({"token": []})
        assert operation["security"][: len(ways)] == ways, (method, path)
        assert operation.get("x-roles") == (None if rule is None else sorted(rule.roles))


def test_every_refusal_is_declared_in_the_one_shape(document: dict[str, Any]) -> None:
    shape = {"$ref": "#/components/schemas/ErrorEnvelope"}
    for method, path, operation in _operations(document):
        refused = {status: entry for status, entry in operation["responses"].items() if int(status) >= 400}
        assert {"400", "401", "403", "413", "422", "500", "503"} <= set(refused), (method, path)
        for status, entry in refused.items():
            assert entry["content"]["application/json"]["schema"] == shape, (method, path, status)


def test_headers_that_not_every_response_has_are_described(document: dict[str, Any]) -> None:
    for method, path, operation in _operations(document):
        answers = operation["responses"]
        assert "WWW-Authenticate" in answers["401"]["headers"], (method, path)
        assert "Retry-After" in answers["429"]["headers"], (method, path)
        if "303" in answers:
            assert {"Location", "Set-Cookie"} <= set(answers["303"]["headers"]), (method, path)
    for method, path, status, name in (
        ("post", "/api/v1/login", "200", "Set-Cookie"),
        ("post", "/api/v1/logout", "204", "Set-Cookie"),
        ("get", "/api/v1/ledger/export", "200", "Content-Disposition"),
        ("get", "/api/v1/releases/{request_id}/download", "200", "Content-Disposition"),
    ):
        assert name in document["paths"][path][method]["responses"][status]["headers"]


def test_every_success_in_json_has_a_shape(document: dict[str, Any]) -> None:
    for method, path, operation in _operations(document):
        for status, entry in operation["responses"].items():
            is_file = path.endswith(("/download", "/export"))
            if int(status) < 300 and "application/json" in entry.get("content", {}) and not is_file:
                assert entry["content"]["application/json"]["schema"], (method, path, status)


def test_the_table_of_permissions_has_no_row_for_a_route_that_is_not_there(served: Any) -> None:
    there = {(method, route.path) for route in served.app.routes for method in route.methods if method != "HEAD"}
    assert set(PERMISSIONS) | PUBLIC == there


def test_it_names_no_person_no_dataset_and_no_place(document: dict[str, Any], served: Any) -> None:
    text = json.dumps(document)
    assert str(served.settings.data) not in text
    assert "people.csv" not in text

"""What must hold of every answer, whoever asked for whatever."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import requests
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from farthing.server.http.error_envelope import STATUS
from farthing.server.http.security_headers import HEADERS
from system.server.fuzzing.canaries import Canaries
from system.server.fuzzing.cases import Trial
from system.server.fuzzing.people import LET_IN

CONFORMS = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance,
    response_schema_conformance,
]  # fmt: skip
_ANY = ("Content-Type", "Content-Length", "Date", "Cache-Control", "Transfer-Encoding", "Connection")
UNDECLARED = "the name of an undeclared column"
# A curator chooses columns by their names, declared or not; nobody else is told them, and no answer tells a cell.
_MAY_NAME_COLUMNS = {
    ("GET", "/api/v1/sources"),
    ("POST", "/api/v1/datasets/check"),
    ("POST", "/api/v1/datasets"),
}
# Where a wrong password is what is refused, whoever sends it.
_ASKS_FOR_PASSWORDS = {("POST", "/api/v1/login"), ("POST", "/api/v1/password")}


def faults(
    trial: Trial,
    case: Case,
    request: requests.PreparedRequest,
    response: requests.Response,
    canaries: Canaries,
) -> Iterator[str]:
    """Everything that is wrong with an answer."""
    is_there = _fits(trial.call[1], str(request.path_url).partition("?")[0])
    if trial.intent == "stray" or not is_there:
        yield from _stray(request, response)
    else:
        yield from _entry(trial, response)
        yield from _described(trial, case, response)
    if response.status_code >= 400 and request.method != "HEAD":
        yield from _envelope(response)
    known = {name.lower() for name in (*HEADERS, *_ANY, *_named(case, response.status_code))}
    for name in response.headers:
        if name.lower() not in known and trial.intent != "stray" and is_there:
            yield f"header {name} is not described"
    for name, value in HEADERS.items():
        if response.headers.get(name) != value:
            yield f"header {name} is {response.headers.get(name)!r}"
    if response.headers.get("Cache-Control") != "no-store":
        yield "it may be kept in caches"
    yield from _told(trial, request, response, canaries)


def _entry(trial: Trial, response: requests.Response) -> Iterator[str]:
    """Whoever may not call is refused, and whoever may is let in."""
    status, wanted = response.status_code, trial.must_end
    if wanted != LET_IN and status not in (wanted, 413):
        yield f"{trial.way.name} got {status} where the table of permissions says {wanted}"
    if wanted == LET_IN and status in (401, 403) and trial.call not in _ASKS_FOR_PASSWORDS:
        yield f"{trial.way.name} got {status} where the table of permissions lets them in"


def _described(trial: Trial, case: Case, response: requests.Response) -> Iterator[str]:
    """Status, type, headers and body are what the description says, and what it forbids was not taken."""
    checks = list(CONFORMS)
    if trial.intent == "negative" and case is trial.case and response.status_code != 413:
        checks.append(negative_data_rejection)
    try:
        case.validate_response(response, checks=checks)
    except FailureGroup as group:
        for failure in group.exceptions:
            yield f"{type(failure).__name__}: {str(failure)[:400]}"


def _named(case: Case, status: int) -> list[str]:
    """Headers that the description has for a status."""
    response = case.operation.definition.raw["responses"].get(str(status), {})
    return list(response.get("headers", {}))


def _stray(request: requests.PreparedRequest, response: requests.Response) -> Iterator[str]:
    """Another method, another host or no address of ours: refused, and nothing worse."""
    allowed = {400, 401, 403, 404, 405, 413, 422}
    if request.method in ("GET", "HEAD"):
        allowed |= {200, 303}  # an address that another operation has, or its head
    if response.status_code not in allowed:
        yield f"{request.method} ended with {response.status_code}"


def _envelope(response: requests.Response) -> Iterator[str]:
    try:
        body: Any = response.json()
        error = body["error"]
        if set(body) != {"error"} or set(error) != {"code", "message", "fields"}:
            yield "the envelope has other keys"
        elif STATUS.get(error["code"]) != response.status_code:
            yield f"code {error['code']!r} with status {response.status_code}"
        elif not error["message"] or not isinstance(error["fields"], dict):
            yield "the envelope says nothing"
    except (ValueError, KeyError, TypeError):
        yield f"{response.status_code} without the envelope: {response.text[:100]!r}"


def _told(
    trial: Trial, request: requests.PreparedRequest, response: requests.Response, canaries: Canaries
) -> Iterator[str]:
    """No secret is in an answer, but what the sender has put into address or body; headers are never repeated."""
    text = response.content.decode("utf-8", "replace")
    headers = "\n".join(f"{name}: {value}" for name, value in response.headers.items())
    seen = canaries.found(text) | {f"{each} (header)" for each in canaries.found(headers)}
    if not seen:
        return
    if trial.call in _MAY_NAME_COLUMNS and trial.way.role == "curator":
        seen.discard(UNDECLARED)
    for each in sorted(seen - canaries.found(sent_text(request))):
        yield f"tells {each}"


def sent_text(request: requests.PreparedRequest) -> str:
    """Address and body of a request."""
    body = request.body or b""
    return f"{request.url}\n{body if isinstance(body, str) else bytes(body).decode('utf-8', 'replace')}"


def _fits(template: str, path: str) -> bool:
    """Whether a path is one of the template's: a parameter with a slash in it, however written, leads elsewhere.

    >>> _fits("/plans/{id}", "/plans/a%20b"), _fits("/plans/{id}", "/plans/a%2Fb"), _fits("/plans/{id}", "/plans/")
    (True, False, False)
    """
    return re.fullmatch(re.sub(r"\\\{[^/]+\\\}", "[^/]+", re.escape(template)), unquote(path), re.DOTALL) is not None


def parsed(body: bytes) -> Any:
    """The JSON of a body; None if it is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None

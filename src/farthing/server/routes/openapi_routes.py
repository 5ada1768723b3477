"""The description of all routes, completed with what holds for every one of them."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from farthing.server.auth.permissions import guarded, rule_of
from farthing.server.http.origin_checks import COOKIE
from farthing.server.http.security_headers import described_headers

router = guarded("health", prefix="")

TAGS = {
    "people": "Signing in, accounts, roles and tokens.",
    "datasets": "Tables with a budget: what they hold, whose rows they are, what is left.",
    "studies": "Named folders of plans.",
    "plans": "What statistics would cost and how accurate they would be; nothing is spent.",
    "discoveries": "Ranges, values and bounds that nobody knows: what finding them costs, and what was found.",
    "releases": "Spend budget once and return the answers; the same request id never spends twice.",
    "requests": "What analysts ask curators to approve, what they decided, and standing policies.",
    "series": "Running counts of a table that grows, paid once and released period by period.",
    "sessions": "Query sessions: many questions for one price, paid in advance.",
    "synthetic-tables": "Rows that belong to nobody, with about the counts of those that do; paid for once.",
    "ledger": "What was spent, by whom, and whether the record is intact.",
    "accountant": "What charges cost together.",
    "health": "Whether the server is healthy.",
}
_ENVELOPE = {"$ref": "#/components/schemas/ErrorEnvelope"}
# Headers that come with a status, whatever the route. Those that every response has are no part of the description.
_HEADERS = {
    "303": {"Location": "where the browser continues", "Set-Cookie": "the session, or that it has ended"},
    "401": {"WWW-Authenticate": "how to authenticate with a token"},
    "429": {"Retry-After": "seconds until it is worth trying again, where that is known"},
}
WORDS = (
    "One set of routes for the page, the command line and scripts. Everything that is not a success has the shape "
    "{error: {code, message, fields}}. Sign in with a session cookie (changes need the header X-CSRF-Token) or with a "
    "token: Authorization: Bearer ft_..."
)


@router.get("/openapi.json", include_in_schema=False)
def openapi_document(request: Request) -> JSONResponse:
    """The OpenAPI description of all routes, as JSON."""
    return JSONResponse(request.app.openapi())


def described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of the app, with who may call what."""
    document = get_openapi(
        title="farthing",
        version=app.version,
        description=WORDS,
        routes=app.routes,
        tags=[{"name": name, "description": words} for name, words in TAGS.items()],
    )
    document["components"]["securitySchemes"] = {
        "session": {"type": "apiKey", "in": "cookie", "name": COOKIE},
        "token": {"type": "http", "scheme": "bearer"},
    }
    for route in app.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in route.methods or ():
                operation = document["paths"][route.path_format][method.lower()]
                _protect(operation, method, route.path)
                _refuse_in_json(operation)
                for status, headers in _HEADERS.items():
                    if status in operation["responses"]:
                        operation["responses"][status]["headers"] = described_headers(headers)
    return document


def _refuse_in_json(operation: dict[str, Any]) -> None:
    """A route that answers with a text or a file still refuses in JSON."""
    for status, response in operation["responses"].items():
        if int(status) >= 400:
            response["content"] = {"application/json": {"schema": _ENVELOPE}}


def _protect(operation: dict[str, Any], method: str, path: str) -> None:
    """Write down which credentials the operation takes, and whose."""
    rule = rule_of(method, path)
    if rule is None:
        operation["security"] = []
        return
    ways: list[dict[str, list[str]]] = [{"session": []}]
    if not rule.session_only:
        ways.append({"token": []})
    if rule.open_if:
        ways.append({})
    operation["security"] = ways
    operation["x-roles"] = sorted(rule.roles)
    operation["x-scope"] = rule.scope

"""One shape for everything that is not a success: {"error": {"code", "message", "fields"}}."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from farthing.errors import (
    AnswerForfeited,
    BudgetExceeded,
    EngineError,
    FarthingError,
    Infeasible,
    InvalidData,
    InvalidExpression,
    InvalidValue,
    LedgerError,
    LedgerTampered,
    MissingExtra,
    NotAllowed,
    RequestRefused,
    SessionEnded,
)
from farthing.server.http.request_problems import problems_of

STATUS: dict[str, int] = {
    "unauthenticated": 401,
    "not_allowed": 403,
    "csrf": 403,
    "host_refused": 400,
    "not_found": 404,
    "method_not_allowed": 405,
    "conflict": 409,
    "budget_exceeded": 409,
    "session_ended": 409,
    "infeasible": 409,
    "undiscovered": 409,
    "answer_forfeited": 410,
    "too_large": 413,
    "invalid_value": 422,
    "invalid_expression": 422,
    "invalid_request": 422,
    "engine_error": 424,
    "rate_limited": 429,
    "internal": 500,
    "ledger_unavailable": 503,
    "ledger_tampered": 503,
}
# The first that fits names the code: a subclass stands before what it is a kind of.
_CODES: tuple[tuple[type[FarthingError], str], ...] = (
    (SessionEnded, "session_ended"),
    (BudgetExceeded, "budget_exceeded"),
    (Infeasible, "infeasible"),
    (AnswerForfeited, "answer_forfeited"),
    (InvalidExpression, "invalid_expression"),
    (InvalidValue, "invalid_value"),
    (InvalidData, "invalid_value"),
    (EngineError, "engine_error"),
    (MissingExtra, "engine_error"),
    (NotAllowed, "not_allowed"),
    (LedgerTampered, "ledger_tampered"),
    (LedgerError, "ledger_unavailable"),
)
_FIELDS = (
    "requested", "remaining", "budget_id", "blocking", "closest", "hardest", "offers", "holds", "epsilon", "name",
    "rule", "way_out", "text", "position", "rounds", "request_id", "reason", "role", "action", "sequence", "column",
)  # fmt: skip
_BY_STATUS = {
    400: "invalid_request",
    401: "unauthenticated",
    403: "not_allowed",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "invalid_request",
    429: "rate_limited",
}
_SENTENCES = {
    "too_large": "the body is larger than this server reads; send less at once.",
    "not_found": "there is nothing at this address; look at /openapi.json for what there is.",
    "method_not_allowed": "this address does not take that method; look at /openapi.json for what it takes.",
    "invalid_request": "the request could not be read; send JSON in UTF-8.",
}
UNAVAILABLE = (
    "the ledger cannot be read or written now, and nothing was released; try again with the same request id. "
    "The server's log says why."
)
_log = logging.getLogger("farthing.server.failures")


class ErrorBody(BaseModel):
    """What went wrong: a stable code, a sentence for people, and facts for programs."""

    model_config = ConfigDict(extra="forbid")
    code: str
    message: str
    fields: dict[str, Any]


class ErrorEnvelope(BaseModel):
    """Everything that is not a success has this shape."""

    model_config = ConfigDict(extra="forbid")
    error: ErrorBody


def error_of(problem: FarthingError) -> dict[str, Any]:
    """The inside of the envelope for something farthing refused: also what a failed job remembers.

    >>> error_of(InvalidValue("k", -1, "must be >= 0", "count up"))["fields"]
    {'name': 'k', 'rule': 'must be >= 0', 'way_out': 'count up'}
    """
    if isinstance(problem, RequestRefused):
        return {"code": problem.code, "message": str(problem), "fields": _plain(problem.fields)}
    code = next((code for kind, code in _CODES if isinstance(problem, kind)), "invalid_value")
    if code == "ledger_unavailable":  # why may name a path or a host, which is for the log
        _log.warning("%s", problem)
        return {"code": code, "message": UNAVAILABLE, "fields": {}}
    facts = {name: getattr(problem, name) for name in _FIELDS if hasattr(problem, name)}
    if isinstance(problem, MissingExtra):
        facts.pop("name", None)  # ImportError has one, and it is None
    if facts.get("column", "") is None:
        del facts["column"]
    return {"code": code, "message": str(problem), "fields": _plain(facts)}


def refusal(problem: FarthingError) -> JSONResponse:
    """The response to something farthing refused."""
    body = error_of(problem)
    status = STATUS[body["code"]]
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="farthing"'
    if "retry_after" in body["fields"]:
        headers["Retry-After"] = str(math.ceil(body["fields"]["retry_after"]))
    return JSONResponse({"error": body}, status, headers)


def refusals(*codes: str) -> dict[int | str, dict[str, Any]]:
    """What to write in a route's `responses=` for the codes it can give.

    >>> sorted(refusals("not_found", "conflict", "infeasible"))
    [404, 409]
    """
    named: dict[int, list[str]] = {}
    for code in codes:
        named.setdefault(STATUS[code], []).append(code)
    return {
        status: {"model": ErrorEnvelope, "description": " or ".join(sorted(codes_of_status))}
        for status, codes_of_status in named.items()
    }


# Every route can give these; the app declares them for all of them.
COMMON = refusals(
    "host_refused",
    "unauthenticated",
    "not_allowed",
    "csrf",
    "too_large",
    "invalid_request",
    "invalid_value",
    "rate_limited",
    "internal",
    "ledger_unavailable",
    "ledger_tampered",
)


async def refused_by_farthing(_: Request, problem: Exception) -> JSONResponse:
    """Handler of everything in farthing's tree of errors."""
    assert isinstance(problem, FarthingError)
    return refusal(problem)


async def refused_by_pydantic(request: Request, problem: Exception) -> JSONResponse:
    """Handler of bodies and queries that break their model. What was sent is not repeated but for numbers."""
    assert isinstance(problem, RequestValidationError)
    problems = problems_of(request, problem)
    first = f"{problems[0]['where']}: {problems[0]['rule']}" if problems else "it breaks a rule"
    sentence = f"the request cannot be used: {first}".removesuffix("?")
    end = "?" if first.endswith("?") else "."
    return refusal(RequestRefused("invalid_request", sentence + end, {"problems": problems}))


async def refused_by_starlette(_: Request, problem: Exception) -> JSONResponse:
    """Handler of what the framework itself refuses: unknown addresses, wrong methods."""
    assert isinstance(problem, HTTPException)
    code = _BY_STATUS.get(problem.status_code, "invalid_request")
    fields = {"problems": [{"where": "body", "rule": "must be JSON in UTF-8"}]} if code == "invalid_request" else {}
    response = refusal(RequestRefused(code, _SENTENCES.get(code, "the request was refused."), fields))
    for name, value in (problem.headers or {}).items():
        response.headers[name] = value
    return response


def _plain(value: Any) -> Any:
    """A public field as JSON has it: finite numbers, texts, lists and objects."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    return str(value)

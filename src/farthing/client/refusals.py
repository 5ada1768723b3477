"""What a server refused, as the exception that the local API would have raised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from farthing.errors import (
    AnswerForfeited,
    BudgetExceeded,
    EngineError,
    FarthingError,
    Infeasible,
    InvalidExpression,
    InvalidValue,
    LedgerTampered,
    LedgerUnavailable,
    NotAllowed,
    RequestRefused,
    SessionEnded,
)

# The classes as the local API raises them. A message is the server's own: it is not put together twice.
_CLASSES: dict[str, type[FarthingError]] = {
    "budget_exceeded": BudgetExceeded,
    "session_ended": SessionEnded,
    "infeasible": Infeasible,
    "answer_forfeited": AnswerForfeited,
    "invalid_value": InvalidValue,
    "invalid_expression": InvalidExpression,
    "engine_error": EngineError,
    "not_allowed": NotAllowed,
    "ledger_tampered": LedgerTampered,
    "ledger_unavailable": LedgerUnavailable,
}
# What code that catches them may read, where the server did not say.
_ABSENT: dict[str, Any] = {
    "requested": None, "remaining": None, "budget_id": "", "rounds": 0, "way_out": "", "blocking": (),
    "closest": None, "epsilon": float("inf"), "request_id": "", "reason": "", "name": "", "value": None,
    "rule": "", "text": "", "position": None, "engine": "", "kind": "", "role": "", "action": "", "problem": "",
    "sequence": None, "offers": {},
}  # fmt: skip
_FIELDS: dict[type[FarthingError], tuple[str, ...]] = {
    BudgetExceeded: ("requested", "remaining", "budget_id"),
    SessionEnded: ("requested", "remaining", "budget_id", "rounds", "way_out"),
    Infeasible: ("blocking", "closest", "hardest", "epsilon", "offers"),
    AnswerForfeited: ("request_id", "reason"),
    InvalidValue: ("name", "value", "rule", "way_out"),
    InvalidExpression: ("text", "position", "rule", "way_out"),
    EngineError: ("engine", "kind", "way_out"),
    NotAllowed: ("role", "action"),
    LedgerTampered: ("problem", "sequence"),
    LedgerUnavailable: ("reason", "way_out"),
}


def refusal_of(envelope: Mapping[str, Any]) -> FarthingError:
    """The exception of an error envelope's inside: the class and the fields of the local API, the server's words.

    >>> found = refusal_of({"code": "budget_exceeded", "message": "too much.", "fields": {"requested": 0.5}})
    >>> type(found).__name__, str(found), found.requested
    ('BudgetExceeded', 'too much.', 0.5)
    >>> refusal_of({"code": "conflict", "message": "somebody was quicker.", "fields": {}}).code
    'conflict'
    """
    code, message = str(envelope.get("code", "internal")), str(envelope.get("message", "the server refused."))
    fields = envelope.get("fields")
    facts: Mapping[str, Any] = fields if isinstance(fields, Mapping) else {}
    kind = _CLASSES.get(code)
    if kind is None:
        return RequestRefused(code, message, facts)
    return _made(kind, message, facts)


def _made(kind: type[FarthingError], message: str, facts: Mapping[str, Any]) -> FarthingError:
    new: Callable[..., FarthingError] = kind.__new__
    problem = new(kind, message)  # past __init__, which would word it anew
    problem.args = (message,)
    for name in _FIELDS[kind]:
        value = facts.get(name, _ABSENT.get(name))
        setattr(problem, name, tuple(value) if isinstance(value, list) else value)
    return problem

"""Every refusal has one shape, a status that fits, and facts that are JSON."""

from __future__ import annotations

import json
import logging

import pytest

from farthing import errors
from farthing.errors import FarthingError, RequestRefused
from farthing.privacy import ApproxDP
from farthing.server.http.error_envelope import STATUS, error_of, refusal, refusals

EXAMPLES: list[tuple[FarthingError, str, int]] = [
    (errors.InvalidValue("k", float("nan"), "must be finite", "count"), "invalid_value", 422),
    (errors.InvalidData("value", "must be whole numbers"), "invalid_value", 422),
    (errors.InvalidExpression("age <", 5, "ends too early"), "invalid_expression", 422),
    (errors.EngineError("duckdb", "IOException"), "engine_error", 424),
    (errors.MissingExtra("pictures", "altair", "plots"), "engine_error", 424),
    (
        errors.BudgetExceeded("too much", requested=ApproxDP(1.0, 0.0), remaining=0.5, budget_id="people/bob"),
        "budget_exceeded",
        409,
    ),
    (errors.SessionEnded("updates", 40, "ask what was asked before"), "session_ended", 409),
    (errors.Infeasible("no", blocking=("count",), closest=float("inf"), epsilon=1.5), "infeasible", 409),
    (errors.AnswerForfeited("bob:r-1", "stopped"), "answer_forfeited", 410),
    (errors.NotAllowed("auditor", "charge"), "not_allowed", 403),
    (errors.LedgerTampered("entry 7 is wrong", sequence=7), "ledger_tampered", 503),
    (errors.LedgerUnavailable("the disk is full"), "ledger_unavailable", 503),
    (errors.LedgerError("something"), "ledger_unavailable", 503),
    (RequestRefused("not_found", "there is none.", {"name": "x"}), "not_found", 404),
    (FarthingError("a rule of a part that has no class"), "invalid_value", 422),
    (errors.InvalidSQL("SELECT age", 7, "rows never leave"), "invalid_expression", 422),
]


@pytest.mark.parametrize(("problem", "code", "status"), EXAMPLES, ids=lambda it: type(it).__name__)
def test_every_error_has_its_code_and_status(problem: FarthingError, code: str, status: int) -> None:
    response = refusal(problem)
    body = json.loads(bytes(response.body))
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message", "fields"}
    assert (body["error"]["code"], response.status_code, STATUS[code]) == (code, status, status)


def test_every_class_of_error_is_among_the_examples() -> None:
    named = {getattr(errors, name) for name in errors.__all__}
    named = {named_class for named_class in named if issubclass(named_class, FarthingError)}  # no warnings
    assert named == {type(problem) for problem, _, _ in EXAMPLES}


def test_facts_are_plain_and_finite() -> None:
    assert error_of(EXAMPLES[5][0])["fields"] == {
        "requested": {"epsilon": 1.0, "delta": 0.0},
        "remaining": 0.5,
        "budget_id": "people/bob",
    }
    assert error_of(EXAMPLES[7][0])["fields"].items() >= {"blocking": ["count"], "closest": None}.items()
    assert error_of(EXAMPLES[2][0])["fields"]["position"] == 5


def test_why_a_ledger_cannot_be_reached_is_for_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        told = error_of(errors.LedgerUnavailable("db.internal:5432 is full"))
    assert "db.internal" not in json.dumps(told)
    assert "db.internal" in caplog.text


def test_who_comes_too_often_is_told_when_to_come_again() -> None:
    response = refusal(RequestRefused("rate_limited", "wait.", {"retry_after": 11.2}))
    assert (response.status_code, response.headers["retry-after"]) == (429, "12")


def test_who_is_not_signed_in_is_told_how() -> None:
    assert refusal(RequestRefused("unauthenticated", "sign in.")).headers["www-authenticate"].startswith("Bearer")


def test_codes_of_one_status_are_declared_together() -> None:
    declared = refusals("not_found", "conflict", "budget_exceeded")
    assert {status: entry["description"] for status, entry in declared.items()} == {
        404: "not_found",
        409: "budget_exceeded or conflict",
    }


def test_the_refusal_of_a_column_that_is_not_there_names_it() -> None:
    rule = "there is no column 'hight'"
    assert error_of(errors.InvalidExpression("hight > 1", 0, rule, column="hight"))["fields"]["column"] == "hight"
    assert "column" not in error_of(errors.InvalidExpression("age <", 5, "something is missing"))["fields"]

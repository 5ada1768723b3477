"""The route that reads SQL: what a statement asks for, and its rows once that was released. Nothing here spends."""

from __future__ import annotations

from farthing.server.auth.permissions import Who, guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.schemas.sql_schema import StatementView, StatementWords
from farthing.server.services.app_state import TheState
from farthing.server.services.sql_service import statement_view

router = guarded("plans")


@router.post(
    "/sql",
    response_model=StatementView,
    responses=refusals("not_found", "conflict", "infeasible", "invalid_expression", "answer_forfeited", "engine_error"),
    summary="What a statement of SQL asks for, and the rows of its release",
)
def statement(body: StatementWords, state: TheState, who: Who) -> StatementView:
    """Its statistics in the words of a draft, which is priced and released like any other."""
    return statement_view(state, who, body)

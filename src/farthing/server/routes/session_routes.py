"""Routes of query sessions. Only the person who opened a session sees it and its questions."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response
from starlette.concurrency import run_in_threadpool

from farthing.server.auth.permissions import Who, guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.schemas.session_schema import (
    AnswerView,
    QuestionAsked,
    QuoteView,
    SessionAsked,
    SessionList,
    SessionOpening,
    SessionView,
)
from farthing.server.services.app_state import TheState
from farthing.server.services.job_queue import as_the_ledger_has_it, awaited
from farthing.server.services.release_status import refuse_unreleased
from farthing.server.services.session_service import (
    answered,
    opening,
    own_session,
    priced,
    session_view,
    sessions_of,
)

router = guarded("sessions")

SessionId = Annotated[str, Path(pattern=r"^([a-z0-9][a-z0-9._-]{0,63}:)?[A-Za-z0-9._-]{1,100}$", max_length=170)]


@router.post(
    "/sessions/price",
    response_model=QuoteView,
    responses=refusals("not_found", "budget_exceeded", "infeasible", "engine_error"),
    summary="What a query session would cost and promise",
)
def price(asked: SessionAsked, who: Who, state: TheState) -> QuoteView:
    """The price, the promise and the caution; nothing is spent and no row is read."""
    return priced(state, who, asked)


@router.post(
    "/sessions",
    response_model=SessionView,
    responses={
        202: {"model": SessionView, "description": "it is being opened; look at it again"},
        **refusals("not_found", "conflict", "budget_exceeded", "infeasible", "answer_forfeited", "engine_error"),
    },
    summary="Open a query session",
)
async def open_session(body: SessionOpening, response: Response, who: Who, state: TheState) -> SessionView:
    """Charge once for a whole session, for each request id; the same id again resumes the session."""
    job = await run_in_threadpool(opening, state, who, body)
    job = await awaited(state, job, body.wait)
    job = await run_in_threadpool(as_the_ledger_has_it, state, job)
    refuse_unreleased(job)
    response.status_code = 200 if job.is_released else 202
    return await run_in_threadpool(session_view, state, who, job)


@router.get("/sessions", response_model=SessionList, summary="Your own query sessions")
def sessions(who: Who, state: TheState, dataset: Annotated[str | None, Query(max_length=64)] = None) -> SessionList:
    """Your own sessions, the newest first; histories are at their own address."""
    return sessions_of(state, who, dataset)


@router.get(
    "/sessions/{id}",
    response_model=SessionView,
    responses=refusals("not_found", "engine_error"),
    summary="A query session and what was answered",
)
def one_session(
    id: SessionId,
    who: Who,
    state: TheState,
    limit: Annotated[int, Query(ge=0, le=1_000, description="how many of the last answers")] = 200,
) -> SessionView:
    """What is left of a session, what may be asked, and the last answers. Sessions of other people are not found."""
    return session_view(state, who, own_session(state, who, id), history=limit)


@router.post(
    "/sessions/{id}/ask",
    response_model=AnswerView,
    responses=refusals(
        "not_found",
        "conflict",
        "session_ended",
        "answer_forfeited",
        "invalid_expression",
        "engine_error",
        "budget_exceeded",
        "infeasible",
    ),
    summary="Ask how many rows meet a condition",
)
def ask(id: SessionId, body: QuestionAsked, who: Who, state: TheState) -> AnswerView:
    """An answer within the promised error, at once; the same question has the same answer."""
    return answered(state, who, own_session(state, who, id), body.question)

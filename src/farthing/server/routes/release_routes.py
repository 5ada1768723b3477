"""Routes about releases: ask once, watch, read, download. The same request id is charged once and answered the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from farthing.errors import FarthingError
from farthing.server.auth.permissions import Who, authenticated, guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.http.security_headers import described_headers
from farthing.server.schemas.release_schema import Format, ReleaseList, ReleaseRequest, ReleaseView, TableView
from farthing.server.services.app_state import State, TheState
from farthing.server.services.job_queue import Job, as_the_ledger_has_it, awaited, event_texts
from farthing.server.services.release_status import (
    download,
    refuse_unreleased,
    release_list,
    release_view,
    submitted_release,
    table_view,
    visible_release,
)

router = guarded("releases")

_REFUSALS = refusals(
    "not_found",
    "conflict",
    "budget_exceeded",
    "infeasible",
    "answer_forfeited",
    "engine_error",
    "invalid_expression",
)

AnyId = Annotated[str, Path(pattern=r"^([a-z0-9][a-z0-9._-]{0,63}:)?[A-Za-z0-9._-]{1,100}$", max_length=170)]


@router.post(
    "/releases",
    response_model=ReleaseView,
    responses={
        202: {"model": ReleaseView, "description": "it waits or runs; look at it, or at its events"},
        **_REFUSALS,
    },
)
async def release(body: ReleaseRequest, response: Response, who: Who, state: TheState) -> ReleaseView:
    """Charge, run and answer, once for each request id; the same id again gives the same answer."""
    job = await run_in_threadpool(submitted_release, state, who, body)
    job = await awaited(state, job, body.wait)
    job = await run_in_threadpool(as_the_ledger_has_it, state, job)
    refuse_unreleased(job)
    response.status_code = 200 if job.is_released else 202
    return await run_in_threadpool(release_view, state, job)


@router.get("/releases", response_model=ReleaseList)
def releases(who: Who, state: TheState, dataset: Annotated[str | None, Query(max_length=64)] = None) -> ReleaseList:
    """The newest releases without their answers: your own, for curators and auditors everybody's."""
    return release_list(state, who, dataset)


@router.get("/releases/{request_id}", response_model=ReleaseView, responses=refusals("not_found"))
def one_release(request_id: AnyId, who: Who, state: TheState) -> ReleaseView:
    """A release, with its answers if it has them."""
    return release_view(state, visible_release(state, who, request_id))


@router.get(
    "/releases/{request_id}/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "`progress` events, then `done`",
            "headers": described_headers({"X-Accel-Buffering": "no: a proxy must not buffer events"}),
            "content": {"text/event-stream": {}},
        },
        **refusals("not_found"),
    },
)
async def events(request_id: AnyId, request: Request, who: Who, state: TheState) -> StreamingResponse:
    """How far it is, as server-sent events: `progress` {state, progress} when that changes, and `done` at the end."""
    job = await run_in_threadpool(visible_release, state, who, request_id)
    return event_stream(state, job, lambda: _may_still_see(request, state, job))


@router.get(
    "/releases/{request_id}/download",
    response_class=Response,
    responses={
        200: {
            "description": "a file",
            "headers": described_headers({"Content-Disposition": "what the file is called"}),
            "content": {"text/csv": {}, "application/json": {}, "text/html": {}, "text/x-python": {}},
        },
        **_REFUSALS,
    },
)
def file(request_id: AnyId, who: Who, state: TheState, format: Annotated[Format, Query()] = "csv") -> Response:
    """A release as a file: table, everything as JSON, a page that needs nothing else, Python code, or the receipt."""
    text, kind, name = download(state, visible_release(state, who, request_id), format)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=kind, headers=headers)


@router.get(
    "/releases/{request_id}/table",
    response_model=TableView,
    responses=refusals("not_found", "engine_error"),
    summary="Whether the table has changed since a release",
)
def table(request_id: AnyId, who: Who, state: TheState) -> TableView:
    """For curators: whether a table has changed depends on its rows, so nobody else may know."""
    return table_view(state, who, request_id)


def event_stream(state: State, job: Job, allowed: Callable[[], bool]) -> StreamingResponse:
    """The changes of a job as server-sent events, with a sign of life in between, while they are `allowed`."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # nginx would keep events back
    return StreamingResponse(event_texts(state, job, allowed), media_type="text/event-stream", headers=headers)


def _may_still_see(request: Request, state: State, job: Job) -> bool:
    """Whether the caller may see the job now: a stream lasts minutes, and somebody may be shut out meanwhile."""
    try:
        who = authenticated(request, state)
    except FarthingError:
        return False
    return who is not None and (who.role != "analyst" or who.name == job.owner)

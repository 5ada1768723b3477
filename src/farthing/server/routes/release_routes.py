"""Routes about releases: ask once, watch, read, download. The same request id is charged once and answered the same."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from farthing.errors import FarthingError, RequestRefused
from farthing.ledger import Stored
from farthing.server.auth.permissions import Caller, Who, authenticated, guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.http.origin_checks import described_headers
from farthing.server.schemas.release_schema import Format, ReleaseList, ReleaseRequest, ReleaseView, TableView
from farthing.server.services.app_state import State, TheState
from farthing.server.services.dataset_service import study_of
from farthing.server.services.job_queue import (
    as_the_ledger_has_it,
    awaited,
    changes,
    full_id,
    submitted,
    visible_job,
)
from farthing.server.services.plan_prices import asked_of_draft
from farthing.server.services.release_status import (
    download,
    is_release_of,
    listed_views,
    refuse_unreleased,
    release_view,
)
from farthing.server.store.draft_rows import draft as saved_draft
from farthing.server.store.job_rows import RELEASE, RELEASED, Job, job_of, listed
from farthing.study.release import changed_note

router = guarded("releases")

MOST_SHOWN = 100
STILL_HERE = 10.0  # seconds of silence until a comment is sent: proxies close streams that say nothing
LONGEST_STREAM = 600.0  # seconds; a browser that still wants to know connects again by itself

AnyId = Annotated[str, Path(pattern=r"^([a-z0-9][a-z0-9._-]{0,63}:)?[A-Za-z0-9._-]{1,100}$", max_length=170)]


@router.post(
    "/releases",
    response_model=ReleaseView,
    responses={
        202: {"model": ReleaseView, "description": "it waits or runs; look at it, or at its events"},
        **refusals("not_found", "conflict", "budget_exceeded", "infeasible", "answer_forfeited", "engine_error",
                   "invalid_expression"),
    },
)  # fmt: skip
async def release(body: ReleaseRequest, response: Response, who: Who, state: TheState) -> ReleaseView:
    """Charge, run and answer, once for each request id; the same id again gives the same answer."""
    job = await run_in_threadpool(_submitted, state, who, body)
    job = await awaited(state, job, body.wait)
    job = await run_in_threadpool(as_the_ledger_has_it, state, job)
    refuse_unreleased(job)
    response.status_code = 200 if job.state == RELEASED else 202
    return await run_in_threadpool(release_view, state, job)


@router.get("/releases", response_model=ReleaseList)
def releases(
    who: Who, state: TheState, dataset: Annotated[str | None, Query(max_length=64)] = None
) -> ReleaseList:
    """The newest releases, one's own or (curators and auditors) everybody's; without their answers."""
    owner = who.name if who.role == "analyst" else None
    return listed_views(state, listed(state.store, RELEASE, owner, dataset, limit=MOST_SHOWN))


@router.get("/releases/{request_id}", response_model=ReleaseView, responses=refusals("not_found"))
def one_release(request_id: AnyId, who: Who, state: TheState) -> ReleaseView:
    """A release, with its answers if it has them."""
    return release_view(state, visible_job(state, who, RELEASE, request_id))


@router.get(
    "/releases/{request_id}/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "`progress` events, then `done`",
            "headers": described_headers({"X-Accel-Buffering": "no: a proxy must not keep events back"}),
            "content": {"text/event-stream": {}},
        },
        **refusals("not_found"),
    },
)
async def events(request_id: AnyId, request: Request, who: Who, state: TheState) -> StreamingResponse:
    """How far it is, as server-sent events: `progress` {state, progress} when that changes, and `done` at the end."""
    job = await run_in_threadpool(visible_job, state, who, RELEASE, request_id)
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
        **refusals("not_found", "conflict", "budget_exceeded", "infeasible", "answer_forfeited", "engine_error",
                   "invalid_expression"),
    },
)  # fmt: skip
def file(
    request_id: AnyId, who: Who, state: TheState, format: Annotated[Format, Query()] = "csv"
) -> Response:
    """A release as a file: table, everything as JSON, a page that needs nothing else, Python code, or the receipt."""
    text, kind, name = download(state, visible_job(state, who, RELEASE, request_id), format)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=kind, headers=headers)


@router.get(
    "/releases/{request_id}/table",
    response_model=TableView,
    responses=refusals("not_found", "engine_error"),
    summary="Whether the table has changed since a release",
)
def table(request_id: AnyId, who: Who, state: TheState) -> TableView:
    """For curators: whether a table has other rows now depends on the rows, so that nobody else is told."""
    job = visible_job(state, who, RELEASE, request_id)
    receipt = state.root.receipt(job.id)
    if receipt is None:
        raise RequestRefused(
            "not_found", "nothing was charged for this release; there is nothing to compare."
        )
    study = study_of(state, who, job.dataset)
    note = changed_note(study, receipt, "a new request id")
    return TableView(request_id=job.id, changed=study.table_changed(job.id), sentence=note)


def event_stream(state: State, job: Job, allowed: Callable[[], bool]) -> StreamingResponse:
    """The changes of a job as server-sent events, with a sign of life in between, while they are `allowed`."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # nginx would keep events back
    return StreamingResponse(_events(state, job, allowed), media_type="text/event-stream", headers=headers)


def _may_still_see(request: Request, state: State, job: Job) -> bool:
    """Whether whoever asked may see the job now: a stream lasts minutes, and somebody may be shut out meanwhile."""
    try:
        who = authenticated(request, state)
    except FarthingError:
        return False
    return who is not None and (who.role != "analyst" or who.name == job.owner)


async def _events(state: State, job: Job, allowed: Callable[[], bool]) -> AsyncIterator[str]:
    until = time.monotonic() + LONGEST_STREAM
    news: asyncio.Queue[Job | None] = asyncio.Queue()

    async def watch() -> None:
        try:
            async for changed in changes(state, job, until):
                news.put_nowait(changed)
        finally:
            news.put_nowait(None)

    watching = asyncio.create_task(watch())
    try:
        yield "retry: 1000\n\n"
        last = job
        while True:
            silent = False
            try:
                latest = await asyncio.wait_for(news.get(), STILL_HERE)
            except TimeoutError:
                silent = True
            if not await run_in_threadpool(allowed):
                return
            if silent:
                yield ": still here\n\n"
                continue
            if latest is None:
                break
            last = latest
            if not latest.is_ended:
                yield _event("progress", latest)
        if last.is_ended:
            yield _event("done", last)
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


def _event(name: str, job: Job) -> str:
    facts: dict[str, Any] = {"state": job.state, "progress": job.progress}
    return f"event: {name}\ndata: {json.dumps(facts)}\n\n"


def _submitted(state: State, who: Caller, body: ReleaseRequest) -> Job:
    if body.draft is not None:
        words = body.draft.words()
    else:
        assert body.plan is not None
        try:
            words = dict(
                saved_draft(state.store, body.plan, None if who.role == "curator" else who.name).body
            )
        except RequestRefused:
            # The plan may be gone by now; what it was released as is not.
            job = job_of(state.store, full_id(who, body.request_id))
            if job is not None and job.kind == RELEASE and job.limits.get("plan") == body.plan:
                return job
            raise
    dataset = str(words["dataset"])
    if job_of(state.store, full_id(who, body.request_id)) is None:
        study_of(state, who, dataset)  # refused at once where there is no such dataset, or no grant in it

    def is_answer_to(stored: Stored) -> bool:
        return is_release_of(state, stored, asked_of_draft(study_of(state, who, dataset), words))

    # What it is called and where it is kept is no part of what is released.
    asked = {name: said for name, said in words.items() if name not in ("dataset", "study", "title")}
    limits = {"confirmed_epsilon": body.confirmed_epsilon, "plan": body.plan}
    return submitted(
        state, who, kind=RELEASE, request_id=body.request_id, dataset=dataset, asked=asked, limits=limits,
        is_answer_to=is_answer_to,
    )  # fmt: skip

"""The route that counts the rows of a table, for those who do not know how many there are; it spends, once."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response
from starlette.concurrency import run_in_threadpool

from farthing.server.auth.permissions import Who, guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.schemas.release_schema import RowCountRequest, RowCountView
from farthing.server.services.app_state import TheState
from farthing.server.services.job_queue import awaited
from farthing.server.services.release_status import count_view, refuse_unreleased, submitted_count

router = guarded("datasets")

Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]


@router.post(
    "/datasets/{name}/rows",
    response_model=RowCountView,
    responses={
        202: {"model": RowCountView, "description": "it waits or runs; ask again with the same request id"},
        **refusals(
            "not_found",
            "conflict",
            "budget_exceeded",
            "infeasible",
            "answer_forfeited",
            "engine_error",
            "invalid_value",
        ),
    },
    summary="Count the rows, for a small share of the budget",
)
async def count(name: Name, body: RowCountRequest, response: Response, who: Who, state: TheState) -> RowCountView:
    """Charge once and count, with noise; plans made afterwards use what was counted and what is left."""
    job = await run_in_threadpool(submitted_count, state, who, name, body)
    job = await awaited(state, job, body.wait)
    refuse_unreleased(job)
    response.status_code = 200 if job.is_released else 202
    return await run_in_threadpool(count_view, state, who, job)

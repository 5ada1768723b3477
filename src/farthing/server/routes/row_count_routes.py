"""The route that counts the rows of a table, for those who do not know how many there are; it spends, once."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response
from starlette.concurrency import run_in_threadpool

from farthing.errors import RequestRefused
from farthing.server.auth.permissions import Caller, Who, guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.schemas.release_schema import RowCountRequest, RowCountView
from farthing.server.services.app_state import State, TheState
from farthing.server.services.dataset_service import study_of
from farthing.server.services.job_queue import awaited, submitted
from farthing.server.services.release_status import refuse_unreleased
from farthing.server.store.job_rows import RELEASED, ROW_COUNT, Job
from farthing.study.study_account import found_count

router = guarded("datasets")

Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]


@router.post(
    "/datasets/{name}/rows",
    response_model=RowCountView,
    responses={
        202: {"model": RowCountView, "description": "it waits or runs; ask again with the same request id"},
        **refusals("not_found", "conflict", "budget_exceeded", "infeasible", "answer_forfeited", "engine_error",
                   "invalid_value"),
    },
    summary="Count the rows, for a small share of the budget",
)  # fmt: skip
async def count(
    name: Name, body: RowCountRequest, response: Response, who: Who, state: TheState
) -> RowCountView:
    """Charge once and count, with noise; plans made afterwards use what was counted and what is left."""
    job = await run_in_threadpool(_submitted, state, who, name, body)
    job = await awaited(state, job, body.wait)
    refuse_unreleased(job)
    response.status_code = 200 if job.state == RELEASED else 202
    return await run_in_threadpool(_view, state, who, job)


def _submitted(state: State, who: Caller, name: str, body: RowCountRequest) -> Job:
    study = study_of(state, who, name)  # a dataset that is not theirs is not there
    if study.dataset.rows is not None:
        raise RequestRefused("conflict", f"the number of rows of {name!r} is public; no count is needed.")
    return submitted(
        state,
        who,
        kind=ROW_COUNT,
        request_id=body.request_id,
        dataset=name,
        asked={"share": body.share, "fresh": body.fresh},
        limits={"confirmed_epsilon": body.confirmed_epsilon},
    )


def _view(state: State, who: Caller, job: Job) -> RowCountView:
    view = RowCountView(dataset=job.dataset, state=job.state, progress=job.progress)
    if job.state != RELEASED:
        return view
    count = found_count(study_of(state, who, job.dataset))
    if count.answer is None:
        return view
    answer = count.answer
    return view.model_copy(
        update={
            "rows": float(answer.values),
            "lower": float(answer.lower),
            "upper": float(answer.upper),
            "scale": count.scale,
            "epsilon": count.epsilon,
            "request_id": count.request_id,
        }
    )

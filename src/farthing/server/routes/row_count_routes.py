"""The route that counts the rows of a table, for those who do not know how many there are; it spends, once."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from farthing.errors import RequestRefused
from farthing.server.app_state import State
from farthing.server.auth.permissions import Caller, caller, the_state
from farthing.server.auth.route_guard import guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.jobs.job_queue import awaited, submitted
from farthing.server.jobs.row_count_job import KIND
from farthing.server.services.release_status import refuse_unreleased
from farthing.server.store.job_rows import RELEASED, Job
from farthing.study.row_count import SHARE, found_count

router = guarded("datasets")

Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]
Who = Annotated[Caller, Depends(caller)]
TheState = Annotated[State, Depends(the_state)]


class RowCountRequest(BaseModel):
    """A count of the rows, under a name that makes sure it is charged once."""

    model_config = ConfigDict(extra="forbid", strict=True)
    request_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")] = Field(
        description="chosen by the client, once for each wish: a retry repeats it"
    )
    share: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = Field(
        default=SHARE, description="of the whole budget, or of your whole grant, that it may cost"
    )
    fresh: bool = Field(
        default=False, description="count and pay again, even if the rows were counted before"
    )
    wait: Annotated[float, Field(ge=0, le=30, allow_inf_nan=False)] = Field(
        default=2.0, description="seconds to wait for the answer before 202 is given"
    )
    confirmed_epsilon: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = Field(
        default=None, description="what it was seen to cost; if it costs more by now, it is refused"
    )


class RowCountView(BaseModel):
    """How many rows were counted, with the ends of the 95% interval; null until they are."""

    model_config = ConfigDict(extra="forbid")
    dataset: str
    state: str = Field(description="queued, running or released")
    progress: float
    rows: float | None = None
    lower: float | None = None
    upper: float | None = None
    confidence: float = 0.95
    scale: float | None = Field(default=None, description="of its discrete Laplace noise")
    epsilon: float | None = Field(default=None, description="what the count has cost, once")
    request_id: str | None = Field(default=None, description="the name of its charge in the ledger")


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
    study = state.study(who, name)  # a dataset that is not theirs is not there
    if study.dataset.rows is not None:
        raise RequestRefused("conflict", f"the number of rows of {name!r} is public; no count is needed.")
    return submitted(
        state,
        who,
        kind=KIND,
        request_id=body.request_id,
        dataset=name,
        asked={"share": body.share, "fresh": body.fresh},
        limits={"confirmed_epsilon": body.confirmed_epsilon},
    )


def _view(state: State, who: Caller, job: Job) -> RowCountView:
    view = RowCountView(dataset=job.dataset, state=job.state, progress=job.progress)
    if job.state != RELEASED:
        return view
    found = found_count(state.study(who, job.dataset))
    if found.answer is None:
        return view
    answer = found.answer
    return view.model_copy(
        update={
            "rows": float(answer.values),
            "lower": float(answer.lower),
            "upper": float(answer.upper),
            "scale": found.scale,
            "epsilon": found.epsilon,
            "request_id": found.request_id,
        }
    )

"""Routes of synthetic tables: priced, made once, downloaded in any number of rows; an analyst's own."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response
from starlette.concurrency import run_in_threadpool

from farthing.server.auth.permissions import Who, guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.http.security_headers import described_headers
from farthing.server.schemas.synthetic_schema import (
    SyntheticAsked,
    SyntheticList,
    SyntheticMaking,
    SyntheticPlanView,
    SyntheticView,
)
from farthing.server.services import synthetic_service
from farthing.server.services.app_state import TheState
from farthing.server.services.job_queue import as_the_ledger_has_it, awaited
from farthing.server.services.release_status import refuse_unreleased
from farthing.server.services.synthetic_service import Format

router = guarded("synthetic-tables")

TableId = Annotated[str, Path(pattern=r"^([a-z0-9][a-z0-9._-]{0,63}:)?[A-Za-z0-9._-]{1,100}$", max_length=170)]
Rows = Annotated[int | None, Query(ge=1, le=10_000_000, description="as many as were measured if left out")]

_REFUSALS = ("not_found", "budget_exceeded", "infeasible", "engine_error")


@router.post(
    "/synthetic-tables/price",
    response_model=SyntheticPlanView,
    responses=refusals(*_REFUSALS, "answer_forfeited"),
    summary="What a synthetic table would cost, and what would be measured for it",
)
def price(asked: SyntheticAsked, who: Who, state: TheState) -> SyntheticPlanView:
    """Nothing is spent, and no row is read. How good the table is can be said when it is made."""
    return synthetic_service.priced(state, who, asked)


@router.post(
    "/synthetic-tables",
    response_model=SyntheticView,
    responses={
        202: {"model": SyntheticView, "description": "it is being made; look at it again"},
        **refusals(*_REFUSALS, "conflict", "answer_forfeited"),
    },
    summary="Make a synthetic table",
)
async def make(body: SyntheticMaking, response: Response, who: Who, state: TheState) -> SyntheticView:
    """Charge once for each request id; the same id again is the same table."""
    job = await run_in_threadpool(synthetic_service.making, state, who, body)
    job = await awaited(state, job, body.wait)
    job = await run_in_threadpool(as_the_ledger_has_it, state, job)
    refuse_unreleased(job)
    response.status_code = 200 if job.is_released else 202
    return await run_in_threadpool(synthetic_service.table_view, state, job)


@router.get("/synthetic-tables", response_model=SyntheticList, summary="Synthetic tables, the newest first")
def tables(who: Who, state: TheState, dataset: Annotated[str | None, Query(max_length=64)] = None) -> SyntheticList:
    """Your own; curators and auditors see those of everybody."""
    return synthetic_service.table_list(state, who, dataset)


@router.get(
    "/synthetic-tables/{id}",
    response_model=SyntheticView,
    responses=refusals("not_found", "engine_error"),
    summary="A synthetic table: what it cost, and how good each column and pair of columns is",
)
def one_table(id: TableId, who: Who, state: TheState) -> SyntheticView:
    """Its verdicts come from noisy numbers that were paid for, and can be published with it."""
    return synthetic_service.table_view(state, synthetic_service.visible_table(state, who, id))


@router.get(
    "/synthetic-tables/{id}/download",
    response_class=Response,
    responses={
        200: {
            "description": "a file",
            "headers": described_headers({"Content-Disposition": "what the file is called"}),
            "content": {
                "text/csv": {},
                "application/vnd.apache.parquet": {},
                "application/json": {},
                "text/html": {},
            },
        },
        **refusals("not_found", "engine_error", "conflict", "answer_forfeited", "budget_exceeded", "infeasible"),
    },
    summary="The rows of a synthetic table, or its quality as a page",
)
def file(
    id: TableId, who: Who, state: TheState, format: Annotated[Format, Query()] = "csv", rows: Rows = None
) -> Response:
    """Drawn again from what the ledger has: the same rows each time, free of charge."""
    job = synthetic_service.visible_table(state, who, id)
    content, kind, name = synthetic_service.download(state, job, format, rows)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=kind, headers=headers)

"""Routes of running series: planned, opened once, released period by period; an analyst's own."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response
from starlette.concurrency import run_in_threadpool

from farthing.server.auth.permissions import Who, guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.schemas.series_schema import (
    SeriesAsked,
    SeriesList,
    SeriesOpening,
    SeriesPlanView,
    SeriesUpdate,
    SeriesView,
)
from farthing.server.services import series_service
from farthing.server.services.app_state import TheState
from farthing.server.services.job_queue import as_the_ledger_has_it, awaited
from farthing.server.services.release_status import refuse_unreleased

router = guarded("series")

SeriesId = Annotated[str, Path(pattern=r"^([a-z0-9][a-z0-9._-]{0,63}:)?[A-Za-z0-9._-]{1,100}$", max_length=170)]

_REFUSALS = ("not_found", "budget_exceeded", "infeasible", "invalid_expression", "engine_error")


@router.post(
    "/series/price",
    response_model=SeriesPlanView,
    responses=refusals(*_REFUSALS),
    summary="What a running series would cost, and the error of every period",
)
def price(asked: SeriesAsked, who: Who, state: TheState) -> SeriesPlanView:
    """The price of all periods together, and how far off each of them will be; nothing is spent, no row is read."""
    return series_service.priced(state, who, asked)


@router.post(
    "/series",
    response_model=SeriesView,
    responses={
        202: {"model": SeriesView, "description": "it is being opened; look at it again"},
        **refusals(*_REFUSALS, "conflict", "answer_forfeited"),
    },
    summary="Open a running series",
)
async def open_series(body: SeriesOpening, response: Response, who: Who, state: TheState) -> SeriesView:
    """Charge once for all periods, for each request id; the same id again is the same series."""
    job = await run_in_threadpool(series_service.opening, state, who, body)
    job = await awaited(state, job, body.wait)
    job = await run_in_threadpool(as_the_ledger_has_it, state, job)
    refuse_unreleased(job)
    response.status_code = 200 if job.is_released else 202
    return await run_in_threadpool(series_service.series_view, state, job)


@router.get("/series", response_model=SeriesList, summary="Running series, the newest first")
def series(who: Who, state: TheState, dataset: Annotated[str | None, Query(max_length=64)] = None) -> SeriesList:
    """Your own; curators and auditors see those of everybody."""
    return series_service.series_list(state, who, dataset)


@router.get(
    "/series/{id}",
    response_model=SeriesView,
    responses=refusals("not_found", "engine_error"),
    summary="A running series and what was released of it",
)
def one_series(id: SeriesId, who: Who, state: TheState) -> SeriesView:
    """The plan with the error of every period, the counts and totals so far, and which periods are over."""
    return series_service.series_view(state, series_service.visible_series(state, who, id))


@router.post(
    "/series/{id}/release",
    response_model=SeriesView,
    responses=refusals(*_REFUSALS, "conflict", "answer_forfeited"),
    summary="Release the periods of a series that are over",
)
def release_next(id: SeriesId, body: SeriesUpdate, who: Who, state: TheState) -> SeriesView:
    """Each period is drawn and recorded once, and was paid for when the series was opened; the same again is free."""
    return series_service.release_next(state, who, series_service.visible_series(state, who, id), body.until)

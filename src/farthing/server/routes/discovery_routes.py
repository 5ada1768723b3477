"""Routes that find what nobody knows about a table: ranges, values, and how many rows units have."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response
from starlette.concurrency import run_in_threadpool

from farthing.server.auth.permissions import Who, guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.schemas.discovery_schema import (
    DiscoveryAsked,
    DiscoveryPlanView,
    DiscoveryRequest,
    DiscoveryView,
)
from farthing.server.services import discovery_service
from farthing.server.services.app_state import TheState
from farthing.server.services.job_queue import awaited
from farthing.server.services.release_status import refuse_unreleased

router = guarded("discoveries")

Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]

_REFUSALS = ("not_found", "budget_exceeded", "infeasible", "invalid_value", "engine_error")


@router.post(
    "/datasets/{name}/discoveries/price",
    response_model=DiscoveryPlanView,
    responses=refusals(*_REFUSALS),
    summary="What a search for unknown ranges and values would cost, and what it would find",
)
def price(name: Name, asked: DiscoveryAsked, who: Who, state: TheState) -> DiscoveryPlanView:
    """A price and a prediction for each search; nothing is spent, no row is read."""
    return discovery_service.priced(state, who, name, asked)


@router.post(
    "/datasets/{name}/discoveries",
    response_model=DiscoveryView,
    responses={
        202: {"model": DiscoveryView, "description": "it waits or runs; ask again with the same request id"},
        **refusals(*_REFUSALS, "conflict", "answer_forfeited"),
    },
    summary="Find what is declared as unknown, for a small share of the budget",
)
async def discover(name: Name, body: DiscoveryRequest, response: Response, who: Who, state: TheState) -> DiscoveryView:
    """Charge each search once and run it; what was found before is returned as it is. Later plans use it."""
    job = await run_in_threadpool(discovery_service.submitted_discovery, state, who, name, body)
    job = await awaited(state, job, body.wait)
    refuse_unreleased(job)
    response.status_code = 200 if job.is_released else 202
    return await run_in_threadpool(discovery_service.discovery_view, state, who, job)

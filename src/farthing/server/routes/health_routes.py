"""Whether the server is alive, whether it can work, and how much it has done."""

from __future__ import annotations

from typing import Annotated

import sqlalchemy as sa
from fastapi import Depends, Request
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from farthing.server.app_state import State
from farthing.server.auth.permissions import the_state
from farthing.server.auth.route_guard import guarded
from farthing.server.store.store_tables import jobs

router = guarded("health", prefix="")


class Health(BaseModel):
    """The answer of somebody who is well."""

    ok: bool


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz")
async def healthz() -> Health:
    """Whether the process answers at all; it asks nobody else."""
    return Health(ok=True)


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz")
def readyz(state: Annotated[State, Depends(the_state)]) -> Health:
    """Whether requests can be served: the ledger and the store answer."""
    state.root.datasets()
    with state.store.reading() as connection:
        connection.execute(sa.select(1))
    return Health(ok=True)


@router.get("/metrics", response_class=PlainTextResponse, responses={200: {"content": {"text/plain": {}}}})
def metrics(request: Request, state: Annotated[State, Depends(the_state)]) -> PlainTextResponse:
    """Counts and durations in the text that Prometheus reads."""
    with state.store.reading() as connection:
        by_state = sa.select(jobs.c.state, sa.func.count()).group_by(jobs.c.state)
        counts = {str(name): int(count) for name, count in connection.execute(by_state)}
    text = request.app.state.metrics.text(counts)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")

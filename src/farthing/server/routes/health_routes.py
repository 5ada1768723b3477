"""Whether the server is alive, whether it can work, and how much it has done."""

from __future__ import annotations

from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from farthing.server.auth.permissions import guarded
from farthing.server.services.app_state import TheState
from farthing.server.services.job_queue import job_counts

router = guarded("health", prefix="")


class Health(BaseModel):
    """The answer of a healthy server."""

    ok: bool


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz")
async def healthz() -> Health:
    """Whether the process answers at all; it asks nobody else."""
    return Health(ok=True)


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz")
def readyz(state: TheState) -> Health:
    """Whether requests can be served: the ledger and the store answer."""
    state.check()
    return Health(ok=True)


@router.get("/metrics", response_class=PlainTextResponse, responses={200: {"content": {"text/plain": {}}}})
def metrics(state: TheState) -> PlainTextResponse:
    """Counts and durations in the text that Prometheus reads."""
    text = state.metrics.text(job_counts(state))
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")

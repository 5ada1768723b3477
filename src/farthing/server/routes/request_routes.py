"""Routes about requests: analysts ask, curators decide, and policies say what needs no asking. Nothing here spends."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from farthing.server.auth.permissions import Who, guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.schemas.request_schema import (
    Approval,
    ChangedRequest,
    NewRequest,
    PoliciesView,
    PolicyView,
    PolicyWords,
    Refusal,
    RequestsView,
    RequestView,
    State,
)
from farthing.server.services import request_service
from farthing.server.services.app_state import TheState

router = guarded("requests")

Number = Annotated[int, Path(ge=1, le=2**62)]
Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]
User = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
Dataset = Annotated[str | None, Query(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]

_PLANNED = refusals("not_found", "conflict", "budget_exceeded", "infeasible", "invalid_expression", "engine_error")
_DECIDED = refusals("not_found", "conflict")


@router.get("/requests", response_model=RequestsView, summary="Requests, the newest first")
def requests(
    state: TheState, who: Who, dataset: Dataset = None, wanted: Annotated[State | None, Query(alias="state")] = None
) -> RequestsView:
    """Your own; curators and auditors see those of everybody."""
    return request_service.request_list(state, who, dataset, wanted)


@router.post("/requests", status_code=201, response_model=RequestView, responses=_PLANNED, summary="Ask a curator")
def submit(body: NewRequest, state: TheState, who: Who) -> RequestView:
    """Write a plan, a query session or a running series to the ledger, for a curator to decide.

    The same again is the same request.
    """
    return request_service.submit(state, who, body)


@router.get("/requests/{id}", response_model=RequestView, responses=refusals("not_found"), summary="One request")
def one(id: Number, state: TheState, who: Who) -> RequestView:
    """What is asked, its errors and cost, what is left, the risk as odds, and what the analyst did so far."""
    return request_service.request_view(state, who, id)


@router.post("/requests/{id}/approve", response_model=RequestView, responses=_DECIDED, summary="Approve a request")
def approve(id: Number, body: Approval, state: TheState, who: Who) -> RequestView:
    """Exactly this plan may be released, once, until it expires. The dataset's own budget has the last word."""
    return request_service.approve(state, who, id, body)


@router.post("/requests/{id}/change", response_model=RequestView, responses=_PLANNED, summary="Approve another plan")
def change(id: Number, body: ChangedRequest, state: TheState, who: Who) -> RequestView:
    """A new version, which the analyst sees with the reason, and may release."""
    return request_service.change(state, who, id, body)


@router.post("/requests/{id}/decline", response_model=RequestView, responses=_DECIDED, summary="Decline a request")
def decline(id: Number, body: Refusal, state: TheState, who: Who) -> RequestView:
    """Say no with a reason, or take back an approval that was not used."""
    return request_service.decline(state, who, id, body.reason)


@router.post("/requests/{id}/withdraw", response_model=RequestView, responses=_DECIDED, summary="Withdraw a request")
def withdraw(id: Number, state: TheState, who: Who) -> RequestView:
    """Take back a request of your own."""
    return request_service.withdraw(state, who, id)


@router.get("/policies", response_model=PoliciesView, responses=refusals("not_found"), summary="Policies")
def policies(state: TheState, who: Who, dataset: Dataset = None) -> PoliciesView:
    """Yours, with what is left of them; curators and auditors see those of everybody."""
    return request_service.policy_list(state, who, dataset)


@router.put(
    "/datasets/{name}/policies/{user}",
    response_model=PolicyView,
    responses=refusals("not_found"),
    summary="Let an analyst spend so much per quarter without asking",
)
def policy(name: Name, user: User, body: PolicyWords, state: TheState, who: Who) -> PolicyView:
    """It replaces the one that is there; what was used of this period stays used."""
    return request_service.grant_policy(state, who, name, user, body)

"""Routes about plans: pricing drafts, and keeping them. Nothing here spends, and no row is read."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Response
from fastapi.responses import JSONResponse

from farthing.server.auth.permissions import Who, guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.schemas.plan_schema import ChangedDraft, Draft, PlansView, PlanView
from farthing.server.services import saved_plans
from farthing.server.services.app_state import TheState
from farthing.server.services.plan_prices import priced

router = guarded("plans")

Id = Annotated[str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$")]
Proof = Annotated[bool, Query(description="false: estimates at once; true: the proven cost")]
Again = Annotated[
    bool,
    Query(description="true: a request that was released before is shown as it was planned, whatever is left"),
]

_REFUSED = refusals("not_found", "budget_exceeded", "infeasible", "invalid_expression", "engine_error")


@router.post(
    "/plans/price",
    response_model=PlanView,
    responses=_REFUSED,
    summary="The predicted errors and the cost of a draft",
)
def price(draft: Draft, state: TheState, who: Who, proof: Proof = True, again: Again = False) -> Response:
    """The plan of a draft; nothing is saved. Without `proof` its cost is an estimate, for a slider that moves."""
    return JSONResponse(priced(state, who, draft, proof=proof, again=again))


@router.get("/plans", response_model=PlansView, summary="Saved drafts")
def plans(
    state: TheState,
    who: Who,
    dataset: Annotated[str | None, Query(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")] = None,
    study: Annotated[str | None, Query(pattern=r"^[A-Za-z0-9-]{1,64}$")] = None,
) -> dict[str, Any]:
    """Your own, the ones changed last first; a curator sees those of everybody."""
    return saved_plans.plan_list(state, who, dataset, study)


@router.post("/plans", status_code=201, response_model=PlanView, responses=_REFUSED, summary="Save a draft")
def save(draft: Draft, state: TheState, who: Who, proof: Proof = True) -> Response:
    """A draft that cannot be planned now, because a budget is used up, is saved all the same."""
    return JSONResponse(saved_plans.save_plan(state, who, draft, proof=proof), 201)


@router.get(
    "/plans/{id}",
    response_model=PlanView,
    responses=refusals("not_found", "engine_error"),
    summary="A draft, planned again",
)
def plan(id: Id, state: TheState, who: Who, proof: Proof = True) -> Response:
    """With the numbers of today; `error` says why there are none, where the draft cannot be planned any more."""
    return JSONResponse(saved_plans.saved_plan(state, who, id, proof=proof))


@router.put(
    "/plans/{id}",
    response_model=PlanView,
    responses=_REFUSED | refusals("conflict", "budget_exceeded", "infeasible"),
    summary="Change a draft",
)
def change(id: Id, draft: ChangedDraft, state: TheState, who: Who, proof: Proof = True) -> Response:
    """Only the version that was read can be changed: what somebody else saved meanwhile is never lost."""
    return JSONResponse(saved_plans.change_plan(state, who, id, draft, proof=proof))


@router.delete("/plans/{id}", status_code=204, responses=refusals("not_found"), summary="Delete a draft")
def forget(id: Id, state: TheState, who: Who) -> None:
    """What was released from it stays released."""
    saved_plans.remove_plan(state, who, id)

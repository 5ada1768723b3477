"""Routes about plans: pricing drafts, and keeping them. Nothing here spends, and no row is read."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Response
from fastapi.responses import JSONResponse

from farthing.errors import BudgetExceeded, Infeasible
from farthing.server.auth.permissions import Caller, Who, guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.schemas.plan_schema import ChangedDraft, Draft, PlansView, PlanView
from farthing.server.services.app_state import State, TheState
from farthing.server.services.plan_prices import priced, saved_view
from farthing.server.store import draft_rows

router = guarded("plans")

Id = Annotated[str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$")]
Proof = Annotated[bool, Query(description="false: estimates at once; true: the proven cost")]
Again = Annotated[
    bool,
    Query(
        description="true: a request that was released before is shown as it was planned, whatever is left"
    ),
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


@router.get("/plans", response_model=PlansView, summary="Drafts that were saved")
def plans(
    state: TheState,
    who: Who,
    dataset: Annotated[str | None, Query(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")] = None,
    study: Annotated[str | None, Query(pattern=r"^[A-Za-z0-9-]{1,64}$")] = None,
) -> dict[str, Any]:
    """Your own, the ones changed last first; a curator sees those of everybody."""
    drafts = draft_rows.all_drafts(state.store, readable_by(who), dataset, study)
    return {
        "plans": [
            {
                "id": each.id,
                "version": each.version,
                "owner": each.owner,
                "dataset": each.dataset,
                "study": each.study,
                "title": each.body.get("title"),
                "statistics": len(each.body["statistics"]),
                "created": each.created,
                "changed": each.changed,
            }
            for each in drafts
        ]
    }


@router.post("/plans", status_code=201, response_model=PlanView, responses=_REFUSED, summary="Save a draft")
def save(draft: Draft, state: TheState, who: Who, proof: Proof = True) -> Response:
    """A draft that cannot be planned now, because a budget is used up, is saved all the same."""
    _check(state, who, draft)
    saved = draft_rows.make_draft(state.store, who.name, draft.dataset, draft.study, draft.words())
    return JSONResponse(_saved_view(state, who, saved, proof=proof), 201)


@router.get(
    "/plans/{id}",
    response_model=PlanView,
    responses=refusals("not_found", "engine_error"),
    summary="A draft, planned anew",
)
def plan(id: Id, state: TheState, who: Who, proof: Proof = True) -> Response:
    """With the numbers of today; `error` says why there are none, where the draft cannot be planned any more."""
    return JSONResponse(
        _saved_view(state, who, draft_rows.draft(state.store, id, readable_by(who)), proof=proof)
    )


@router.put(
    "/plans/{id}",
    response_model=PlanView,
    responses=_REFUSED | refusals("conflict", "budget_exceeded", "infeasible"),
    summary="Change a draft",
)
def change(id: Id, draft: ChangedDraft, state: TheState, who: Who, proof: Proof = True) -> Response:
    """Only the version that was read can be changed: what somebody else saved meanwhile is never lost."""
    # Whether it is there comes before what is wrong with the new one.
    draft_rows.draft(state.store, id, who.name)
    new = draft.draft()
    _check(state, who, new)
    saved = draft_rows.change_draft(
        state.store, id, who.name, draft.version, new.dataset, new.study, new.words()
    )
    return JSONResponse(_saved_view(state, who, saved, proof=proof))


@router.delete("/plans/{id}", status_code=204, responses=refusals("not_found"), summary="Forget a draft")
def forget(id: Id, state: TheState, who: Who) -> None:
    """What was released from it stays released."""
    draft_rows.remove_draft(state.store, id, who.name)


def readable_by(who: Caller) -> str | None:
    """Whose drafts somebody may read: their own, a curator everybody's (None)."""
    return None if who.role == "curator" else who.name


def _check(state: State, who: Caller, draft: Draft) -> None:
    """Refuse a draft that could never be planned; a budget that is used up today is no reason."""
    if draft.study is not None:
        folder = draft_rows.study(state.store, draft.study, who.name)
        if folder.dataset != draft.dataset:
            raise draft_rows.no_study(draft.study)
    try:
        priced(state, who, draft, proof=False)
    except (BudgetExceeded, Infeasible):
        return


def _saved_view(state: State, who: Caller, saved: draft_rows.Saved, *, proof: bool) -> dict[str, Any]:
    draft = Draft.model_validate({**saved.body, "study": saved.study})
    return saved_view(state, who, draft, proof=proof, id=saved.id, version=saved.version, owner=saved.owner)

"""Routes about studies: named folders of drafts about one dataset."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path

from farthing.server.auth.permissions import Who, guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.schemas.plan_schema import StudiesView, StudyView, StudyWords
from farthing.server.services import saved_plans
from farthing.server.services.app_state import TheState

router = guarded("studies")

Id = Annotated[str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$")]


@router.get("/studies", response_model=StudiesView, summary="Your studies")
def studies(state: TheState, who: Who) -> dict[str, Any]:
    """Your own, the newest first; a curator sees those of everybody."""
    return saved_plans.study_list(state, who)


@router.post(
    "/studies",
    status_code=201,
    response_model=StudyView,
    responses=refusals("not_found", "conflict", "engine_error"),
    summary="Make a study",
)
def make(body: StudyWords, state: TheState, who: Who) -> dict[str, Any]:
    """An empty folder for drafts about one dataset."""
    return saved_plans.make_study(state, who, body)


@router.get("/studies/{id}", response_model=StudyView, responses=refusals("not_found"), summary="A study")
def study(id: Id, state: TheState, who: Who) -> dict[str, Any]:
    """With the ids of its drafts."""
    return saved_plans.one_study(state, who, id)


@router.delete("/studies/{id}", status_code=204, responses=refusals("not_found"), summary="Delete a study")
def forget(id: Id, state: TheState, who: Who) -> None:
    """Its drafts stay, in no study."""
    saved_plans.remove_study(state, who, id)

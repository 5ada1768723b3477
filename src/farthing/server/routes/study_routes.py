"""Routes about studies: named folders of drafts about one dataset."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path

from farthing.server.auth.permissions import Who, guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.routes.plan_routes import readable_by
from farthing.server.schemas.plan_schema import StudiesView, StudyView, StudyWords
from farthing.server.services.app_state import TheState
from farthing.server.services.dataset_service import study_of
from farthing.server.store import draft_rows

router = guarded("studies")

Id = Annotated[str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$")]


@router.get("/studies", response_model=StudiesView, summary="Your studies")
def studies(state: TheState, who: Who) -> dict[str, Any]:
    """Your own, the newest first; a curator sees those of everybody."""
    mine = readable_by(who)
    of: dict[str, list[str]] = {}
    for each in draft_rows.all_drafts(state.store, mine):
        of.setdefault(each.study or "", []).append(each.id)
    return {
        "studies": [_view(each, of.get(each.id, [])) for each in draft_rows.all_studies(state.store, mine)]
    }


@router.post(
    "/studies",
    status_code=201,
    response_model=StudyView,
    responses=refusals("not_found", "conflict", "engine_error"),
    summary="Make a study",
)
def make(words: StudyWords, state: TheState, who: Who) -> dict[str, Any]:
    """An empty folder for drafts about one dataset."""
    study_of(state, who, words.dataset)  # refuses what the caller may not plan with
    return _view(draft_rows.make_study(state.store, who.name, words.dataset, words.title), [])


@router.get("/studies/{id}", response_model=StudyView, responses=refusals("not_found"), summary="A study")
def study(id: Id, state: TheState, who: Who) -> dict[str, Any]:
    """With the ids of its drafts."""
    folder = draft_rows.study(state.store, id, readable_by(who))
    return _view(folder, [each.id for each in draft_rows.all_drafts(state.store, None, study=id)])


@router.delete("/studies/{id}", status_code=204, responses=refusals("not_found"), summary="Forget a study")
def forget(id: Id, state: TheState, who: Who) -> None:
    """Its drafts stay, in no study."""
    draft_rows.remove_study(state.store, id, who.name)


def _view(folder: draft_rows.Folder, plans: list[str]) -> dict[str, Any]:
    return {**vars(folder), "plans": plans}

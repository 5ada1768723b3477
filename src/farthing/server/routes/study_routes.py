"""Routes about studies: named folders of drafts about one dataset."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path
from pydantic import StringConstraints

from farthing.server.app_state import State
from farthing.server.auth.permissions import Caller, caller, the_state
from farthing.server.auth.route_guard import guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.routes.plan_routes import readable_by
from farthing.server.schemas.budget_schema import View
from farthing.server.schemas.draft_schema import PLAIN, DatasetName, Words
from farthing.server.store import draft_rows

router = guarded("studies")

TheState = Annotated[State, Depends(the_state)]
Who = Annotated[Caller, Depends(caller)]
Id = Annotated[str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$")]


class StudyWords(Words):
    """A study to be made."""

    dataset: DatasetName
    title: Annotated[
        str,
        StringConstraints(strict=True, min_length=1, max_length=200, strip_whitespace=True, pattern=PLAIN),
    ]


class StudyView(View):
    """A study, and the ids of its drafts."""

    id: str
    owner: str
    dataset: str
    title: str
    created: int
    plans: list[str]


class StudiesView(View):
    """All studies that the caller may see."""

    studies: list[StudyView]


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
def make(told: StudyWords, state: TheState, who: Who) -> dict[str, Any]:
    """An empty folder for drafts about one dataset."""
    state.study(who, told.dataset)  # refuses what the caller may not plan with
    return _view(draft_rows.make_study(state.store, who.name, told.dataset, told.title), [])


@router.get("/studies/{id}", response_model=StudyView, responses=refusals("not_found"), summary="A study")
def study(id: Id, state: TheState, who: Who) -> dict[str, Any]:
    """With the ids of its drafts."""
    found = draft_rows.study(state.store, id, readable_by(who))
    return _view(found, [each.id for each in draft_rows.all_drafts(state.store, None, study=id)])


@router.delete("/studies/{id}", status_code=204, responses=refusals("not_found"), summary="Forget a study")
def forget(id: Id, state: TheState, who: Who) -> None:
    """Its drafts stay, in no study."""
    draft_rows.remove_study(state.store, id, who.name)


def _view(folder: draft_rows.Folder, plans: list[str]) -> dict[str, Any]:
    return {**vars(folder), "plans": plans}

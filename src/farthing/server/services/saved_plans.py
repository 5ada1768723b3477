"""Saved drafts, planned with the numbers of today, and the studies that are folders of them."""

from __future__ import annotations

from typing import Any

from farthing.errors import BudgetExceeded, Infeasible
from farthing.server.auth.permissions import Caller
from farthing.server.schemas.plan_schema import ChangedDraft, Draft, StudyWords
from farthing.server.services.app_state import State
from farthing.server.services.dataset_service import study_of
from farthing.server.services.plan_prices import priced, saved_view
from farthing.server.store import draft_rows


def plan_list(state: State, who: Caller, dataset: str | None, study: str | None) -> dict[str, Any]:
    """The drafts that somebody may read, the ones changed last first."""
    drafts = draft_rows.all_drafts(state.store, _readable_by(who), dataset, study)
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


def save_plan(state: State, who: Caller, draft: Draft, *, proof: bool) -> dict[str, Any]:
    """Save a draft, also one that cannot be planned now because a budget is used up."""
    _check(state, who, draft)
    saved = draft_rows.make_draft(state.store, who.name, draft.dataset, draft.study, draft.plain())
    return _view(state, who, saved, proof=proof)


def saved_plan(state: State, who: Caller, id: str, *, proof: bool) -> dict[str, Any]:
    """A saved draft, planned again."""
    return _view(state, who, draft_rows.draft(state.store, id, _readable_by(who)), proof=proof)


def change_plan(state: State, who: Caller, id: str, draft: ChangedDraft, *, proof: bool) -> dict[str, Any]:
    """Put another draft in the place of the version that was read."""
    # Whether it is there comes before what is wrong with the new one.
    draft_rows.draft(state.store, id, who.name)
    new = draft.draft()
    _check(state, who, new)
    saved = draft_rows.change_draft(state.store, id, who.name, draft.version, new.dataset, new.study, new.plain())
    return _view(state, who, saved, proof=proof)


def remove_plan(state: State, who: Caller, id: str) -> None:
    """Delete a draft of the caller's own."""
    draft_rows.remove_draft(state.store, id, who.name)


def study_list(state: State, who: Caller) -> dict[str, Any]:
    """The studies that somebody may read, the newest first, each with the ids of its drafts."""
    owner = _readable_by(who)
    plans: dict[str, list[str]] = {}
    for draft in draft_rows.all_drafts(state.store, owner):
        plans.setdefault(draft.study or "", []).append(draft.id)
    folders = draft_rows.all_studies(state.store, owner)
    return {"studies": [{**vars(folder), "plans": plans.get(folder.id, [])} for folder in folders]}


def make_study(state: State, who: Caller, body: StudyWords) -> dict[str, Any]:
    """A new, empty study of a dataset that the caller may plan with."""
    study_of(state, who, body.dataset)
    folder = draft_rows.make_study(state.store, who.name, body.dataset, body.title)
    return {**vars(folder), "plans": []}


def one_study(state: State, who: Caller, id: str) -> dict[str, Any]:
    """A study with the ids of its drafts."""
    folder = draft_rows.study(state.store, id, _readable_by(who))
    drafts = draft_rows.all_drafts(state.store, None, study=id)
    return {**vars(folder), "plans": [draft.id for draft in drafts]}


def remove_study(state: State, who: Caller, id: str) -> None:
    """Delete a study of the caller's own; its drafts stay."""
    draft_rows.remove_study(state.store, id, who.name)


def _readable_by(who: Caller) -> str | None:
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


def _view(state: State, who: Caller, saved: draft_rows.Saved, *, proof: bool) -> dict[str, Any]:
    draft = Draft.model_validate({**saved.body, "study": saved.study})
    return saved_view(state, who, draft, proof=proof, id=saved.id, version=saved.version, owner=saved.owner)

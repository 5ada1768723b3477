"""Routes about datasets: registering and describing them, their budgets, grants and reserves. No row is read."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

from fastapi import Depends, Path, Query

from farthing.errors import FarthingError, InvalidValue, RequestRefused
from farthing.ledger import Ledger
from farthing.ledger.budgets import as_kept
from farthing.privacy import ApproxDP
from farthing.server.app_state import State
from farthing.server.auth.permissions import Caller, caller, the_state
from farthing.server.auth.route_guard import guarded
from farthing.server.http.error_envelope import refusals
from farthing.server.schemas.budget_schema import BudgetView, budget_view, study_budget_view
from farthing.server.schemas.dataset_schema import (
    BudgetWords,
    CheckedDeclaration,
    CheckView,
    DatasetsView,
    DatasetView,
    Declaration,
    SourcesView,
)
from farthing.server.services.dataset_declarations import (
    Declaration as Declared,
)
from farthing.server.services.dataset_declarations import (
    all_declarations,
    canonical,
    dataset_of,
    declaration_of,
    declare,
    not_there,
)
from farthing.server.services.plan_cache import planning_of
from farthing.server.store import user_rows
from farthing.study.attacker_odds import LARGEST_DELTA, budget_cautions, odds_sentence
from farthing.study.documents.dataset_declaration import (
    budgets_beside,
    checked_declaration,
    declared_dataset,
    fits_budget,
    open_budget,
    schema_of,
    take_up_table,
    unit_sentence,
)

router = guarded("datasets")

_DELTA_RULE = f"must be at most {LARGEST_DELTA} to plan with"
_DELTA_WAY_OUT = "it is the chance that nothing is protected; 1e-9 is a common choice"

TheState = Annotated[State, Depends(the_state)]
Who = Annotated[Caller, Depends(caller)]
Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]
User = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
Label = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]


@router.get(
    "/sources",
    response_model=SourcesView,
    responses=refusals("engine_error"),
    summary="Tables of the data folder that could be registered",
)
def sources(
    state: TheState, only: Annotated[str | None, Query(min_length=1, max_length=500)] = None
) -> dict[str, Any]:
    """Names and types of columns, never a row. Tables of engines tell their columns only when one is asked for."""
    folder = planning_of(state).folder
    return {
        "folder_shown": folder.shown,
        "files": [
            {
                "name": each.name,
                "engine": each.engine,
                "columns": [{"name": name, "holds": holds} for name, holds in each.columns],
                "problem": each.problem or None,
            }
            for each in folder.listed(only)
        ],
    }


@router.post(
    "/datasets/check",
    response_model=CheckView,
    responses=refusals("engine_error"),
    summary="What a declaration comes to, before it is made",
)
def check(told: CheckedDeclaration, state: TheState) -> dict[str, Any]:
    """A sentence for every column and for the unit, and what is still wrong. Nothing is written, no row is read."""
    problems: list[tuple[str, str]] = []
    columns: dict[str, str] = {}
    unit = ""
    beside: list[str] = []
    try:
        source = planning_of(state).folder.opened(told.source)
        found = checked_declaration(told.name, told.words(), source)
        unit, columns, problems = found.unit, dict(found.columns), list(found.problems)
        if told.columns and not problems:
            made = declared_dataset(told.name, told.words(), source)
            others = {
                each.name for each in all_declarations(state.store) if each.words["source"] == told.source
            }
            others |= set(budgets_beside(state.root, made, told.name))
            beside += [
                f"The same table is registered as {each!r} already: what is computed from it is paid from both budgets."
                for each in sorted(others - {told.name})
            ]
    except InvalidValue as problem:
        problems.append(("source", f"{problem.rule}; {problem.way_out}".removesuffix("; ")))
    problems += _name_taken(state, told)
    if told.delta is not None and not told.delta <= LARGEST_DELTA:
        problems.append(("delta", f"{_DELTA_RULE}; {_DELTA_WAY_OUT}"))
    budget = odds_sentence(told.epsilon, told.delta or 0.0) if told.epsilon is not None else ""
    return {
        "ok": not problems and bool(told.columns),
        "columns": [{"name": name, "sentence": sentence} for name, sentence in columns.items()],
        "unit_sentence": unit,
        "budget_sentence": budget.replace("after this release", "after everything that is ever released"),
        "problems": [{"where": where, "message": message} for where, message in problems],
        "notes": [
            *budget_cautions(told.epsilon, told.delta, told.rows),
            *beside,
        ],
    }


@router.get("/datasets", response_model=DatasetsView, summary="All datasets that you may plan with")
def datasets(state: TheState, who: Who) -> dict[str, Any]:
    """Each with its budget; an analyst sees those with a grant of their own, and the grant."""
    ledger = state.ledger(who)
    registered = set(ledger.datasets())
    lines = []
    for each in all_declarations(state.store):
        budget = _budget(ledger, who, each.name) if each.name in registered else None
        if budget is not None:
            lines.append({"name": each.name, "unit": _unit_text(each.words), "budget": budget})
    return {"datasets": lines}


@router.post(
    "/datasets",
    status_code=201,
    response_model=DatasetView,
    responses=refusals("conflict", "engine_error"),
    summary="Register a dataset and its budget",
)
def register(told: Declaration, state: TheState, who: Who) -> dict[str, Any]:
    """Write the declaration, then open the budget in the ledger. The same again finishes what was begun."""
    _refuse_unplannable(told.delta)
    words = told.words()
    source = planning_of(state).folder.opened(told.source)
    made = declared_dataset(told.name, words, source)
    ledger = state.ledger(who)
    earlier = declaration_of(state.store, told.name)
    if earlier is None and told.name in ledger.datasets():
        _refuse_another_budget(ledger, told, made)
    _take_up_tables(state, ledger)
    budgets_beside(ledger, made, told.name)  # refuses a table whose other budget is one of another unit
    declared = declare(state.store, told.name, words, who.name)
    if told.name not in ledger.datasets():
        try:
            open_budget(ledger, made, told.name, told.epsilon, told.delta)
        except InvalidValue:
            if told.name not in ledger.datasets():
                raise
            # Somebody else sent the same at the same time.
    return _described(state, who, declared)


@router.get(
    "/datasets/{name}",
    response_model=DatasetView,
    responses=refusals("not_found", "engine_error"),
    summary="What is public about a dataset",
)
def described(name: Name, state: TheState, who: Who) -> dict[str, Any]:
    """Columns, unit, stability and budget; curators also see the source, they and auditors the grants."""
    declared = declaration_of(state.store, name)
    if declared is None:
        raise not_there(name)
    return _described(state, who, declared)


@router.get(
    "/datasets/{name}/budget",
    response_model=BudgetView,
    responses=refusals("not_found"),
    summary="How a budget stands",
)
def budget(name: Name, state: TheState, who: Who) -> BudgetView:
    """The dataset's budget; for an analyst, their grant in it."""
    return _standing(state, who, name)


@router.put(
    "/datasets/{name}/budget",
    response_model=BudgetView,
    responses=refusals("not_found"),
    summary="Set a dataset's budget",
)
def set_budget(name: Name, told: BudgetWords, state: TheState, who: Who) -> BudgetView:
    """What was spent stays spent; a raise is an entry of the ledger for ever."""
    total = _registered(state, who, name).budget(name).total
    if told.delta is not None:
        _refuse_unplannable(told.delta)
    if total != _wanted(told, total):
        state.ledger(who).set_budget(name, told.epsilon, told.delta)
    return _standing(state, who, name)


@router.put(
    "/datasets/{name}/grants/{user}",
    response_model=BudgetView,
    responses=refusals("not_found"),
    summary="Let an analyst spend so much in all",
)
def grant(name: Name, user: User, told: BudgetWords, state: TheState, who: Who) -> BudgetView:
    """The dataset's own budget still rules above it. What the analyst spent stays spent."""
    ledger = _registered(state, who, name)
    with state.store.reading() as connection:
        if user_rows.find(connection, user) is None:
            raise RequestRefused(
                "not_found",
                f"there is no user {user!r}; add them first, or correct the name.",
                {"name": user},
            )
    before = ledger.budget(name, user).total if user in ledger.analysts(name) else None
    if before is None or before != _wanted(told, before):
        ledger.grant(name, user, told.epsilon, told.delta)
    return budget_view(ledger.budget(name, user), ledger.budget(name))


@router.put(
    "/datasets/{name}/reserves/{label}",
    response_model=BudgetView,
    responses=refusals("not_found"),
    summary="Set a part of a budget aside under a name",
)
def reserve(name: Name, label: Label, told: BudgetWords, state: TheState, who: Who) -> BudgetView:
    """Only charges that name it may use it; epsilon 0 and delta 0 free it."""
    ledger = _registered(state, who, name)
    before = ledger.budget(name).withheld.get(label)
    now = ApproxDP(0.0) if before is None else before
    if now != _wanted(told, now if told.epsilon else ApproxDP(0.0)):
        ledger.reserve(name, told.epsilon, told.delta, name=label)
    return _standing(state, who, name)


def _take_up_tables(state: State, ledger: Ledger) -> None:
    """What was registered by an older version, or by hand, holds its table before another budget for it is opened."""
    known = ledger.sources()
    for each in all_declarations(state.store):
        if each.name in known and not known[each.name]:
            # A table that cannot be opened cannot be read under another name either.
            with suppress(FarthingError):
                take_up_table(ledger, dataset_of(state, each), each.name)


def _wanted(told: BudgetWords, before: ApproxDP) -> ApproxDP:
    """What is to be set, where a delta that is left out stays as it is."""
    return as_kept(told.epsilon, before.delta if told.delta is None else told.delta)


def _refuse_unplannable(delta: float) -> None:
    if not delta <= LARGEST_DELTA:
        raise InvalidValue("delta", delta, _DELTA_RULE, _DELTA_WAY_OUT)


def _name_taken(state: State, told: CheckedDeclaration) -> list[tuple[str, str]]:
    """What stands under this name already, unless it is the same again."""
    earlier = declaration_of(state.store, told.name)
    if earlier is not None and canonical(earlier.words) != canonical(told.words()):
        return [("name", f"there is a dataset {told.name!r} already; give this one another name")]
    return []


def _registered(state: State, who: Caller, name: str) -> Ledger:
    ledger = state.ledger(who)
    if declaration_of(state.store, name) is None or name not in ledger.datasets():
        raise not_there(name)
    return ledger


def _standing(state: State, who: Caller, name: str) -> BudgetView:
    found = _budget(_registered(state, who, name), who, name)
    if found is None:
        raise not_there(name)
    return found


def _budget(ledger: Ledger, who: Caller, name: str) -> BudgetView | None:
    """The budget that the caller spends from; None for an analyst without a grant."""
    if who.role != "analyst":
        return budget_view(ledger.budget(name))
    try:
        return budget_view(ledger.budget(name, who.name), ledger.budget(name))
    except InvalidValue:
        return None


def _refuse_another_budget(ledger: Ledger, told: Declaration, made: Any) -> None:
    """A dataset that the ledger knows from elsewhere keeps its budget and the unit that it was set for."""
    stands = ledger.budget(told.name)
    same = (stands.total.epsilon, stands.total.delta) == (told.epsilon, told.delta)
    if not (same and fits_budget(made, stands)):
        raise RequestRefused(
            "conflict",
            f"the ledger has a budget for {told.name!r} already: epsilon {stands.total.epsilon:g}, delta "
            f"{stands.total.delta:g}, unit {stands.unit or 'not said'}; declare it with these, or give another name.",
            {"name": told.name, "epsilon": stands.total.epsilon},
        )


def _described(state: State, who: Caller, declared: Declared) -> dict[str, Any]:
    name = declared.name
    standing = _standing(state, who, name)
    made = dataset_of(state, declared)
    ledger = state.ledger(who)
    with suppress(FarthingError):  # then it is told without the other budgets of the same table
        standing = study_budget_view(state.study(who, name))
    grants = None
    if who.role != "analyst":
        whole = ledger.budget(name)
        grants = [budget_view(ledger.budget(name, each), whole) for each in ledger.analysts(name)]
    return {
        "name": name,
        "source": declared.words["source"] if who.role == "curator" else None,
        "unit": list(made.unit),
        "unit_sentence": unit_sentence(made),
        "schema_": schema_of(made),
        "stability": str(made.stability()),
        "rows": made.rows,
        "budget": standing,
        "grants": grants,
    }


def _unit_text(words: dict[str, Any]) -> str:
    unit = words.get("unit")
    if not unit:
        return "one row"
    return "all rows with one " + (unit if isinstance(unit, str) else " and ".join(unit))

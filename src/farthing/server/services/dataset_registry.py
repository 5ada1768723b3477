"""Registering and describing datasets, and setting their budgets, grants and reserves. No row is read."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from farthing.errors import FarthingError, InvalidValue, RequestRefused
from farthing.ledger import Ledger
from farthing.ledger.budget import as_stored
from farthing.privacy import ApproxDP
from farthing.server.auth.permissions import Caller
from farthing.server.schemas.budget_schema import BudgetView
from farthing.server.schemas.dataset_schema import BudgetWords, CheckedDeclaration, Declaration
from farthing.server.services.app_state import State
from farthing.server.services.dataset_service import (
    StoredDeclaration,
    all_declarations,
    budget_view,
    canonical,
    dataset_of,
    declaration_of,
    declare,
    not_there,
    study_budget_view,
    study_of,
)
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

_DELTA_RULE = f"must be at most {LARGEST_DELTA} to plan with"
_DELTA_WAY_OUT = "it is the chance that nothing is protected; 1e-9 is a common choice"


def table_list(state: State, only: str | None) -> dict[str, Any]:
    """The tables of the data folder: names and types of columns, never a row."""
    folder = state.plans.folder
    return {
        "folder_shown": folder.display_name,
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


def check_of(state: State, body: CheckedDeclaration) -> dict[str, Any]:
    """What a declaration comes to: a sentence for every column and for the unit, and what is still wrong."""
    problems: list[tuple[str, str]] = []
    columns: dict[str, str] = {}
    unit = ""
    beside: list[str] = []
    try:
        source = state.plans.folder.opened(body.source)
        check = checked_declaration(body.name, body.plain(), source)
        unit, columns, problems = check.unit, dict(check.columns), list(check.problems)
        if body.columns and not problems:
            beside = _budgets_beside(state, body, declared_dataset(body.name, body.plain(), source))
    except InvalidValue as problem:
        problems.append(("source", f"{problem.rule}; {problem.way_out}".removesuffix("; ")))
    problems += _name_taken(state, body)
    if body.delta is not None and not body.delta <= LARGEST_DELTA:
        problems.append(("delta", f"{_DELTA_RULE}; {_DELTA_WAY_OUT}"))
    budget = ""
    if body.epsilon is not None:
        budget = odds_sentence(body.epsilon, body.delta or 0.0, after="everything that is ever released")
    return {
        "ok": not problems and bool(body.columns),
        "columns": [{"name": name, "sentence": sentence} for name, sentence in columns.items()],
        "unit_sentence": unit,
        "budget_sentence": budget,
        "problems": [{"where": where, "message": message} for where, message in problems],
        "notes": [*budget_cautions(body.epsilon, body.delta, body.rows), *beside],
    }


def _budgets_beside(state: State, body: CheckedDeclaration, dataset: Any) -> list[str]:
    """A note for every other name under which the same table has a budget."""
    others = {each.name for each in all_declarations(state.store) if each.facts["source"] == body.source}
    others |= set(budgets_beside(state.root, dataset, body.name))
    return [
        f"The same table is registered as {each!r} already: what is computed from it is paid from both budgets."
        for each in sorted(others - {body.name})
    ]


def dataset_list(state: State, who: Caller) -> dict[str, Any]:
    """The datasets that somebody may plan with, each with the budget that they would spend from."""
    ledger = state.ledger(who)
    registered = set(ledger.datasets())
    lines = []
    for each in all_declarations(state.store):
        budget = _budget(ledger, who, each.name) if each.name in registered else None
        if budget is not None:
            lines.append({"name": each.name, "unit": _unit_text(each.facts), "budget": budget})
    return {"datasets": lines}


def register(state: State, who: Caller, body: Declaration) -> dict[str, Any]:
    """Write the declaration, then open the budget in the ledger; the same again finishes what was begun."""
    _refuse_unplannable(body.delta)
    source = state.plans.folder.opened(body.source)
    dataset = declared_dataset(body.name, body.plain(), source)
    ledger = state.ledger(who)
    earlier = declaration_of(state.store, body.name)
    if earlier is None and body.name in ledger.datasets():
        _refuse_another_budget(ledger, body, dataset)
    _claim_tables(state, ledger)
    budgets_beside(ledger, dataset, body.name)  # refuses a table whose other budget is one of another unit
    declaration = declare(state.store, body.name, body.plain(), who.name)
    if body.name not in ledger.datasets():
        try:
            open_budget(ledger, dataset, body.name, body.epsilon, body.delta)
        except InvalidValue:
            if body.name not in ledger.datasets():
                raise
            # Somebody else sent the same at the same time.
    return _description(state, who, declaration)


def description(state: State, who: Caller, name: str) -> dict[str, Any]:
    """What is public about a dataset; curators also see the source, they and auditors the grants."""
    declaration = declaration_of(state.store, name)
    if declaration is None:
        raise not_there(name)
    return _description(state, who, declaration)


def set_budget(state: State, who: Caller, name: str, body: BudgetWords) -> BudgetView:
    """Set a dataset's budget, unless it is what was asked for already."""
    total = _registered(state, who, name).budget(name).total
    if body.delta is not None:
        _refuse_unplannable(body.delta)
    if total != _new_budget(body, total):
        state.ledger(who).set_budget(name, body.epsilon, body.delta)
    return budget_of(state, who, name)


def grant(state: State, who: Caller, name: str, user: str, body: BudgetWords) -> BudgetView:
    """Set how much an analyst may spend in all."""
    ledger = _registered(state, who, name)
    with state.store.reading() as connection:
        if user_rows.find(connection, user) is None:
            raise RequestRefused(
                "not_found",
                f"there is no user {user!r}; add them first, or correct the name.",
                {"name": user},
            )
    before = ledger.budget(name, user).total if user in ledger.analysts(name) else None
    if before is None or before != _new_budget(body, before):
        ledger.grant(name, user, body.epsilon, body.delta)
    return budget_view(ledger.budget(name, user), ledger.budget(name))


def reserve(state: State, who: Caller, name: str, label: str, body: BudgetWords) -> BudgetView:
    """Set a part of a budget aside under a name; epsilon 0 and delta 0 free it."""
    ledger = _registered(state, who, name)
    before = ledger.budget(name).withheld.get(label)
    now = ApproxDP(0.0) if before is None else before
    if now != _new_budget(body, now if body.epsilon else ApproxDP(0.0)):
        ledger.reserve(name, body.epsilon, body.delta, name=label)
    return budget_of(state, who, name)


def _claim_tables(state: State, ledger: Ledger) -> None:
    """What was registered by an older version, or by hand, holds its table before another budget for it is opened."""
    known = ledger.sources()
    for each in all_declarations(state.store):
        if each.name in known and not known[each.name]:
            # A table that cannot be opened cannot be read under another name either.
            with suppress(FarthingError):
                take_up_table(ledger, dataset_of(state, each), each.name)


def _new_budget(body: BudgetWords, before: ApproxDP) -> ApproxDP:
    """What is to be set, where a delta that is left out stays as it is."""
    return as_stored(body.epsilon, before.delta if body.delta is None else body.delta)


def _refuse_unplannable(delta: float) -> None:
    if not delta <= LARGEST_DELTA:
        raise InvalidValue("delta", delta, _DELTA_RULE, _DELTA_WAY_OUT)


def _name_taken(state: State, body: CheckedDeclaration) -> list[tuple[str, str]]:
    """What stands under this name already, unless it is the same again."""
    earlier = declaration_of(state.store, body.name)
    if earlier is not None and canonical(earlier.facts) != canonical(body.plain()):
        return [("name", f"there is a dataset {body.name!r} already; give this one another name")]
    return []


def _registered(state: State, who: Caller, name: str) -> Ledger:
    ledger = state.ledger(who)
    if declaration_of(state.store, name) is None or name not in ledger.datasets():
        raise not_there(name)
    return ledger


def budget_of(state: State, who: Caller, name: str) -> BudgetView:
    """The dataset's budget; for an analyst, their grant in it."""
    budget = _budget(_registered(state, who, name), who, name)
    if budget is None:
        raise not_there(name)
    return budget


def _budget(ledger: Ledger, who: Caller, name: str) -> BudgetView | None:
    """The budget that the caller spends from; None for an analyst without a grant."""
    if who.role != "analyst":
        return budget_view(ledger.budget(name))
    try:
        return budget_view(ledger.budget(name, who.name), ledger.budget(name))
    except InvalidValue:
        return None


def _refuse_another_budget(ledger: Ledger, body: Declaration, dataset: Any) -> None:
    """A dataset that the ledger knows from elsewhere keeps its budget and the unit that it was set for."""
    budget = ledger.budget(body.name)
    same = (budget.total.epsilon, budget.total.delta) == (body.epsilon, body.delta)
    if not (same and fits_budget(dataset, budget)):
        raise RequestRefused(
            "conflict",
            f"the ledger has a budget for {body.name!r} already: epsilon {budget.total.epsilon:g}, delta "
            f"{budget.total.delta:g}, unit {budget.unit or 'not said'}; declare it with these, or give another name.",
            {"name": body.name, "epsilon": budget.total.epsilon},
        )


def _description(state: State, who: Caller, declaration: StoredDeclaration) -> dict[str, Any]:
    name = declaration.name
    standing = budget_of(state, who, name)
    dataset = dataset_of(state, declaration)
    ledger = state.ledger(who)
    with suppress(FarthingError):  # then it is described without the other budgets of the same table
        standing = study_budget_view(study_of(state, who, name))
    grants = None
    if who.role != "analyst":
        whole = ledger.budget(name)
        grants = [budget_view(ledger.budget(name, each), whole) for each in ledger.analysts(name)]
    return {
        "name": name,
        "source": declaration.facts["source"] if who.role == "curator" else None,
        "unit": list(dataset.unit),
        "unit_sentence": unit_sentence(dataset),
        "schema_": schema_of(dataset),
        "stability": str(dataset.stability()),
        "rows": dataset.rows,
        "budget": standing,
        "grants": grants,
    }


def _unit_text(facts: dict[str, Any]) -> str:
    unit = facts.get("unit")
    if not unit:
        return "one row"
    return "all rows with one " + (unit if isinstance(unit, str) else " and ".join(unit))

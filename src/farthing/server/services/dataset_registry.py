"""Registering and describing datasets, and setting their budgets, grants and reserves. No row is read."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from farthing.errors import FarthingError, InvalidValue, RequestRefused
from farthing.ledger import Budget, Ledger
from farthing.ledger.budget import as_stored
from farthing.privacy import ApproxDP
from farthing.server.auth.permissions import Caller
from farthing.server.schemas.budget_schema import BudgetDetails, BudgetView
from farthing.server.schemas.dataset_schema import (
    BudgetWords,
    CheckedDeclaration,
    Declaration,
    LinkedTableView,
    NextPeriod,
)
from farthing.server.schemas.discovery_schema import UnknownView
from farthing.server.services.app_state import State
from farthing.server.services.dataset_parts import divisions, part_text, part_view
from farthing.server.services.dataset_service import (
    StoredDeclaration,
    all_declarations,
    budget_details,
    budget_view,
    canonical,
    dataset_of,
    declaration_of,
    declare,
    not_there,
    study_budget_view,
    study_of,
)
from farthing.server.services.discovery_service import unknown_views
from farthing.server.store import user_rows
from farthing.study import Study
from farthing.study.attacker_odds import LARGEST_DELTA, budget_cautions, odds_sentence
from farthing.study.documents.dataset_declaration import (
    account_note,
    checked_declaration,
    declared_account,
    declared_dataset,
    declared_sources,
    fits_budget,
    open_budget,
    opened_sources,
    period_account,
    refuse_other_payers,
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
    unit, news = "", ""
    account: str | None = None
    facts = body.plain()
    try:
        source = opened_sources(facts, state.plans.folder.opened)
        check = checked_declaration(body.name, facts, source)
        unit, columns, problems = check.unit, dict(check.columns), list(check.problems)
        if columns and not problems:
            facts, account, news = _account_facts(state.root, body, source)
    except InvalidValue as problem:
        where = "account" if problem.name in ("account", "unit") else "source"
        problems.append((where, f"{problem.rule}; {problem.way_out}".removesuffix("; ")))
    problems += _name_taken(state, body.name, facts)
    if body.delta is not None and not body.delta <= LARGEST_DELTA:
        problems.append(("delta", f"{_DELTA_RULE}; {_DELTA_WAY_OUT}"))
    budget = ""
    if body.epsilon is not None:
        budget = odds_sentence(body.epsilon, body.delta or 0.0, after="everything that is ever released")
    return {
        "ok": not problems and bool(columns),
        "columns": [{"name": name, "sentence": sentence} for name, sentence in columns.items()],
        "unit_sentence": unit,
        "budget_sentence": budget,
        "problems": [{"where": where, "message": message} for where, message in problems],
        "notes": budget_cautions(body.epsilon, body.delta, body.rows),
        "account": account,
        "account_open": account in state.root.datasets(),
        "account_sentence": news,
    }


def _account_facts(ledger: Ledger, body: CheckedDeclaration, source: Any) -> tuple[dict[str, Any], str, str]:
    """The declaration with the account that pays, its name, and what registering it does in the ledger."""
    if body.renews is not None:
        if body.epsilon is None and _whole_account(ledger, body, source) not in ledger.datasets():
            return body.plain(), _whole_account(ledger, body, source), ""
        study = _period_study(ledger, body, source)
        news = study.account_news or f"pays from the account {study.name!r}, to which the table belongs"
        return {**body.plain(), "account": study.name}, study.name, f"{news[0].upper()}{news[1:]}."
    dataset = declared_dataset(body.name, body.plain(), source)
    facts = _with_account(ledger, body, dataset)
    account = str(facts.get("account") or body.name)
    return facts, account, _account_note(ledger, dataset, account, body)


def _whole_account(ledger: Ledger, body: CheckedDeclaration, source: Any) -> str:
    """The account whose periods have a budget each."""
    facts = {name: value for name, value in body.plain().items() if name != "renews"}
    return declared_account(ledger, declared_dataset(body.name, facts, source), body.account)


def _period_study(ledger: Ledger, body: CheckedDeclaration, source: Any) -> Study:
    """The study of one period of an account that renews: every period has the budget that the first was opened with."""
    assert body.renews is not None
    whole = _whole_account(ledger, body, source)
    total = ledger.budget(whole).total if whole in ledger.datasets() else None
    if total is None and body.epsilon is None:
        raise InvalidValue("epsilon", None, f"must be given: the account {whole!r} is not open yet")
    given = None if body.epsilon is None else as_stored(body.epsilon, body.delta or 0.0)
    if total is not None and given is not None and total != given:
        raise RequestRefused(
            "conflict",
            f"every period of {whole!r} has epsilon {total.epsilon:g} and delta {total.delta:g}; leave the budget out.",
            {"name": whole, "epsilon": total.epsilon},
        )
    budget = total or given
    assert budget is not None
    facts = {name: value for name, value in body.plain().items() if name != "renews"}
    return Study(
        declared_dataset(body.name, facts, source),
        budget.epsilon,
        budget.delta,
        ledger=ledger,
        account=whole,
        renews=body.renews.every,
        date=body.renews.date,
        period=body.renews.period,
    )


def open_period(state: State, who: Caller, name: str, body: NextPeriod) -> dict[str, Any]:
    """Declare another period of a dataset whose account renews; it has the budget that every period has."""
    declaration = declaration_of(state.store, name)
    if declaration is None or declaration.account not in state.ledger(who).datasets():
        raise not_there(name)
    facts = declaration.facts
    if not facts.get("renews"):
        rule = "has one budget for all time, and no periods"
        raise InvalidValue("name", name, rule, "declare a dataset of an account that renews")
    whole = declaration.account.removesuffix(period_account("", facts["renews"]["period"]))
    renews = {**facts["renews"], "period": body.period}
    words = {**facts, "name": body.name, "account": whole, "renews": renews, "epsilon": None, "delta": 0.0}
    return register(state, who, Declaration.model_validate(words))


def _with_account(ledger: Ledger, body: CheckedDeclaration, dataset: Any) -> dict[str, Any]:
    """The declaration with the account that pays, where that has another name."""
    account = declared_account(ledger, dataset, body.account)
    facts = {name: value for name, value in body.plain().items() if name != "account"}
    return facts if account == body.name else {**facts, "account": account}


def _account_note(ledger: Ledger, dataset: Any, account: str, body: CheckedDeclaration) -> str:
    """What registering it does in the ledger: open an account, or use one that is open."""
    if account not in ledger.datasets() and body.epsilon is None:
        return ""
    return account_note(ledger, dataset, account, body.epsilon or 0.0, body.delta or 0.0)


def dataset_list(state: State, who: Caller) -> dict[str, Any]:
    """The datasets that somebody may plan with, each with the budget that they would spend from."""
    ledger = state.ledger(who)
    registered = set(ledger.datasets())
    lines = []
    for each in all_declarations(state.store):
        budgets = _budgets(ledger, who, each.account) if each.account in registered else None
        budget = None if budgets is None else budget_view(*budgets)
        if budget is not None:
            about = {"name": each.name, "account": each.account, "unit": each.unit}
            lines.append({**about, "part": part_text(each), "budget": budget})
    return {"datasets": lines}


def register(state: State, who: Caller, body: Declaration) -> dict[str, Any]:
    """Write the declaration, then open the budget in the ledger; the same again finishes what was begun."""
    _refuse_unplannable(body.delta)
    source = opened_sources(body.plain(), state.plans.folder.opened)
    dataset = declared_dataset(body.name, body.plain(), source)
    ledger = state.ledger(who)
    _claim_tables(state, ledger)
    if body.renews is not None:
        study = _period_study(ledger, body, source)
        declaration = declare(state.store, body.name, {**body.plain(), "account": study.name}, who.name)
        study.register()
        return _description(state, who, declaration)
    facts = _with_account(ledger, body, dataset)
    account = str(facts.get("account") or body.name)
    if account in ledger.datasets() and declaration_of(state.store, body.name) is None:
        _refuse_another_budget(ledger, body, dataset, account)
    refuse_other_payers(ledger, dataset, account)
    if account not in ledger.datasets() and body.epsilon is None:
        raise InvalidValue("epsilon", None, f"must be given: the account {account!r} is not open yet")
    declaration = declare(state.store, body.name, facts, who.name)
    if account in ledger.datasets():
        take_up_table(ledger, dataset, account)
    else:
        try:
            open_budget(ledger, dataset, account, body.epsilon or 0.0, body.delta)
        except InvalidValue:
            if account not in ledger.datasets():
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
    """Set the budget of a dataset's account, unless it is what was asked for already."""
    ledger, account = _registered(state, who, name)
    total = ledger.budget(account).total
    if body.delta is not None:
        _refuse_unplannable(body.delta)
    if total != _new_budget(body, total):
        ledger.set_budget(account, body.epsilon, body.delta)
    return budget_view(state.ledger(who).budget(account))


def grant(state: State, who: Caller, name: str, user: str, body: BudgetWords) -> BudgetView:
    """Set how much an analyst may spend in all."""
    ledger, account = _registered(state, who, name)
    if account in ledger.parts():
        rule = "is a part of a table, which only a curator may spend from"
        raise InvalidValue("name", name, rule, "grant a share of the whole table")
    with state.store.reading() as connection:
        if user_rows.find(connection, user) is None:
            raise RequestRefused(
                "not_found",
                f"there is no user {user!r}; add them first, or correct the name.",
                {"name": user},
            )
    before = ledger.budget(account, user).total if user in ledger.analysts(account) else None
    if before is None or before != _new_budget(body, before):
        ledger.grant(account, user, body.epsilon, body.delta)
    return budget_view(ledger.budget(account, user), ledger.budget(account))


def reserve(state: State, who: Caller, name: str, label: str, body: BudgetWords) -> BudgetView:
    """Set a part of a budget aside under a name; epsilon 0 and delta 0 free it."""
    ledger, account = _registered(state, who, name)
    before = ledger.budget(account).withheld.get(label)
    now = ApproxDP(0.0) if before is None else before
    if now != _new_budget(body, now if body.epsilon else ApproxDP(0.0)):
        ledger.reserve(account, body.epsilon, body.delta, name=label)
    return budget_view(state.ledger(who).budget(account))


def _claim_tables(state: State, ledger: Ledger) -> None:
    """What was registered by an older version, or by hand, holds its table before another budget for it is opened."""
    known = ledger.sources()
    for each in all_declarations(state.store):
        # The account of a part holds no table: that of the whole table does.
        if each.account in known and not known[each.account] and each.facts.get("part") is None:
            # A table that cannot be opened cannot be read under another name either.
            with suppress(FarthingError):
                take_up_table(ledger, dataset_of(state, each), each.account)


def _new_budget(body: BudgetWords, before: ApproxDP) -> ApproxDP:
    """What is to be set, where a delta that is left out stays as it is."""
    return as_stored(body.epsilon, before.delta if body.delta is None else body.delta)


def _refuse_unplannable(delta: float) -> None:
    if not delta <= LARGEST_DELTA:
        raise InvalidValue("delta", delta, _DELTA_RULE, _DELTA_WAY_OUT)


def _name_taken(state: State, name: str, facts: dict[str, Any]) -> list[tuple[str, str]]:
    """What stands under this name already, unless it is the same again."""
    earlier = declaration_of(state.store, name)
    if earlier is not None and canonical(earlier.facts) != canonical(facts):
        return [("name", f"there is a dataset {name!r} already; give this one another name")]
    return []


def _registered(state: State, who: Caller, name: str) -> tuple[Ledger, str]:
    """The ledger, and the account in it that pays for a dataset."""
    ledger, declaration = state.ledger(who), declaration_of(state.store, name)
    if declaration is None or declaration.account not in ledger.datasets():
        raise not_there(name)
    return ledger, declaration.account


def budget_of(state: State, who: Caller, name: str, *, odometer: bool = False) -> BudgetDetails:
    """The budget of a dataset's account; for an analyst, their grant in it."""
    ledger, account = _registered(state, who, name)
    budgets = _budgets(ledger, who, account)
    if budgets is None:
        raise not_there(name)
    return budget_details(*budgets, odometer=odometer)


def _budgets(ledger: Ledger, who: Caller, name: str) -> tuple[Budget, Budget | None] | None:
    """The budget that the caller spends from, and the one above it; None for an analyst without a grant."""
    if who.role != "analyst":
        return ledger.budget(name), None
    try:
        return ledger.budget(name, who.name), ledger.budget(name)
    except InvalidValue:
        return None


def _refuse_another_budget(ledger: Ledger, body: Declaration, dataset: Any, account: str) -> None:
    """An account that is open keeps its budget and the unit that it was set for."""
    budget = ledger.budget(account)
    same = body.epsilon is None or (budget.total.epsilon, budget.total.delta) == (body.epsilon, body.delta)
    if not (same and fits_budget(dataset, budget)):
        raise RequestRefused(
            "conflict",
            f"the ledger has a budget for {account!r} already: epsilon {budget.total.epsilon:g}, delta "
            f"{budget.total.delta:g}, unit {budget.unit or 'not said'}; declare it with these (the budget may be left "
            "out), or give another account.",
            {"name": account, "epsilon": budget.total.epsilon},
        )


def _description(state: State, who: Caller, declaration: StoredDeclaration) -> dict[str, Any]:
    name, account = declaration.name, declaration.account
    budgets = _budgets(_registered(state, who, name)[0], who, account)
    if budgets is None:
        raise not_there(name)
    standing = budget_view(*budgets)
    dataset = dataset_of(state, declaration)
    ledger = state.ledger(who)
    unknown: list[UnknownView] = []
    with suppress(FarthingError):  # then it is described without the other budgets of the same table
        study = study_of(state, who, name)
        dataset, unknown = study.dataset, unknown_views(study)
        standing = study_budget_view(study)
    grants = None
    if who.role != "analyst":
        whole = ledger.budget(account)
        grants = [budget_view(ledger.budget(account, each), whole) for each in ledger.analysts(account)]
    return {
        "name": name,
        "account": account,
        "source": declaration.sources if who.role == "curator" else None,
        "tables": _table_views(declaration.facts, shows_sources=who.role == "curator"),
        "unit": list(dataset.unit),
        "unit_sentence": unit_sentence(dataset),
        "schema_": schema_of(dataset),
        "unknown": unknown,
        "stability": str(dataset.stability()),
        "rows": dataset.rows,
        "people": dataset.people,
        "renews": declaration.facts.get("renews"),
        "part": part_view(state, declaration),
        "divided": [] if who.role == "analyst" else divisions(state, name),
        "budget": standing,
        "grants": grants,
    }


def _table_views(facts: dict[str, Any], *, shows_sources: bool) -> list[LinkedTableView] | None:
    """The tables that are linked, each with where its key leads; None where there is one."""
    if "tables" not in facts:
        return None
    keys = {key.partition(".")[0]: (key.partition(".")[2], target) for key, target in facts["keys"].items()}
    return [
        LinkedTableView(
            name=name,
            source=source if shows_sources else None,
            is_asked_about=name == facts["table"],
            max_rows=facts["tables"][name].get("max_rows") or (1 if facts["unit"].partition(".")[0] == name else None),
            key=keys[name][0] if name in keys else None,
            leads_to=keys[name][1] if name in keys else None,
        )
        for name, source in declared_sources(facts).items()
    ]

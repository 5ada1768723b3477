"""Datasets as they were declared: which table they come from, whose rows they are, and how their budgets stand."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import is_
from typing import Any

import sqlalchemy as sa

from farthing.errors import EngineError, FarthingError, InvalidValue, RequestRefused
from farthing.ledger import Budget, PlanRequest
from farthing.ledger.lifetime import lifetime_words
from farthing.numerics.bounds import number_text, rounded_down_text, rounded_up_text
from farthing.privacy import ApproxDP
from farthing.server.auth.permissions import Caller
from farthing.server.schemas.budget_schema import Amount, BudgetDetails, BudgetView, Fitting, Spent
from farthing.server.services.app_state import State
from farthing.server.store import Store, now
from farthing.server.store.store_tables import declarations
from farthing.study import Study
from farthing.study.documents.dataset_declaration import declared_dataset, declared_sources, opened_sources
from farthing.study.study_account import left_of, room_of

_HARDLY = 1e-5  # a difference that comes from rounding


@dataclass(frozen=True)
class StoredDeclaration:
    """One dataset: its name, what was said about it (`text` as it is kept), by whom and when."""

    name: str
    text: str
    created_by: str
    created: int

    @property
    def facts(self) -> dict[str, Any]:
        """The declaration in the words of a study.toml."""
        facts: dict[str, Any] = json.loads(self.text)
        return facts

    @property
    def unit(self) -> str:
        """Whom it protects, in a few words."""
        unit = self.facts.get("unit")
        if not unit:
            return "one row"
        if "tables" in self.facts:
            return f"all rows that lead to one {unit}"
        return "all rows with one " + (unit if isinstance(unit, str) else " and ".join(unit))

    @property
    def sources(self) -> str:
        """The files or tables that it reads, as curators know them."""
        return ", ".join(declared_sources(self.facts).values())

    @property
    def account(self) -> str:
        """The account of the ledger that pays: that of its name, unless the declaration names another."""
        return str(self.facts.get("account") or self.name)


def canonical(facts: Mapping[str, Any]) -> str:
    """One spelling, so that the same declaration is the same text."""
    return json.dumps(facts, sort_keys=True, ensure_ascii=False, allow_nan=False)


def declaration_of(store: Store, name: str) -> StoredDeclaration | None:
    """The declaration of that name."""
    with store.reading() as connection:
        row = connection.execute(sa.select(declarations).where(declarations.c.name == name)).one_or_none()
    return None if row is None else StoredDeclaration(row.name, row.body, row.created_by, row.created)


def all_declarations(store: Store) -> list[StoredDeclaration]:
    """The declarations of all datasets, by name."""
    with store.reading() as connection:
        rows = connection.execute(sa.select(declarations).order_by(declarations.c.name)).all()
    return [StoredDeclaration(row.name, row.body, row.created_by, row.created) for row in rows]


def account_of(store: Store, name: str) -> str:
    """The account that pays for a dataset of this name; the name itself where there is none."""
    declaration = declaration_of(store, name)
    return name if declaration is None else declaration.account


def requested_dataset(store: Store, request: PlanRequest) -> str:
    """The dataset that a request reads: as it says itself, or the one that its account pays for."""
    said = str(request.document.get("dataset", ""))
    own = [each.name for each in all_declarations(store) if each.account == request.dataset]
    if said in own or len(own) != 1:
        return said if said in own else request.dataset
    return own[0]


def declare(store: Store, name: str, facts: Mapping[str, Any], by: str) -> StoredDeclaration:
    """Write a declaration down; the same one again finds the one that stands, another one is refused."""
    text = canonical(facts)
    values = {"name": name, "body": text, "created_by": by, "created": now()}
    try:
        with store.begin() as connection:
            connection.execute(declarations.insert().values(values))
    except sa.exc.IntegrityError:
        pass
    stands = declaration_of(store, name)
    assert stands is not None
    if canonical(stands.facts) != text:
        raise RequestRefused(
            "conflict",
            f"there is a dataset {name!r} already, with another declaration; give this one another name.",
            {"name": name},
        )
    return stands


def not_there(name: str) -> RequestRefused:
    """The refusal of a dataset that does not exist, or that the caller may not see."""
    return RequestRefused(
        "not_found",
        f"there is no dataset {name!r} that you may see; see the list of datasets.",
        {"name": name},
    )


def dataset_of(state: State, declaration: StoredDeclaration) -> Any:
    """The dataset that was declared, opened; the same as long as its table and its declaration are."""
    try:
        facts = declaration.facts
        source = opened_sources(facts, state.plans.folder.opened)
        tables = tuple(source.values()) if isinstance(source, Mapping) else (source,)
        key = (declaration.name, declaration.text)
        earlier = state.plans.datasets.value(key)
        if earlier is not None and all(map(is_, earlier[0], tables)):
            return earlier[1]
        dataset = declared_dataset(declaration.name, facts, source)
        return state.plans.datasets.keep(key, (tables, dataset))[1]
    except FarthingError:
        pass
    # Said again in other words: those of the refusal may name the file or the server.
    raise _cannot_be_opened(declaration)


def study_of(state: State, who: Caller, name: str) -> Study:
    """The study of a registered dataset, as this caller may use it."""
    declaration = declaration_of(state.store, name)
    if declaration is None:
        raise not_there(name)
    ledger = state.ledger(who)
    analyst = who.name if who.role == "analyst" else None
    try:  # before the table is opened: that it is broken, or slow to open, would tell that it is there
        ledger.budget(declaration.account, analyst)
    except InvalidValue:
        raise not_there(name) from None
    # Twice: the budget may be set again between reading it and opening the study, or a connection may have been lost.
    for last in (False, True):
        dataset = dataset_of(state, declaration)
        try:
            total = ledger.budget(declaration.account).total
            account = declaration.account
            study = Study(dataset, total.epsilon, total.delta, ledger=ledger, account=account, analyst=analyst)
            _ = study.budget
            return study
        except EngineError:
            if last:
                break
            _reconnect(state, declaration)
        except InvalidValue as problem:
            if problem.name in ("dataset", "analyst"):  # not registered yet, or no grant
                raise not_there(name) from None
            if last:
                raise
    raise _cannot_be_opened(declaration)


def _reconnect(state: State, declaration: StoredDeclaration) -> None:
    """Open a table of a database again whose connection was lost; whether it can be is found when it is read."""
    with suppress(FarthingError):  # whose words may name the server
        for source in declared_sources(declaration.facts).values():
            state.plans.folder.answering(source)


def _cannot_be_opened(declaration: StoredDeclaration) -> EngineError:
    return EngineError(
        "data folder",
        f"the table of {declaration.name!r} cannot be opened as it was declared",
        "its curator should look whether it is still there and has the same columns",
    )


def study_budget_view(study: Study) -> BudgetView:
    """The view of what a study spends; where another budget of the same table has less left, that is what is left."""
    whole = None if study.analyst is None else study.ledger.budget(study.name)
    view = budget_view(study.budget, whole)
    others = {name: left_of(*study.budgets_of(name)) for name in study.accounts if name != study.name}
    if not others:
        return view
    name, (left, exhausted) = min(others.items(), key=lambda other: other[1][0].epsilon)
    if not left.epsilon < view.remaining.epsilon * (1 - _HARDLY):
        return view
    limit = "nothing" if exhausted else f"only epsilon {number_text(left.epsilon)}"
    sentence = f"{view.sentence} The budget of {name} pays for this table too, and has {limit} left."
    remaining = Amount(epsilon=left.epsilon, delta=min(left.delta, view.remaining.delta))
    room = room_of([study.budgets_of(each) for each in study.accounts])
    return view.model_copy(
        update={
            "remaining": remaining,
            "room": Amount(epsilon=room.epsilon, delta=room.delta),
            "limited_by": name,
            "exhausted": view.exhausted or exhausted,
            "sentence": sentence,
        }
    )


def budget_view(budget: Budget, whole: Budget | None = None) -> BudgetView:
    """The view of a budget; `whole` is the dataset's own where it is a grant, which a charge must fit as well."""
    left, exhausted = left_of(budget, whole)
    spent, room = budget.spent_upper, room_of([(budget, whole)])
    return BudgetView(
        dataset=budget.dataset,
        analyst=budget.analyst or None,
        total=Amount(epsilon=budget.total.epsilon, delta=budget.total.delta),
        spent=Spent(epsilon=spent if math.isfinite(spent) else None),
        waiting=budget.reserved,
        withheld={name: Amount(epsilon=amount.epsilon, delta=amount.delta) for name, amount in budget.withheld.items()},
        remaining=Amount(epsilon=left.epsilon, delta=left.delta),
        room=Amount(epsilon=room.epsilon, delta=room.delta),
        charges=budget.count,
        exhausted=exhausted,
        sentence=_budget_sentence(budget, left.epsilon, room.epsilon, exhausted),
        lifetime=lifetime_words((whole or budget).protects, (whole or budget).total),
    )


def budget_details(budget: Budget, whole: Budget | None = None, *, odometer: bool = False) -> BudgetDetails:
    """The same with what would fit and, if it is asked for, the odometer: all charges are read again for that."""
    view = budget_view(budget, whole)
    counts = budget.would_fit
    if whole is not None:
        counts = {size: min(count, whole.fitting(size)) for size, count in counts.items()}
    left = ApproxDP(view.remaining.epsilon, view.remaining.delta)
    limited = replace(budget, remaining=left, _clock_room=lambda: view.room.epsilon)
    words = limited.would_fit_words(counts)
    meter, sentence = _odometer(budget) if odometer else (None, "")
    return BudgetDetails(
        **view.model_dump(),
        would_fit=[Fitting(epsilon=size, count=count) for size, count in counts.items()],
        would_fit_sentence=f"What would still fit, each decided after the last answer: {words}." if words else "",
        odometer=meter,
        odometer_sentence=sentence,
    )


def _odometer(budget: Budget) -> tuple[float | None, str]:
    """The odometer, None where it has no finite reading, and in words."""
    epsilon, delta = budget.odometer, number_text(budget.total.delta)
    if not budget.count:
        return epsilon, "Nothing was answered yet."
    if not math.isfinite(epsilon):
        return None, f"No epsilon holds at delta {delta} for those who stop now because of what was answered."
    claim = f"epsilon {rounded_up_text(epsilon, 3)} at delta {delta}"
    return epsilon, f"Whoever stops now, for whatever reason, may claim {claim} for all that was answered."


def _shared_note(budget: Budget, left: float) -> str:
    """Why less is left than the grant alone would give; nothing where that is not so."""
    if not left < budget.remaining.epsilon * (1 - _HARDLY):
        return ""
    return f" The budget of {budget.dataset}, which is shared, has no more left."


def _budget_sentence(budget: Budget, left: float, room: float, exhausted: bool) -> str:
    total = f"epsilon {number_text(budget.total.epsilon)}"
    what = "grant" if budget.analyst else "budget"
    if budget.analyst:
        total = f"the grant of {total}"
    if not budget.total.epsilon > 0:
        return (
            "There is no grant: a curator approves what you ask for."
            if budget.analyst
            else "There is no budget yet; ask a curator for one."
        )
    shared = _shared_note(budget, left)
    if exhausted and budget.spent_upper > budget.total.epsilon * (1 + _HARDLY):
        return (
            f"Epsilon {number_text(budget.spent_upper)} is spent, more than the {number_text(budget.total.epsilon)} "
            "that the "
            f"{what} was lowered to; nothing more can be released unless a curator grants more."
        )
    if exhausted and shared:
        return f"Nothing of {total} can be spent any more, unless a curator grants more.{shared}"
    if exhausted:
        return f"All of {total} is used up or set aside; nothing more can be released unless a curator grants more."
    if not budget.count:
        return (
            f"Nothing of {total} is spent yet."
            if left >= budget.total.epsilon
            else f"Nothing of {total} is spent yet, and {number_text(left)} is free.{shared}"
        )
    charges = "1 charge" if budget.count == 1 else f"{budget.count:,} charges"
    more = ""
    if room > left * (1 + _HARDLY):
        more = f" for one charge, and a plan with Gaussian noise may cost up to {rounded_down_text(room, 3)}"
    return f"{charges} so far; about {number_text(left)} of {total} is left{more}.{shared}"

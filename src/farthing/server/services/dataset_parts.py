"""Disjoint parts of a table: what dividing it costs, and the datasets that its parts become. No answer is computed."""

from __future__ import annotations

import re
from typing import Any

from farthing.errors import InvalidValue, RequestRefused
from farthing.server.auth.permissions import Caller
from farthing.server.schemas.budget_schema import Amount
from farthing.server.schemas.dataset_schema import Division, DivisionView, DivisionWords, PartLine, PartView
from farthing.server.services.app_state import State
from farthing.server.services.dataset_service import (
    StoredDeclaration,
    all_declarations,
    canonical,
    declaration_of,
    declare,
    not_there,
    study_of,
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}")  # of a dataset
_MOST_PARTS = 200


def priced(state: State, who: Caller, name: str, body: DivisionWords) -> DivisionView:
    """What it costs to divide a table; nothing is charged, and nothing declared."""
    whole = _whole(state, name)
    study = study_of(state, who, name)
    return _view(state, whole, study.split_plan(body.by, body.epsilon, body.delta))


def divided(state: State, who: Caller, name: str, body: Division) -> DivisionView:
    """Divide a table, once, and declare every part as a dataset; the same again finishes what was begun."""
    whole = _whole(state, name)
    study = study_of(state, who, name)
    division = study.split_plan(body.by, body.epsilon, body.delta)
    view = _view(state, whole, division)
    if view.changed and not body.fresh:
        raise RequestRefused(
            "conflict",
            f"the table of {name!r} has changed since it was divided by {body.by}; fresh=true divides it as it is now, "
            f"which is charged again: epsilon {division.cost.epsilon:g}.",
            {"name": "fresh", "requested": division.cost.epsilon, "way_out": "send fresh=true"},
        )
    if len(view.parts) > _MOST_PARTS:
        rule = f"has {len(view.parts):,} values, and a table is divided into at most {_MOST_PARTS} parts"
        raise InvalidValue("by", body.by, rule, "ask for statistics by the column in one plan")
    study.split(body.by, body.epsilon, body.delta)
    for part in view.parts:
        if declaration_of(state.store, part.dataset) is None:  # else it is this part, perhaps corrected since
            declare(state.store, part.dataset, _facts(whole, division, part), who.name)
    return view


def part_view(state: State, declaration: StoredDeclaration) -> PartView | None:
    """Which part of a divided table a dataset is; None for a whole one."""
    part = declaration.facts.get("part")
    if part is None:
        return None
    siblings = _by_charge(state, part["of"]).get(part["request_id"], [])
    return PartView(of=part["of"], by=part["by"], value=part["value"], parts=siblings)


def part_text(declaration: StoredDeclaration) -> str | None:
    """The same in words: sex = F of visits."""
    part = declaration.facts.get("part")
    return None if part is None else f"{part['by']} = {part['value']} of {part['of']}"


def divisions(state: State, name: str) -> list[list[PartLine]]:
    """The parts of every division of a dataset, in the order in which they were made."""
    return list(_by_charge(state, name).values())


def _by_charge(state: State, name: str) -> dict[str, list[PartLine]]:
    placed: dict[str, list[tuple[int, PartLine]]] = {}
    for each in sorted(all_declarations(state.store), key=lambda each: each.created):
        part = each.facts.get("part")
        if part is not None and part["of"] == name:
            line = PartLine(value=part["value"], dataset=each.name, account=each.account)
            placed.setdefault(part["request_id"], []).append((part["place"], line))
    return {charge: [line for _, line in sorted(lines, key=lambda one: one[0])] for charge, lines in placed.items()}


def _whole(state: State, name: str) -> StoredDeclaration:
    declaration = declaration_of(state.store, name)
    if declaration is None:
        raise not_there(name)
    if declaration.facts.get("part") is not None:
        whole = declaration.facts["part"]["of"]
        raise InvalidValue("name", name, "is a part of a table already", f"divide {whole!r}, by another column")
    return declaration


def _view(state: State, whole: StoredDeclaration, division: Any) -> DivisionView:
    cost = Amount(epsilon=0.0, delta=0.0) if division.is_paid else _amount(division.cost)
    parts = [PartLine(value=_plain(value), dataset="", account=part.name) for value, part in division.parts.items()]
    for place, line in enumerate(parts, 1):
        line.dataset = _free_name(state, whole, division, line, place)
    words = str(division)
    return DivisionView(
        dataset=whole.name,
        by=division.by,
        budget=_amount(division.budget),
        cost=cost,
        paid=division.is_paid,
        changed=division.before is not None,
        request_id=division.request_id,
        parts=parts,
        sentence=f"{words[0].upper()}{words[1:]}.",
    )


def _plain(value: Any) -> bool | int | str:
    return value if isinstance(value, bool | int | str) else str(value)


def _amount(amount: Any) -> Amount:
    return Amount(epsilon=amount.epsilon, delta=amount.delta)


def _facts(whole: StoredDeclaration, division: Any, line: PartLine) -> dict[str, Any]:
    """The declaration of a part: that of the whole table, and which of its rows it is."""
    place = [part.name for part in division.parts.values()].index(line.account) + 1
    about = {"of": whole.name, "by": division.by, "value": line.value, "place": place}
    budget = {"epsilon": division.budget.epsilon, "delta": division.budget.delta}
    part = {**about, "request_id": division.request_id}
    return {**whole.facts, **budget, "name": line.dataset, "account": line.account, "part": part}


def _free_name(state: State, whole: StoredDeclaration, division: Any, line: PartLine, place: int) -> str:
    """What a part is called: by its value where such a name can be had, else by its place."""
    again = f" {division.number}" if division.number > 1 else ""
    plain = f"{whole.name} {division.by} {line.value}{again}"
    mark = division.digest.rpartition(":")[2][:8]
    for name in (plain, f"{whole.name[:30].rstrip()} part {place} {division.number} {mark}"):
        stands = declaration_of(state.store, name) if _NAME.fullmatch(name) else None
        named = PartLine(value=line.value, dataset=name, account=line.account)
        if _NAME.fullmatch(name) and (stands is None or _is_same(stands, _facts(whole, division, named))):
            return name
    raise RequestRefused("conflict", f"there is a dataset {name!r} already; rename it first.", {"name": name})


def _is_same(stands: StoredDeclaration, facts: dict[str, Any]) -> bool:
    return stands.facts.get("part") == facts["part"] or canonical(stands.facts) == canonical(facts)

"""Correcting a declaration that was wrong: what would change, and the entry that says so. No row is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from farthing.errors import InvalidValue, RequestRefused
from farthing.server.auth.permissions import Caller
from farthing.server.schemas.dataset_schema import ChangeView, CheckedCorrection, Correction, CorrectionView
from farthing.server.services.app_state import State
from farthing.server.services.dataset_service import (
    StoredDeclaration,
    canonical,
    dataset_of,
    declaration_of,
    not_there,
)
from farthing.server.store.store_tables import declarations
from farthing.study.documents.dataset_declaration import (
    declaration_changes,
    declared_dataset,
    opened_sources,
)

_READ = ("trim", "lower", "decimal", "real")  # how the cells of a column are read, which stays unless it is said


def checked(state: State, who: Caller, name: str, body: CheckedCorrection) -> CorrectionView:
    """What a correction would change; nothing is written."""
    before = _declared(state, who, name)
    return _view(state, who, before, _corrected(state, before, body))


def correct(state: State, who: Caller, name: str, body: Correction) -> CorrectionView:
    """Write the entry, and the declaration with it: both or, if the ledger refuses, neither."""
    before = _declared(state, who, name)
    after = _corrected(state, before, body)
    view = _view(state, who, before, after)
    with _replaced(state, before, canonical(after.facts)):
        entry = state.ledger(who).correct(before.account, after.changes, body.reason, name)
    return view.model_copy(update={"entry": entry.sequence})


@contextmanager
def _replaced(state: State, before: StoredDeclaration, text: str) -> Iterator[None]:
    """Put another declaration in the place of one that is still as it was looked at, unless the block raises.

    The entry is durable before the declaration is: what stops in between leaves an entry without effect, and the same
    correction can be made again.
    """
    here = (declarations.c.name == before.name) & (declarations.c.body == before.text)
    with state.store.begin() as connection:
        if connection.execute(declarations.update().where(here).values(body=text)).rowcount != 1:
            raise RequestRefused(
                "conflict",
                f"the declaration of {before.name!r} was changed in the meantime; look at it again.",
                {"name": before.name},
            )
        yield


def _declared(state: State, who: Caller, name: str) -> StoredDeclaration:
    declaration = declaration_of(state.store, name)
    if declaration is None or declaration.account not in state.ledger(who).datasets():
        raise not_there(name)
    return declaration


class _Corrected(NamedTuple):
    """A declaration as it would be, what that changes, and how many rows of one unit count before and after."""

    facts: dict[str, Any]
    changes: dict[str, tuple[str, str]]
    reach: tuple[int, int]


def _corrected(state: State, before: StoredDeclaration, body: CheckedCorrection) -> _Corrected:
    old = dataset_of(state, before)
    changed = _changed(old, before.facts, body)
    new = declared_dataset(before.name, changed, opened_sources(changed, state.plans.folder.opened))
    changes = declaration_changes(old, new)
    if not changes:
        raise InvalidValue("columns", sorted(body.columns), "must change something", "it is declared like this already")
    return _Corrected(changed, changes, (old.reach, new.reach))


def _changed(old: Any, facts: dict[str, Any], body: CheckedCorrection) -> dict[str, Any]:
    """The facts with what is corrected; of linked tables, each column where it stands."""
    given, tables = body.model_fields_set, facts.get("tables")
    if tables is not None and "rows" in given:
        raise InvalidValue("rows", body.rows, "must be left out: nothing is declared about it in linked tables")
    places = {"": facts} if tables is None else {name: dict(each) for name, each in tables.items()}
    for called, words in body.columns.items():
        table, column = _place(old, called)
        columns = places[table].get("columns") or {}
        merged = _merged(columns.get(column, {}), words.model_dump(exclude_none=True))
        places[table] = {**places[table], "columns": {**columns, column: merged}}
    numbers: dict[str, Any] = {fact: getattr(body, fact) for fact in ("max_rows", "rows") if fact in given}
    own = "" if tables is None else facts["table"]
    places[own] = {**places[own], **numbers}
    return places[""] if tables is None else {**facts, "tables": places}


def _place(old: Any, called: str) -> tuple[str, str]:
    """The table of a column and its name there: as the dataset has it, or that of a linked table which is not joined.

    "drugs.dose" says which table; "dose" is enough if no other table has such a column.
    """
    own = {name for name, _ in old.definition[5]}
    named = [
        (beside, name)
        for beside, schema in old.schemas_beside.items()
        for name in (*schema.columns, *schema.unknown)
        if called == f"{beside}.{name}" or (called == name and called not in own)
    ]
    if len(named) > 1:
        both = " or ".join(f"{beside}.{name}" for beside, name in named)
        raise InvalidValue("columns", called, "must be the column of one table", f"write {both}")
    return named[0] if named else old.origin(called)


def _merged(before: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """A column with another range or other categories; how its cells are read stays as it was."""
    kind = next((kind for kind in ("range", "categories", "flags", "unknown") if kind in given), None)
    if kind is None:
        return {**before, **given}
    kept = {fact: before[fact] for fact in _READ if kind in before and fact in before}
    return {**kept, **given}


def _view(state: State, who: Caller, before: StoredDeclaration, after: _Corrected) -> CorrectionView:
    return CorrectionView(
        dataset=before.name,
        account=before.account,
        changes=[ChangeView(what=what, before=was, after=will) for what, (was, will) in after.changes.items()],
        later=_consequences(state, who, before, after.reach),
        entry=None,
    )


def _consequences(state: State, who: Caller, before: StoredDeclaration, reach: tuple[int, int]) -> list[str]:
    """What later releases notice of it, in sentences."""
    later = [
        f"The account {before.account} keeps its budget: what is spent stays spent, and nothing is charged for this.",
        "Releases that were made keep their answers. The same plan is a new release from now on, and is charged.",
        "Query sessions that are open keep the answers they gave; for new questions open another.",
    ]
    was, will = reach
    if was != will:
        noise = "more" if will > was else "less"
        later.append(f"One unit can change a count by {will:,} instead of {was:,}: later releases have {noise} noise.")
    requests = state.ledger(who).requests.all(before.account)
    waiting = [each for each in requests if each.state in ("open", "approved")]
    if waiting:
        numbers = ", ".join(str(each.id) for each in waiting[:20])
        later.append(
            f"Requests that wait or were approved no longer fit where they read {before.name}: {numbers}. They must be "
            "asked again."
        )
    return later

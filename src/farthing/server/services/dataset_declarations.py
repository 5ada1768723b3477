"""Datasets as they were declared: whose they are, what columns hold, and which table they come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from farthing.errors import EngineError, FarthingError, InvalidValue, RequestRefused
from farthing.server.store.store_engine import Store, now
from farthing.server.store.store_tables import declarations

if TYPE_CHECKING:
    from farthing.server.app_state import State
    from farthing.server.auth.permissions import Caller
    from farthing.study import Study


@dataclass(frozen=True)
class Declaration:
    """One dataset: its name, what was said about it (`text` as it is kept), by whom and when."""

    name: str
    text: str
    created_by: str
    created: int

    @property
    def words(self) -> dict[str, Any]:
        """What was said."""
        found: dict[str, Any] = json.loads(self.text)
        return found


def canonical(words: Mapping[str, Any]) -> str:
    """One spelling, so that the same declaration is the same text."""
    return json.dumps(words, sort_keys=True, ensure_ascii=False, allow_nan=False)


def declaration_of(store: Store, name: str) -> Declaration | None:
    """The declaration of that name."""
    with store.reading() as connection:
        row = connection.execute(sa.select(declarations).where(declarations.c.name == name)).one_or_none()
    return None if row is None else Declaration(row.name, row.body, row.created_by, row.created)


def all_declarations(store: Store) -> list[Declaration]:
    """Every dataset, by name."""
    with store.reading() as connection:
        rows = connection.execute(sa.select(declarations).order_by(declarations.c.name)).all()
    return [Declaration(row.name, row.body, row.created_by, row.created) for row in rows]


def declare(store: Store, name: str, words: Mapping[str, Any], by: str) -> Declaration:
    """Write a declaration down; the same one again finds the one that stands, another one is refused."""
    text = canonical(words)
    values = {"name": name, "body": text, "created_by": by, "created": now()}
    try:
        with store.begin() as connection:
            connection.execute(declarations.insert().values(values))
    except sa.exc.IntegrityError:
        pass
    stands = declaration_of(store, name)
    assert stands is not None
    if canonical(stands.words) != text:
        raise RequestRefused(
            "conflict",
            f"there is a dataset {name!r} already, declared otherwise; give this one another name.",
            {"name": name},
        )
    return stands


def not_there(name: str) -> RequestRefused:
    """Said of a dataset that is not there, or not for whoever asks."""
    return RequestRefused(
        "not_found", f"there is no dataset {name!r} for you; look at the list of datasets.", {"name": name}
    )


def dataset_of(state: State, declaration: Declaration) -> Any:
    """The dataset that was declared, opened; the same as long as its table and its words are."""
    from farthing.server.services.plan_cache import planning_of
    from farthing.study.documents.dataset_declaration import declared_dataset

    planning = planning_of(state)
    try:
        source = planning.folder.opened(declaration.words["source"])
        key = (declaration.name, declaration.text)
        kept = planning.datasets.known(key)
        if kept is not None and kept[0] is source:
            return kept[1]
        made = declared_dataset(declaration.name, declaration.words, source)
        return planning.datasets.keep(key, (source, made))[1]
    except FarthingError:
        pass
    # Said again in other words: those of the refusal may name the file or the server.
    raise _cannot_be_opened(declaration)


def study_of(state: State, who: Caller, name: str) -> Study:
    """The study of a registered dataset, as this caller may use it."""
    from farthing.study import Study

    declaration = declaration_of(state.store, name)
    if declaration is None:
        raise not_there(name)
    ledger = state.ledger(who)
    analyst = who.name if who.role == "analyst" else None
    try:  # before the table is opened: that it is broken, or slow to open, would tell that it is there
        ledger.budget(name, analyst)
    except InvalidValue:
        raise not_there(name) from None
    # Twice: the budget may be set anew between reading it and opening the study, or a connection may have been lost.
    for last in (False, True):
        dataset = dataset_of(state, declaration)
        try:
            total = ledger.budget(name).total
            study = Study(dataset, total.epsilon, total.delta, ledger=ledger, name=name, analyst=analyst)
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


def _reconnect(state: State, declaration: Declaration) -> None:
    """Open a table of a database again whose connection was lost; whether it can be is said by whoever reads it."""
    from farthing.server.services.plan_cache import planning_of

    with suppress(FarthingError):  # whose words may name the server
        planning_of(state).folder.answering(declaration.words["source"])


def _cannot_be_opened(declaration: Declaration) -> EngineError:
    return EngineError(
        "data folder",
        f"the table of {declaration.name!r} cannot be opened as it was declared",
        "its curator should look whether it is still there and has the same columns",
    )

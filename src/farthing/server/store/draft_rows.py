"""Drafts of plans, and the studies that are folders of them; each belongs to the person who made it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from farthing.errors import RequestRefused
from farthing.server.store.store_engine import Store, now
from farthing.server.store.store_tables import drafts, studies

MOST_DRAFTS = 500  # of one person
MOST_STUDIES = 200


@dataclass(frozen=True)
class Saved:
    """A draft as it is kept; `version` rises with every change."""

    id: str
    owner: str
    dataset: str
    study: str | None
    body: Mapping[str, Any]
    version: int
    created: int
    changed: int


@dataclass(frozen=True)
class Folder:
    """A study: a named folder of drafts about one dataset."""

    id: str
    owner: str
    dataset: str
    title: str
    created: int


def no_plan(id: str) -> RequestRefused:
    """The refusal of a draft that does not exist, or that the caller may not see."""
    return RequestRefused("not_found", "there is no such plan that you may see; see the list of plans.", {"id": id})


def no_study(id: str) -> RequestRefused:
    """The refusal of a study that does not exist, or that the caller may not see."""
    return RequestRefused("not_found", "there is no such study that you may see; see the list of studies.", {"id": id})


def make_draft(store: Store, owner: str, dataset: str, study: str | None, body: Mapping[str, Any]) -> Saved:
    """Save a new draft and return its row."""
    saved = Saved(secrets.token_hex(8), owner, dataset, study, body, 1, now(), now())
    with store.begin() as connection:
        _refuse_many(connection, drafts, owner, MOST_DRAFTS, "drafts")
        connection.execute(drafts.insert().values(**{**vars(saved), "body": _text(body)}))
    return saved


def draft(store: Store, id: str, owner: str | None) -> Saved:
    """The draft of that id; of one owner, or of anybody where that is None."""
    with store.reading() as connection:
        row = connection.execute(sa.select(drafts).where(drafts.c.id == id)).one_or_none()
    if row is None or owner not in (None, row.owner):
        raise no_plan(id)
    return _saved(row)


def all_drafts(store: Store, owner: str | None, dataset: str | None = None, study: str | None = None) -> list[Saved]:
    """Drafts, the ones changed last first."""
    query = sa.select(drafts).order_by(drafts.c.changed.desc()).limit(MOST_DRAFTS)
    for column, value in ((drafts.c.owner, owner), (drafts.c.dataset, dataset), (drafts.c.study, study)):
        if value is not None:
            query = query.where(column == value)
    with store.reading() as connection:
        return [_saved(row) for row in connection.execute(query).all()]


def change_draft(
    store: Store, id: str, owner: str, version: int, dataset: str, study: str | None, body: Mapping[str, Any]
) -> Saved:
    """Put another draft in the place of the one of this version; refused if somebody changed it since."""
    mine = sa.and_(drafts.c.id == id, drafts.c.owner == owner)
    with store.begin() as connection:
        done = connection.execute(
            drafts.update()
            .where(mine, drafts.c.version == version)
            .values(dataset=dataset, study=study, body=_text(body), version=version + 1, changed=now())
        )
        row = connection.execute(sa.select(drafts).where(mine)).one_or_none()
    if row is None:
        raise no_plan(id)
    if not done.rowcount:
        raise RequestRefused(
            "conflict",
            f"the plan was changed since version {version} was read; it is at version {row.version}: read it again.",
            {"id": id, "version": row.version},
        )
    return _saved(row)


def remove_draft(store: Store, id: str, owner: str) -> None:
    """Delete a draft; what was released from it stays released."""
    with store.begin() as connection:
        done = connection.execute(drafts.delete().where(drafts.c.id == id, drafts.c.owner == owner))
    if not done.rowcount:
        raise no_plan(id)


def make_study(store: Store, owner: str, dataset: str, title: str) -> Folder:
    """Save a new, empty study and return its row."""
    folder = Folder(secrets.token_hex(8), owner, dataset, title, now())
    with store.begin() as connection:
        _refuse_many(connection, studies, owner, MOST_STUDIES, "studies")
        connection.execute(studies.insert().values(**vars(folder)))
    return folder


def study(store: Store, id: str, owner: str | None) -> Folder:
    """The study of that id; of one owner, or of anybody where that is None."""
    with store.reading() as connection:
        row = connection.execute(sa.select(studies).where(studies.c.id == id)).one_or_none()
    if row is None or owner not in (None, row.owner):
        raise no_study(id)
    return Folder(*row)


def all_studies(store: Store, owner: str | None) -> list[Folder]:
    """The rows of all studies, the newest first."""
    query = sa.select(studies).order_by(studies.c.created.desc()).limit(MOST_STUDIES)
    if owner is not None:
        query = query.where(studies.c.owner == owner)
    with store.reading() as connection:
        return [Folder(*row) for row in connection.execute(query).all()]


def remove_study(store: Store, id: str, owner: str) -> None:
    """Delete a study; its drafts stay, in no study."""
    with store.begin() as connection:
        done = connection.execute(studies.delete().where(studies.c.id == id, studies.c.owner == owner))
        if done.rowcount:
            connection.execute(drafts.update().where(drafts.c.study == id).values(study=None))
    if not done.rowcount:
        raise no_study(id)


def _refuse_many(connection: sa.Connection, table: sa.Table, owner: str, most: int, what: str) -> None:
    count = connection.scalar(sa.select(sa.func.count()).select_from(table).where(table.c.owner == owner))
    if (count or 0) >= most:
        raise RequestRefused("conflict", f"there are {most} {what} of yours already; remove one first.")


def _text(body: Mapping[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False, allow_nan=False)


def _saved(row: Any) -> Saved:
    return Saved(row.id, row.owner, row.dataset, row.study, json.loads(row.body), row.version, row.created, row.changed)

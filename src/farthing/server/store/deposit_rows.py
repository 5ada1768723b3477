"""Rows about deposits: for each release and Dataverse what was asked and how far it is. No row has a token."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from farthing.server.store.store_engine import Store, now
from farthing.server.store.store_tables import deposits

RUNNING, DONE, PUBLISHED, FAILED, INTERRUPTED = "running", "done", "published", "failed", "interrupted"
PATIENCE = 30 * 10**9  # nanoseconds without a sign of life until a deposit counts as interrupted
MOST_STEPS = 1_000


@dataclass(frozen=True)
class DepositRow:
    """One deposit as the store has it.

    Args:
        release: The request id of the release.
        dataverse: The address of the server.
        owner: Who asked for it last.
        asked: The details of the publication and where it goes.
        persistent_id: The dataset, once there is one.
        digest: The digest of the manifest that was deposited last.
        noted: How far the deposit itself says that it is.
        state: "running", "done", "published", "failed", or "interrupted": nobody runs it any more.
        steps: What was done, in words.
        error: Why it failed.
        created: When it was begun first, in nanoseconds.
    """

    release: str
    dataverse: str
    owner: str
    asked: Mapping[str, Any]
    persistent_id: str
    digest: str
    noted: str
    state: str
    steps: tuple[str, ...]
    error: Mapping[str, Any] | None
    created: int


def deposit_of(store: Store, release: str, dataverse: str) -> DepositRow | None:
    """The deposit of a release in a Dataverse, if one was begun."""
    with store.reading() as connection:
        row = connection.execute(sa.select(deposits).where(_of(release, dataverse))).first()
    return None if row is None else _row(row)


def deposits_of(store: Store, release: str) -> list[DepositRow]:
    """The deposits of a release, the first one first."""
    query = sa.select(deposits).where(deposits.c.release == release).order_by(deposits.c.created)
    with store.reading() as connection:
        return [_row(row) for row in connection.execute(query)]


def begin(store: Store, release: str, dataverse: str, owner: str, asked: Mapping[str, Any], runner: str) -> bool:
    """Let `runner` begin or continue a deposit; False while another one runs it. The notes of earlier attempts stay."""
    at = now()
    fresh = {"owner": owner, "asked": json.dumps(asked), "state": RUNNING, "steps": "[]", "error": None}
    running = {**fresh, "runner": runner, "heartbeat": at}
    with store.begin() as connection:
        row = connection.execute(sa.select(deposits).where(_of(release, dataverse)).with_for_update()).first()
        if row is None:
            made = {"release": release, "dataverse": dataverse, "created": at, **running}
            try:
                with connection.begin_nested():
                    connection.execute(deposits.insert().values(persistent_id="", digest="", noted="", **made))
            except sa.exc.IntegrityError:  # somebody else began it at the same moment
                return False
            return True
        if row.state == RUNNING and row.heartbeat > at - PATIENCE:
            return False
        connection.execute(deposits.update().where(_of(release, dataverse)).values(**running))
        return True


def change(store: Store, release: str, dataverse: str, runner: str, **facts: Any) -> bool:
    """Write down what is new, which is a sign of life too; False where another runner has taken over."""
    changed = deposits.update().where(_of(release, dataverse), deposits.c.runner == runner, deposits.c.state == RUNNING)
    with store.begin() as connection:
        return connection.execute(changed.values(heartbeat=now(), **facts)).rowcount == 1


def _of(release: str, dataverse: str) -> sa.ColumnElement[bool]:
    return (deposits.c.release == release) & (deposits.c.dataverse == dataverse)


def _row(row: Any) -> DepositRow:
    silent = row.state == RUNNING and row.heartbeat <= now() - PATIENCE
    return DepositRow(
        row.release,
        row.dataverse,
        row.owner,
        json.loads(row.asked),
        row.persistent_id,
        row.digest,
        row.noted,
        INTERRUPTED if silent else row.state,
        tuple(json.loads(row.steps)),
        None if row.error is None else json.loads(row.error),
        row.created,
    )

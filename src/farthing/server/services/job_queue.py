"""Asking for work, and waiting for it by watching its row: any server may be asked, any worker may do it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from starlette.concurrency import run_in_threadpool

from farthing.errors import RequestRefused
from farthing.ledger import Stored
from farthing.server.auth.permissions import Caller
from farthing.server.services.app_state import State
from farthing.server.services.dataset_service import account_of
from farthing.server.store import Store, job_rows
from farthing.server.store.job_rows import (
    RELEASED,
    RUNNING,
    UNPAID,
    add,
    ask_again,
    body_text,
    job_of,
    waiting_of,
)
from farthing.server.store.job_rows import Job as Job

STILL_HERE = 10.0  # seconds of silence until a comment is sent: proxies close streams that say nothing
LONGEST_STREAM = 600.0  # seconds; a browser that still wants to know connects again by itself
MOST_WAITING = 100  # jobs of one person that wait or run at a time
_ASK_LEDGER = 1.0  # seconds between two looks into the ledger, where the row says that it runs
_FIRST_LOOK, _LONGEST_LOOK = 0.02, 0.4  # seconds between two looks at a row


def full_id(who: Caller, request_id: str) -> str:
    """The request id as the ledger has it: a short one is the caller's own.

    >>> from farthing.server.auth.permissions import Caller
    >>> bob = Caller("bob", "analyst", frozenset(), "token")
    >>> full_id(bob, "r-1"), full_id(bob, "ada:r-1")
    ('bob:r-1', 'ada:r-1')
    """
    return request_id if ":" in request_id else f"{who.name}:{request_id}"


def visible_job(state: State, who: Caller, kind: str, request_id: str) -> Job:
    """The job of this kind, if the caller may see it; to everybody else it is not there."""
    job = job_of(state.store, full_id(who, request_id))
    seen = job is not None and job.kind == kind and (who.role != "analyst" or job.owner == who.name)
    if job is None or not seen:
        raise RequestRefused("not_found", f"there is no {kind} with this id; check it, or list yours.")
    return job


def submitted(
    state: State,
    who: Caller,
    *,
    kind: str,
    request_id: str,
    dataset: str,
    asked: Mapping[str, Any],
    limits: Mapping[str, Any] | None = None,
    is_answer_to: Callable[[Stored], bool] = lambda stored: True,
) -> Job:
    """The job of this request: a new one, or the one that it has.

    The same id with another request is refused. `limits` are no part of the request: what was refused because it would
    have cost more than was confirmed can be confirmed again. What ended without a charge is tried again.

    A store that was lost, or restored, has forgotten the job, and the ledger has not: then `is_answer_to` says whether
    the answer that is there is one to this request.
    """
    digest = digest_of(kind, dataset, asked)
    body = body_text(dataset, digest, asked, limits or {})
    name = full_id(who, request_id)
    job = job_of(state.store, name)
    if job is None:
        _refuse_crowd(state.store, who)
        stored = state.root.stored(name)
        if stored is not None and not (_is_of(stored, who, account_of(state.store, dataset)) and is_answer_to(stored)):
            raise _other_words(request_id)
        job = add(state.store, name, who.name, who.role, kind, body)
    if (job.kind, job.body["digest"]) != (kind, digest):
        raise _other_words(request_id)
    if job.state in UNPAID and ask_again(state.store, job, body, who.role):
        job = job_of(state.store, name) or job
    state.workers.wake()
    return job


def digest_of(kind: str, dataset: str, asked: Mapping[str, Any]) -> str:
    """The fingerprint of a request: the same for the same entries in any order.

    >>> digest_of("release", "people", {"a": 1, "b": 2}) == digest_of("release", "people", {"b": 2, "a": 1})
    True
    """
    text = json.dumps([kind, dataset, asked], sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


async def awaited(state: State, job: Job, seconds: float) -> Job:
    """The job when it has ended, or as it stands after so many seconds."""
    async for latest in changes(state, job, time.monotonic() + seconds):
        job = latest
    return job


async def changes(state: State, job: Job, until: float) -> AsyncIterator[Job]:
    """The job now and whenever it has changed, until it has ended, the server stops, or the clock shows `until`.

    The row is watched, not a worker: which server was asked does not matter.
    """
    yield job
    pause, ledger_at = _FIRST_LOOK, 0.0
    while not (job.is_ended or state.stopping.is_set()) and time.monotonic() < until:
        await asyncio.sleep(min(pause, max(0.0, until - time.monotonic())))
        by_ledger = time.monotonic() >= ledger_at
        if by_ledger:
            ledger_at = time.monotonic() + _ASK_LEDGER
        latest = await run_in_threadpool(_latest, state, job.id, by_ledger)
        if latest is not None and latest != job:
            moved = (latest.state, latest.progress) != (job.state, job.progress)
            job = latest
            if moved:
                yield job
                pause = _FIRST_LOOK
        pause = min(_LONGEST_LOOK, 1.5 * pause)


async def event_texts(state: State, job: Job, allowed: Callable[[], bool]) -> AsyncIterator[str]:
    """The changes of a job as server-sent events, with a sign of life in between, while they are `allowed`."""
    until = time.monotonic() + LONGEST_STREAM
    news: asyncio.Queue[Job | None] = asyncio.Queue()

    async def watch() -> None:
        try:
            async for changed in changes(state, job, until):
                news.put_nowait(changed)
        finally:
            news.put_nowait(None)

    watching = asyncio.create_task(watch())
    try:
        yield "retry: 1000\n\n"
        last = job
        while True:
            silent = False
            try:
                latest = await asyncio.wait_for(news.get(), STILL_HERE)
            except TimeoutError:
                silent = True
            if not await run_in_threadpool(allowed):
                return
            if silent:
                yield ": still here\n\n"
                continue
            if latest is None:
                break
            last = latest
            if not latest.is_ended:
                yield _event("progress", latest)
        if last.is_ended:
            yield _event("done", last)
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


def _event(name: str, job: Job) -> str:
    facts: dict[str, Any] = {"state": job.state, "progress": job.progress}
    return f"event: {name}\ndata: {json.dumps(facts)}\n\n"


def as_the_ledger_has_it(state: State, job: Job) -> Job:
    """The job, released if the ledger has its answer already: its worker may have died before it could say so."""
    if job.state != RUNNING:
        return job
    stored = state.root.stored(job.id)
    return job if stored is None or stored.state != "released" else replace(job, state=RELEASED, progress=1.0)


def _latest(state: State, job_id: str, by_ledger: bool) -> Job | None:
    job = job_of(state.store, job_id)
    return as_the_ledger_has_it(state, job) if job is not None and by_ledger else job


def _refuse_crowd(store: Store, who: Caller) -> None:
    if waiting_of(store, who.name) >= MOST_WAITING:
        raise RequestRefused(
            "rate_limited",
            f"{MOST_WAITING} of your requests wait or run already; ask again when some of them have ended.",
            {"retry_after": 5},
        )


def _is_of(stored: Stored, who: Caller, account: str) -> bool:
    """Whether the caller has paid for it, and from this account."""
    own = who.role != "analyst" or stored.charge.analyst == who.name
    return own and stored.charge.dataset == account


def _other_words(request_id: str) -> RequestRefused:
    return RequestRefused(
        "conflict",
        f"request_id={request_id!r}: was used before for something else; a new request takes a new id.",
        {"name": "request_id", "rule": "was used before for something else", "way_out": "use a new id"},
    )


def job_counts(state: State) -> dict[str, int]:
    """How many jobs there are in each state."""
    return job_rows.counted(state.store)

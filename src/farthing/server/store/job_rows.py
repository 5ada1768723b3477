"""Jobs as rows: what was asked, by whom, how far it is, and who works on it.

queued -> running -> released | forfeited | refused | failed. A row says how far a job came; whether anything was
charged is the ledger's word alone. A worker shows that it lives by moving `heartbeat`; 0 says that it is known to be
dead.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from farthing.server.store.store_engine import Store, now
from farthing.server.store.store_tables import jobs

RELEASE, SESSION, ROW_COUNT, SERIES, DISCOVERY = "release", "session", "rows", "series", "discovery"  # kinds of jobs
SYNTHESIS = "synthetic table"
QUEUED, RUNNING = "queued", "running"
RELEASED, FORFEITED, REFUSED, FAILED = "released", "forfeited", "refused", "failed"
ENDED = frozenset({RELEASED, FORFEITED, REFUSED, FAILED})
UNPAID = frozenset({REFUSED, FAILED})  # nothing was charged, so that asking again asks again
DEAD = 0  # the heartbeat of a worker that is known to be gone

MOST_LISTED = 500


@dataclass(frozen=True)
class Job:
    """One row; `charged` is the request id in the ledger, as a rule `id`."""

    id: str
    owner: str
    role: str
    kind: str
    body: Mapping[str, Any]
    state: str
    progress: float
    heartbeat: int | None
    worker: str | None
    error: Mapping[str, Any] | None
    created: int
    changed: int

    @property
    def dataset(self) -> str:
        """The name of the dataset that the job reads."""
        return str(self.body["dataset"])

    @property
    def asked(self) -> Mapping[str, Any]:
        """What is to be done."""
        asked: Mapping[str, Any] = self.body["asked"]
        return asked

    @property
    def limits(self) -> Mapping[str, Any]:
        """What a retry may say otherwise: how much was confirmed."""
        limits: Mapping[str, Any] = self.body["limits"]
        return limits

    @property
    def charged(self) -> str:
        """Its request id in the ledger: its own, but for values that are found under the name of their column."""
        return str(self.body.get("charged", self.id))

    @property
    def attempts(self) -> int:
        """How many workers have died over it before anything was charged."""
        return int(self.body["attempts"])

    @property
    def is_released(self) -> bool:
        """Whether it has its answer."""
        return self.state == RELEASED

    @property
    def is_ended(self) -> bool:
        """Whether it will not change any more, unless somebody asks again for what was not paid."""
        return self.state in ENDED


def body_text(dataset: str, digest: str, asked: Mapping[str, Any], limits: Mapping[str, Any], attempts: int = 0) -> str:
    """What a row keeps of a request; the dataset stands first, so that rows can be found by it."""
    body = {"dataset": dataset, "digest": digest, "attempts": attempts, "asked": asked, "limits": limits}
    return json.dumps(body, separators=(",", ":"), allow_nan=False)


def add(store: Store, job_id: str, owner: str, role: str, kind: str, body: str) -> Job:
    """The job of this id: a new one that waits, or the one that was there."""
    moment = now()
    row = {
        "id": job_id,
        "owner": owner,
        "role": role,
        "kind": kind,
        "body": body,
        "state": QUEUED,
        "progress": 0.0,
        "created": moment,
        "changed": moment,
    }
    try:
        with store.begin() as connection:
            connection.execute(sa.insert(jobs).values(row))
    except sa.exc.IntegrityError:
        pass  # another request, perhaps at another server, was quicker: its job is the job
    job = job_of(store, job_id)
    assert job is not None
    return job


def job_of(store: Store, job_id: str) -> Job | None:
    """The job of this id, if there is one."""
    with store.reading() as connection:
        row = connection.execute(sa.select(jobs).where(jobs.c.id == job_id)).first()
    return None if row is None else _job(row)


def listed(
    store: Store,
    kind: str,
    owner: str | None = None,
    dataset: str | None = None,
    *,
    limit: int = MOST_LISTED,
) -> list[Job]:
    """The newest jobs of a kind, of one person or of all, about one dataset or all of them."""
    query = sa.select(jobs).where(jobs.c.kind == kind)
    if owner is not None:
        query = query.where(jobs.c.owner == owner)
    if dataset is not None:
        beginning = '{"dataset":' + json.dumps(dataset) + ","
        query = query.where(jobs.c.body.startswith(beginning, autoescape=True))
    newest = query.order_by(jobs.c.created.desc(), jobs.c.id).limit(limit)
    with store.reading() as connection:
        return [_job(row) for row in connection.execute(newest)]


def last_fresh(store: Store, job_id: str) -> str | None:
    """The newest release that was drawn afresh for the same request: its id is that of the first and a suffix."""
    query = sa.select(jobs.c.id).where(jobs.c.id.startswith(f"{job_id}-", autoescape=True), jobs.c.state == RELEASED)
    with store.reading() as connection:
        newest = connection.scalar(query.order_by(jobs.c.created.desc()).limit(1))
    return None if newest is None else str(newest)


def waiting_of(store: Store, owner: str) -> int:
    """How many jobs of a person wait or run."""
    count = sa.select(sa.func.count()).where(jobs.c.owner == owner, jobs.c.state.in_((QUEUED, RUNNING)))
    with store.reading() as connection:
        return int(connection.scalar(count) or 0)


def ask_again(store: Store, job: Job, body: str, role: str) -> bool:
    """Let a job wait again that ended without a charge; False if somebody was quicker."""
    return _changed(
        store,
        sa.update(jobs)
        .where(jobs.c.id == job.id, jobs.c.state == job.state, jobs.c.changed == job.changed)
        .values(state=QUEUED, body=body, role=role, progress=0.0, error=None, worker=None, heartbeat=None),
    )


# What workers do


def take(store: Store, worker: str, kinds: Iterable[str]) -> Job | None:
    """The oldest job that waits, now this worker's; None if there is none."""
    waiting = (jobs.c.state == QUEUED, jobs.c.kind.in_(tuple(kinds)))
    with store.reading() as connection:  # most looks find nothing, and must not hold up writers
        if connection.execute(sa.select(jobs.c.id).where(*waiting).limit(1)).first() is None:
            return None
    oldest = (
        sa.select(jobs.c.id)
        .where(*waiting)
        .order_by(jobs.c.created, jobs.c.id)
        .limit(1)
        .with_for_update(skip_locked=True)  # on PostgreSQL; in a file only one writes at a time anyway
    )
    moment = now()
    mine = (
        sa.update(jobs)
        .where(jobs.c.id == oldest.scalar_subquery(), jobs.c.state == QUEUED)
        .values(state=RUNNING, worker=worker, heartbeat=moment, changed=moment, progress=0.0)
        .returning(*jobs.c)
    )
    with store.begin() as connection:
        row = connection.execute(mine).first()
    return None if row is None else _job(row)


def beat(store: Store, worker: str) -> None:
    """Show that a worker lives, on all jobs it runs."""
    with store.begin() as connection:
        connection.execute(
            sa.update(jobs).where(jobs.c.worker == worker, jobs.c.state == RUNNING).values(heartbeat=now())
        )


def holds(store: Store, job_id: str, worker: str) -> bool:
    """Whether a job is still this worker's to run."""
    job = job_of(store, job_id)
    return job is not None and (job.state, job.worker) == (RUNNING, worker)


def write_progress(store: Store, job_id: str, worker: str, progress: float) -> bool:
    """Write down how far a job is; False if it is not this worker's any more."""
    return _changed(store, _own(job_id, worker).values(progress=progress))


def end(store: Store, job_id: str, worker: str, state: str, error: Mapping[str, Any] | None = None) -> bool:
    """Write down what a job came to; False if it is not this worker's any more."""
    text = None if error is None else json.dumps(error, allow_nan=False)
    done = {"progress": 1.0} if state == RELEASED else {}
    return _changed(store, _own(job_id, worker).values(state=state, error=text, **done))


def put_back(store: Store, job: Job, worker: str) -> bool:
    """Put a job back whose worker died before anything was charged; it is counted."""
    body = json.dumps({**job.body, "attempts": job.attempts + 1}, separators=(",", ":"), allow_nan=False)
    values = {"state": QUEUED, "body": body, "worker": None, "heartbeat": None, "progress": 0.0}
    return _changed(store, _own(job.id, worker).values(**values))


def charge_as(store: Store, job: Job, request_id: str) -> bool:
    """Write down the request id under which a job is charged; False if it is not its worker's any more."""
    assert job.worker is not None
    body = json.dumps({**job.body, "charged": request_id}, separators=(",", ":"), allow_nan=False)
    return _changed(store, _own(job.id, job.worker).values(body=body))


def running(store: Store) -> list[Job]:
    """All jobs that a worker has taken and not ended."""
    with store.reading() as connection:
        return [_job(row) for row in connection.execute(sa.select(jobs).where(jobs.c.state == RUNNING))]


def declare_dead(store: Store, worker: str, job_id: str | None = None) -> None:
    """Say that a worker is gone, so that others take over what it had at once (or one job that it lets go of)."""
    theirs = sa.update(jobs).where(jobs.c.worker == worker, jobs.c.state == RUNNING)
    if job_id is not None:
        theirs = theirs.where(jobs.c.id == job_id)
    with store.begin() as connection:
        connection.execute(theirs.values(heartbeat=DEAD))


def take_over(store: Store, job: Job, worker: str) -> bool:
    """Become the worker of a job that was abandoned; False if it has moved since, or another was quicker."""
    with store.begin() as connection:
        result = connection.execute(
            sa.update(jobs)
            .where(
                jobs.c.id == job.id,
                jobs.c.state == RUNNING,
                jobs.c.worker == job.worker,
                jobs.c.heartbeat == job.heartbeat,
            )
            .values(worker=worker, heartbeat=now())
        )
        return bool(result.rowcount == 1)


def counted(store: Store) -> dict[str, int]:
    """How many jobs there are in each state; for the metrics."""
    with store.reading() as connection:
        counts = connection.execute(sa.select(jobs.c.state, sa.func.count()).group_by(jobs.c.state))
        return {str(state): int(count) for state, count in counts}


def _own(job_id: str, worker: str) -> sa.Update:
    return sa.update(jobs).where(jobs.c.id == job_id, jobs.c.worker == worker, jobs.c.state == RUNNING)


def _changed(store: Store, change: sa.Update) -> bool:
    with store.begin() as connection:
        return bool(connection.execute(change.values(changed=now())).rowcount == 1)


def _job(row: Any) -> Job:
    fields = dict(row._mapping)
    error = fields["error"]
    return Job(
        **{
            **fields,
            "body": json.loads(fields["body"]),
            "error": None if error is None else json.loads(error),
        }
    )

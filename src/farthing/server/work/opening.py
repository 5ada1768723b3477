"""The kind of job that opens a session: plan, compare with what was confirmed, charge, draw the start, record."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from farthing.errors import InvalidValue, RequestRefused
from farthing.server.callers import Caller

if TYPE_CHECKING:
    from farthing.server.state import State
    from farthing.server.store.jobs import Job
    from farthing.study.asking import Wish

KIND = "session"


def run_session(job: Job, state: State, progress: Callable[[float], None]) -> None:
    """Open the session of a job, unless it was paid for before. Whoever asks takes it up from the ledger."""
    from farthing.study.asking import opened

    if state.root.stored(job.id) is not None:
        return
    who = Caller(job.owner, job.role, frozenset(), "worker")
    study = state.study(who, job.dataset)
    progress(0.0)
    confirmed = job.limits.get("confirmed_epsilon")
    try:
        opened(study, wish_of(job.asked), job.id, confirmed=confirmed, progress=progress)
    except InvalidValue as refusal:
        if refusal.name != "confirmed_epsilon":
            raise
        facts = {"confirmed": confirmed, "rule": refusal.rule, "way_out": refusal.way_out}
        raise RequestRefused("conflict", str(refusal), facts) from None


def wish_of(asked: Any) -> Wish:
    """What was wished for, as the words of the request have it."""
    from farthing.study.asking import Wish

    words = {name: said for name, said in asked.items() if said is not None}
    if "columns" in words:
        words["columns"] = tuple(words["columns"])
    return Wish(**words)

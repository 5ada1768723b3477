"""The kind of job that releases a plan: plan anew, compare with what was confirmed, charge, run, record."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from farthing.errors import RequestRefused
from farthing.numerics.digits import ceiling
from farthing.server.callers import Caller

if TYPE_CHECKING:
    from farthing.server.state import State
    from farthing.server.store.jobs import Job
    from farthing.study import Plan

_HAIR = 1e-9  # the ledger counts in billionths of epsilon, rounded up


def run_release(job: Job, state: State, progress: Callable[[float], None]) -> None:
    """Release the draft of a job, unless it was paid for before."""
    from farthing.server.views.plan import plan_of_draft

    if state.root.stored(job.id) is not None:
        return  # a row was lost, the ledger's word was not: there is an answer, or there will never be one
    who = Caller(job.owner, job.role, frozenset(), "worker")
    plan = plan_of_draft(state.study(who, job.dataset), job.asked)
    refuse_dearer(plan, job.limits.get("confirmed_epsilon"))
    progress(0.0)
    plan.release(job.id, progress)


def refuse_dearer(plan: Plan, confirmed: float | None) -> None:
    """Nothing is charged that nobody agreed to: budgets may have moved since the plan was looked at."""
    if confirmed is None:
        return
    cost = plan.cost.upper
    if not cost <= confirmed * (1 + _HAIR) + _HAIR:
        raise RequestRefused(
            "conflict",
            f"the plan would cost epsilon={ceiling(cost)} now, and {confirmed:.6g} was confirmed; nothing was spent. "
            "Look at the plan again, and confirm what it costs now.",
            {"requested": cost, "confirmed": confirmed, "way_out": "price the plan again and confirm that"},
        )

"""The kind of job that counts the rows of a table: compare with what was confirmed, charge, count, record."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from farthing.errors import AnswerForfeited, RequestRefused
from farthing.numerics.digits import ceiling
from farthing.server.auth.permissions import Caller

if TYPE_CHECKING:
    from farthing.server.app_state import State
    from farthing.server.store.job_rows import Job

KIND = "rows"
_HAIR = 1e-9  # the ledger counts in billionths of epsilon, rounded up


def run_row_count(job: Job, state: State, progress: Callable[[float], None]) -> None:
    """Count the rows for whoever asked, unless that was paid for before.

    The count is charged under a name of its own, which whoever plans looks for: it is one for each account that pays.
    """
    from farthing.study.row_count import count_rows, found_count, lost_count, price_of_counting

    study = state.study(Caller(job.owner, job.role, frozenset(), "worker"), job.dataset)
    share, fresh = float(job.asked["share"]), bool(job.asked["fresh"])
    if found_count(study, wait=True).answer is None:
        lost = lost_count(study, job.created)
        if lost is not None:  # by this very job: who asks for it again has not agreed to pay twice
            raise AnswerForfeited(
                lost, "the attempt that was charged ended without one", "use a new request id"
            )
    price, confirmed = price_of_counting(study, share), job.limits.get("confirmed_epsilon")
    if confirmed is not None and not price <= confirmed * (1 + _HAIR) + _HAIR:
        raise RequestRefused(
            "conflict",
            f"counting the rows would cost epsilon={ceiling(price)} now, and {confirmed:.6g} was confirmed; nothing "
            "was spent. Look at the price again.",
            {"requested": price, "confirmed": confirmed, "way_out": "confirm what it costs now"},
        )
    progress(0.0)
    count_rows(
        study, price, fresh=fresh and not job.attempts, progress=progress
    )  # a dead worker may have made it

"""One job from taking it to writing down what it came to. What was charged and answered is the ledger's word alone."""

from __future__ import annotations

import logging
import secrets
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from farthing.errors import (
    AnswerForfeited,
    EngineError,
    FarthingError,
    InvalidValue,
    LedgerTampered,
    LedgerUnavailable,
    MissingExtra,
    NotAllowed,
    RequestRefused,
)
from farthing.numerics.bounds import ceiling
from farthing.server.auth.permissions import Caller
from farthing.server.http.error_envelope import error_of
from farthing.server.services.app_state import State
from farthing.server.services.dataset_service import declaration_of, study_of
from farthing.server.services.discovery_service import planned_discovery
from farthing.server.services.plan_prices import plan_of_draft, study_of_draft
from farthing.server.services.series_service import series_options
from farthing.server.services.session_service import session_options
from farthing.server.services.synthetic_service import offer_of
from farthing.server.store import job_rows as rows
from farthing.server.store.job_rows import FAILED, FORFEITED, REFUSED, RELEASED, Job
from farthing.server.store.user_rows import find
from farthing.study.documents.dataset_declaration import declared_sources
from farthing.study.findings import lost_search, next_search, paid_finding
from farthing.study.key_count_plan import KeyCountPlan

if TYPE_CHECKING:
    from farthing.study import Plan

Progress = Callable[[float], None]

_HAIR = 1e-9  # the ledger counts in billionths of epsilon, rounded up


def run_row_count(job: Job, state: State, progress: Callable[[float], None]) -> None:
    """Count the rows for the job's owner, unless that was paid for before.

    The count is charged under a name of its own, which every plan looks for: it is one for each account that pays.
    """
    from farthing.study.study_account import count_rows, lost_count, price_of_counting, stored_count

    study = study_of(state, owner_of(job), job.dataset)
    share, fresh = float(job.asked["share"]), bool(job.asked["fresh"])
    if stored_count(study, wait=True).answer is None:
        lost = lost_count(study, job.created)
        if lost is not None:  # by this very job: who asks for it again has not agreed to pay twice
            raise AnswerForfeited(lost, "the attempt that was charged ended without one", "use a new request id")
    price, confirmed = price_of_counting(study, share), job.limits.get("confirmed_epsilon")
    _refuse_dearer_work("counting the rows", price, confirmed)
    progress(0.0)
    # Not a fresh one again where a worker died over the job: it may have made it.
    count_rows(study, price, fresh=fresh and not job.attempts, progress=progress)


def run_discovery(job: Job, state: State, progress: Callable[[float], None]) -> None:
    """Find what nobody knows for the job's owner; what was paid for before is not searched again.

    Each search is charged under a name of its own, which every plan looks for: it is one for each account that pays.
    """
    study = study_of(state, owner_of(job), job.dataset)
    # Not fresh ones again where a worker died over the job: it may have made some.
    # What it has paid for keeps its share, so that the rest costs no more than was agreed to.
    fresh = bool(job.asked["fresh"]) and not job.attempts
    plan = planned_discovery(study, {**job.asked, "fresh": fresh}, since=job.created)
    for search in plan.open:
        if plan.fresh or paid_finding(study, search.name, wait=True) is None:
            lost = lost_search(study, search.name, job.created)
            if lost is not None:  # by this very job: who asks for it again has not agreed to pay twice
                raise AnswerForfeited(lost, "the attempt that was charged ended without one", "use a new request id")
    _refuse_dearer_work("the search", plan.cost, job.limits.get("confirmed_epsilon"))
    progress(0.0)
    plan.release(progress)


def _refuse_dearer_work(what: str, price: float, confirmed: float | None) -> None:
    """Refuse what costs more than somebody agreed to, before anything is charged."""
    if confirmed is not None and not price <= confirmed * (1 + _HAIR) + _HAIR:
        raise RequestRefused(
            "conflict",
            f"{what} would cost epsilon={ceiling(price)} now, and {confirmed:.6g} was confirmed; nothing was spent. "
            "Look at the price again.",
            {"requested": price, "confirmed": confirmed, "way_out": "confirm what it costs now"},
        )


def run_release(job: Job, state: State, progress: Callable[[float], None]) -> None:
    """Release the draft of a job, unless it was paid for before."""
    if state.root.stored(job.id) is not None:
        return  # a row was lost, the ledger's word was not: there is an answer, or there will never be one
    plan = _plan_of(job, state)
    refuse_dearer(plan, job.limits.get("confirmed_epsilon"))
    title = str(job.limits.get("title") or "")
    progress(0.0)
    if isinstance(plan, KeyCountPlan):
        _release_found_counts(plan, job, state, progress, title)
    else:
        plan.release(job.id, progress, title=title)


def _release_found_counts(plan: KeyCountPlan, job: Job, state: State, progress: Progress, title: str) -> None:
    """Find values and count them. That is charged under the name of their column: the job's row says which it is."""
    assert plan.whole is not None
    if plan.earlier is None:
        lost = lost_search(plan.whole, plan.column, job.created)
        if lost is not None:  # by this very job: who asks for it again has not agreed to pay twice
            rows.charge_as(state.store, job, lost)
            raise AnswerForfeited(lost, "the attempt that was charged ended without one", "use a new request id")
        rows.charge_as(state.store, job, next_search(plan.whole, plan.column))
    try:
        release = plan.release(progress=progress, title=title)
    except InvalidValue:
        paid = paid_finding(plan.whole, plan.column)
        if paid is None or paid.finding.is_usable:
            raise
        rows.charge_as(state.store, job, paid.receipt.request_id)
        reason = f"no value of {plan.column} is shared by enough units to be shown"
        raise AnswerForfeited(paid.receipt.request_id, reason, "declare its values, or search again") from None
    rows.charge_as(state.store, job, release.request_id)


def _plan_of(job: Job, state: State) -> Plan:
    """The plan of a job: that of a draft, or the one that a request was approved with."""
    number = job.asked.get("request")
    if number is None:
        return plan_of_draft(study_of_draft(state, owner_of(job), job.dataset, job.asked), job.asked)
    from farthing.study.documents.requested_plan import requested_plan

    return requested_plan(study_of(state, owner_of(job), job.dataset), int(number))


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


def run_session(job: Job, state: State, progress: Callable[[float], None]) -> None:
    """Open the session of a job, unless it was paid for before. The first question resumes it from the ledger."""
    from farthing.study.sessions.session_defaults import open_wished_session

    if state.root.stored(job.id) is not None:
        return
    study = study_of(state, owner_of(job), job.dataset)
    progress(0.0)
    confirmed = job.limits.get("confirmed_epsilon")
    try:
        open_wished_session(study, session_options(job.asked), job.id, confirmed=confirmed, progress=progress)
    except InvalidValue as refusal:
        if refusal.name != "confirmed_epsilon":
            raise
        facts = {"confirmed": confirmed, "rule": refusal.rule, "way_out": refusal.way_out}
        raise RequestRefused("conflict", str(refusal), facts) from None


def run_series(job: Job, state: State, progress: Callable[[float], None]) -> None:
    """Open the running series of a job, unless it was paid for before; its periods are released one by one."""
    from farthing.study.plan_submission import as_approved
    from farthing.study.sessions.series_sessions import open_series, series_plan

    if state.root.stored(job.id) is not None:
        return
    study, options = study_of(state, owner_of(job), job.dataset), series_options(job.asked)
    study = as_approved(study, options.request_id(study))  # what a curator has approved may cost more than the grant
    price, confirmed = series_plan(study, options).epsilon, job.limits.get("confirmed_epsilon")
    _refuse_dearer_work("the series", price, confirmed)
    progress(0.0)
    open_series(study, replace(options, epsilon=price), job.id)


def run_synthesis(job: Job, state: State, progress: Callable[[float], None]) -> None:
    """Make the synthetic table of a job, unless it was paid for before; it is drawn again from the ledger when read."""
    if state.root.stored(job.id) is not None:
        return
    who = owner_of(job)
    offer = offer_of(state, who, study_of(state, who, job.dataset), job.asked)
    if offer.made_before:  # in a script of theirs, under the name of what it asked for
        rows.charge_as(state.store, job, offer.request_id)
        return
    _refuse_dearer_work("the table", offer.cost, job.limits.get("confirmed_epsilon"))
    progress(0.0)
    offer.release(job.id, progress)


Kind = Callable[[Job, State, Progress], None]

KINDS: dict[str, Kind] = {
    rows.RELEASE: run_release,
    rows.SESSION: run_session,
    rows.ROW_COUNT: run_row_count,
    rows.SERIES: run_series,
    rows.DISCOVERY: run_discovery,
    rows.SYNTHESIS: run_synthesis,
}
"""What each kind of job does. It charges under `job.id` (counts of rows and searches under names of their own), and
calls `progress` right before that: a job that another worker has taken over is stopped there."""

MOST_ATTEMPTS = 3  # workers that may die over a job before it is given up; nothing was charged by then
_BETWEEN = 0.2  # seconds between two notes of progress
_NOT_ANSWERED = "no answer was recorded by the worker that charged for it"
_OURS_TO_MEND = (LedgerUnavailable, LedgerTampered, EngineError, MissingExtra)

_log = logging.getLogger("farthing.server.jobs")


class TakenOver(Exception):
    """The job is another worker's now; whatever it comes to is written down there."""


def owner_of(job: Job) -> Caller:
    """The person who asked for a job, for whom it is done: with their role, from their grant."""
    return Caller(job.owner, job.role, frozenset(), "worker")


def perform(job: Job, state: State, worker: str, kinds: Mapping[str, Kind] = KINDS) -> None:
    """Do a job that this worker has taken, and write down what it came to."""
    problem: Exception | None = None
    try:
        _refuse_gone(job, state)
        _refuse_silent(job, state)
        kinds[job.kind](job, state, _Progress(job, state, worker))
    except TakenOver:
        return
    except Exception as failure:
        problem = failure
    _settle(job, state, worker, lambda: _outcome(job, state, problem))


def _refuse_gone(job: Job, state: State) -> None:
    """Nothing is spent for somebody who was shut out, or lost the role, while the job waited."""
    with state.store.reading() as connection:
        user = find(connection, job.owner)
    if user is None or user.disabled or user.role != job.role:
        raise NotAllowed(job.role, "spend any more", "ask a curator what became of the account")


def _refuse_silent(job: Job, state: State) -> None:
    """Nothing is charged for a table whose database does not answer: the run would end without an answer."""
    declaration = declaration_of(state.store, job.dataset)
    if declaration is None:
        return  # which the job itself says
    with suppress(FarthingError):  # whose words may name the file or the server
        for source in declared_sources(declaration.facts).values():
            state.plans.folder.answering(source)
        return
    raise EngineError(
        "data folder",
        f"the table of {job.dataset!r} cannot be reached now",
        "nothing was charged; try again, or ask its curator whether it is still there",
    )


def take_over(job: Job, state: State, worker: str) -> None:
    """Bring a job to its end, or back to the queue, whose worker is gone; it is this worker's by now."""
    stored = state.root.stored(job.id)
    if stored is None and job.attempts + 1 < MOST_ATTEMPTS:
        rows.put_back(state.store, job, worker)
        return
    problem = RuntimeError(f"{MOST_ATTEMPTS} workers died while running this job") if stored is None else None
    _settle(job, state, worker, lambda: _outcome(job, state, problem))


def _settle(job: Job, state: State, worker: str, outcome: Callable[[], tuple[str, dict[str, Any] | None]]) -> None:
    try:
        if not rows.holds(state.store, job.id, worker):
            return
        ended, error = outcome()
        if rows.end(state.store, job.id, worker, ended, error):
            _log.info("%s %s: %s", job.kind, job.id, ended)
    except (LedgerUnavailable, LedgerTampered) as problem:
        # The ledger will know, but not now. Somebody asks it again as soon as it answers.
        _log.warning("%s %s: not settled yet (%s)", job.kind, job.id, type(problem).__name__)
        _let_go(job, state, worker)


def _let_go(job: Job, state: State, worker: str) -> None:
    try:
        rows.declare_dead(state.store, worker, job.id)
    except LedgerUnavailable:
        return  # its heartbeat stops, which is noticed a little later


def _outcome(job: Job, state: State, problem: Exception | None) -> tuple[str, dict[str, Any] | None]:
    stored = state.root.stored(job.id)
    if stored is None and isinstance(problem, AnswerForfeited):  # what was charged under a name of its own
        return FORFEITED, error_of(problem)
    if stored is None:
        return (RELEASED, None) if problem is None else _unpaid(job, problem)
    reason = problem.reason if isinstance(problem, AnswerForfeited) else _NOT_ANSWERED
    came_to = stored.state
    if came_to == "reserved":
        came_to = state.root.forfeit(stored.charge, reason).state
    if came_to == "released":
        return RELEASED, None
    return FORFEITED, error_of(AnswerForfeited(job.id, reason))


def _unpaid(job: Job, problem: Exception) -> tuple[str, dict[str, Any]]:
    """How a job ended that was never charged: refused, or failed for a reason that is ours to mend."""
    if isinstance(problem, FarthingError):
        return FAILED if isinstance(problem, _OURS_TO_MEND) else REFUSED, error_of(problem)
    number = secrets.token_hex(6)
    # Where it happened and what kind it is, but not its words: nobody knows what they quote.
    where = "".join(traceback.format_tb(problem.__traceback__))
    _log.error("%s: %s %s ended with %s\n%s", number, job.kind, job.id, type(problem).__name__, where)
    message = f"something went wrong; the log has the details under {number}. Nothing was charged."
    return FAILED, {"code": "internal", "message": message, "fields": {}}


class _Progress:
    """Writes down the progress of a job now and then, and stops it if it is this worker's no more."""

    def __init__(self, job: Job, state: State, worker: str) -> None:
        self._job, self._state, self._worker = job, state, worker
        self._written, self._next = -1.0, 0.0

    def __call__(self, share: float) -> None:
        moment = time.monotonic()
        if moment < self._next and self._written >= 0:
            return
        self._next = moment + _BETWEEN
        if share == self._written:
            return
        try:
            mine = rows.write_progress(self._state.store, self._job.id, self._worker, min(1.0, max(0.0, share)))
        except LedgerUnavailable:
            return  # how far it is matters less than that it goes on
        if not mine:
            raise TakenOver
        self._written = share

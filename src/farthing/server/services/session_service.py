"""Query sessions: priced, opened as a job, asked in, and visible only to the person who opened them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from farthing.errors import FarthingError, RequestRefused, SessionEnded
from farthing.numerics.bounds import rounded_up_text
from farthing.server.auth.permissions import Caller
from farthing.server.http.error_envelope import error_of
from farthing.server.schemas.session_schema import (
    AnswerView,
    AskedView,
    ColumnView,
    QuoteView,
    SessionAsked,
    SessionList,
    SessionOpening,
    SessionPlanView,
    SessionView,
)
from farthing.server.services.app_state import State
from farthing.server.services.dataset_service import study_of
from farthing.server.services.job_queue import as_the_ledger_has_it, full_id, submitted
from farthing.server.services.open_sessions import OpenSession
from farthing.server.services.release_status import refuse_unreleased
from farthing.server.store import session_answers as rows
from farthing.server.store.job_rows import RELEASED, SESSION, Job, job_of, listed
from farthing.server.store.session_answers import Asked

if TYPE_CHECKING:
    from farthing.ledger import PlanRequest
    from farthing.study import Study
    from farthing.study.sessions.session_defaults import Column, Offer, QuerySession, SessionOptions

MOST_CATEGORIES = 1_000  # that are shown of one column
MOST_LISTED = 50
_WAY_OUT = (
    "what was answered can be asked again and keeps its answer; for other questions open another session, which is "
    "charged again"
)


def priced(state: State, who: Caller, asked: SessionAsked) -> QuoteView:
    """What a session would cost and promise."""
    from farthing.study.sessions.session_defaults import session_offer

    study = study_of(state, who, asked.dataset)
    study = study.on_request() if asked.on_request else study
    with state.sessions.price_turn():
        return quote_view(session_offer(study, session_options(asked.plain())))


def opening(state: State, who: Caller, body: SessionOpening) -> Job:
    """The job that opens a session."""
    from farthing.study.sessions.session_defaults import is_session_of

    study = study_of(state, who, body.dataset)  # a dataset that is not theirs is not there
    return submitted(
        state,
        who,
        kind=SESSION,
        request_id=body.request_id,
        dataset=body.dataset,
        asked=body.plain(),
        limits={"confirmed_epsilon": body.confirmed_epsilon},
        is_answer_to=lambda stored: (
            stored.answer is None or is_session_of(study, session_options(body.plain()), stored.charge.request_id)
        ),
    )


def submitted_session(state: State, who: Caller, asked: SessionAsked, purpose: str, title: str) -> PlanRequest:
    """Ask a curator to allow a session; nothing is spent and no row is read."""
    from farthing.study.sessions.session_defaults import submit_wished_session

    study, body = study_of(state, who, asked.dataset), asked.plain()
    with state.sessions.price_turn():
        return submit_wished_session(study, session_options(body), purpose, title, body)


def own_session(state: State, who: Caller, session_id: str) -> Job:
    """The session, if it is the caller's own; to everybody else, curators included, it is not there."""
    job = job_of(state.store, full_id(who, session_id))
    if job is None or job.kind != SESSION or job.owner != who.name:
        raise RequestRefused("not_found", "there is no query session with this id; check it, or list yours.")
    return as_the_ledger_has_it(state, job)


def sessions_of(state: State, who: Caller, dataset: str | None) -> SessionList:
    """The query sessions that the caller has opened."""
    jobs = listed(state.store, SESSION, who.name, dataset)[:MOST_LISTED]
    return SessionList(sessions=[_listed_view(state, who, as_the_ledger_has_it(state, job)) for job in jobs])


def session_view(state: State, who: Caller, job: Job, history: int = 200) -> SessionView:
    """A session with its last answers and the columns that may be asked about."""
    if job.state != RELEASED:
        return _view(state, job)
    from farthing.study.sessions.session_defaults import columns_of

    study = study_of(state, _owner(job), job.dataset)
    plan, left = _standing(state, study, job)
    return _view(
        state,
        job,
        plan=plan,
        updates_left=left,
        history=[asked_view(one) for one in rows.newest(state.store, job.id, history)] if history else [],
        columns=columns_view(columns_of(study.dataset, session_options(job.asked))),
    )


def answered(state: State, who: Caller, job: Job, question: str) -> AnswerView:
    """The answer to a question: the one that stands, or a new one, written down before it is shown."""
    refuse_unreleased(job)
    if job.state != RELEASED:
        raise RequestRefused("conflict", "the session is not open yet; wait until it is, then ask.")
    from farthing.study.sessions.session_defaults import resume_session

    owner = _owner(job)
    text = question.strip()

    def resume() -> QuerySession:
        return resume_session(study_of(state, owner, job.dataset), session_options(job.asked), job.id)

    with state.sessions.turn((job.id, job.owner, job.role), resume) as (session, query_session):
        key = query_session.key(text)
        session.catch_up(state.store, job.id)
        one = session.answered.get(key)
        repeated = one is not None
        if one is None:
            one = _fresh(state, job, session, query_session, text, key)
        left = query_session.updates_left
        asked_for = query_session.plan.queries - session.last
    return AnswerView(
        question=text,
        value=one.value,
        error=one.error,
        paid=one.paid,
        sentence=answer_sentence(one, repeated),
        number=one.number,
        repeated=repeated,
        updates_left=left,
        questions_left=max(0, asked_for),
    )


def _fresh(state: State, job: Job, session: OpenSession, query_session: QuerySession, text: str, key: str) -> Asked:
    """A new answer, unless another server wrote one down first: then that is the answer."""
    try:
        answer = query_session.ask(text)
    except SessionEnded as ended:
        raise _ended(ended, session, query_session, text) from None
    while key not in session.answered:
        one = rows.fresh(session.last + 1, text, key, answer.value, answer.error, answer.paid)
        if rows.add(state.store, job.id, job.owner, one):
            session.answered[key] = one
            session.last = one.number
        else:
            session.catch_up(state.store, job.id)
    return session.answered[key]


def _ended(ended: SessionEnded, session: OpenSession, query_session: QuerySession, text: str) -> RequestRefused:
    estimate = query_session.estimate(text).value  # from what was paid for already, and public
    questions = [one.question for one in session.answered.values()][-20:]
    return RequestRefused(
        "session_ended",
        f"all {ended.rounds:,} updates of this session are used up; {_WAY_OUT}. An estimate without a promise: about "
        f"{estimate:,} rows.",
        {"rounds": ended.rounds, "way_out": _WAY_OUT, "estimate": estimate, "answered": questions},
    )


def _owner(job: Job) -> Caller:
    """The person who opened the session, with the role they had then: it is their grant that has paid."""
    return Caller(job.owner, job.role, frozenset(), "session")


def _standing(state: State, study: Study, job: Job) -> tuple[SessionPlanView, int]:
    """The plan, and how many updates are left."""
    from farthing.study.sessions.session_defaults import session_facts, updates_begun

    plan = state.sessions.plan(job.id, lambda: facts_plan(session_facts(study, job.id)))
    here = state.sessions.is_running((job.id, job.owner, job.role))
    begun = updates_begun(study, job.id, plan.updates)
    return plan, min(plan.updates, plan.updates - begun + here)


def _listed_view(state: State, who: Caller, job: Job) -> SessionView:
    if job.state != RELEASED:
        return _view(state, job)
    try:
        plan, left = _standing(state, study_of(state, _owner(job), job.dataset), job)
    except FarthingError as problem:  # its dataset cannot be opened now: the others are listed all the same
        return _view(state, job, error=error_of(problem))
    return _view(state, job, plan=plan, updates_left=left)


def _view(
    state: State,
    job: Job,
    *,
    plan: SessionPlanView | None = None,
    updates_left: int | None = None,
    error: Mapping[str, Any] | None = None,
    **more: Any,
) -> SessionView:
    problem = error or job.error
    count = rows.counted(state.store, job.id) if job.state == RELEASED else 0
    return SessionView(
        id=job.id,
        state=job.state,  # type: ignore[arg-type]
        progress=job.progress,
        error=None if problem is None else dict(problem),  # type: ignore[arg-type]
        dataset=job.dataset,
        created=datetime.fromtimestamp(job.created / 1e9, UTC).isoformat(timespec="milliseconds"),
        plan=plan,
        updates_left=updates_left,
        questions_left=None if plan is None else max(0, plan.queries - count),
        asked=count,
        history=more.get("history", []),
        columns=more.get("columns", []),
        sentence=state_sentence(job.state, updates_left),
    )


def session_options(asked: Any) -> SessionOptions:
    """The wish of a request as a value."""
    from farthing.study.sessions.session_defaults import SessionOptions

    options = {name: value for name, value in asked.items() if value is not None}
    if "columns" in options:
        options["columns"] = tuple(options["columns"])
    return SessionOptions(**options)


def plan_view(plan: Any) -> dict[str, Any]:
    """The fields of a plan."""
    names = (
        "alpha",
        "queries",
        "updates",
        "epsilon",
        "delta",
        "error",
        "paid_error",
        "rows",
        "cells",
        "confidence",
    )
    return {
        **{name: getattr(plan, name) for name in names},
        "promise": _promise(plan),
        "guarantee": _guarantee(plan),
        "caution": plan.caution,
    }


def quote_view(offer: Offer) -> QuoteView:
    """An offer in words and numbers."""
    notes = []
    if offer.guessed:
        notes.append(
            f"{offer.plan.rows:,} rows are assumed: their number is not public, and a hundredth of epsilon goes "
            "into counting them first. Give rows if you know roughly how many there are."
        )
    if offer.left_out:
        notes.append(
            f"Left out, because all columns together have too many combinations: {', '.join(offer.left_out)}. "
            "Name the columns you want instead."
        )
    updates = offer.plan.updates
    several = "1 answer" if updates == 1 else f"{updates:,} answers"
    return QuoteView(
        **plan_view(offer.plan),
        rows_are_a_guess=offer.guessed,
        columns=columns_view(offer.columns),
        left_out=list(offer.left_out),
        notes=notes,
        sentence=(
            f"Opening it costs epsilon {rounded_up_text(offer.plan.epsilon, 3)}, once. {several} may be a surprise; "
            "all others are free."
        ),
    )


def columns_view(columns: Sequence[Column]) -> list[ColumnView]:
    """What may be asked about, from the schema alone."""
    return [_column(column) for column in columns]


def asked_view(one: Asked) -> AskedView:
    """A line of the history."""
    return AskedView(
        number=one.number,
        question=one.question,
        value=one.value,
        error=one.error,
        paid=one.paid,
        sentence=answer_sentence(one),
    )


def answer_sentence(one: Asked, repeated: bool = False) -> str:
    """An answer in words; asking the same again uses nothing up.

    >>> answer_sentence(Asked(1, "age < 30", "ab", 1200, 300, False, 0))
    'About 1,200 rows, give or take 300: this answer was free.'
    >>> answer_sentence(Asked(1, "age < 30", "ab", 1200, 300, True, 0), repeated=True)
    'About 1,200 rows, give or take 300: you asked this before, and the same answer is free.'
    """
    rows = "1 row" if one.value == 1 else f"{one.value:,} rows"
    cost = "it was a surprise and used up one update" if one.paid else "this answer was free"
    if repeated:
        cost = "you asked this before, and the same answer is free"
    return f"About {rows}, give or take {one.error or 0:,}: {cost}."


def state_sentence(state: str, left: int | None) -> str:
    """The state of a session in words."""
    if state == "released":
        if left == 0:
            return "Its updates are used up: what was answered can be asked again, nothing else."
        return "It is open for questions."
    return {
        "queued": "Waiting to be opened; nothing is charged yet.",
        "running": "It is being opened.",
        "forfeited": "It was charged and lost while it was being opened; what was paid stays spent.",
    }.get(state, "It was not opened, and nothing was charged for it.")


def _promise(plan: Any) -> str:
    return (
        f"Every answer is within {plan.error:,} of the true number of rows ({100 * plan.alpha:.3g}% of about "
        f"{plan.rows:,}), for {plan.queries:,} questions together, with confidence {plan.confidence:.4g}."
    )


def _guarantee(plan: Any) -> str | None:
    return None if plan.guarantee is None else f"{plan.guarantee[0].upper()}{plan.guarantee[1:]}."


def _column(column: Column) -> ColumnView:
    domain: Any = column.domain
    kind: Any = type(domain).__name__.lower()
    values = getattr(domain, "values", None)
    edges: Sequence[Any] | None = column.edges
    return ColumnView(
        name=column.column,
        kind=kind,
        lower=_plain(getattr(domain, "lower", None)),
        upper=_plain(getattr(domain, "upper", None)),
        categories=None if values is None else list(values[:MOST_CATEGORIES]),
        edges=None if edges is None else [_plain(edge) for edge in edges],
        cells=len(column),
    )


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


def facts_plan(facts: Mapping[str, Any]) -> SessionPlanView:
    """The plan that a session was opened with, from what was recorded then."""
    from farthing.study.sessions.session_defaults import plan_of

    return SessionPlanView(**plan_view(plan_of(facts)))

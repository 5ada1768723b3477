"""Sessions: priced, opened as a job, asked in, and shown to whoever opened them and to nobody else."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from farthing.errors import FarthingError, RequestRefused, SessionEnded
from farthing.server.auth.permissions import Caller
from farthing.server.http.error_envelope import error_of
from farthing.server.jobs.job_queue import as_the_ledger_has_it, full_id, submitted
from farthing.server.jobs.job_runner import KIND, wish_of
from farthing.server.schemas.session_schema import (
    AnswerView,
    QuoteView,
    SessionAsked,
    SessionList,
    SessionOpening,
    SessionPlanView,
    SessionView,
    answer_sentence,
    asked_view,
    columns_view,
    facts_plan,
    quote_view,
    state_sentence,
)
from farthing.server.services.release_status import refuse_unreleased
from farthing.server.store import Store
from farthing.server.store import session_answers as rows
from farthing.server.store.job_rows import RELEASED, Job, job_of, listed
from farthing.server.store.session_answers import Asked

if TYPE_CHECKING:
    from farthing.server.app_state import State
    from farthing.study import Study
    from farthing.study.sessions.session_defaults import Conversation


MOST = 64  # sessions
MOST_CELLS = 2**24  # of all of them: a few hundred megabytes
PATIENCE = 30.0  # seconds to wait for the questions before

Key = tuple[str, str, str]  # session, owner, role


class Kept:
    """One open session, the turn of whoever asks, and what is known to be answered."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.waiting = 0
        self.conversation: Conversation | None = None
        self.answered: dict[str, Asked] = {}
        self.last = 0

    @property
    def cells(self) -> int:
        """How much room it takes."""
        return 0 if self.conversation is None else self.conversation.plan.cells

    @property
    def running(self) -> bool:
        """Whether a round is under way here, which would be lost."""
        return self.conversation is not None and self.conversation.running

    def catch_up(self, store: Store, session: str) -> None:
        """Read what was answered since the last look, here or at another server."""
        for one in rows.after(store, session, self.last):
            self.answered.setdefault(one.key, one)
            self.last = one.number


class Conversations:
    """The open sessions of one server."""

    def __init__(self, most: int = MOST, most_cells: int = MOST_CELLS, patience: float = PATIENCE) -> None:
        self._most, self._most_cells, self._patience = most, most_cells, patience
        self._kept: OrderedDict[Key, Kept] = OrderedDict()
        self._changing = threading.Lock()

    @contextmanager
    def turn(self, key: Key, take_up: Callable[[], Conversation]) -> Iterator[tuple[Kept, Conversation]]:
        """The session, for one question at a time; `take_up` opens it if it is not open here."""
        with self._changing:
            kept = self._kept.setdefault(key, Kept())
            self._kept.move_to_end(key)
            kept.waiting += 1
        try:
            if not kept.turn.acquire(timeout=self._patience):
                raise RequestRefused(
                    "rate_limited",
                    "this session is busy with other questions; ask again in a moment.",
                    {"retry_after": 5},
                )
            try:
                if kept.conversation is None:
                    kept.conversation = take_up()
                yield kept, kept.conversation
            finally:
                kept.turn.release()
        finally:
            with self._changing:
                kept.waiting -= 1
                self._put_away()

    def is_running(self, key: Key) -> bool:
        """Whether a round of this session is under way here."""
        with self._changing:
            kept = self._kept.get(key)
        return kept is not None and kept.running

    def __len__(self) -> int:
        with self._changing:
            return len(self._kept)

    def _put_away(self) -> None:
        """Make room: those that were never opened, then those without a round, then the one longest unused."""
        idle = [(key, kept) for key, kept in self._kept.items() if not kept.waiting]
        idle.sort(key=lambda item: (item[1].conversation is not None, item[1].running))
        for key, kept in idle:
            crowded = len(self._kept) > self._most or self._cells() > self._most_cells
            if kept.conversation is not None and not crowded:
                return
            del self._kept[key]

    def _cells(self) -> int:
        return sum(kept.cells for kept in self._kept.values())


MOST_LISTED = 50
_PLANNING = 2  # prices that are worked out at a time: each takes a core for a second or more
_WAIT = 20.0  # seconds to wait for other prices
_MOST_PLANS = 512
_WAY_OUT = (
    "what was answered can be asked again and keeps its answer; for other questions open another session, which is "
    "paid anew"
)


class Asking:
    """What a server keeps at hand about sessions, none of it the only copy."""

    def __init__(self) -> None:
        self.conversations = Conversations()
        self.planning = threading.BoundedSemaphore(_PLANNING)
        self._plans: OrderedDict[str, SessionPlanView] = OrderedDict()
        self._changing = threading.Lock()

    def plan(self, study: Study, session: str) -> SessionPlanView:
        """The plan of a session that was opened; it never changes."""
        with self._changing:
            found = self._plans.get(session)
        if found is None:
            from farthing.study.sessions.session_defaults import opened_facts

            found = facts_plan(opened_facts(study, session))
            with self._changing:
                self._plans[session] = found
                while len(self._plans) > _MOST_PLANS:
                    self._plans.popitem(last=False)
        return found


def priced(state: State, who: Caller, asked: SessionAsked) -> QuoteView:
    """What a session would cost and promise."""
    from farthing.study.sessions.session_defaults import offered

    study = state.study(who, asked.dataset)
    if not state.asking.planning.acquire(timeout=_WAIT):
        raise RequestRefused(
            "rate_limited", "other prices are being worked out; ask again in a moment.", {"retry_after": 5}
        )
    try:
        return quote_view(offered(study, wish_of(asked.words())))
    finally:
        state.asking.planning.release()


def opening(state: State, who: Caller, body: SessionOpening) -> Job:
    """The job that opens a session."""
    from farthing.study.sessions.session_defaults import is_session_of

    study = state.study(who, body.dataset)  # a dataset that is not theirs is not there
    return submitted(
        state,
        who,
        kind=KIND,
        request_id=body.request_id,
        dataset=body.dataset,
        asked=body.words(),
        limits={"confirmed_epsilon": body.confirmed_epsilon},
        is_answer_to=lambda stored: (
            stored.answer is None or is_session_of(study, wish_of(body.words()), stored.charge.request_id)
        ),
    )


def own_session(state: State, who: Caller, session: str) -> Job:
    """The session, if it is the caller's own; to everybody else, curators included, it is not there."""
    job = job_of(state.store, full_id(who, session))
    if job is None or job.kind != KIND or job.owner != who.name:
        raise RequestRefused("not_found", "there is no session of this id; check it, or list yours.")
    return as_the_ledger_has_it(state, job)


def sessions_of(state: State, who: Caller, dataset: str | None) -> SessionList:
    """The caller's own sessions."""
    jobs = listed(state.store, KIND, who.name, dataset)[:MOST_LISTED]
    return SessionList(sessions=[_listed_view(state, who, as_the_ledger_has_it(state, job)) for job in jobs])


def session_view(state: State, who: Caller, job: Job, history: int = 200) -> SessionView:
    """A session with its last answers and the columns that may be asked about."""
    if job.state != RELEASED:
        return _view(state, job)
    from farthing.study.sessions.session_defaults import columns_of

    study = state.study(_owner(job), job.dataset)
    plan, left = _standing(state, study, job)
    return _view(
        state,
        job,
        plan=plan,
        updates_left=left,
        history=[asked_view(one) for one in rows.newest(state.store, job.id, history)] if history else [],
        columns=columns_view(columns_of(study.dataset, wish_of(job.asked))),
    )


def answered(state: State, who: Caller, job: Job, question: str) -> AnswerView:
    """The answer to a question: the one that stands, or a new one, written down before it is shown."""
    refuse_unreleased(job)
    if job.state != RELEASED:
        raise RequestRefused("conflict", "the session is not open yet; wait until it is, then ask.")
    from farthing.study.sessions.session_defaults import taken_up

    owner = _owner(job)
    text = question.strip()

    def take_up() -> Conversation:
        return taken_up(state.study(owner, job.dataset), wish_of(job.asked), job.id)

    with state.asking.conversations.turn((job.id, job.owner, job.role), take_up) as (kept, conversation):
        key = conversation.key(text)
        kept.catch_up(state.store, job.id)
        one = kept.answered.get(key)
        repeated = one is not None
        if one is None:
            one = _fresh(state, job, kept, conversation, text, key)
        left = conversation.updates_left
        asked_for = conversation.plan.queries - kept.last
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


def _fresh(state: State, job: Job, kept: Kept, conversation: Conversation, text: str, key: str) -> Asked:
    """A new answer, unless another server wrote one down first: then that is the answer."""
    try:
        answer = conversation.ask(text)
    except SessionEnded as ended:
        raise _ended(ended, kept, conversation, text) from None
    while key not in kept.answered:
        one = rows.fresh(kept.last + 1, text, key, answer.value, answer.error, answer.paid)
        if rows.add(state.store, job.id, job.owner, one):
            kept.answered[key] = one
            kept.last = one.number
        else:
            kept.catch_up(state.store, job.id)
    return kept.answered[key]


def _ended(ended: SessionEnded, kept: Kept, conversation: Conversation, text: str) -> RequestRefused:
    estimate = conversation.estimate(text).value  # from what was paid for already, and public
    answered = [one.question for one in kept.answered.values()][-20:]
    return RequestRefused(
        "session_ended",
        f"all {ended.rounds:,} updates of this session are used up; {_WAY_OUT}. A guess without any promise: about "
        f"{estimate:,} rows.",
        {"rounds": ended.rounds, "way_out": _WAY_OUT, "estimate": estimate, "answered": answered},
    )


def _owner(job: Job) -> Caller:
    """Whoever opened the session, with the role they had then: it is their grant that has paid."""
    return Caller(job.owner, job.role, frozenset(), "session")


def _standing(state: State, study: Study, job: Job) -> tuple[SessionPlanView, int]:
    """The plan, and how many updates are left."""
    from farthing.study.sessions.session_defaults import updates_begun

    plan = state.asking.plan(study, job.id)
    here = state.asking.conversations.is_running((job.id, job.owner, job.role))
    begun = updates_begun(study, job.id, plan.updates)
    return plan, min(plan.updates, plan.updates - begun + here)


def _listed_view(state: State, who: Caller, job: Job) -> SessionView:
    if job.state != RELEASED:
        return _view(state, job)
    try:
        plan, left = _standing(state, state.study(_owner(job), job.dataset), job)
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
    told = error or job.error
    count = rows.counted(state.store, job.id) if job.state == RELEASED else 0
    return SessionView(
        id=job.id,
        state=job.state,  # type: ignore[arg-type]
        progress=job.progress,
        error=None if told is None else dict(told),  # type: ignore[arg-type]
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

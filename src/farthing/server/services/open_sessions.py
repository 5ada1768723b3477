"""Query sessions that are open in this process, one question at a time in each; none of them is the only copy."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from farthing.errors import RequestRefused
from farthing.server.schemas.session_schema import SessionPlanView
from farthing.server.store import Store, session_answers
from farthing.server.store.session_answers import Asked

if TYPE_CHECKING:
    from farthing.study.sessions.session_defaults import QuerySession

MOST = 64  # sessions
MOST_CELLS = 2**24  # of all of them: a few hundred megabytes
MOST_PLANS = 512
PRICES_AT_A_TIME = 2  # each takes a core for a second or more
PRICE_WAIT = 20.0  # seconds to wait for other prices
PATIENCE = 30.0  # seconds to wait for the questions before
Key = tuple[str, str, str]  # session, owner, role


class OpenSession:
    """One open query session: whose turn it is to ask, and what is known to be answered."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.waiting = 0
        self.query_session: QuerySession | None = None
        self.answered: dict[str, Asked] = {}
        self.last = 0

    @property
    def cells(self) -> int:
        """How much room it takes."""
        return 0 if self.query_session is None else self.query_session.plan.cells

    @property
    def running(self) -> bool:
        """Whether a round is under way here, which would be lost."""
        return self.query_session is not None and self.query_session.running

    def catch_up(self, store: Store, session_id: str) -> None:
        """Read what was answered since the last look, here or at another server."""
        for answer in session_answers.after(store, session_id, self.last):
            self.answered.setdefault(answer.key, answer)
            self.last = answer.number


class OpenSessions:
    """The open query sessions of one server, the plans of sessions, and how many prices are worked out at a time."""

    def __init__(self, most: int = MOST, most_cells: int = MOST_CELLS, patience: float = PATIENCE) -> None:
        self._most, self._most_cells, self._patience = most, most_cells, patience
        self._sessions: OrderedDict[Key, OpenSession] = OrderedDict()
        self._changing = threading.Lock()
        self._pricing = threading.BoundedSemaphore(PRICES_AT_A_TIME)
        self._plans: OrderedDict[str, SessionPlanView] = OrderedDict()

    @contextmanager
    def turn(self, key: Key, resume: Callable[[], QuerySession]) -> Iterator[tuple[OpenSession, QuerySession]]:
        """The session, for one question at a time; `resume` opens it if it is not open here."""
        with self._changing:
            session = self._sessions.setdefault(key, OpenSession())
            self._sessions.move_to_end(key)
            session.waiting += 1
        try:
            if not session.turn.acquire(timeout=self._patience):
                raise RequestRefused(
                    "rate_limited",
                    "this session is busy with other questions; ask again in a moment.",
                    {"retry_after": 5},
                )
            try:
                if session.query_session is None:
                    session.query_session = resume()
                yield session, session.query_session
            finally:
                session.turn.release()
        finally:
            with self._changing:
                session.waiting -= 1
                self._put_away()

    @contextmanager
    def price_turn(self) -> Iterator[None]:
        """Work out a price while few others do."""
        if not self._pricing.acquire(timeout=PRICE_WAIT):
            raise RequestRefused(
                "rate_limited", "other prices are being worked out; ask again in a moment.", {"retry_after": 5}
            )
        try:
            yield
        finally:
            self._pricing.release()

    def is_running(self, key: Key) -> bool:
        """Whether a round of this session is under way here."""
        with self._changing:
            session = self._sessions.get(key)
        return session is not None and session.running

    def __len__(self) -> int:
        with self._changing:
            return len(self._sessions)

    def _put_away(self) -> None:
        """Make room: those that were never opened, then those without a round, then the one longest unused."""
        idle = [(key, session) for key, session in self._sessions.items() if not session.waiting]
        idle.sort(key=lambda item: (item[1].query_session is not None, item[1].running))
        for key, session in idle:
            crowded = len(self._sessions) > self._most or self._cells() > self._most_cells
            if session.query_session is not None and not crowded:
                return
            del self._sessions[key]

    def _cells(self) -> int:
        return sum(session.cells for session in self._sessions.values())

    def plan(self, session_id: str, read: Callable[[], SessionPlanView]) -> SessionPlanView:
        """The plan of a session that was opened, which never changes; `read` looks it up the first time."""
        with self._changing:
            plan = self._plans.get(session_id)
        if plan is None:
            plan = read()
            with self._changing:
                self._plans[session_id] = plan
                while len(self._plans) > MOST_PLANS:
                    self._plans.popitem(last=False)
        return plan

"""Query sessions that share a journal: each records its own rounds, and knows how many were begun by the others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from farthing.adaptive.query_session import QuerySession, QuerySessionPlan, plan_query_session
from farthing.adaptive.session_journal import MemoryJournal
from farthing.statistics.cells.cell_axes import Axis

AXES = [Axis("x", range(8))]


class Hooked(MemoryJournal):
    """A journal whose next `begin` is followed by something else before the caller goes on."""

    then: Callable[[], object] | None = None

    def begin(self, round_number: int) -> bool:
        first = super().begin(round_number)
        then, self.then = self.then, None
        if then is not None:
            then()
        return first


def _plan(epsilon: float = 20.0) -> QuerySessionPlan:
    return plan_query_session(AXES, epsilon, 0.0, alpha=0.1, queries=20, rows=8_000, start="none", updates=4)


def _answerer(journal: MemoryJournal, epsilon: float = 20.0) -> QuerySession:
    cells = np.array([8_000, 0, 0, 0, 0, 0, 0, 0])  # far from even: the first question of any is paid for
    return QuerySession(_plan(epsilon), AXES, lambda: cells, journal)


def test_a_round_is_recorded_under_its_own_number_whatever_others_end_meanwhile() -> None:
    journal = Hooked()
    one, other = _answerer(journal), _answerer(journal)
    journal.then = lambda: other.ask("x >= 1")  # begins round 2 and ends it, before round 1 has had a question
    assert one.ask("x = 0").paid  # the other has only learnt that there is nothing elsewhere
    assert [number for number, _ in journal.history()] == [2, 1]
    assert (one.updates, one.running) == (2, False)


def test_rounds_that_others_began_are_known_from_the_start() -> None:
    journal = MemoryJournal()
    journal.opening(lambda: {"start": "none"})
    assert journal.begin(1) and journal.begin(2)  # by processes that ended
    session = _answerer(journal)
    assert (session.updates, session.updates_left) == (2, 2)
    assert session.ask("x = 0").paid
    assert [number for number, _ in journal.history()] == [3]


def test_of_two_that_paid_for_the_same_question_the_first_record_is_what_all_show() -> None:
    journal = MemoryJournal()
    one, other = _answerer(journal, 1.0), _answerer(journal, 1.0)
    one._current_round()
    other._current_round()
    first = one.ask("x = 0")
    assert first.paid and other.ask("x = 0") == first
    assert len(journal.history()) == 2 and _answerer(journal, 1.0).ask("x = 0") == first

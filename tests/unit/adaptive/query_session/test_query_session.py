"""The stream of questions: what is free, what is paid, what a restart keeps, and what a failure shows."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from farthing.accounting import compose
from farthing.adaptive.prior_releases import KnownTable
from farthing.adaptive.query_session import QuerySession, QuerySessionPlan, plan_query_session
from farthing.adaptive.query_session.session_rounds import OpenRound
from farthing.adaptive.session_journal import MemoryJournal
from farthing.errors import BudgetExceeded, Infeasible, InvalidExpression, InvalidValue, LedgerUnavailable
from farthing.statistics.cells.cell_axes import Axis
from sources import TestSource

AXES = [Axis("sex", ("F", "M")), Axis("age", range(10)), Axis("flag", (0, 1))]
COUNTS = np.zeros((2, 10, 2), dtype=np.int64)
COUNTS[1, 2, 0], COUNTS[0, 7, 1], COUNTS[0, 2, 1] = 6000, 3000, 1000


def made(start: str = "none", updates: int | None = 4) -> QuerySessionPlan:
    return plan_query_session(AXES, 2.0, 1e-9, 0.03, 200, 10_000, updates=updates, start=start)


def opened(
    plan: QuerySessionPlan, journal: Any, seed: int = 1, counts: np.ndarray = COUNTS, **more: Any
) -> QuerySession:
    return QuerySession._with_source(plan, AXES, lambda: counts, journal, TestSource(seed), **more)


QUESTIONS = ["sex = 'M'", "age = 2", "age < 5 and sex = 'F'", "flag = 1", "age = 7 and flag = 1", "age >= 8"]


def test_only_surprises_are_paid_and_every_answer_is_within_its_error() -> None:
    session = opened(made(), MemoryJournal())
    for question in QUESTIONS[:4]:
        answer, truth = session.ask(question), np.sum(COUNTS, where=session._mask(question).counted)
        assert answer.error is not None and abs(answer.value - truth) <= answer.error
    paid = sum(step.paid for step in session.history)
    assert 1 <= paid == session.updates <= 4
    assert all((step.correction > 0) == step.paid for step in session.history)
    assert session.questions == len(session.history) == 4
    assert session.updates_left == 4 - paid


@pytest.mark.slow
def test_a_noisy_start_makes_answers_free() -> None:
    session = opened(made("cells", None), MemoryJournal())
    assert not any(session.ask(question).paid for question in QUESTIONS)
    assert session.updates == 0


def test_the_same_question_in_other_words_gets_the_same_answer_and_counts_once() -> None:
    session = opened(made("cells", None), MemoryJournal())
    first = session.ask("sex = 'M' and age < 5")
    assert session.ask({"age": (0, 5), "sex": "M"}) is first
    assert session.questions == 1


def test_a_restart_keeps_answers_and_weights_and_a_new_question_begins_a_round() -> None:
    plan, journal = made(updates=8), MemoryJournal()
    before = opened(plan, journal)
    answers = {question: before.ask(question) for question in ["sex = 'M'", *QUESTIONS]}
    before._current_round()
    assert any(answer.paid for answer in answers.values()) and before.running
    assert dict(before.answered) == answers
    after = opened(plan, journal, seed=99)
    assert dict(after.answered) == answers and after.questions == before.questions
    assert np.array_equal(after._weights()[1].values, before._weights()[1].values)
    for question, answer in answers.items():
        assert after.ask(question) == answer and not after.running
    assert after.updates == before.updates + 1  # the round that was under way is lost
    after.ask("age = 9")
    assert after._round == before._round + 1


def test_a_round_that_is_interrupted_after_its_last_answer_is_lost_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = opened(made(updates=2), MemoryJournal())
    ask = OpenRound.ask

    def interrupted(asking: OpenRound, difference: int) -> None:
        ask(asking, difference)
        raise KeyboardInterrupt

    with monkeypatch.context() as now, pytest.raises(KeyboardInterrupt):
        now.setattr(OpenRound, "ask", interrupted)
        session.ask("age = 2")
    assert session.ask("age = 2").paid and session.updates_left == 0


@pytest.mark.parametrize("question", ["age is null", "age is not null and flag = 1", "coalesce(age, 1) = 1"])
def test_nothing_is_promised_about_rows_that_lack_a_value(question: str) -> None:
    session = opened(made("cells", None), MemoryJournal())
    with pytest.raises(InvalidExpression, match="lack a value"):
        session.ask(question)
    assert session.questions == 0


@pytest.mark.slow
def test_when_updates_are_used_up_answers_and_estimates_are_still_there() -> None:
    session = opened(made(updates=1), MemoryJournal())
    paid = session.ask("sex = 'M'")
    assert paid.paid and session.updates_left == 0
    with pytest.raises(BudgetExceeded, match="estimate"):
        session.ask("age = 2")
    assert session.ask("sex = 'M'") is paid
    estimate = session.estimate("age = 2")
    assert estimate.error is None and not estimate.paid
    assert session.questions == 1


@pytest.mark.parametrize("question", ["nobody = 1", "age <", "age + 1", {"nobody": 1}, np.full(40, 0.5), np.ones(39)])
def test_a_bad_question_is_refused_before_anything_happens(question: Any) -> None:
    journal = MemoryJournal()
    session = opened(made(), journal)
    with pytest.raises((InvalidExpression, InvalidValue)):
        session.ask(question)
    assert session.questions == 0 and not session.running
    assert repr(journal) == "MemoryJournal(0 rounds begun, 0 recorded)"


class Failing(MemoryJournal):
    """A journal whose ledger is away when told so."""

    away = False

    def begin(self, round_number: int) -> bool:
        if self.away:
            raise LedgerUnavailable("away")
        return super().begin(round_number)

    def end(self, round_number: int, record: Any) -> None:
        if self.away:
            raise LedgerUnavailable("away")
        super().end(round_number, record)


def test_while_the_ledger_is_away_nothing_is_shown_and_asking_again_works() -> None:
    journal = Failing()
    session = opened(made(), journal)
    journal.away = True
    with pytest.raises(LedgerUnavailable):
        session.ask("sex = 'M'")  # the round cannot be begun
    assert session.questions == 0
    journal.away = False
    assert not session.ask("all").paid
    journal.away = True
    with pytest.raises(LedgerUnavailable):
        session.ask("sex = 'M'")  # it cannot be recorded
    with pytest.raises(LedgerUnavailable):
        session.ask("sex = 'M'")
    journal.away = False
    answer = session.ask("sex = 'M'")
    assert answer.paid and session.updates == 1 and len(journal.history()) == 1


def test_a_round_that_somebody_gave_up_is_not_shown_and_the_next_is_begun() -> None:
    class GivenUp(MemoryJournal):
        def end(self, round_number: int, record: Any) -> None:
            if round_number == 1:
                raise InvalidValue("round_number", 1, "was given up")
            super().end(round_number, record)

    journal = GivenUp()
    session = opened(made(), journal)
    with pytest.raises(InvalidValue, match="given up"):
        session.ask("sex = 'M'")
    assert session.ask("sex = 'M'").paid
    assert [number for number, _ in journal.history()] == [2]


def test_neighbours_differ_only_where_the_row_is_counted() -> None:
    """The same randomness, one row more: the same opening record but for one cell, the same far questions."""
    more = COUNTS.copy()
    more[1, 2, 0] += 1
    plan = made()
    records = []
    for counts in (COUNTS, more):
        journal = MemoryJournal()
        session = opened(plan, journal, counts=counts)
        for question in QUESTIONS[:3]:
            session.ask(question)
        records.append([record for _, record in journal.history()])
    for one, other in zip(*records, strict=True):
        assert {key for key in one if one[key] != other[key]} <= {"gap"}
        assert abs(one["gap"] - other["gap"]) <= 1


def test_nothing_that_is_shown_holds_a_count() -> None:
    session = opened(made("cells", None), MemoryJournal())
    session.ask("sex = 'M'")
    shown = repr(session) + repr(session._private) + repr(session.plan) + repr(session._asking)
    assert "6000" not in shown and "3000" not in shown


@pytest.mark.slow
def test_known_tables_are_a_start_for_free() -> None:
    known = KnownTable(("age",), COUNTS.sum(axis=(0, 2)).astype(float), 2.0)
    pairs = KnownTable(("flag", "sex"), COUNTS.sum(axis=1).T.astype(float), 2.0)
    cold, warm = opened(made(), MemoryJournal()), opened(made(), MemoryJournal(), known=(known, pairs))
    for question, truth in (("age = 2", 7000), ("sex = 'M' and flag = 0", 6000)):
        assert abs(warm.estimate(question).value - truth) < 50 < abs(cold.estimate(question).value - truth)
    coarse = KnownTable(("age",), np.array([7000.0]), 2.0, (np.array([0] * 5 + [-1] * 5),))
    assert abs(opened(made(), MemoryJournal(), known=(coarse,)).estimate("age < 5").value - 7000) < 50
    total = opened(made("cells", None), MemoryJournal(), known=(KnownTable((), np.array(10_000.0), 0.5),))
    assert abs(total.estimate("true").value - 10_000) <= 3


@pytest.mark.parametrize("delta", [0.0, 1e-9])
@pytest.mark.parametrize("start", ["auto", "none"])
@pytest.mark.parametrize("shape", [(2,) * 10, (40, 40), (30,)])
def test_a_plan_costs_at_most_its_budget_and_most_of_it(delta: float, start: str, shape: tuple[int, ...]) -> None:
    axes = [Axis(f"c{i}", range(size)) for i, size in enumerate(shape)]
    plan = plan_query_session(axes, 1.0, delta, 0.03, 1000, 50_000, sensitivity=2, start=start)
    assert 0.98 < compose([plan.event]).epsilon_at(delta).upper <= 1.0
    assert plan.least_gain > 0 and plan.updates <= plan.most_updates
    assert QuerySessionPlan(**json.loads(json.dumps(plan.as_dict()))) == plan


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 1e-9])
@pytest.mark.parametrize("rows", [1_000_000, 2**53])
def test_no_round_is_paid_for_that_the_theorem_rules_out(rows: int, delta: float) -> None:
    plan = plan_query_session(2, 1.0, delta, 0.2, 100, rows, start="none")
    assert 1000 < plan.updates <= plan.most_updates <= 2**16


@pytest.mark.parametrize("number", ["rows", "queries"])
def test_numbers_beyond_all_tables_are_refused(number: str) -> None:
    numbers = {"queries": 100, "rows": 1000, number: 10**30}
    with pytest.raises(InvalidValue, match=rf"^{number}=.* from 1 to 2\^53"):
        plan_query_session(2, 1.0, 0.0, 0.2, numbers["queries"], numbers["rows"])


@pytest.mark.parametrize(("epsilon", "queries"), [(18.86931631639202, 1), (4.574885621493702, 1), (20.0, 2)])
def test_few_questions_and_much_budget_have_a_plan(epsilon: float, queries: int) -> None:
    plan = plan_query_session(2, epsilon, 1e-9, 0.2, queries, 10_000, sensitivity=2, updates=1)
    assert plan.split_budget.mechanism == "Laplace"


def test_an_alpha_that_no_budget_of_this_size_reaches_is_refused_with_the_least_that_works() -> None:
    with pytest.raises(Infeasible, match="must be at least") as refused:
        plan_query_session(1000, 0.1, 0.0, 1e-3, 1000, 10_000)
    assert refused.value.closest is not None
    plan = plan_query_session(1000, 0.1, 0.0, refused.value.closest * 1.001, 1000, 10_000)
    assert plan.updates == 1


def test_more_questions_than_planned_widen_the_error_of_paid_answers_only() -> None:
    plan = made()
    wider = [plan.reaches(doublings) for doublings in range(4)]
    assert len({thresholds for thresholds, _ in wider}) == 1
    assert sorted(questions for _, questions in wider) == [questions for _, questions in wider]
    assert wider[0][1] < wider[3][1]
    few = dataclasses.replace(plan, queries=1)
    session = opened(few, MemoryJournal())
    answers = [session.ask(question) for question in QUESTIONS[:3]]
    assert all(answer.error == few.error for answer in answers if not answer.paid)
    first, *_, last = (answer.error for answer in answers if answer.paid)
    assert first is not None and last is not None and first < last

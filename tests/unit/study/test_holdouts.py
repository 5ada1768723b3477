"""The reusable holdout of a study: expressions on rows in an engine, one charge, rounds in the ledger."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

import farthing as ft
from farthing.adaptive import Holdout
from farthing.errors import InvalidExpression, InvalidValue, SessionEnded
from farthing.ledger import open_ledger

ROWS = 2_000
SCHEMA = {"group": ["a", "b"], "score": (0.0, 1.0)}
OPTIONS: dict[str, Any] = {"corrections": 2, "queries": 50, "threshold": 0.2}


def people(share: float, **facts: Any) -> ft.Dataset:
    """`share` of the rows are in group a; scores are spread evenly, and every tenth is missing."""
    score = [None if i % 10 == 0 else i / ROWS for i in range(ROWS)]
    group = np.where(np.arange(ROWS) < share * ROWS, "a", "b")
    return ft.dataset(pyarrow.table({"group": group, "score": score}), schema=SCHEMA, **facts)


@pytest.fixture
def study(tmp_path: Path) -> Callable[..., ft.Study]:
    """The same ledger each time: 0.2 of the holdout rows are in group a."""

    def made(epsilon: float = 20.0, **facts: Any) -> ft.Study:
        held = people(0.2, **({"neighbours": "replace", "rows": ROWS} | facts))
        return ft.Study(held, epsilon, ledger=tmp_path / "study.db", account="held")

    return made


@pytest.mark.slow
def test_expressions_are_let_through_or_corrected_and_charged_once(study: Callable[..., ft.Study]) -> None:
    held = study()
    session = held.holdout(people(0.8), **OPTIONS)
    spent = held.budget.spent.upper
    assert 19.9 < spent <= 20.0
    free, paid = session.ask("score"), session.ask("group = 'a'")
    assert not free.paid and free.value == pytest.approx(0.45, abs=0.01)  # missing scores count as 0
    assert paid.paid and paid.value == pytest.approx(0.2, abs=0.02) and paid.training == pytest.approx(0.8)
    assert held.budget.spent.upper == spent
    held.ledger.verify()


def test_analysts_with_the_same_words_have_sessions_of_their_own(
    study: Callable[..., ft.Study], tmp_path: Path
) -> None:
    held = study()
    held.register()
    for name in ("ana", "ben"):
        held.ledger.grant("held", name, 5.0)
        with open_ledger(tmp_path / "study.db", actor=name, role="analyst") as own:
            theirs = ft.Study(held.dataset, 20.0, ledger=own, account="held")
            assert theirs.holdout(people(0.8), **OPTIONS, epsilon=5.0).corrections_left == 2
        assert held.ledger.budget("held", name).spent_upper > 4.9


@pytest.mark.slow
def test_a_session_is_taken_up_with_the_rounds_it_has_left(study: Callable[..., ft.Study]) -> None:
    first = study()
    first.holdout(people(0.8), **OPTIONS).ask("group = 'a'")
    spent = first.budget.spent.upper
    first.close()
    later = study()
    session = later.holdout(people(0.8), **OPTIONS)
    assert session.corrections_left == 1
    assert session.ask("group = 'b'").paid
    with pytest.raises(SessionEnded, match="all 2 corrections"):
        session.ask("score")
    assert later.budget.spent.upper == spent
    with pytest.raises(SessionEnded):
        later.holdout(people(0.8), **OPTIONS).ask("score")


def test_bad_questions_are_refused_and_change_nothing(study: Callable[..., ft.Study]) -> None:
    session = study().holdout(people(0.8), **OPTIONS)
    for bad in ("grupp = 'a'", "group = 'c'", "score >"):
        with pytest.raises(InvalidExpression):
            session.ask(bad)
    with pytest.raises(InvalidValue, match="must be an expression"):
        session.ask(lambda rows: rows)
    assert (session.questions, session.corrections_left) == (0, 2)


@pytest.mark.parametrize("facts", [{"rows": None}, {"neighbours": "add-remove", "rows": None}])
def test_rows_without_a_public_number_are_refused_before_anything_is_charged(
    study: Callable[..., ft.Study], facts: dict[str, Any]
) -> None:
    held = study(**facts)
    with pytest.raises(InvalidValue, match="public number of rows"):
        held.holdout(people(0.8), **OPTIONS)
    assert held.budget.spent.upper == 0


@pytest.mark.slow
def test_another_plan_under_the_same_request_id_is_refused(study: Callable[..., ft.Study]) -> None:
    held = study()
    held.holdout(people(0.8), epsilon=5.0, request_id="monday", **OPTIONS)
    with pytest.raises(InvalidValue, match="epsilon"):
        held.holdout(people(0.8), epsilon=6.0, request_id="monday", **OPTIONS)
    with pytest.raises(ft.FarthingError):
        held.holdout(people(0.8), request_id="monday", **(OPTIONS | {"corrections": 3}))
    assert held.holdout(people(0.8), request_id="monday", **OPTIONS).corrections_left == 2


def test_datasets_and_tables_do_not_mix() -> None:
    with pytest.raises(InvalidValue, match="same kind"):
        Holdout(people(0.8), np.ones(10), epsilon=1.0)


def test_groups_of_rows_are_no_independent_draws() -> None:
    held = people(0.2, neighbours="replace", rows=ROWS).group_privacy(3)
    with pytest.raises(InvalidValue, match="independent draws"):
        Holdout(people(0.2), held, epsilon=20.0)


@pytest.mark.slow
def test_a_number_beyond_the_unit_interval_is_clamped_by_the_engine() -> None:
    held = people(0.2, neighbours="replace", rows=ROWS)
    session = Holdout(people(0.2), held, epsilon=20.0, **OPTIONS)
    assert session.ask("10 * score - 4").value == pytest.approx(0.495, abs=0.01)
    assert session.ask("1 / (score - score)").value == 0.0


def test_a_script_that_is_run_again_gets_its_answers_and_no_correction_is_used_up(
    study: Callable[..., ft.Study],
) -> None:
    asked = ["score", "score > 0.9", "group = 'a'", "score  >  0.9"]

    def script(rows: float = 0.8) -> tuple[list[Any], int, int, int]:
        held = study()
        session = held.holdout(people(rows), **OPTIONS)
        answers = [session.ask(question) for question in asked]
        facts = session.questions, session.corrections_left, held.budget.count
        held.close()
        return answers, *facts

    answers, questions, left, _ = first = script()
    assert [answer.paid for answer in answers] == [False, False, True, False] and (questions, left) == (3, 1)
    assert script() == first
    asked.append("group = 'b'")  # a new question begins the next round, which is the last
    longer = script()
    assert longer[0][:4] == answers and longer[0][4].paid and longer[2] == 0
    assert script() == longer  # also when no correction is left
    asked[:] = ["score < 0.5"]
    with pytest.raises(SessionEnded):
        script()


def test_other_training_rows_make_another_question(study: Callable[..., ft.Study]) -> None:
    held = study()
    first = held.holdout(people(0.8), **OPTIONS).ask("group = 'a'")
    again = held.holdout(people(0.2), **OPTIONS)
    assert first.paid and not again.ask("group = 'a'").paid

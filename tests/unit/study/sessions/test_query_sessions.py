"""Online answers of a study: charged once, taken up by the same words, exact in the ledger whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from farthing.adaptive.query_session import QuerySession
from farthing.curator.private_counts import PrivateCells
from farthing.data import coded_rows
from farthing.data.coded_rows import coded_axes
from farthing.errors import (
    AnswerForfeited,
    BudgetExceeded,
    FarthingError,
    InvalidValue,
    NotAllowed,
    SessionEnded,
)
from farthing.ledger import open_ledger

Make = Callable[..., ft.Study]

ROWS = 2_000
SCHEMA: dict[str, Any] = {"sex": ["F", "M"], "age": (0, 39), "bmi": (10.0, 50.0)}
WORDS = {"alpha": 0.1, "queries": 50, "columns": ["sex", "age"], "rows": ROWS}
QUESTIONS = [f"age < {n}" for n in range(2, 40, 3)] + [f"sex = 'M' and age >= {n}" for n in range(0, 40, 4)]


@pytest.fixture(scope="module")
def people() -> ft.Dataset:
    """Half of them are of one age: no start from nothing is near."""
    rng = np.random.default_rng(11)
    age = np.where(rng.random(ROWS) < 0.5, 7, rng.integers(0, 40, ROWS))
    sex = np.where(rng.random(ROWS) < 0.8, "F", "M")
    table = pa.table({"sex": sex, "age": age, "bmi": rng.uniform(10, 50, ROWS)})
    return ft.dataset(table, schema=SCHEMA)


@pytest.fixture
def make(people: ft.Dataset, tmp_path: Path) -> Make:
    def made(epsilon: float = 1.0, delta: float = 0.0, **options: Any) -> ft.Study:
        settings = {"ledger": tmp_path / "study.db", "name": "people", **options}
        return ft.Study(settings.pop("dataset", people), epsilon, delta, **settings)

    return made


def _ended(session: QuerySession) -> list[str]:
    """Ask until the updates are used up; what was answered."""
    answered = []
    try:
        for question in QUESTIONS * 50:
            session.ask(question)
            answered.append(question)
    except SessionEnded:
        pass
    return answered


@pytest.mark.slow
def test_a_stream_is_charged_once_and_answered_within_its_error(make: Make) -> None:
    study = make(delta=1e-9)
    session = study.query_session(**WORDS)
    before = study.budget
    assert before.spent_upper == pytest.approx(1.0, abs=1e-3) and before.spent_upper <= 1.0
    found = [session.ask(question) for question in QUESTIONS[:8]]
    for question, answer in zip(QUESTIONS, found, strict=False):
        exact = study.dataset.where(question).exact({"n": ft.data.Count()})["n"]
        assert answer.error is not None and abs(answer.value - int(exact)) <= answer.error <= 400
    after = study.budget
    assert (after.spent_upper, after.remaining) == (before.spent_upper, before.remaining)
    assert study.ledger.verify().ok


def test_a_plan_spends_nothing_and_is_the_one_that_is_used(make: Make) -> None:
    study = make()
    plan = study.query_session_plan(**WORDS)
    assert study.budget.count == 0
    assert study.query_session(**WORDS).plan == plan
    assert study.query_session_plan(**WORDS) == plan  # of a session that was opened: what it was opened with


@pytest.mark.slow
@pytest.mark.parametrize("start", ["cells", "none"])
def test_the_same_words_take_the_session_up_where_it_was(make: Make, start: str) -> None:
    words = {**WORDS, "start": start}
    first = make(epsilon=20.0).query_session(**words)
    answers = {question: first.ask(question) for question in QUESTIONS[:6]}
    estimates = [first.estimate(question).value for question in QUESTIONS]
    study = make(epsilon=20.0)
    again = study.query_session(**words)
    assert [again.estimate(question).value for question in QUESTIONS] == estimates
    begun = again.updates
    assert all(again.ask(q) == answer for q, answer in answers.items())
    assert again.updates == begun and not again.running
    # The round that was running is lost, because its noise was in memory only.
    paid = sum(answer.paid for answer in answers.values())
    asked = [again.ask(question) for question in QUESTIONS[6:8]]
    running = not list(answers.values())[-1].paid
    assert again.updates == paid + running + sum(answer.paid for answer in asked)
    assert study.budget.spent_upper <= 20.0 and study.ledger.verify().ok


def test_a_spent_session_says_what_can_still_be_answered_and_the_ledger_is_exact(make: Make) -> None:
    study = make()
    session = study.query_session(**WORDS, updates=1, start="none")
    before = study.budget
    answered = _ended(session)
    with pytest.raises(SessionEnded, match="estimate") as caught:
        session.ask("sex = 'F' and age = 7")
    assert isinstance(caught.value, BudgetExceeded) and caught.value.rounds == 1
    assert session.updates_left == 0 and answered
    assert session.ask(answered[-1]).error is not None
    assert session.estimate("sex = 'F' and age = 7").error is None
    after = study.budget
    assert (after.spent_upper, after.remaining) == (before.spent_upper, before.remaining)
    notes = sum(not answer.paid for _, answer in session.answered)
    assert after.count <= 2 + notes and study.ledger.verify().ok  # the session, its one round, and what was free
    with pytest.raises(SessionEnded):
        make().query_session(**WORDS, updates=1, start="none").ask("sex = 'F' and age = 7")
    with pytest.raises(BudgetExceeded):
        study.query_session(**WORDS, request_id="another")
    assert study.budget.spent_upper == before.spent_upper


# The number of rows


@pytest.mark.slow
def test_rows_that_nobody_knows_are_counted_first_and_once(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    words = {**WORDS, "rows": None, "request_id": "monday"}
    study = make()
    with pytest.raises(InvalidValue, match="is not public; pass rows="):
        study.query_session_plan(**words)
    with monkeypatch.context() as broken:
        broken.setattr("farthing.study.sessions.query_sessions._remembered_plan", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            study.query_session(**words)
    assert study.budget.count == 1 and study.budget.spent_upper == pytest.approx(0.01)
    plan = study.query_session_plan(**words)
    session = study.query_session(**words)
    assert session.plan == plan and abs(plan.rows - ROWS) < 2_000
    assert study.budget.count == 2 and study.budget.spent_upper <= 1.0
    again = make().query_session(**words)
    assert again.plan == plan and study.budget.count == 2


@pytest.mark.slow
def test_a_count_that_was_lost_is_made_again_and_what_is_said_covers_it(make: Make) -> None:
    study = make()
    study.register()
    study.ledger.forfeit(study.ledger.charge("people", 0.1, request_id="rows of people"), "interrupted")
    session = study.query_session(**{**WORDS, "rows": None}, epsilon=0.5)
    assert study.ledger.stored("rows of people 2").charge.epsilon == pytest.approx(0.005)  # type: ignore[union-attr]
    assert session.plan.epsilon == pytest.approx(0.495) and study.budget.spent_upper <= 0.6


@pytest.mark.slow
def test_a_small_session_does_not_pay_for_the_count_of_a_large_one(make: Make) -> None:
    study = make(epsilon=10.0)
    study.query_session(**{**WORDS, "rows": None}, epsilon=8.0)
    assert study.budget.count == 2
    small = study.query_session(alpha=0.9, queries=2, columns=["sex"], epsilon=0.05)  # the count took 0.08
    assert small.plan.epsilon == 0.05 and study.budget.count == 3


def test_a_count_of_somebody_else_is_not_believed(make: Make, tmp_path: Path) -> None:
    study = make()
    study.register()
    study.ledger.grant("people", "eve", 0.1)
    with open_ledger(tmp_path / "study.db", actor="eve", role="analyst") as eve:
        charge = eve.charge("people", 0.0, request_id="rows of people")
        eve.release(charge, '{"answers":{"rows":{"shape":[],"values":[7]}},"finished":null}')
    assert study.query_session(**{**WORDS, "rows": None}).plan.rows > 1_000


def _interrupted(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


@pytest.mark.slow
def test_rows_that_are_public_are_not_counted(tmp_path: Path) -> None:
    table = pa.table({"age": [3] * ROWS})
    public = ft.dataset(table, schema={"age": (0, 9)}, neighbours="replace", rows=ROWS)
    study = ft.Study(public, 1.0, 1e-9, account="people", ledger=tmp_path / "study.db")
    session = study.query_session(alpha=0.2, queries=20)
    assert (session.plan.rows, session.plan.sensitivity, study.budget.count) == (ROWS, 2, 1)


# What is known already


@pytest.mark.slow
def test_earlier_releases_make_the_first_guess_better_and_are_found_again(make: Make) -> None:
    study = make(epsilon=3.0)
    release = study.plan(ft.histogram("age"), epsilon=1.0).release("monday")
    words = {**WORDS, "start": "none", "epsilon": 0.5}
    cold = study.query_session(**words).estimate("age = 7")
    warm = study.query_session(**words, known=release, request_id="tuesday")
    assert cold.value < 100 and abs(warm.estimate("age = 7").value - 1000) < 150
    again = make(epsilon=3.0).query_session(**words, request_id="tuesday")  # which releases it was is in the ledger
    assert again.estimate("age = 7") == warm.estimate("age = 7")
    with pytest.raises(InvalidValue, match="must be \\['monday'\\]"):
        study.query_session(**words, known=["monday", "monday"], request_id="tuesday")
    for wrong in ([3], ["never"], "tuesday"):
        with pytest.raises(InvalidValue):
            study.query_session(**words, known=wrong, request_id="wednesday")
        with pytest.raises(InvalidValue):
            study.query_session_plan(**words, known=wrong, request_id="wednesday")
    assert study.ledger.stored("wednesday") is None


def test_what_was_known_need_not_be_said_again(make: Make) -> None:
    study = make(epsilon=3.0)
    release = study.plan(ft.histogram("age"), epsilon=1.0).release("monday")
    words = {**WORDS, "start": "none", "epsilon": 0.5}
    warm = study.query_session(**words, known=release)
    spent = study.budget.spent_upper
    assert study.query_session(**words).estimate("age = 7") == warm.estimate("age = 7")
    assert study.budget.spent_upper == spent


@pytest.mark.slow
def test_a_table_that_is_another_than_the_plan_speaks_of_is_noticed(make: Make, tmp_path: Path) -> None:
    assert make().query_session(**WORDS).caution is None
    schema = {**SCHEMA, "sex": ["female", "male"]}
    other = ft.dataset(pa.table({"sex": ["F"] * ROWS, "age": [7] * ROWS, "bmi": [20.0] * ROWS}), schema=schema)
    told = make(dataset=other, ledger=tmp_path / "other.db").query_session(**WORDS).caution
    assert told is not None and "compare the categories" in told and "2,000" in told


# What is asked of the domain


def test_reals_need_bins_and_can_then_be_asked_at_their_edges(make: Make) -> None:
    study = make()
    with pytest.raises(InvalidValue, match=r"bins=\{'bmi': 20\}"):
        study.query_session(alpha=0.1, queries=50, rows=ROWS)
    session = study.query_session(alpha=0.2, queries=50, rows=ROWS, columns="bmi", bins={"bmi": [20.0, 25.0]})
    exact = int(study.dataset.where("bmi < 25").exact({"n": ft.data.Count()})["n"])
    assert abs(session.ask("bmi < 25").value - exact) <= 0.2 * ROWS
    with pytest.raises(FarthingError, match="cuts through the cell"):
        session.ask("bmi < 21")


def test_a_row_that_lacks_a_value_lies_in_no_cell() -> None:
    table = pa.table({"a": [None, *[True] * 999], "b": [*[True] * 999, None]})
    rows = ft.dataset(table, schema={"a": bool, "b": bool})
    assert PrivateCells(rows, coded_axes(rows.schema, missing=False))().tolist() == [[0, 0], [0, 998]]


def test_a_unit_with_several_rows_is_protected_as_a_whole(tmp_path: Path) -> None:
    table = pa.table({"person": [n // 3 for n in range(3000)], "a": [True] * 3000})
    visits = ft.dataset(table, unit="person", max_rows=3, schema={"a": bool})
    study = ft.Study(visits, 1.0, account="people", ledger=tmp_path / "study.db")
    assert study.query_session(alpha=0.3, queries=5, rows=3000).plan.sensitivity == 3


BAD = [
    ({"columns": ["sex", "height"]}, "columns='height': must be a column of the schema"),
    ({"columns": []}, "at least one column"),
    ({"bins": {"sex": 2}}, "categories of its own"),
    ({"bins": {"bmi": 4}}, "must be one of the columns"),
    ({"alpha": 0.0}, "alpha=0.0"),
    ({"alpha": float("nan")}, "alpha=nan"),
    ({"alpha": [0.1]}, "alpha="),
    ({"queries": True}, "queries=True"),
    ({"queries": 0}, "queries=0"),
    ({"rows": 0}, "rows=0"),
    ({"updates": 0}, "updates=0"),
    ({"start": "warm"}, "start='warm'"),
    ({"confidence": 1.0}, "confidence=1.0"),
    ({"alpha": 1e-4}, "must be at least"),
    ({"epsilon": 2.0}, "exceeds the 1 left"),
    ({"epsilon": "all"}, "epsilon='all'"),
    ({"epsilon": 10**400}, "epsilon=1000"),
    ({"epsilon": 1e-320}, "epsilon=1e-320: must be at least"),
    ({"request_id": " x"}, "no spaces around"),
    ({"request_id": "x" * 190}, "printable characters"),
    ({"request_id": 5}, "request_id=5: must be text"),
    ({"columns": 5}, "columns=5: must be names"),
    ({"bins": 5}, "bins=5: must say which column"),
    ({"known": 5}, "known=5: must be releases"),
]


def test_what_cannot_be_answered_is_refused_before_anything_is_charged(make: Make) -> None:
    study = make()
    for changed, rule in BAD:
        with pytest.raises(FarthingError, match=rule):
            study.query_session(**{**WORDS, **changed})
        if set(changed) & {"rows"} or changed == {"alpha": 1e-4}:
            continue
        with pytest.raises(FarthingError, match=rule):
            study.query_session(**{**WORDS, "rows": None, **changed})  # not even the rows are counted
    assert study.budget.count == 0


def test_a_plan_does_not_give_up_what_another_process_is_running(make: Make) -> None:
    study = make()
    study.register()
    study.ledger.charge("people", 0.5, request_id="theirs")
    with pytest.raises(InvalidValue, match="is being run by another process"):
        study.query_session_plan(**WORDS, request_id="theirs")
    assert study.ledger.stored("theirs").state == "reserved"  # type: ignore[union-attr]


def test_a_domain_that_is_too_large_is_refused_with_what_to_do(tmp_path: Path) -> None:
    names = [f"c{n}" for n in range(30)]
    wide = ft.dataset(pa.table({name: [True] for name in names}), schema=dict.fromkeys(names, bool))
    study = ft.Study(wide, 1.0, account="people", ledger=tmp_path / "study.db")
    with pytest.raises(InvalidValue, match=r"1,073,741,824 cells.*name fewer with columns="):
        study.query_session(alpha=0.1, queries=10, rows=1000)
    with pytest.raises(InvalidValue, match="at most 131,072 values"):
        many = ft.dataset(pa.table({"id": [1]}), schema={"id": (0, 10**9)})
        ft.Study(many, 1.0, ledger=tmp_path / "study.db", account="many").query_session(alpha=0.1, queries=9, rows=99)
    assert study.budget.count == 0


def test_a_bad_question_changes_nothing(make: Make) -> None:
    study = make()
    session = study.query_session(**WORDS)
    head, asked = study.ledger.verify().head, session.questions
    for question in ("height > 3", "age <", "age + 1", {"height": 3}, {"age": 99}, [1, 0], "", 7, None):
        with pytest.raises(FarthingError):
            session.ask(question)  # type: ignore[arg-type]
    assert study.ledger.verify().head == head and session.questions == asked
    assert session.ask("age < 5").error is not None


# Who asks


def test_another_plan_under_the_same_name_is_refused(make: Make) -> None:
    study = make()
    study.query_session(**WORDS, request_id="monday")
    before = study.ledger.verify().head
    for changed, rule in (
        ({"alpha": 0.2}, "alpha=0.2: must be 0.1, with which the session 'monday' was opened"),
        ({"queries": 60}, "queries=60: must be 50"),
        ({"columns": ["age"]}, r"must be \['sex', 'age'\]"),
        ({"rows": 1999}, "rows=1999: must be 2000"),
        ({"epsilon": 0.5}, "epsilon=0.5: must be None"),
        ({"bins": {"age": 4}}, "with which the session 'monday' was opened"),
        ({"start": "none"}, "start='none': must be 'auto'"),
    ):
        with pytest.raises(InvalidValue, match=rule):
            study.query_session(**{**WORDS, **changed}, request_id="monday")
    assert study.ledger.verify().head == before


def test_the_name_of_something_else_is_refused(make: Make) -> None:
    study = make()
    study.plan(ft.count(), epsilon=0.1).release("monday")
    with pytest.raises(InvalidValue, match="something else"):
        study.query_session(**WORDS, request_id="monday")
    study.monitor("age < 5", threshold=900, alerts=1, epsilon=0.1, request_id="tuesday")
    with pytest.raises(InvalidValue, match="another kind of session"):
        study.query_session(**WORDS, request_id="tuesday")
    assert study.budget.spent_upper < 0.3


def test_an_analyst_needs_a_grant_and_an_auditor_may_not_ask(make: Make, tmp_path: Path) -> None:
    study = make()
    study.register()
    study.ledger.grant("people", "bob", 0.5)
    place = tmp_path / "study.db"
    with open_ledger(place, actor="bob", role="analyst") as own:
        study = make(ledger=own, analyst="bob")
        study.query_session(**WORDS).ask("age < 5")
        assert study.budget.spent_upper == pytest.approx(0.5, abs=1e-3)
    with open_ledger(place, actor="eve", role="analyst") as own, pytest.raises(FarthingError, match="grant"):
        make(ledger=own, analyst="eve").query_session(**WORDS)
    with open_ledger(place, actor="ann", role="auditor") as own, pytest.raises(NotAllowed):
        make(ledger=own).query_session(**WORDS)
    assert make().budget.spent_upper == pytest.approx(0.5, abs=1e-3)


def test_a_secret_sample_cannot_be_asked(people: ft.Dataset, tmp_path: Path) -> None:
    study = ft.Study(people, 1.0, 1e-9, account="people", ledger=tmp_path / "study.db", sampling_rate=0.1)
    with pytest.raises(InvalidValue, match="holds for one release"):
        study.query_session(**WORDS)
    assert study.budget.count == 0


@pytest.mark.slow
def test_a_session_and_its_rounds_are_no_releases(make: Make) -> None:
    study = make()
    study.plan(ft.count(), epsilon=0.1).release("monday")
    study.query_session(**{**WORDS, "alpha": 0.3}, request_id="tuesday").ask("age < 5")
    assert study.releases() == ["monday"]
    with pytest.raises(InvalidValue, match="release of statistics"):
        study.released("tuesday")


# Failures of the engine


def test_an_engine_that_fails_in_the_opening_leaves_the_charge_without_a_word(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = make()
    with monkeypatch.context() as broken:
        broken.setattr(coded_rows, "run", _failing)
        with pytest.raises(AnswerForfeited) as caught:
            study.query_session(**WORDS, start="cells", request_id="monday")
    assert "4711" not in str(caught.value)
    assert study.budget.spent_upper == pytest.approx(1.0, abs=1e-3)
    with pytest.raises(AnswerForfeited):
        study.query_session(**WORDS, start="cells", request_id="monday")


def test_an_engine_that_fails_later_uses_nothing_up(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    make().query_session(**WORDS)
    study = make()
    session = study.query_session(**WORDS)
    head = study.ledger.verify().head
    with monkeypatch.context() as broken:
        broken.setattr(coded_rows, "run", _failing)
        with pytest.raises(FarthingError) as caught:
            session.ask("age < 5")
    assert "4711" not in str(caught.value) and caught.value.__context__ is None
    assert study.ledger.verify().head == head
    assert session.ask("age < 5").error is not None


def _failing(*_: Any, **__: Any) -> Any:
    raise ValueError("secret 4711")


def test_what_holds_private_counts_does_not_show_them(make: Make) -> None:
    session = make().query_session(**WORDS)
    session.ask("age < 5")
    assert (repr(session._private), repr(session._fetch)) == ("Cells(2 x 40)", "PrivateCells(sex, age)")


SURE = {**WORDS, "alpha": "guaranteed", "queries": 10}


def test_a_guaranteed_session_is_planned_opened_and_taken_up_by_the_same_words(make: Make) -> None:
    study = make()
    plan = study.query_session_plan(**SURE)
    assert 0 < plan.alpha < 0.5 and plan.updates == 10 and str(plan.guarantee) in str(plan)
    session = study.query_session(**SURE)
    assert session.plan.as_dict() == plan.as_dict() and session.caution is None
    for age in range(10):
        session.ask(f"age = {age}")
    spent = study.ledger.budget("people").spent_upper
    assert study.query_session_plan(**SURE).as_dict() == plan.as_dict()
    assert study.query_session(**SURE).plan.guaranteed
    assert study.ledger.budget("people").spent_upper == spent
    study.close()


def test_a_session_with_a_number_for_alpha_is_not_resumed_as_a_guaranteed_one(make: Make) -> None:
    study = make()
    study.query_session(**WORDS, request_id="mine")
    with pytest.raises(InvalidValue, match=r"alpha='guaranteed': must be 0\.1"):
        study.query_session_plan(**{**SURE, "queries": 50}, request_id="mine")
    study.close()


def test_a_guaranteed_session_chooses_its_updates_and_its_start(make: Make) -> None:
    study = make()
    known = study.plan(ft.count(by="sex"), epsilon=0.1).release().request_id
    for name, value in {"updates": 3, "start": "cells", "known": known}.items():
        with pytest.raises(InvalidValue, match=rf'^{name}=.*cannot be .* with alpha="guaranteed"'):
            study.query_session_plan(**SURE, **{name: value})
    study.close()

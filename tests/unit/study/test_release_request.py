"""A release is named by what it asks: the same script returns the stored answers, and nobody pays twice by accident."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pytest

import farthing as ft
from farthing.curator import Curator
from farthing.data.engines.duckdb import quiet
from farthing.errors import AnswerForfeited, BudgetExceeded, Infeasible, InvalidValue
from farthing.statistics.measurements import Measurements
from farthing.study import release_request
from farthing.study.sessions import query_sessions
from study_people import SCHEMA, table

Make = Callable[..., ft.Study]


def one_by_sex(study: ft.Study) -> ft.study.Release:
    return study.plan(ft.count(by="sex")).release()


def a_part(study: ft.Study) -> ft.study.Release:
    return study.plan(ft.count(by="sex"), epsilon=0.3).release()


def required(study: ft.Study) -> ft.study.Release:
    plan = study.plan(ft.count(by="sex"), ft.sum("age"), expected={"rows": 400})
    print(plan)
    return plan.require("count by sex", within=6).weight("sum of age", 3.0).release()


def held(study: ft.Study) -> ft.study.Release:
    plan = study.plan(ft.count(by="sex"), ft.sum("age"), ft.count(where="age < 30"))
    return plan.weight("count by sex", 5.0).hold("count by sex").weight("sum of age", 9.0).release()


def fitted(study: ft.Study) -> ft.study.Release:
    return study.fit(ft.count(by="sex"), ft.sum("age"), require={"count by sex": 40, "sum of age": 2000}).release()


def reserved(study: ft.Study) -> ft.study.Release:
    return study.plan(ft.count(), ft.sum("age")).reserve(epsilon=0.4).release()


def named(study: ft.Study) -> ft.study.Release:
    return study.plan(ft.count(), ft.sum("age")).weight("count", 4.0).release("march")


SCRIPTS = (one_by_sex, a_part, required, held, fitted, reserved, named)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "delta"),
    [
        *((script, 0.0) for script in SCRIPTS),
        *(pytest.param(script, 1e-9, marks=pytest.mark.slow) for script in (required, fitted, reserved)),
    ],
)
def test_the_same_script_again_returns_the_stored_answers(make_study: Make, script: Any, delta: float) -> None:
    first = script(make_study(delta=delta))
    spent = make_study(delta=delta).budget
    again = script(make_study(delta=delta))
    assert again.repeated and not first.repeated and again.request_id == first.request_id
    assert again.records() == first.records()
    assert make_study(delta=delta).budget.spent_upper == spent.spent_upper and spent.count == 1


@pytest.mark.slow
def test_so_does_one_whose_budget_others_have_spent_meanwhile(make_study: Make) -> None:
    """What is left is no part of what is asked: here it is less, and the required error cannot be met with it."""
    first = required(make_study().plan(ft.count(), epsilon=0.1).release() and make_study())
    other = make_study()
    with pytest.raises((BudgetExceeded, Infeasible)):
        other.plan(ft.histogram("age", bins=5))
    assert required(other).request_id == first.request_id and other.budget.count == 2


@pytest.mark.slow
def test_a_plan_that_was_released_says_so_as_it_was(make_study: Make) -> None:
    study = make_study()
    first = study.plan(ft.count(by="sex"), ft.sum("age")).weight("sum of age", 2.0)
    assert first.earlier is None and "nothing is spent yet" in str(first)
    first.release()
    again = make_study().plan(ft.count(by="sex"), ft.sum("age"))
    told = " ".join(str(again).split())
    assert "it no longer fits the budget" in told
    again = again.weight("sum of age", 2.0)
    told = " ".join(str(again).split())
    assert "cost: nothing. It was released before, for epsilon 1" in told and "release(fresh=True)" in told
    assert [one.standard_error for one in again.statistics] == [one.standard_error for one in first.statistics]
    assert again.to_dict()["released"] and again.to_dict()["request_id"] == first.request_id


@pytest.mark.slow
def test_what_is_shown_for_an_earlier_budget_is_not_released_for_another(make_study: Make) -> None:
    make_study().plan(ft.count(), ft.sum("age")).require("count", within=5).release()
    study = make_study()
    plan = study.plan(ft.count(), ft.sum("age"))
    for options in ({}, {"fresh": True}, {"request_id": "mine"}):
        with pytest.raises(InvalidValue, match="no longer fits the budget"):
            plan.release(**options)  # type: ignore[arg-type]
    with pytest.raises((BudgetExceeded, Infeasible)):
        plan.require("count", within=6)
    assert study.budget.count == 1


@pytest.mark.slow
def test_other_words_are_another_release(make_study: Make, people: Any) -> None:
    study = make_study(10.0)
    plan = study.plan(ft.count(by="sex"), ft.sum("age"), epsilon=1.0)
    others = [
        study.plan(ft.count(by="sex"), ft.sum("age"), epsilon=1.5),
        study.plan(ft.count(by="sex"), ft.sum("age"), epsilon=1.0, expected={"rows": 400}),
        study.plan(ft.count(by="sex"), ft.sum("age", where="age < 50"), epsilon=1.0),
        study.plan(ft.count(by="sex", name="people"), ft.sum("age"), epsilon=1.0),
        plan.weight("sum of age", 2.0),
        plan.require("sum of age", within=900),
        plan.require("sum of age", within=901),
        plan.reserve(epsilon=0.5),
        plan.hold("sum of age"),
    ]
    ids = [one.request_id for one in (plan, *others)]
    assert len(set(ids)) == len(ids)
    narrower = ft.Study(people.where("age < 50"), 10.0, ledger=study.ledger, account="people")
    assert narrower.plan(ft.count(by="sex"), ft.sum("age"), epsilon=1.0).request_id not in ids
    clipped = ft.dataset(table(), schema={**SCHEMA, "age": (0, 99)})
    other = ft.Study(clipped, 10.0, ledger=study.ledger, account="people")
    assert other.plan(ft.count(by="sex"), ft.sum("age"), epsilon=1.0).request_id not in ids


def test_a_public_table_that_says_something_else_is_other_words(make_study: Make, people: Any) -> None:
    """Steps look alike in the chain of stabilities; what they do is part of the words."""
    study, ids = make_study(), set()
    for west in (["F"], ["M"]):
        regions = [{"sex": sex, "west": sex in west} for sex in ("F", "M")]
        joined = people.join(regions, on="sex", schema={"west": bool})
        ids.add(ft.Study(joined, 1.0, ledger=study.ledger, account="people").plan(ft.count(by="west")).request_id)
    assert len(ids) == 2


@pytest.mark.slow
def test_the_order_of_controls_is_no_part_of_the_words(make_study: Make) -> None:
    study = make_study()
    plan = study.plan(ft.count(by="sex"), ft.sum("age"))
    one = plan.weight("sum of age", 2).require("count by sex", within=20)
    other = plan.weight("sum of age", 7.0).require("count by sex", 20.0).weight("sum of age", 2.0)
    assert one.request_id == other.request_id != plan.request_id
    assert plan.weight("sum of age", 1.0).request_id == plan.request_id


@pytest.mark.slow
def test_the_order_of_statistics_and_declarations_is_no_part_of_the_words(tmp_path: Path) -> None:
    """A script whose lines were put in another order was charged again."""
    asked = [ft.count(by="sex"), ft.sum("age"), ft.count(where="age < 30")]
    released = []
    for turn in (1, -1):
        schema = dict(list(SCHEMA.items())[::turn])
        made = ft.dataset(table(), unit=["age", "sex"][::turn], max_rows=1, schema=schema, name="people")
        with ft.open_ledger(tmp_path / "study.db") as ledger:
            study = ft.Study(made, 1.0, ledger=ledger)
            plan = study.plan(*asked[::turn], epsilon=0.3).weight("sum of age", 3)
            errors = {statistic.name: statistic.error() for statistic in plan.statistics}
            released.append((errors, {name: str(answer) for name, answer in plan.release().items()}))
            assert study.budget.count == 1
    assert released[0] == released[1]


@pytest.mark.slow
def test_a_fresh_draw_needs_a_word_and_pays_again(make_study: Make) -> None:
    study = make_study()
    first = a_part(study)
    fresh = study.plan(ft.count(by="sex"), epsilon=0.3).release(fresh=True)
    assert not fresh.repeated and fresh.request_id != first.request_id
    assert study.budget.count == 2 and study.budget.spent_upper == pytest.approx(0.6, abs=1e-6)
    assert a_part(study).request_id == first.request_id and study.budget.count == 2
    with pytest.raises(InvalidValue, match="a fresh release needs a new one"):
        study.plan(ft.count(by="sex"), epsilon=0.3).release(first.request_id, fresh=True)


def test_a_fresh_draw_that_does_not_fit_is_refused(make_study: Make) -> None:
    study = make_study()
    one_by_sex(study)
    with pytest.raises(BudgetExceeded):
        study.plan(ft.count(by="sex")).release(fresh=True)
    assert study.budget.count == 1


def test_a_charge_without_an_answer_is_neither_paid_nor_drawn_again(
    make_study: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever charged may be gone or may still run: nothing is given up, and a new draw needs a word."""
    monkeypatch.setattr(release_request, "PATIENCE", 0.0)
    study = make_study()
    plan = study.plan(ft.count(), epsilon=0.5)
    study.register()
    charge = study.ledger.charge("people", plan.measurements.event, request_id=plan.request_id)
    for again in (plan, make_study().plan(ft.count(), epsilon=0.5)):
        with pytest.raises(InvalidValue, match=r"has no answer yet.*use release\(fresh=True\)"):
            again.release()
    assert study.ledger.stored(plan.request_id).state == "reserved" and study.budget.count == 1  # type: ignore[union-attr]
    study.ledger.forfeit(charge, "stopped")
    with pytest.raises(AnswerForfeited, match=r"For new noise, which is charged again, use release\(fresh=True\)"):
        plan.release()
    assert not make_study().plan(ft.count(), epsilon=0.5).release(fresh=True).repeated
    assert study.budget.count == 2


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 0.5])
def test_processes_that_run_the_same_script_at_once_pay_once(
    make_study: Make, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """One has looked and planned when the other charges; it may be answered by then, or half a second later."""
    ours, theirs = make_study(), make_study()
    plan, other = (
        study.plan(ft.count(by="sex"), ft.sum("age"), expected={"rows": 400}).require("count by sex", within=6)
        for study in (ours, theirs)
    )
    found: list[ft.study.Release] = []
    charge, draw, charged = Curator._charge, Measurements.run, threading.Event()

    def after_them(curator: Curator, *words: Any) -> Any:
        if curator.ledger is ours.ledger:
            thread = threading.Thread(target=lambda: found.append(other.release()))
            thread.start()
            thread.join() if not seconds else charged.wait()
            return charge(curator, *words)
        charge_of_theirs = charge(curator, *words)
        charged.set()
        return charge_of_theirs

    def slowly(*words: Any) -> Any:
        time.sleep(seconds)
        return draw(*words)

    monkeypatch.setattr(Curator, "_charge", after_them)
    monkeypatch.setattr(Measurements, "run", slowly)
    monkeypatch.setattr("farthing.curator.curator._turn_of", lambda *_: nullcontext())  # as in two processes
    release = plan.release()
    assert release.repeated and not found[0].repeated and release.records() == found[0].records()
    assert make_study().budget.count == 1


@pytest.mark.slow
def test_analysts_with_the_same_words_have_releases_of_their_own(make_study: Make) -> None:
    study = make_study()
    study.register()
    for name in ("ana", "ben"):
        study.ledger.grant("people", name, 0.4)
    ids = {a_part(make_study(analyst=name)).request_id for name in ("ana", "ben", "ana")}
    assert len(ids) == 2 and study.budget.count == 2


@pytest.mark.slow
def test_a_study_in_python_and_in_a_file_ask_for_the_same(make_study: Make) -> None:
    from farthing.study.documents.study_document import plan_description, plan_of

    study = make_study()
    first = study.plan(ft.count(by="sex"), ft.sum("age")).weight("sum of age", 2.0).release()
    entries = [{"kind": "count", "by": "sex"}, {"kind": "sum", "column": "age", "weight": 2}]
    assert plan_of(study, plan_description(entries), again=True).release().request_id == first.request_id


@pytest.mark.slow
def test_two_tables_under_one_name_are_two_requests(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "registry.db") as connection:
        connection.execute("CREATE TABLE small AS SELECT 1 AS age")
        connection.execute("CREATE TABLE large AS SELECT 1 AS age FROM range(100000)")
    backend = ibis.duckdb.connect(tmp_path / "registry.db", read_only=True)
    with quiet(), ft.open_ledger(tmp_path / "study.db") as ledger:
        for named in ({}, {"name": "census"}):
            found = []
            for table in ("small", "large", "small"):
                rows = ft.dataset(backend.table(table), schema={"age": (0, 110)}, **named)
                study = ft.Study(rows, epsilon=30.0, ledger=ledger, account="census")
                found.append(study.plan(ft.count(), epsilon=1.0 - 0.1 * len(named)).release())
            assert [release.repeated for release in found] == [False, False, True]
            assert [bool(release["count"].values > 1000) for release in found] == [False, True, False]
    backend.disconnect()


@pytest.mark.parametrize(
    "steps",
    [
        [
            ("derive", {"x": "age + 1"}),
            ("derive", {"x": ("age + 1", (0, 50))}),
            ("derive", {"x": ("age + 1", (0, 51))}),
        ],
        [
            ("clip", {"age": (0, 50)}),
            ("clip", {"age": (0, 51)}),
            ("bin", {"age": 5}),
            ("bin", {"age": [0, 11, 110]}),
        ],
    ],
)
def test_what_was_done_to_the_rows_is_asked_too(tmp_path: Path, steps: list[tuple[str, Any]]) -> None:
    rows = ft.dataset(table(), schema=SCHEMA)
    found = set()
    for step, words in steps:
        study = ft.Study(getattr(rows, step)(**words), epsilon=1.0, ledger=tmp_path / "study.db", account="people")
        found.add(study.plan(ft.count(where="sex = 'F'"), epsilon=0.5).request_id)
    assert len(found) == len(steps)


def _file(folder: Path, name: str, rows: int) -> str:
    (folder / name).mkdir(exist_ok=True)
    path = folder / name / "v.csv"
    path.write_text("age\n" + "30\n" * rows, encoding="utf-8")
    return str(path)


@pytest.mark.slow
def test_two_files_of_one_name_share_a_budget_and_no_answer(tmp_path: Path) -> None:
    """Planned before either is released, and found again by each of them, also where it was moved or replaced."""
    schema = {"age": (0, 110)}

    def opened(path: str) -> ft.Study:
        return ft.Study(ft.dataset(path, schema=schema), 400.0, ledger=tmp_path / "study.db")

    paths = [_file(tmp_path, name, rows) for name, rows in (("a", 100), ("b", 900))]
    studies = [opened(path) for path in paths]
    asked = ft.count(), ft.count(where="age > 20")
    plans = [study.plan(*asked, epsilon=50.0) for study in studies]
    few, many = (plan.release() for plan in plans)
    assert studies[0].name == studies[1].name == "v.csv"
    assert few["count"].values < 150 and many["count"].values > 850
    assert few.request_id != many.request_id and studies[0].budget.count == 2
    for path, first in zip(paths, (few, many), strict=True):
        again = opened(path).plan(*asked, epsilon=50.0)
        assert (again.request_id, again.release().records()) == (first.request_id, first.records())
    with pytest.raises(InvalidValue, match="was charged before for something else"):
        studies[1].plan(*asked, epsilon=50.0).release(few.request_id)
    rows = [study.count_rows(share=0.1) for study in studies]
    assert rows[0].upper < 150 and rows[1].lower > 850
    assert [study.count_rows().values for study in studies] == [one.values for one in rows]
    words: dict[str, Any] = {"columns": ["age"], "epsilon": 50.0}
    sessions = [study.query_session(0.3, 3, **words) for study in studies]
    assert [round(session.ask("age > 20").value, -2) for session in sessions] == [100, 900]
    watches = [study.monitor("age > 20", threshold=500, alerts=1, epsilon=20.0) for study in studies]
    assert [bool(watch.look()) for watch in watches] == [False, True]
    charges = studies[0].budget.count
    opened(paths[1]).query_session(0.3, 3, **words)  # taken up
    with pytest.raises(InvalidValue, match="another table"):
        opened(paths[0]).query_session(
            0.3, 3, **words, request_id=query_sessions.QuerySessionOptions(0.3, 3, **words).name(studies[1])
        )
    moved = Path(paths[1]).rename(tmp_path / "v.csv")
    assert opened(str(moved)).plan(*asked, epsilon=50.0).release().records() == many.records()
    assert studies[0].budget.count == charges


@pytest.mark.slow
def test_the_order_of_the_columns_of_a_unit_says_nothing(tmp_path: Path) -> None:
    table = pa.table({"site": [1, 1], "person": [1, 2], "age": [30, 40]})

    def released(unit: list[str]) -> tuple[str, int]:
        data = ft.dataset(table, unit=unit, max_rows=1, schema={"age": (0, 110)})
        study = ft.Study(data, 5.0, ledger=tmp_path / "study.db", account="visits")
        release = study.plan(ft.count(), epsilon=1.0).release()
        study.monitor("age > 20", threshold=5, alerts=1, epsilon=1.0)
        return release.request_id, study.budget.count

    assert released(["site", "person"]) == released(["person", "site"])


@pytest.mark.slow
@pytest.mark.parametrize("names", [("people.csv", "link.csv"), ("link.csv", "people.csv")])
def test_the_same_question_through_a_link_has_the_stored_answer(tmp_path: Path, names: tuple[str, str]) -> None:
    (tmp_path / "people.csv").write_text("age\n30\n41\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "people.csv")
    with ft.open_ledger(tmp_path / "study.db") as ledger:
        people = [ft.dataset(tmp_path / name, schema={"age": (0, 110)}) for name in names]
        studies = [ft.Study(each, 1.0, ledger=ledger, account="people") for each in people]
        first, second = (study.plan(ft.count(), epsilon=0.2).release() for study in studies)
        assert (second.request_id, second.repeated) == (first.request_id, True)
        assert ledger.budget("people").count == 1

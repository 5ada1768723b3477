"""Monitors of a study: one charge, rounds in the ledger, restarts, and what is refused before anything is spent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as ft
from farthing.errors import BudgetExceeded, InvalidExpression, InvalidValue, NotAllowed, TableChanged
from farthing.ledger import open_ledger
from study_people import SCHEMA, table

MakeStudy = Callable[..., ft.Study]
ASKED: dict[str, Any] = {"by": "sex", "threshold": 100_000, "alerts": 3}


def cases(folder: Path, north: int, south: int) -> Path:
    path = folder / "cases.parquet"
    pq.write_table(pa.table({"region": ["north"] * north + ["south"] * south}), path)
    return path


@pytest.fixture
def growing(tmp_path: Path) -> ft.Study:
    dataset = ft.dataset(cases(tmp_path, 100, 100), schema={"region": ["north", "south"]})
    return ft.Study(dataset, 2.0, 1e-9, account="people", ledger=tmp_path / "cases.db")


@pytest.mark.slow
def test_a_plan_spends_nothing_and_a_monitor_what_the_plan_said(make_study: MakeStudy) -> None:
    study = make_study(delta=1e-9)
    plan = study.monitor_plan(**ASKED, epsilon=0.5)
    assert study.budget.count == 0
    assert plan.monotone and plan.l1_sensitivity == 1
    watching = study.monitor(**ASKED, epsilon=0.5)
    assert watching.plan == plan
    assert study.budget.spent_upper == pytest.approx(0.5, abs=1e-6)
    for _ in range(5):
        assert not watching.look()
    assert study.budget.spent_upper == pytest.approx(0.5, abs=1e-6)
    assert study.ledger.verify().entries > 0


@pytest.mark.slow
def test_a_monitor_may_have_all_that_is_left(make_study: MakeStudy) -> None:
    study = make_study(epsilon=3.0, delta=1e-6)
    study.plan(ft.count(by="sex"), epsilon=0.3).release()
    study.plan(ft.mean("age"), epsilon=0.7).release()
    study.monitor(by="sex", threshold=100_000, alerts=1)
    assert study.budget.remaining.epsilon < 1e-6


def test_series_and_thresholds_may_be_given_in_many_ways(make_study: MakeStudy) -> None:
    study = make_study()
    listed = study.monitor_plan(["age < 18", "age >= 65"], threshold={"count where age < 18": 20, None: 30}, alerts=1)
    assert [one.name for one in listed.series] == ["count where age < 18", "count where age >= 65"]
    assert listed.thresholds == (20, 30)
    both = study.monitor_plan(ft.count(by="sex"), "age < 18", threshold={"F": 7.5, "M": 9, None: 1}, alerts=1)
    assert both.thresholds == (8, 9, 1)
    cells = study.monitor_plan(by=["sex", "age"], threshold={("F", 3): 5, "M, 4": 6, None: 2}, alerts=1)
    assert sorted(set(cells.thresholds)) == [2, 5, 6] and len(cells.series) == 222


@pytest.mark.slow
def test_new_rows_raise_an_alert_and_other_series_stay_quiet(growing: ft.Study, tmp_path: Path) -> None:
    watching = growing.monitor(by="region", threshold=1_000, alerts=2)
    assert not watching.look()
    cases(tmp_path, 20_000, 100)
    (alert,) = watching.look()
    assert alert.series == "count by region: north"
    assert abs(alert.estimate - 20_000) < 1_000
    assert not watching.look()  # muted
    assert watching.alerts_left == 1


@pytest.mark.slow
def test_a_look_may_be_at_a_part_of_the_rows_or_at_another_table(growing: ft.Study) -> None:
    watching = growing.monitor(threshold=10_000, alerts=2, mute=False)
    big = ft.dataset(pa.table({"region": ["north"] * 40_000}), schema={"region": ["north", "south"]})
    assert len(watching.look(big)) == 1
    assert len(watching.look(big, where="region = 'south'")) == 0
    for wrong in (
        ft.dataset(pa.table({"region": ["north"]}), schema={"region": ["north"]}),
        ft.dataset(pa.table({"region": ["north"]}), schema={"region": ["north", "south"]}).group_privacy(2),
        pa.table({"region": ["north"]}),
    ):
        with pytest.raises(InvalidValue):
            watching.look(wrong)
    with pytest.raises((InvalidValue, InvalidExpression)):
        watching.look(where="nothing = 3")
    assert watching.alerts_left == 1


@pytest.mark.slow
def test_the_same_words_take_up_the_same_monitor_and_lose_the_running_round(growing: ft.Study, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"by": "region", "threshold": 1_000, "alerts": 3, "epsilon": 1.0}
    first = growing.monitor(**asked)
    cases(tmp_path, 20_000, 100)
    assert len(first.look()) == 1
    assert not first.look()
    spent = growing.budget.spent_upper
    with open_ledger(tmp_path / "cases.db") as ledger:  # as another process would
        again = ft.Study(growing.dataset, 2.0, 1e-9, account="people", ledger=ledger).monitor(**asked)
        assert again.plan == first.plan
        assert again.alerts == first.alerts
        assert not again.look(fresh=True)
        assert again.alerts_left == 1
        assert ledger.budget("people").spent_upper == spent
        cases(tmp_path, 20_000, 20_000)
        assert len(again.look()) == 1
        assert len(first.look()) == 0  # what the other has reported is muted here, too
        third = ft.Study(growing.dataset, 2.0, 1e-9, account="people", ledger=ledger).monitor(**asked)
        assert [alert.series for alert in third.alerts] == [
            "count by region: north",
            "count by region: south",
        ]
        assert third.watched == []
        ledger.verify()


@pytest.mark.slow
def test_the_name_of_another_session_is_refused(growing: ft.Study) -> None:
    growing.query_session(alpha=0.5, queries=10, rows=1_000, epsilon=0.5, request_id="asking")
    with pytest.raises(InvalidValue, match="session of another kind"):
        growing.monitor(threshold=1_000, alerts=2, request_id="asking")


@pytest.mark.slow
def test_a_session_name_holds_for_one_monitor(growing: ft.Study) -> None:
    growing.monitor(threshold=1_000, alerts=2, epsilon=0.5, request_id="cases")
    spent = growing.budget.spent_upper
    for changed in ({"threshold": 999}, {"alerts": 3}, {"by": "region"}):
        asked: dict[str, Any] = {"threshold": 1_000, "alerts": 2, "epsilon": 0.5, **changed}
        with pytest.raises(InvalidValue, match="charged before for something else"):
            growing.monitor(**asked, request_id="cases")
    with pytest.raises(InvalidValue, match=r"epsilon=0.3: must be 0.5"):
        growing.monitor(threshold=1_000, alerts=2, epsilon=0.3, request_id="cases")
    with pytest.raises(InvalidValue, match="charged before for something else"):
        growing.monitor(ft.count(where="region = 'north'", name="count"), threshold=1_000, alerts=2, request_id="cases")
    assert growing.monitor(threshold=1_000, alerts=2, request_id="cases").plan.epsilon == 0.5
    assert growing.budget.spent_upper == spent


@pytest.mark.parametrize(
    ("series", "changed"),
    [
        (["nothing < 3"], {}),
        (["age <"], {}),
        ([ft.mean("age")], {}),
        ([ft.count(by="sex")], {"by": "sex"}),
        (["age < 3", "age < 3"], {}),
        ([], {"by": "income"}),
        ([], {"by": "nobody"}),
        ([], {"threshold": {"F": 3}}),
        ([], {"threshold": {"F": 3, "M": 3, "X": 3}}),
        ([], {"threshold": float("nan")}),
        ([], {"threshold": "many"}),
        ([], {"alerts": 0}),
        ([], {"steps": -1}),
        ([], {"epsilon": 0.0}),
        ([], {"epsilon": 5.0}),
    ],
)
def test_what_cannot_be_watched_is_refused_before_anything_is_charged(
    make_study: MakeStudy, series: list[Any], changed: dict[str, Any]
) -> None:
    study = make_study()
    asked = {**ASKED, **({"by": None} if series else {}), **changed}
    with pytest.raises((InvalidValue, InvalidExpression, BudgetExceeded)):
        study.monitor(*series, **asked)
    assert study.budget.count == 0


def test_a_secret_sample_and_an_auditor_have_no_monitor(make_study: MakeStudy, tmp_path: Path) -> None:
    people = ft.dataset(table(), schema=SCHEMA)
    sampled = ft.Study(people, 1.0, 1e-9, ledger=tmp_path / "sample.db", account="s", sampling_rate=0.1)
    with pytest.raises(InvalidValue, match="looks again and again"):
        sampled.monitor(**ASKED)
    make_study()
    with open_ledger(tmp_path / "study.db", role="auditor") as ledger:
        study = ft.Study(people, 1.0, ledger=ledger, account="people")
        with pytest.raises(NotAllowed):
            study.monitor(**ASKED)


def test_an_analyst_pays_from_a_grant_and_another_has_a_monitor_of_their_own(
    make_study: MakeStudy, tmp_path: Path
) -> None:
    study = make_study()
    study.register()
    study.ledger.grant("people", "ana", epsilon=0.4)
    study.ledger.grant("people", "ben", epsilon=0.4)
    ana = make_study(analyst="ana")
    watching = ana.monitor(**ASKED, epsilon=0.3)
    assert not watching.look()
    assert ana.budget.spent_upper == pytest.approx(0.3, abs=1e-6)
    with pytest.raises(BudgetExceeded):
        ana.monitor(threshold=5, alerts=1, epsilon=0.3)
    ben = make_study(analyst="ben")
    assert ben.monitor(**ASKED, epsilon=0.3).alerts_left == watching.alerts_left  # the same words, another grant
    assert ben.budget.spent_upper == pytest.approx(0.3, abs=1e-6)
    ana.monitor(**ASKED, epsilon=0.05, request_id="hers")
    with pytest.raises(InvalidValue, match="charged before for something else"):
        ben.monitor(**ASKED, epsilon=0.05, request_id="hers")


def test_a_budget_that_is_used_up_still_lets_its_monitor_look(make_study: MakeStudy) -> None:
    study = make_study()
    watching = study.monitor(**ASKED)
    assert study.budget.remaining.epsilon < 1e-6
    with pytest.raises(BudgetExceeded):
        study.monitor(threshold=5, alerts=1)
    assert not watching.look()


def test_what_the_engine_says_about_a_row_is_not_repeated(tmp_path: Path) -> None:
    path = cases(tmp_path, 10, 10)
    study = ft.Study(ft.dataset(path, schema={"region": ["north", "south"]}), 1.0, ledger=tmp_path / "cases.db")
    watching = study.monitor(by="region", threshold=1_000, alerts=1)
    path.write_bytes(b"no parquet any more, secret-row-77")
    with pytest.raises(ft.errors.FarthingError) as refused:
        watching.look()
    assert "secret-row" not in str(refused.value)
    cases(tmp_path, 10, 10)
    assert not watching.look()
    assert watching.alerts_left == 1


def test_a_plan_of_a_monitor_that_was_opened_is_what_was_paid(make_study: MakeStudy) -> None:
    opened = make_study().monitor(**ASKED).plan
    study = make_study()
    assert study.budget.remaining.epsilon < 1e-6 and study.monitor_plan(**ASKED) == opened


def test_a_plan_in_words_says_that_its_price_protects_little(tmp_path: Path) -> None:
    data = ft.dataset(pa.table({"age": [30, 41] * 20}), schema={"age": (0, 110)})
    study = ft.Study(data, 20.0, 0.01, ledger=tmp_path / "study.db", account="weak")
    plans = (
        study.monitor_plan("age > 20", threshold=5, alerts=1),
        study.query_session_plan(0.5, 5, columns=["age"], bins={"age": 3}, rows=40),
    )
    for plan in plans:
        assert "protects almost nobody" in str(plan) and "Delta 0.01 is" in str(plan)
    quiet = ft.Study(data, 1.0, ledger=tmp_path / "quiet.db", account="quiet")
    assert "warning" not in str(quiet.monitor_plan("age > 20", threshold=5, alerts=1))


@pytest.mark.slow
def test_a_look_is_repeated_in_a_script_that_is_run_again_and_the_steward_hears_of_new_rows(
    growing: ft.Study, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {"by": "region", "threshold": 1_000, "alerts": 3, "epsilon": 1.0}
    first = growing.monitor(**asked)
    looks = [first.look(), first.look(where="region = 'south'")]
    count = growing.budget.count
    again = growing.monitor(**asked)
    same = [again.look(), again.look(where="region = 'south'")]
    assert all(one.repeated for one in same)
    assert [(one.step, one.alerts, one.error) for one in same] == [(one.step, one.alerts, one.error) for one in looks]
    assert again.alerts_left == 2 and growing.budget.count == count
    cases(tmp_path, 20_000, 100)
    later = growing.monitor(**asked)
    with pytest.warns(TableChanged, match=r"look\(fresh=True\) looks at the table as it is now"):
        assert not later.look()
    assert len(later.look(fresh=True)) == 1 and growing.ledger.verify().ok

"""The same script, spoken to a local study and to a server: the same plans, releases and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.errors import BudgetExceeded, Infeasible, InvalidExpression, InvalidSQL, InvalidValue, RequestRefused
from unit.client.conftest import Connect
from unit.server.conftest import DATASET, HERE

SCOPES = ("read", "plan", "spend", "manage")
ASKED = (ft.count(by="sex"), ft.mean("age"), ft.histogram("income", bins=5))


@pytest.fixture(scope="module", params=["local", "remote"])
def study(request: pytest.FixtureRequest, connect: Connect) -> Any:
    if request.param == "local":
        return request.getfixturevalue("local")
    return connect("ada", *SCOPES).study(DATASET)


@pytest.mark.slow
def test_a_plan_foretells_the_same_on_both_sides(local: ft.Study, connect: Connect) -> None:
    here = local.plan(*ASKED, epsilon=0.5)
    there = connect("ada", *SCOPES).study(DATASET).plan(*ASKED, epsilon=0.5)
    assert [one.name for one in there.statistics] == [one.name for one in here.statistics]
    for one, other in zip(here.statistics, there.statistics, strict=True):
        assert other.error() == pytest.approx(one.error(), rel=0.02)
        assert other.epsilon == pytest.approx(one.epsilon, rel=0.02)
        assert (other.mechanism, other.cells) == (one.mechanism, one.cells)
    assert there.cost.upper == pytest.approx(here.cost.upper, rel=1e-3) and there.cost.upper <= 0.5
    assert str(there).splitlines()[0].split() == str(here).splitlines()[0].split()
    assert there.price.basic == pytest.approx(here.price.basic, rel=0.02)
    assert there.adaptive_cost == pytest.approx(here.adaptive_cost, rel=1e-3) and there.price.adaptive_sentence
    assert "Cost:" in there.explain() and there.price.sentence in there.explain()


@pytest.mark.slow
def test_controls_return_new_plans_and_spend_nothing(study: Any) -> None:
    before = study.budget.spent_upper
    name, asked = "sum of age", (ft.count(by="sex"), ft.sum("age"), ft.histogram("income", bins=5))
    plan = study.plan(*asked, epsilon=0.5)
    closer = plan.weight(name, 50.0)
    assert closer[name].error() < plan[name].error()
    within = 0.7 * plan[name].error()
    required = plan.require(name, within=within)
    assert required[name].error() <= within * (1 + 1e-9)
    held = plan.hold(name).weight("histogram of income", 50.0)
    assert held[name].error() <= plan[name].error() * (1 + 1e-6)
    assert plan.reserve(epsilon=0.2).cost.upper <= 0.3
    assert study.fit(ft.sum("age"), require={name: 2000.0})[name].error() <= 2000.0
    assert study.budget.spent_upper == before


@pytest.mark.slow
def test_a_release_is_the_same_kind_of_thing_and_is_drawn_once(study: Any) -> None:
    seen: list[float] = []
    plan = study.plan(*ASKED, epsilon=0.1)
    release = plan.release(progress=seen.append)
    assert isinstance(release, ft.study.Release) and list(release) == [one.name for one in plan.statistics]
    assert release["count by sex"].values.shape == (2,)
    assert not release.repeated and plan.release().repeated
    assert plan.release()["mean of age"].values == release["mean of age"].values
    again = study.released(release.request_id)
    assert (again["histogram of income"].values == release["histogram of income"].values).all()
    assert release.request_id in study.releases()
    assert release.cost <= 0.1


@pytest.mark.slow
def test_refusals_are_the_same_exceptions_with_the_same_fields(study: Any) -> None:
    plan = study.plan(ft.sum("age"), epsilon=0.2)
    with pytest.raises(Infeasible) as stopped:
        plan.require("sum of age", within=1e-6)
    assert stopped.value.blocking == ("sum of age",) and stopped.value.closest > 0
    with pytest.raises(InvalidValue) as wrong:
        plan.weight("sum of aeg", 2.0)
    assert wrong.value.name == "name" and "sum of age" in str(wrong.value)
    expected = {
        "rows": 60,
        "age": (40.0, 12.0),
        "sex": {"F": 0.5, "M": 0.5},
        "count by sex": np.array([30, 30]),
    }
    assert study.plan(*ASKED, epsilon=0.2, expected=expected)["mean of age"].error() > 0
    with pytest.raises(InvalidValue):
        study.plan(ft.mean("height"))
    with pytest.raises(InvalidValue):
        study.plan()
    with pytest.raises((InvalidExpression, InvalidValue)):
        study.plan(ft.count(where="age < 'x'"))
    with pytest.raises((BudgetExceeded, InvalidValue)):
        study.plan(ft.count(), epsilon=50.0)


@pytest.mark.slow
def test_the_accountant_answers_from_afar(connect: Connect) -> None:
    found = connect("eve", "read", "plan").compose([0.1], 1e-6, counts=[100])
    here = ft.compose([0.1] * 100).epsilon_at(delta=1e-6)
    assert found.optimal.lower <= here.upper and here.lower <= found.optimal.upper
    assert any("basic" in str(one["name"]) for one in found.theorems)


def test_a_token_is_shown_nowhere(connect: Connect) -> None:
    client = ft.Client(HERE, "ft_secret-canary-word", transport=connect("ada")._connection._http._transport)
    with pytest.raises(RequestRefused) as refused:
        client.datasets()
    shown = f"{client!r} {client._connection!r} {refused.value!s} {refused.value!r} {refused.value.fields}"
    assert refused.value.code == "unauthenticated" and "canary" not in shown


@pytest.mark.slow
def test_the_same_script_again_is_answered_once_from_afar(connect: Connect) -> None:
    """Also when the budget is spent by now, and although a plan without controls was never released."""

    def script() -> Any:
        study = connect("bob").study(DATASET)
        plan = study.plan(ft.count(by="sex"), ft.mean("age"))
        return study, plan.weight("mean of age", 3.0)

    study, plan = script()
    assert "nothing is spent yet" in str(plan)
    first = plan.release()
    spent = study.budget.spent_upper
    study, plan = script()
    again = plan.release()
    assert "It was released before as bob:plan-" in str(plan) and plan.request_id in first.request_id
    assert again.repeated and again.request_id == first.request_id and again.records() == first.records()
    assert study.budget.spent_upper == spent > 0.9
    with pytest.raises(BudgetExceeded, match="the grant of 'bob'"):
        plan.release(fresh=True)
    with pytest.raises(InvalidValue, match="no longer fits the budget"):
        study.plan(ft.count(by="sex"), ft.mean("age")).release()
    with pytest.raises(BudgetExceeded):
        study.plan(ft.count(by="sex"), ft.mean("age")).weight("mean of age", 2.0)
    assert study.budget.spent_upper == spent


@pytest.mark.slow
def test_a_plan_keeps_its_notes_from_afar(local: ft.Study, connect: Connect) -> None:
    asked = (ft.count(), ft.histogram("income", bins=2_000))
    plans = [study.plan(*asked, epsilon=0.01) for study in (local, connect("ada").study(DATASET))]
    here, there = plans
    assert here.notes and here.notes == there.notes and here.assumptions == there.assumptions
    assert here.warnings == there.warnings and here.about == there.about
    assert here.opening == there.opening and here.assumed_rows == there.assumed_rows
    locked = [plan.require("count", within=20_000)["count"] for plan in plans]
    assert locked[0].required == locked[1].required and locked[0].rests_on == locked[1].rests_on == ()
    for text in (*here.notes, *here.assumptions, *here.warnings):
        assert text in str(there) and text in there.explain()


@pytest.mark.slow
def test_rows_are_counted_from_afar_as_they_are_here(connect: Connect) -> None:
    study = connect("ada").study(DATASET)
    before = study.budget.spent_upper
    rows = study.count_rows(share=0.01)
    # What was spent before may have cost a little less than its sum, and the sum is what holds from here on.
    assert study.budget.spent_upper == pytest.approx(before + 0.03, abs=1e-4)
    again = study.count_rows(share=0.2)  # one count for each account that pays
    assert (again.values, again.lower, again.upper) == (rows.values, rows.lower, rows.upper)
    assert rows.lower < rows.values < rows.upper
    assert study.plan(ft.mean("income"), epsilon=0.01).assumed_rows is None


@pytest.mark.slow
def test_a_statement_of_sql_is_planned_and_released_alike(study: Any) -> None:
    text = "SELECT sex, COUNT(*) AS n, AVG(age) FROM people WHERE age >= 18 GROUP BY sex ORDER BY sex DESC"
    plan = study.sql(text, epsilon=0.05)
    by_python = study.plan(
        ft.count(where="age >= 18", by="sex"), ft.mean("age", where="age >= 18", by="sex"), epsilon=0.05
    )
    assert plan.request_id == by_python.request_id and plan.statement == text
    release = plan.release()
    assert release.table.columns == ("sex", "n", "AVG(age)") and [sex for sex, *_ in release.table] == ["M", "F"]
    assert {sex: n for sex, n, _ in release.table} == {
        sex: release["count where age >= 18 by sex"][sex].values for sex in ("F", "M")
    }
    assert release.table.records(errors=True)[0]["n_error"] > 0
    assert study.sql(text, epsilon=0.05).release().repeated
    weighted = plan.weight("count where age >= 18 by sex", 2)
    assert weighted.statement == text
    with pytest.raises(InvalidSQL) as wrong:
        study.sql("SELECT sex,\n  MAX(age) FROM people GROUP BY sex")
    assert (wrong.value.line, wrong.value.place) == (2, 3) and "the greatest value is one person's" in str(wrong.value)
    explained = study.sql(f"EXPLAIN {text}", epsilon=0.05)
    with pytest.raises(InvalidValue, match="leave EXPLAIN out"):
        explained.release()

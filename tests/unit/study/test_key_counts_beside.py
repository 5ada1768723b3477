"""A count by an unknown column beside other statistics: one charge of a plan that is fixed before any draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from farthing.accounting import compose
from farthing.adaptive.discovery.key_search import KeySearch
from farthing.errors import AnswerForfeited, BudgetExceeded, Infeasible, InvalidValue
from farthing.privacy import ApproxDP, Composed
from farthing.study.key_count_plan import KeyCountPlan, KnownKeysPlan
from farthing.study.staged_plan import StagedPlan

CELLS = [" Flu", "flu", "COLD"] * 400 + ["a rarity"]
NAME = "count of people by diagnosis"
COUNT = ft.count(by="diagnosis", of="people", max_cells=1)
BESIDE = (COUNT, ft.mean("age"), ft.count(by="sex"))
pytestmark = pytest.mark.draws(false_alarm=1e-12, miss=0)


def study(folder: Path, cells: list[Any] = CELLS, epsilon: float = 100.0, **more: Any) -> ft.Study:
    """At so large an epsilon values of 400 people are found and counted exactly, but for a chance below 1e-12."""
    count = len(cells)
    columns = {"diagnosis": cells, "age": [40] * count, "sex": ["F", "M", "F"] * (count // 3) + ["F"] * (count % 3)}
    table = pa.table({"who": list(range(count)), **columns, "cost": [10.0] * count})
    schema = {"diagnosis": ft.unknown("text", trim=True, lower=True), "age": (0, 110), "sex": ["F", "M"]}
    schema |= {"cost": ft.unknown("number")}
    people = ft.dataset(table, unit="who", max_rows=1, schema=schema, name="people", **more)
    return ft.Study(people, epsilon=epsilon, delta=1e-6, ledger=folder / "study.db")


def test_everything_comes_in_one_charge_and_the_same_request_returns_it(tmp_path: Path) -> None:
    own = study(tmp_path)
    plan = own.plan(*BESIDE)
    assert isinstance(plan, KeyCountPlan) and own.budget.count == 0
    assert [one.name for one in plan.statistics] == [NAME, "mean of age", "count by sex"]
    release = plan.release()
    assert list(release) == [one.name for one in plan.statistics]
    assert dict(zip(release[NAME].labels, release[NAME].values, strict=True)) == {"cold": 400, "flu": 800}
    assert abs(float(release["mean of age"].values) - 40) < 0.5
    assert np.asarray(release["count by sex"].values).tolist() == [801.0, 400.0]
    assert own.budget.count == 1 and release.receipt.epsilon <= 100.0 and release.receipt.delta <= 1e-6
    assert release.cost == plan.cost.upper
    own.close()
    again = study(tmp_path)
    repeated = again.plan(*BESIDE).release()
    assert repeated.repeated and repeated.to_dict() == release.to_dict() and again.budget.count == 1
    assert again.released(release.request_id).to_dict() == release.to_dict()
    assert again.dataset.schema["diagnosis"].values == ("cold", "flu")  # type: ignore[union-attr]
    again.close()


def test_the_charge_is_that_of_both_parts_and_never_more_than_the_plan_may_have(tmp_path: Path) -> None:
    own = study(tmp_path, epsilon=1.0)
    for plan in (own.plan(*BESIDE), own.plan(*BESIDE, epsilon=0.3), own.plan(*BESIDE).weight(NAME, 1e6)):
        assert isinstance(plan, KeyCountPlan) and plan.search is not None and plan.others is not None
        event = plan._event
        assert isinstance(event, Composed)
        (search, times), *rest = event.parts
        assert (search, times) == (ApproxDP(plan.search.epsilon, plan.search.delta), 1)
        assert Composed(tuple(rest)) == plan.others.measurements.event
        assert plan.cost.upper >= compose([event]).epsilon_at(plan.delta).lower
        assert plan.cost.upper <= plan.problem.epsilon
        assert plan.cost.upper <= (plan.search.epsilon + plan.others.cost.upper) * (1 + 1e-9)
        assert plan.delta == plan.search.delta + plan.others.delta <= 1e-6
        asked = plan._question("")
        assert (asked.event, asked.delta) == (event, plan.delta)
    own.close()


def test_an_even_share_is_the_default_and_weights_and_requirements_move_it(tmp_path: Path) -> None:
    own = study(tmp_path, epsilon=1.0)
    plan = own.plan(*BESIDE)
    assert plan[NAME].epsilon == pytest.approx(1 / 3, rel=1e-3) and plan[NAME].even_share() == plan[NAME].error()
    heavy = plan.weight(NAME, 8.0)
    assert heavy[NAME].epsilon == pytest.approx(1 / 2, rel=1e-3) and heavy[NAME].error() < plan[NAME].error()
    assert heavy[NAME].even_share() == plan[NAME].error()
    required = plan.require("count by sex", within=20)
    assert required["count by sex"].error() <= 20 and required["mean of age"].error() < plan["mean of age"].error()
    assert required[NAME].error() == plan[NAME].error()
    assert plan.reserve(0.5).cost.upper <= 0.5
    together = plan.controlled({NAME: 8.0}, dict(required.problem.requirements), 0.25)
    assert together.request.name == required.weight(NAME, 8.0).reserve(0.25).request.name
    assert together.cost.upper <= 0.75 and together["count by sex"].error() <= 20
    assert any("plan.reserve(epsilon=0.5)" in line for line in plan.reserve(0.5).code)
    with pytest.raises(Infeasible):
        plan.require("count by sex", within=0.1)
    with pytest.raises(InvalidValue, match=r"give it a weight, or find the values first with study\.discover"):
        plan.require(NAME, within=3)
    with pytest.raises(InvalidValue, match=r"reserve.*must be less|must be less.*reserve"):
        plan.reserve(1.0)
    for refused in (lambda: plan.hold("count by sex"), lambda: plan.submit("why"), lambda: plan.release("mine")):
        with pytest.raises(InvalidValue, match=r"study\.discover"):
            refused()
    assert own.budget.count == 0
    own.close()


def test_a_script_with_controls_that_runs_again_gets_what_it_has_paid_for(tmp_path: Path) -> None:
    own = study(tmp_path)

    def script(epsilon: float) -> ft.Release:
        return own.plan(*BESIDE, epsilon=epsilon).weight("mean of age", 4.0).reserve(1.0).release()

    for epsilon in (30.0, 69.0):  # with a budget that has room for more, and with one that has not
        before = own.budget.count
        first = script(epsilon)
        assert script(epsilon).to_dict() == first.to_dict() and own.budget.count == before + 1
        if epsilon == 30.0:
            later = own.plan(*BESIDE, epsilon=epsilon)
            assert isinstance(later, KnownKeysPlan) and later.earlier is None
            other = later.weight("mean of age", 2.0)
            assert isinstance(other, KnownKeysPlan) and other.earlier is None
            assert later["mean of age"].error() != other["mean of age"].error()
    own.close()


def test_a_script_that_has_spent_everything_gets_it_again(tmp_path: Path) -> None:
    own = study(tmp_path)
    first = own.plan(*BESIDE).weight("mean of age", 4.0).release()
    part = own.plan(*BESIDE)
    assert (
        part.earlier is not None
        and not part.earlier.exact
        and "no longer fits the budget" in " ".join(str(part).split())
    )
    with pytest.raises(InvalidValue, match="no longer fits the budget"):
        part.release()
    again = part.weight("mean of age", 4.0).release()
    assert again.repeated and again.to_dict() == first.to_dict() and own.budget.count == 1
    with pytest.raises(BudgetExceeded):
        own.plan(*BESIDE).weight("mean of age", 4.0).release(fresh=True)
    own.close()


def test_intervals_of_all_numbers_hold_at_once(tmp_path: Path) -> None:
    own = study(tmp_path)
    release = own.plan(*BESIDE).release()
    at_once = release.plan["at_once"]
    assert (at_once["numbers"], at_once["exact"]) == (5, False)
    assert at_once["level"] == pytest.approx(1 - 0.05 / 5)
    for name, answer in release.at_once().items():
        assert np.all(answer.upper >= release[name].upper) and np.all(answer.lower <= release[name].lower)
        assert release.at_once(name)[name].name == name
    assert len(release.records()) == 5 and "cold" in str(release) and "mean of age" in str(release)
    page = release.report(str(tmp_path / "page.html")).read_text()
    assert "cold" in page and "mean of age" in page
    own.close()


def test_where_no_value_is_found_the_others_are_answered_and_the_release_says_so(tmp_path: Path) -> None:
    own = study(tmp_path, cells=[f"note {number}" for number in range(600)])
    release = own.plan(*BESIDE).release()
    assert list(release) == ["mean of age", "count by sex"] and own.budget.count == 1
    assert release.about is not None and "no value found" in release.about and "was paid for" in release.about
    assert release.plan["at_once"]["numbers"] == 3
    assert own.plan(*BESIDE).release().to_dict() == release.to_dict() and own.budget.count == 1
    own.close()


def test_what_needs_the_found_values_or_something_else_unknown_is_planned_in_two_stages(tmp_path: Path) -> None:
    own = study(tmp_path)
    staged = [
        (COUNT, ft.mean("age", by="diagnosis")),
        (COUNT, ft.mean("cost")),
        (COUNT, ft.histogram("diagnosis", of="people", max_cells=1)),
        (ft.count(by="diagnosis"), ft.mean("age")),
    ]
    for statistics in staged:
        assert type(own.plan(*statistics, epsilon=10.0)) is StagedPlan
    # A range that was found before is known to what stands beside the count.
    own.discover("cost", epsilon=20.0).release()
    plan = own.plan(COUNT, ft.mean("cost"), epsilon=40.0)
    assert isinstance(plan, KeyCountPlan)
    release = plan.release()
    assert set(release) == {NAME, "mean of cost"} and "found" in release["mean of cost"].note
    assert own.plan(COUNT, ft.mean("cost"), epsilon=40.0).release().repeated
    own.close()


def test_expected_values_go_to_the_statistics_they_are_about(tmp_path: Path) -> None:
    own = study(tmp_path, epsilon=1.0)
    expected = {"rows": 1_201, "age": (40.0, 5.0), "mean of age": 40.0, "count by sex": [800, 400], NAME: 500}
    plan = own.plan(*BESIDE, expected=expected)
    assert isinstance(plan, KeyCountPlan)
    assert not any("quarter of the rows" in text for text in plan.assumptions)
    with pytest.raises(InvalidValue, match="did you mean"):
        own.plan(*BESIDE, expected={"ages": (40.0, 5.0)})
    own.close()


def test_a_run_that_fails_after_the_charge_answers_nothing_and_stays_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = study(tmp_path)

    def fails(*_: Any, **__: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("farthing.statistics.measurements.Measurements.run", fails)
        with pytest.raises(AnswerForfeited):
            own.plan(*BESIDE, epsilon=30.0).release()
    assert own.budget.count == 1 and "diagnosis" in own.declared.unknown and own.releases() == []
    assert own.plan(*BESIDE, epsilon=30.0).release()["mean of age"].values and own.budget.count == 2
    own.close()


def test_both_parts_are_checked_before_the_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measurements made for one row of a unit are refused where a unit may have two; and so is a search."""
    own, rows = study(tmp_path), {"who": [1, 1, 2], "diagnosis": ["flu"] * 3, "age": [3] * 3}
    plan = own.plan(COUNT, ft.mean("age"), epsilon=10.0)
    assert isinstance(plan, KeyCountPlan)
    question = plan._question("")
    schema = {"diagnosis": ft.unknown("text", trim=True, lower=True), "age": (0, 110)}
    wider = ft.dataset(pa.table(rows), unit="who", max_rows=2, schema=schema)
    assert question.beside is not None
    object.__setattr__(question.beside, "dataset", wider)
    with pytest.raises(InvalidValue, match="must be at least"):
        question.check(own.declared)
    own.close()


def test_a_unit_of_many_rows_counts_with_the_bounds_of_each_part(tmp_path: Path) -> None:
    """One person with very many rows moves each part by no more than it has claimed."""
    rows = 3_000
    table = pa.table({"who": [0] * rows + list(range(1, 601)), "diagnosis": ["flu"] * (rows + 600)})
    schema = {"diagnosis": ft.unknown("text")}
    visits = ft.dataset(table, unit="who", max_rows=2, schema=schema, name="visits")
    own = ft.Study(visits, epsilon=200.0, delta=1e-6, ledger=tmp_path / "study.db")
    release = own.plan(COUNT, ft.count()).release()
    assert np.asarray(release[NAME].values).tolist() == [601.0]
    assert float(release["count"].values) == 602.0
    own.close()


def test_where_a_policy_withholds_small_cells_nothing_is_charged(tmp_path: Path) -> None:
    own = study(tmp_path)
    own.register()
    own.ledger.grant("people", "ada", epsilon=30.0, delta=1e-7)
    own.ledger.requests.grant_policy("people", "ada", 1.0, 1e-8, cell=50)
    table = own.declared
    own.close()
    with ft.open_ledger(tmp_path / "study.db", actor="ada", role="analyst") as ledger:
        theirs = ft.Study(table, epsilon=100.0, delta=1e-6, ledger=ledger, account="people")
        plan = theirs.plan(COUNT, ft.mean("age"))  # a mean without a count of its cell: no policy covers it
        assert isinstance(plan, KeyCountPlan)
        with pytest.raises(InvalidValue, match="a policy withholds"):
            plan.release()
        assert ledger.budget("people").count == 0


def test_after_other_charges_what_is_planned_is_admitted(tmp_path: Path) -> None:
    own = study(tmp_path, epsilon=2.0)
    own.plan(ft.histogram("age"), ft.mean("age"), epsilon=0.7).release()
    release = own.plan(*BESIDE, epsilon=0.5).release()
    assert release.receipt.epsilon <= 0.5
    own.plan(ft.mean("age", by="diagnosis")).release()
    own.close()


def test_the_search_is_part_of_what_names_the_charge(tmp_path: Path) -> None:
    own = study(tmp_path)
    alone = own.plan(COUNT, epsilon=10.0)
    beside = own.plan(COUNT, ft.count(), epsilon=10.0)
    other = own.plan(COUNT, ft.mean("age"), epsilon=10.0)
    digests = {plan._question("").digest for plan in (alone, beside, other) if isinstance(plan, KeyCountPlan)}
    assert len(digests) == 3
    assert isinstance(alone, KeyCountPlan) and isinstance(alone.search, KeySearch)
    own.close()

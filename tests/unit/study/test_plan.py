"""A plan: every control gives a new one, keeps its promise, or says what stands in the way."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import farthing as ft
from farthing.errors import Infeasible, InvalidValue
from farthing.numerics.bounds import error_text, number_text
from farthing.study import Plan
from study_people import SCHEMA, table

Make = Callable[..., ft.Study]


@pytest.fixture
def plan(make_study: Make) -> Plan:
    return make_study().plan(
        ft.count(by="sex"),
        ft.histogram("age", bins=5),
        ft.mean("income"),
        expected={"rows": 400, "income": (40_000.0, 12_000.0)},
    )


def test_the_four_counts_of_the_course_cost_what_the_optimum_costs(make_study: Make) -> None:
    """{M and young, M, F and young, F}: four disjoint cells, so 12 / epsilon^2 in all, found without hints."""
    study = make_study()
    young = "age < 30"
    plan = study.plan(
        ft.count(where=f"sex = 'M' and {young}"),
        ft.count(where="sex = 'M'"),
        ft.count(where=f"sex = 'F' and {young}"),
        ft.count(where="sex = 'F'"),
    )
    assert sum(one.standard_error**2 for one in plan.statistics) <= 12.0


def test_weight_moves_error_to_the_others(plan: Plan) -> None:
    heavier = plan.weight("count by sex", 100)
    assert heavier["count by sex"].error() < plan["count by sex"].error()
    assert heavier["histogram of age"].error() > plan["histogram of age"].error()
    assert heavier.cost.upper == pytest.approx(plan.cost.upper, rel=1e-4)


@pytest.mark.slow
def test_require_meets_the_error_to_a_thousandth(plan: Plan) -> None:
    asked = plan.require("mean of income", within=2500)
    assert 0.999 * 2500 <= asked["mean of income"].worst_error() <= 2500
    assert asked["mean of income"].error() < 2450  # intervals are wider where fewer rows are counted
    at_90 = plan.require("mean of income", within=2500, confidence=0.9)
    assert 0.999 * 2500 <= at_90["mean of income"].worst_error(0.9) <= 2500
    assert asked["count by sex"].error() >= plan["count by sex"].error()


@pytest.mark.slow
def test_a_requirement_beyond_the_budget_says_what_fits(plan: Plan) -> None:
    with pytest.raises(Infeasible) as refusal:
        plan.require("mean of income", within=1000)
    assert refusal.value.blocking == ("mean of income",)
    assert refusal.value.epsilon > 1 and refusal.value.closest is not None
    closest = refusal.value.closest
    assert plan.require("mean of income", within=1.1 * closest)["mean of income"].error() <= 1.1 * closest


@pytest.mark.slow
def test_a_refusal_names_what_its_own_errors_rest_on_and_nothing_else(make_study: Make) -> None:
    """What was assumed may be what is wrong; the errors of counts and sums rest on nothing."""
    plan = make_study().plan(
        ft.count(by="sex"), ft.sum("income"), ft.mean("income"), ft.mean("age"),
        expected={"rows": 400, "sum of income": 1e7, "age": (40.0, 12.0)},
    )  # fmt: skip
    with pytest.raises(Infeasible, match=r"assumptions: [^;]*worst values of income[^;]*; pass [^;]*$"):
        plan.require("mean of income", within=100)
    for name, within in (("count by sex", 1), ("sum of income", 1000), ("mean of age", 0.01)):
        with pytest.raises(Infeasible) as refusal:
            plan.require(name, within=within)
        assert "cannot be met" in str(refusal.value) and "assum" not in str(refusal.value)


@pytest.mark.slow
def test_a_held_statistic_keeps_its_error(plan: Plan) -> None:
    """What others say about it may become less: then its own measurement gets less noise."""
    hold = plan.hold("count by sex")
    more, less = hold.weight("histogram of age", 1000), hold.weight("histogram of age", 0.001)
    tighter = hold.require("mean of income", within=0.97 * plan["mean of income"].worst_error())
    for held in (hold, more, less, tighter, hold.reserve(epsilon=0.1)):
        after, before = (each["count by sex"].law.standard_errors for each in (held, plan))
        assert (after <= before * (1 + 1e-7)).all()
        assert held["count by sex"].error() <= plan["count by sex"].error() * (1 + 1e-7)
    assert hold["count by sex"].noise == more["count by sex"].noise == plan["count by sex"].noise
    assert more["histogram of age"].error() < plan["histogram of age"].error()


@pytest.mark.slow
def test_a_hold_that_stands_in_the_way_is_named(make_study: Make) -> None:
    plan = make_study().plan(ft.count(by="sex"), ft.histogram("age", bins=5))
    with pytest.raises(Infeasible) as refusal:
        plan.weight("histogram of age", 1e3).hold("histogram of age").require("count by sex", within=4)
    assert "histogram of age" in refusal.value.blocking and "hold" in str(refusal.value)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_holding_all_but_one_changes_nothing_and_holding_everything_is_refused(make_study: Make, delta: float) -> None:
    plan = make_study(delta=delta).plan(ft.count(by="sex"), ft.histogram("age", bins=5), ft.mean("income"))
    most = plan.hold("count by sex").hold("histogram of age")
    assert most["mean of income"].error() == pytest.approx(plan["mean of income"].error(), rel=1e-2)
    with pytest.raises(InvalidValue, match="release the plan as it is, or hold fewer"):
        most.hold("mean of income")


@pytest.mark.slow
def test_a_reserve_is_left_unspent(plan: Plan) -> None:
    kept = plan.reserve(epsilon=0.4)
    assert kept.cost.upper <= 0.6 and kept["count by sex"].error() > plan["count by sex"].error()
    kept.release()
    assert plan.study.budget.remaining.epsilon >= 0.4 - 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("delta", "statistics", "mechanism"),
    [
        (0.0, 2, "discrete Laplace"),
        (1e-9, 2, "discrete Laplace"),
        pytest.param(1e-9, 40, "discrete Gaussian", marks=pytest.mark.slow),
    ],
)
def test_what_was_reserved_is_what_is_left(make_study: Make, delta: float, statistics: int, mechanism: str) -> None:
    study = make_study(delta=delta)
    plan = study.plan(*(ft.mean("income", where=f"age > {age}") for age in range(statistics)))
    kept = plan.reserve(epsilon=0.5)
    assert {one.mechanism for one in kept.statistics} == {mechanism}
    assert kept.delta <= delta / 4 and kept.reserve(epsilon=0.0).delta == delta
    kept.release()
    assert study.budget.remaining.epsilon == pytest.approx(0.5, rel=0.001)
    study.plan(ft.count()).release()
    assert study.budget.remaining.epsilon < 0.001


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.weight("count by sxe", 2), "did you mean: count by sex"),
        (lambda p: p.require("mean", within=1), "did you mean: mean of income"),
        (lambda p: p.hold(None), "must be a statistic of the plan"),
        (lambda p: p.weight("count by sex", 0), "must be between 1e-6 and 1e6"),
        (lambda p: p.weight("count by sex", float("nan")), "weight=nan"),
        (lambda p: p.require("count by sex", within=0), "must be a finite number > 0"),
        (lambda p: p.require("count by sex", within=-2), "must be a finite number > 0"),
        (lambda p: p.require("count by sex", within=5, confidence=95), "write 0.95 for 95 percent"),
        (lambda p: p.reserve(epsilon=1.0), "must be less than the plan's 1"),
        (lambda p: p.reserve(epsilon=-0.1), "epsilon=-0.1"),
        (lambda p: p["count by sex"].error(95), "95% is 0.95"),
    ],
)
def test_a_careless_control_says_what_to_do(plan: Plan, change: Callable[[Plan], Any], message: str) -> None:
    with pytest.raises(InvalidValue) as refusal:
        change(plan)
    assert message in str(refusal.value)


def test_a_plan_is_a_table_that_lines_up(plan: Plan) -> None:
    lines = str(plan).splitlines()
    assert lines[0].split() == ["statistic", "mechanism", "95%", "error", "even", "share", "epsilon"]
    assert len({len(line) for line in lines[:5]}) == 1
    assert lines[2].startswith("count by sex") and "±" in lines[2]
    assert "cost: epsilon" in str(plan) and "assumed: age is assumed uniform between its bounds" in str(plan)


NO_WORSE: dict[str, tuple[float, float, list[Any], dict[str, Any]]] = {
    "cells that no row can be in": (1.0, 1e-9, [ft.cdf("age", 50, where="sex = 'F'", by="sex"), ft.count()], {}),
    "merged with such cells": (
        0.1,
        1e-6,
        [ft.count(where="sex = 'F'", by="sex"), ft.histogram("age", 5, where="sex = 'F'")],
        {},
    ),
    "quantiles, whose errors fall in steps": (
        1.0,
        0.0,
        [ft.median("income", by="sex"), ft.median("age"), ft.count(where="age < 30")],
        {"income": (30_000.0, 20_000.0), "sex": {"F": 99, "M": 1}},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta", "asked", "expected"), NO_WORSE.values(), ids=NO_WORSE.keys())
def test_no_statistic_is_worse_off_than_alone_with_an_even_share(
    make_study: Make, epsilon: float, delta: float, asked: list[Any], expected: dict[str, Any]
) -> None:
    known = {"rows": 4_000, **expected}
    plan = make_study(epsilon=epsilon, delta=delta).plan(*asked, expected=known)
    for one in asked:
        alone = make_study(epsilon=epsilon / len(asked), delta=delta / len(asked)).plan(one, expected=known)
        assert plan[one.name].standard_error <= 1.02 * alone[one.name].standard_error
        assert plan[one.name].even_share() == pytest.approx(alone[one.name].error(), rel=0.05, abs=1.0)


def test_a_plan_says_when_it_protects_single_rows(plan: Plan) -> None:
    assert str(plan).endswith("the budget protects one row; if a person may have several rows, declare a unit")


def test_nothing_is_expected_of_a_column_of_dates(tmp_path: Path) -> None:
    """Whatever stood there was accepted, and silenced the line that says what is assumed."""
    day = date(2024, 1, 1)
    visits = ft.dataset(pyarrow.table({"day": [day]}), schema={"day": (day, date(2024, 12, 31))})
    study = ft.Study(visits, 1.0, account="people", ledger=tmp_path / "study.db")
    for nonsense in ("foo", (day, 100), (day, day)):
        with pytest.raises(InvalidValue, match="must be left out for a column of dates"):
            study.plan(ft.histogram("day", bins=4), expected={"rows": 400, "day": nonsense})
    text = str(study.plan(ft.histogram("day", bins=4), expected={"rows": 400}))
    assert "day is assumed uniform between its bounds\n" in text  # with no advice that cannot be followed
    study.close()


def test_the_best_case_of_few_rows_is_no_worse_than_the_worst(make_study: Make) -> None:
    plan = make_study().plan(ft.mean("income", by="sex"), epsilon=1e-4, expected={"rows": 20})
    one = plan["mean of income by sex"]
    assert one.at_best.error(0.95) <= one.error(0.95)


@pytest.mark.slow
def test_an_assumed_number_of_rows_is_said_first(make_study: Make) -> None:
    plan = make_study().plan(ft.mean("income"))
    for text in (str(plan), plan.explain()):
        assert text.startswith("every error here is for an assumed size: the table is assumed to have 10,000 rows")
    mixed = make_study().plan(ft.count(), ft.mean("income"), ft.median("age"))
    assert str(mixed).startswith("the errors of mean of income and median of age are for an assumed size")
    counts = make_study().plan(ft.count(), ft.sum("income"))  # whose errors are those of the noise
    assert (counts.assumed_rows, counts.opening, counts.counting) == (None, None, None)
    said = make_study().plan(ft.count(), ft.mean("income"), expected={"rows": 400})
    assert "assumed size" not in str(said) + said.explain()


def test_the_cost_is_told_beside_what_the_plan_may_use(make_study: Make) -> None:
    study = make_study()
    assert "cost: epsilon 1 of 1 at delta 0;" in str(study.plan(ft.count()))
    limited = "cost: epsilon 0.6 of the 0.6 this plan may use (budget 1) at delta 0; nothing is spent yet"
    assert limited in str(study.plan(ft.count(), epsilon=0.6))
    assert limited in str(study.plan(ft.count()).reserve(epsilon=0.4))


def test_cells_of_unlike_errors_are_shown_from_the_best_to_the_worst(make_study: Make) -> None:
    plan = make_study().plan(
        ft.mean("income", by="sex"),
        ft.count(by="sex"),
        expected={"rows": 4000, "sex": {"F": 0.02, "M": 0.98}, "income": (40_000.0, 20_000.0)},
    )
    one = plan["mean of income by sex"]
    best, worst = min(one.errors()), max(one.errors())
    assert worst > 1.5 * best and f"± {error_text(best)} to {error_text(worst)} " in str(plan)
    assert best < one.error() < worst
    assert f"± {number_text(plan['count by sex'].error())} " in str(plan)  # cells alike have one number


@pytest.mark.slow
def test_a_statistic_of_nothing_but_noise_is_pointed_out(make_study: Make) -> None:
    study, rows = make_study(), {"rows": 20}
    plan = study.plan(ft.std("income", by=["sex"]), ft.count(), expected=rows)
    text = "'std of income by sex' is mostly noise: its error exceeds the value expected of it"
    assert plan.notes[0].startswith(text)
    assert plan.to_dict()["notes"] == list(plan.notes) and text in plan.explain()
    assert f"note: {text}" in str(plan).replace("\n  ", " ")
    assert study.plan(ft.count(), expected=rows).notes == ()
    assert study.plan(ft.count(), expected={"rows": 2}).notes != ()  # 2 and its error is 3
    assert study.plan(ft.count(), expected={"rows": 3}).notes == ()


def test_a_plan_in_words_says_what_is_measured_and_assumed(plan: Plan) -> None:
    told = plan.explain()
    for part in ("What is measured", "What is computed from it", "Cost:", "Assumptions:", "summed"):
        assert part in told
    assert plan["mean of income"].sentence.startswith("95 times in 100 within ±")
    assert plan["count by sex"].sentence.startswith("95 times in 100 a cell is within ±")


def test_a_plan_as_json_has_the_keys_programs_read(plan: Plan) -> None:
    told = json.loads(plan.to_json())
    assert set(told["price"]) >= {"basic", "advanced", "kov", "optimal"}
    assert told["cost"]["lower"] <= told["cost"]["upper"] <= 1.0
    for one in told["statistics"]:
        assert {"name", "mechanism", "epsilon", "standard_error", "error"} <= set(one)
    assert [one["name"] for one in told["statistics"]] == [one.name for one in plan.statistics]


@pytest.mark.slow
def test_a_changed_plan_is_another_request_and_the_old_one_stays_as_it_was(plan: Plan) -> None:
    before = plan.to_json()
    changed = plan.weight("count by sex", 3)
    assert changed.request_id != plan.request_id and plan.to_json() == before
    with pytest.raises(AttributeError):
        plan.limit = 3  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_plan_remembers_the_lines_that_made_it(plan: Plan) -> None:
    code = plan.weight("count by sex", 2).require("mean of income", within=3000).hold("histogram of age").code
    assert code[-3:] == (
        "plan = plan.weight('count by sex', 2)",
        "plan = plan.require('mean of income', within=3000, confidence=0.95)",
        "plan = plan.hold('histogram of age')",
    )
    assert "    ft.histogram('age', bins=5)," in code


def test_a_public_count_needs_no_noise(people: Any, tmp_path: Any) -> None:
    """Where neighbours replace a row and the number of rows is public, counting all of them is free."""
    known = ft.dataset(table(), schema=SCHEMA, neighbours="replace", rows=400)
    plan = ft.Study(known, 1.0, account="people", ledger=tmp_path / "replace.db").plan(ft.count(), ft.mean("age"))
    assert plan["count"].mechanism == "none needed" and plan["count"].epsilon == 0
    assert plan["count"].sentence == "exact: its value is public"
    release = plan.release()
    assert release["count"].values == 400 and "none needed" in str(plan)
    assert "400" in str(release)


@pytest.mark.slow
def test_plots_are_made_of_plain_values(plan: Plan) -> None:
    assert plan.plot().to_dict()["title"]["text"] == "3 statistics for epsilon 1"


def test_all_numbers_at_once_have_larger_errors_than_each_by_itself(make_study: Make) -> None:
    plan = make_study().plan(ft.histogram("age", bins=20), ft.mean("income"), epsilon=0.5)
    together = plan.at_once()
    assert together.numbers == 21 and together.exact and 0.997 < together.level < 0.998
    for statistic in plan.statistics:
        alone, own = statistic.error(0.95), statistic.error(0.95, at_once=True)
        assert alone <= own <= together.errors[statistic.name]
    assert together.errors["mean of income"] > 1.3 * plan["mean of income"].error(0.95)
    assert "at once: all 21 numbers" in str(plan) and "all 21 numbers" in plan.explain()
    told = plan.to_dict()
    assert told["at_once"]["errors"] == together.errors
    assert told["statistics"][0]["error_at_once"] == plan["histogram of age"].error(0.95, at_once=True)


def test_statistics_that_share_a_measurement_are_told_an_upper_bound(make_study: Make) -> None:
    plan = make_study().plan(ft.mean("age"), ft.std("age"), epsilon=0.5)
    assert not plan.at_once().exact and "at least 95 times" in plan.at_once().sentence
    assert make_study().plan(ft.count(), epsilon=0.5).at_once().sentence == ""


def test_errors_at_once_say_what_they_rest_on(make_study: Make) -> None:
    """A quantile's predicted error holds if values are spread as assumed, alone and beside others."""
    plan = make_study().plan(ft.median("income"), ft.count(by="sex"))
    together = plan.at_once()
    assert together.conditions == {"median of income": "if as assumed"} == together.to_dict()["conditions"]
    sentence = together.sentence
    told = re.search(r"median of income ± ([\d,]+) if as assumed, count by sex ± \d+$", sentence)
    assert told is not None, sentence
    assert float(told[1].replace(",", "")) >= together.errors["median of income"]

"""A plan that is shown can be released, by a ledger of exactly its budget and by one that was spent from."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import farthing as ft
from farthing.data import Dataset
from farthing.errors import BudgetExceeded
from farthing.statistics.counts.slot_combination import CombinedOutput
from farthing.study import Plan

COLUMNS = 30


@cache
def wide() -> Dataset:
    """A table of so many columns."""
    table = pyarrow.table({f"c{i}": [0, 1, 1] for i in range(COLUMNS)})
    return ft.dataset(table, schema={f"c{i}": [0, 1] for i in range(COLUMNS)})


def equal_counts(number: int) -> list[Any]:
    """So many counts of which a row may be in every one."""
    return [ft.count(where=f"c{i} = 1") for i in range(number)]


def _released(folder: Path, number: int, epsilon: float, delta: float) -> None:
    study = ft.Study(wide(), epsilon, delta, account="people", ledger=folder / "study.db")
    plan = study.plan(*equal_counts(number))
    assert plan.cost.upper <= epsilon
    release = plan.release()
    assert release.cost <= epsilon and study.budget.spent_upper <= epsilon
    study.close()


@pytest.mark.slow
@pytest.mark.parametrize("number", [10, 18, 21, 30])
def test_as_many_counts_as_cost_a_hair_too_much_are_released(tmp_path: Path, number: int) -> None:
    """These were planned at a proven epsilon above 1, and refused when they were to be released."""
    _released(tmp_path, number, 1.0, 1e-6)


SWEEP = list(itertools.product(range(1, 31), [(1.0, 1e-6), (2.0, 1e-5), (5.0, 1e-6), (1 / 3, 1e-9)]))


@pytest.mark.slow
@pytest.mark.parametrize(("number", "budget"), SWEEP[::7], ids=str)  # every budget, from the first number to the last
def test_every_plan_of_equal_counts_is_released(tmp_path: Path, number: int, budget: tuple[float, float]) -> None:
    _released(tmp_path, number, *budget)


@pytest.mark.slow
@pytest.mark.parametrize("control", ["require", "hold", "weight", "reserve", "fit"])
def test_a_controlled_plan_is_released_too(tmp_path: Path, control: str) -> None:
    study = ft.Study(wide(), 1.0, 1e-6, account="people", ledger=tmp_path / "study.db")
    plan = study.plan(*equal_counts(21))
    first = plan.statistics[0]
    if control == "require":
        plan = plan.require(first.name, within=0.8 * first.error())
    elif control == "hold":
        plan = plan.hold(first.name)
    elif control == "weight":
        plan = plan.weight(first.name, 3.0)
    elif control == "reserve":
        plan = plan.reserve(1 / 7)
    else:
        errors = {statistic.name: 1.05 * statistic.error() for statistic in plan.statistics}
        plan = study.fit(*equal_counts(21), require=errors)
    assert plan.cost.upper <= plan.problem.epsilon - plan.problem.reserved
    assert plan.release().cost <= plan.problem.epsilon


@pytest.mark.slow
def test_what_a_ledger_has_left_after_many_charges_can_be_planned_and_released(tmp_path: Path) -> None:
    """What is left is then the word of a clock, which may refuse noise that costs no more than it says."""
    study = ft.Study(wide(), 1.0, 1e-6, account="people", ledger=tmp_path / "study.db")
    for _ in range(20):
        study.plan(*equal_counts(1), epsilon=0.05).release()
    left = study.budget.remaining.epsilon
    plan = study.plan(*equal_counts(1))
    assert 0.9 * left <= plan.cost.upper <= left
    assert plan.release().cost == plan.cost.upper


@pytest.mark.slow
def test_a_grant_and_a_reserve_leave_what_can_be_released(tmp_path: Path) -> None:
    ledger = ft.open_ledger(tmp_path / "study.db")
    study = ft.Study(wide(), 1.0, 1e-6, ledger=ledger, account="wide")
    study.register()
    ledger.grant("wide", "ana", 0.7, 7e-7)
    ledger.reserve("wide", 0.4, 4e-7)
    own = ft.Study(wide(), 1.0, 1e-6, ledger=ledger, account="wide", analyst="ana")
    for statistics in (equal_counts(12), equal_counts(9)):
        plan = own.plan(*statistics, epsilon=0.25)
        plan.release()
    assert study.budget.remaining.epsilon < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), [(1 / 3, 1e-6), (2 / 3, 0.0)])
def test_a_plan_of_the_whole_budget_by_number_is_released(tmp_path: Path, epsilon: float, delta: float) -> None:
    """A ledger keeps billionths: a third exceeded "the 0.333333 left", and so did the rest after a first plan."""
    study = ft.Study(wide(), epsilon, delta, account="people", ledger=tmp_path / "whole.db")
    assert study.plan(*equal_counts(2), epsilon=epsilon).release().cost <= epsilon
    study.close()
    study = ft.Study(wide(), 1.0, account="people", ledger=tmp_path / "rest.db")
    study.plan(*equal_counts(1), epsilon=1 - epsilon).release()
    rest = study.budget.remaining.epsilon
    assert study.plan(*equal_counts(2), epsilon=rest + 5e-10).release().cost <= rest


def test_a_refusal_shows_digits_that_tell_the_numbers_apart(tmp_path: Path) -> None:
    study = ft.Study(wide(), 0.5, account="people", ledger=tmp_path / "study.db")
    with pytest.raises(BudgetExceeded, match=r"a plan of epsilon=0\.50000001 exceeds the 0\.5 left"):
        study.plan(*equal_counts(1), epsilon=0.50000001)


@pytest.mark.slow
def test_counts_that_are_estimated_from_several_measurements_are_released(tmp_path: Path) -> None:
    """Their errors depend on the noises of both measurements: KeyError, for every release of such a pair."""
    people = ft.dataset(pyarrow.table({"age": [30, 41, 52]}), schema={"age": (0, 110)})
    study = ft.Study(people, 1.0, 1e-6, account="people", ledger=tmp_path / "study.db")
    plan = study.plan(ft.histogram("age", 3), ft.histogram("age", 40, name="fine"))
    assert any(isinstance(output, CombinedOutput) for output in plan.design.outputs)
    for statistic in plan.statistics:
        assert statistic.error() <= statistic.worst_error() < 1.5 * statistic.error()
    assert plan.release().cost <= 1.0


@pytest.mark.slow
def test_what_others_spent_meanwhile_is_why_a_plan_is_refused(tmp_path: Path) -> None:
    """Between the look at a budget and the division of it: "cost epsilon=..., raise epsilon" was the refusal."""
    study = ft.Study(wide(), 1.0, account="people", ledger=tmp_path / "study.db")
    study.plan(ft.count(), epsilon=0.5).release()
    asked = tuple(equal_counts(2))
    plan = Plan.draft(study, asked, study.problem(asked, 0.4, None), None, 0.4)
    study.plan(ft.count(where="c3 = 1"), epsilon=0.5).release()
    with pytest.raises(BudgetExceeded):
        _ = plan.allocation
    study.close()


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 0.05), (0.001, 0.01)])
@pytest.mark.parametrize("second", [ft.mean("income"), ft.median("income")], ids=["mean", "median"])
def test_beside_a_large_delta_no_statistic_is_worse_off_than_with_an_even_share(
    tmp_path: Path, epsilon: float, delta: float, second: Any
) -> None:
    """The search sees no cost there: it came to a plain sum, and to twenty times the error of an even share."""
    people = ft.dataset(
        pyarrow.table({"sex": ["F", "M"], "income": [1.0, 2.0]}), schema={"sex": ["F", "M"], "income": (0.0, 100.0)}
    )
    plan = ft.Study(people, epsilon, delta, account="people", ledger=tmp_path / "study.db").plan(
        ft.count(), ft.count(by="sex"), second, expected={"rows": 1000}
    )
    assert plan.cost.upper <= epsilon and min(plan.allocation.even_share.values()) > 0.97


@pytest.mark.slow
def test_beside_a_large_delta_many_statistics_of_units_are_released(tmp_path: Path) -> None:
    """The last touches to a division found no factor that meets the target: "cost epsilon=inf", and no plan."""
    rows = pyarrow.table({"id": [1, 2], "age": [1, 2], "income": [1.0, 2.0], "place": ["a", "b"]})
    schema = {"age": (0, 110), "income": (0.0, 250_000.0), "place": list("abcdefgh")}
    people = ft.dataset(rows, unit="id", max_rows=3, schema=schema)
    study = ft.Study(people, 0.01, 0.05, ledger=tmp_path / "study.db", account="people")
    asked = (
        ft.ranges("age", [0, 10, 20, 50, 110]),
        ft.sum("income"),
        ft.mean("age", by="place"),
        ft.count(where="age > 52"),
        ft.mean("income"),
    )
    plan = study.plan(*asked)
    assert plan.cost.upper <= 0.01 and min(plan.allocation.even_share.values()) > 0.9
    assert plan.release().cost <= 0.01
    study.close()


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-6, 0.01])
@pytest.mark.parametrize("asked", [ft.sum("income"), ft.count(), ft.linear_regression("income", "age")], ids=str)
def test_an_epsilon_beyond_what_mechanisms_take_is_planned_with(tmp_path: Path, delta: float, asked: Any) -> None:
    """It was refused: "noise_multiplier=0.0248: is too small for a vector of this size"."""
    people = ft.dataset(
        pyarrow.table({"age": [1], "income": [1.0]}), schema={"age": (0, 110), "income": (0.0, 250_000.0)}
    )
    plan = ft.Study(people, 1000.0, delta, account="people", ledger=tmp_path / "study.db").plan(
        asked, expected={"rows": 1000}
    )
    assert plan.cost.upper < 1000 and min(plan.allocation.even_share.values()) > 0.97

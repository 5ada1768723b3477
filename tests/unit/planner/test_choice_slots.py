"""Slots that choose and add noise beside it: the planner sees both parts as the accountant does."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
import pyarrow
import pytest

import farthing as ft
from farthing.accounting import compose
from farthing.accounting.cost_estimates import saddle_cost
from farthing.planner import Problem, allocate
from farthing.planner.design_arrays import Model, Shares
from farthing.planner.slot_facts import EXPONENTIAL, GAUSSIAN, LAPLACE
from farthing.privacy import BoundedRange
from farthing.statistics.design import design_of
from farthing.statistics.measurements import Noise
from planner_designs import HandDesign, choice


def design() -> object:
    table = pyarrow.table({"x": [1.0], "y": [1.0], "person": [1]})
    people = ft.dataset(table, schema={"x": (0.0, 9.0), "y": (0.0, 9.0)}, unit="person", max_rows=3)
    return design_of([ft.median("x"), ft.quantiles("y", [0.1, 0.9])], people)


@pytest.mark.slow
def test_a_choice_is_shares_of_choosing_and_of_noise_that_moves_by_the_rows_of_a_unit() -> None:
    model = Model.of(design())  # type: ignore[arg-type]
    assert model.parts.tolist() == [1.0, 2.0]
    assert model.chosen.tolist() == pytest.approx([0.8, 0.8]) and model.beside.tolist() == [3.0, 3.0]
    losses = model.losses(np.full(2, EXPONENTIAL), np.array([0.375, 0.75]))
    assert losses.ranges.tolist() == pytest.approx([0.3, 0.3]) and losses.counts.tolist() == [1.0, 2.0]
    assert losses.laplace.tolist() == pytest.approx([0.075, 0.15]) and losses.steps.tolist() == [3.0, 3.0]


@pytest.mark.slow
def test_the_search_prices_it_as_the_accountant_does() -> None:
    made = design()
    model = Model.of(made)  # type: ignore[arg-type]
    strengths = np.array([0.4, 0.8])
    searched = saddle_cost(model.losses(np.full(2, EXPONENTIAL), strengths), 1e-6)[0]
    events = [slot.event(Noise("exponential", float(e))) for slot, e in zip(model.slots, strengths, strict=True)]
    assert searched == pytest.approx(compose(events).epsilon_at(1e-6).upper, rel=0.03)


@pytest.mark.slow
def test_a_plan_spends_all_of_its_budget_and_no_more() -> None:
    for delta in (0.0, 1e-6):
        cost = allocate(Problem(design(), epsilon=0.5, delta=delta)).cost  # type: ignore[arg-type]
        assert 0.5 * 0.995 <= cost.upper <= 0.5


def test_a_choice_without_noise_is_still_a_choice() -> None:
    model = Model.of(HandDesign((choice("c", 2),), ()))
    assert (model.parts.tolist(), model.chosen.tolist(), model.beside.tolist()) == ([2.0], [1.0], [0.0])


@pytest.mark.slow
def test_choices_that_differ_are_priced_as_so_many_equal_ones() -> None:
    table = pyarrow.table({"x": [1.0]})
    people = ft.dataset(table, schema={"x": (0.0, 9.0)})
    model = Model.of(design_of([ft.median("x"), ft.quantiles("x", [0.25, 0.5, 0.75])], people))
    assert model.parts.tolist() == pytest.approx([1.8])  # two levels, 2 to 1
    for strength in (0.2, 1.0):
        searched = saddle_cost(model.losses(np.array([EXPONENTIAL]), np.array([strength])), 1e-6)[0]
        exact = compose([model.slots[0].event(Noise("exponential", strength))]).epsilon_at(1e-6).upper
        assert searched == pytest.approx(exact, rel=0.05)


def mixed(*, alone: bool = False) -> Any:
    """A median beside eleven statistics, of which many share what is measured."""
    table = pyarrow.table({"x": [1.0], "y": [1.0], "sex": ["F"], "place": [1]})
    people = ft.dataset(table, schema={"x": (0.0, 9.0), "y": (0.0, 9.0), "sex": ["F", "M"], "place": (1, 6)})
    others = [
        ft.count(),
        ft.count(by="sex"),
        ft.count(by="place"),
        ft.count(by=["sex", "place"]),
        ft.count(where="place > 3"),
        ft.count(where="place > 4", by="sex"),
        ft.mean("y"),
        ft.mean("y", by="sex"),
        ft.variance("y", by="sex"),
        ft.sum("x"),
        ft.mean("x", by="sex"),
    ]
    return design_of([ft.median("x"), *([] if alone else others)], people, {"rows": 30_000, "x": (4.0, 2.0)})


@pytest.mark.slow
def test_a_value_is_as_good_as_by_a_tool_that_divides_evenly_without_intervals() -> None:
    for epsilon, delta in ((0.1, 1e-9), (1.0, 1e-9), (1.0, 0.0)):
        plan = allocate(Problem(mixed(), epsilon=epsilon, delta=delta))
        (chosen,) = [0.8 * noise.parameter for noise in plan.noises.values() if noise.kind == "exponential"]
        rival = epsilon / 12
        if delta > 0:  # the largest range of which twelve choices fit into the budget
            ranges = rival * np.linspace(1, 2, 101)
            fitting = bisect_right(
                ranges, epsilon, key=lambda e: compose([BoundedRange(e)] * 12).epsilon_at(delta).upper
            )
            assert 0 < fitting < len(ranges)
            rival = ranges[fitting - 1]
        assert chosen >= 0.985 * rival
        assert min(plan.even_share.values()) > 0.985 and plan.cost.upper <= epsilon


@pytest.mark.slow
def test_a_choice_takes_nothing_that_others_need_for_their_even_shares() -> None:
    plan = allocate(Problem(mixed(alone=True), epsilon=0.5, delta=1e-9))
    (noise,) = plan.noises.values()  # the interval costs its part, and nobody is there to pay for it
    assert 0.499 < noise.parameter <= 0.5 * 1.001
    table = pyarrow.table({"x": [1.0], "y": [1.0]})
    people = ft.dataset(table, schema={"x": (0.0, 9.0), "y": (0.0, 9.0)})
    asked = [ft.median("x"), ft.sum("y"), ft.sum("x")]
    plan = allocate(Problem(design_of(asked, people, {"rows": 5_000}), epsilon=0.1, delta=1e-9))
    assert min(plan.even_share.values()) > 0.985


def test_values_come_equally_close_to_those_of_such_a_tool_where_there_is_not_enough_room() -> None:
    columns = {"sex": ["F", "M"], "age": (17, 90), "hours": (0, 100), "bmi": (10.0, 60.0), "gain": (0.0, 1e5)}
    people = ft.dataset(
        pyarrow.table({"sex": ["F"], "age": [41], "hours": [40], "bmi": [20.0], "gain": [1.0]}), schema=columns
    )
    expected = {"rows": 15_000, "age": (38.0, 13.0), "hours": (40.0, 12.0), "bmi": (26.0, 5.0), "gain": (1e3, 7e3)}
    medians = [ft.median("bmi", by="sex"), ft.median("hours"), ft.median("age")]
    others = [
        ft.histogram("age", bins=20),
        ft.count(),
        ft.count(by="sex"),
        ft.variance("bmi"),
        ft.mean("gain", by="sex"),
        ft.count(where="hours > 45"),
    ]
    plan = allocate(Problem(design_of([*medians, *others], people, expected), epsilon=1.0))
    behind = []
    for median in medians:
        alone = design_of([median], people, expected)
        rival = {alone.slots[0].name: Noise("exponential", 1.25 / 9)}  # four fifths of it choose
        behind.append(plan.distributions[median.name].standard_error / alone.outputs[0].predicted(rival).standard_error)
    assert 1.02 < max(behind) < 1.1  # 1.89 for the age, while others were far ahead
    assert min(plan.even_share.values()) > 0.985


def test_the_strengths_of_another_kind_of_noise_give_the_same_variances() -> None:
    sums = design_of([ft.sum("x"), ft.count(by="y")], ft.dataset(_TWO, schema={"x": (0.0, 9.0), "y": ["a", "b"]}))
    model = Model.of(sums)
    for strength in (0.03, 0.4):
        for kind, other in ((LAPLACE, GAUSSIAN), (GAUSSIAN, LAPLACE)):
            shares = Shares(np.full(2, kind), np.full(2, strength))
            kinds = np.full(2, other)
            found = model.variances(kinds, model.strengths_as(kinds, shares))
            assert found == pytest.approx(model.variances(shares.kinds, shares.strengths), rel=1e-9)


_TWO = pyarrow.table({"x": [1.0], "y": ["a"]})


def quantiles_of_few_numbers(*lists: list[float], rows: int = 500_000, upper: int = 100) -> Any:
    people = ft.dataset(pyarrow.table({"x": [1], "y": [1.0]}), schema={"x": (0, upper), "y": (0.0, 9.0)})
    asked = [ft.quantiles("x", places, name=str(places)) for places in lists]
    return design_of([*asked, ft.sum("y")], people, {"rows": rows})


def test_quantiles_share_a_choice_only_where_none_is_worse_at_any_epsilon() -> None:
    # In ranks a quarter is no worse beside three others; on 101 whole numbers it is.
    assert len(quantiles_of_few_numbers([0.25], [0.1, 0.5, 0.9]).slots) == 3
    shared = quantiles_of_few_numbers([0.5], [0.25, 0.5, 0.75])
    assert len(shared.slots) == 2
    for output in shared.outputs[:2]:
        for epsilon in np.geomspace(1e-6, 10, 15).tolist():
            assert (output.variance_curve(2 * epsilon) <= 1.01 * output.alone_curve(epsilon)).all()


def test_no_quantile_of_few_whole_numbers_is_worse_than_with_an_even_share() -> None:
    for upper in (3, 100):
        design = quantiles_of_few_numbers([0.25], [0.1, 0.5, 0.9], [0.5], upper=upper)
        for epsilon in (0.02, 0.3, 4.0):
            assert min(allocate(Problem(design, epsilon=epsilon)).even_share.values()) > 0.985


def test_a_value_that_is_as_good_as_certain_keeps_the_epsilon_of_its_interval() -> None:
    design = quantiles_of_few_numbers([0.5], rows=50_000, upper=3)
    plan = allocate(Problem(design, epsilon=0.5))
    (noise,) = [each for each in plan.noises.values() if each.kind == "exponential"]
    assert 0.98 * 0.25 < noise.parameter < 0.26

"""Even shares of means and deviations: by itself a statistic is measured in the way that is best for it."""

from __future__ import annotations

import pyarrow
import pytest

import farthing as ft
from farthing.planner import Problem, allocate
from farthing.statistics.design import design_of


def test_the_even_share_is_measured_in_the_way_that_is_best_for_one_statistic() -> None:
    names = [f"x{number}" for number in range(16)]
    people = ft.dataset(pyarrow.table({name: [1.0] for name in names}), schema=dict.fromkeys(names, (0.0, 10.0)))
    expected = {"rows": 20_000} | dict.fromkeys(names, (6.0, 1.0))
    asked = [ft.std(name) for name in names]
    plan = allocate(Problem(design_of(asked, people, expected), epsilon=0.3, delta=1e-9))
    alone = allocate(Problem(design_of(asked[:1], people, expected), epsilon=0.3 / 16, delta=1e-9 / 16))
    name = asked[0].name
    own, even = (each.distributions[name].standard_error for each in (plan, alone))
    assert len(plan.noises) > 16 and len(alone.noises) == 1  # measured apart, and by itself as one partition
    assert plan.even_share[name] == pytest.approx(even / own, rel=0.01)
    assert own < even


def test_few_more_statistics_than_a_dozen_are_no_worse_than_with_even_shares() -> None:
    names = [f"x{number}" for number in range(13)]
    people = ft.dataset(pyarrow.table({name: [1.0] for name in names}), schema=dict.fromkeys(names, (0.0, 10.0)))
    expected = {"rows": 20_000} | dict.fromkeys(names, (2.5, 2.0))
    design = design_of([ft.mean(name) for name in names], people, expected)
    assert min(allocate(Problem(design, epsilon=3.0, delta=1e-9)).even_share.values()) > 0.99

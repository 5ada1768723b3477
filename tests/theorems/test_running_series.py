"""Running series: what one unit moves, what totals are made of, and what all steps cost together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from farthing.accounting import compose
from farthing.adaptive.monitor import Series
from farthing.adaptive.running_series import (
    RunningSeries,
    RunningSeriesPlan,
    StreamStrategy,
    plan_running_series,
    stream_strategy,
)
from farthing.adaptive.running_series.series_plan import root_up
from farthing.adaptive.running_series.stream_strategy import _square_root, _tree
from farthing.adaptive.session_journal import MemoryJournal
from farthing.mechanisms import DiscreteLaplace
from farthing.privacy.periods import Periods
from sources import TestSource

STRATEGIES = ["square root", "totals", "tree of 2", "tree of 3", "tree of 6"]
ALL = [Series("all", "all")]


def months(steps: int) -> Periods:
    return Periods.of("month", "2020-01", steps)


def kept(days: list[int], most: int, step: int, steps: int) -> np.ndarray[Any, Any]:
    """The earliest `most` of a unit's rows, counted by period; those of later periods are not read yet."""
    counts = np.zeros(steps, dtype=np.int64)
    for day in sorted(days)[:most]:
        if day <= step:
            counts[day] += 1
    return counts


def moves(strategy: StreamStrategy, tables: list[list[int]], most: int) -> np.ndarray[Any, Any]:
    """What a unit adds to every measured number, if its rows at step t lie on the days of tables[t]."""
    steps = strategy.matrix.shape[1]
    added = [strategy.matrix[row] @ kept(tables[at], most, at, steps) for row, at in enumerate(strategy.at.tolist())]
    return np.array(added)


def growing(steps: int, rows: int) -> Iterator[list[list[int]]]:
    """Every stream of tables of one unit with so many rows: each has a day and a step from which on it is there."""
    ways = list(itertools.product(range(steps), range(steps)))
    for chosen in itertools.combinations_with_replacement(ways, rows):
        yield [[day for day, arrival in chosen if arrival <= step] for step in range(steps)]


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize(("rows", "most"), [(2, 1), (2, 2), (3, 2)])
def test_rows_that_are_added_whenever_and_wherever_move_no_more_than_stated(name: str, rows: int, most: int) -> None:
    """Brute force over days and arrivals, late ones included; the bound of `moved` is met, and not passed."""
    steps = 3 if rows == 3 else 4
    strategy = stream_strategy(name, steps)
    found = [moves(strategy, tables, most) for tables in growing(steps, rows)]
    assert max(int(move.sum()) for move in found) == most * strategy.moved("l1", append_only=True)
    assert max(int(move @ move) for move in found) == most**2 * strategy.moved("l2", append_only=True)


@pytest.mark.parametrize("name", STRATEGIES)
def test_whatever_comes_and_goes_moves_no_more_than_stated(name: str) -> None:
    """Another table at every step: rows that are removed, dated anew and added."""
    steps = 3
    strategy = stream_strategy(name, steps)
    days = [list(one) for size in range(3) for one in itertools.combinations_with_replacement(range(steps), size)]
    for most in (1, 2):
        found = [moves(strategy, list(tables), most) for tables in itertools.product(days, repeat=steps)]
        largest = max(int(move @ move) for move in found)
        assert max(int(move.sum()) for move in found) <= most * strategy.moved("l1", append_only=False)
        assert largest <= most**2 * strategy.moved("l2", append_only=False)
        if name == "totals":
            assert largest == most**2 * strategy.moved("l2", append_only=False)


def test_a_unit_that_is_counted_again_and_again_moves_more_than_rows_that_stay_would() -> None:
    """Why the price of a table that is only added to rests on that."""
    strategy = stream_strategy("square root", 3)
    comes_back = moves(strategy, [[0], [1], [2]], 1)
    assert int(comes_back @ comes_back) > strategy.moved("l2", append_only=True)


@pytest.mark.parametrize("append_only", [True, False])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_a_replaced_unit_moves_at_most_the_sensitivity_squared(append_only: bool, kind: Any) -> None:
    strategy = "totals" if not append_only else "tree of 2" if kind == "laplace" else "square root"
    plan = RunningSeriesPlan(tuple(ALL * 2), months(3), 1.0, 1e-9, strategy, kind, 1.0, 1, "replace", append_only)
    streams = list(growing(3, 1))
    largest = 0
    for one, other in itertools.product(streams, repeat=2):
        for apart in (False, True):  # the two in one cell, or in two
            out, back = moves(plan.stream, one, 1), moves(plan.stream, other, 1)
            move = np.concatenate([out, back]) if apart else out - back
            largest = max(largest, int(np.abs(move).sum()) ** 2 if kind == "laplace" else int(move @ move))
    assert largest <= plan.sensitivity_squared
    assert largest == plan.sensitivity_squared or append_only
    assert root_up(plan.sensitivity_squared) ** 2 >= plan.sensitivity_squared * (1 - 1e-15)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("fine", [False, True])
def test_weights_make_totals_and_counts_of_what_was_measured_by_then(name: str, fine: bool) -> None:
    strategy = stream_strategy(name, 12, fine=fine)
    assert np.allclose(strategy.totals @ strategy.matrix, np.tril(np.ones((12, 12))), atol=1e-9)
    assert np.allclose(strategy.counts @ strategy.matrix, np.eye(12), atol=1e-9)
    for step in range(12):
        assert not strategy.totals[step, strategy.at > step].any()
        assert not strategy.matrix[strategy.at == step, step + 1 :].any()


def test_the_square_root_multiplied_by_itself_makes_totals() -> None:
    """`_square_root`: C C = A, and the error grows with the logarithm."""
    for steps in (1, 2, 60, 400):
        strategy = _square_root(steps)
        scaled = strategy.matrix / 2**20
        assert np.allclose(scaled @ scaled, np.tril(np.ones((steps, steps))), atol=1e-5 * steps)
        column = float((scaled[:, 0] ** 2).sum())
        last = float(((strategy.totals[-1] * 2**20) ** 2).sum())
        assert max(column, last) <= 1 + (math.log(steps) + 0.7) / math.pi
        assert strategy.moved("l2", append_only=True) == int((strategy.matrix[:, 0].astype(object) ** 2).sum())


@pytest.mark.parametrize(("steps", "branching"), [(1, 2), (7, 2), (13, 3), (16, 4), (9, 10)])
def test_totals_of_a_tree_are_those_of_least_squares(steps: int, branching: int) -> None:
    """`_tree` beside the pseudo-inverse of the rows that are there."""
    tree = _tree(steps, branching, 1)
    for step in range(steps):
        rows = tree.at <= step
        dense = tree.matrix[rows, : step + 1].astype(float)
        twin = np.ones(step + 1) @ np.linalg.pinv(dense)
        assert np.allclose(tree.totals[step, rows], twin, atol=1e-9)
    levels = 1 + math.floor(math.log(steps, branching) + 1e-9)
    assert tree.moved("l1", append_only=True) == levels


@pytest.mark.parametrize("append_only", [True, False])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (1.0, 1e-9), (0.3, 1e-4), (8.0, 1e-6)])
def test_a_plan_costs_no_more_than_its_budget_and_hardly_less(epsilon: float, delta: float, append_only: bool) -> None:
    plan = plan_running_series(ALL * 3, months(24), epsilon=epsilon, delta=delta, rows=2, append_only=append_only)
    cost = compose([plan.event]).epsilon_at(delta)
    assert 0.98 * epsilon < cost.upper <= epsilon


def test_errors_are_those_of_the_slow_product_and_grow_with_the_logarithm() -> None:
    """Every error against weights by a dense inverse, noise by its variance; Laplace sums by convolution."""
    plan = RunningSeriesPlan(tuple(ALL), months(60), 1.0, 1e-9, "square root", "gaussian", 5.0, 1, append_only=True)
    inverse = np.linalg.inv(plan.stream.matrix.astype(float))
    sigma = 5.0 * math.sqrt(plan.stream.moved("l2", append_only=True))
    deviations = sigma * np.linalg.norm(np.tril(np.ones((60, 60))) @ inverse, axis=1)
    assert np.allclose(plan.total_errors, 1.959964 * deviations, rtol=1e-5)
    assert np.allclose(plan.count_errors, 1.959964 * sigma * np.linalg.norm(inverse, axis=1), rtol=1e-5)
    assert plan.total_errors[-1] / plan.total_errors[0] < 1.6
    pure = RunningSeriesPlan(tuple(ALL), months(3), 0.5, 0.0, "tree of 4", "laplace", 0.5, 1, append_only=True)
    ratio = math.exp(-0.5)
    mass = {n: (1 - ratio) / (1 + ratio) * ratio ** abs(n) for n in range(-80, 81)}
    masses = np.array([mass[n] for n in range(-80, 81)])
    three = np.convolve(np.convolve(masses, masses), masses)
    least = next(e for e in range(240) if three[240 - e : 240 + e + 1].sum() >= 0.95)
    assert pure.total_errors[-1] == least
    assert least - 1 < pure.total_errors[-1]


@pytest.mark.slow
def test_sixty_months_are_off_by_less_than_half_of_sixty_separate_releases() -> None:
    """At one price: of separate releases of the total; and of separate months added up, noise of the same kind."""
    for delta in (0.0, 1e-9, 1e-6):
        plan = plan_running_series(ALL, months(60), epsilon=1.0, delta=delta, append_only=True)
        assert plan.total_errors[-1] < 0.3 * plan.repeated_errors[-1]
        assert plan.summed_errors is not None and plan.total_errors[-1] < plan.summed_errors[-1]
    alike = [
        RunningSeriesPlan(tuple(ALL), months(60), 1.0, 1e-9, name, "gaussian", 5.0, append_only=True)
        for name in ("square root", "tree of 61")
    ]
    assert alike[0].total_errors[-1] < 0.31 * alike[1].total_errors[-1]


@pytest.mark.slow
def test_tables_that_depend_on_earlier_answers_cost_no_more_than_the_event() -> None:
    """Two steps: the second shift is chosen by what the first released; hockey sticks by enumeration."""
    scale, reach = 2.0, 3
    ratio = math.exp(-1 / scale)

    def mass(n: Any) -> Any:
        return (1 - ratio) / (1 + ratio) * ratio ** np.abs(n)

    line = np.arange(-70, 71)
    event = DiscreteLaplace.of_scale(scale, reach).event
    for first in range(reach + 1):
        for policy in (lambda o: o > 0, lambda o: o <= 1, lambda o: o % 2 == 0):
            shift = np.where(policy(line), reach - first, 0)
            one = mass(line)[:, None] * mass(line)[None, :]
            other = mass(line - first)[:, None] * mass(line[None, :] - shift[:, None])
            for epsilon in (0.0, 0.4, 1.0, 1.4):
                stated = compose([event]).delta_at(epsilon).upper
                for left, right in ((one, other), (other, one)):
                    assert np.maximum(left - math.exp(epsilon) * right, 0).sum() <= stated + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [1.0, 0.9, 1.1])
@pytest.mark.parametrize(("kind", "strategy"), [("laplace", "tree of 2"), ("gaussian", "square root")])
def test_steps_draw_the_noise_that_was_planned_and_a_tenth_more_or_less_is_seen(
    kind: Any, strategy: str, wrong: float
) -> None:
    """24,000 draws: the variance is known to 1.5% (Laplace), the bound is 9.5%, a wrong scale is off by 19%."""
    cells, steps = 6_000, 4
    each = tuple(Series(f"{cell}", "all", (cell,)) for cell in range(cells))
    plan = RunningSeriesPlan(each, months(steps), 1.0, 1e-9, strategy, kind, 0.3, append_only=True)
    true = np.arange(cells * steps).reshape(cells, steps) % 97
    series = RunningSeries(plan, lambda table, periods: true[:, :periods], MemoryJournal())
    series._source = TestSource(7)
    planned = plan.distribution(np.eye(len(plan.stream.at))[0]).standard_error ** 2
    object.__setattr__(plan, "width", plan.width * Fraction(wrong))
    series.update()
    measured = series._measured()
    found = np.concatenate([np.array(measured[step], dtype=float) for step in range(steps)], axis=1)
    residuals = found - true @ plan.stream.matrix.T
    seen = abs(float((residuals**2).mean()) / planned - 1) > 0.095
    assert seen == (wrong != 1.0)
    if wrong == 1.0:
        for place, step in enumerate(series.steps):
            errors = np.abs(step.total.values - true[:, : place + 1].sum(axis=1))
            assert 0.93 <= float((errors <= plan.total_errors[place]).mean()) <= 0.98

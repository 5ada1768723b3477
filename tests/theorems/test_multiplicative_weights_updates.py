"""The number of updates beside the divergence it is proven by, cell by cell, and beside the worst analyst."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from farthing.adaptive.query_session import Axis, QuerySession
from farthing.adaptive.query_session.multiplicative_weights import (
    UNIFORM_PART,
    gain_of_step,
    goal_of_step,
    most_updates,
    stepped,
    updates_needed,
)
from farthing.adaptive.query_session.session_plan import plan_guaranteed_session, plan_query_session
from farthing.adaptive.session_journal import MemoryJournal
from farthing.errors import Infeasible


def divergence(rows: np.ndarray, weights: np.ndarray) -> float:
    """D(x || h), one cell after the other."""
    total = 0.0
    for x, h in zip(rows.tolist(), weights.tolist(), strict=True):
        total += (x * math.log(x / h) if x else 0.0) - x + h
    return total


@pytest.mark.parametrize("seed", range(20))
def test_the_gain_is_the_fall_of_the_divergence(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, weights = rng.integers(0, 30, 12), rng.uniform(0.1, 20, 12)
    counted = rng.random(12) < 0.5
    counted[0] = True
    a, b = float(rows[counted].sum()), float(weights[counted].sum())
    goal = float(rng.uniform(0.2, 3)) * b
    moved = stepped(weights, counted, goal / b, least=0.0, most=math.inf)
    assert divergence(rows, weights) - divergence(rows, moved) == pytest.approx(gain_of_step(a, b, goal))


def test_the_whole_step_gains_at_least_the_square_over_twice_the_larger() -> None:
    for a, b in itertools.product(np.geomspace(1e-3, 1e6, 40), repeat=2):
        assert gain_of_step(a, b, a) >= (a - b) ** 2 / (2 * max(a, b)) * (1 - 1e-9) - 1e-9


@pytest.mark.parametrize("weight", [5.0, 100.0, 1e5])
@pytest.mark.parametrize("gap", [-0.999, -0.3, 0.01, 0.4, 5.0])
@pytest.mark.parametrize("beyond", [1.0, 1.5, 4.0])
def test_half_of_the_sure_gain_is_kept_wherever_the_rows_are_beyond(weight: float, gap: float, beyond: float) -> None:
    sure = weight * (1 + gap)
    goal = goal_of_step(weight, sure, weight * (1 + gap * beyond))
    for truth in (sure, weight * (1 + 2 * gap), weight * (1 + 9 * gap)):
        rows = max(truth, 0.0)
        assert gain_of_step(rows, weight, goal) >= (sure - weight) ** 2 / (4 * max(sure, weight)) * (1 - 1e-9)


def test_a_question_that_should_count_nothing_keeps_weights_positive() -> None:
    assert 0 < goal_of_step(100.0, -50.0, -80.0) < 1e-3


def test_scaling_into_totals_that_hold_the_rows_lowers_the_divergence() -> None:
    rng = np.random.default_rng(1)
    rows, weights = rng.integers(0, 30, 12), rng.uniform(1, 60, 12)
    scaled = stepped(weights, np.zeros(12, dtype=bool), 1.0, 0.0, most=float(rows.sum()) * 1.05)
    assert scaled.sum() < weights.sum()
    assert divergence(rows, scaled) < divergence(rows, weights)
    raised = stepped(weights / 9, np.zeros(12, dtype=bool), 1.0, float(rows.sum()) * 0.95, math.inf)
    assert divergence(rows, raised) < divergence(rows, weights / 9)


@pytest.mark.parametrize("seed", range(5))
def test_an_analyst_who_knows_everything_needs_no_more_updates_than_the_bound(seed: int) -> None:
    """The largest error is asked for again and again; answers are only as good as they must be."""
    rng = np.random.default_rng(seed)
    cells, n, alpha, gain = 16, 1000, 0.1, 60
    rows = rng.multinomial(n, rng.dirichlet(np.full(cells, 0.1)))
    most, updates = (1 + alpha) * n, 0
    weights = np.full(cells, UNIFORM_PART * n / cells)
    weights[int(np.argmin(rows))] += (1 - UNIFORM_PART) * n  # all of it in the worst place
    assert divergence(rows, weights) <= most * math.log((1 + alpha) * cells / UNIFORM_PART)
    while True:
        up = rows > weights
        counted = up if (rows - weights)[up].sum() >= (weights - rows)[~up].sum() else ~up
        a, b = float(rows[counted].sum()), float(weights[counted].sum())
        if abs(a - b) < gain:
            break
        sure = b + math.copysign(gain, a - b)
        weights = stepped(weights, counted, goal_of_step(b, sure, a) / b, 0.0, most)
        updates += 1
    assert 1 <= updates <= most_updates(cells, n, alpha, gain)


def test_the_bound_rises_with_cells_and_falls_with_the_gain() -> None:
    assert most_updates(2**10, 1000, 0.1, 50) < most_updates(2**16, 1000, 0.1, 50)
    assert most_updates(2**10, 1000, 0.1, 50) > most_updates(2**10, 1000, 0.1, 100)
    assert most_updates(1, 1, 0.5, 1) >= 1


@pytest.mark.parametrize("share", [1e-6, 1e-4, 0.01, 0.3, 0.9, 1.0])
def test_the_least_sure_gain_is_that_of_the_largest_weight(share: float) -> None:
    """Over a grid of weights and sides, no sure gain is below f of `updates_needed`."""
    most, gain = 1000.0, 1000.0 * share
    least = math.inf
    for b in np.linspace(gain / 50, most, 400).tolist():
        for sure in (b + gain, b - gain):
            if 0 <= sure <= most:
                least = min(least, gain_of_step(sure, b, sure) if sure else b)
    fall = (most - gain) * math.log1p(-share) + gain if share < 1 else gain
    assert least >= fall * (1 - 1e-4)  # for rounding at the smallest gain
    assert fall * (1 + 1e-4) >= gain**2 / (2 * most)


def test_updates_needed_is_sharper_and_still_holds_against_an_analyst_who_knows_everything() -> None:
    rng = np.random.default_rng(3)
    cells, n, alpha, gain = 16, 1000, 0.1, 60
    rows = rng.multinomial(n, rng.dirichlet(np.full(cells, 0.05)))
    weights = np.full(cells, n / cells)
    bound = updates_needed(cells, n, alpha, gain, even=True)
    assert bound < most_updates(cells, n, alpha, gain) / 4
    assert updates_needed(cells, n, alpha, gain, even=False) >= bound
    for other in (rows, 0 * rows, rows // 2, np.eye(cells)[3] * n * (1 + alpha)):
        assert divergence(other, weights) <= max(n, (1 + alpha) * n * math.log((1 + alpha) * cells) - alpha * n) + 1e-9
    updates = 0
    while True:
        up = rows > weights
        a, b = float(rows[up].sum()), float(weights[up].sum())
        if abs(a - b) < gain:
            break
        # As little as is sure: the answerer knows only that the error is at least the gain.
        sure = b + math.copysign(gain, a - b)
        weights = stepped(weights, up, goal_of_step(b, sure, sure) / b, 0.0, (1 + alpha) * n)
        updates += 1
    assert 3 <= updates <= bound


@pytest.mark.slow
def test_plan_guaranteed_session_has_the_least_alpha_with_enough_updates() -> None:
    plan = plan_guaranteed_session(64, 1.0, 0.0, queries=100_000, rows=5_000_000)
    assert 100_000 > plan.updates >= plan.updates_needed and plan.start == "none"
    assert plan.error == int(plan.alpha * plan.rows) and plan.caution is None
    again = plan_query_session(64, 1.0, 0.0, plan.alpha, 100_000, 5_000_000, updates=plan.updates, start="none")
    assert replace(again, guaranteed=True) == plan
    smaller = plan_query_session(64, 1.0, 0.0, plan.alpha * 0.97, 100_000, 5_000_000, start="none")
    assert smaller.updates < smaller.updates_needed
    assert plan_guaranteed_session(64, 1.0, 0.0, queries=100_000, rows=50_000_000).alpha < plan.alpha
    with pytest.raises(Infeasible, match="no alpha below 1"):
        plan_guaranteed_session(2**16, 0.01, 0.0, queries=500, rows=100)


@pytest.mark.draws(false_alarm=0, miss=0)  # a question uses up at most one update, whatever is drawn
def test_a_guaranteed_session_of_few_questions_has_an_update_for_each() -> None:
    plan = plan_guaranteed_session(64, 1.0, 0.0, queries=12, rows=2_000)
    assert plan.updates == 12 < plan.updates_needed and plan.caution is None
    assert "before 12 are answered, in one sitting, if there are at most" in str(plan)
    rows = [2_000, *[0] * 63]
    session = QuerySession(plan, [Axis("x", range(64))], lambda: rows, MemoryJournal())
    for cells in range(12):  # the even start is wrong about each of them, and no answer helps with the next
        assert session.ask({"x": (0, cells + 1)}).error is not None

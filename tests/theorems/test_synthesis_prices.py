"""The price of a synthesis: shares of noise, private choices, and scores that move as little as they are said to."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from farthing.accounting import compose
from farthing.adaptive.prior_releases import KnownTable
from farthing.adaptive.synthesis import synthesis_plan
from farthing.adaptive.synthesis.layered_model import fitted
from farthing.adaptive.synthesis.select_measure_fit import CandidateTables, Growth, PrivateRows, _compared
from farthing.adaptive.synthesis.synthesis_prices import MOST_CELLS, SHARES, prices_within
from farthing.adaptive.synthesis.synthesis_transcript import Transcript
from farthing.data import Sensitivity
from farthing.errors import InvalidValue
from farthing.mechanisms import DiscreteGaussian, DiscreteLaplace, ExponentialMechanism
from farthing.mechanisms.additive import vector_event
from sources import TestSource

ONE = Sensitivity(1, 1, 1, 1)
ONE_REPLACED = Sensitivity(2, 2, 2, 1)
PERSON = Sensitivity(3, 6, 18, 3)  # up to three rows, replaced
BUDGETS = [
    (1.0, 1e-9, 24, ONE),
    (0.05, 1e-6, 3, PERSON),
    (1.0, 0.0, 24, ONE),
    (0.2, 0.0, 5, PERSON),
    (8.0, 1e-9, 0, ONE),
    (1e-4, 1e-12, 64, ONE),
]


@pytest.mark.parametrize(("epsilon", "delta", "choices", "sensitivity"), BUDGETS)
def test_the_event_costs_the_budget_and_not_more(
    epsilon: float, delta: float, choices: int, sensitivity: Sensitivity
) -> None:
    prices = prices_within(epsilon, delta, choices, 60, sensitivity)
    cost = compose([prices.event]).epsilon_at(delta)
    assert cost.proven
    assert 0.99 * epsilon <= cost.upper <= epsilon


@pytest.mark.parametrize("shares", [1, 7, 80, SHARES])
@pytest.mark.parametrize("sensitivity", [ONE, ONE_REPLACED, PERSON])
@pytest.mark.parametrize("cells", [1, 2, 100])
def test_a_table_with_k_shares_is_dominated_by_k_of_them(shares: int, sensitivity: Sensitivity, cells: int) -> None:
    prices = prices_within(1.0, 1e-9, 24, 60, sensitivity)
    noise = prices.noise(shares, cells)
    assert isinstance(noise, DiscreteGaussian)
    event = vector_event(noise._sigma_squared, sensitivity.l2, MOST_CELLS)
    (gaussian, _), (leak, _) = event.parts  # type: ignore[attr-defined]
    assert Fraction(gaussian.noise_multiplier) ** 2 * shares >= Fraction(prices.unit) ** 2 * (1 - Fraction(1, 2**50))
    assert leak.delta <= prices.event.parts[-1][0].delta  # type: ignore[attr-defined]
    reach = sensitivity.l2 if cells > 1 else math.ceil(sensitivity.l2)
    assert noise._sigma_squared <= 1.01 * float(prices.unit * reach) ** 2 / shares + 10
    if cells > 1:
        assert prices.standard_error(shares) == pytest.approx(noise.standard_error)


@pytest.mark.parametrize("sensitivity", [ONE, PERSON])
def test_pure_shares_add_up(sensitivity: Sensitivity) -> None:
    prices = prices_within(1.0, 0.0, 24, 60, sensitivity)
    for shares in (1, 7, SHARES):
        noise = prices.noise(shares, 100)
        assert isinstance(noise, DiscreteLaplace)
        assert noise.l1_sensitivity == sensitivity.l1
        assert Fraction(noise.epsilon) <= shares * Fraction(prices.unit)


def test_noise_falls_with_shares_and_with_the_budget() -> None:
    for delta in (1e-9, 0.0):
        prices = [prices_within(epsilon, delta, 24, 60, ONE) for epsilon in (0.1, 1.0, 4.0)]
        errors = [[one.standard_error(shares) for shares in (10, 50, 250)] for one in prices]
        assert np.all(np.diff(errors, axis=0) < 0)
        assert np.all(np.diff(errors, axis=1) < 0)
        assert np.all(np.diff([one.choice_epsilon for one in prices]) > 0)


@pytest.mark.slow
def test_a_tiny_delta_is_served_by_pure_noise_and_no_budget_is_refused() -> None:
    assert prices_within(1.0, 1e-30, 24, 60, ONE).pure
    assert not prices_within(1.0, 1e-15, 24, 60, ONE).pure
    for epsilon in (0.0, 1e-14):
        with pytest.raises(InvalidValue, match="epsilon"):
            prices_within(epsilon, 1e-9, 24, 60, ONE)


@pytest.mark.parametrize("delta", [1e-9, 0.0])
@pytest.mark.parametrize("sizes", [(3,), (1, 1), (2, 5), (4, 3, 2), (5, 4, 3, 2, 6)])
def test_a_run_never_uses_more_than_the_event_says(sizes: tuple[int, ...], delta: float) -> None:
    plan = synthesis_plan(sizes, 2.0, delta)
    rows = np.random.default_rng(1).integers(0, sizes, size=(300, len(sizes)))
    found = Transcript.read(plan.draw(rows, source=TestSource(5)))
    assert sum(table.shares for table in found.tables) <= SHARES
    assert len(found.chosen) <= plan.prices.choices
    assert len(found.tables) <= plan.prices.tables
    assert max(table.values.size for table in found.tables) <= MOST_CELLS


@pytest.mark.slow
def test_scores_of_neighbours_differ_by_one_at_most() -> None:
    """All candidates of a round, a row taken away: each error moves by exactly one cell."""
    sizes = (6, 4, 3, 20)
    random = np.random.default_rng(3)
    rows = np.minimum(random.geometric(0.3, size=(400, 4)) - 1, np.array(sizes) - 1)
    plan = synthesis_plan(sizes, 1.0, 1e-9)
    found = Transcript.read(plan.draw(rows, source=TestSource(8)))
    model = fitted(found, plan.prices.standard_error)
    counts = [np.bincount(part).astype(float) for part in found.groups]
    offered = list(CandidateTables(counts).candidates_of_round(0, Growth(model.graph.sizes, [], 2**16)))
    assert len(offered) > 10
    alone = PrivateRows(rows, np.ones(400, dtype=np.int64), sizes).grouped(found.groups)
    fewer = PrivateRows(rows[1:], np.ones(399, dtype=np.int64), sizes).grouped(found.groups)
    errors, others = _compared(alone, model, offered)[2], _compared(fewer, model, offered)[2]
    assert set(np.abs(errors - others).tolist()) == {1}


@pytest.mark.parametrize("huge", [1e19, 1e25])
def test_no_known_table_is_so_wrong_that_scores_wrap_around(huge: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine to thirteen rows: in 64 bits, one of these steps once was from the lowest score to the highest."""
    asked: list[Any] = []

    def nothing(self: ExponentialMechanism, scores: Any, source: Any) -> int:
        asked.append(scores.astype(object))
        return len(scores) - 1

    monkeypatch.setattr(ExponentialMechanism, "_answer", nothing)
    known = [KnownTable((name,), np.array([huge, 0.0]), 0.0) for name in ("column 0", "column 1")]
    plan = synthesis_plan((2, 2), 1.0, known=known)
    for rows in range(9, 14):
        plan.draw(np.zeros((rows, 2), dtype=np.int64), source=TestSource(4))
    assert np.all(np.abs(np.diff(np.array(asked), axis=0)) <= 1)

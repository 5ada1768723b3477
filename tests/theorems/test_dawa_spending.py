"""A budget spent in steps: parts never add up to more than was promised, whichever way the steps go."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from farthing.accounting import compose
from farthing.errors import InvalidValue
from farthing.matrix.data_dependent.step_budget import Spending
from farthing.matrix.strategies.strategy import Level
from farthing.matrix.strategies.strategy_noise import LevelNoise

COUNT = Level("count", 1, 1, 1)


def divided(spending: Spending, weights: list[int], level: Level = COUNT) -> list[LevelNoise]:
    """The noises of steps that take the whole budget, in these proportions."""
    rest = 1 - (spending.chosen if spending.kind == "laplace" else Fraction(0))
    return [spending.noise(level, rest * Fraction(weight, sum(weights))) for weight in weights]


@settings(deadline=None, max_examples=15)
@given(
    epsilon=some.floats(1e-3, 8.0),
    weights=some.lists(some.integers(1, 1000), min_size=1, max_size=6),
    chosen=some.sampled_from([Fraction(0), Fraction(1, 4)]),
)
def test_sound_laplace_parts_never_add_up_to_more_than_epsilon(
    epsilon: float, weights: list[int], chosen: Fraction
) -> None:
    spending = Spending(epsilon, chosen=chosen)
    noises = divided(spending, weights)
    spending.check(noises)
    spent = sum(Fraction(one.mechanism.epsilon) for one in noises)  # type: ignore[union-attr, misc]
    assert spent + Fraction(spending.choosing) <= Fraction(epsilon)
    assert spent >= Fraction(epsilon) * (1 - chosen) * (1 - Fraction(1, 2**40))  # tight
    assert spending.cost.upper <= epsilon


@pytest.mark.parametrize("weights", [[1], [1, 49], [3, 5, 7, 900]])
@pytest.mark.parametrize("chosen", [Fraction(0), Fraction(1, 4)])
def test_sound_gaussian_steps_cost_no_more_than_one_gaussian(weights: list[int], chosen: Fraction) -> None:
    spending = Spending(1.0, 1e-9, "gaussian", chosen)
    noises = divided(spending, weights, Level("buckets", 300, 1, 1))
    spending.check(noises)
    together = compose([one.event for one in noises]).epsilon_at(1e-9)
    assert together.lower <= 1.0
    if chosen == 0:
        assert together.upper <= 1.0 + 1e-6
        assert together.lower >= 0.999  # tight: nothing of note is left over
    assert spending.cost.upper <= 1.0


def test_a_step_too_many_is_noticed() -> None:
    for spending in (Spending(0.5), Spending(0.5, 1e-6, "gaussian")):
        noises = divided(spending, [1, 1])
        with pytest.raises(AssertionError):
            spending.check([*noises, noises[0]])


def test_a_private_choice_counts_as_a_step() -> None:
    spending = Spending(0.5)
    noises = divided(spending, [1, 1])[:1]
    half = spending.choice(Fraction(1, 2))
    spending.check(noises, [half])
    with pytest.raises(AssertionError):
        spending.check(noises, [half, 2.0**-40])
    with pytest.raises(AssertionError):
        Spending(0.5, 1e-6, "gaussian").check([], [half])


def test_monotone_more_of_the_budget_is_less_noise() -> None:
    for spending in (Spending(0.5), Spending(0.5, 1e-6, "gaussian")):
        deviations = [spending.deviation(Fraction(part, 100)) for part in (2, 10, 50, 100)]
        assert np.all(np.diff(deviations) < 0)


def test_degenerate_gaussian_noise_needs_a_delta() -> None:
    for delta in (0.0, 1e-30):
        with pytest.raises(InvalidValue, match="Gaussian noise"):
            Spending(1.0, delta, "gaussian")

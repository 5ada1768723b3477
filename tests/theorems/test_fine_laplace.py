"""Discrete Laplace noise of many steps lies between two real Laplace noises."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from farthing import compose
from farthing.accounting.algorithm_choice import Pricing
from farthing.accounting.compose import enclosed, enclosing_laplace
from farthing.privacy import ApproxDP, DiscreteLaplaceNoise, GaussianNoise


def discrete_delta(rate: float, steps: int, epsilon: float) -> float:
    """Sum of (P - e^epsilon Q)_+ over integers, P = the law around 0 and Q = the law around `steps`."""
    mass = math.tanh(rate / 2)
    reach = steps + int(60 / rate)
    total = []
    for n in range(-reach, reach + 1):
        p = mass * math.exp(-rate * abs(n))
        q = mass * math.exp(-rate * abs(n - steps))
        total.append(max(0.0, p - math.exp(epsilon) * q))
    return math.fsum(total)


def laplace_delta(multiplier: float, epsilon: float) -> float:
    top = 1 / multiplier
    if epsilon >= top:
        return 0.0
    return -math.expm1(epsilon) if epsilon <= -top else -math.expm1((epsilon - top) / 2)


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("total", [0.1, 1.0, 5.0])
def test_the_discrete_curve_lies_between(steps: int, total: float) -> None:
    less, more = enclosing_laplace(1 / total, steps)
    for i in range(-40, 41):
        epsilon = total * 1.05 * i / 40 + 1e-3 * total
        delta = discrete_delta(total / steps, steps, epsilon)
        assert laplace_delta(less.noise_multiplier, epsilon) <= delta + 1e-12
        assert delta <= laplace_delta(more.noise_multiplier, epsilon) + 1e-12


def test_half_the_added_epsilon_would_not_be_enough() -> None:
    """Tight: between lattice points the bound is met to first order."""
    total, steps = 1.0, 4
    rate = total / steps
    half = total + rate**2 / 8
    epsilon = total - rate
    assert discrete_delta(rate, steps, epsilon) > laplace_delta(1 / half, epsilon) + 1e-6


def test_the_second_multiplier_is_never_rounded_up() -> None:
    for multiplier, steps in ((0.3, 64), (7.0, 1000), (41.7, 2**20), (1e6, 10**9)):
        _, more = enclosing_laplace(multiplier, steps)
        m = Fraction(multiplier)
        assert 1 / Fraction(more.noise_multiplier) >= 1 / m + 1 / (m * steps) ** 2 / 4


@pytest.mark.slow
def test_compose_agrees_with_the_grid_engine() -> None:
    events = [DiscreteLaplaceNoise(3.0 + i / 7, 70_000) for i in range(3)]
    quick = compose(events)
    by_grid = Pricing(quick.loss).epsilon_at(1e-6, True)
    bounds = quick.epsilon_at(1e-6)
    assert bounds.proven
    assert bounds.upper >= by_grid.lower and bounds.lower <= by_grid.upper
    assert bounds.width < 1e-6
    delta, delta_by_grid = quick.delta_at(0.5), Pricing(quick.loss).delta_at(0.5, True)
    assert delta.upper >= delta_by_grid.lower and delta.lower <= delta_by_grid.upper


def test_nothing_changes_for_few_or_coarse_steps() -> None:
    assert enclosed(compose([DiscreteLaplaceNoise(2.0, 63)]).loss.charges) is None
    assert enclosed(compose([DiscreteLaplaceNoise(0.5, 100)]).loss.charges) is None  # a hair of 1e-4 is not a hair
    assert enclosed(compose([0.1, GaussianNoise(3.0)]).loss.charges) is None


def test_at_delta_zero_epsilons_add_up() -> None:
    bounds = compose([DiscreteLaplaceNoise(4.0, 10**6), ApproxDP(0.25)]).epsilon_at(0.0)
    assert bounds.lower <= 0.5 <= bounds.upper and bounds.width < 1e-9

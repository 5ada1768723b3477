"""Numbers known from elsewhere: published, or computed here by an independent route.

Origin: figures of 2026-11 (exact values of 100 x 0.1; faults seen in other libraries), closed forms, and the exact
homogeneous theorem (Kairouz, Oh & Viswanath), which sums binomials in balls and shares no code with the engines.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import farthing as ft
from farthing.accounting.theorems import kov_exact_homogeneous
from farthing.privacy import LaplaceNoise, RandomizedResponse


@pytest.mark.parametrize(("delta", "epsilon"), [(1e-6, 4.774568), (1e-15, 7.631074), (1e-20, 8.664980)])
def test_hundred_tenths(delta: float, epsilon: float) -> None:
    bounds = ft.compose([0.1], counts=[100]).epsilon_at(delta)
    assert round(bounds.estimate, 6) == epsilon and bounds.width < 1e-9


@pytest.mark.parametrize(
    ("epsilon", "count", "delta", "expected"), [(0.01, 10_000, 2e-15, 8.073), (1.0, 100, 1e-6, 83.53)]
)
def test_where_others_fell_below_the_optimum(epsilon: float, count: int, delta: float, expected: float) -> None:
    bounds = ft.compose([epsilon], counts=[count]).epsilon_at(delta)
    assert abs(bounds.estimate - expected) < 6e-3 and bounds.lower > expected - 6e-3


def test_the_count_of_events_is_not_dropped() -> None:
    assert ft.compose([RandomizedResponse(0.1)] * 100).epsilon_at(1e-6).lower > 4.77


def test_an_infeasible_delta_is_infinite_and_not_a_number() -> None:
    assert ft.compose([(0.1, 1e-6)] * 10).epsilon_at(1e-6) == ft.Bounds(math.inf, math.inf)
    exactly = ft.compose([(0.5, 1e-6)]).epsilon_at(1e-6)
    assert exactly.lower <= 0.5 <= exactly.upper and exactly.width < 1e-12


@pytest.mark.parametrize(
    ("epsilon", "count"), [(0.1, 50), (1.0, 1500), (0.003, 20_000), (0.001, 1_000_000), (1.0, 1_000_000)]
)
@pytest.mark.parametrize("delta", [1e-6, 1e-30])
def test_homogeneous_equals_the_sum_of_binomials(epsilon: float, count: int, delta: float) -> None:
    bounds = ft.compose([epsilon], counts=[count]).epsilon_at(delta)
    exact = kov_exact_homogeneous(epsilon, count, delta)
    assert bounds.lower <= exact.upper and exact.lower <= bounds.upper
    assert bounds.width <= 1e-9


@pytest.mark.slow
def test_one_laplace_in_closed_form() -> None:
    for multiplier in (0.5, 2.0, 50.0):
        whole = 1 / multiplier
        for share in (0.0, 0.4, 0.9):
            bounds = ft.compose([LaplaceNoise(multiplier)]).delta_at(share * whole)
            exact = -math.expm1((share - 1) * whole / 2)
            assert bounds.lower <= exact * (1 + 1e-12) and bounds.upper >= exact * (1 - 1e-12)


def convolved(multiples: np.ndarray, step: float, delta: float) -> float:
    """The optimum for multiples of a step, by two-tap convolution of the exact lattice distribution."""
    top, distribution = int(multiples.sum()), np.ones(1)
    for n in multiples.tolist():
        p = 1 / (1 + math.exp(-n * step))
        wider = np.zeros(len(distribution) + n)
        wider[: len(distribution)] += p * distribution  # place j: the loss is top - 2 j steps
        wider[n:] += (1 - p) * distribution
        distribution = wider
    loss = (top - 2 * np.arange(len(distribution))) * step
    low, high = 0.0, top * step
    for _ in range(200):
        middle = (low + high) / 2
        value = float(np.sum(distribution[loss > middle] * -np.expm1(middle - loss[loss > middle])))
        low, high = (middle, high) if value > delta else (low, middle)
    return high


@pytest.mark.parametrize(("count", "digits"), [(45, 2), (80, 3), (300, 2), (1000, 2)])
@pytest.mark.parametrize("delta", [0.2, 1e-9, 1e-30])
def test_decimals_equal_the_convolved_law(count: int, digits: int, delta: float) -> None:
    values = np.maximum(np.round(np.random.default_rng(count).uniform(0.01, 0.5, count), digits), 10.0**-digits)
    composition = ft.compose(values)
    bounds = composition.epsilon_at(delta)
    truth = convolved(np.rint(values * 10**digits).astype(int), 10.0**-digits, delta)
    assert bounds.lower - 1e-10 <= truth <= bounds.upper + 1e-10
    assert bounds.width <= 1e-9 and abs(bounds.estimate - truth) < 1e-10
    quick = composition.epsilon_at(delta, proof=False)
    assert not quick.proven and quick.lower - 1e-10 <= truth <= quick.upper + 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-9, 1e-30, 2.0**-100, 1e-300])
@pytest.mark.parametrize("count", [100, 1000])
def test_generic_reals_are_proven_tightly_at_every_delta(count: int, delta: float) -> None:
    bounds = ft.compose(np.random.default_rng(count).uniform(0.01, 0.5, count)).epsilon_at(delta)
    assert bounds.proven and bounds.lower > 0 and bounds.width <= 1e-6


@pytest.mark.slow
def test_widths_at_the_limits() -> None:
    generator = np.random.default_rng(9)
    assert ft.compose(generator.uniform(0.001, 5, 40)).epsilon_at(1e-9).width <= 1e-9
    for count, digits in ((60, 5), (100, 6), (1000, 4), (1000, 6), (10_000, 3)):
        values = np.maximum(np.round(generator.uniform(0.001, 0.5, count), digits), 0.001)
        assert ft.compose(values).epsilon_at(1e-9).width <= 1e-9, (count, digits)
    assert ft.compose(generator.uniform(0.01, 0.5, 10_000)).epsilon_at(1e-9).width <= 1e-6
    million = ft.compose(generator.uniform(0.001, 0.01, 1_000_000))
    proven = million.epsilon_at(1e-9)
    assert proven.width <= 1e-5
    assert abs(million.epsilon_at(1e-9, proof=False).estimate - proven.estimate) < 1e-9

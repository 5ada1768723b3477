"""Discrete Laplace noise of several steps: its transform, and what it gives in composition."""

from __future__ import annotations

import cmath
import math
from itertools import product

import numpy as np
import pytest

from farthing import compose
from farthing.accounting.algorithms.grid_algorithm import compose_on_grid
from farthing.accounting.loss_transforms import Stepped
from farthing.privacy import (
    BoundedRange,
    DiscreteLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
)


def losses(epsilon: float, steps: int) -> list[tuple[float, float]]:
    """(loss, probability) of every outcome that differs, from the mass function."""
    rate = epsilon / steps
    mass = math.tanh(rate / 2)
    r = math.exp(-rate)
    found = [(epsilon, 1 / (1 + r)), (-epsilon, r**steps / (1 + r))]
    found += [(rate * (steps - 2 * n), mass * r**n) for n in range(1, steps)]
    assert math.isclose(math.fsum(p for _, p in found), 1.0)
    return found


@pytest.mark.parametrize("steps", [1, 2, 3, 17])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 4.0])
def test_the_transform_is_the_sum_over_outcomes(steps: int, epsilon: float) -> None:
    stepped = Stepped(np.array([epsilon]), np.array([float(steps)]), np.array([1.0]))
    for c in (0.0, 0.3, 5.0, 40.0):
        exact = math.log(math.fsum(p * math.exp(c * x) for x, p in losses(epsilon, steps)))
        value, first, second, error = stepped.cumulants(c)
        assert abs(value - exact) <= error + 1e-13 * abs(exact)
        h = 1e-4
        around = [math.log(math.fsum(p * math.exp((c + d) * x) for x, p in losses(epsilon, steps))) for d in (-h, 0, h)]
        assert first == pytest.approx((around[2] - around[0]) / (2 * h), rel=1e-4, abs=1e-6)
        assert second == pytest.approx((around[2] - 2 * around[1] + around[0]) / h**2, rel=1e-2, abs=1e-4)
        t = np.array([0.1, 1.0, 30.0])
        modulus, argument, spread = stepped.log_ratio(c, t)
        for place, angle in enumerate(t):
            wanted = sum(p * cmath.exp(complex(c, angle) * x) for x, p in losses(epsilon, steps))
            wanted /= math.exp(exact)
            found = cmath.exp(complex(modulus[place], argument[place]))
            assert abs(found - wanted) <= 2.0**-45 * spread[place] * abs(wanted) + 1e-13


def brute_force_delta(noises: list[tuple[float, int]], epsilon: float) -> float:
    total = []
    for outcome in product(*(losses(e, s) for e, s in noises)):
        loss = math.fsum(x for x, _ in outcome)
        if loss > epsilon:
            total.append(math.prod(p for _, p in outcome) * -math.expm1(epsilon - loss))
    return math.fsum(total)


@pytest.mark.slow
@pytest.mark.parametrize(
    "noises",
    [
        [(0.3, 2), (0.5, 3)],
        [(0.2, 5), (0.7, 4), (1.1, 2)],
        [(0.05, 3)] * 4 + [(0.11, 7)],
        [(3.0, 2), (0.1, 9)],
    ],
    ids=["two", "three", "five", "uneven"],
)
@pytest.mark.parametrize("delta", [1e-12, 1e-4])
def test_the_bounds_hold_what_enumeration_gives(noises: list[tuple[float, int]], delta: float) -> None:
    composition = compose([DiscreteLaplaceNoise(1 / e, s) for e, s in noises])
    bounds = composition.epsilon_at(delta)
    assert bounds.proven and not composition.loss.kinds.grid
    assert brute_force_delta(noises, bounds.upper) <= delta * (1 + 1e-9)
    assert brute_force_delta(noises, max(0.0, bounds.lower - 1e-12)) >= delta * (1 - 1e-9) or bounds.lower == 0
    assert bounds.width < 1e-6
    for epsilon in (0.0, 0.3, 0.7):
        found, exact = composition.delta_at(epsilon), brute_force_delta(noises, epsilon)
        assert found.lower <= exact * (1 + 1e-9) and exact <= found.upper * (1 + 1e-9) + 1e-300


def test_a_mixture_agrees_with_the_grid() -> None:
    events = [
        DiscreteLaplaceNoise(4.0, 3), DiscreteLaplaceNoise(2.5, 2), LaplaceNoise(6.0), BoundedRange(0.2),
        GaussianNoise(9.0), RandomizedResponse(0.05),
    ]  # fmt: skip
    bounds = compose(events).pricing.epsilon_at(1e-5, True)
    # A coarse grid: four digits are known in a moment, five would take seconds.
    by_grid = compose_on_grid([(event, 1) for event in events], tolerance=1e-4, most_cells=1 << 16).epsilon_bounds(1e-5)
    assert by_grid.width < 4e-5
    assert by_grid.lower <= bounds.lower <= bounds.upper <= by_grid.upper


def test_what_is_too_wide_for_floats_takes_all_to_the_grid() -> None:
    wide = compose([DiscreteLaplaceNoise(4.0, 3), DiscreteLaplaceNoise(1e6, 2**41)])
    assert wide.loss.kinds.grid


def test_near_the_largest_loss_both_ends_are_told() -> None:
    bounds = compose([DiscreteLaplaceNoise(9.0, 3), DiscreteLaplaceNoise(1.8, 3), LaplaceNoise(6.4)]).epsilon_at(1e-9)
    top = 1 / 9.0 + 1 / 1.8 + 1 / 6.4
    assert top - 1e-7 < bounds.lower <= bounds.upper <= top + 1e-12

"""The fast cost of a plan: as the accountant proves it, or honest about not being."""

from __future__ import annotations

import math

import numpy as np
import pytest

from farthing.accounting import compose
from farthing.accounting.cost_estimates import (
    REAL_LAPLACE,
    Losses,
    composed_cost,
    laplace_log_moment,
    range_log_moment,
    saddle_cost,
)
from farthing.privacy import BoundedRange, DiscreteLaplaceNoise, Event, GaussianNoise, LaplaceNoise

NONE = np.zeros(0)
SPREAD = np.linspace(0.02, 0.12, 24)
REAL = np.full(24, REAL_LAPLACE)
CASES = {
    "Gaussians": (Losses(0.05, NONE, NONE, NONE, NONE), 1e-9),
    "Gaussian and Laplace": (Losses(0.02, SPREAD, REAL, NONE, NONE), 1e-9),
    "Gaussian and one step": (Losses(0.02, SPREAD, np.ones(24), NONE, NONE), 1e-6),
    "Gaussian and few steps": (Losses(0.02, SPREAD[:6], np.full(6, 3.0), NONE, NONE), 1e-6),
    "choices": (Losses(0.0, NONE, NONE, np.array([0.1, 0.2, 0.3]), np.array([3.0, 2.0, 1.0])), 1e-9),
    "everything": (Losses(0.5, SPREAD, REAL, np.array([0.1]), np.array([3.0])), 1e-3),
    "three Laplace, which add up": (
        Losses(0.0, np.array([0.2, 0.3, 0.5]), np.full(3, 7.0), NONE, NONE),
        1e-9,
    ),
    "a large epsilon": (Losses(4.0, np.array([3.0, 8.0]), np.full(2, REAL_LAPLACE), NONE, NONE), 1e-9),
}


def _events(losses: Losses) -> list[Event]:
    events: list[Event] = [GaussianNoise(losses.gaussian**-0.5)] if losses.gaussian else []
    for epsilon, steps in zip(losses.laplace.tolist(), losses.steps.tolist(), strict=True):
        real = steps == REAL_LAPLACE
        events.append(LaplaceNoise(1 / epsilon) if real else DiscreteLaplaceNoise(1 / epsilon, int(steps)))
    for epsilon, count in zip(losses.ranges.tolist(), losses.counts.tolist(), strict=True):
        events += [BoundedRange(epsilon)] * int(count)
    return events


@pytest.mark.parametrize(("losses", "delta"), CASES.values(), ids=CASES.keys())
def test_the_estimate_is_the_proven_cost(losses: Losses, delta: float) -> None:
    found = composed_cost(losses, delta)
    proven = compose(_events(losses)).pricing.epsilon_at(delta, True)  # one pair for each loss, as the search sees them
    assert found.reliable
    assert math.isclose(found.epsilon, proven.estimate, rel_tol=3e-7)
    assert math.isclose(composed_cost(losses, delta, 1.3 * found.saddle).epsilon, found.epsilon, rel_tol=1e-9)


@pytest.mark.parametrize(("losses", "delta"), CASES.values(), ids=CASES.keys())
def test_the_first_order_cost_is_close_enough_to_steer_by(losses: Losses, delta: float) -> None:
    exact = composed_cost(losses, delta)
    first, saddle = saddle_cost(losses, delta)
    assert math.isclose(first, exact.epsilon, rel_tol=0.05) and math.isclose(saddle, exact.saddle, rel_tol=0.05)


def test_a_lattice_that_comes_back_is_called_unreliable() -> None:
    equal = Losses(0.0, np.full(100, 0.01), np.ones(100), NONE, NONE)
    assert not composed_cost(equal, 1e-9).reliable


def test_without_delta_epsilons_add_up_and_gaussian_noise_has_none() -> None:
    assert composed_cost(Losses(0.0, SPREAD, REAL, NONE, NONE), 0.0).epsilon == pytest.approx(SPREAD.sum())
    assert composed_cost(CASES["Gaussians"][0], 0.0).epsilon == math.inf


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 200])
@pytest.mark.parametrize("z", [0.3, 2.0, 40.0])
def test_the_laplace_moment_is_the_sum_over_all_outcomes(steps: int, z: float) -> None:
    epsilon = 0.7
    rate = epsilon / steps
    n = np.arange(-60 * steps, 60 * steps + 1)
    mass = np.tanh(rate / 2) * np.exp(-rate * np.abs(n))
    loss = rate * (np.abs(n - steps) - np.abs(n))
    moment = float(np.log(np.sum(mass * np.exp(z * loss))))
    assert math.isclose(float(laplace_log_moment(z, epsilon, steps)), moment, rel_tol=1e-10)


@pytest.mark.parametrize("z", [0.3, 2.0, 40.0])
def test_the_moment_of_a_choice_is_its_integral(z: float) -> None:
    from scipy.integrate import quad

    epsilon = 0.7
    density = 1 / (4 * math.sinh(epsilon / 2))
    moment, _ = quad(lambda u: density * math.exp((z + 0.5) * u), -epsilon, epsilon, epsabs=0, epsrel=1e-12)
    assert math.isclose(float(range_log_moment(z, epsilon)), math.log(moment), rel_tol=1e-9)

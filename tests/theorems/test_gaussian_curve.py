"""The closed form of composed Gaussian noise, against a direct integral of the densities."""

from __future__ import annotations

import math

import mpmath
import pytest

import farthing as ft
from farthing.accounting.algorithms.gaussian_composition import GaussianCurve
from farthing.privacy import GaussianNoise


def integrated_delta(mu: float, epsilon: float) -> mpmath.mpf:
    """The integral of (p - e^epsilon q)_+ over two normal densities mu apart, from where they balance."""
    with mpmath.workdps(25):  # nine digits are compared; up to six are lost where the densities balance
        start = mpmath.mpf(epsilon) / mu - mpmath.mpf(mu) / 2
        ends = [start + step for step in range(16)]
        return mpmath.quad(lambda v: mpmath.npdf(v) - mpmath.exp(epsilon) * mpmath.npdf(v + mu), ends)


@pytest.mark.slow
@pytest.mark.parametrize(("mu", "epsilon"), [(0.01, 0.0), (0.01, 0.05), (0.5, 0.3), (0.5, 3.0), (1.0, 2.0), (3.0, 8.0)])
def test_curve_holds_the_integral(mu: float, epsilon: float) -> None:
    low, high = GaussianCurve.of(((1 / mu, 1),)).log_delta(epsilon)
    truth = mpmath.log(integrated_delta(mu, epsilon))
    assert abs(truth - low) < 1e-9 * (1 + abs(low)) and abs(truth - high) < 1e-9 * (1 + abs(high))
    assert low <= high


def test_noise_a_tenth_off_is_noticed() -> None:
    right = GaussianCurve.of(((1.0, 1),)).log_delta(1.0)
    for factor in (0.9, 1.1):
        wrong = GaussianCurve.of(((factor, 1),)).log_delta(1.0)
        assert wrong.low > right.high or wrong.high < right.low


@pytest.mark.parametrize("multiplier", [1e-4, 1e-3, 0.5, 7.0, 1e4, 1e9])
@pytest.mark.parametrize("delta", [0.9, 1e-3, 1e-9, 1e-300])
def test_answers_are_tight_at_every_scale(multiplier: float, delta: float) -> None:
    bounds = ft.compose([GaussianNoise(multiplier)]).epsilon_at(delta)
    assert bounds.proven and bounds.width <= 1e-11 * bounds.upper
    if bounds.lower > 0:
        assert ft.compose([GaussianNoise(multiplier)]).delta_at(bounds.upper).lower <= delta


def test_many_noises_are_one() -> None:
    many = ft.compose([GaussianNoise(3.0)], counts=[9]).epsilon_at(1e-6)
    one = ft.compose([GaussianNoise(1.0)]).epsilon_at(1e-6)
    assert many.lower <= one.upper and one.lower <= many.upper


def test_no_noise_to_speak_of_costs_nothing_at_a_large_delta() -> None:
    assert ft.compose([GaussianNoise(1e9)]).epsilon_at(0.5).upper == 0.0
    assert math.isinf(ft.compose([GaussianNoise(1.0)]).epsilon_at(0.0).upper)

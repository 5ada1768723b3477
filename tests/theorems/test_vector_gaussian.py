"""Integer vectors under discrete Gaussian noise, any shift of the l2 norm, beside the event that prices them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from farthing.accounting import compose
from farthing.errors import InvalidValue
from farthing.mechanisms import DiscreteGaussian
from farthing.mechanisms.additive import vector_event
from farthing.privacy import ApproxDP, GaussianNoise


def hockey_stick(shift: list[int], sigma: float, epsilon: float) -> float:
    """delta(epsilon) of independent discrete Gaussians moved by `shift`, by convolving their losses."""
    reach = int(12 * sigma) + 2
    n = np.arange(-reach, reach + 1)
    mass = np.exp(-(n**2) / (2 * sigma**2))
    mass /= mass.sum()
    # The loss of a cell moved by a is (a^2 - 2 a n) / (2 sigma^2): all of them share the lattice 1 / (2 sigma^2).
    distribution = {0: 1.0}
    for a in shift:
        following: dict[int, float] = {}
        for value, p in distribution.items():
            for loss, q in zip((a * a - 2 * a * n).tolist(), mass.tolist(), strict=True):
                if p * q > 1e-18:
                    following[value + loss] = following.get(value + loss, 0.0) + p * q
        distribution = following
    return sum(p * max(0.0, -math.expm1(epsilon - value / (2 * sigma**2))) for value, p in distribution.items())


SHIFTS = [[3], [2, 2, 1], [1] * 4, [2, 1, 1], [3, 0], [2, 2]]


@pytest.mark.parametrize("shift", SHIFTS, ids=str)
@pytest.mark.parametrize("sigma", [3.0, 4.5, 9.0])
def test_no_integer_shift_costs_more_than_the_event(shift: list[int], sigma: float) -> None:
    norm = math.sqrt(sum(a * a for a in shift))
    event = vector_event(Fraction(sigma) ** 2, norm * (1 + 1e-15), len(shift))
    composition = compose([event])
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0):
        assert hockey_stick(shift, sigma, epsilon) <= composition.delta_at(epsilon).upper + 1e-13


def test_the_smoothing_is_needed_or_at_least_not_slack_by_much() -> None:
    """At sigma 30 the event is within half a percent of what plain Gaussian noise of the same sigma would cost."""
    event = vector_event(Fraction(900), 3.0, cells=100)
    priced = compose([event]).epsilon_at(1e-6).upper
    continuous = compose([GaussianNoise(10.0)]).epsilon_at(1e-6).lower
    assert continuous < priced < 1.005 * continuous


def test_less_noise_than_said_is_noticed() -> None:
    """The claim has power: with sigma 10% smaller the enumeration exceeds the event."""
    composition = compose([vector_event(Fraction(81), 3.0, 2)])
    assert hockey_stick([3, 0], 8.1, 0.5) > composition.delta_at(0.5).upper


def test_one_cell_or_one_step_keeps_its_own_event() -> None:
    assert DiscreteGaussian(3.0, 2).event.tag == "discrete_gaussian"
    assert DiscreteGaussian(3.0, 1, cells=1000).event.tag == "discrete_gaussian"
    assert DiscreteGaussian(30.0, 2, cells=1000).event.tag == "composed"


def test_monotone_in_noise_sensitivity_and_cells() -> None:
    multiplier = lambda *args: vector_event(*args).parts[0][0].noise_multiplier  # type: ignore[attr-defined]  # noqa: E731
    leak = lambda *args: vector_event(*args).parts[1][0].delta  # type: ignore[attr-defined]  # noqa: E731
    assert multiplier(Fraction(400), 2.0, 5) < multiplier(Fraction(500), 2.0, 5)
    assert multiplier(Fraction(400), 2.0, 5) > multiplier(Fraction(400), 2.5, 5)
    assert leak(Fraction(400), 2.0, 5) < leak(Fraction(400), 2.0, 50)


@pytest.mark.parametrize("arguments", [(0.5, 2, None, 3), (0.9, math.sqrt(2), None, 9), (0.05, 2.0, 2.0**-8, 4)])
def test_too_little_noise_for_the_grid_is_refused_with_a_way_out(arguments: tuple[object, ...]) -> None:
    with pytest.raises(InvalidValue, match="finer grid"):
        DiscreteGaussian(*arguments)  # type: ignore[arg-type]


def test_the_leak_is_far_below_any_delta_people_use() -> None:
    event = DiscreteGaussian(1.0, 5.0, grid=2.0**-6, cells=10**6).event
    (gaussian, _), (leak, _) = event.parts  # type: ignore[attr-defined]
    assert isinstance(gaussian, GaussianNoise) and isinstance(leak, ApproxDP)
    assert 0 < leak.delta < 1e-20 and leak.epsilon == 0

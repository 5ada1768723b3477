"""A vector moved by s in l1 costs no more than one number moved by s: the derivation, by enumeration."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.typing import NDArray

from farthing.accounting import compose
from farthing.mechanisms import DiscreteLaplace

Losses = dict[int, float]


def losses(shift: int, r: float) -> Losses:
    """The loss of one number moved by `shift`, in units of 1/scale, by summing the masses far into both tails."""
    found: Losses = {}
    reach = shift + int(-40 / math.log(r)) + 1
    for n in range(-reach, reach + 1):
        loss = abs(n - shift) - abs(n)
        found[loss] = found.get(loss, 0.0) + (1 - r) / (1 + r) * r ** abs(n)
    return found


def product(parts: list[Losses]) -> Losses:
    total: Losses = {0: 1.0}
    for part in parts:
        following: Losses = {}
        for a, p in total.items():
            for b, q in part.items():
                following[a + b] = following.get(a + b, 0.0) + p * q
        total = following
    return total


def curve(distribution: Losses, rate: float, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([sum(p * max(0.0, -math.expm1(e - rate * x)) for x, p in distribution.items()) for e in epsilons])


@pytest.mark.parametrize("scale", [0.4, 1.0, 3.0, 9.0])
@pytest.mark.parametrize("total", [2, 3, 5, 8])
def test_no_way_of_spreading_the_shift_costs_more(scale: float, total: int) -> None:
    rate, r = 1 / scale, math.exp(-1 / scale)
    epsilons = np.linspace(-total * rate, total * rate * 1.05, 61)
    single = curve(losses(total, r), rate, epsilons)
    for cells in (2, 3, 4):
        for shifts in combinations_with_replacement(range(total + 1), cells):
            if 0 < sum(shifts) <= total:
                spread = curve(product([losses(shift, r) for shift in shifts]), rate, epsilons)
                assert np.all(spread <= single + 1e-12), (shifts, scale)


def test_the_closed_form_of_the_derivation_is_the_curve() -> None:
    """1 - r^j at epsilon = (a - 2j) / scale; and the product's 1 - r^m (1 + a t) + (a - m)^+ t r^m."""
    for scale in (0.5, 2.0, 5.0):
        rate, r = 1 / scale, math.exp(-1 / scale)
        t = (1 - r) / (1 + r)
        for a, b in ((1, 1), (1, 4), (2, 3), (3, 3)):
            for j in range(b + 1):
                at = np.array([(b - 2 * j) * rate])
                assert curve(losses(b, r), rate, at)[0] == pytest.approx(1 - r**j, abs=1e-12)
            for m in range((a + b) // 2 + 1):
                at = np.array([(a + b - 2 * m) * rate])
                found = curve(product([losses(a, r), losses(b, r)]), rate, at)[0]
                derived = 1 - r**m * (1 + a * t) + max(0, a - m) * t * r**m
                assert found == pytest.approx(derived, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5, 50.0])
def test_the_event_is_priced_as_the_mechanism_it_describes(epsilon: float) -> None:
    mechanism = DiscreteLaplace(epsilon, l1_sensitivity=3, cells=5)
    bounds = compose([mechanism.event]).epsilon_at(0.0)
    assert epsilon <= bounds.upper <= epsilon * (1 + 1e-12)
    r, rate = math.exp(-epsilon / 3), epsilon / 3
    exact = curve(losses(3, r), rate, np.array([epsilon / 3]))[0]
    delta = compose([mechanism.event]).delta_at(epsilon / 3)
    assert delta.lower - 1e-9 <= exact <= delta.upper + 1e-9


def test_rounding_never_makes_the_event_cheaper() -> None:
    for epsilon in (0.1, 1 / 3, 0.7, 49.9):
        event = DiscreteLaplace(epsilon).event
        assert 1 / event.noise_multiplier >= epsilon  # type: ignore[attr-defined]

"""Choices of bounded range, fixed in advance: what `compose` asks for holds for every mechanism of these ranges."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from farthing import compose
from farthing.accounting.bounded_range_cost import middle_covers, noise_of_ranges
from farthing.accounting.compose import ranges_as_noise
from farthing.accounting.gaussian_curves import cost_of, envelope_distance
from farthing.privacy import BoundedRange, GaussianNoise, LaplaceNoise, RandomizedResponse

CUTS = 12


def game(lengths: list[float], losses: np.ndarray, value: np.ndarray, step: float) -> np.ndarray:
    """The best mean of `value` at the final loss, from every loss, when each range is laid where it does most harm.

    The slow twin: dynamic programming over CUTS places of every range; the first range is the last that is used.
    """
    for length in lengths:
        cuts, best = round(length / step), value
        for up in range(1, cuts):
            down = cuts - up
            p = math.expm1(down * step) / (math.exp(down * step) - math.exp(-up * step))
            risen, fallen = np.append(value[up:], [value[-1]] * up), np.append([value[0]] * down, value[:-down])
            best = np.maximum(best, p * risen + (1 - p) * fallen)
        value = best
    return value


def worst_delta(lengths: list[float], epsilon: float, response: float = 0.0) -> float:
    """The delta of these choices in this order, the last first, after one randomized response."""
    step = min(lengths) / CUTS
    reach = round((sum(lengths) + response + epsilon) / step) + 1
    losses = np.arange(-reach, reach + 1) * step
    value = game(lengths, losses, -np.expm1(np.minimum(0.0, epsilon - losses)), step)
    truth, far = 1 / (1 + math.exp(-response)), round(response / step)
    return float(truth * value[reach + far] + (1 - truth) * value[reach - far])


@pytest.mark.parametrize("length", [0.05, 0.6, 2.0])
@pytest.mark.parametrize("count", [2, 5, 12, 30])
def test_no_adaptive_choice_of_places_exceeds_the_price(length: float, count: int) -> None:
    composition = compose([BoundedRange(length)], counts=[count])
    for share in (0.05, 0.2, 0.4, 0.7):
        epsilon = share * length * count
        bounds = composition.delta_at(epsilon)
        reached = worst_delta([length] * count, epsilon)
        assert bounds.lower <= reached * (1 + 1e-9) + 1e-300 and reached <= bounds.upper * (1 + 1e-9)


@pytest.mark.parametrize("order", [1, -1])
def test_ranges_of_two_lengths_in_both_orders_beside_another_mechanism(order: int) -> None:
    lengths = ([0.1] * 12 + [0.2] * 12)[::order]
    composition = compose([BoundedRange(0.1), BoundedRange(0.2), RandomizedResponse(0.3)], counts=[12, 12, 1])
    for epsilon in (0.3, 1.0, 1.6):
        bounds, reached = composition.delta_at(epsilon), worst_delta(lengths, epsilon, response=0.3)
        assert bounds.lower <= reached <= bounds.upper < 3 * reached


def test_a_price_a_tenth_smaller_is_caught() -> None:
    length, count, epsilon = 0.05, 200, 1.4
    noise = noise_of_ranges(Fraction(length), count)
    assert noise is not None
    reached = worst_delta([length] * count, epsilon)
    right, wrong = (compose([GaussianNoise(float(factor * noise) ** -0.5)]) for factor in (1, 0.9))
    assert wrong.delta_at(epsilon).upper < reached < right.delta_at(epsilon).upper


def test_prices_rise_one_by_one_and_never_above_the_envelope() -> None:
    length = Fraction(1, 5)
    noises = [noise_of_ranges(length, count) for count in range(1, 40)]
    assert noises[0] == cost_of(envelope_distance(length), Fraction(0))
    for less, more in pairwise(noises):
        assert less is not None and more is not None and less < more < less + noises[0]
    unproven = noise_of_ranges(length, 39, proof=False)
    assert unproven == noises[-1] and noise_of_ranges(length, 39, most=2) > unproven


def test_where_nothing_is_checked_the_envelope_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = noise_of_ranges(Fraction(7, 30), 10**9)
    noise_of_ranges.cache_clear()
    monkeypatch.setattr("farthing.accounting.bounded_range_cost.covers_bounded_range", lambda *_: False)
    middle_covers.cache_clear()
    try:
        envelope = noise_of_ranges(Fraction(7, 30), 10**9)
        assert checked is not None and envelope is not None and 1.25 * checked < envelope < 1.4 * checked
    finally:
        noise_of_ranges.cache_clear()
        middle_covers.cache_clear()


def test_compose_asks_for_no_more_than_before_and_for_much_less_of_many() -> None:
    for count, most in ((1, 1.0), (3, 1.0), (16, 0.95), (300, 0.88)):
        composition = compose([BoundedRange(0.02)], counts=[count])
        bounds, envelope = composition.epsilon_at(1e-6), composition.pricing.epsilon_at(1e-6, True)
        assert bounds.proven and bounds.lower <= bounds.upper <= most * envelope.upper * (1 + 1e-12)
        assert abs(composition.epsilon_at(1e-6, proof=False).estimate - bounds.upper) < 1e-4 * bounds.upper
    assert compose([BoundedRange(0.02)], counts=[300]).epsilon_at(0.0).lower > 5.99
    assert "as Gaussian noise" in compose([BoundedRange(0.02)], counts=[300]).explain()


def test_mechanisms_of_the_range_cost_at_least_the_lower_end() -> None:
    """Randomized response of half the range is one of them; one choice alone has no slack."""
    both = compose([BoundedRange(0.4), LaplaceNoise(2.0)], counts=[20, 3]).epsilon_at(1e-6)
    response = compose([RandomizedResponse(0.2), LaplaceNoise(2.0)], counts=[20, 3]).epsilon_at(1e-6)
    assert both.lower <= response.upper <= both.upper and both.lower > 0.999 * response.lower
    assert compose([BoundedRange(0.4)]).epsilon_at(1e-6).width < 1e-9


def test_a_few_choices_and_far_ranges_stay_as_they_are() -> None:
    for charges, counts in (([0.5, 0.7], [2, 1]), ([1e-10], [50]), ([11.0], [50])):
        read = compose([BoundedRange(length) for length in charges], counts=counts).loss.charges
        assert ranges_as_noise(read, proof=True) is None

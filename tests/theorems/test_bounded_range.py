"""`event_of_bounded_range`: Laplace noise lies below every trade-off of a bounded-range pair."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp

import pytest

from farthing import compose
from farthing.accounting.hockey_stick import hockey_stick_divergence
from farthing.mechanisms.bounded_range import event_of_bounded_range
from farthing.privacy import ApproxDP, Composed, LaplaceNoise
from theorems.selection_twins import exponential_law, neighbours_of


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_two_point_pairs_meet_the_logistic_tradeoff_and_laplace_lies_below(epsilon: float) -> None:
    top = exp(epsilon)

    def logistic(alarm: float) -> float:
        return (1 - alarm) / (1 + (top - 1) * alarm)

    def laplace(alarm: float) -> float:
        if alarm <= 1 / (2 * top):
            return 1 - top * alarm
        return 1 / (4 * top * alarm) if alarm <= 0.5 else (1 - alarm) / top

    for place in range(101):
        u = exp(epsilon * place / 100)  # losses log u and log u - epsilon
        likely = (top - u) / (top - 1)  # mass of the larger loss under P, so that both laws add up to 1
        assert likely / u + (1 - likely) * top / u == pytest.approx(1)
        assert 1 - likely == pytest.approx(logistic(likely / u), abs=1e-12)
        assert laplace(place / 100) <= logistic(place / 100) + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("monotone", [False, True])
def test_the_curve_of_the_event_is_above_that_of_every_choice(monotone: bool) -> None:
    epsilon = Fraction(3, 2)
    rate = epsilon / (1 if monotone else 2)
    event = event_of_bounded_range(epsilon)
    at = [x / 4 for x in range(-7, 8)]
    allowed = [hockey_stick_divergence(event, x).upper for x in at]
    tightest = 1.0
    for scores in product(range(3), repeat=3):
        law = exponential_law(scores, rate)
        for others in neighbours_of(scores, 1, monotone):
            other = exponential_law(others, rate)
            for x, most in zip(at, allowed, strict=True):
                delta = sum(max(0, p - exp(x) * q) for p, q in zip(law, other, strict=True))
                assert delta <= most + 1e-12
                tightest = min(tightest, most - float(delta))
    assert tightest < 1e-3


def test_the_multiplier_is_rounded_down() -> None:
    for epsilon in (Fraction(1, 3), Fraction(0.1), Fraction(7), Fraction(0.1) / 7):
        event = event_of_bounded_range(epsilon)
        assert isinstance(event, LaplaceNoise)
        assert Fraction(event.noise_multiplier) <= 1 / epsilon


def test_it_is_never_dearer_than_any_mechanism_of_its_epsilon() -> None:
    assert event_of_bounded_range(Fraction(1, 2), 1) == LaplaceNoise(2.0)
    event = event_of_bounded_range(Fraction(1, 2), 8)
    assert event == Composed(((LaplaceNoise(2.0), 8),))
    price, worst = compose([event]), compose([ApproxDP(0.5)], counts=[8])
    assert price.epsilon_at(0.0).upper == pytest.approx(worst.epsilon_at(0.0).upper, rel=1e-14)
    for delta in (1e-9, 1e-6, 1e-3):
        assert price.epsilon_at(delta).upper < worst.epsilon_at(delta).lower

"""`BoundedRange`: its curve is the worst of all bounded-range pairs, and its transform composes it."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from math import exp

import mpmath
import numpy as np
import pytest

from farthing import compose
from farthing.accounting import group_privacy
from farthing.accounting.algorithms.grid_algorithm import compose_on_grid
from farthing.accounting.event_price import renyi_divergence_upper
from farthing.accounting.filters import BasicFilter, FullyAdaptiveFilter
from farthing.accounting.hockey_stick import hockey_stick_divergence
from farthing.mechanisms.weighted_choice import event_of_bounded_range
from farthing.privacy import ApproxDP, BoundedRange, Composed, GaussianNoise, LaplaceNoise, Sampled
from theorems.selection_twins import exponential_distribution, neighbours_of


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_two_point_pairs_meet_the_logistic_tradeoff(epsilon: float) -> None:
    top = exp(epsilon)

    def logistic(alarm: float) -> float:
        return (1 - alarm) / (1 + (top - 1) * alarm)

    for place in range(101):
        u = exp(epsilon * place / 100)  # losses log u and log u - epsilon
        likely = (top - u) / (top - 1)  # mass of the larger loss under P, so that both distributions add up to 1
        assert likely / u + (1 - likely) * top / u == pytest.approx(1)
        assert 1 - likely == pytest.approx(logistic(likely / u), abs=1e-12)


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
        distribution = exponential_distribution(scores, rate)
        for others in neighbours_of(scores, 1, monotone):
            other = exponential_distribution(others, rate)
            for x, most in zip(at, allowed, strict=True):
                delta = sum(max(0, p - exp(x) * q) for p, q in zip(distribution, other, strict=True))
                assert delta <= most + 1e-12
                tightest = min(tightest, most - float(delta))
    assert tightest < 1e-3


def test_epsilon_is_rounded_up() -> None:
    for epsilon in (Fraction(1, 3), Fraction(0.1), Fraction(7), Fraction(0.1) / 7):
        event = event_of_bounded_range(epsilon)
        assert isinstance(event, BoundedRange)
        assert epsilon <= Fraction(event.epsilon) <= epsilon * (1 + Fraction(1, 2**50))


@pytest.mark.slow
def test_it_is_never_dearer_than_any_mechanism_of_its_epsilon() -> None:
    assert event_of_bounded_range(Fraction(1, 2), 1) == BoundedRange(0.5)
    event = event_of_bounded_range(Fraction(1, 2), 8)
    assert event == Composed(((BoundedRange(0.5), 8),))
    price, worst = compose([event]), compose([ApproxDP(0.5)], counts=[8])
    laplace = compose([LaplaceNoise(2.0)], counts=[8])
    assert price.epsilon_at(0.0).upper == pytest.approx(worst.epsilon_at(0.0).upper, rel=1e-14)
    for delta in (1e-9, 1e-6, 1e-3):
        assert price.epsilon_at(delta).upper < laplace.epsilon_at(delta).lower < worst.epsilon_at(delta).lower


def worst_curve(epsilon: float, x: float) -> float:
    """The largest divergence at x over all pairs with losses t and t - epsilon, by trying every t."""
    t = epsilon * np.arange(2001) / 2000
    high = np.exp(t) * np.expm1(epsilon - t) / math.expm1(epsilon)  # P-mass of the loss t
    low = np.expm1(t) / math.expm1(epsilon)
    curves = high * np.maximum(0, -np.expm1(x - t)) + low * np.maximum(0, -np.expm1(x - t + epsilon))
    return float(max(0.0, -math.expm1(x), curves.max()))


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
def test_the_closed_form_is_the_worst_over_all_intervals(epsilon: float) -> None:
    for share in (-0.99, -0.5, 0.0, 0.3, 0.9, 0.999):
        x = share * epsilon
        bounds = hockey_stick_divergence(BoundedRange(epsilon), x)
        worst = worst_curve(epsilon, x)
        assert bounds.lower <= bounds.upper and worst <= bounds.upper * (1 + 1e-12)
        assert bounds.lower == pytest.approx(worst, rel=1e-3, abs=1e-9)


def integrated(parts: list[float], x: float) -> mpmath.mpf:
    """delta(x) of several bounded ranges: the mean of the last one's curve over the losses of the others."""
    e, rest = mpmath.mpf(parts[0]), parts[1:]
    if not rest:
        if x >= e:
            return mpmath.mpf(0)
        if x <= -e:
            return -mpmath.expm1(x)
        return (mpmath.exp(e / 2) - mpmath.exp(x / 2)) ** 2 / mpmath.expm1(e)
    reach = sum(rest)
    corners = sorted({-e, *(c for c in (x - reach, x + reach) if -e < c < e), e})
    return mpmath.quad(lambda u: mpmath.exp(u / 2) / (4 * mpmath.sinh(e / 2)) * integrated(rest, x - u), corners)


@pytest.mark.slow
@pytest.mark.parametrize("parts", [[0.5, 0.5], [0.3, 1.7], [2.0, 2.0]], ids=str)
def test_compositions_are_the_integrals_of_the_pair(parts: list[float]) -> None:
    composition = compose([BoundedRange(epsilon) for epsilon in parts])
    assert composition.engine_at(1e-6).name == "contour"
    with mpmath.workdps(20):
        for share in (0.0, 0.4, 0.8):
            x = share * sum(parts)
            bounds, truth = composition.pricing.delta_at(x, True), integrated(parts, x)
            assert bounds.proven and bounds.lower <= truth <= bounds.upper
            assert bounds.width < 1e-5 * bounds.upper


@pytest.mark.slow
def test_contour_and_grid_agree() -> None:
    """A sampled event, at a probability so near 1 that it hardly matters, is priced on the grid."""
    contour = compose([BoundedRange(0.5), GaussianNoise(3.0)], counts=[10, 2]).pricing.epsilon_at(1e-6, True)
    sampled = Sampled(BoundedRange(0.5), 1 - 1e-12)
    # A twelfth of the cells that the grid may use: a third of the digits for a twentieth of the time.
    grid = compose_on_grid([(sampled, 10), (GaussianNoise(3.0), 2)], tolerance=1e-4, most_cells=1 << 18).epsilon_bounds(
        1e-6
    )
    assert contour.width < 1e-6 and grid.width < 4e-4
    assert grid.lower - 1e-9 <= contour.estimate <= grid.upper + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "count"), [(0.001, 10**6), (0.01, 10_000), (5.0, 10), (50.0, 4)])
def test_many_and_large_ranges_keep_their_digits(epsilon: float, count: int) -> None:
    composition = compose([BoundedRange(epsilon)], counts=[count])
    for delta in (1e-2, 1e-9, 1e-30):
        bounds, quick = (composition.pricing.epsilon_at(delta, proof) for proof in (True, False))
        assert bounds.proven and bounds.width < 1e-6 and quick.lower - 1e-9 <= bounds.upper
        assert abs(quick.estimate - bounds.estimate) < 1e-5
    assert composition.epsilon_at(0.0).upper == pytest.approx(epsilon * count, rel=1e-12)


def test_zero_tiny_and_huge_ranges() -> None:
    assert compose([BoundedRange(0.0)] * 3).epsilon_at(1e-9).upper == 0.0
    tiny = compose([BoundedRange(1e-12)], counts=[5]).epsilon_at(0.0)
    assert tiny.lower <= 5e-12 <= tiny.upper < 5.1e-12
    huge = compose([BoundedRange(600.0)] * 2).epsilon_at(1e-6)
    assert 1190 < huge.upper <= 1200.0001


def test_hoeffding_bounds_the_divergence_of_every_bounded_range_pair() -> None:
    """The filter's currency: alpha epsilon^2 / 8, which a pair in the middle of its interval nearly reaches."""
    for epsilon in (0.2, 2.0):
        for alpha in (1.5, 4.0, 30.0):
            allowed = float(renyi_divergence_upper(BoundedRange(epsilon), alpha))
            found = 0.0
            for place in range(1, 100):
                t = epsilon * place / 100
                high = (exp(epsilon) - exp(t)) / (exp(epsilon) - 1)
                moment = high * exp((alpha - 1) * t) + (1 - high) * exp((alpha - 1) * (t - epsilon))
                found = max(found, math.log(moment) / (alpha - 1))
            assert found <= allowed * (1 + 1e-12)
            if epsilon * alpha < 1:
                assert found > 0.95 * allowed


def test_groups_and_filters_know_it() -> None:
    assert group_privacy(BoundedRange(0.5), 3) == BoundedRange(1.5)
    budget = FullyAdaptiveFilter(epsilon=1.0, delta=1e-6, leak=0)
    assert not budget.admits(ApproxDP(0.01), count=400)
    assert budget.admits(BoundedRange(0.01), count=1300)
    assert not BasicFilter(epsilon=1.0).admits(BoundedRange(0.01), count=101)

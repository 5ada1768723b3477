"""The check that a clock dominates every pair of a range, against the definition at 60 digits."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from benchmarks.clock_prices import curve
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing import compose
from farthing.accounting.bounded_range_cost import MARGIN, checked_level, covers_bounded_range
from farthing.accounting.filters import ClockFilter
from farthing.accounting.filters.clock_costs import CLOCK_UNITS, clock_cost
from farthing.ledger.account import Account
from farthing.numerics.bounds import exact
from farthing.privacy import ApproxDP, BoundedRange, RandomizedResponse, Sampled

mpf = mpmath.mpf


def exceeds(length: mpmath.mpf, share: float, x: mpmath.mpf, level: mpmath.mpf, cost: mpmath.mpf) -> mpmath.mpf:
    """The pair with losses `share * length` and that minus `length`: its left side of the condition, less the right."""
    loss = length * mpf(share)
    p = mpmath.expm1(length - loss) / (mpmath.exp(length - loss) - mpmath.exp(-loss))
    return p * curve(x + loss, level) + (1 - p) * curve(x + loss - length, level) - curve(x, level + cost)


@pytest.mark.slow
@given(
    st.floats(1e-3, 8.0),
    st.fractions(Fraction(1, 20), 40),
    st.floats(0.001, 0.999),
    st.floats(-8.0, 8.0),
)
@settings(max_examples=60)
def test_no_pair_and_no_x_is_a_counterexample(length: float, squares: Fraction, share: float, x: float) -> None:
    eta = exact(length)
    level = squares * (eta / 2) ** 2
    cost = clock_cost(BoundedRange(length), level)
    assert cost is not None
    with mpmath.workdps(60):
        s, e = mpf(level.numerator) / level.denominator, mpf(eta.numerator) / eta.denominator
        away = mpf(x) * (e + mpmath.sqrt(s))
        assert exceeds(e, share, away, s, mpf(cost.clock) / CLOCK_UNITS) <= mpf("1e-45")


@pytest.mark.parametrize("length", [Fraction(1, 50), Fraction(1), Fraction(5)])
@pytest.mark.parametrize("squares", [8, 1, Fraction(1, 16)])
def test_the_price_of_the_symmetric_pair_is_covered_and_less_is_not(length: Fraction, squares: Fraction) -> None:
    level = squares * (length / 2) ** 2
    middle = clock_cost(ApproxDP(float(length / 2)), level)
    assert middle is not None
    price = Fraction(middle.clock, CLOCK_UNITS)
    assert covers_bounded_range(length, level, price * (1 + MARGIN))
    assert not covers_bounded_range(length, level, price * Fraction(999, 1000))


def test_a_price_that_suits_the_symmetric_pair_only_at_another_level_is_not_covered() -> None:
    """A planted fault: the price at twice the level."""
    length, level = Fraction(1, 5), Fraction(1, 100)
    middle = clock_cost(ApproxDP(0.1), 2 * level)
    assert middle is not None
    assert not covers_bounded_range(length, level, Fraction(middle.clock, CLOCK_UNITS))


@pytest.mark.slow
def test_bounded_range_costs_about_a_quarter_of_a_black_box_while_much_is_left() -> None:
    for length in (0.02, 0.2, 1.0):
        level = 100 * exact(length) ** 2
        own, half = clock_cost(BoundedRange(length), level), clock_cost(ApproxDP(length / 2), level)
        assert own is not None and half is not None
        assert half.clock < own.clock < 1.035 * half.clock


def test_degenerate_ranges_and_levels() -> None:
    assert clock_cost(BoundedRange(0.0), Fraction(1)) == (0, 0, 0)
    assert checked_level(Fraction(1), Fraction(1, 65)) is None
    assert not covers_bounded_range(Fraction(1), Fraction(0), Fraction(1))
    assert not covers_bounded_range(Fraction(1), Fraction(1), Fraction(0))
    assert not covers_bounded_range(Fraction(4000), Fraction(1), Fraction(1))
    assert clock_cost(BoundedRange(0.5), Fraction(0)) is not None


@pytest.mark.parametrize(("epsilon", "probability"), [(1.0, 0.01), (0.3, 0.5), (4.0, 0.2)])
def test_a_sample_of_a_pure_event_is_paid_for_in_both_orders(epsilon: float, probability: float) -> None:
    event = Sampled(RandomizedResponse(epsilon), probability)
    for level in (Fraction(0), Fraction(1, 10**4), Fraction(1, 10)):
        cost = clock_cost(event, level)
        assert cost is not None
        with mpmath.workdps(60):
            e, p, s = mpf(exact(epsilon).numerator) / exact(epsilon).denominator, mpf(str(probability)), mpf(0)
            s = mpf(level.numerator) / level.denominator
            truth = 1 / (1 + mpmath.exp(-e))
            rows = [(p * truth + (1 - p) * (1 - truth), 1 - truth), (p * (1 - truth) + (1 - p) * truth, truth)]
            for pair in (rows, [(b, a) for a, b in rows]):
                for x in (-0.5, -0.1, -0.01, 0.0, 0.01, 0.1, 0.5):
                    left = sum(a * curve(mpf(x) + mpmath.log(a / b), s) for a, b in pair)
                    assert left <= curve(mpf(x), s + mpf(cost.clock) / CLOCK_UNITS) + mpf("1e-45")


def test_a_sample_of_a_choice_is_cheaper_than_one_of_a_black_box() -> None:
    level = Fraction(1, 100)
    choice, black_box = (clock_cost(Sampled(event, 0.1), level) for event in (BoundedRange(0.5), ApproxDP(0.5)))
    assert choice is not None and black_box is not None and choice.clock < 0.4 * black_box.clock


def _reached(length: float, count: int, epsilon: float, cuts: int = 8) -> float:
    """The most that an analyst reaches who chooses where the range of every charge lies, by the losses so far."""
    step = length / cuts
    reach = round((count * length + epsilon) / step)
    losses = np.arange(-reach, reach + 1) * step
    value = -np.expm1(np.minimum(0.0, epsilon - losses))
    for _ in range(count):
        best = value
        for up in range(1, cuts):
            down = cuts - up
            p = math.expm1(down * step) / (math.exp(down * step) - math.exp(-up * step))
            risen, fallen = np.append(value[up:], [value[-1]] * up), np.append([value[0]] * down, value[:-down])
            best = np.maximum(best, p * risen + (1 - p) * fallen)
        value = best
    return float(value[reach])


@pytest.mark.parametrize(("epsilon", "delta", "length"), [(1.0, 1e-6, 0.05), (3.0, 1e-6, 0.2)])
def test_a_ledger_admits_no_more_than_could_have_been_fixed(epsilon: float, delta: float, length: float) -> None:
    count = Account.of(epsilon, delta).fitting(BoundedRange(length))
    assert _reached(length, count, epsilon) <= delta < _reached(length, round(1.15 * count), epsilon)
    assert compose([BoundedRange(length)], counts=[count]).epsilon_at(delta).upper <= epsilon


@pytest.mark.parametrize(("epsilon", "delta", "length"), [(1.0, 1e-9, 0.02), (1.0, 1e-6, 0.05), (3.0, 1e-6, 0.1)])
def test_a_clock_with_all_of_delta_admits_what_compose_does(epsilon: float, delta: float, length: float) -> None:
    budget = ClockFilter(epsilon, delta, leak=0)
    count = 1
    while budget.admits(BoundedRange(length), count=2 * count):
        count *= 2
    step = count
    while (step := step // 2) > 0:
        count += step * budget.admits(BoundedRange(length), count=count + step)
    assert compose([BoundedRange(length)], counts=[count]).epsilon_at(delta).upper <= epsilon
    assert compose([BoundedRange(length)], counts=[count + 2]).epsilon_at(delta).upper > epsilon

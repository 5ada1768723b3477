"""What a clock pays for an event, against the definition: at 60 digits, at many x, for pairs written out in full."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import mpmath
import pytest
from benchmarks.clock_prices import EXACT, ROUNDING, Pair, Price, curve, drawn_points, drawn_price, kind_of, pairs_of
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accounting.filters.clock_costs import CLOCK_UNITS, clock_cost, clock_of, epsilon_of, level_below
from farthing.errors import InvalidValue
from farthing.privacy import (
    ApproxDP,
    BoundedRange,
    Composed,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)

mpf = mpmath.mpf


def spread(event: Event, level: Fraction, count: int = 13) -> list[mpmath.mpf]:
    """Points on both sides of 0, out to where both curves are small."""
    width = 4 * (float(level) + 1e-3) ** 0.5 + 2
    return [mpf(width * (2 * k / (count - 1) - 1) ** 3) for k in range(count)]


EVENTS: tuple[Event, ...] = (
    ApproxDP(0.01),
    RandomizedResponse(0.3),
    RandomizedResponse(3.0),
    LaplaceNoise(20.0),
    LaplaceNoise(0.7),
    DiscreteLaplaceNoise(5.0, 1),
    DiscreteLaplaceNoise(5.0, 7),
    DiscreteLaplaceNoise(0.5, 3),
    BoundedRange(0.2),
    BoundedRange(2.0),
)
LEVELS = [Fraction(0), Fraction(1, 2**20), Fraction(1, 64), Fraction(1, 2), Fraction(9)]


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS, ids=str)
@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_what_is_paid_is_enough_at_every_x(event: Event, level: Fraction) -> None:
    cost = clock_cost(event, level)
    assert cost is not None and cost.excess == 0
    integral = isinstance(event, LaplaceNoise)  # it has an error of its own, and takes its time where little is left
    if not (integral and 0 < level < Fraction(1, 64)):
        with mpmath.workdps(60):
            xs, slack = spread(event, level, 3 if integral else 13), ROUNDING if integral else mpf("1e-45")
            assert Price(event, level, cost.clock).worst(xs) <= slack


@pytest.mark.parametrize("event", [RandomizedResponse(0.3), RandomizedResponse(3.0), ApproxDP(1e-6)], ids=repr)
def test_less_is_not_enough(event: Event) -> None:
    """Tight: a billionth less and the total variation distance is exceeded."""
    for level in LEVELS[1:]:
        cost = clock_cost(event, level)
        assert cost is not None
        with mpmath.workdps(60):
            assert Price(event, level, cost.clock - cost.clock // 10**9).worst([mpf(0)]) > 0


def test_the_cost_without_what_smoothing_adds_is_caught() -> None:
    """A planted fault: epsilon squared, which is right only while very much of the clock is left."""
    with mpmath.workdps(60):
        event, level = RandomizedResponse(0.3), Fraction(1, 64)
        assert Price(event, level, CLOCK_UNITS * 9 // 100).worst(spread(event, level)) > 1e-3


def test_a_test_at_one_order_only_would_not_do_for_skewed_losses() -> None:
    """Points on both sides of 0 are the two orders of a pair: for a skewed one they differ."""
    event, level = BoundedRange(2.0), Fraction(1, 64)
    with mpmath.workdps(30):
        pair = next(pairs_of(event))
        s = mpf(level.numerator) / level.denominator
        ratios = [pair.beside(x, s) / curve(x, s + 1) for x in (mpf(-1), mpf(1))]
        assert abs(ratios[0] - ratios[1] * curve(1, s + 1) / (curve(-1, s + 1) * mpmath.e)) > 1e-3


@pytest.mark.slow
@given(
    st.floats(1e-4, 4.0),
    st.fractions(Fraction(1, 10**6), 20),
    st.floats(-6.0, 6.0),
    st.sampled_from(["response", "steps", "range"]),
)
@settings(max_examples=60)
def test_no_x_is_a_counterexample(epsilon: float, left: Fraction, x: float, kind: str) -> None:
    events: dict[str, Event] = {
        "response": RandomizedResponse(epsilon),
        "steps": DiscreteLaplaceNoise(1 / epsilon, 4),
        "range": BoundedRange(epsilon),
    }
    level = level_below(left)
    cost = clock_cost(events[kind], level)
    assert cost is not None
    with mpmath.workdps(60):
        away = mpf(x) * (1 + epsilon + mpmath.sqrt(float(level)))
        assert Price(events[kind], level, cost.clock).worst([away]) <= mpf("1e-40")


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "shift"), [(3.0, 1), (8.0, 2)])
def test_discrete_gaussian_noise_exceeds_the_clock_by_its_excess_at_most(sigma: float, shift: int) -> None:
    event = DiscreteGaussianNoise(sigma / shift, shift)
    for level in (Fraction(1, 2), Fraction(1, 64), Fraction(1, 1024)):
        cost = clock_cost(event, level)
        assert cost is not None
        assert Fraction(cost.clock, CLOCK_UNITS) >= Fraction(shift) ** 2 / Fraction(sigma) ** 2
        with mpmath.workdps(60):
            assert Price(event, level, *cost).worst(spread(event, level, 5)) <= mpf("1e-45")


@pytest.mark.slow
def test_costs_fall_with_what_is_left_and_rise_with_epsilon() -> None:
    for events in (
        [RandomizedResponse(e) for e in (0.01, 0.1, 1.0)],
        [LaplaceNoise(1 / e) for e in (0.01, 0.1, 1.0)],
        [BoundedRange(e) for e in (0.01, 0.1, 1.0)],
        [DiscreteLaplaceNoise(1 / e, 5) for e in (0.01, 0.1, 1.0)],
    ):
        table = [[clock_cost(event, level) for level in LEVELS] for event in events]
        assert all(one is not None and one >= two for row in table for one, two in itertools.pairwise(row))
        assert all(one < two for columns in zip(*table, strict=True) for one, two in itertools.pairwise(columns))


def test_own_curves_cost_less_than_black_boxes() -> None:
    level = Fraction(1, 64)
    black_box = clock_cost(ApproxDP(0.5), level)
    for event in (LaplaceNoise(2.0), DiscreteLaplaceNoise(2.0, 50), BoundedRange(0.5), Sampled(LaplaceNoise(2.0), 0.5)):
        own = clock_cost(event, level)
        assert own is not None and black_box is not None and own.clock < black_box.clock
    assert clock_cost(DiscreteLaplaceNoise(2.0, 1), level) == black_box == clock_cost(RandomizedResponse(0.5), level)


def test_degenerate_events_and_clocks() -> None:
    nothing = Fraction(0)
    assert clock_cost(ApproxDP(0.0, 1e-9), nothing) == (0, 0, 0)
    assert clock_cost(Sampled(GaussianNoise(1.0), 0.0), nothing) == (0, 0, 0)
    assert clock_cost(Sampled(GaussianNoise(2.0), 0.1), nothing) == clock_cost(GaussianNoise(2.0), nothing)
    assert clock_cost(Sampled(LaplaceNoise(2.0), 1.0), nothing) == clock_cost(LaplaceNoise(2.0), nothing)
    assert clock_cost(GaussianNoise(2.0), nothing) == (CLOCK_UNITS // 4, 0, 0)
    assert clock_cost(DiscreteGaussianNoise(2.0), nothing) is None  # beside no clock, a lattice is no density
    assert clock_cost(RandomizedResponse(5000.0), nothing) is None
    assert clock_of(Fraction(0), Fraction(1, 2)) > 0 == epsilon_of(0, Fraction(1, 2))
    assert level_below(Fraction(1, 10**60)) == 0
    with pytest.raises(InvalidValue):
        clock_cost(Composed(()), nothing)


@pytest.mark.slow
def test_drawn_prices_of_every_kind_hold() -> None:
    """The first of the thousands that `python -m benchmarks.clock_prices` draws, sums of atoms only: these are fast."""
    draw, kinds = random.Random(1), set[str]()
    with mpmath.workdps(60):
        for _ in range(40):
            price = drawn_price(draw)
            if price is not None and all(pair.densities is None for pair in pairs_of(price.event)):
                kinds.add(kind_of(price.event))
                assert price.worst(drawn_points(price, draw, 2)) <= ROUNDING, price
                if isinstance(price.event, EXACT):
                    assert price._replace(clock=price.clock * 999 // 1000).worst([mpf(0)]) > ROUNDING, price
    assert len(kinds) >= 8


@pytest.mark.slow
def test_densities_are_integrated_as_the_closed_forms_say() -> None:
    """Gaussian noise beside a clock is Gaussian noise; and a pair without densities is the sum of its atoms."""
    with mpmath.workdps(60):
        pair, s, x = next(pairs_of(GaussianNoise(4.0))), mpf(1) / 50, mpf("-0.3")
        assert abs(pair.beside(x, s) / curve(x, s + mpf(1) / 16) - 1) < ROUNDING
        assert abs(Pair([(mpf(1), mpf(1))]).beside(x, s) / curve(x, s) - 1) < mpf("1e-50")


@pytest.mark.slow
@given(st.fractions(Fraction(1, 10**30), 100))
def test_levels_lie_at_most_a_thirty_second_below(left: Fraction) -> None:
    level = level_below(left)
    assert level <= left <= level * Fraction(33, 32) or left < Fraction(1, 2**119)


@pytest.mark.parametrize(("epsilon", "slack"), [(1.0, 1e-9), (0.1, 1e-300), (5.0, 0.3), (0.0, 0.01)])
def test_a_clock_is_the_largest_that_the_budget_allows(epsilon: float, slack: float) -> None:
    units = clock_of(Fraction(epsilon), Fraction(slack))
    with mpmath.workdps(400):
        assert curve(-mpf(epsilon), mpf(units) / CLOCK_UNITS) <= mpf(slack)
        assert curve(-mpf(epsilon), mpf(units + 1) / CLOCK_UNITS) > mpf(slack)
    assert abs(epsilon_of(units, Fraction(slack)) - Fraction(epsilon)) <= Fraction(1, 10**9)

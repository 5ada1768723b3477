"""What a clock pays for an event, against the definition: at 60 digits, at many x, for pairs written out in full."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accounting.filters.clock_costs import CLOCK_UNITS, clock_cost, clock_of, epsilon_of, level_below
from farthing.errors import InvalidValue
from farthing.numerics.bounds import exact
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
Pair = list[tuple[mpmath.mpf, mpmath.mpf]]  # (loss, its probability under P)


def curve(x: mpmath.mpf, s: mpmath.mpf) -> mpmath.mpf:
    """E[(1 - e^(-x - Z))_+] for Z normal with mean s/2 and variance s."""
    if s == 0:
        return max(mpf(0), -mpmath.expm1(-x))
    root = mpmath.sqrt(s)
    return mpmath.erfc(-(x + s / 2) / root / mpmath.sqrt(2)) / 2 - mpmath.exp(-x) * (
        mpmath.erfc(-(x - s / 2) / root / mpmath.sqrt(2)) / 2
    )


def read(number: float) -> mpmath.mpf:
    """A parameter as the accountant reads it: 0.1 is one tenth."""
    amount = exact(number)
    return mpf(amount.numerator) / amount.denominator


def pairs_of(event: Event) -> Iterator[Pair]:
    """The losses of the event's worst pairs; Laplace noise as a midpoint rule of many atoms."""
    match event:
        case ApproxDP(epsilon=e) | RandomizedResponse(epsilon=e):
            truth = 1 / (1 + mpmath.exp(-read(e)))
            yield [(read(e), truth), (-read(e), 1 - truth)]
        case BoundedRange(epsilon=length):
            e = read(length)
            for share in (0.05, 0.3, 0.5, 0.62, 0.9):
                loss = e * mpf(share)
                p = mpmath.expm1(e - loss) / (mpmath.exp(e - loss) - mpmath.exp(-loss))
                yield [(loss, p), (loss - e, 1 - p)]
        case DiscreteLaplaceNoise(noise_multiplier=multiplier, l1_sensitivity=steps):
            e = 1 / read(multiplier)
            kept = mpmath.exp(-e / steps)
            inner = [((steps - 2 * n) * e / steps, (1 - kept) / (1 + kept) * kept**n) for n in range(1, steps)]
            yield [(e, 1 / (1 + kept)), (-e, kept**steps / (1 + kept)), *inner]
        case LaplaceNoise(noise_multiplier=multiplier):
            e, parts = 1 / read(multiplier), 400
            middles = [-e + (2 * k + 1) * e / parts for k in range(parts)]
            inner = [(loss, mpmath.exp((loss - e) / 2) / 4 * 2 * e / parts) for loss in middles]
            rest = mpf(1) / 2 + mpmath.exp(-e) / 2
            scale = (1 - rest) / sum(p for _, p in inner)
            yield [(e, mpf(1) / 2), (-e, mpmath.exp(-e) / 2), *((loss, p * scale) for loss, p in inner)]
        case DiscreteGaussianNoise(noise_multiplier=multiplier, l2_sensitivity=shift):
            sigma = read(multiplier) * shift
            reach = range(-int(20 * sigma) - shift, int(20 * sigma) + shift + 1)
            weights = {n: mpmath.exp(-(mpf(n) ** 2) / (2 * sigma**2)) for n in reach}
            total = sum(weights.values())
            yield [((mpf(shift) ** 2 - 2 * n * shift) / (2 * sigma**2), w / total) for n, w in weights.items()]


def worst_excess(event: Event, level: Fraction, cost: mpmath.mpf, xs: list[float]) -> mpmath.mpf:
    """The most by which E[V(x + l, level)] exceeds V(x, level + cost), as a share of the latter."""
    s = mpf(level.numerator) / level.denominator
    return max(
        sum(p * curve(mpf(x) + loss, s) for loss, p in pair) / curve(mpf(x), s + cost) - 1
        for pair in pairs_of(event)
        for x in xs
    )


def spread(event: Event, level: Fraction, count: int = 13) -> list[float]:
    """Points on both sides of 0, out to where both curves are small."""
    width = 4 * (float(level) + 1e-3) ** 0.5 + 2
    return [width * (2 * k / (count - 1) - 1) ** 3 for k in range(count)]


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


@pytest.mark.parametrize("level", LEVELS, ids=str)
@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_what_is_paid_is_enough_at_every_x(event: Event, level: Fraction) -> None:
    cost = clock_cost(event, level)
    assert cost is not None and cost.excess == 0
    with mpmath.workdps(60):
        slack = mpf("1e-4") if isinstance(event, LaplaceNoise) else mpf("1e-45")  # the midpoint rule's own error
        assert worst_excess(event, level, mpf(cost.clock) / CLOCK_UNITS, spread(event, level)) <= slack


@pytest.mark.parametrize("event", [RandomizedResponse(0.3), RandomizedResponse(3.0), ApproxDP(1e-6)], ids=repr)
def test_less_is_not_enough(event: Event) -> None:
    """Tight: a billionth less and the total variation distance is exceeded."""
    for level in LEVELS[1:]:
        cost = clock_cost(event, level)
        assert cost is not None
        with mpmath.workdps(60):
            assert worst_excess(event, level, mpf(cost.clock) / CLOCK_UNITS * (1 - mpf("1e-9")), [0.0]) > 0


def test_the_cost_without_what_smoothing_adds_is_caught() -> None:
    """A planted fault: epsilon squared, which is right only while very much of the clock is left."""
    with mpmath.workdps(60):
        event, level = RandomizedResponse(0.3), Fraction(1, 64)
        assert worst_excess(event, level, mpf("0.09"), spread(event, level)) > 1e-3


def test_a_test_at_one_order_only_would_not_do_for_skewed_losses() -> None:
    """Points on both sides of 0 are the two orders of a pair: for a skewed one they differ."""
    event, level = BoundedRange(2.0), Fraction(1, 64)
    with mpmath.workdps(30):
        pair = next(pairs_of(event))
        s = mpf(level.numerator) / level.denominator
        ratios = [sum(p * curve(x + loss, s) for loss, p in pair) / curve(x, s + 1) for x in (mpf(-1), mpf(1))]
        assert abs(ratios[0] - ratios[1] * curve(1, s + 1) / (curve(-1, s + 1) * mpmath.e)) > 1e-3


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
        assert worst_excess(events[kind], level, mpf(cost.clock) / CLOCK_UNITS, [away]) <= mpf("1e-40")


@pytest.mark.parametrize(("sigma", "shift"), [(3.0, 1), (8.0, 2)])
def test_discrete_gaussian_noise_exceeds_the_clock_by_its_excess_at_most(sigma: float, shift: int) -> None:
    event = DiscreteGaussianNoise(sigma / shift, shift)
    for level in (Fraction(1, 2), Fraction(1, 64), Fraction(1, 1024)):
        cost = clock_cost(event, level)
        assert cost is not None
        assert Fraction(cost.clock, CLOCK_UNITS) >= Fraction(shift) ** 2 / Fraction(sigma) ** 2
        with mpmath.workdps(60):
            reached = worst_excess(event, level, mpf(cost.clock) / CLOCK_UNITS, spread(event, level, 5))
            assert reached <= mpf(cost.excess) / CLOCK_UNITS + mpf("1e-45")


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
    assert clock_cost(ApproxDP(0.0, 1e-9), nothing) == (0, 0)
    assert clock_cost(Sampled(GaussianNoise(1.0), 0.0), nothing) == (0, 0)
    assert clock_cost(Sampled(GaussianNoise(2.0), 0.1), nothing) == clock_cost(GaussianNoise(2.0), nothing)
    assert clock_cost(GaussianNoise(2.0), nothing) == (CLOCK_UNITS // 4, 0)
    assert clock_cost(DiscreteGaussianNoise(2.0), nothing) is None  # beside no clock, a lattice is no density
    assert clock_cost(RandomizedResponse(5000.0), nothing) is None
    assert clock_of(Fraction(0), Fraction(1, 2)) > 0 == epsilon_of(0, Fraction(1, 2))
    assert level_below(Fraction(1, 10**60)) == 0
    with pytest.raises(InvalidValue):
        clock_cost(Composed(()), nothing)


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

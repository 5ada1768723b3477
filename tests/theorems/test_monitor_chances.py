"""The chances of a monitor beside their sums term by term, and beside rounds of the real mechanism."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from farthing.adaptive.monitor.monitor_plan import chance_above, chance_below
from farthing.mechanisms.sparse_vector import AboveThreshold
from sources import TestSource

CASES = [(1.0, 1.0, 0, 3), (0.3, 0.7, -2, 0), (0.05, 0.02, 20, 40), (5.0, 3.0, 0, 1), (0.02, 0.03, -60, 90)]


def above(first: float, second: float, offset: int, distance: int, queries: int) -> float:
    total = 0.0
    for r in range(int(50 / first)):
        n = distance + offset + r
        each = 1.0 if n <= 0 else math.exp(-second * n)
        total += math.exp(-first * r) * -math.expm1(-first) * (1 - (1 - each) ** queries)
    return total


def below(first: float, second: float, offset: int, distance: int) -> float:
    total = 0.0
    for r in range(int(50 / first)):
        n = offset + r - distance  # N < n
        total += math.exp(-first * r) * -math.expm1(-first) * (0.0 if n <= 0 else 1 - math.exp(-second * n))
    return total


@pytest.mark.parametrize(("first", "second", "offset", "distance"), CASES)
def test_both_chances_are_their_sums(first: float, second: float, offset: int, distance: int) -> None:
    rates = Fraction(first), Fraction(second)
    for queries in (1, 7, 10_000):
        found = chance_above(*rates, offset, distance, queries)
        assert found == pytest.approx(above(first, second, offset, distance, queries), rel=1e-6, abs=1e-12)
    found = chance_below(*rates, offset, distance)
    assert found == pytest.approx(below(first, second, offset, distance), rel=1e-6, abs=1e-12)


def test_blocks_of_wide_noise_move_the_chances_up_and_hardly() -> None:
    for chance in (lambda rate, d: chance_above(rate, rate, 0, d, 50), lambda r, d: chance_below(r, r, 0, d)):
        wide, narrow = chance(Fraction(1, 10**6), 2 * 10**6), chance(Fraction(1, 60), 120)
        assert narrow * 0.98 <= wide <= narrow * 1.05


def test_chances_fall_with_the_distance_and_rise_with_the_questions() -> None:
    rates = Fraction(1, 10), Fraction(1, 20)
    assert [chance_above(*rates, 0, d, 9) for d in (0, 5, 50)] == sorted(
        (chance_above(*rates, 0, d, 9) for d in (0, 5, 50)), reverse=True
    )
    assert chance_above(*rates, 0, 30, 1) < chance_above(*rates, 0, 30, 100) <= 1
    assert chance_below(*rates, 9, 0) > chance_below(*rates, 9, 30) > 0
    assert chance_above(*rates, 0, 10**9, 1) <= 1e-20
    assert chance_below(*rates, 0, 10**9) <= 1e-20


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.9, 1.0, 1.1])
def test_rounds_of_the_mechanism_have_these_chances_and_others_have_not(scale: float) -> None:
    """Power: noise that is a tenth too small or too large is told apart."""
    mechanism = AboveThreshold(0.5, monotone=True)
    drawn = AboveThreshold(0.5 / scale, monotone=True, with_gap=True)
    first, second = mechanism._rates
    high, far, runs, source = 10**6, 12, 15_000, TestSource(11)
    gaps = [drawn._start(source).ask(high).gap - high for _ in range(runs)]  # type: ignore[union-attr,operator]
    false, missed = sum(gap - far >= 0 for gap in gaps), sum(gap + far < 0 for gap in gaps)
    found = []
    for count, chance in (
        (false, chance_above(first, second, mechanism._offset, far, 1)),
        (missed, chance_below(first, second, mechanism._offset, far)),
    ):
        found.append(abs(count - runs * chance) / math.sqrt(runs * chance * (1 - chance)))
    # 5.03 standard deviations: one false rejection in two million for each of the two.
    assert (max(found) < 5.03) == (scale == 1.0)

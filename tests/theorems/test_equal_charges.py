"""Equal charges beside the clock: sound against every strategy, tight, monotone and degenerate."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from adaptive_adversary import Adversary
from farthing.accounting import compose
from farthing.accounting.filters import ClockFilter
from farthing.accounting.filters.clock_filter import most_alike, parts_to_pay
from farthing.accounting.filters.equal_charges import LONGEST_PATH, equal_charges
from farthing.privacy import ApproxDP, Composed, DiscreteLaplaceNoise, GaussianNoise, LaplaceNoise, RandomizedResponse
from theorems.test_clock_costs import curve


@pytest.mark.parametrize(
    ("epsilon", "delta", "charge", "number", "optimum"),
    [(1.0, 1e-9, 0.01, 336, 336), (1.0, 1e-6, 0.02, 142, 142), (3.0, 1e-6, 0.1, 44, 46), (1.0, 1e-6, 0.05, 24, 26)],
)
def test_equal_charges_reach_the_optimum_or_nearly(
    epsilon: float, delta: float, charge: float, number: int, optimum: int
) -> None:
    budget = ClockFilter(epsilon, delta, leak=0)
    assert budget.admits(charge, number) and not budget.admits(charge, number + 1)
    assert compose([charge], counts=[optimum]).delta_at(epsilon).upper <= delta
    assert compose([charge], counts=[optimum + 1]).delta_at(epsilon).lower > delta


def twin(epsilon: float, charge: float, number: int, clocks: list[float]) -> mpmath.mpf:
    """(T W_1)(-epsilon) by recursion at 40 digits."""
    e = mpmath.mpf(charge)
    truth = 1 / (1 + mpmath.exp(-e))
    known: dict[tuple[int, int], mpmath.mpf] = {}

    def step(n: int, up: int) -> mpmath.mpf:
        return truth * value(n + 1, up + 1) + (1 - truth) * value(n + 1, up - 1)

    def value(n: int, up: int) -> mpmath.mpf:
        if (n, up) not in known:
            x = up * e - mpmath.mpf(epsilon)
            options = [curve(x, mpmath.mpf(clocks[n])) if n < len(clocks) else max(mpmath.mpf(0), -mpmath.expm1(-x))]
            known[n, up] = max([*options, *([step(n, up)] if n < number else [])])
        return known[n, up]

    return step(0, 0)


@pytest.mark.parametrize(
    ("epsilon", "slack", "charge", "clocks"),
    [
        (3.0, 1e-6, 0.2, [0.42, 0.37, 0.33, 0.28, 0.24, 0.19, 0.15, 0.1, 0.05, 0.01]),
        (0.5, 0.3, 0.3, [0.6, 0.5, 0.4, 0.27, 0.15, 0.02]),
        (1.0, 1e-12, 0.1, [0.02, 0.009]),
    ],
)
def test_the_number_is_the_largest_that_the_recursion_allows(
    epsilon: float, slack: float, charge: float, clocks: list[float]
) -> None:
    number = equal_charges(epsilon, slack, charge, clocks)
    with mpmath.workdps(40):
        assert number == len(clocks) - 1 or twin(epsilon, charge, number, clocks) <= slack
        assert twin(epsilon, charge, number + 1, clocks) > slack * (1 - 2e-6)


@pytest.mark.parametrize(
    ("epsilon", "delta", "menu"),
    [
        (3.0, 1e-6, ((4, 0.0),)),
        (0.5, 0.3414, ((4, 0.0), (9, 0.0))),
        (1.0, 0.1, ((3, 0.0), (8, 0.0))),
        (1.5, 0.01, ((3, 0.0), (12, 0.0))),
        (2.0, 0.2, ((5, 0.01), (12, 0.0))),
    ],
)
def test_no_strategy_that_leaves_equal_charges_for_others_exceeds_delta(
    epsilon: float, delta: float, menu: tuple[tuple[int, float], ...]
) -> None:
    for leak in (0.0, delta / 4):
        assert Adversary(menu, epsilon).delta(ClockFilter(epsilon, delta, leak=leak)) <= delta


def test_gaussian_noise_instead_of_the_next_charge_is_allowed_for() -> None:
    """The last word of the recursion: with one charge more, an analyst who may switch to noise exceeds delta."""
    assert most_alike(Fraction(3), Fraction(1, 10**6), ApproxDP(0.1)) == 44
    without = equal_charges(3.0, 1e-6, 0.1, [0.0])  # a filter that admits nothing else reaches the fixed optimum
    assert without == 46


def test_another_charge_ends_the_count() -> None:
    budget = ClockFilter(3.0, 1e-6, leak=0).charge(0.1, 42)
    assert budget._clock is None and "equal charges" in budget.explain()
    assert budget.admits(0.1, 2) and not budget.admits(0.1, 3)
    assert budget.remaining.epsilon == 0.1
    assert not budget.admits(0.05) and not budget.admits(GaussianNoise(1000.0)) and budget.admits((0.0, 0.0))
    assert not ClockFilter(3.0, 1e-6, leak=0).charge(0.05).admits(0.1, 44)


def test_what_is_known_of_a_charge_is_its_epsilon() -> None:
    budget = ClockFilter(3.0, 1e-6, leak=0).charge(0.1, 20).charge(RandomizedResponse(0.1), 12)
    assert budget.admits(DiscreteLaplaceNoise(10.0), 12) and not budget.admits(DiscreteLaplaceNoise(10.0), 13)
    assert not budget.admits(LaplaceNoise(10.0), 12)  # its own curve, another price


@pytest.mark.slow
def test_more_budget_admits_at_least_as_many() -> None:
    numbers = [most_alike(Fraction(n, 4), Fraction(1, 10**6), ApproxDP(0.1)) for n in range(2, 12)]
    assert numbers == sorted(numbers)


def test_long_paths_and_large_losses_are_left_to_the_clock() -> None:
    clocks = list(np.linspace(1.0, 0.0, LONGEST_PATH + 2))
    assert equal_charges(10.0, 1e-3, 0.01, clocks) == LONGEST_PATH + 1
    assert equal_charges(10.0, 1e-3, 1000.0, [1.0]) == 0


def test_a_plan_is_paid_largest_first() -> None:
    plan = Composed(((ApproxDP(0.1), 4), (GaussianNoise(9.0), 1), (ApproxDP(0.5), 1)))
    assert [count for _, count in parts_to_pay(plan)] == [1, 4, 1]
    budget = ClockFilter(3.0, 1e-3, leak=0)
    at_once, small_first = budget.charge(plan), budget.charge(0.1, 4).charge(GaussianNoise(9.0)).charge(0.5)
    assert at_once._clock is not None and small_first._clock is not None and at_once._clock > small_first._clock
    assert math.isclose(at_once._clock, budget.charge(0.5).charge(0.1, 4).charge(GaussianNoise(9.0))._clock or 0)

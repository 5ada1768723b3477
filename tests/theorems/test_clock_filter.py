"""ClockFilter against every adaptive strategy over small menus, beside filters with planted faults."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from benchmarks.clock_games import ClockAfterSums, PlainSquares, StaleClock

from adaptive_adversary import Adversary, NaturalFilter
from farthing.accounting import compose
from farthing.accounting.filters import BasicFilter, ClockFilter, FullyAdaptiveFilter, RenyiFilter
from farthing.accounting.filters.clock_costs import CLOCK_UNITS
from farthing.privacy import (
    Composed,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
)

# The order of charges matters to a clock, so that states do not meet: few questions, or a budget for few of them.
CASES = [
    (0.5, 0.3414, ((4, 0.0), (7, 0.0), (10, 0.0))),
    (1.0, 0.1, ((3, 0.0), (5, 0.0), (10, 0.0))),
    (1.5, 0.01, ((3, 0.0), (6, 0.0), (15, 0.0))),
    (2.0, 0.004, ((4, 0.0), (7, 0.0), (15, 0.0))),
    (3.0, 1e-6, ((2, 0.0), (30, 0.0))),
    (1.0, 1e-12, ((1, 0.0), (5, 0.0))),
    (2.0, 0.2, ((5, 0.02), (8, 0.0), (20, 0.05))),
]


@pytest.mark.parametrize(("epsilon", "delta", "menu"), CASES)
def test_no_adaptive_strategy_exceeds_delta(epsilon: float, delta: float, menu: tuple[tuple[int, float], ...]) -> None:
    assert Adversary(menu, epsilon).delta(ClockFilter(epsilon, delta)) <= delta
    assert Adversary(menu, epsilon).delta(ClockFilter(epsilon, delta, leak=0)) <= delta


@pytest.mark.parametrize("planted", [StaleClock, ClockAfterSums])
def test_a_clock_beside_sums_that_it_does_not_see_is_caught(planted: type[ClockFilter]) -> None:
    assert Adversary(((4, 0.0), (15, 0.0)), 2.0).delta(planted(2.0, 0.004, leak=0)) > 2 * 0.004


def test_a_clock_without_what_smoothing_adds_is_caught() -> None:
    """One question that takes the whole clock: its square is too little by a third or more."""
    start = Fraction(ClockFilter(0.1, 0.3, leak=0)._start, CLOCK_UNITS)
    question = math.floor(10 * math.sqrt(start))
    adversary = Adversary(((question, 0.0),), 0.1)
    assert adversary.delta(PlainSquares(0.1, 0.3, leak=0)) > 0.3
    assert adversary.delta(ClockFilter(0.1, 0.3, leak=0)) <= 0.3


def test_the_strategy_that_breaks_the_natural_rule_is_refused() -> None:
    adversary = Adversary(((7, 0.0), (10, 0.0)), 0.5)
    assert adversary.delta(NaturalFilter(0.5, 0.3414)) > 0.368
    assert adversary.delta(ClockFilter(0.5, 0.3414, leak=0)) <= 0.3414


@pytest.mark.parametrize(
    ("epsilon", "delta", "charge", "least"),
    [
        (1.0, 1e-9, 0.01, 329),
        (1.0, 1e-6, 0.01, 558),
        (1.0, 1e-6, 0.02, 138),
        (3.0, 1e-6, 0.01, 4193),
        (3.0, 1e-6, LaplaceNoise(20.0), 169),
        (1.0, 1e-9, GaussianNoise(20.0), 13),
        (1.0, 1e-9, DiscreteGaussianNoise(100.0), 331),
        (1.0, 1e-9, DiscreteLaplaceNoise(100.0, 30), 330),
    ],
)
def test_adaptive_charges_nearly_reach_the_optimum_of_fixed_ones_and_never_exceed_it(
    epsilon: float, delta: float, charge: float | Event, least: int
) -> None:
    clock = ClockFilter(epsilon, delta, leak=0)
    assert clock.admits(charge, least)
    most = clock._most(charge)
    assert compose([charge], counts=[most]).epsilon_at(delta).upper <= epsilon
    assert not compose([charge], counts=[math.ceil(most * 1.04) + 1]).epsilon_at(delta).lower <= epsilon
    for other in (BasicFilter(epsilon, delta), FullyAdaptiveFilter(epsilon, delta, leak=0)):
        if isinstance(charge, float):
            assert not other.admits(charge, most)
    assert not RenyiFilter(epsilon, delta, leak=0).admits(charge, most)


def test_a_plan_costs_what_its_parts_do_and_leaks_are_set_aside() -> None:
    budget = ClockFilter(1.0, 1e-6)
    plan = Composed(((LaplaceNoise(30.0), 3), (GaussianNoise(40.0), 2)))
    assert budget.charge(plan)._clock == budget.charge(LaplaceNoise(30.0), 3).charge(GaussianNoise(40.0), 2)._clock
    assert budget.charge((0.1, 4e-7)).remaining.delta == pytest.approx(1e-7)
    assert not budget.admits((0.1, 6e-7))


def test_a_clock_that_has_run_out_admits_by_plain_sums_alone() -> None:
    budget = ClockFilter(3.0, 1e-6, leak=0).charge(1.5)
    assert budget._clock is None and "run out" in budget.explain()
    assert budget.admits(1.5) and not budget.admits(1.5 + 1e-9) and not budget.admits(GaussianNoise(1000.0))


def test_excesses_that_add_up_end_the_clock() -> None:
    """Noise so narrow that its lattice shows: each charge may exceed its curve by a share that is kept in sums."""
    budget = ClockFilter(30.0, 0.1, leak=0)
    narrow = DiscreteGaussianNoise(1.5)
    assert budget.admits(narrow) or budget.charge(GaussianNoise(1.5))._clock is not None
    assert not budget.admits(narrow, 10**4)

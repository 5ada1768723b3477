"""`ExponentialMechanism`: its distribution, its epsilon and its bounded range, by enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from farthing.mechanisms.exponential import ExponentialMechanism
from theorems.selection_twins import (
    SLACK,
    Seeded,
    counted,
    exponential_distribution,
    log_ratios,
    neighbours_of,
    number,
    rejected,
)

SCORES = [0, 3, 3, -2, 5, 1]


@pytest.mark.slow
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("sensitivity", [1, 2])
def test_no_pair_of_neighbours_exceeds_epsilon_and_the_range_is_epsilon(sensitivity: int, monotone: bool) -> None:
    mechanism = ExponentialMechanism(0.7, sensitivity, monotone)
    most, widest = 0, 0
    for scores in product(range(3), repeat=3):
        distribution = exponential_distribution(scores, mechanism.rate)
        for others in neighbours_of(scores, sensitivity, monotone):
            losses = log_ratios(distribution, exponential_distribution(others, mechanism.rate))
            most, widest = max(most, *losses), max(widest, max(losses) - min(losses))
    assert most <= number(0.7) + SLACK
    assert number(0.7) * 0.99 <= widest <= number(0.7) + SLACK  # attained, so no larger rate would do


@pytest.mark.slow
def test_the_law_is_exact() -> None:
    mechanism = ExponentialMechanism(0.9)
    source = Seeded(1)
    observed = counted(lambda: mechanism._answer(SCORES, source), 3_000)
    assert not rejected(observed, dict(enumerate(exponential_distribution(SCORES, mechanism.rate))))


@pytest.mark.slow
@pytest.mark.parametrize("monotone", [False, True])
def test_a_rate_that_is_a_tenth_off_would_be_noticed(monotone: bool) -> None:
    """One good candidate among a thousand bad ones: the odds are even, and move as fast as they can."""
    mechanism = ExponentialMechanism(0.5 if monotone else 1.0, 1, monotone)
    scores, source = np.array([0] * 500 + [14] + [0] * 500), Seeded(1)
    observed = counted(lambda: mechanism._answer(scores, source) == 500, 3_000)
    good = [exponential_distribution(scores.tolist(), mechanism.rate * Fraction(t, 10))[500] for t in (10, 9, 11)]
    assert [rejected(observed, {True: p, False: 1 - p}) for p in good] == [False, True, True]


@pytest.mark.slow
def test_real_scores_on_a_grid_have_the_law_of_their_floors() -> None:
    mechanism = ExponentialMechanism(1.0, 0.5, grid=0.25)
    assert mechanism.steps == 2
    source = Seeded(2)
    observed = counted(lambda: mechanism._answer([0.3, -0.01, 1.49], source), 5_000)
    assert not rejected(observed, dict(enumerate(exponential_distribution([1, -1, 5], mechanism.rate))))
    assert rejected(observed, dict(enumerate(exponential_distribution([1, 1, 5], mechanism.rate))))


def test_rounding_is_paid_for_when_the_grid_does_not_divide_the_sensitivity() -> None:
    """Two scores 0.3 apart may land two steps of 0.25 apart; ceil(0.3 / 0.25) says so."""
    mechanism = ExponentialMechanism(1.0, 0.3, grid=0.25)
    assert mechanism.steps == 2
    floors = [np.floor((start + shift) / 0.25) for start in np.arange(0, 1, 0.01) for shift in (0.0, 0.3)]
    assert max(b - a for a, b in zip(floors[::2], floors[1::2], strict=True)) == 2


def test_far_apart_scores_are_compared_without_wrapping() -> None:
    mechanism = ExponentialMechanism(1.0)
    extremes = [-(2**63), 2**63 - 1, -(2**62), 0]
    assert {mechanism._answer(extremes, Seeded(seed)) for seed in range(50)} == {1}
    assert {mechanism._answer(np.array(extremes), Seeded(seed)) for seed in range(50)} == {1}
    assert {mechanism._answer([2**53, 2**53 + 60], Seeded(seed)) for seed in range(50)} == {1}
    assert mechanism._answer([10**400, -(10**400)], Seeded(0)) == 0


@pytest.mark.slow
def test_equal_scores_are_equally_likely_and_one_candidate_is_certain() -> None:
    mechanism = ExponentialMechanism(1.0)
    source = Seeded(3)
    observed = counted(lambda: mechanism._answer([2**62] * 5, source), 2_000)
    assert not rejected(observed, dict.fromkeys(range(5), 0.2))
    assert mechanism.release([-7]) == 0

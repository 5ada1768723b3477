"""`PermuteAndFlip`: its law and its epsilon by enumeration, and never a worse score than the exponential mechanism."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import mpmath
import pytest

from farthing.mechanisms.noisy_max import PermuteAndFlip
from theorems.selection_twins import (
    SLACK,
    Seeded,
    counted,
    exponential_distribution,
    log_ratios,
    neighbours_of,
    number,
    permute_and_flip_distribution,
    rejected,
)

SCORES = [0, 3, 3, -2, 5]


@pytest.mark.slow
@pytest.mark.parametrize("monotone", [False, True])
def test_no_pair_of_neighbours_exceeds_epsilon(monotone: bool) -> None:
    mechanism = PermuteAndFlip(0.7, 1, monotone)
    most = 0
    for scores in product(range(3), repeat=3):
        distribution = permute_and_flip_distribution(list(scores), mechanism.rate)
        for others in neighbours_of(scores, 1, monotone):
            most = max(most, *log_ratios(distribution, permute_and_flip_distribution(others, mechanism.rate)))
    assert most <= number(0.7) + SLACK
    assert most >= number(0.7) * 0.5


def test_the_range_of_its_losses_exceeds_epsilon() -> None:
    """So it must not be charged as a bounded-range mechanism."""
    mechanism = PermuteAndFlip(2.0, 1)
    widest = 0
    for scores in ((0, 0, 3), (3, 0, 1), (0, 2, 3), (1, 1, 0), (2, 0, 0)):
        distribution = permute_and_flip_distribution(list(scores), mechanism.rate)
        for others in neighbours_of(scores, 1, False):
            losses = log_ratios(distribution, permute_and_flip_distribution(others, mechanism.rate))
            widest = max(widest, max(losses) - min(losses))
    assert widest > 2.01


@pytest.mark.slow
def test_it_never_loses_more_than_the_exponential_mechanism() -> None:
    rate = Fraction(2, 5)
    for scores in product(range(5), repeat=4):
        flips, weights = (
            permute_and_flip_distribution(list(scores), rate),
            exponential_distribution(scores, rate),
        )
        for least in range(1, 5):
            ours = mpmath.fsum(p for p, score in zip(flips, scores, strict=True) if score >= least)
            theirs = mpmath.fsum(p for p, score in zip(weights, scores, strict=True) if score >= least)
            assert ours >= theirs - SLACK


@pytest.mark.slow
def test_the_law_is_exact() -> None:
    mechanism = PermuteAndFlip(0.9)
    source = Seeded(1)
    observed = counted(lambda: mechanism._answer(SCORES, source), 8_000)
    assert not rejected(observed, dict(enumerate(permute_and_flip_distribution(SCORES, mechanism.rate))))


@pytest.mark.slow
def test_a_rate_that_is_a_tenth_off_would_be_noticed() -> None:
    """One good candidate among a hundred bad ones; k of those come before it, and all their coins have to fail."""
    mechanism = PermuteAndFlip(1.0)
    scores, source = [0] * 50 + [8] + [0] * 50, Seeded(1)
    observed = counted(lambda: mechanism._answer(scores, source) == 50, 3_000)
    good = [
        mpmath.fsum((1 - mpmath.exp(-4 * tenths / mpmath.mpf(10))) ** k for k in range(101)) / 101
        for tenths in (10, 9, 11)
    ]
    assert [rejected(observed, {True: p, False: 1 - p}) for p in good] == [False, True, True]


def test_far_apart_scores_are_compared_without_wrapping() -> None:
    mechanism = PermuteAndFlip(1.0)
    extremes = [-(2**63), 2**63 - 1, -(2**62), 0]
    assert {mechanism._answer(extremes, Seeded(seed)) for seed in range(50)} == {1}
    assert mechanism.release([-7]) == 0

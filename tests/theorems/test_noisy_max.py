"""`ReportNoisyMax`: its distribution with and without the margin, and its epsilon, in rational numbers."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp

import pytest

from farthing.mechanisms.noisy_max import ReportNoisyMax, Winner
from theorems.selection_twins import (
    Seeded,
    counted,
    margin_distribution,
    neighbours_of,
    noisy_max_distribution,
    rejected,
)

HALF, FEW = Fraction(1, 2), Fraction(1, 7)
SCORES = [0, 3, 3, -2, 4]


def test_the_twin_adds_up_to_one() -> None:
    for scores in ([0], [0, 0], [2, 0, 1], SCORES):
        assert sum(noisy_max_distribution(scores, HALF)) == 1
    total = sum(margin_distribution([1, 0, 2], HALF, winner, margin) for winner in range(3) for margin in range(200))
    assert 0 <= 1 - total < Fraction(1, 2**100)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("q", [HALF, FEW, Fraction(9, 10)])
def test_no_pair_of_neighbours_exceeds_epsilon_ties_included(q: Fraction, monotone: bool) -> None:
    """With q = exp(-rate), e^-epsilon is q^2 at sensitivity 1, and q for monotone scores: everything is rational."""
    least = q if monotone else q**2
    reached = Fraction(1)
    for scores in product(range(4), repeat=3):
        distribution = noisy_max_distribution(list(scores), q)
        for others in neighbours_of(scores, 1, monotone):
            for p, other in zip(distribution, noisy_max_distribution(others, q), strict=True):
                assert other >= least * p
                reached = min(reached, other / p)
    assert reached < 1.6 * least  # so the check would notice a rate half as large again


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("q", [HALF, Fraction(9, 10)])
def test_the_margin_costs_nothing_more(q: Fraction, monotone: bool) -> None:
    least = q if monotone else q**2
    attained = False
    for scores in product(range(3), repeat=3):
        distributions = {(w, g): margin_distribution(list(scores), q, w, g) for w in range(3) for g in range(6)}
        for others in neighbours_of(scores, 1, monotone):
            for (winner, margin), p in distributions.items():
                other = margin_distribution(others, q, winner, margin)
                assert other >= least * p
                attained = attained or other == least * p
    assert attained  # the margin uses all of epsilon


def test_the_margin_costs_nothing_more_at_sensitivity_two() -> None:
    for scores in ([0, 0, 0], [3, 0, 1], [0, 4, 2]):
        distributions = {(w, g): margin_distribution(scores, HALF, w, g) for w in range(3) for g in range(8)}
        for others in neighbours_of(scores, 2, False):
            for (winner, margin), p in distributions.items():
                assert margin_distribution(others, HALF, winner, margin) >= HALF**4 * p


def _rational(rate: float) -> Fraction:
    return Fraction(exp(-rate))


@pytest.mark.slow
def test_the_law_is_exact() -> None:
    mechanism = ReportNoisyMax(0.9)
    source = Seeded(1)
    observed = counted(lambda: mechanism._answer(SCORES, source), 5_000)
    assert not rejected(observed, dict(enumerate(noisy_max_distribution(SCORES, _rational(0.45)))))


@pytest.mark.slow
def test_a_rate_that_is_a_tenth_off_would_be_noticed() -> None:
    """One good candidate among twenty bad ones, ten of which win ties against it."""
    mechanism = ReportNoisyMax(1.0)
    scores, source = [0] * 10 + [6] + [0] * 10, Seeded(1)
    observed = counted(lambda: mechanism._answer(scores, source) == 10, 6_000)
    good = [_good(exp(-0.5 * factor)) for factor in (1, 0.9, 1.1)]
    assert [rejected(observed, {True: p, False: 1 - p}) for p in good] == [False, True, True]


def _good(q: float) -> float:
    return sum((1 - q) * q**n * (1 - q ** (n + 6)) ** 10 * (1 - q ** (n + 7)) ** 10 for n in range(200))


@pytest.mark.slow
def test_the_law_of_the_margin_is_exact_and_the_check_would_notice_a_tenth() -> None:
    mechanism = ReportNoisyMax(1.6, gap=True)
    source = Seeded(2)
    scores = [1, 0, 1]
    observed = counted(lambda: mechanism._answer(scores, source), 15_000)
    distributions = [
        {Winner(w, g): margin_distribution(scores, _rational(0.8 * factor), w, g) for w in range(3) for g in range(60)}
        for factor in (1, 0.9, 1.1)
    ]
    assert [rejected(observed, distribution) for distribution in distributions] == [False, True, True]


def test_far_apart_scores_and_their_margin_do_not_wrap() -> None:
    winner = ReportNoisyMax(1.0, gap=True)._answer([-(2**63), 2**63 - 1], Seeded(0))
    assert winner.candidate == 1 and abs(winner.margin - 2**63) < 100
    assert ReportNoisyMax(1.0).release([-7]) == 0


def test_the_margin_is_in_the_units_of_the_scores() -> None:
    winner = ReportNoisyMax(1.0, 0.5, grid=0.5, gap=True)._answer([0.0, 1000.0], Seeded(0))
    assert winner.candidate == 1 and abs(winner.margin - 1000) < 50

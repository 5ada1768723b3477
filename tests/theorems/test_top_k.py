"""`TopK`: the distribution of its lists, its epsilon, and what its event is worth."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from farthing import compose
from farthing.mechanisms.exponential import TopK
from farthing.privacy import ApproxDP
from theorems.selection_twins import (
    SLACK,
    Seeded,
    counted,
    log_ratios,
    neighbours_of,
    number,
    rejected,
    top_k_distribution,
)

SCORES = [0, 3, 3, -2]


@pytest.mark.slow
@pytest.mark.parametrize("monotone", [False, True])
def test_no_pair_of_neighbours_exceeds_epsilon(monotone: bool) -> None:
    mechanism = TopK(2, 0.8, 1, monotone)
    most = 0
    for scores in product(range(3), repeat=3):
        distribution = top_k_distribution(list(scores), mechanism.rate, 2)
        for others in neighbours_of(scores, 1, monotone):
            most = max(
                most,
                *log_ratios(distribution.values(), top_k_distribution(others, mechanism.rate, 2).values()),
            )
    assert number(0.8) * 0.5 <= most <= number(0.8) + SLACK


@pytest.mark.slow
def test_the_law_is_exact_and_the_check_would_notice_a_tenth() -> None:
    mechanism = TopK(2, 4.0)
    source = Seeded(1)
    observed = counted(lambda: tuple(mechanism._answer(SCORES, source)), 12_000)
    distributions = [top_k_distribution(SCORES, mechanism.rate * Fraction(tenths, 10), 2) for tenths in (10, 9, 11)]
    assert [rejected(observed, distribution) for distribution in distributions] == [False, True, True]


def test_the_event_costs_epsilon_alone_and_less_at_a_delta() -> None:
    mechanism = TopK(50, 5.0)
    price = compose([mechanism.event])
    assert 5.0 <= price.epsilon_at(0.0).upper <= 5.0 * (1 + 1e-12)
    assert price.epsilon_at(1e-6).upper < compose([ApproxDP(0.1)], counts=[50]).epsilon_at(1e-6).lower < 5.0


def test_all_candidates_in_order_may_be_asked_for() -> None:
    assert sorted(TopK(4, 1.0).release(SCORES)) == [0, 1, 2, 3]
    assert TopK(3, 50.0)._answer([0, 10_000, 5_000, -10_000], Seeded(0)) == [1, 2, 0]

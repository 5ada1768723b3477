"""The closed form of Kairouz, Oh and Viswanath for any charges, beside the enumeration of transcripts."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings

from farthing.accounting.theorems import kov_heterogeneous_bound
from strategies import pairs, target_deltas
from theorems.upper_bound_checks import check_degenerate, check_monotone, check_sound


@pytest.mark.slow
@settings(max_examples=60)
@given(pairs(max_size=6), target_deltas(0.9))
@example([(5.0, 0.0)] * 6, 0.5)
@example([(0.001, 0.0)] * 6, 1e-300)
def test_the_bound_holds_for_every_transcript(charges: list[tuple[float, float]], delta_g: float) -> None:
    check_sound(kov_heterogeneous_bound, charges, delta_g)


def test_the_bound_is_the_least_of_the_three_published_terms() -> None:
    epsilons, deltas, delta_g = [0.1, 0.05, 0.2] * 20, [1e-9, 0.0, 1e-8] * 20, 1e-5
    slack = 1 - (1 - delta_g) / math.prod(1 - d for d in deltas)
    drift = sum(e * (math.exp(e) - 1) / (math.exp(e) + 1) for e in epsilons)
    squares = sum(e * e for e in epsilons)
    second = drift + math.sqrt(2 * squares * math.log(math.e + math.sqrt(squares) / slack))
    third = drift + math.sqrt(2 * squares * math.log(1 / slack))
    claim = kov_heterogeneous_bound(epsilons, delta_g, deltas)
    assert claim == pytest.approx(min(sum(epsilons), second, third), rel=1e-11)


def test_each_term_is_the_least_somewhere() -> None:
    def terms(epsilons: list[float], slack: float) -> list[float]:
        drift = sum(e * math.tanh(e / 2) for e in epsilons)
        squares = sum(e * e for e in epsilons)
        logs = (math.log(math.e + math.sqrt(squares) / slack), math.log(1 / slack))
        return [sum(epsilons), *(drift + math.sqrt(2 * squares * log) for log in logs)]

    cases = {0: ([1.0] * 3, 1e-6), 1: ([0.1] * 60, 1e-6), 2: ([0.5] * 60, 1e-6)}
    for least, (epsilons, slack) in cases.items():
        values = terms(epsilons, slack)
        assert min(values) == values[least]
        assert kov_heterogeneous_bound(epsilons, slack) == pytest.approx(values[least], rel=1e-11)


def test_the_constant_in_the_logarithm_is_e_and_not_epsilon() -> None:
    """The misprint ln(epsilon + ...) is in use elsewhere; it claims less than the theorem gives."""
    epsilons, slack = [0.1] * 60, 0.02
    squares, drift = 60 * 0.01, 60 * 0.1 * math.tanh(0.05)
    stated, misprinted = (
        drift + math.sqrt(2 * squares * math.log(constant + math.sqrt(squares) / slack)) for constant in (math.e, 0.1)
    )
    assert kov_heterogeneous_bound(epsilons, slack) == pytest.approx(stated, rel=1e-11)
    assert misprinted < stated - 0.01


@pytest.mark.slow
@settings(max_examples=40)
@given(pairs(max_size=8), pairs(min_size=1, max_size=1), target_deltas())
def test_more_and_larger_charges_never_cost_less(
    charges: list[tuple[float, float]], more: list[tuple[float, float]], delta_g: float
) -> None:
    check_monotone(kov_heterogeneous_bound, charges, more[0], delta_g)


def test_the_bound_at_the_edges() -> None:
    check_degenerate(kov_heterogeneous_bound, at_delta_zero=0.75)
    assert kov_heterogeneous_bound([1.0], 0.1, [0.1]) == 1.0  # the leak uses all of delta_g

"""Advanced composition (DRV10) beside the enumeration of transcripts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings

from farthing.accounting.theorems import advanced_composition
from strategies import pairs, target_deltas
from theorems.upper_bound_checks import check_degenerate, check_monotone, check_sound


@pytest.mark.slow
@settings(max_examples=60)
@given(pairs(max_size=6), target_deltas(0.9))
def test_the_bound_holds_for_every_transcript(charges: list[tuple[float, float]], delta_g: float) -> None:
    check_sound(advanced_composition, charges, delta_g)


@pytest.mark.parametrize(("epsilon", "k", "delta", "delta_g"), [(0.1, 100, 0.0, 1e-6), (0.5, 7, 1e-8, 1e-5)])
def test_the_bound_is_the_published_formula_and_no_more(epsilon: float, k: int, delta: float, delta_g: float) -> None:
    """It is loose itself: 6.31 where the optimum is 4.77 in the first case."""
    slack = delta_g - k * delta
    formula = epsilon * math.sqrt(2 * k * math.log(1 / slack)) + k * epsilon * (math.exp(epsilon) - 1)
    assert advanced_composition([epsilon], delta_g, [delta], [k]) == pytest.approx(formula, rel=1e-12)


@pytest.mark.slow
@settings(max_examples=40)
@given(pairs(max_size=8), pairs(min_size=1, max_size=1), target_deltas())
def test_more_and_larger_charges_never_cost_less(
    charges: list[tuple[float, float]], more: list[tuple[float, float]], delta_g: float
) -> None:
    check_monotone(advanced_composition, charges, more[0], delta_g)


def test_the_bound_at_the_edges() -> None:
    check_degenerate(advanced_composition, at_delta_zero=math.inf)

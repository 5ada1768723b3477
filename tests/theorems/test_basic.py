"""Basic composition beside exact rational sums and the enumeration of transcripts."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accounting.theorems import basic_composition
from strategies import pairs
from theorems.transcripts import fails, holds


@pytest.mark.slow
@given(pairs(max_size=6))
def test_the_sums_hold_for_every_transcript(charges: list[tuple[float, float]]) -> None:
    epsilon, delta = basic_composition(charges)
    if delta < 1:
        assert holds([e for e, _ in charges], [d for _, d in charges], epsilon, delta)


@pytest.mark.slow
@given(st.lists(st.tuples(st.floats(0, 1e300), st.integers(0, 2**47)), max_size=30))
def test_the_sum_is_the_exact_one_rounded_up_by_less_than_one_unit(charges: list[tuple[float, int]]) -> None:
    epsilon, _ = basic_composition([e for e, _ in charges], counts=[n for _, n in charges])
    exact = sum((Fraction(e) * n for e, n in charges), Fraction(0))
    if epsilon == math.inf:
        assert exact > Fraction(math.nextafter(math.inf, 0)) * (1 - Fraction(1, 2**50))
    else:
        assert Fraction(epsilon) >= exact
        assert epsilon == 0 or Fraction(math.nextafter(epsilon, 0)) < exact


def test_no_smaller_sum_would_do_for_pure_charges() -> None:
    assert fails([0.25, 0.5], [0.0, 0.0], math.nextafter(0.75, 0), 0.0)


def test_many_distinct_charges_still_round_up() -> None:
    values = [i * 1e-7 + 1e-9 for i in range(5000)]
    epsilon, delta = basic_composition(values, deltas=values)
    exact = sum(map(Fraction, values), Fraction(0))
    assert exact <= Fraction(epsilon) == Fraction(delta) <= exact * (1 + Fraction(1, 10**12))


@pytest.mark.slow
@settings(max_examples=40)
@given(pairs(max_size=8), pairs(min_size=1, max_size=1))
def test_adding_a_charge_never_lowers_either_sum(
    charges: list[tuple[float, float]], more: list[tuple[float, float]]
) -> None:
    before, after = basic_composition(charges), basic_composition(charges + more)
    assert after[0] >= before[0] and after[1] >= before[1]


def test_nothing_costs_nothing() -> None:
    assert basic_composition([]) == basic_composition([0.0], counts=[5]) == (0.0, 0.0)
    assert basic_composition([1.0], deltas=[0.5], counts=[0]) == (0.0, 0.0)
    assert basic_composition([5e-324], counts=[3]) == (1.5e-323, 0.0)
    assert basic_composition([1e308], counts=[100])[0] == math.inf

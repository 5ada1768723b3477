"""The optimum for any few charges beside the enumeration of transcripts."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings

from farthing.accounting.theorems import kov_exact_homogeneous, mv_enumeration
from farthing.errors import InvalidValue
from farthing.numerics import Bounds
from strategies import pairs, target_deltas
from theorems.transcripts import fails, holds, leak_exceeds


@pytest.mark.slow
@settings(max_examples=80)
@given(pairs(max_size=7), target_deltas(0.9))
@example([(30.0, 0.0), (40.0, 0.0), (300.0, 0.0)], 0.3)  # a plateau: delta hardly falls over tens of epsilon
@example([(0.5, 0.0), (0.25, 0.0), (0.25, 0.0), (1.0, 0.0)], 0.1)  # many equal sums
@example([(1.0, 1e-9), (2.0, 0.0)], 1e-9)  # the leak is exactly delta_g
@example([(0.1, 0.0), (0.2, 0.0)], 1 - 2.0**-53)
def test_the_optimum_is_enclosed_tightly(charges: list[tuple[float, float]], delta_g: float) -> None:
    epsilons, deltas = [e for e, _ in charges], [d for _, d in charges]
    bounds = mv_enumeration(charges, delta_g)
    if leak_exceeds(deltas, delta_g):
        assert bounds == Bounds(math.inf, math.inf)
        return
    assert holds(epsilons, deltas, bounds.upper, delta_g)
    assert bounds.width <= 1e-14 * max(1e-300, sum(epsilons))
    if bounds.lower > 0:
        assert fails(epsilons, deltas, math.nextafter(bounds.lower, 0), delta_g)


@pytest.mark.parametrize("delta_g", [0.3, 1e-6, 1e-300])
def test_equal_charges_agree_with_the_homogeneous_theorem(delta_g: float) -> None:
    equal = kov_exact_homogeneous(0.3, 12, delta_g)
    bounds = mv_enumeration([0.3], delta_g, counts=[12])
    assert bounds.lower <= equal.upper and equal.lower <= bounds.upper
    assert bounds.width < 1e-14


@pytest.mark.slow
@settings(max_examples=60)
@given(pairs(max_size=8), pairs(min_size=1, max_size=1), target_deltas())
def test_more_and_larger_charges_never_cost_less(
    charges: list[tuple[float, float]], more: list[tuple[float, float]], delta_g: float
) -> None:
    base = mv_enumeration(charges, delta_g).lower
    assert mv_enumeration(charges + more, delta_g).upper >= base
    assert mv_enumeration([(e + more[0][0], d) for e, d in charges], delta_g).upper >= base
    assert mv_enumeration([(e, d + more[0][1] / 2) for e, d in charges], delta_g).upper >= base
    assert mv_enumeration(charges, delta_g / 2).upper >= base


def test_the_optimum_at_the_edges() -> None:
    free = Bounds(0.0, 0.0)
    assert mv_enumeration([], 0.0) == mv_enumeration([0.0, 0.0], 1e-9) == mv_enumeration([0.0], 0.1, [0.1]) == free
    assert mv_enumeration([0.25, 0.5], 0.0) == Bounds(0.75, 0.75)
    assert mv_enumeration([1e308, 1e308], 0.1) == Bounds(0.0, math.inf)
    assert mv_enumeration([0.0], 0.1, [0.2]) == Bounds(math.inf, math.inf)
    assert mv_enumeration([1.0] * 3, 1e-9, [1e-9] * 3).lower == math.inf


def test_too_many_charges_are_refused_with_a_way_out() -> None:
    with pytest.raises(InvalidValue, match=r"k=21: must be at most 20: 2\^k subsets.*farthing.compose"):
        mv_enumeration([0.1], 1e-6, counts=[21])
    assert mv_enumeration([0.0], 1e-6, counts=[10**6]).upper == 0  # free charges are no subsets

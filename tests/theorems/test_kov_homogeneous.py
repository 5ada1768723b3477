"""The closed form of Kairouz, Oh and Viswanath for equal charges, beside the enumeration of transcripts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accounting.theorems import kov_heterogeneous_bound, kov_homogeneous_bound
from strategies import epsilons, leaks, target_deltas
from theorems.transcripts import holds, leak_exceeds


@pytest.mark.slow
@settings(max_examples=80)
@given(epsilons(), st.integers(0, 6), target_deltas(0.9), leaks())
def test_the_bound_holds_for_every_transcript(epsilon: float, k: int, delta_g: float, delta: float) -> None:
    claim = kov_homogeneous_bound(epsilon, k, delta_g, delta)
    assert holds([epsilon] * k, [delta] * k, claim, delta_g)
    assert leak_exceeds([delta] * k, delta_g) == (claim == math.inf)


@pytest.mark.slow
@settings(max_examples=80)
@given(epsilons(), st.integers(0, 10_000), target_deltas(0.9), leaks())
def test_the_bound_is_the_heterogeneous_one_for_equal_charges(
    epsilon: float, k: int, delta_g: float, delta: float
) -> None:
    """Two transcriptions of the closed form, one in balls and one in sums, agree; it is loose by itself."""
    claim = kov_homogeneous_bound(epsilon, k, delta_g, delta)
    other = kov_heterogeneous_bound([epsilon], delta_g, [delta], [k])
    assert claim == other == math.inf or claim == pytest.approx(other, rel=1e-12)


@pytest.mark.slow
@settings(max_examples=40)
@given(epsilons(), st.integers(0, 1000), target_deltas(), leaks())
def test_more_and_larger_charges_never_cost_less(epsilon: float, k: int, delta_g: float, delta: float) -> None:
    base = kov_homogeneous_bound(epsilon, k, delta_g, delta)
    assert kov_homogeneous_bound(epsilon * 1.01, k, delta_g, delta) >= base
    assert kov_homogeneous_bound(epsilon, k + 1, delta_g, delta) >= base
    assert kov_homogeneous_bound(epsilon, k, delta_g / 2, delta) >= base
    assert kov_homogeneous_bound(epsilon, k, delta_g, delta * 2) >= base


def test_the_bound_at_the_edges() -> None:
    assert kov_homogeneous_bound(0.5, 0, 0.0) == 0
    assert kov_homogeneous_bound(0.0, 5, 1e-9) == 0
    assert kov_homogeneous_bound(0.5, 2, 0.0) == 1.0
    assert kov_homogeneous_bound(1.0, 1, 0.1, 0.1) == 1.0
    assert kov_homogeneous_bound(1.0, 2, 0.1, 0.1) == math.inf
    assert kov_homogeneous_bound(1e300, 2, 1e-9) == 2e300
    assert kov_homogeneous_bound(0.1, 10**6, 1e-5, 9e-12) < math.inf  # more leaks than are multiplied exactly
    assert kov_homogeneous_bound(0.1, 10**6, 1e-5, 1.1e-11) == math.inf

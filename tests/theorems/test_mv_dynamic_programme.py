"""The dynamic programme of Murtagh and Vadhan: its published guarantee, by enumeration."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from farthing.accounting.theorems import kov_exact_homogeneous, mv_dynamic_programme, mv_enumeration
from farthing.errors import InvalidValue
from strategies import pairs, target_deltas
from theorems.upper_bound_checks import check_sound


def _bound(epsilons: object, delta_g: float, deltas: object) -> float:
    return mv_dynamic_programme(epsilons, delta_g, 0.05, deltas)


@pytest.mark.slow
@settings(max_examples=80)
@given(pairs(max_size=6), target_deltas(0.9))
def test_the_bound_holds_for_every_transcript(charges: list[tuple[float, float]], delta_g: float) -> None:
    check_sound(_bound, charges, delta_g)


@pytest.mark.slow
@settings(max_examples=80)
@given(pairs(max_size=8), target_deltas(0.9), st.floats(0.02, 0.99))
@example([(0.1, 0.0)] * 8, 0.01, 0.02)
@example([(5.0, 0.0), (0.001, 0.05)], 0.1, 0.5)
def test_the_published_guarantee_holds(charges: list[tuple[float, float]], delta_g: float, eta: float) -> None:
    """OptComp(delta_g) <= answer <= OptComp(exp(-eta / 2) delta_g) + eta."""
    answer = mv_dynamic_programme(charges, delta_g, eta)
    assert mv_enumeration(charges, delta_g).lower <= answer
    assert answer <= mv_enumeration(charges, math.exp(-eta / 2) * delta_g).upper + eta


@pytest.mark.parametrize("delta_g", [1e-6, 1e-20, 1e-300])
def test_the_answer_closes_in_on_the_optimum_at_any_delta(delta_g: float) -> None:
    """Where the original program, which subtracts large numbers, is off by more than 1 at delta = 1e-20."""
    optimum = kov_exact_homogeneous(0.1, 60, delta_g).lower
    for eta in (0.5, 0.05, 0.01):
        assert optimum <= mv_dynamic_programme([0.1], delta_g, eta, counts=[60]) <= optimum + 1.5 * eta


@pytest.mark.slow
@settings(max_examples=30)
@given(pairs(max_size=5), pairs(min_size=1, max_size=1), target_deltas())
def test_more_charges_cost_at_least_the_optimum_of_fewer(
    charges: list[tuple[float, float]], more: list[tuple[float, float]], delta_g: float
) -> None:
    """The lattice changes with the charges, so the answers themselves are ordered only up to eta."""
    assert mv_dynamic_programme(charges + more, delta_g, 0.02) >= mv_enumeration(charges, delta_g).lower


@pytest.mark.slow
@settings(max_examples=30)
@given(pairs(max_size=5), target_deltas())
def test_a_smaller_delta_never_costs_less(charges: list[tuple[float, float]], delta_g: float) -> None:
    answers = [mv_dynamic_programme(charges, delta_g / 2**i, 0.02) for i in range(4)]
    assert answers == sorted(answers)


def test_the_bound_at_the_edges() -> None:
    assert mv_dynamic_programme([], 0.0) == mv_dynamic_programme([0.0], 1e-9) == 0
    assert mv_dynamic_programme([0.0], 0.1, deltas=[0.1]) == 0
    assert 0.75 <= mv_dynamic_programme([0.25, 0.5], 0.0) <= 0.76
    assert mv_dynamic_programme([0.25, 0.5], 1e-9, deltas=[0.0, 1e-8]) == math.inf
    assert mv_dynamic_programme([0.25], 0.9) == 0
    assert mv_dynamic_programme([0.25, 0.5], 1e-9, eta=50.0) >= 0.75 - 1e-9


@pytest.mark.parametrize("eta", [0, -1.0, math.nan, math.inf, "x", True])
def test_a_meaningless_eta_is_refused(eta: object) -> None:
    with pytest.raises(InvalidValue, match="eta="):
        mv_dynamic_programme([0.1], 1e-6, eta)  # type: ignore[arg-type]


def test_work_without_end_is_refused() -> None:
    with pytest.raises(InvalidValue, match="raise eta"):
        mv_dynamic_programme([0.1], 1e-6, 1e-3, counts=[10**6])

"""Simulations beside a linear programme and an enumeration of all tests."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from farthing.accounting import Region, Simulation, randomized_response_simulation, simulate
from farthing.accounting.finite_distributions import leaky_response, odds_above
from farthing.errors import InvalidValue
from theorems.finite_pairs import (
    Pair,
    all_tests,
    finite_pairs,
    least_deficiency,
    least_missed,
    processed,
    stochastic_matrices,
)

HALF = Fraction(1, 2)


def check(found: Simulation, first: Pair, second: Pair) -> None:
    """The matrix does what it should, or the witness is what it says."""
    if found.possible:
        assert found.matrix is not None and found.witness is None and found.error == 0
        assert len(found.matrix) == len(first[0])
        assert all(sum(row) == 1 and min(row) >= 0 for row in found.matrix)
        assert processed(first, [list(row) for row in found.matrix]) == (list(second[0]), list(second[1]))
        return
    witness = found.witness
    assert witness is not None
    assert (witness.false_alarm, witness.missed, witness.outcomes) in all_tests(second)
    assert witness.least_missed == least_missed(first, witness.false_alarm) > witness.missed


@pytest.mark.slow
@settings(max_examples=40)
@given(finite_pairs(), finite_pairs())
@example(([Fraction(1)], [Fraction(1)]), ([Fraction(1)], [Fraction(1)]))
@example(([HALF, HALF], [HALF, HALF]), ([Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)]))
@example(([Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)]), ([HALF, HALF], [HALF, HALF]))
def test_simulate_finds_a_matrix_where_a_linear_programme_does_and_else_a_witness(first: Pair, second: Pair) -> None:
    found = simulate(first, second, tolerance=0)
    check(found, first, second)
    # These numbers have denominators of at most 256, so a deficiency that is not 0 is seen in doubles.
    assert found.possible == (least_deficiency(first, second) < 1e-8)
    assert found.possible == (Region.from_distributions(*second) <= Region.from_distributions(*first))


@pytest.mark.slow
@settings(max_examples=40)
@given(finite_pairs(6), st.data())
def test_what_was_processed_can_be_simulated(first: Pair, data: st.DataObject) -> None:
    second = processed(first, data.draw(stochastic_matrices(len(first[0]), 6)))
    found = simulate(first, second, tolerance=0)
    assert found.possible
    check(found, first, second)


@pytest.mark.slow
def test_many_outcomes_of_any_kind() -> None:
    rng = np.random.default_rng(3)
    for n, m in ((1, 30), (30, 1), (60, 60), (100, 20)):
        P, Q = rng.dirichlet(np.full(n, 0.3)), rng.dirichlet(np.full(n, 0.3))
        matrix = rng.dirichlet(np.full(m, 0.5), size=n)
        found = simulate((P, Q), (P @ matrix, Q @ matrix))
        assert found.possible and found.error < 1e-12
        array = found.array()
        assert np.abs(P @ array - P @ matrix).max() < 1e-12 and np.abs(Q @ array - Q @ matrix).max() < 1e-12
        assert array.min() >= 0 and np.allclose(array.sum(axis=1), 1, rtol=0, atol=1e-12)
        if m > 1 and n > 1:  # a strict garbling loses something
            back = simulate((P @ matrix, Q @ matrix), (P, Q))
            assert back.witness is not None and back.witness.missed < back.witness.least_missed


def test_rounding_alone_does_not_stand_against_a_simulation_and_is_reported() -> None:
    first = ([0.7, 0.2, 0.1], [0.1, 0.2, 0.7])
    nudged = ([0.7 + 1e-14, 0.2, 0.1 - 1e-14], [0.1, 0.2, 0.7])
    found = simulate(first, nudged)
    assert found.possible and 0 < found.error <= Fraction(1, 10**12)
    assert not simulate(first, nudged, tolerance=0).possible
    assert not simulate(first, ([0.7001, 0.2, 0.0999], [0.1, 0.2, 0.7])).possible
    assert found.matrix is not None
    P = [sum(p * row[j] for p, row in zip((0.7, 0.2, 0.1), found.array(), strict=True)) for j in range(3)]
    assert max(abs(p - q) for p, q in zip(P, nudged[0], strict=True)) < 1e-12


@pytest.mark.slow
@settings(max_examples=20)
@given(finite_pairs(), finite_pairs(), st.sampled_from([0.0, 0.01, 0.1, 0.3, 0.9]))
def test_a_tolerance_is_kept(first: Pair, second: Pair, tolerance: float) -> None:
    found = simulate(first, second, tolerance)
    if found.matrix is None:
        return
    near = processed(first, [list(row) for row in found.matrix])
    off = [sum(abs(a - b) for a, b in zip(*sides, strict=True)) / 2 for sides in zip(near, second, strict=True)]
    assert max(off) == found.error <= Fraction(str(tolerance))
    assert least_deficiency(first, second) <= float(found.error) + 1e-8


@pytest.mark.slow
@settings(max_examples=20)
@given(finite_pairs(), st.sampled_from([0.0, math.log(2), 1.0]), st.sampled_from([0.0, 0.1, 0.5]))
def test_randomized_response_simulation_exists_exactly_for_private_pairs(
    pair: Pair, epsilon: float, delta: float
) -> None:
    found = randomized_response_simulation(*pair, epsilon, delta, tolerance=0)
    odds = odds_above(epsilon)
    leak = Fraction(str(delta))
    sums = [(a, 1 - b) for a, b, _ in all_tests(pair)]
    private = all(q <= odds * p + leak and p <= odds * q + leak for p, q in sums)
    assert found.possible == private
    first = leaky_response(odds, delta)
    check(found, (list(first[0]), list(first[1])), pair)


@pytest.mark.slow
@settings(max_examples=20)
@given(finite_pairs())
def test_without_a_leak_the_map_is_the_one_there_is(pair: Pair) -> None:
    """Two outcomes with different odds leave no choice: (r P - Q) / (r - 1) and (r Q - P) / (r - 1)."""
    P, Q = pair
    odds = Fraction(8)
    found = randomized_response_simulation(P, Q, math.log(8), tolerance=0)
    if found.matrix is not None:
        assert list(found.matrix[1]) == [(odds * p - q) / (odds - 1) for p, q in zip(P, Q, strict=True)]
        assert list(found.matrix[2]) == [(odds * q - p) / (odds - 1) for p, q in zip(P, Q, strict=True)]


def test_noise_a_tenth_too_small_is_refuted() -> None:
    """Truncated geometric noise of epsilon 1.1 is not 1-DP; of epsilon 1, it is."""
    for scale, private in ((1.0, True), (1.1, False)):
        ratio = math.exp(-scale)
        P = np.array([ratio ** abs(k) for k in range(-8, 10)]) * (1 - ratio) / (1 + ratio)
        P[0], P[-1] = ratio**8 / (1 + ratio), ratio**9 / (1 + ratio)
        Q = P[::-1]  # around 1 instead of 0, cut off at -8 and at 9
        assert randomized_response_simulation(P, Q, 1.0).possible == private


def test_what_cannot_be_read_is_refused() -> None:
    good = ([0.5, 0.5], [0.5, 0.5])
    with pytest.raises(InvalidValue, match=r"second\[1\]"):
        simulate(good, ([0.5, 0.5], [1.0]))
    with pytest.raises(InvalidValue, match=r"first\[0\]"):
        simulate(([0.5, 0.4], [0.5, 0.5]), good)
    for typed in ("1e999999999", "1e-999999999", Decimal("1e999999"), b"1", 10**400):
        with pytest.raises(InvalidValue, match=r"first\[0\].*(finite number|add up to 1)"):
            simulate(([typed], [1]), ([1], [1]))
    for bad in (-0.1, 1, math.nan):
        with pytest.raises(InvalidValue, match="tolerance"):
            simulate(good, good, tolerance=bad)
    with pytest.raises(InvalidValue, match="look at the witness"):
        simulate(good, ([1, 0], [0, 1])).array()


@pytest.mark.parametrize("given", [Region([(0.25, 0.25)]), [0.5, 0.5], 5, None])
def test_what_is_no_pair_of_distributions_is_refused_with_a_way_out(given: object) -> None:
    with pytest.raises(InvalidValue, match=r"must be two lists of probabilities.*(region.distributions\(\)|such as)"):
        simulate(given, ([0.5, 0.5], [0.5, 0.5]))  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match=r"^second="):
        simulate(([0.5, 0.5], [0.5, 0.5]), given)  # type: ignore[arg-type]


def test_the_answer_is_a_sentence() -> None:
    region = Region([(0.25, 0.25)])
    assert str(simulate(region.distributions(), ([0.6, 0.4], [0.4, 0.6]))).startswith("The second can be made from")
    assert "cannot be made" in str(simulate(([0.6, 0.4], [0.4, 0.6]), region.distributions()))

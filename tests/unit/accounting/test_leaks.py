"""Leaks beside exact fractions: what they add up to, and what they leave of delta."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accounting.algorithm_choice import leak_of, target_of
from farthing.accounting.charges import Chunk, Leaks, collect_leaks
from strategies import leaks, target_deltas
from theorems.transcripts import many_digits


def leaks_of(deltas: list[float], counts: list[int] | None = None) -> Leaks:
    number = np.array(counts or [1] * len(deltas), dtype=np.int64)
    return collect_leaks([Chunk(np.zeros(len(deltas)), np.array(deltas, dtype=np.float64), number)])


def kept(deltas: list[float]) -> Fraction:
    product = Fraction(1)
    for delta in deltas:
        product *= 1 - Fraction(delta)
    return product


def log_of(value: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(value.numerator, value.denominator)).log()


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(leaks(), max_size=6))
def test_the_leak_holds_the_exact_fraction(deltas: list[float]) -> None:
    bounds = leak_of(leaks_of(deltas))
    exact = 1 - kept(deltas)
    assert Fraction(bounds.lower) <= exact <= Fraction(bounds.upper)
    assert bounds.width <= 1e-14 * bounds.upper + 1e-322


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(leaks(), max_size=5), target_deltas(0.9), st.sampled_from([0, 1, -1, 2]))
def test_the_target_holds_what_the_leaks_leave(deltas: list[float], delta: float, beside: int) -> None:
    """Also at a delta equal to the leak, and one unit in the last place beside it."""
    if beside != 2 and 0 < 1 - kept(deltas) < Fraction(9, 10):
        delta = float(1 - kept(deltas))
        delta = math.nextafter(delta, 1 if beside > 0 else 0) if beside else delta
    target = target_of(leaks_of(deltas), delta)
    room = 1 - (1 - Fraction(delta)) / kept(deltas)
    if room < 0:
        assert target.infeasible
    elif room == 0:
        assert target.low == target.high == -math.inf
    else:
        with many_digits(4000):
            assert target.low <= log_of(room) <= target.high
        assert target.high - target.low <= 1e-13 * (1 + abs(target.high))


def test_equal_leaks_are_joined_and_counted() -> None:
    joined = leaks_of([1e-9, 0.0, 2e-9, 1e-9], [3, 7, 1, 4])
    assert joined.deltas.tolist() == [1e-9, 2e-9] and joined.counts.tolist() == [7, 1]
    assert leak_of(joined).estimate == pytest.approx(9e-9)


def test_very_many_distinct_leaks_are_still_enclosed() -> None:
    deltas = np.random.default_rng(3).uniform(1e-12, 1e-8, 6000).tolist()
    bounds, target = leak_of(leaks_of(deltas)), target_of(leaks_of(deltas), 1e-3)
    with many_digits(400):
        remains = sum(((-flint.arb(delta)).log1p() for delta in deltas), flint.arb(0)).exp()
        assert bounds.lower <= 1 - remains <= bounds.upper
        assert target.low <= (1 - (1 - flint.arb(1e-3)) / remains).log() <= target.high
    assert bounds.width < 1e-12 * bounds.upper
    assert target_of(leaks_of(deltas), bounds.lower / 2).infeasible


def test_no_leaks_leave_everything() -> None:
    assert leak_of(leaks_of([])).upper == 0
    assert target_of(leaks_of([]), 0.0).high == -math.inf
    target = target_of(leaks_of([0.0]), 1e-300)
    assert target.low < math.log(1e-300) < target.high


def test_many_repetitions_of_a_leak_compose_by_their_power() -> None:
    bounds = leak_of(leaks_of([1e-12], [10**9]))
    assert bounds.estimate == pytest.approx(-math.expm1(10**9 * math.log1p(-1e-12)), rel=1e-14)
    assert target_of(leaks_of([1e-12], [10**9]), 9e-4).infeasible
    assert not target_of(leaks_of([1e-12], [10**9]), 1e-3).infeasible

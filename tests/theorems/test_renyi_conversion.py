"""Both conversions from Renyi to (epsilon, delta), beside pairs of distributions taken at their word."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accounting.theorems import epsilon_of_renyi, epsilon_of_renyi_improved
from farthing.errors import InvalidValue
from strategies import target_deltas

CONVERSIONS = [epsilon_of_renyi, epsilon_of_renyi_improved]
orders = st.one_of(st.floats(1.01, 60.0), st.floats(60.0, 1e6))


@pytest.mark.slow
@settings(max_examples=100)
@given(st.floats(1.05, 30.0), st.integers(1, 4), st.floats(-6, -0.01), st.integers(0, 2**32))
def test_both_conversions_hold_for_random_pairs(alpha: float, size: int, log_delta: float, seed: int) -> None:
    """Measure the divergence of a random pair, convert it, and measure the hockey-stick curve there."""
    rng = random.Random(seed)
    p, q = ([math.exp(rng.gauss(0, 2)) for _ in range(size + 1)] for _ in range(2))
    p, q = [x / math.fsum(p) for x in p], [x / math.fsum(q) for x in q]
    moment = math.fsum(b * (a / b) ** alpha for a, b in zip(p, q, strict=True))
    divergence, delta = max(0.0, math.log(moment) / (alpha - 1)) * (1 + 1e-12), 10.0**log_delta
    for convert in CONVERSIONS:
        epsilon = convert(alpha, divergence, delta)
        stick = math.fsum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p, q, strict=True))
        assert stick <= delta * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "delta"), [(2.0, 1e-3), (5.0, 1e-6), (20.0, 1e-9)])
def test_the_improved_conversion_is_nearly_reached_at_small_delta(alpha: float, delta: float) -> None:
    """Some pair of divergence 2, with one outcome that P likes better, needs 95 parts in 100 of the epsilon."""
    needed = 0.0
    target = epsilon_of_renyi_improved(alpha, 2.0, delta)
    for i in range(1, 4000):
        ratio = math.exp(i / 400)
        # P puts a on the outcome, Q puts a / ratio; choose a so that the divergence is 2.
        low, high = 0.0, 1.0
        for _ in range(60):
            a = (low + high) / 2
            rest_p, rest_q = 1 - a, 1 - a / ratio
            moment = (a / ratio) * ratio**alpha + (rest_q * (rest_p / rest_q) ** alpha if rest_p else 0.0)
            low, high = (a, high) if math.log(moment) / (alpha - 1) <= 2.0 else (low, a)
        if low > delta:
            needed = max(needed, math.log((low - delta) * ratio / low))
    assert 0 <= target - needed < 0.05 * target


@pytest.mark.slow
@given(orders, st.floats(0, 50), target_deltas(0.9))
def test_the_improved_conversion_is_never_worse(alpha: float, divergence: float, delta: float) -> None:
    assert epsilon_of_renyi_improved(alpha, divergence, delta) <= epsilon_of_renyi(alpha, divergence, delta)


@pytest.mark.slow
@pytest.mark.parametrize("convert", CONVERSIONS)
@settings(max_examples=40)
@given(orders, st.floats(0, 50), target_deltas(0.9))
def test_more_divergence_or_less_delta_never_costs_less(
    convert: object, alpha: float, divergence: float, delta: float
) -> None:
    assert callable(convert)
    base = convert(alpha, divergence, delta)
    assert convert(alpha, divergence + 0.01, delta) >= base
    assert convert(alpha, divergence, delta / 2) >= base


def test_the_conversions_at_the_edges() -> None:
    for convert in CONVERSIONS:
        assert convert(math.inf, 0.5, 1e-6) == convert(math.inf, 0.5, 0.0) == 0.5
        assert convert(2.0, 0.5, 0.0) == math.inf
        assert convert(1e15, 0.5, 1e-300) == pytest.approx(0.5, abs=1e-9)
    assert epsilon_of_renyi_improved(2.0, 0.0, 0.9) == 0  # the formula is negative here


@pytest.mark.parametrize("convert", CONVERSIONS)
@pytest.mark.parametrize("bad", [(1.0, 0.5, 0.1), (2.0, -0.5, 0.1), (2.0, math.nan, 0.1), (2.0, 0.5, 1.0)])
def test_values_outside_the_theorem_are_refused(convert: object, bad: tuple[float, float, float]) -> None:
    assert callable(convert)
    with pytest.raises(InvalidValue):
        convert(*bad)

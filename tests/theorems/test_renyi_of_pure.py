"""The Renyi divergence of pure mechanisms beside its definition."""

from __future__ import annotations

import math
import random

import flint
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accounting.theorems import renyi_of_pure_composition
from farthing.errors import InvalidValue
from strategies import epsilon_lists, epsilons
from theorems.transcripts import many_digits

orders = st.one_of(st.floats(1.001, 100.0), st.floats(100.0, 1e6))


def divergence_by_definition(p: list[float], q: list[float], alpha: float) -> float:
    """ln(sum q (p / q)^alpha) / (alpha - 1)."""
    return math.log(math.fsum(b * (a / b) ** alpha for a, b in zip(p, q, strict=True))) / (alpha - 1)


@pytest.mark.slow
@given(epsilons(high=2.0), st.floats(1.01, 40.0), st.integers(0, 2**32))
def test_no_pure_mechanism_diverges_more(epsilon: float, alpha: float, seed: int) -> None:
    """Random mechanisms with four outcomes whose ratios stay within exp(epsilon)."""
    rng = random.Random(seed)
    q = [rng.uniform(0.1, 1) for _ in range(4)]
    p = [x * math.exp(rng.uniform(-epsilon / 2, epsilon / 2)) for x in q]
    p, q = [x / math.fsum(p) for x in p], [x / math.fsum(q) for x in q]
    bound = renyi_of_pure_composition([epsilon], alpha)
    assert divergence_by_definition(p, q, alpha) <= bound + 1e-12
    assert divergence_by_definition(q, p, alpha) <= bound + 1e-12


@pytest.mark.slow
@settings(max_examples=80)
@given(epsilon_lists(max_size=5), orders)
def test_randomized_response_reaches_the_bound(charges: list[float], alpha: float) -> None:
    bound = renyi_of_pure_composition(charges, alpha)
    with many_digits(300):
        exact = flint.arb(0)
        for epsilon in charges:
            told = 1 / (1 + (-flint.arb(epsilon)).exp())
            order = flint.arb(alpha)
            moment = told**order * (1 - told) ** (1 - order) + (1 - told) ** order * told ** (1 - order)
            exact += moment.log() / (order - 1)
        assert flint.arb(bound) >= exact or sum(charges) == 0
        assert bound <= float(exact) * (1 + 1e-9) + 1e-13 / (alpha - 1)


@pytest.mark.slow
@settings(max_examples=40)
@given(epsilon_lists(max_size=5), epsilons(), orders)
def test_the_divergence_grows_with_charges_and_order(charges: list[float], more: float, alpha: float) -> None:
    base = renyi_of_pure_composition(charges, alpha)
    assert renyi_of_pure_composition([*charges, more], alpha) >= base
    assert renyi_of_pure_composition([e + more for e in charges], alpha) >= base
    assert renyi_of_pure_composition(charges, alpha * 1.5) >= base * (1 - 1e-10)
    assert renyi_of_pure_composition(charges, math.inf) >= base


def test_the_divergence_at_the_edges() -> None:
    assert renyi_of_pure_composition([], 2.0) == renyi_of_pure_composition([0.0], 1e6) == 0
    assert renyi_of_pure_composition([0.25, 0.5], math.inf) == 0.75
    assert renyi_of_pure_composition([1e300], 3.0) == 1e300
    assert renyi_of_pure_composition([1e-200], 3.0) > 0  # underflow goes up
    assert renyi_of_pure_composition([0.1], 2.0, counts=[5]) == pytest.approx(
        5 * renyi_of_pure_composition([0.1], 2.0), rel=1e-12
    )


@pytest.mark.parametrize("alpha", [1.0, 0.5, -1.0, math.nan, "2", True])
def test_an_order_of_one_or_less_is_refused(alpha: object) -> None:
    with pytest.raises(InvalidValue, match="alpha="):
        renyi_of_pure_composition([0.1], alpha)  # type: ignore[arg-type]


def test_a_leaky_charge_has_no_finite_divergence_and_is_refused() -> None:
    with pytest.raises(InvalidValue, match="must have no delta"):
        renyi_of_pure_composition([(0.1, 1e-9)], 2.0)

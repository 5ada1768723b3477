"""The optimum for equal charges beside the enumeration of transcripts and published numbers."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from farthing.accounting.theorems import kov_exact_homogeneous, kov_homogeneous_as_printed
from farthing.errors import InvalidValue
from farthing.numerics import Bounds
from strategies import epsilons, leaks, target_deltas
from theorems.transcripts import fails, holds, leak_exceeds


@pytest.mark.slow
@settings(max_examples=80)
@given(epsilons(), st.integers(1, 7), target_deltas(0.9), leaks())
@example(50.0, 7, 0.3, 0.0)
@example(300.0, 3, 0.3, 0.0)
@example(0.5, 4, 1 - 2.0**-53, 0.0)
@example(1e-9, 5, 1e-10, 0.0)
def test_the_optimum_is_enclosed_tightly(epsilon: float, k: int, delta_g: float, delta: float) -> None:
    bounds = kov_exact_homogeneous(epsilon, k, delta_g, delta)
    everyone = [epsilon] * k, [delta] * k
    if leak_exceeds(everyone[1], delta_g):
        assert bounds == Bounds(math.inf, math.inf)
        return
    assert holds(*everyone, bounds.upper, delta_g)
    assert bounds.width <= 4 * math.ulp(bounds.upper)
    if bounds.lower > 0:  # nothing below the lower end is private enough
        assert fails(*everyone, math.nextafter(bounds.lower, 0), delta_g)


@pytest.mark.parametrize(
    ("epsilon", "k", "delta_g", "optimum"),
    [
        (0.1, 100, 1e-6, 4.774568),
        (0.1, 100, 1e-15, 7.631074),
        (0.1, 100, 1e-20, 8.664980),
        (1.0, 100, 1e-6, 83.5307),
        (0.01, 10_000, 2e-15, 8.0728),
    ],
)
def test_the_optimum_is_where_others_found_it(epsilon: float, k: int, delta_g: float, optimum: float) -> None:
    """Computed with two other exact methods, 2026-11."""
    digits = len(str(optimum).split(".")[1])
    assert round(kov_exact_homogeneous(epsilon, k, delta_g).estimate, digits) == optimum


@pytest.mark.parametrize("delta_g", [1e-9, 1e-300, 2.0**-100, 0.3829249, 0.5, 0.999])
def test_a_million_charges_keep_all_digits(delta_g: float) -> None:
    bounds = kov_exact_homogeneous(0.001, 10**6, delta_g)
    assert bounds.width <= 4 * math.ulp(bounds.upper)


@pytest.mark.slow
@settings(max_examples=60)
@given(epsilons(), st.integers(1, 200), target_deltas(), leaks())
def test_more_and_larger_charges_never_cost_less(epsilon: float, k: int, delta_g: float, delta: float) -> None:
    base = kov_exact_homogeneous(epsilon, k, delta_g, delta).lower
    assert kov_exact_homogeneous(epsilon * 1.01, k, delta_g, delta).upper >= base
    assert kov_exact_homogeneous(epsilon, k + 1, delta_g, delta).upper >= base
    assert kov_exact_homogeneous(epsilon, k, delta_g / 2, delta).upper >= base
    assert kov_exact_homogeneous(epsilon, k, delta_g, delta * 2).upper >= base


def test_the_optimum_at_the_edges() -> None:
    free, none = Bounds(0.0, 0.0), Bounds(math.inf, math.inf)
    assert kov_exact_homogeneous(0.5, 0, 0.0) == kov_exact_homogeneous(0.0, 5, 1e-9) == free
    assert kov_exact_homogeneous(0.5, 2, 0.0) == Bounds(1.0, 1.0)
    assert kov_exact_homogeneous(1.0, 1, 0.1, 0.1) == Bounds(1.0, 1.0)
    assert kov_exact_homogeneous(0.0, 1, 0.1, 0.1) == free
    assert kov_exact_homogeneous(1.0, 2, 0.1, 0.1) == none
    assert kov_exact_homogeneous(0.1, 100, 0.9) == free
    assert kov_exact_homogeneous(1e300, 3, 0.3).upper >= 3e300 * (1 - 1e-15)
    with pytest.raises(InvalidValue, match="kov_homogeneous_bound"):
        kov_exact_homogeneous(0.1, 10**18, 1e-6)
    assert 0 < kov_exact_homogeneous(1e-300, 3, 1e-305).lower < 3e-300


def printed_list(epsilon: float, k: int, delta: float) -> list[tuple[float, float]]:
    """Theorem 3.3 as it stands in the paper: (epsilon_g, delta_g) for every i."""
    rows = []
    for i in range(k // 2 + 1):
        inner = sum(
            math.comb(k, j) * (math.exp((k - j) * epsilon) - math.exp((k - 2 * i + j) * epsilon)) for j in range(i)
        )
        rows.append(((k - 2 * i) * epsilon, 1 - (1 - delta) ** k * (1 - inner / (1 + math.exp(epsilon)) ** k)))
    return rows


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("k", [1, 2, 5, 8])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_kov_homogeneous_as_printed_is_the_least_of_the_printed_list(epsilon: float, k: int, delta: float) -> None:
    rows = printed_list(epsilon, k, delta)
    for delta_g in (0.1, 0.3, 0.7, 0.95):
        allowed = [point for point, total in rows if total <= delta_g]
        found = kov_homogeneous_as_printed(epsilon, k, delta_g, delta)
        assert found == pytest.approx(min(allowed, default=math.inf), abs=1e-12)
        best = kov_exact_homogeneous(epsilon, k, delta_g, delta)
        assert best.lower <= found
        assert found < best.upper + 2 * epsilon + 1e-9 or math.isinf(best.upper)
        if math.isfinite(found):
            assert holds([epsilon] * k, [delta] * k, found + 1e-12, delta_g)


def test_the_printed_list_at_its_ends() -> None:
    assert kov_homogeneous_as_printed(0.1, 0, 0.0) == 0 and kov_homogeneous_as_printed(0.0, 5, 0.0) == 0
    assert kov_homogeneous_as_printed(0.1, 3, 0.0) == 0.3  # no delta: sums, read as decimals
    assert kov_homogeneous_as_printed(0.1, 3, 1e-9, 1e-8) == math.inf
    assert kov_homogeneous_as_printed(1e-9, 100, 1e-300) <= 1e-7
    assert kov_homogeneous_as_printed(0.1, 1000, 1e-6) <= kov_exact_homogeneous(0.1, 1000, 1e-6).upper + 0.2
    with pytest.raises(InvalidValue, match="kov_exact_homogeneous"):
        kov_homogeneous_as_printed(0.1, 10**7, 1e-6)

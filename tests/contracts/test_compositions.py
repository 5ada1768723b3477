"""What every composition keeps to, whichever algorithm answers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farthing as ft
from farthing.accounting import theorems
from farthing.accounting.filters import BasicFilter, FullyAdaptiveFilter, RenyiFilter
from farthing.privacy import (
    ApproxDP,
    Composed,
    DiscreteLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)

REALS = np.random.default_rng(11).uniform(0.01, 0.6, 400)
LISTS = {
    "atoms": REALS[:12],
    "lattice": np.round(REALS[:120], 2),
    "contour": REALS[:200],
    "homogeneous": np.full(1000, 0.03),
}
DELTAS = [0.1, 1e-6, 1e-30, 2.0**-100]


def overlap(a: ft.Bounds, b: ft.Bounds, slack: float = 0.0) -> bool:
    return a.lower <= b.upper + slack and b.lower <= a.upper + slack


@pytest.mark.slow
@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("delta", DELTAS)
def test_order_does_not_matter(name: str, delta: float) -> None:
    values = LISTS[name]
    shuffled = np.random.default_rng(1).permutation(values)
    assert overlap(ft.compose(values).epsilon_at(delta), ft.compose(shuffled).epsilon_at(delta))


@pytest.mark.slow
@pytest.mark.parametrize("delta", DELTAS)
def test_k_fold_equals_k_times_once(delta: float) -> None:
    for event in (
        0.2,
        RandomizedResponse(0.2),
        LaplaceNoise(3.0),
        GaussianNoise(5.0),
        DiscreteLaplaceNoise(4.0),
    ):
        folded = ft.compose([event], counts=[7]).epsilon_at(delta)
        listed = ft.compose([event] * 7).epsilon_at(delta)
        one_by_one = ft.compose([event])
        for _ in range(6):
            one_by_one = one_by_one.plus([event])
        assert overlap(folded, listed) and overlap(folded, one_by_one.epsilon_at(delta))
        assert one_by_one.k == 7


@pytest.mark.slow
@pytest.mark.parametrize("name", LISTS)
def test_adding_never_lowers(name: str) -> None:
    composition = ft.compose(LISTS[name])
    for delta in (0.01, 1e-9):
        before = composition.epsilon_at(delta)
        for more in ([0.0], [0.001], [0.7], [(0.1, 1e-12)], [GaussianNoise(20.0)]):
            after = composition.plus(more).epsilon_at(delta)
            assert after.upper >= before.lower
            assert after.estimate >= before.estimate - 1e-9


@pytest.mark.slow
def test_merge_is_the_same_as_composing_at_once() -> None:
    left, right = ft.compose(REALS[:70]), ft.compose(REALS[70:150])
    whole = ft.compose(REALS[:150]).epsilon_at(1e-9)
    assert overlap(left.merge(right).epsilon_at(1e-9), whole)
    assert overlap(right.merge(left).epsilon_at(1e-9), whole)
    quick = left.epsilon_at(1e-9, proof=False)  # a query in between must not leave anything stale
    assert quick.proven is False
    assert overlap(left.plus(REALS[70:150]).epsilon_at(1e-9, proof=False), whole, 1e-9)


@pytest.mark.parametrize("size", [5000, 20000])
def test_a_sketch_answers_as_the_epsilons_do(size: int) -> None:
    values = np.random.default_rng(2).uniform(0.001, 0.05, size)
    composition = ft.compose(values)
    proven = composition.epsilon_at(1e-9)
    assert abs(composition.epsilon_at(1e-9, proof=False).estimate - proven.estimate) < 1e-9
    more = composition.plus([0.033, 0.4])
    assert abs(more.epsilon_at(1e-9, proof=False).estimate - more.epsilon_at(1e-9).estimate) < 1e-9


@pytest.mark.slow
@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(0.001, 2.0), min_size=1, max_size=10),
    st.lists(st.sampled_from([0.0, 1e-9, 1e-4]), min_size=10, max_size=10),
    st.sampled_from([0.05, 1e-3, 1e-6]),
)
def test_optimum_is_at_most_every_theorem(epsilons: list[float], leaks: list[float], delta: float) -> None:
    deltas = leaks[: len(epsilons)]
    optimum = ft.compose(epsilons, deltas).epsilon_at(delta)
    rows = theorems.table(np.array(epsilons), np.array(deltas), np.ones(len(epsilons), dtype=int), delta)
    for row in rows:
        if row.applies:
            assert row.epsilon >= optimum.lower, row.name


@pytest.mark.parametrize("count", [1, 10, 100])
def test_own_curve_is_at_most_the_class(count: int) -> None:
    laplace = ft.compose([LaplaceNoise(5.0)], counts=[count]).epsilon_at(1e-6)
    worst = ft.compose([0.2], counts=[count]).epsilon_at(1e-6)
    assert laplace.lower <= worst.upper
    gaussian = ft.compose([GaussianNoise(20.0)], counts=[count]).epsilon_at(1e-6)
    alone = ft.compose([GaussianNoise(20.0)]).epsilon_at(1e-9).upper
    pessimist = ft.compose([(alone, 1e-9)], counts=[count]).epsilon_at(1e-6)
    assert gaussian.lower <= pessimist.upper


@pytest.mark.slow
@pytest.mark.parametrize("name", LISTS)
def test_delta_at_undoes_epsilon_at(name: str) -> None:
    composition = ft.compose(LISTS[name])
    for delta in (0.01, 1e-8, 1e-25):
        epsilon = composition.epsilon_at(delta)
        if epsilon.lower > 0:
            assert composition.delta_at(epsilon.upper).lower <= delta <= composition.delta_at(epsilon.lower).upper


@pytest.mark.slow
@pytest.mark.parametrize(
    "charges", [[1.0], [(0.4, 0.1)] * 3, [0.1, 0.3, 0.77], [GaussianNoise(1.0)], [LaplaceNoise(1.0)]]
)
def test_tradeoff_is_convex_decreasing_and_its_region_symmetric(charges: list[object]) -> None:
    composition = ft.compose(charges)
    curve, region = composition.tradeoff(), composition.region()
    grid = np.linspace(0, 1, 101)
    values = curve(grid)
    assert np.all(np.diff(values) <= 1e-12) and np.all(np.diff(values, 2) >= -1e-9)
    assert np.all(values <= 1 - grid + 1e-12) and np.all(values >= 0)
    for a, b in zip(curve.alpha, curve.beta, strict=True):
        assert abs(curve(min(1.0, float(b))) - float(a)) < 1e-6 or b == curve.beta[-1]
    assert (0.5, 0.5) in region and (0.0, 0.0) not in region


def test_region_of_one_response_is_the_known_polygon() -> None:
    region = ft.compose([(0.4, 0.1)]).region()
    corner = (1 - 0.1) / (1 + math.exp(0.4))
    assert np.min(np.abs(region.vertices - corner).max(axis=1)) < 1e-9


def test_renyi_divergences_add_and_grow_with_the_order() -> None:
    one, two = ft.compose([0.3, LaplaceNoise(2.0)]), ft.compose([GaussianNoise(3.0)])
    both = one.merge(two)
    previous = 0.0
    for alpha in (1.1, 2.0, 5.0, 30.0):
        total = both.renyi_at(alpha)
        assert abs(total.estimate - one.renyi_at(alpha).estimate - two.renyi_at(alpha).estimate) < 1e-12
        assert total.estimate >= previous
        previous = total.estimate
    assert math.isinf(ft.compose([(0.1, 1e-9)]).renyi_at(2.0).upper)


def test_sampling_lies_between_nothing_and_the_whole() -> None:
    whole = ft.compose([LaplaceNoise(1.0)]).epsilon_at(1e-6)
    half = ft.compose([Sampled(LaplaceNoise(1.0), 0.5)]).epsilon_at(1e-6)
    assert 0 < half.upper < whole.lower
    assert ft.compose([Sampled(LaplaceNoise(1.0), 0.0)]).epsilon_at(1e-6).upper == 0.0
    assert overlap(ft.compose([Sampled(LaplaceNoise(1.0), 1.0)]).epsilon_at(1e-6), whole)


def test_a_composition_keeps_what_it_was_given() -> None:
    values = REALS[:30].copy()
    composition = ft.compose(values)
    before = composition.epsilon_at(1e-6)
    values[:] = 5.0
    assert composition.plus([]).epsilon_at(1e-6) == before
    with pytest.raises(AttributeError):
        composition.loss = None  # type: ignore[misc]


def test_a_composed_event_costs_what_its_parts_cost() -> None:
    parts = ((ApproxDP(0.3, 1e-8), 3), (GaussianNoise(5.0), 2), (RandomizedResponse(0.2), 4))
    whole = ft.compose([Composed(parts), Composed(parts)])
    one_by_one = ft.compose([event for event, count in parts for _ in range(2 * count)])
    assert whole.k == one_by_one.k == 18
    assert whole.epsilon_at(1e-6) == one_by_one.epsilon_at(1e-6)


def test_filters_price_a_composed_event_as_its_parts() -> None:
    parts = ((ApproxDP(0.3, 1e-8), 3), (RandomizedResponse(0.2), 4))
    for make in (BasicFilter, FullyAdaptiveFilter, RenyiFilter):
        whole = make(epsilon=20.0, delta=1e-3).charge(Composed(parts), 2)
        each = make(epsilon=20.0, delta=1e-3)
        for event, count in parts:
            each = each.charge(event, 2 * count)
        assert whole.spent == each.spent

"""Every small composition through the public door, with leaks and counts, beside the enumeration of transcripts."""

from __future__ import annotations

import math

import flint
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from farthing import Bounds, compose
from farthing.accounting.algorithm_choice import half_sizes
from farthing.accounting.algorithms.atoms import Atoms
from farthing.accounting.loss_transforms import Transform
from strategies import epsilons, leaks, target_deltas
from theorems.enumeration import Enumeration
from theorems.transcripts import delta_of_transcripts, many_digits

Charge = tuple[float, float, int]
NONE = np.zeros(0)


def charges(most: int, values: st.SearchStrategy[float] | None = None) -> st.SearchStrategy[list[Charge]]:
    """(epsilon, delta, count), at most `most` charges in all; few of the examples have nearly as many."""
    values = epsilons() if values is None else values
    single = st.tuples(values, leaks(), st.just(1))
    repeated = st.tuples(values, leaks(), st.integers(0, 5))
    sizes = st.sampled_from([most, *[min(most, 8)] * 5, *[min(most, 11)] * 4])
    either = st.one_of(single, st.one_of(single, repeated))
    return sizes.flatmap(lambda size: st.lists(either, max_size=size).map(lambda found: _cut(found, size)))


def _cut(found: list[Charge], most: int) -> list[Charge]:
    kept, total = [], 0
    for e, d, n in found:
        n = min(n, most - total)
        kept.append((e, d, n))
        total += n
    return kept


def wide_epsilons() -> st.SearchStrategy[float]:
    """Beyond the promise: zero, tiny, large, and almost on a lattice."""
    near = st.sampled_from([0.1, 0.1 * (1 + 1e-13), math.nextafter(0.1, 1), 0.2, 0.3])
    fine = st.integers(0, 9).map(lambda j: 0.1 + 1e-9 * j)
    sizes = st.sampled_from([0.0, 1e-12, 3e-12, 1e-6, 1e-3, 1.0, 30.0])
    return st.one_of(near, fine, sizes, st.floats(-12.0, 1.8).map(lambda x: 10.0**x))


deltas_g = st.one_of(target_deltas(), st.floats(-16.0, math.log10(0.5)).map(lambda x: 10.0**x))


def ball_in(truth: object, bounds: Bounds) -> bool:
    """Whether the truth, a ball some forty digits small, lies within the bounds."""
    with many_digits(4000):
        return not (truth < flint.arb(bounds.lower) or truth > flint.arb(bounds.upper))


def check(found: list[Charge], delta_g: float, place: float, *, width: float = 1e-9) -> None:
    """Truth within the bounds at `delta_g`, and at `place` times the largest loss; bounds narrow, estimates right."""
    listed = [(e, d) for e, d, n in found for _ in range(n)]
    truth = Enumeration.of([e for e, _ in listed], [d for _, d in listed], min(delta_g, 1e-20))
    composition = compose([e for e, _, _ in found], [d for _, d, _ in found], [n for _, _, n in found])
    assert composition.k == len(listed)

    exact, bounds = truth.epsilon_at(delta_g), composition.epsilon_at(delta_g)
    quick = composition.epsilon_at(delta_g, proof=False)
    assert bounds.proven and not quick.proven
    if exact is None:
        assert bounds == Bounds(math.inf, math.inf)
        assert quick.estimate == math.inf
    else:
        middle = float(exact.mid())
        assert ball_in(exact, bounds), f"{middle!r} is not within {bounds!r}"
        assert bounds.width <= width * max(1, middle)
        assert abs(bounds.estimate - middle) <= 0.1 * width * max(1, middle)
        assert abs(quick.estimate - middle) <= 0.1 * width * max(1, middle)
        assert quick.lower <= middle * (1 + 1e-15) and middle * (1 - 1e-15) <= quick.upper

    x = place * math.fsum(e for e, _ in listed)
    value, found_delta = truth.delta_at(x), composition.delta_at(x)
    assert ball_in(value, found_delta), f"delta_at({x!r}): {float(value.mid())!r} is not within {found_delta!r}"
    assert found_delta.width <= width


@pytest.mark.slow
@settings(max_examples=600)  # a fault in one case of 120 is missed by one run in 150
@given(charges(15), deltas_g, st.floats(0.0, 1.0))
@example([(0.1, 0.0, 15)], 1e-6, 0.5)
@example([(5.0, 0.1, 1), (0.001, 1e-300, 14)], 0.1, 0.0)  # the leak is just above delta_g
@example([(1.0, 0.1, 1)], 0.1, 1.0)  # the leak is exactly delta_g
@example([(1.0, 0.05, 2)], 1 - 0.95 * 0.95, 1.0)  # and here up to one rounding
@example([(0.1, 0.0, 3), (0.2, 0.0, 3), (0.4, 0.0, 2)], 1e-3, 0.5)  # many equal sums
@example([(0.7, 0.0, 1)], 1e-300, 1.0)
@example([(1.953429795232667, 0.0, 1), (4.506, 0.0, 1), (0.11703355729466558, 0.0, 1), (2.441, 0.0, 1)], 0.1, 0.0)
@example([(0.1, 0.0, 1), (0.2, 0.0, 1), (0.10000000000001, 0.0, 1), (0.10000000000000002, 0.0, 3)], 1e-6, 0.0)
def test_every_small_composition_lies_within_its_bounds(found: list[Charge], delta_g: float, place: float) -> None:
    check(found, delta_g, place)


@pytest.mark.slow
@settings(max_examples=100)
@given(charges(8, wide_epsilons()), deltas_g, st.floats(0.0, 1.0))
@example([(0.1 + 1e-9 * j, 0.0, 1) for j in range(8)], 1e-6, 0.5)
@example([(0.1, 0.0, 4), (0.1 * (1 + 1e-13), 0.0, 4)], 1e-3, 0.25)
@example([(1e-12, 0.0, 8)], 1e-13, 0.5)
@example([(1e-12, 0.0, 1), (5.0, 0.0, 1)], 0.3, 0.5)
def test_tiny_large_and_nearly_equal_epsilons_lie_within_their_bounds(
    found: list[Charge], delta_g: float, place: float
) -> None:
    check(found, delta_g, place)


@pytest.mark.parametrize(
    "values",
    [[300.0], [300.0, 0.1, 0.1], [1e4, 0.1, 1.0], [1e4] * 4, [5e4, 1.0, 2.0], [400.0, 0.25, 1e-9]],
    ids=lambda values: f"{values[0]:g} and {len(values) - 1} more",
)
def test_huge_epsilons_lie_within_their_bounds(values: list[float]) -> None:
    truth = Enumeration.of(values)
    for delta_g in (0.9, 0.4, 1e-3, 1e-30, 1e-300):
        bounds = compose(values).epsilon_at(delta_g)
        assert ball_in(truth.epsilon_at(delta_g), bounds)
        assert bounds.width <= 1e-9 + 2.0**-44 * sum(values)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.tuples(epsilons(), leaks()), max_size=6), st.floats(0.0, 1.2))
def test_the_twin_agrees_with_the_definition_of_privacy(pairs: list[tuple[float, float]], place: float) -> None:
    values, leaked = [e for e, _ in pairs], [d for _, d in pairs]
    x = place * sum(values)
    with many_digits():
        gap = delta_of_transcripts(values, leaked, x) - Enumeration.of(values, leaked).delta_at(x)
        assert abs(gap) < 1e-310


@pytest.mark.slow
@settings(max_examples=100)
@given(st.dictionaries(wide_epsilons(), st.integers(1, 4), min_size=1, max_size=3), st.floats(0.0, 1.0))
def test_atoms_bound_the_curve_from_both_sides(counts: dict[float, int], place: float) -> None:
    counts = {e: n for e, n in counts.items() if e > 0}
    assume(counts)
    transform = Transform(np.array(sorted(counts)), np.array([float(counts[e]) for e in sorted(counts)]), NONE, NONE)
    assume(half_sizes(transform) is not None)
    x = place * transform.top()[0]
    curve = Atoms.of(transform).log_delta(x)
    with many_digits(4000):
        exact = Enumeration.of([e for e, n in counts.items() for _ in range(n)]).curve_at(x)
        if exact > 0:
            assert curve.low <= exact.log() <= curve.high
        else:
            assert curve.low == -math.inf


def test_small_compositions_at_the_edges() -> None:
    assert compose([]).epsilon_at(0.0) == compose([]).epsilon_at(0.5) == Bounds(0.0, 0.0)
    assert compose([0.0] * 5).epsilon_at(0.0) == Bounds(0.0, 0.0)
    assert compose([0.0] * 5).delta_at(0.0) == Bounds(0.0, 0.0)
    assert 3.0 in compose([1.0, 2.0]).epsilon_at(0.0)
    assert compose([1.0, 2.0]).epsilon_at(0.9999) == Bounds(0.0, 0.0)
    assert compose([1.0, 2.0]).delta_at(3.1) == Bounds(0.0, 0.0)
    assert compose([(1.0, 0.25)]).epsilon_at(0.2) == Bounds(math.inf, math.inf)


@pytest.mark.parametrize("epsilon", [0.001, 0.5, 5.0])
def test_one_charge_has_a_closed_form(epsilon: float) -> None:
    """delta = (e^epsilon - e^x) / (1 + e^epsilon)."""
    for x in (0.0, epsilon / 2, epsilon * 0.999):
        delta = (math.exp(epsilon) - math.exp(x)) / (1 + math.exp(epsilon))
        assert compose([epsilon]).delta_at(x).estimate == pytest.approx(delta, rel=1e-12)
        assert compose([epsilon]).epsilon_at(delta).estimate == pytest.approx(x, abs=1e-12)

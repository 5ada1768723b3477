"""Regions beside every test that there is, and their distance beside a linear programme."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing import compose
from farthing.accounting import Region, TradeoffFunction
from farthing.accounting.finite_distributions import odds_above
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

RATES = [Fraction(i, 12) for i in range(13)]


def region_of(pair: Pair) -> Region:
    return Region.from_distributions(*pair)


@pytest.mark.slow
@settings(max_examples=20)
@given(finite_pairs())
def test_from_distributions_has_the_lower_boundary_of_all_tests_and_coins(pair: Pair) -> None:
    region = region_of(pair)
    for alpha in RATES:
        assert region.missed_at(alpha) == least_missed(pair, alpha)
    for a, b, _ in all_tests(pair):
        assert (a, b) in region and (1 - a, 1 - b) in region
    slopes = [(d - b) / (c - a) for (a, b), (c, d) in zip(region.corners, region.corners[1:], strict=False)]
    assert slopes == sorted(set(slopes)) and region.corners[-1] == (1, 0)


@pytest.mark.slow
@settings(max_examples=20)
@given(finite_pairs(), finite_pairs())
def test_containment_intersection_and_hull_are_those_of_the_boundaries(one: Pair, two: Pair) -> None:
    first, second = region_of(one), region_of(two)
    corners = [a for a, _ in first.corners + second.corners]
    inside = all(first.missed_at(a) >= second.missed_at(a) for a in corners)
    assert (first <= second) == inside == (second >= first)
    assert (first < second) == (inside and first != second) == (second > first)
    both, either = first & second, first | second
    assert both <= first <= either and both <= second <= either
    for alpha in RATES:
        assert both.missed_at(alpha) == max(first.missed_at(alpha), second.missed_at(alpha))
    for corner in either.corners:  # no smaller one: every corner is needed
        assert corner in first.corners + second.corners


@pytest.mark.slow
@settings(max_examples=20)
@given(finite_pairs(3), finite_pairs(3), st.fractions(0, 1, max_denominator=7))
def test_a_mixture_is_the_pair_whose_outcomes_name_the_side_of_the_coin(one: Pair, two: Pair, share: Fraction) -> None:
    shown = tuple(
        [share * p for p in left] + [(1 - share) * p for p in right] for left, right in zip(one, two, strict=True)
    )
    assert Region.mixture([region_of(one), region_of(two)], [share, 1 - share]) == Region.from_distributions(*shown)
    assert Region.mixture([region_of(one), region_of(two)], [share, 1 - share]) <= region_of(one) | region_of(two)


@pytest.mark.slow
@settings(max_examples=20)
@given(finite_pairs(), st.data())
def test_processing_never_enlarges_a_region(pair: Pair, data: st.DataObject) -> None:
    matrix = data.draw(stochastic_matrices(len(pair[0])))
    assert region_of(processed(pair, matrix)) <= region_of(pair)


@pytest.mark.slow
@settings(max_examples=20)
@given(finite_pairs(), st.sampled_from([0.0, 0.1, 0.5, math.log(2), 2.0]), st.sampled_from([0.0, 0.1, 0.3]))
def test_delta_at_and_epsilon_at_are_those_of_the_worst_set(pair: Pair, epsilon: float, delta: float) -> None:
    """By the definition of privacy, over all sets of outcomes and both orders."""
    sums = [(float(a), float(1 - b)) for a, b, _ in all_tests(pair)]
    both = sums + [(q, p) for p, q in sums]
    worst = max(0.0, max(q - math.exp(epsilon) * p for p, q in both))
    found = region_of(pair).delta_at(epsilon)
    assert found.lower - 1e-12 <= worst <= found.upper + 1e-12 and found.width < 1e-15
    least = max(
        (math.log(max(1.0, (q - delta) / p)) if p else math.inf if q > delta + 1e-12 else 0.0 for p, q in both),
    )
    bounds = region_of(pair).epsilon_at(delta)
    if math.isinf(least):
        assert bounds.lower == math.inf
    else:
        assert bounds.lower - 1e-9 <= least <= bounds.upper + 1e-9 and bounds.width < 1e-14


@pytest.mark.slow
@settings(max_examples=20)
@given(finite_pairs(), finite_pairs())
def test_the_distance_is_the_larger_deficiency_of_a_linear_programme(one: Pair, two: Pair) -> None:
    first, second = region_of(one), region_of(two)
    distance = first.distance(second)
    programme = max(least_deficiency(one, two), least_deficiency(two, one))
    assert float(distance) == pytest.approx(programme, abs=1e-7)
    assert distance == second.distance(first) and (distance == 0) == (first == second)


@pytest.mark.slow
@settings(max_examples=20)
@given(finite_pairs())
def test_distributions_have_the_region_and_no_more_outcomes(pair: Pair) -> None:
    P, Q = region_of(pair).distributions()
    assert sum(P) == sum(Q) == 1 and len(P) <= len(pair[0])
    assert Region.from_distributions(P, Q) == region_of(pair)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.5, 0.0), (1.0, 0.1), (0.0, 0.3), (30.0, 1e-9)])
def test_from_guarantee_has_the_corners_of_the_definition(epsilon: float, delta: float) -> None:
    region = Region.from_guarantee(epsilon, delta)
    corner = (1 - delta) / (1 + math.exp(epsilon))
    for point in ((0, 1 - delta), (corner, corner), (1 - delta, 0)):
        assert min(max(abs(float(a) - point[0]), abs(float(b) - point[1])) for a, b in region.corners) < 1e-14 or (
            epsilon == 0  # the corner in the middle lies on the line between the others
        )
    found = region.delta_at(epsilon)
    assert found.lower - 1e-15 <= delta <= found.upper and found.upper == pytest.approx(delta, abs=1e-14)
    assert region.epsilon_at(delta).upper >= epsilon and region.epsilon_at(delta).lower <= epsilon + 1e-14


def test_a_guarantee_grows_with_epsilon_and_with_delta_and_holds_its_composition() -> None:
    assert Region() == Region.from_guarantee(0) < Region.from_guarantee(0.1) < Region.from_guarantee(0.1, 0.01)
    assert Region.from_guarantee(0.1, 0.01) < Region.from_guarantee(0.2, 0.01) < Region([(0, 0)])
    for charges in ([0.1] * 4, [(0.3, 0.01)] * 3, [0.2, 0.7]):
        composed = compose(charges)
        for delta in (0.05, 0.2):
            exact = Region.from_guarantee(composed.epsilon_at(delta).upper, delta)
            assert composed.region().delta_at(composed.epsilon_at(delta).upper).lower <= delta + 1e-12
            assert not exact <= composed.region()  # one pair says less than the whole curve


def test_two_guarantees_composed_are_the_product_of_their_pairs() -> None:
    one, two = Region.from_guarantee(0.4, 0.1).distributions(), Region.from_guarantee(0.7).distributions()
    P, Q = ([p * r for p in a for r in b] for a, b in zip(one, two, strict=True))
    product, composed = Region.from_distributions(P, Q), compose([(0.4, 0.1), 0.7]).region()
    assert float(product.distance(composed)) < 1e-12


def test_from_tradeoff_holds_its_points_and_the_curve_of_a_region_lies_below_it() -> None:
    region = Region.from_distributions(["1/3", "1/3", "1/3"], ["1/7", "2/7", "4/7"])
    curve = region.tradeoff()
    again = Region.from_tradeoff(curve)
    assert again >= region and float(again.distance(region)) < 1e-15
    for alpha in np.linspace(0, 1, 50).tolist():
        assert curve(alpha) <= float(region.missed_at(Fraction(alpha))) + 1e-16
    bent = TradeoffFunction(np.array([0.0, 0.5, 1.0]), np.array([0.5, 0.5, 0.0]))  # not convex: the hull is meant
    assert Region.from_tradeoff(bent) == Region([(0, 0.5)])


def test_odds_are_rounded_up_by_less_than_their_grid() -> None:
    for epsilon in (1e-12, 0.1, 1.0, math.log(3), 20.0, 700.0, 5000.0):
        odds = odds_above(epsilon)
        slack = math.log2(odds.numerator) - math.log2(odds.denominator) - epsilon / math.log(2)
        assert abs(slack) < 1e-11 and odds.numerator.bit_length() <= 5000 / math.log(2) + 60
    assert [odds_above(math.log(n)) for n in (1, 2, 4, 8)] == [1, 2, 4, 8]
    assert 0 < odds_above(math.log(3)) - 3 <= Fraction(3, 2**50)
    assert odds_above(1.0) >= Fraction(math.e) and odds_above(1.0) <= Fraction(math.e) * (1 + Fraction(1, 2**49))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Region.from_distributions([0.5, 0.4], [0.5, 0.5]), "must add up to 1"),
        (lambda: Region.from_distributions([], []), "must add up to 1"),
        (lambda: Region.from_distributions([1.5, -0.5], [0.5, 0.5]), "probability >= 0"),
        (lambda: Region.from_distributions([1.0], [0.5, 0.5]), "as many outcomes"),
        (lambda: Region.from_distributions([math.nan, 1], [0.5, 0.5]), "finite number"),
        (lambda: Region.from_distributions([True], [1]), "finite number"),
        (lambda: Region.from_distributions(["half", "half"], [0.5, 0.5]), "finite number"),
        (lambda: Region([(0.5, 1.5)]), "between 0 and 1"),
        (lambda: Region().missed_at(-0.1), "between 0 and 1"),
        (lambda: Region.mixture([Region()], [0.5, 0.5]), "one for each"),
        (lambda: Region.from_guarantee(-1.0), ">= 0"),
        (lambda: Region.from_guarantee(1e4), "at most 5000"),
        (lambda: Region.from_guarantee(1.0, 1.0), "< 1"),
        (lambda: Region().delta_at(math.inf), "finite"),
        (lambda: Region().epsilon_at(math.nan), "must be"),
    ],
)
def test_what_is_no_region_is_refused(make: object, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        make()  # type: ignore[operator]


def test_sums_within_a_rounding_error_are_made_one() -> None:
    thirds = [0.333333333333, 0.333333333333, 0.333333333333]
    assert Region.from_distributions(thirds, thirds) == Region()
    assert Region.from_distributions([0.1] * 10, [0.1] * 10) == Region()

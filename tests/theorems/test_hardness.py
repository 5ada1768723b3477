"""Counting partitions by calling optimal composition, beside counting them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from farthing.accounting.theorems import (
    count_equal_product_partitions,
    exact_optimal_composition,
    mv_enumeration,
)
from farthing.errors import InvalidValue
from theorems.transcripts import delta_of_transcripts

small_sets = st.lists(st.sampled_from([1, 2, 3, 4, 5, 6, 8, 9, 12, 27]), min_size=1, max_size=7)


def partitions_by_hand(integers: list[int]) -> int:
    """Walk over all subsets; each partition is met twice."""
    found = 0
    for chosen in itertools.product((True, False), repeat=len(integers)):
        left = math.prod(w for w, taken in zip(integers, chosen, strict=True) if taken)
        found += left * left == math.prod(integers)
    return found // 2


@pytest.mark.slow
@settings(max_examples=80)
@given(small_sets)
@example([1])
@example([1, 1, 1])
@example([7])
@example([2, 3, 6, 6, 3, 2])
def test_the_oracle_counts_what_a_walk_over_all_subsets_counts(integers: list[int]) -> None:
    assert count_equal_product_partitions(integers).partitions == partitions_by_hand(integers)


@pytest.mark.parametrize(
    ("integers", "partitions"),
    [
        ([2, 3, 5, 7], 0),  # W is not a square
        ([2, 2, 9], 0),  # W is a square, yet nothing fits
        ([4, 9, 36], 1),
        ([2] * 8, 35),  # C(8, 4) / 2
        ([2] * 4 + [3] * 4, 18),  # C(4, 2)^2 / 2
        ([10**9 + 7, 10**9 + 7, 2, 2], 2),
    ],
)
def test_known_counts(integers: list[int], partitions: int) -> None:
    assert count_equal_product_partitions(integers).partitions == partitions


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=5),
    st.fractions(0, Fraction(99, 100), max_denominator=1000),
)
def test_the_exact_oracle_is_the_least_epsilon(integers: list[int], delta: Fraction) -> None:
    """At its answer the sum over subsets meets delta; below it, not."""
    y = exact_optimal_composition(tuple(integers), delta)

    def delta_at(ratio: Fraction) -> Fraction:
        whole, everything = math.prod(integers), math.prod(1 + w for w in integers)
        total = Fraction(0)
        for chosen in itertools.product((True, False), repeat=len(integers)):
            left = math.prod(w for w, taken in zip(integers, chosen, strict=True) if taken)
            total += max(Fraction(0), left - ratio * Fraction(whole, left))
        return total / everything

    assert y >= 1 and delta_at(y) <= delta
    if y > 1:
        assert delta_at(y) == delta
        assert delta_at(y - Fraction(1, 10**9)) > delta


@pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 1000)])
def test_the_exact_oracle_agrees_with_the_floating_one(delta: Fraction) -> None:
    y = exact_optimal_composition((2, 3, 5), delta)
    bounds = mv_enumeration([math.log(w) for w in (2, 3, 5)], float(delta))
    assert math.log(y) == pytest.approx(bounds.estimate, abs=1e-12)
    assert float(delta_of_transcripts([math.log(2)], [0.0], 0.0)) == pytest.approx(1 / 3)


@pytest.mark.parametrize("integers", [[2, 3, 6], [2, 2], [2, 4, 8], [2, 3, 5], [3, 3, 2, 2]])
def test_an_accountant_in_floats_can_be_the_oracle_for_tiny_sets(integers: list[int]) -> None:
    def oracle(weights: tuple[int, ...], delta: Fraction) -> Fraction:
        charges = [math.log(w) for w in weights]
        return Fraction(math.exp(mv_enumeration(charges, float(delta)).estimate))

    counted = count_equal_product_partitions(integers, oracle)
    assert counted.partitions == partitions_by_hand(integers)


def test_an_oracle_without_enough_digits_is_caught() -> None:
    """An estimate good to three digits makes a count that is no whole number."""

    def rounded_oracle(weights: tuple[int, ...], delta: Fraction) -> Fraction:
        return Fraction(round(float(exact_optimal_composition(weights, delta)), 3))

    with pytest.raises(InvalidValue, match="raise its precision"):
        count_equal_product_partitions([6, 10, 15, 4], rounded_oracle)


def test_the_work_doubles_with_every_integer_while_questions_stay_few() -> None:
    counts = [count_equal_product_partitions([2, 3] * half) for half in (1, 2, 3, 4, 5)]
    assert [c.subsets for c in counts] == [4, 16, 64, 256, 1024]
    for smaller, larger in itertools.pairwise(counts):
        assert larger.oracle_calls - smaller.oracle_calls <= 4  # log2 of G grows by log2(12) < 4
        assert larger.bits <= smaller.bits + 16


@pytest.mark.parametrize("integers", [[], [0], [-2, 2], [1.5], [True], ["2"], None, 6])
def test_what_is_not_a_positive_integer_is_refused(integers: object) -> None:
    with pytest.raises(InvalidValue, match="integers"):
        count_equal_product_partitions(integers)  # type: ignore[arg-type]

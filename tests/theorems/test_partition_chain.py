"""Every link of the hardness chain beside a walk over all subsets."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from farthing import compose
from farthing.accounting.theorems import (
    count_t_partitions,
    delta_witnesses,
    exact_optimal_composition,
    optimal_composition_by_counting,
    root_below,
    sum_partition,
)
from farthing.errors import InvalidValue

small_sets = st.lists(st.sampled_from([1, 2, 3, 4, 5, 6, 9]), min_size=1, max_size=4)


def splits(integers: list[int]) -> list[tuple[int, int]]:
    """The products of all subsets and of what they leave."""
    return [
        (
            math.prod(w for w, taken in zip(integers, chosen, strict=True) if taken),
            math.prod(w for w, taken in zip(integers, chosen, strict=True) if not taken),
        )
        for chosen in product((False, True), repeat=len(integers))
    ]


@pytest.mark.slow
@settings(max_examples=20)
@given(small_sets, st.integers(0, 9), st.sampled_from([1, 2, 7]))
@example([2, 3, 6], 0, 100)
@example([2, 2, 2, 2], 0, 5)
@example([1], 0, 3)
@example([2, 3, 6], 35, 3)
def test_count_t_partitions_counts_what_a_walk_counts_at_any_root(integers: list[int], T: int, root: int) -> None:
    found = count_t_partitions(integers, T, root=root)
    assert found.splits == sum(left - right == T for left, right in splits(integers))
    assert found.epsilon_sum == pytest.approx(math.log(math.prod(integers)) / root)


def test_every_difference_that_occurs_is_found() -> None:
    integers = [2, 3, 6]
    for T in sorted({left - right for left, right in splits(integers) if left >= right}):
        assert count_t_partitions(integers, T, root=2).splits == sum(a - b == T for a, b in splits(integers))


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 10.0])
def test_the_sum_of_epsilons_is_below_any_constant_and_the_count_stays(epsilon: float) -> None:
    root = root_below([2, 3, 6], epsilon)
    found = count_t_partitions([2, 3, 6], root=root)
    assert found.splits == 2 and found.epsilon_sum <= epsilon
    assert root == 1 or math.log(36) / (root - 1) > epsilon


@settings(max_examples=20)
@given(small_sets, st.fractions(1, 5, max_denominator=6))
def test_sum_partition_is_the_sum_over_all_subsets(integers: list[int], ratio: Fraction) -> None:
    truth = sum((max(Fraction(0), left - ratio * right) for left, right in splits(integers)), Fraction(0))
    slack = Fraction(math.prod(1 + w for w in integers), 2**64)
    assert truth <= sum_partition(integers, ratio) <= truth + slack


@settings(max_examples=20)
@given(small_sets, st.fractions(1, 4, max_denominator=4))
def test_delta_witnesses_are_as_many_as_delta_says(integers: list[int], y: Fraction) -> None:
    witnesses = list(delta_witnesses(tuple(integers), y))
    truth = sum((max(Fraction(0), left - y * right) for left, right in splits(integers)), Fraction(0))
    assert len(witnesses) == len(set(witnesses)) == truth * y.denominator


@pytest.mark.slow
@settings(max_examples=15)
@given(
    st.lists(st.sampled_from([1, 2, 3, 5]), min_size=1, max_size=3), st.fractions(0, Fraction(8, 9), max_denominator=9)
)
def test_optimal_composition_by_counting_is_within_its_places(integers: list[int], delta: Fraction) -> None:
    truth = exact_optimal_composition(tuple(integers), delta)
    found = optimal_composition_by_counting(integers, delta, bits=5)
    assert truth <= found < truth + Fraction(1, 32) or found == truth


def test_an_accountant_in_doubles_can_be_the_oracle_of_the_chain() -> None:
    def accountant(weights: tuple[int | Fraction, ...], delta: Fraction) -> Fraction:
        if delta >= 1 or float(delta) == 1.0:
            return Fraction(1)
        charges = compose([math.log(w) for w in weights])
        return Fraction(math.exp(charges.epsilon_at(float(delta), proof=False).estimate))

    assert count_t_partitions([2, 2], root=2, oracle=accountant).splits == 2
    assert count_t_partitions([2, 3], root=2, oracle=accountant).splits == 0


def test_an_oracle_without_enough_digits_is_caught() -> None:
    def rounded(weights: tuple[int | Fraction, ...], delta: Fraction) -> Fraction:
        return Fraction(round(float(exact_optimal_composition(weights, delta)), 2))

    with pytest.raises(InvalidValue, match="raise its precision"):
        count_t_partitions([2, 3, 5], 1, root=3, oracle=rounded)


@pytest.mark.parametrize(
    "call",
    [
        lambda: count_t_partitions([]),
        lambda: count_t_partitions([0, 2]),
        lambda: count_t_partitions([2], -1),
        lambda: count_t_partitions([2], root=0),
        lambda: root_below([2], 0.0),
        lambda: root_below([2], math.nan),
        lambda: sum_partition([]),
        lambda: sum_partition([Fraction(1, 2)]),
        lambda: sum_partition([2], Fraction(1, 2)),
        lambda: optimal_composition_by_counting([2], Fraction(1)),
        lambda: optimal_composition_by_counting([2], Fraction(0), bits=-1),
    ],
)
def test_what_is_no_instance_is_refused(call: object) -> None:
    with pytest.raises(InvalidValue):
        call()  # type: ignore[operator]

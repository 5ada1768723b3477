"""Which epsilons share a lattice, and that what is said about them is exactly true of the doubles."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accounting.lattice import RELATIVE_ERROR, Lattice, recognise
from strategies import epsilon_lists


def check(values: np.ndarray, lattice: Lattice) -> None:
    """Every double is a whole multiple of the step to within the error that proofs allow for; no coarser step is."""
    for value, multiple in zip(values.tolist(), lattice.multiples.tolist(), strict=True):
        assert multiple >= 1
        assert abs(Fraction(value) - multiple * Fraction(lattice.step)) <= Fraction(RELATIVE_ERROR) * Fraction(value)
    assert math.gcd(*lattice.multiples.tolist()) == 1
    assert lattice.span == 2 * lattice.step


@pytest.mark.slow
@settings(max_examples=200)
@given(st.integers(1, 6), st.lists(st.integers(1, 10**6), min_size=1, max_size=30))
def test_decimals_of_one_to_six_digits_share_a_lattice(digits: int, whole: list[int]) -> None:
    values = np.array([n / 10**digits for n in whole])
    lattice = recognise(values)
    assert lattice is not None
    check(values, lattice)
    assert lattice.step == pytest.approx(math.gcd(*whole) / 10**digits, rel=1e-15)


@pytest.mark.slow
@settings(max_examples=200)
@given(epsilon_lists(min_size=1))
def test_whatever_is_recognised_is_true(values: list[float]) -> None:
    lattice = recognise(np.array(values))
    if lattice is not None:
        check(np.array(values), lattice)


@pytest.mark.parametrize("value", [1e-300, 1e-12, math.pi / 100, 1 / 3, 0.1, 700.0])
def test_equal_values_are_a_lattice_of_their_own(value: float) -> None:
    lattice = recognise(np.full(5, value))
    assert lattice is not None and lattice.step == value and lattice.multiples.tolist() == [1] * 5


@pytest.mark.parametrize(
    ("values", "multiples"),
    [
        ([math.sqrt(2), 2 * math.sqrt(2), 1.5 * math.sqrt(2)], [2, 4, 3]),
        ([1 / 7, 2 / 7, 3 / 7], [1, 2, 3]),
        ([0.1, math.nextafter(0.1, 1)], [1, 1]),  # one unit in the last place apart: the same tenth
        ([0.1 + 0.2, 0.3], [1, 1]),
        ([3e-12, 5e-12], [3, 5]),
    ],
)
def test_parts_of_a_budget_and_roundings_are_recognised(values: list[float], multiples: list[int]) -> None:
    lattice = recognise(np.array(values))
    assert lattice is not None and lattice.multiples.tolist() == multiples
    check(np.array(values), lattice)


@pytest.mark.parametrize(
    "values",
    [
        [0.1, math.sqrt(2)],
        [0.1, 0.1 * (1 + 1e-13)],
        [0.1, 0.1 * (1 + 2.0**-49)],
        [1e-12, 1e3 + 1e-12],
        np.random.default_rng(1).uniform(0.1, 1, 50).tolist(),
    ],
)
def test_nearly_a_lattice_is_none(values: list[float]) -> None:
    assert recognise(np.array(values)) is None


def test_one_stranger_among_many_decimals_is_noticed() -> None:
    values = np.round(np.random.default_rng(2).uniform(0.01, 1, 5000), 2)
    values[4321] = 0.1234567890123
    assert recognise(values) is None


def test_nothing_has_no_lattice() -> None:
    assert recognise(np.zeros(0)) is None

"""Sensitivities are whole numbers; where a root is needed, it is rounded up by less than one unit in the last place."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.data import Sensitivity
from farthing.data.stability import rounded_up, sensitivity_of_rows


@pytest.mark.slow
@given(
    st.integers(0, 2**200) | st.integers(0, 10**4).map(lambda n: n * n) | st.integers(2**53, 2**54).map(lambda n: n * n)
)
def test_the_l2_sensitivity_is_the_root_rounded_up(square: int) -> None:
    root = Sensitivity(1, 1, square, 1).l2
    assert Fraction(root) ** 2 >= square
    below = math.nextafter(root, 0.0)
    assert root == 0 or Fraction(math.nextafter(below, 0.0)) ** 2 < square


@pytest.mark.slow
@given(st.fractions(min_value=0, max_value=1))
def test_a_probability_is_rounded_up_to_the_next_float(share: Fraction) -> None:
    number = rounded_up(share)
    assert Fraction(number) >= share
    assert number == 0 or Fraction(math.nextafter(number, -1.0)) < share


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_more_rows_more_cells_and_wider_ranges_never_move_less(neighbours: str) -> None:
    base = sensitivity_of_rows(3, [(-1, 4), (0, 2)], 2, neighbours)
    for more in (
        sensitivity_of_rows(4, [(-1, 4), (0, 2)], 2, neighbours),
        sensitivity_of_rows(3, [(-2, 4), (0, 2)], 2, neighbours),
        sensitivity_of_rows(3, [(-1, 4), (0, 2), (0, 1)], 2, neighbours),
        sensitivity_of_rows(3, [(-1, 4), (0, 2)], 3, neighbours),
        sensitivity_of_rows(3, [(-1, 4), (0, 2)], 2, "replace"),
    ):
        pairs = zip(
            (more.l0, more.l1, more.l2_squared, more.linf),
            (base.l0, base.l1, base.l2_squared, base.linf),
            strict=True,
        )
        assert all(a >= b for a, b in pairs)


def test_a_range_without_zero_is_widened_to_it() -> None:
    """A value may be missing, and then adds nothing."""
    assert sensitivity_of_rows(1, [(100, 110)], 1, "replace").linf == 110
    assert sensitivity_of_rows(1, [(-110, -100)], 1).linf == 110


def test_nothing_moves_what_is_always_zero() -> None:
    assert sensitivity_of_rows(5, [(0, 0)], 3) == Sensitivity(0, 0, 0, 0)
    assert sensitivity_of_rows(5, [], 3, "replace") == Sensitivity(0, 0, 0, 0)

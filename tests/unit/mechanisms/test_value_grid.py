"""Rounding to a grid keeps neighbours as close as it says, bit by bit at the edges of doubles."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.errors import InvalidValue
from farthing.mechanisms.value_grid import Grid

DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
STEPS = st.integers(-60, 60).map(lambda exponent: 2.0**exponent)
AWKWARD = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    0.49999999999999994,
    -0.49999999999999994,
    1.5,
    2.5,
    5e-324,
    -5e-324,
    2.0**52 + 0.5,
]
AWKWARD += [
    2.0**53 - 1,
    2.0**53,
    2.0**53 + 2,
    -(2.0**53) - 2,
    1e300,
    -1e300,
    1.7976931348623157e308,
    2.0**62,
    2.0**63,
]


def rounded(value: float, step: float) -> int:
    """floor(value / step + 1/2) in exact fractions, clamped."""
    return min(max(math.floor(Fraction(value) / Fraction(step) + Fraction(1, 2)), -(2**62)), 2**62)


@given(DOUBLES, STEPS)
def test_rounding_is_the_exact_one(value: float, step: float) -> None:
    assert Grid(step).steps(np.array([value])).tolist() == [rounded(value, step)]


@pytest.mark.parametrize("value", AWKWARD)
@pytest.mark.parametrize("step", [1.0, 0.25, 2.0**-60, 2.0**60, 2.0**-900, 2.0**900])
def test_awkward_doubles_round_exactly(value: float, step: float) -> None:
    assert Grid(step).steps(np.array([value])).tolist() == [rounded(value, step)]


@pytest.mark.slow
@given(st.lists(st.tuples(DOUBLES, DOUBLES), min_size=1, max_size=6), STEPS)
def test_neighbours_stay_within_the_claimed_steps(pairs: list[tuple[float, float]], step: float) -> None:
    grid, cells = Grid(step), len(pairs)
    left, right = (np.array(side) for side in zip(*pairs, strict=True))
    moved = [Fraction(int(a)) - int(b) for a, b in zip(grid.steps(left), grid.steps(right), strict=True)]
    apart = [abs(Fraction(a) - Fraction(b)) for a, b in pairs]
    l1 = sum(apart)
    if 0 < l1 < Fraction(1e300):
        up = math.nextafter(float(l1), math.inf)
        assert sum(abs(m) for m in moved) <= grid.l1_steps(up, cells)
    squared = sum(a * a for a in apart)
    if 0 < squared < Fraction(1e300):
        norm = math.nextafter(math.sqrt(float(squared)), math.inf) * (1 + 1e-15)
        assert sum(m * m for m in moved) <= Fraction(grid.l2_steps(norm, cells)) ** 2


def test_the_claim_is_met_with_equality() -> None:
    """Four cells that each cross a half: the l1 distance in steps is one less than a cell more would allow."""
    grid = Grid(1.0)
    left, right = np.full(4, 0.49), np.full(4, 0.5)
    assert np.abs(grid.steps(left) - grid.steps(right)).sum() == 4 == grid.l1_steps(0.04, 4)


@pytest.mark.parametrize(
    "step", [0.0, -1.0, 0.3, 3.0, math.inf, math.nan, 5e-324, 2.0**-1000, 2.0**1000, "1", None, True]
)
def test_a_grid_is_a_power_of_two(step: object) -> None:
    with pytest.raises(InvalidValue, match="grid"):
        Grid(step)  # type: ignore[arg-type]


def test_multiples_come_back_exactly() -> None:
    grid = Grid(2.0**-20)
    steps = np.array([0, 1, -1, 2**53, -(2**53)])
    assert grid.steps(grid.values(steps)).tolist() == steps.tolist()

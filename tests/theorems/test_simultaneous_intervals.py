"""Intervals that hold at once: sound, exact for independent noise, and degenerate cases."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from farthing.errors import InvalidValue
from farthing.inference import ErrorDistribution, Term
from farthing.inference.answers import level_at_once


def joint_coverage(scale: float, cells: int, error: float) -> float:
    """P[all of `cells` independent discrete Laplace noises are within `error`], by adding up every outcome."""
    ratio = math.exp(-1 / scale)
    masses = {n: (1 - ratio) / (1 + ratio) * ratio ** abs(n) for n in range(-200, 201)}
    inside = [n for n in masses if abs(n) <= error]
    return sum(math.prod(masses[n] for n in drawn) for drawn in itertools.product(inside, repeat=cells))


@pytest.mark.parametrize("cells", [1, 2, 3])
@pytest.mark.parametrize("scale", [0.7, 2.0, 4.0])
def test_the_error_at_once_is_the_least_that_holds_all_cells(cells: int, scale: float) -> None:
    level = level_at_once(0.9, cells, independent=True)
    (error,) = set(ErrorDistribution([Term("laplace", scale)], cells).errors(level))
    assert joint_coverage(scale, cells, error) >= 0.9
    assert joint_coverage(scale, cells, error - 1) < 0.9


@pytest.mark.parametrize("independent", [False, True])
def test_sound_and_monotone(independent: bool) -> None:
    levels = [level_at_once(0.95, k, independent=independent) for k in (1, 2, 10, 1000, 10**6)]
    assert levels == sorted(levels) and levels[0] == 0.95 and levels[-1] < 1
    for k, level in zip((1, 2, 10, 1000, 10**6), levels, strict=True):
        missed = 1 - Fraction(level)
        if independent:
            assert math.log1p(-float(missed)) * k >= math.log(0.95) * (1 + 1e-12)
        else:
            assert missed * k <= Fraction(1, 20) + Fraction(1, 10**15)
        assert float(missed) * k >= 0.0499


def test_dependent_intervals_need_no_more_than_boole() -> None:
    """The worst case: misses that never coincide."""
    level = level_at_once(0.95, 20)
    assert 20 * (1 - level) == pytest.approx(0.05)
    assert level > level_at_once(0.95, 20, independent=True)


@pytest.mark.parametrize("numbers", [0, -1, 2.0, np.nan])
def test_numbers_must_be_counted(numbers: object) -> None:
    with pytest.raises(InvalidValue, match="whole number"):
        level_at_once(0.95, numbers)  # type: ignore[arg-type]

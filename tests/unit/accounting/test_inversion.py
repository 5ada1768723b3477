"""One-sided searches: they stop on verified points only, whatever curve, guess or slope they are given."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accounting.inversion import Curve, least_epsilon


def banded(log_delta: Callable[[float], float], band: float) -> Callable[[float], Curve]:
    """A curve known to within `band`."""
    return lambda x: Curve(log_delta(x) - band, log_delta(x) + band)


def smooth(x: float) -> float:
    return math.log(-math.expm1(x - 10)) - x if x < 10 else -math.inf


def stairs(x: float) -> float:
    """Plateaus, cliffs, and zero beyond the largest loss."""
    return smooth(math.floor(x) + 0.5 * (x - math.floor(x)) ** 9) if x < 10 else -math.inf


@pytest.mark.slow
@settings(max_examples=300)
@given(
    st.sampled_from([smooth, stairs]),
    st.floats(0.0, 1e-3),
    st.floats(-40.0, 0.0),
    st.floats(-5.0, 15.0),
    st.floats(1e-6, 1e6),
)
def test_the_ends_are_verified_whatever_the_guess(
    log_delta: Callable[[float], float], band: float, target: float, guess: float, slope: float
) -> None:
    curve = banded(log_delta, band)
    lower, upper = least_epsilon(curve, target, target, guess, slope, 10.0)
    assert 0 <= lower <= 10 and 0 <= upper <= 10
    assert upper == 10.0 or curve(upper).high <= target
    assert lower == 0.0 or curve(lower).low >= target


@pytest.mark.parametrize(("target", "guess"), [(-1.0, 1.1), (-5.0, 4.7), (-9.0, 8.7), (-12.0, 9.87)])
def test_a_sharp_curve_is_inverted_to_the_last_digits(target: float, guess: float) -> None:
    lower, upper = least_epsilon(banded(smooth, 1e-15), target, target, guess, 1.0, 10.0)
    assert upper - lower <= 1e-12 * (1 + abs(target))
    assert smooth(lower) >= target >= smooth(upper)


def test_the_width_follows_the_band() -> None:
    lower, upper = least_epsilon(banded(smooth, 1e-6), -5.0, -5.0, 5.0, 1.0, 10.0)
    assert 1e-6 < upper - lower < 1e-5


def test_an_uncertain_target_widens_the_answer() -> None:
    lower, upper = least_epsilon(banded(smooth, 0.0), -5.1, -5.0, 5.0, 1.0, 10.0)
    assert smooth(lower) >= -5.0 and smooth(upper) <= -5.1


def test_a_curve_that_says_nothing_gives_everything() -> None:
    assert least_epsilon(lambda x: Curve(-math.inf, 0.0), -5.0, -5.0, 3.0, 1.0, 10.0) == (0.0, 10.0)


def test_a_target_above_the_curve_costs_nothing() -> None:
    assert least_epsilon(banded(smooth, 1e-12), 0.5, 0.5, 3.0, 1.0, 10.0) == (0.0, 0.0)


def test_an_endless_loss_is_searched_as_well() -> None:
    lower, upper = least_epsilon(banded(lambda x: -x * x, 1e-12), -400.0, -400.0, 19.9, 39.0, math.inf)
    assert lower <= 20 <= upper and upper - lower < 1e-9

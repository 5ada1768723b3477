"""An enclosure: its order, its middle, what it is charged with, and how it prints."""

from __future__ import annotations

import dataclasses
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing import Bounds
from farthing.errors import InvalidValue

ends = st.floats(-1e300, 1e300, allow_nan=False)


@pytest.mark.slow
@given(ends, ends, st.floats(allow_nan=True))
def test_the_estimate_is_always_inside(a: float, b: float, estimate: float) -> None:
    bounds = Bounds(min(a, b), max(a, b), estimate)
    assert bounds.lower <= bounds.estimate <= bounds.upper
    assert bounds.estimate in bounds and bounds.lower in bounds and bounds.upper in bounds
    assert bounds.width >= 0


def test_what_is_charged_is_the_upper_end() -> None:
    assert float(Bounds(1.0, 2.0, 1.1)) == 2.0
    assert float(Bounds(math.inf, math.inf)) == math.inf


def test_the_middle_of_large_ends_does_not_overflow() -> None:
    assert Bounds(1e308, 1.5e308).estimate == pytest.approx(1.25e308)
    assert Bounds(0.0, math.inf).estimate == math.inf
    assert Bounds(math.inf, math.inf).width == 0.0
    assert Bounds(0.0, math.inf).width == math.inf


@pytest.mark.parametrize(
    ("lower", "upper"), [(1.0, 0.0), (math.nan, 1.0), (0.0, math.nan), (math.nan, math.nan), (math.inf, 1.0)]
)
def test_ends_out_of_order_are_refused(lower: float, upper: float) -> None:
    with pytest.raises(InvalidValue, match="must be at least lower="):
        Bounds(lower, upper)


def test_nan_is_in_no_bounds() -> None:
    assert math.nan not in Bounds(-math.inf, math.inf)


def test_bounds_are_values() -> None:
    assert Bounds(1.0, 2.0) == Bounds(1.0, 2.0) != Bounds(1.0, 2.0, proven=False)
    assert len({Bounds(1.0, 2.0), Bounds(1.0, 2.0)}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        Bounds(1.0, 2.0).upper = 0.0  # type: ignore[misc]


@given(st.floats(0, 1e6), st.floats(0, 1e-3), st.booleans())
def test_printed_ends_hold_what_the_ends_hold(lower: float, width: float, proven: bool) -> None:
    """Rounding on the way to the reader must not make a promise smaller."""
    bounds = Bounds(lower, lower + width, proven=proven)
    text = str(bounds)
    low, high = (float(part) for part in re.search(r"\[(.*), (.*)\]", text).groups())  # type: ignore[union-attr]
    assert low <= bounds.lower and high >= bounds.upper
    assert ("proven" in text) == proven and ("estimated" in text) == (not proven)
    assert not proven or float(text.split()[0]) >= bounds.upper


def test_a_tiny_delta_is_not_printed_as_zero() -> None:
    assert str(Bounds(1e-6, 1.0000001e-6)).startswith("1.000000")
    assert "1e-300" in str(Bounds(1e-300, 1e-300))
    assert str(Bounds(math.inf, math.inf)).startswith("inf")

"""The growth of errors: slopes that are those of the points, and refusals of what has none."""

from __future__ import annotations

import pytest

from farthing.errors import InvalidValue
from farthing.plots import error_growth, growth_exponent


def test_the_power_is_that_of_the_measured_points_and_not_of_the_line() -> None:
    rows = [{"strategy": "one", "k": k, "predicted": float(k**2), "measured": float(k**3)} for k in (4, 8, 16)]
    legend = error_growth(rows).to_dict()["layer"][0]["encoding"]["color"]["scale"]["domain"]
    assert legend == ["one: k^3.00"]


def test_rows_that_nobody_measured_have_a_line_and_no_points() -> None:
    rows = [{"strategy": "one", "k": k, "predicted": float(k**2)} for k in (4, 8)]
    chart = error_growth(rows).to_dict()
    assert len(chart["layer"]) == 1 and chart["layer"][0]["mark"]["type"] == "line"


def test_a_logarithm_is_taken_out_before_the_slope() -> None:
    ks = [2**power for power in range(4, 12)]
    totals = [k**2 * power**3 for power, k in enumerate(ks, 4)]
    assert growth_exponent(ks, totals, logs=3) == pytest.approx(2.0)
    assert growth_exponent(ks, totals) > 2.3


@pytest.mark.parametrize(
    ("ks", "totals"),
    [([4], [1.0]), ([4, 4], [1.0, 2.0]), ([4, 8], [1.0, float("nan")]), ([4, 8], [1.0, 0.0])],
)
def test_what_has_no_slope_is_refused(ks: list[int], totals: list[float]) -> None:
    with pytest.raises(InvalidValue):
        growth_exponent(ks, totals)


def test_no_rows_are_refused() -> None:
    with pytest.raises(InvalidValue):
        error_growth([])

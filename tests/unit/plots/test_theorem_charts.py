"""Epsilon against k and delta: the order of the theorems, and known numbers."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest

from farthing import compose
from farthing.errors import InvalidValue
from farthing.plots import epsilon_against_delta, epsilon_against_k
from farthing.plots.theorem_charts import four_theorems


def values(chart: Any, theorem: str, against: str) -> dict[float, float]:
    rows = chart.to_dict()["data"]["values"]
    return {row[against]: row["epsilon"] for row in rows if row["theorem"] == theorem}


@pytest.mark.slow
def test_the_optimum_is_the_proven_one_and_lies_below_the_others() -> None:
    chart = epsilon_against_k(0.1, 1e-6, ks=(1, 5, 20, 100, 300))
    optimal = values(chart, "optimal", "k")
    for k, epsilon in optimal.items():
        bounds = compose([0.1], counts=[int(k)]).epsilon_at(1e-6)
        assert bounds.lower - 1e-9 <= epsilon <= bounds.upper + 1e-9
        for theorem in ("basic", "DRV", "KOV bound"):
            assert values(chart, theorem, "k")[k] >= epsilon - 1e-12
    assert round(optimal[100], 6) == 4.774568


@pytest.mark.slow
def test_epsilon_rises_with_k_and_as_delta_falls() -> None:
    by_k = epsilon_against_k(ks=(1, 3, 10, 30, 100, 300))
    by_delta = epsilon_against_delta(deltas=(1e-1, 1e-3, 1e-6, 1e-9, 1e-15, 1e-30, 1e-300))
    for chart, against in ((by_k, "k"), (by_delta, "delta")):
        for theorem in ("basic", "DRV", "KOV bound", "optimal"):
            points = values(chart, theorem, against)
            ordered = [points[x] for x in sorted(points, reverse=against == "delta")]
            assert all(low <= high + 1e-12 for low, high in pairwise(ordered)), theorem
    assert values(by_delta, "optimal", "delta")[1e-15] == pytest.approx(7.631074, abs=1e-6)


@pytest.mark.slow
def test_the_subtitle_says_where_nothing_is_saved() -> None:
    subtitle = " ".join(epsilon_against_k(0.1, 1e-6).to_dict()["title"]["subtitle"])
    assert "Up to k = 14 nothing can be saved" in subtitle


def test_a_theorem_without_a_finite_answer_is_left_out() -> None:
    """Leaks of 30 x 1e-6 leave nothing of 1e-6: no theorem speaks, and the chart holds no infinity."""
    assert four_theorems(0.1, 1e-6, 30, 1e-6) == []
    rows = epsilon_against_delta(0.1, 30, 1e-6, deltas=(1e-6, 2.99e-5, 1e-4)).to_dict()["data"]["values"]
    assert {row["delta"] for row in rows} >= {1e-4}
    assert all(math.isfinite(row["epsilon"]) for row in rows)


def test_axes_are_named_with_their_scale() -> None:
    for chart in (epsilon_against_k(ks=(1, 10)), epsilon_against_delta(deltas=(1e-6, 1e-3))):
        encoding = chart.to_dict()["encoding"]
        for axis in ("x", "y"):
            scale = encoding[axis].get("scale", {}).get("type", "linear")
            assert ("log scale" in encoding[axis]["title"]) == (scale == "log")


@pytest.mark.parametrize("bad", [{"ks": (0.5,)}, {"delta_g": 1.0}, {"epsilon": -0.1}, {"delta": math.nan}])
def test_bad_parameters_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        epsilon_against_k(**bad)

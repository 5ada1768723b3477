"""Regions: the right polygons, nested and ordered as the theorems are."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from farthing.errors import InvalidValue
from farthing.plots import compare_regions, privacy_regions
from farthing.plots.region_charts import boundary_rows


def polygon(chart: Any, k: int) -> np.ndarray:
    rows = [row for row in chart.to_dict()["layer"][1]["data"]["values"] if row["region"] == f"k = {k}"]
    return np.array([(row["P_FA"], row["P_MD"]) for row in sorted(rows, key=lambda row: row["place"])])


def curve(rows: list[dict[str, Any]], theorem: str) -> np.ndarray:
    return np.array([(row["P_FA"], row["P_MD"]) for row in rows if row["theorem"] == theorem])


def below(polygon: np.ndarray, alpha: float) -> float:
    """The lower boundary of a closed polygon at one false-alarm rate."""
    low = 1.0
    for (a, b), (c, d) in pairwise(polygon.tolist()):
        if min(a, c) <= alpha <= max(a, c) and a != c:
            low = min(low, b + (d - b) * (alpha - a) / (c - a))
    return low


def test_one_mechanism_has_the_corners_of_its_definition() -> None:
    """P_FA + e^epsilon P_MD = 1 - delta and its mirror meet on the diagonal at (1 - delta) / (1 + e^epsilon)."""
    shape = polygon(privacy_regions(0.4, 0.1, ks=(1,)), 1)
    corner = 0.9 / (1 + math.exp(0.4))
    for point in ((0, 0.9), (corner, corner), (0.9, 0), (0.1, 1), (1 - corner, 1 - corner), (1, 0.1)):
        assert np.min(np.abs(shape - np.array(point)).max(axis=1)) < 1e-6, point
    assert np.array_equal(shape[0], shape[-1])  # closed


def test_two_mechanisms_have_the_corners_of_their_transcripts() -> None:
    """By enumeration: leak with probability 1 - 0.9^2, else losses 0.8, 0, -0.8."""
    shape = polygon(privacy_regions(0.4, 0.1, ks=(2,)), 2)
    p = math.exp(0.4) / (1 + math.exp(0.4))
    keep = 0.81
    # Calling "present" on (yes, yes) alone: false alarm keep (1-p)^2, missed keep (1 - p^2).
    alpha, beta = keep * (1 - p) ** 2, keep * (1 - p**2)
    for point in ((0, keep), (alpha, beta), (beta, alpha), (keep, 0)):
        assert np.min(np.abs(shape - np.array(point)).max(axis=1)) < 1e-3, point


@pytest.mark.slow
def test_regions_grow_with_every_mechanism_and_are_symmetric() -> None:
    chart = privacy_regions(0.4, 0.1, ks=(1, 2, 3, 4, 5))
    shapes = [polygon(chart, k) for k in (1, 2, 3, 4, 5)]
    lows = [np.array([below(shape, alpha) for alpha in np.linspace(0, 1, 21)]) for shape in shapes]
    for fewer, more in pairwise(lows):
        assert np.all(more <= fewer + 1e-9)
        assert np.any(more < fewer - 0.01)
    for shape in shapes:
        mirrored = {(round(b, 6), round(a, 6)) for a, b in shape.tolist()}
        assert {(round(a, 6), round(b, 6)) for a, b in shape.tolist()} == mirrored


def test_each_theorem_allows_no_more_than_a_better_one() -> None:
    rows = boundary_rows(0.1, 0.001, 30)
    basic, drv, kov, optimal = (curve(rows, name)[:, 1] for name in ("basic", "DRV", "KOV bound", "optimal"))
    assert np.all(drv <= kov + 1e-12)
    assert np.all(np.maximum(np.maximum(basic, drv), kov) <= optimal + 1e-6)
    assert np.max(optimal - kov) > 0.1  # the picture has something to show
    for values in (basic, drv, kov, optimal):
        assert np.all(np.diff(values) <= 1e-12) and np.all(values >= 0)


def test_the_basic_boundary_is_that_of_one_mechanism_with_the_sums() -> None:
    grid, basic = curve(boundary_rows(0.1, 0.001, 30), "basic").T
    steep, flat = 0.97 - math.exp(3.0) * grid, math.exp(-3.0) * (0.97 - grid)
    assert basic == pytest.approx(np.maximum(0, np.maximum(steep, flat)), abs=1e-9)


@pytest.mark.slow
def test_comparison_draws_the_four_in_their_own_colours() -> None:
    spec = compare_regions(0.1, 0.001, k=5).to_dict()["layer"][1]["encoding"]
    assert spec["color"]["scale"]["domain"] == ["basic", "DRV", "KOV bound", "optimal"]
    assert len(set(spec["color"]["scale"]["range"])) == 4
    assert len({str(dash) for dash in spec["strokeDash"]["scale"]["range"]}) == 4


@pytest.mark.parametrize(
    "bad", [{"epsilon": -1.0}, {"delta": 1.0}, {"ks": (1.5,)}, {"ks": (-1,)}, {"epsilon": math.nan}]
)
def test_bad_parameters_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        privacy_regions(**bad)

"""Bars of one comparison, and the trade-off curve of one composition."""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest

from farthing import Bounds, compose
from farthing.accounting.theorems import Row, table
from farthing.plots import theorem_bars, tradeoff_curve
from farthing.privacy import GaussianNoise


def test_bars_put_the_optimum_first_and_the_dearest_last() -> None:
    optimal = compose([0.1], counts=[100]).epsilon_at(1e-6)
    spec = theorem_bars(table([0.1], None, [100], 1e-6), optimal).to_dict()
    bars = spec["data"]["values"]
    assert bars[0] == {"theorem": "optimal", "epsilon": optimal.upper, "label": "4.775"}
    assert bars[-1]["theorem"] == "basic sum"
    assert [bar["epsilon"] for bar in bars[1:]] == sorted(bar["epsilon"] for bar in bars[1:])
    assert bars[-1]["label"] == "10  (+109 %)"
    assert "basic sum) charges 2.09 times the optimum" in spec["title"]["text"]


def test_bars_leave_out_what_does_not_apply_or_is_infinite() -> None:
    rows = [Row("a", 2.0, "s"), Row("b", math.inf, "s"), Row("c", 1.0, "s", applies=False)]
    bars = theorem_bars(rows, Bounds(1.0, 1.0)).to_dict()["data"]["values"]
    assert [bar["theorem"] for bar in bars] == ["optimal", "a"]


def test_bars_of_nothing_can_still_be_drawn() -> None:
    theorem_bars([], Bounds(math.inf, math.inf)).to_dict()
    theorem_bars([Row("a", 0.0, "s")], Bounds(0.0, 0.0)).to_dict()


def test_the_gaussian_curve_is_the_textbook_one() -> None:
    """f(alpha) = Phi(Phi^-1(1 - alpha) - mu) with mu = sqrt(10) / 4; the chart may only lie below."""
    spec = tradeoff_curve(compose([GaussianNoise(4.0)], counts=[10])).to_dict()
    points = spec["data"]["values"]
    normal = NormalDist()
    for point in points:
        if 1e-6 < point["alpha"] < 1 - 1e-6:
            truth = normal.cdf(normal.inv_cdf(1 - point["alpha"]) - math.sqrt(10) / 4)
            assert truth - 2e-3 <= point["beta"] <= truth + 1e-9
    assert points[0]["alpha"] == 0 and points[-1]["alpha"] == 1


@pytest.mark.parametrize(("k", "words"), [(1, "1 mechanism composed"), (30, "30 mechanisms composed")])
def test_the_subtitle_counts(k: int, words: str) -> None:
    assert words in tradeoff_curve(compose([0.1], counts=[k])).to_dict()["title"]["subtitle"][0]

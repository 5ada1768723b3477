"""The heterogeneous gap: never negative, closed where it must be, and as large as claimed."""

from __future__ import annotations

import math

import pytest

from farthing import compose
from farthing.accounting.theorems import kov_exact_homogeneous, mv_enumeration
from farthing.plots import dominated_gap, heterogeneous_gap, spread_gap
from farthing.privacy import GaussianNoise


def test_equal_charges_give_the_homogeneous_gap() -> None:
    [row] = spread_gap(spreads=[1.0], ks=[100])
    assert row["optimal"] == pytest.approx(kov_exact_homogeneous(0.1, 100, 1e-6).upper, abs=1e-9)
    assert row["kov"] == pytest.approx(5.756106, abs=1e-6)


def test_small_lists_agree_with_enumeration_and_gain_nothing() -> None:
    [row] = spread_gap(spreads=[10.0], ks=[12])
    shape = [10 ** (i / 11) for i in range(12)]
    scale = 1 / math.sqrt(sum(x * x for x in shape))
    assert row["optimal"] == pytest.approx(mv_enumeration([scale * x for x in shape], 1e-6).upper, abs=1e-9)
    assert 1 <= row["ratio"] < 1.01


def test_the_gap_is_never_negative_and_tends_to_the_gaussian_limit() -> None:
    rows = spread_gap(spreads=[1.0, 100.0], ks=[20, 100, 2000])
    assert all(row["ratio"] >= 1 and row["gap"] == row["kov"] - row["optimal"] for row in rows)
    limit = compose([GaussianNoise(1.0)]).epsilon_at(1e-6).estimate
    for row in rows:
        if row["k"] == 2000:
            assert row["optimal"] == pytest.approx(limit, rel=0.01)


def test_a_dominating_charge_makes_the_closed_form_several_times_too_dear() -> None:
    [row] = dominated_gap(largest=[1.0], ks=[10_000])
    proven = compose([1.0, 0.001], counts=[1, 10_000]).epsilon_at(1e-6)
    assert proven.lower - 1e-9 <= row["optimal"] <= proven.upper + 1e-9
    assert row["kov"] / proven.upper > 4


@pytest.mark.slow
def test_the_title_states_the_worst_of_both_panels() -> None:
    spread, dominated = spread_gap(ks=(100,)), dominated_gap(ks=(1000,))
    spec = heterogeneous_gap(spread, dominated).to_dict()
    assert f"{max(row['ratio'] for row in spread):.2f} times" in spec["title"]["text"]
    assert f"{max(row['ratio'] for row in dominated):.1f} times" in spec["title"]["text"]
    assert len(spec["hconcat"]) == 2

"""How much the closed form of Kairouz, Oh and Viswanath wastes on unequal charges: Murtagh and Vadhan's open question.

Two families span what happens. In *spread* lists the epsilons go geometrically from least to greatest; in *dominated*
lists one mechanism stands out among many small ones. Lists are scaled to a fixed sum of squares, the only number
besides the drift that the closed form sees. As a list grows, its small losses become Gaussian (a central limit
theorem), so the optimum tends to that of Gaussian noise with the same sum of squares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from farthing.accounting import compose
from farthing.accounting.theorems import kov_heterogeneous_bound
from farthing.plots._style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    VERMILLION,
    Row,
    altair,
    data_of,
    finished,
)
from farthing.privacy.events import checked_count, checked_delta, checked_epsilon

SPREADS = (1.0, 10.0, 100.0, 1000.0)
LARGEST = (0.5, 1.0, 2.0, 5.0)
SPREAD_KS = (10, 14, 20, 25, 30, 40, 50, 60, 80, 100, 140, 200, 300, 500, 1000, 2000, 5000, 10_000)
SMALL_KS = (
    10,
    20,
    50,
    100,
    200,
    500,
    1000,
    2000,
    5000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
)


def spread_gap(
    spreads: Sequence[float] = SPREADS, ks: Sequence[int] = SPREAD_KS, delta: float = 1e-6, root: float = 1.0
) -> list[Row]:
    """The gap for k epsilons in geometric progression, greatest / least = spread, sum of squares = root^2.

    >>> [row] = spread_gap(spreads=[100.0], ks=[100])
    >>> round(row["optimal"], 3), round(row["kov"], 3), round(row["ratio"], 3)
    (4.387, 5.755, 1.312)
    """
    rows = []
    for spread in spreads:
        for k in ks:
            shape = np.geomspace(1.0, spread, checked_count(k, "k"))
            epsilons = shape * (checked_epsilon(root, "root") / math.sqrt(float(np.square(shape).sum())))
            rows.append({"spread": spread, "k": k, **_gap(epsilons, np.ones(len(shape)), delta)})
    return rows


def dominated_gap(
    largest: Sequence[float] = LARGEST, ks: Sequence[int] = SMALL_KS, delta: float = 1e-6, root: float = 0.1
) -> list[Row]:
    """The gap for one large epsilon beside k equal small ones whose squares add to root^2.

    >>> [row] = dominated_gap(largest=[1.0], ks=[10_000])
    >>> round(row["optimal"], 2), round(row["kov"], 2), round(row["ratio"], 2)
    (1.39, 5.75, 4.14)
    """
    return [
        {
            "largest": top, "k": k,
            **_gap(np.array([top, root / math.sqrt(checked_count(k, "k"))]), np.array([1.0, k]), delta),
        }
        for top in largest
        for k in ks
    ]  # fmt: skip


def heterogeneous_gap(delta: float = 1e-6) -> Any:
    """The KOV closed form divided by the optimum, for spread lists and for dominated lists.

    >>> chart = heterogeneous_gap()
    >>> len(chart.to_dict()["hconcat"])
    2
    """
    delta = checked_delta(delta)
    spread, dominated = spread_gap(delta=delta), dominated_gap(delta=delta)
    alt = altair()
    left = _panel(
        [{**row, "list": f"{row['spread']:,.0f} : 1"} for row in spread], "greatest : least epsilon",
        "number of mechanisms k", "Spread: sum of squares 1", SPREAD_KS,
    )  # fmt: skip
    right = _panel(
        [{**row, "list": f"{row['largest']:g}"} for row in dominated], "large epsilon",
        "number of small mechanisms", "Dominated: one large, small squares sum to 0.01", SMALL_KS,
    )  # fmt: skip
    worst_spread, worst = max(row["ratio"] for row in spread), max(row["ratio"] for row in dominated)
    return finished(
        alt.hconcat(left, right, spacing=36).resolve_scale(color="independent", strokeDash="independent"),
        f"On unequal charges the KOV bound wastes up to {100 * (worst_spread - 1):.0f} %, "
        f"and {worst:.1f} times the optimum when one charge dominates",
        [f"KOV closed form (Theorem 3.5) divided by the optimum at delta = {delta:g}. "
         "At 1 both are the plain sum; the dip at large k is the Gaussian limit."],
    )  # fmt: skip


def _gap(epsilons: np.ndarray, counts: np.ndarray, delta: float) -> dict[str, float]:
    # An estimate: good to ten digits, and nothing is charged here.
    optimal = compose(epsilons, counts=counts).epsilon_at(delta, proof=False).estimate
    kov = kov_heterogeneous_bound(epsilons, delta, counts=counts)
    return {"optimal": optimal, "kov": kov, "gap": kov - optimal, "ratio": kov / optimal}


def _panel(rows: Sequence[Row], legend: str, x_title: str, title: str, ks: Sequence[int]) -> Any:
    alt = altair()
    names = list(dict.fromkeys(str(row["list"]) for row in rows))
    colours = [BLACK, BLUE, VERMILLION, GREEN, PURPLE, ORANGE][: len(names)]
    dashes = [[1, 0], [7, 3], [8, 3, 2, 3], [2, 3], [4, 2], [1, 3]][: len(names)]
    powers = range(round(math.log10(min(ks))), round(math.log10(max(ks))) + 1)
    return (
        alt.Chart(data_of(rows), title=alt.TitleParams(title, fontSize=12, fontWeight="normal", anchor="start"))
        .mark_line(strokeWidth=2.2)
        .encode(
            x=alt.X(
                "k:Q", title=f"{x_title} (log scale)", scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(values=[10.0**power for power in powers], format="~s"),
            ),
            y=alt.Y("ratio:Q", title="KOV bound / optimum", scale=alt.Scale(zero=False)),
            color=alt.Color("list:N", title=legend, sort=names, scale=alt.Scale(domain=names, range=colours)),
            strokeDash=alt.StrokeDash("list:N", title=legend, sort=names, scale=alt.Scale(domain=names, range=dashes)),
            tooltip=[
                alt.Tooltip("list:N", title=legend), alt.Tooltip("k:Q"), alt.Tooltip("kov:Q", format=".4g"),
                alt.Tooltip("optimal:Q", format=".4g"), alt.Tooltip("ratio:Q", format=".3g"),
            ],
        )
        .properties(width=300, height=300)
    )  # fmt: skip

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
SPREAD_KS = (
    10,
    14,
    20,
    25,
    30,
    35,
    40,
    45,
    50,
    60,
    70,
    80,
    90,
    100,
    120,
    140,
    160,
    200,
    300,
    500,
    1000,
    2000,
)
SMALL_KS = tuple(round(10 ** (power / 4)) for power in range(4, 25))
_BOX = {"fillColor": "white", "padding": 6, "strokeColor": "#ddd"}


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


def heterogeneous_gap(
    spread: Sequence[Row] | None = None, dominated: Sequence[Row] | None = None, delta: float = 1e-6
) -> Any:
    """The KOV closed form divided by the optimum, for spread lists and for dominated lists.

    The rows are those of `spread_gap` and `dominated_gap`; left out, they are computed at `delta`.

    >>> chart = heterogeneous_gap(spread_gap(ks=(100, 1000)), dominated_gap(ks=(100, 1000)))
    >>> len(chart.to_dict()["hconcat"])
    2
    """
    delta = checked_delta(delta)
    spread_rows = spread_gap(delta=delta) if spread is None else spread
    dominated_rows = dominated_gap(delta=delta) if dominated is None else dominated
    alt = altair()
    left = _panel(
        [{**row, "list": f"{row['spread']:,.0f} : 1"} for row in spread_rows],
        "Spread: epsilons in geometric progression, sum of squares 1",
        "number of mechanisms k",
        alt.Legend(title="greatest : least epsilon", orient="bottom-right", **_BOX),
    )
    right = _panel(
        [{**row, "list": f"{row['largest']:g}"} for row in dominated_rows],
        "Dominated: one large epsilon, squares of the small sum to 0.01",
        "number of small mechanisms",
        alt.Legend(title="large epsilon", orient="top-left", **_BOX),
    )
    worst_spread = max(row["ratio"] for row in spread_rows)
    worst = max(row["ratio"] for row in dominated_rows)
    return finished(
        alt.hconcat(left, right, spacing=36).resolve_scale(color="independent", strokeDash="independent"),
        f"On unequal charges the KOV bound charges up to {worst_spread:.2f} times the optimum, "
        f"and {worst:.1f} times when one dominates",
        f"KOV closed form (Theorem 3.5) divided by the optimum at delta = {delta:g}. "
        "At 1 both are the plain sum; for large k the spread no longer matters.",
    )


def _gap(epsilons: np.ndarray, counts: np.ndarray, delta: float) -> dict[str, float]:
    # An estimate: good to ten digits, and nothing is charged here.
    optimal = compose(epsilons, counts=counts).epsilon_at(delta, proof=False).estimate
    kov = kov_heterogeneous_bound(epsilons, delta, counts=counts)
    return {"optimal": optimal, "kov": kov, "gap": kov - optimal, "ratio": kov / optimal}


def _panel(rows: Sequence[Row], title: str, x_title: str, legend: Any) -> Any:
    alt = altair()
    names = list(dict.fromkeys(row["list"] for row in rows))
    colours = alt.Scale(domain=names, range=[BLACK, BLUE, VERMILLION, GREEN, PURPLE, ORANGE][: len(names)])
    dashes = alt.Scale(
        domain=names, range=[[1, 0], [7, 3], [8, 3, 2, 3], [2, 3], [4, 2], [1, 3]][: len(names)]
    )
    ks = [math.log10(row["k"]) for row in rows]
    ticks = [10.0**power for power in range(round(min(ks)), round(max(ks)) + 1)]
    heading = alt.TitleParams(title, fontSize=12, fontWeight="normal", anchor="start")
    return (
        alt.Chart(data_of(rows), title=heading)
        .mark_line(strokeWidth=2.2)
        .encode(
            x=alt.X(
                "k:Q",
                title=f"{x_title} (log scale)",
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(values=ticks, format="~s"),
            ),
            y=alt.Y("ratio:Q", title="KOV bound / optimum", scale=alt.Scale(zero=False)),
            color=alt.Color("list:N", sort=names, legend=legend, scale=colours),
            strokeDash=alt.StrokeDash("list:N", sort=names, legend=legend, scale=dashes),
            tooltip=[
                alt.Tooltip("list:N"),
                *(alt.Tooltip(f"{field}:Q", format=".4g") for field in ("k", "kov", "optimal", "ratio")),
            ],
        )
        .properties(width=400, height=300)
    )

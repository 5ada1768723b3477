"""Epsilon of a whole, against the number of mechanisms and against delta, under four theorems."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from farthing.accounting import compose
from farthing.accounting.region_boundaries import epsilons_of_equals
from farthing.accounting.theorems import kov_heterogeneous_bound
from farthing.numerics import Bounds
from farthing.plots._style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    THEOREM_LABELS,
    VERMILLION,
    Row,
    altair,
    data_of,
    finished,
    theorem_encoding,
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

    Args:
        spreads: The ratios of the greatest to the least epsilon.
        ks: How many epsilons there are.
        delta: The delta of the whole.
        root: The root of the sum of squares of the epsilons.

    Returns:
        One row for each pair of `spreads` and `ks`, with the optimum, the closed form and their ratio.

    Raises:
        InvalidValue: If an argument is out of its range.

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

    Args:
        largest: The large epsilons.
        ks: How many small ones stand beside each.
        delta: The delta of the whole.
        root: The root of the sum of squares of the small ones.

    Returns:
        One row for each pair of `largest` and `ks`, with the optimum, the closed form and their ratio.

    Raises:
        InvalidValue: If an argument is out of its range.

    >>> [row] = dominated_gap(largest=[1.0], ks=[10_000])
    >>> round(row["optimal"], 2), round(row["kov"], 2), round(row["ratio"], 2)
    (1.39, 5.75, 4.14)
    """
    return [
        {
            "largest": top,
            "k": k,
            **_gap(np.array([top, root / math.sqrt(checked_count(k, "k"))]), np.array([1.0, k]), delta),
        }
        for top in largest
        for k in ks
    ]


def heterogeneous_gap(
    spread: Sequence[Row] | None = None, dominated: Sequence[Row] | None = None, delta: float = 1e-6
) -> Any:
    """The KOV closed form divided by the optimum, for spread lists and for dominated lists.

    Args:
        spread: The rows of `spread_gap`; computed by default.
        dominated: The rows of `dominated_gap`; computed by default.
        delta: The delta of the whole, for rows that are computed.

    Returns:
        An Altair chart.

    Raises:
        InvalidValue: If `delta` is not a number from 0 to 1.

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
        alt.Legend(title="largest : smallest epsilon", orient="bottom-right", **_BOX),
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
    dashes = alt.Scale(domain=names, range=[[1, 0], [7, 3], [8, 3, 2, 3], [2, 3], [4, 2], [1, 3]][: len(names)])
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


class NamedEpsilon(Protocol):
    """A theorem's answer: what `farthing.accounting.theorems.table` returns, or anything like it."""

    @property
    def name(self) -> str:
        """What the theorem is called."""

    @property
    def epsilon(self) -> float:
        """The epsilon that the theorem proves."""

    @property
    def applies(self) -> bool:
        """Whether it says anything about these charges."""


def theorem_bars(rows: Iterable[NamedEpsilon], optimal: Bounds, subtitle: str = "") -> Any:
    """Bars of epsilon by theorem, the cheapest on top, with what each wastes over the optimum.

    Theorems that do not apply, or give infinity, are left out.

    Args:
        rows: The theorems' epsilons, as `farthing.accounting.theorems.table` returns them.
        optimal: The optimum.
        subtitle: A line under the title.

    Returns:
        An Altair chart.

    >>> from farthing import compose
    >>> from farthing.accounting.theorems import table
    >>> chart = theorem_bars(table([0.1], [0.0], [100], 1e-6), compose([0.1], counts=[100]).epsilon_at(1e-6))
    >>> chart.to_dict()["data"]["values"][0]["theorem"]
    'optimal'
    """
    bars = [_bar("optimal", optimal.upper, 0.0)] if math.isfinite(optimal.upper) else []
    bars += sorted(
        (_bar(row.name, row.epsilon, optimal.upper) for row in rows if row.applies and math.isfinite(row.epsilon)),
        key=lambda bar: bar["epsilon"],
    )
    alt = altair()
    names = [bar["theorem"] for bar in bars]
    base = alt.Chart(data_of(bars)).encode(
        y=alt.Y("theorem:N", sort=names, title=None, axis=alt.Axis(labelLimit=260, labelFontSize=12, ticks=False)),
        x=alt.X("epsilon:Q", title="epsilon charged for all mechanisms together", scale=alt.Scale(zero=True)),
    )
    bar_marks = base.mark_bar(height={"band": 0.7}).encode(
        color=alt.condition(alt.datum.theorem == "optimal", alt.value(BLACK), alt.value(SKY)),
        tooltip=[alt.Tooltip("theorem:N"), alt.Tooltip("epsilon:Q", format=".6g"), alt.Tooltip("label:N")],
    )
    labels = base.mark_text(align="left", dx=5, fontSize=12).encode(text="label:N")
    return finished(
        (bar_marks + labels).properties(width=480, height=alt.Step(26)),
        _claim(bars),
        subtitle or "Shorter is cheaper; percentages are what a theorem wastes over the optimum.",
    )


def _claim(bars: list[Row]) -> str:
    if len(bars) < 2 or bars[0]["theorem"] != "optimal" or not bars[0]["epsilon"] > 0:
        return "What each theorem charges for the same mechanisms"
    dearest = bars[-1]
    times = dearest["epsilon"] / bars[0]["epsilon"]
    return f"The most expensive theorem ({dearest['theorem']}) charges {times:.3g} times the optimum"


def _bar(name: str, epsilon: float, optimum: float) -> Row:
    label = f"{epsilon:.4g}"
    if 0 < optimum < epsilon:
        label += f"  (+{100 * (epsilon / optimum - 1):.3g} %)"
    return {"theorem": name, "epsilon": epsilon, "label": label}


DEFAULT_KS = tuple(sorted({round(k) for k in np.logspace(0, 3, 40)}))
DEFAULT_DELTAS = tuple(float(f"{delta:.3g}") for delta in np.logspace(-20, -1, 77))


def epsilon_against_k(
    epsilon: float = 0.1, delta_g: float = 1e-6, delta: float = 0.0, ks: Sequence[int] = DEFAULT_KS
) -> Any:
    """Epsilon of k mechanisms against k: the sum grows like k, the optimum like its square root.

    Args:
        epsilon: The epsilon of each mechanism.
        delta_g: The delta of the whole.
        delta: The delta of each mechanism.
        ks: The numbers of mechanisms.

    Returns:
        An Altair chart.

    Raises:
        InvalidValue: If an argument is out of its range.

    >>> chart = epsilon_against_k(ks=(1, 100))
    >>> [round(row["epsilon"], 3) for row in chart.to_dict()["data"]["values"] if row["k"] == 100]
    [10.0, 6.308, 5.756, 4.775]
    """
    epsilon, delta_g, delta = (
        checked_epsilon(epsilon),
        checked_delta(delta_g, "delta_g"),
        checked_delta(delta),
    )
    rows = [row for k in ks for row in four_theorems(epsilon, delta, checked_count(k, "k"), delta_g)]
    alt = altair()
    log = alt.Scale(type="log", nice=False)
    chart = _lines(rows).encode(
        x=alt.X("k:Q", scale=log, title="number of mechanisms k (log scale)", axis=_decades(rows, "k")),
        y=alt.Y("epsilon:Q", scale=log, title="total epsilon (log scale)", axis=_decades(rows, "epsilon")),
    )
    return finished(
        chart,
        "Sums grow like k; the optimum grows like the square root of k",
        [
            f"k mechanisms of ({epsilon:g}, {delta:g})-DP composed at delta = {delta_g:g}.",
            *_honest_line(rows),
        ],
    )


def epsilon_against_delta(
    epsilon: float = 0.1, k: int = 100, delta: float = 0.0, deltas: Sequence[float] = DEFAULT_DELTAS
) -> Any:
    """Epsilon of k mechanisms against the delta of the whole, down to deltas where sums win over closed forms.

    Args:
        epsilon: The epsilon of each mechanism.
        k: How many mechanisms there are.
        delta: The delta of each mechanism.
        deltas: The deltas of the whole.

    Returns:
        An Altair chart.

    Raises:
        InvalidValue: If an argument is out of its range.

    >>> chart = epsilon_against_delta(deltas=(1e-6, 1e-20))
    >>> [round(row["epsilon"], 3) for row in chart.to_dict()["data"]["values"] if row["theorem"] == "optimal"]
    [4.775, 8.665]
    """
    epsilon, k, delta = checked_epsilon(epsilon), checked_count(k, "k"), checked_delta(delta)
    rows = [row for delta_g in deltas for row in four_theorems(epsilon, delta, k, checked_delta(delta_g, "delta_g"))]
    alt = altair()
    chart = _lines(rows).encode(
        x=alt.X(
            "delta:Q",
            scale=alt.Scale(type="log", reverse=True),
            axis=_power_axis(),
            title="total delta (log scale; smaller to the right)",
        ),
        y=alt.Y("epsilon:Q", title="total epsilon", scale=alt.Scale(zero=True)),
    )
    return finished(
        chart,
        "The optimum stays below every closed form as delta shrinks",
        f"{k} mechanisms of ({epsilon:g}, {delta:g})-DP.",
    )


def four_theorems(epsilon: float, delta: float, k: int, delta_g: float) -> list[Row]:
    """Epsilon at `delta_g` of k equal charges under each of the four; a theorem that has no finite answer is left out.

    >>> [(row["theorem"], round(row["epsilon"], 2)) for row in four_theorems(0.1, 0.0, 1000, 1e-6)]
    [('basic', 100.0), ('DRV', 27.14), ('KOV bound', 21.62), ('optimal', 19.34)]
    """
    return [
        {"theorem": THEOREM_LABELS[key], "k": k, "delta": delta_g, "epsilon": value}
        for key, value in epsilons_of_equals(epsilon, delta, k, delta_g).items()
        if math.isfinite(value)
    ]


def _lines(rows: Sequence[Row]) -> Any:
    alt = altair()
    tooltips = [
        alt.Tooltip("theorem:N"),
        alt.Tooltip("k:Q"),
        alt.Tooltip("delta:Q", format=".3g"),
        alt.Tooltip("epsilon:Q", format=".5g"),
    ]
    return (
        alt.Chart(data_of(rows))
        .mark_line(strokeWidth=2.2)
        .encode(tooltip=tooltips, **theorem_encoding("theorem"))
        .properties(width=520, height=340)
    )


def _honest_line(rows: Sequence[Row]) -> list[str]:
    """Up to which k the optimum saves less than one per cent of the sum: few mechanisms gain nothing."""
    sums = {row["k"]: row["epsilon"] for row in rows if row["theorem"] == "basic"}
    best = {row["k"]: row["epsilon"] for row in rows if row["theorem"] == "optimal"}
    equal = [k for k, epsilon in best.items() if k in sums and epsilon >= 0.99 * sums[k]]
    return [f"Up to k = {max(equal)} nothing can be saved over the sum (less than 1 %)."] if equal else []


def _decades(rows: Sequence[Row], field: str) -> Any:
    """Ticks at powers of ten only: log scales label too many otherwise."""
    values = [math.log10(row[field]) for row in rows if row[field] > 0]
    powers = range(math.floor(min(values)), math.ceil(max(values)) + 1)
    return altair().Axis(values=[10.0**power for power in powers], format="~g")


def _power_axis() -> Any:
    return altair().Axis(format="e", tickCount=6)

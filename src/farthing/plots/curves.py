"""Epsilon of a whole, against the number of mechanisms and against delta, under four theorems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from farthing.accounting.equal_charges import epsilons_of_equals
from farthing.plots._style import Row, altair, data_of, finished, theorem_encoding
from farthing.privacy.events import checked_count, checked_delta, checked_epsilon

DEFAULT_KS = tuple(sorted({round(k) for k in np.logspace(0, 3, 40)}))
DEFAULT_DELTAS = tuple(float(f"{delta:.3g}") for delta in np.logspace(-20, -1, 77))


def epsilon_against_k(
    epsilon: float = 0.1, delta_g: float = 1e-6, delta: float = 0.0, ks: Sequence[int] = DEFAULT_KS
) -> Any:
    """Epsilon of k mechanisms against k: the sum grows like k, the optimum like its square root.

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
        y=alt.Y(
            "epsilon:Q", scale=log, title="epsilon of the whole (log scale)", axis=_decades(rows, "epsilon")
        ),
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

    >>> chart = epsilon_against_delta(deltas=(1e-6, 1e-20))
    >>> [round(row["epsilon"], 3) for row in chart.to_dict()["data"]["values"] if row["theorem"] == "optimal"]
    [4.775, 8.665]
    """
    epsilon, k, delta = checked_epsilon(epsilon), checked_count(k, "k"), checked_delta(delta)
    rows = [
        row
        for delta_g in deltas
        for row in four_theorems(epsilon, delta, k, checked_delta(delta_g, "delta_g"))
    ]
    alt = altair()
    chart = _lines(rows).encode(
        x=alt.X(
            "delta:Q", scale=alt.Scale(type="log", reverse=True), axis=_power_axis(),
            title="delta of the whole (log scale; smaller to the right)",
        ),
        y=alt.Y("epsilon:Q", title="epsilon of the whole", scale=alt.Scale(zero=True)),
    )  # fmt: skip
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
        {"theorem": name, "k": k, "delta": delta_g, "epsilon": value}
        for name, value in epsilons_of_equals(epsilon, delta, k, delta_g).items()
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

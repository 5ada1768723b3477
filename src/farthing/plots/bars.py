"""One comparison as bars: what each theorem charges for the same mechanisms, the optimum first."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Protocol

from farthing.numerics import Bounds
from farthing.plots._style import BLACK, SKY, Row, altair, data_of, finished


class NamedEpsilon(Protocol):
    """A theorem's answer: what `farthing.accounting.theorems.table` returns, or anything like it."""

    @property
    def name(self) -> str:
        """What the theorem is called."""

    @property
    def epsilon(self) -> float:
        """The epsilon it gives."""

    @property
    def applies(self) -> bool:
        """Whether it says anything about these charges."""


def theorem_bars(rows: Iterable[NamedEpsilon], optimal: Bounds, subtitle: str = "") -> Any:
    """Bars of epsilon by theorem, the cheapest on top, with what each wastes over the optimum.

    Theorems that do not apply, or give infinity, are left out.

    >>> from farthing import compose
    >>> from farthing.accounting.theorems import table
    >>> chart = theorem_bars(table([0.1], [0.0], [100], 1e-6), compose([0.1], counts=[100]).epsilon_at(1e-6))
    >>> chart.to_dict()["data"]["values"][0]["theorem"]
    'optimal'
    """
    bars = [_bar("optimal", optimal.upper, 0.0)] if math.isfinite(optimal.upper) else []
    bars += sorted(
        (
            _bar(row.name, row.epsilon, optimal.upper)
            for row in rows
            if row.applies and math.isfinite(row.epsilon)
        ),
        key=lambda bar: bar["epsilon"],
    )
    alt = altair()
    names = [bar["theorem"] for bar in bars]
    base = alt.Chart(data_of(bars)).encode(
        y=alt.Y(
            "theorem:N", sort=names, title=None, axis=alt.Axis(labelLimit=260, labelFontSize=12, ticks=False)
        ),
        x=alt.X("epsilon:Q", title="epsilon charged for all mechanisms together", scale=alt.Scale(zero=True)),
    )
    drawn = base.mark_bar(height={"band": 0.7}).encode(
        color=alt.condition(alt.datum.theorem == "optimal", alt.value(BLACK), alt.value(SKY)),
        tooltip=[alt.Tooltip("theorem:N"), alt.Tooltip("epsilon:Q", format=".6g"), alt.Tooltip("label:N")],
    )
    labels = base.mark_text(align="left", dx=5, fontSize=12).encode(text="label:N")
    return finished(
        (drawn + labels).properties(width=480, height=alt.Step(26)),
        _claim(bars),
        subtitle or "Shorter is cheaper; percentages are what a theorem wastes over the optimum.",
    )


def _claim(bars: list[Row]) -> str:
    if len(bars) < 2 or bars[0]["theorem"] != "optimal" or not bars[0]["epsilon"] > 0:
        return "What each theorem charges for the same mechanisms"
    dearest = bars[-1]
    times = dearest["epsilon"] / bars[0]["epsilon"]
    return f"The dearest theorem ({dearest['theorem']}) charges {times:.3g} times the optimum"


def _bar(name: str, epsilon: float, optimum: float) -> Row:
    label = f"{epsilon:.4g}"
    if 0 < optimum < epsilon:
        label += f"  (+{100 * (epsilon / optimum - 1):.3g} %)"
    return {"theorem": name, "epsilon": epsilon, "label": label}

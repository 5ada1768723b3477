"""The trade-off curve of one composition: the f-DP view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farthing.plots._style import BLUE, altair, data_of, finished

if TYPE_CHECKING:
    from farthing.accounting import Composition


def tradeoff_curve(composition: Composition) -> Any:
    """The least missed-detection rate of any test, against its false-alarm rate.

    >>> from farthing import compose
    >>> points = tradeoff_curve(compose([0.5, 0.5])).to_dict()["data"]["values"]
    >>> all(point["beta"] <= 1 - point["alpha"] for point in points)
    True
    """
    curve = composition.tradeoff()
    rows = [
        {"alpha": float(alpha), "beta": float(beta), "blind": 1 - float(alpha)}
        for alpha, beta in zip(curve.alpha, curve.beta, strict=True)
    ]
    alt = altair()
    unit = alt.Scale(domain=[0, 1])
    base = alt.Chart(data_of(rows)).encode(
        x=alt.X("alpha:Q", title="probability of false alarm, alpha", scale=unit, axis=alt.Axis(tickCount=5))
    )
    area = base.mark_area(color=BLUE, opacity=0.12).encode(
        y=alt.Y(
            "beta:Q",
            title="least probability of missed detection, f(alpha)",
            scale=unit,
            axis=alt.Axis(tickCount=5),
        ),
        y2="blind:Q",
    )
    line = base.mark_line(color=BLUE, strokeWidth=2.2).encode(
        y="beta:Q",
        tooltip=[alt.Tooltip("alpha:Q", format=".4g"), alt.Tooltip("beta:Q", format=".4g")],
    )
    blind = base.mark_line(color="#b5b5b5", strokeWidth=1).encode(y="blind:Q")
    counted = "1 mechanism" if composition.k == 1 else f"{composition.k:,} mechanisms"
    return finished(
        (area + line + blind).properties(width=420, height=420),
        "No test of one person's presence gets below this curve",
        [
            f"{counted} composed; the grey diagonal is blind guessing.",
            "The thinner the band between them, the more privacy.",
        ],
    )

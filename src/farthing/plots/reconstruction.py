"""How much of a secret column comes back, against the noise on the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from farthing.errors import InvalidValue
from farthing.plots._style import BLUE, GREY, VERMILLION, altair, data_of, finished


def share_recovered(
    noise: Sequence[float],
    shares: Sequence[float],
    *,
    rows: int,
    queries: int,
    marked: Sequence[tuple[str, float, float]] = (),
) -> Any:
    """The share of rows that an attacker guesses right, for growing noise; 0.5 is blind guessing.

    `marked` are points of their own: what they are called, their noise and their share.

    >>> chart = share_recovered([1.0, 10.0], [1.0, 0.7], rows=200, queries=800, marked=[("ours", 155.0, 0.52)])
    >>> len(chart.to_dict()["layer"])
    5
    """
    if len(noise) != len(shares) or not noise:
        raise InvalidValue(
            "shares", len(shares), f"must be as many as noises, {len(noise)}, and at least one"
        )
    alt = altair()
    line_rows = [{"noise": float(n), "share": float(s)} for n, s in zip(noise, shares, strict=True)]
    point_rows = [{"name": name, "noise": float(n), "share": float(s)} for name, n, s in marked]
    x = alt.X(
        "noise:Q",
        title="standard deviation of the noise on a count",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(tickCount=6, format="~g"),
    )
    y = alt.Y(
        "share:Q",
        title="share of the column guessed right",
        scale=alt.Scale(domain=[0.45, 1.0]),
        axis=alt.Axis(format="%", tickCount=6),
    )
    tooltip = [alt.Tooltip("noise:Q", format=".3g"), alt.Tooltip("share:Q", format=".1%")]
    line = alt.Chart(data_of(line_rows)).mark_line(color=BLUE, strokeWidth=2.2).encode(x=x, y=y)
    dots = alt.Chart(data_of(line_rows)).mark_point(color=BLUE, filled=True).encode(x=x, y=y, tooltip=tooltip)
    blind = alt.Chart(data_of([{"share": 0.5}])).mark_rule(color=GREY, strokeDash=[4, 3]).encode(y=y)
    points = alt.Chart(data_of(point_rows)).encode(x=x, y=y, tooltip=["name:N", *tooltip])
    told = points.mark_text(dy=-26, color=VERMILLION, fontSize=12).encode(text="name:N")
    return finished(
        (
            blind
            + line
            + dots
            + points.mark_point(color=VERMILLION, filled=True, size=90, shape="diamond")
            + told
        ).properties(width=560, height=340),
        "Answers that are too accurate give the whole column away",
        [
            f"{queries:,} counts over random subsets of {rows:,} rows, solved by least squares. "
            "Dashed: blind guessing.",
            "Private noise grows with the number of questions, so that asking more does not help.",
        ],
    )

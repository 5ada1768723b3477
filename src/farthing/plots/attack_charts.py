"""How much of a secret column comes back, against the noise on the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from farthing.errors import InvalidValue
from farthing.plots._style import BLACK, BLUE, GREY, VERMILLION, Row, altair, data_of, finished

_NAMES = ("naive reuse", "reusable holdout")
_WIDTH = 1 / 128  # of a bar, in accuracy: a round number of the steps that corrected answers come in


def holdout_claims(naive: Sequence[float], reusable: Sequence[float], truth: float = 0.5) -> Any:
    """Claimed accuracies of both analysts, one for each repetition, as bars of how many claimed how much.

    Args:
        naive: What the analyst who reuses a plain holdout claimed, one number for each repetition.
        reusable: What the analyst who asks a `Holdout` claimed.
        truth: The true accuracy.

    Returns:
        An Altair chart.

    >>> chart = holdout_claims([0.62, 0.63, 0.62], [0.5, 0.49, 0.51])
    >>> chart.to_dict()["layer"][0]["encoding"]["color"]["scale"]["domain"]
    ['naive reuse', 'reusable holdout']
    """
    rows = [row for name, claims in zip(_NAMES, (naive, reusable), strict=True) for row in _bars(name, claims)]
    alt = altair()
    bars = (
        alt.Chart(data_of(rows))
        .mark_bar(opacity=0.85)
        .encode(
            x=alt.X("from:Q", title="claimed accuracy", scale=alt.Scale(zero=False), axis=alt.Axis(format=".2f")),
            x2="to:Q",
            y=alt.Y("count:Q", title="repetitions"),
            y2=alt.datum(0),
            color=alt.Color(
                "analyst:N",
                sort=list(_NAMES),
                scale=alt.Scale(domain=list(_NAMES), range=[VERMILLION, BLUE]),
                legend=alt.Legend(title=None, orient="top"),
            ),
            tooltip=[alt.Tooltip("analyst:N"), alt.Tooltip("from:Q", format=".3f"), alt.Tooltip("count:Q")],
        )
    )
    line = alt.Chart(data_of([{"truth": float(truth)}])).mark_rule(color=BLACK, strokeDash=[4, 3], strokeWidth=1.5)
    return finished(
        alt.layer(bars, line.encode(x="truth:Q")).properties(width=520, height=260),
        "A holdout that is read freely finds structure in pure noise",
        "Accuracies claimed for the best vote of 1,000 coins; the dashed line is the truth.",
    )


def _bars(name: str, claims: Sequence[float]) -> list[Row]:
    values = np.asarray(claims, dtype=float)
    if not (values.ndim == 1 and values.size and bool(np.all((values >= 0) & (values <= 1)))):
        raise InvalidValue(name, "an array", "must be accuracies between 0 and 1, at least one")
    places, counts = np.unique(np.floor(values / _WIDTH + 0.5).astype(int), return_counts=True)
    return [
        {"analyst": name, "from": (place - 0.5) * _WIDTH, "to": (place + 0.5) * _WIDTH, "count": count}
        for place, count in zip(places.tolist(), counts.tolist(), strict=True)
    ]


def share_recovered(
    noise: Sequence[float],
    shares: Sequence[float],
    *,
    rows: int,
    queries: int,
    marked: Sequence[tuple[str, float, float]] = (),
) -> Any:
    """The share of rows that an attacker guesses right, for growing noise; 0.5 is blind guessing.

    Args:
        noise: The standard deviations of the noise.
        shares: The share of rows guessed right at each of them.
        rows: How many rows there are.
        queries: How many questions the attacker asks.
        marked: Further points: what each is called, its noise and its share.

    Returns:
        An Altair chart.

    Raises:
        InvalidValue: If there is not one share for each noise.

    >>> chart = share_recovered([1.0, 10.0], [1.0, 0.7], rows=200, queries=800, marked=[("ours", 155.0, 0.52)])
    >>> len(chart.to_dict()["layer"])
    5
    """
    if len(noise) != len(shares) or not noise:
        raise InvalidValue("shares", len(shares), f"must be one for each noise, {len(noise)}, and at least one")
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
    names = points.mark_text(dy=-26, color=VERMILLION, fontSize=12).encode(text="name:N")
    return finished(
        (
            blind + line + dots + points.mark_point(color=VERMILLION, filled=True, size=90, shape="diamond") + names
        ).properties(width=560, height=340),
        "Answers that are too accurate reveal the whole column",
        [
            f"{queries:,} counts over random subsets of {rows:,} rows, solved by least squares. "
            "Dashed: blind guessing.",
            "Private noise grows with the number of questions, so asking more does not help.",
        ],
    )

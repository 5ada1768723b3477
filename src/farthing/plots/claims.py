"""What two analysts claim about pure noise: one reads the holdout set, the other one asks it with care."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from farthing.errors import InvalidValue
from farthing.plots._style import BLACK, BLUE, VERMILLION, Row, altair, data_of, finished

_NAMES = ("naive reuse", "reusable holdout")
_WIDTH = 1 / 128  # of a bar, in accuracy: a round number of the steps that corrected answers come in


def holdout_claims(naive: Sequence[float], reusable: Sequence[float], truth: float = 0.5) -> Any:
    """Claimed accuracies of both analysts, one for each repetition, as bars of how many claimed how much.

    >>> chart = holdout_claims([0.62, 0.63, 0.62], [0.5, 0.49, 0.51])
    >>> chart.to_dict()["layer"][0]["encoding"]["color"]["scale"]["domain"]
    ['naive reuse', 'reusable holdout']
    """
    rows = [
        row for name, claims in zip(_NAMES, (naive, reusable), strict=True) for row in _bars(name, claims)
    ]
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
                "analyst:N", sort=list(_NAMES), scale=alt.Scale(domain=list(_NAMES), range=[VERMILLION, BLUE]),
                legend=alt.Legend(title=None, orient="top"),
            ),
            tooltip=[alt.Tooltip("analyst:N"), alt.Tooltip("from:Q", format=".3f"), alt.Tooltip("count:Q")],
        )
    )  # fmt: skip
    line = alt.Chart(data_of([{"truth": float(truth)}])).mark_rule(
        color=BLACK, strokeDash=[4, 3], strokeWidth=1.5
    )
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

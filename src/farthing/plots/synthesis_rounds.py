"""How a synthesis converged: the error that each round found, and the noise it was measured with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from farthing.errors import InvalidValue
from farthing.plots._style import BLUE, ORANGE, Row, altair, data_of, finished

_BEFORE, _NOISE = "error of the model before", "error of the noise"


def synthesis_rounds(rounds: Sequence[Mapping[str, Any]]) -> Any:
    """For each round of a synthesis, how wrong the model was about the table that was chosen, beside its noise.

    `rounds` are those of `SynthesisPlan.rounds`: noisy numbers only. Where both lines meet, more rounds would find
    little but noise.

    >>> first = {"columns": ["age", "sex"], "cells": 20, "error_before": 0.3, "noise": 0.01}
    >>> second = {"columns": ["age", "income"], "cells": 60, "error_before": 0.1, "noise": 0.02}
    >>> synthesis_rounds([first, second]).to_dict()["title"]["text"]
    'in 2 rounds the largest error found fell from 30% to 10%'
    """
    if not rounds:
        raise InvalidValue("rounds", [], "must hold at least one round", "a synthesis of one column has none")
    alt = altair()
    rows = [row for number, one in enumerate(rounds, start=1) for row in _lines(number, one)]
    encodings = {
        "x": alt.X("round:Q", title="round", axis=alt.Axis(tickMinStep=1, format="d"), scale=alt.Scale(nice=False)),
        "y": alt.Y("error:Q", title="total variation", axis=alt.Axis(format="%"), scale=alt.Scale(zero=True)),
        "color": alt.Color(
            "what:N", title=None, scale=alt.Scale(domain=[_BEFORE, _NOISE], range=[BLUE, ORANGE])
        ),
        "tooltip": [
            alt.Tooltip("round:Q", format="d"), alt.Tooltip("columns:N"), alt.Tooltip("cells:Q", format="d"),
            alt.Tooltip("what:N"), alt.Tooltip("error:Q", format=".2%"),
        ],
    }  # fmt: skip
    chart = alt.Chart(data_of(rows))
    layers = alt.layer(
        chart.mark_line(strokeWidth=2.2).encode(**encodings),
        chart.mark_point(filled=True, size=45, opacity=1).encode(**encodings),
    )
    count, first, last = len(rounds), rounds[0]["error_before"], rounds[-1]["error_before"]
    return finished(
        layers.properties(width=560, height=320),
        f"in {count} round{'s' * (count != 1)} the largest error found fell from {first:.0%} to {last:.0%}",
        ["Estimated from noisy tables: one point for each table that was chosen, before the model knew it."],
    )


def _lines(number: int, one: Mapping[str, Any]) -> list[Row]:
    about = {"round": number, "columns": ", ".join(one["columns"]), "cells": one["cells"]}
    return [
        {"what": _BEFORE, "error": one["error_before"], **about},
        {"what": _NOISE, "error": one["noise"], **about},
    ]

"""How the total error of a strategy grows with the size of the domain: predicted lines, measured points, slopes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from farthing.errors import InvalidValue
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

_COLOURS = (VERMILLION, ORANGE, PURPLE, BLUE, GREEN, BLACK)
_DASHES = ([2, 3], [8, 3, 2, 3], [4, 2], [7, 3], [1, 3], [1, 0])


def growth_exponent(ks: Sequence[int], totals: Sequence[float], logs: float = 0.0) -> float:
    """The slope p of a least-squares line through log(total / log2(k)^logs) against log k: total ~ k^p log(k)^logs.

    Args:
        ks: Two or more different sizes > 1.
        totals: The total at each size, > 0.
        logs: The power of the logarithm that is taken out first.

    Returns:
        The slope.

    Raises:
        InvalidValue: If there are fewer than two sizes, or a number is out of its range.

    >>> growth_exponent([16, 64, 256], [16**3, 64**3, 256**3])
    3.0
    >>> growth_exponent([16, 64, 256], [16**2 * 4**3, 64**2 * 6**3, 256**2 * 8**3], logs=3)
    2.0
    """
    sizes, errors = np.asarray(ks, dtype=float), np.asarray(totals, dtype=float)
    if not (sizes.shape == errors.shape and len(set(sizes)) >= 2):
        raise InvalidValue("ks", list(ks), "must be two or more different sizes, one for each total")
    if not (np.all(sizes > 1) and np.all(errors > 0) and np.all(np.isfinite(errors))):
        raise InvalidValue("totals", "an array", "must be finite and > 0, at sizes > 1")
    levels = np.log(errors) - logs * np.log(np.log2(sizes))
    return round(float(np.polyfit(np.log(sizes), levels, 1)[0]), 12)


def error_growth(rows: Sequence[Row]) -> Any:
    """Total squared error against the number of cells k, on logarithmic axes: one line for each strategy.

    The legend shows the power of k that fits the measured points best (the predicted ones, if fewer than two were
    measured), times log(k) to the power "logs" if the rows have one.

    Args:
        rows: Mappings with "strategy", "k", "predicted", and "measured" where it was measured.

    Returns:
        An Altair chart.

    Raises:
        InvalidValue: If there is no strategy, or more than there are colours.

    >>> rows = [{"strategy": "identity", "k": k, "predicted": k**3, "measured": 1.01 * k**3} for k in (16, 64)]
    >>> error_growth(rows).to_dict()["layer"][0]["encoding"]["color"]["scale"]["domain"]
    ['identity: k^3.00']
    """
    alt = altair()
    lines = list(dict.fromkeys(str(row["strategy"]) for row in rows))
    if not lines or len(lines) > len(_COLOURS):
        raise InvalidValue("rows", len(lines), f"must hold 1 to {len(_COLOURS)} strategies")
    names = {line: f"{line}: {_growth(rows, line)}" for line in lines}
    named = [{**row, "strategy": names[str(row["strategy"])]} for row in rows]
    return finished(
        alt.layer(*_growth_layers(named, list(names.values()))).properties(width=520, height=380),
        "A better strategy changes how the error grows, not only how large it is",
        "Lines: predicted before anything is drawn. Points: measured. Powers: fitted to the points.",
    )


def _growth_layers(rows: Sequence[Row], order: list[str]) -> list[Any]:
    """A line of predicted errors for each strategy, and points where some were measured."""
    alt = altair()
    legend = alt.Legend(title=None, orient="top-left", fillColor="white", padding=6, strokeColor="#ddd")
    colour = alt.Color(
        "strategy:N",
        sort=order,
        legend=legend,
        scale=alt.Scale(domain=order, range=list(_COLOURS[: len(order)])),
    )
    dash = alt.StrokeDash(
        "strategy:N", sort=order, legend=legend, scale=alt.Scale(domain=order, range=list(_DASHES[: len(order)]))
    )
    sizes = sorted({int(row["k"]) for row in rows})
    x = alt.X(
        "k:Q",
        title="cells k (log scale)",
        scale=alt.Scale(type="log", base=2, nice=False),
        axis=alt.Axis(values=sizes, format="~d"),
    )
    y_scale = alt.Scale(type="log", nice=True)
    axis = alt.Axis(format="~e", tickCount=8)
    tips = [alt.Tooltip("strategy:N"), alt.Tooltip("k:Q"), alt.Tooltip("predicted:Q", format=".4g")]
    predicted = (
        alt.Chart(data_of(rows))
        .mark_line(strokeWidth=2.2)
        .encode(
            x=x,
            y=alt.Y("predicted:Q", title="total squared error (log scale)", scale=y_scale, axis=axis),
            color=colour,
            strokeDash=dash,
            tooltip=tips,
        )
    )
    measured_rows = [row for row in rows if _is_measured(row)]
    measured = (
        alt.Chart(data_of(measured_rows))
        .mark_point(filled=True, size=55, opacity=1.0)
        .encode(
            x=x,
            y=alt.Y("measured:Q", scale=y_scale),
            color=colour,
            tooltip=[*tips, alt.Tooltip("measured:Q", format=".4g")],
        )
    )
    return [predicted, measured] if measured_rows else [predicted]


def _is_measured(row: Row) -> bool:
    value = row.get("measured")
    return value is not None and math.isfinite(value) and value > 0


def _growth(rows: Sequence[Row], line: str) -> str:
    own = [row for row in rows if str(row["strategy"]) == line]
    points = [(int(row["k"]), float(row["measured"])) for row in own if _is_measured(row)]
    if len({k for k, _ in points}) < 2:
        points = [(int(row["k"]), float(row["predicted"])) for row in own]
    logs = float(own[0].get("logs", 0))
    power = growth_exponent([k for k, _ in points], [total for _, total in points], logs)
    return f"k^{power:.2f}" + (f" log^{logs:g} k" if logs else "")

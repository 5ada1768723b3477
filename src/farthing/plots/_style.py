"""Altair on demand, and one look for every chart.

Colours are Okabe and Ito's, which people with any common colour blindness can distinguish; lines also differ in dash,
so that a picture survives a black-and-white printer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from farthing.accounting.theorems import BLACK_BOX
from farthing.errors import MissingExtra

BLACK, ORANGE, SKY, GREEN, BLUE, VERMILLION, PURPLE, GREY = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#6B6B6B",
)  # fmt: skip

# The four theorems keep their colour, dash and order in every picture.
_COLOURS = {"basic": GREY, "advanced": VERMILLION, "kov": BLUE, "optimal": BLACK}
_DASHES = {"basic": [2, 3], "advanced": [8, 3, 2, 3], "kov": [7, 3], "optimal": [1, 0]}
THEOREM_LABELS = {theorem.key: theorem.label for theorem in BLACK_BOX}

FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"

Row = dict[str, Any]


def altair() -> Any:
    """The altair module, or a refusal that names the extra to install."""
    try:
        import altair as module
    except ImportError:
        raise MissingExtra("pictures", "altair", "plots") from None
    return module


def require_renderer() -> None:
    """Refuse early when a picture could be described but not drawn to a file."""
    altair()
    try:
        import vl_convert  # noqa: F401
    except ImportError:
        raise MissingExtra("pictures", "vl-convert-python", "plots") from None


def data_of(rows: Sequence[Row]) -> Any:
    """Rows as inline data: no data frame library is needed."""
    return altair().Data(values=[dict(row) for row in rows])


def finished(chart: Any, title: str, subtitle: Sequence[str] | str = ()) -> Any:
    """`chart` with its claim as title, and the common look."""
    lines = [subtitle] if isinstance(subtitle, str) else list(subtitle)
    return (
        chart.properties(
            title=altair().TitleParams(
                text=title,
                subtitle=lines,
                anchor="start",
                fontSize=15,
                subtitleFontSize=12,
                subtitleColor="#444",
                offset=10,
            ),
            padding=14,
            background="white",
        )
        .configure(font=FONT)
        .configure_view(stroke=None)
        .configure_axis(
            gridColor="#e6e6e6",
            domainColor="#888",
            tickColor="#888",
            labelFontSize=11,
            titleFontSize=12,
            titleFontWeight="normal",
            titlePadding=8,
        )
        .configure_legend(
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            symbolStrokeWidth=2.5,
            symbolSize=220,
            labelLimit=320,
        )
    )


def theorem_encoding(title: str) -> dict[str, Any]:
    """Colour and dash of the four theorems, with one legend for both."""
    alt = altair()
    labels, keys = list(THEOREM_LABELS.values()), list(THEOREM_LABELS)
    return {
        "color": alt.Color(
            "theorem:N",
            title=title,
            sort=labels,
            scale=alt.Scale(domain=labels, range=[_COLOURS[key] for key in keys]),
        ),
        "strokeDash": alt.StrokeDash(
            "theorem:N",
            title=title,
            sort=labels,
            scale=alt.Scale(domain=labels, range=[_DASHES[key] for key in keys]),
        ),
    }

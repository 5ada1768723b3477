"""Charts to files, without a network: SVG, PNG, or one HTML file that carries its own viewer."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from farthing.errors import InvalidValue
from farthing.plots._style import require_renderer

FORMATS = (".svg", ".png", ".html")


def checked_path(path: str | Path) -> Path:
    """`path` when a chart can be saved there: a known ending, in a directory that exists.

    >>> checked_path("chart.pdf")
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: path='chart.pdf': must end in .svg, .png or .html; rename the file.
    """
    place = Path(path)
    if place.suffix.lower() not in FORMATS:
        raise InvalidValue("path", str(path), "must end in .svg, .png or .html", "rename the file")
    if not place.parent.is_dir():
        raise InvalidValue(
            "path",
            str(path),
            f"must lie in a directory that exists, and {place.parent} does not",
            "make it first, or choose another",
        )
    return place


def save(chart: Any, path: str | Path) -> Path:
    """Write a chart to a file whose ending says in which form.

    The HTML form shows exact numbers under the pointer; everything it needs is inside the file.

    Args:
        chart: An Altair chart.
        path: Where to write it: `.svg`, `.png` or `.html`.

    Returns:
        The path.

    Raises:
        InvalidValue: If the ending is another one, or the file cannot be written.

    >>> import tempfile
    >>> from farthing.plots import tradeoff_curve, save
    >>> from farthing import compose
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     save(tradeoff_curve(compose([0.5, 0.5])), f"{directory}/curve.svg").stat().st_size > 1000
    True
    """
    place = checked_path(path)
    require_renderer()
    kind = place.suffix.lower()
    content = png_of(chart) if kind == ".png" else (html_of if kind == ".html" else svg_of)(chart).encode()
    try:
        place.write_bytes(content)
    except OSError as problem:
        raise InvalidValue("path", str(path), f"cannot be written ({problem.strerror})", "choose another") from None
    return place


def svg_of(chart: Any) -> str:
    """`chart` as SVG text, ready to be put into a page."""
    require_renderer()
    text = io.StringIO()
    chart.save(text, format="svg")
    return text.getvalue()


def png_of(chart: Any, pixels_per_inch: int = 144) -> bytes:
    """`chart` as a PNG image."""
    require_renderer()
    data = io.BytesIO()
    chart.save(data, format="png", ppi=pixels_per_inch)
    return data.getvalue()


def png_of_svg(svg: str, pixels_per_inch: int = 144) -> bytes:
    """The PNG image of a chart that is SVG text already: the same bytes as `png_of`, at a fifth of the time."""
    require_renderer()
    import vl_convert

    image: bytes = vl_convert.svg_to_png(svg, ppi=pixels_per_inch)
    return image


def html_of(chart: Any) -> str:
    """`chart` as one HTML page with hover texts, its viewer inside; it asks no server for anything."""
    require_renderer()
    page = chart.to_html(inline=True, embed_options={"actions": {"export": True, "source": False, "editor": False}})
    # The viewer knows the address of an online editor. Its menu entry is off; the address goes too, so that nobody
    # who reads the file has to wonder.
    return str(page).replace("https://vega.github.io/editor/", "about:blank")

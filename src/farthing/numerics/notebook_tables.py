"""What a notebook shows: small tables in HTML that follow the colours around them, light or dark.

Every text is escaped, so that a label or a name is shown as it is written and never read as markup. Colours are those
of the notebook: lines and bars are drawn with its text colour, paler.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_CELL = "padding:.2em .8em .2em 0;border:0;background:none;color:inherit"
_LINE = "border-bottom:1px solid rgba(128,128,128,.4)"
_PALE = "opacity:.7;font-size:90%"
_BAR = "display:inline-block;position:relative;width:12em;height:.8em;vertical-align:middle"
_MARK = "position:absolute;background:currentColor;border-radius:1px"


class Markup(str):
    """Text that is HTML already: what the functions here make."""

    __slots__ = ()


def html_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    title: str = "",
    notes: Sequence[str] = (),
    numbers: Sequence[int] = (),
) -> str:
    """A table with a title and notes; `numbers` are the columns that are aligned to the right.

    >>> html_table(["sex"], [["<F>"]]).count("&lt;F&gt;")
    1
    """
    parts = [f"<div><b>{escape(title)}</b></div>"] if title else []
    parts.append('<table style="border-collapse:collapse;margin:.3em 0">')
    if any(heads):
        parts.append(f"<tr>{''.join(_cell('th', head, place in numbers) for place, head in enumerate(heads))}</tr>")
    parts += [
        f"<tr>{''.join(_cell('td', cell, place in numbers) for place, cell in enumerate(row))}</tr>" for row in rows
    ]
    parts.append("</table>")
    return "".join([*parts, *(f'<div style="{_PALE}">{escape(note)}</div>' for note in notes)])


def html_text(text: str) -> str:
    """Text as it stands, with its lines."""
    return f'<pre style="white-space:pre-wrap;background:none;color:inherit;margin:.3em 0">{escape(text)}</pre>'


def html_polygon(corners: Sequence[tuple[float, float]], *, title: str = "", notes: Sequence[str] = ()) -> str:
    """A polygon in the unit square, with (0, 0) at the lower left and the diagonal from (0, 1) to (1, 0)."""
    points = " ".join(f"{x:.5f},{1 - y:.5f}" for x, y in corners)
    square = '<rect width="1" height="1" fill="none" stroke="currentColor" stroke-width=".005" opacity=".5"/>'
    diagonal = '<path d="M0 0L1 1" stroke="currentColor" stroke-width=".005" stroke-dasharray=".02" opacity=".5"/>'
    shape = (
        f'<polygon points="{points}" fill="currentColor" fill-opacity=".25" stroke="currentColor" stroke-width=".01"/>'
    )
    picture = f'<svg viewBox="-.02 -.02 1.04 1.04" width="180" height="180">{square}{diagonal}{shape}</svg>'
    head = f"<div><b>{escape(title)}</b></div>" if title else ""
    return head + picture + "".join(f'<div style="{_PALE}">{escape(note)}</div>' for note in notes)


def share_bar(shares: Sequence[float]) -> Markup:
    """A bar of several parts of a whole, each paler than the one before; what is left stays empty."""
    parts, start = [], 0.0
    for place, share in enumerate(shares):
        width = max(0.0, min(share, 1 - start))
        strength = 0.8 / (place + 1)
        parts.append(
            f'<span style="{_MARK};left:{100 * start:.2f}%;width:{100 * width:.2f}%;top:0;bottom:0;'
            f'opacity:{strength:.2f}"></span>'
        )
        start += width
    return Markup(f'<span style="{_BAR};outline:1px solid rgba(128,128,128,.5)">{"".join(parts)}</span>')


def interval_mark(value: float, lower: float, upper: float, least: float, most: float) -> Markup:
    """A line from one end of an interval to the other, with a mark at the value, on the scale from least to most."""
    span = most - least
    if not span > 0:
        return Markup("")
    left, right, middle = (100 * (end - least) / span for end in (lower, upper, value))
    return Markup(
        f'<span style="{_BAR}">'
        f'<span style="{_MARK};left:{left:.2f}%;width:{max(0.5, right - left):.2f}%;top:.35em;height:.12em;opacity:.6">'
        f'</span><span style="{_MARK};left:calc({middle:.2f}% - .1em);width:.2em;top:.1em;height:.6em"></span></span>'
    )


def _cell(kind: str, content: object, is_number: bool) -> str:
    align = "right" if is_number else "left"
    text = content if isinstance(content, Markup) else escape(str(content))
    return f'<{kind} style="{_CELL};{_LINE};text-align:{align}">{text}</{kind}>'

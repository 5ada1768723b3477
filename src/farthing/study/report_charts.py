"""Charts of a report as plain SVG text: values with their error bars, prices, the budget. No library, no script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise

from farthing.study.words import shown

_ROW = 22
_NARROW = 500
MOST_BARS = 60
"""More would not fit on a page."""


def error_bars(rows: Sequence[tuple[str, float, float, float]], width: int = 720) -> str:
    """A dot for each value and a line for its interval: (label, value, lower, upper); bars where zero is near.

    >>> "<svg" in error_bars([("F", 10.0, 8.0, 12.0)])
    True
    """
    kept = [row for row in rows if all(math.isfinite(number) for number in row[1:])][:MOST_BARS]
    if not kept:
        return ""
    low, high = min(row[2] for row in kept), max(row[3] for row in kept)
    from_zero = 0 <= low < 0.8 * high
    if from_zero:
        low = 0.0
    span = (high - low) or 1.0
    letters = 28 if width > _NARROW else 16
    left = 16 + 7 * min(letters, max(len(row[0]) for row in kept))
    inner = width - left - 40
    height = _ROW * len(kept) + 34

    def x(value: float) -> float:
        return left + inner * (value - low) / span

    parts = [_open(width, height, "values with their error bars")]
    step = _step(low, high, 5 if width > _NARROW else 3)
    for tick in _ticks(low, high, step):
        parts.append(f'<line class="grid" x1="{x(tick):.1f}" y1="6" x2="{x(tick):.1f}" y2="{height - 26}"/>')
        parts.append(
            f'<text class="tick" x="{x(tick):.1f}" y="{height - 10}" text-anchor="middle">{_tick(tick, step)}</text>'
        )
    for row, (label, value, lower, upper) in enumerate(kept):
        y = 18 + _ROW * row
        name = escape(_cut(label, letters))
        parts.append(f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{name}</text>')
        if from_zero:
            parts.append(
                f'<rect class="amount" x="{left}" y="{y - 7}" width="{x(value) - left:.1f}" height="14"/>'
            )
        parts.append(f'<line class="bar" x1="{x(lower):.1f}" y1="{y}" x2="{x(upper):.1f}" y2="{y}"/>')
        parts.append(f'<circle class="dot" cx="{x(value):.1f}" cy="{y}" r="4"/>')
    return "".join([*parts, "</svg>"])


def curve(rows: Sequence[tuple[str, float, float, float]], width: int = 720) -> str:
    """The values of very many neighbouring cells as a line and their intervals as a band; where cells are finer than
    the picture, the line is their mean and the band holds all of them.

    >>> "<path" in curve([(str(n), n, n - 1.0, n + 2.0) for n in range(100)])
    True
    """
    kept = [row for row in rows if all(math.isfinite(number) for number in row[1:])]
    if not kept:
        return ""
    left, height = 64, 220
    inner, bottom = width - left - 16, height - 44
    columns = min(len(kept), inner)
    cuts = [len(kept) * place // columns for place in range(columns + 1)]
    drawn = [kept[start:stop] for start, stop in pairwise(cuts)]
    values = [math.fsum(row[1] for row in part) / len(part) for part in drawn]
    lowers, uppers = (
        [min(row[2] for row in part) for part in drawn],
        [max(row[3] for row in part) for part in drawn],
    )
    low, high = min(0.0, *lowers), max(*uppers, 1e-9)

    def point(place: int, value: float) -> str:
        x, up = left + inner * (place + 0.5) / columns, (value - low) / (high - low)
        return f"{x:.1f},{bottom - (bottom - 8) * up:.1f}"

    parts = [_open(width, height, "values of neighbouring cells with their intervals")]
    step = _step(low, high, 4)
    for tick in _ticks(low, high, step):
        y = float(point(0, tick).split(",")[1])
        parts.append(f'<line class="grid" x1="{left}" y1="{y}" x2="{left + inner}" y2="{y}"/>')
        parts.append(
            f'<text class="tick" x="{left - 8}" y="{y + 4}" text-anchor="end">{_tick(tick, step)}</text>'
        )
    band = [point(place, value) for place, value in enumerate(uppers)]
    band += [point(place, value) for place, value in reversed(list(enumerate(lowers)))]
    parts.append(f'<path class="amount" d="M{" L".join(band)} Z"/>')
    line = " L".join(point(place, value) for place, value in enumerate(values))
    parts.append(f'<path class="bar" style="fill: none" d="M{line}"/>')
    for label, x, anchor in ((kept[0][0], left, "start"), (kept[-1][0], left + inner, "end")):
        text = escape(_cut(label, 24))
        parts.append(f'<text class="tick" x="{x}" y="{height - 12}" text-anchor="{anchor}">{text}</text>')
    return "".join([*parts, "</svg>"])


def price_bars(prices: Sequence[tuple[str, float]], width: int = 720) -> str:
    """A bar for each theorem's epsilon; what no theorem bounds is left out."""
    kept = [(name, value) for name, value in prices if math.isfinite(value)]
    if not kept:
        return ""
    largest = max(value for _, value in kept) or 1.0
    left, height = 160, 26 * len(kept) + 10
    parts = [_open(width, height, "the price under each theorem")]
    for place, (name, value) in enumerate(kept):
        y, length = 6 + 26 * place, (width - left - 70) * value / largest
        mark = "best" if place == len(kept) - 1 else "other"
        parts.append(f'<text x="{left - 10}" y="{y + 14}" text-anchor="end">{escape(name)}</text>')
        parts.append(
            f'<rect class="{mark}" x="{left}" y="{y}" width="{max(length, 1):.1f}" height="18" rx="3"/>'
        )
        parts.append(f'<text class="tick" x="{left + length + 8:.1f}" y="{y + 14}">{shown(value, 4)}</text>')
    return "".join([*parts, "</svg>"])


def budget_bar(spent_before: float, spent_now: float, total: float, width: int = 720) -> str:
    """Spent before, spent by this release, and free."""
    whole = max(total, spent_before + spent_now) or 1.0
    first, second = width * spent_before / whole, width * spent_now / whole
    return (
        _open(width, 28, "the budget")
        + f'<rect class="free" x="0" y="4" width="{width}" height="20" rx="4"/>'
        + f'<rect class="other" x="0" y="4" width="{first:.1f}" height="20" rx="4"/>'
        + f'<rect class="best" x="{first:.1f}" y="4" width="{second:.1f}" height="20" rx="4"/></svg>'
    )


def _open(width: int, height: int, title: str) -> str:
    return (
        f'<svg role="img" aria-label="{title}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'xmlns="http://www.w3.org/2000/svg">'
    )


def _cut(label: str, letters: int) -> str:
    return label if len(label) <= letters else label[: letters - 1] + "…"


def _step(low: float, high: float, most: int) -> float:
    span = (high - low) or 1.0
    step = 10.0 ** math.floor(math.log10(span / most))
    return step * next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= most)


def _ticks(low: float, high: float, step: float) -> list[float]:
    first = math.ceil(low / step)
    return [step * place for place in range(first, math.floor(high / step + 1e-9) + 1)]


def _tick(value: float, step: float) -> str:
    """As many digits as neighbouring ticks need to differ."""
    return f"{value:,.{max(0, -math.floor(math.log10(step)))}f}"

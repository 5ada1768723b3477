"""A release as one HTML page that needs nothing else: tables, charts, the account, and what it means for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from farthing.errors import InvalidValue
from farthing.inference import Answer
from farthing.inference.answers import with_interval
from farthing.ledger.table_versions import Version
from farthing.numerics.bounds import number_text
from farthing.planner import COMPARED
from farthing.privacy.units import whom
from farthing.publication.edition import ReleasedPlan
from farthing.statistics.answer_records import are_neighbours, records_of
from farthing.statistics.statistic import ROWS
from farthing.study.attacker_odds import Risk

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
            parts.append(f'<rect class="amount" x="{left}" y="{y - 7}" width="{x(value) - left:.1f}" height="14"/>')
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
    runs = [kept[start:stop] for start, stop in pairwise(cuts)]
    values = [math.fsum(row[1] for row in part) / len(part) for part in runs]
    lowers, uppers = (
        [min(row[2] for row in part) for part in runs],
        [max(row[3] for row in part) for part in runs],
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
        parts.append(f'<text class="tick" x="{left - 8}" y="{y + 4}" text-anchor="end">{_tick(tick, step)}</text>')
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
        parts.append(f'<rect class="{mark}" x="{left}" y="{y}" width="{max(length, 1):.1f}" height="18" rx="3"/>')
        parts.append(f'<text class="tick" x="{left + length + 8:.1f}" y="{y + 14}">{number_text(value, 4)}</text>')
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


_MOST_ROWS = 200


class ReportedRelease(ReleasedPlan, Protocol):
    """What the page needs of a release."""

    @property
    def cost(self) -> float:
        """The epsilon that was charged."""

    @property
    def about(self) -> str | None:
        """Which rows the numbers are about."""

    @property
    def counts(self) -> Mapping[str, str]:
        """What the numbers of each statistic count."""


def saved_page(page: str, path: str) -> Path:
    """The path of a file that holds the page."""
    target = Path(path)
    try:
        target.write_text(page, encoding="utf-8")
    except OSError as problem:
        raise unwritable(path, problem) from None
    return target


def unwritable(path: str, problem: OSError) -> InvalidValue:
    """What is said of a file that cannot be written; nothing that was paid for is lost."""
    return InvalidValue(
        "path",
        str(path),
        f"cannot be written ({problem.strerror or type(problem).__name__})",
        "name a file in a directory that exists; nothing is lost, and writing it again costs nothing",
    )


def report_page(release: ReportedRelease, version: Version | None = None) -> str:
    """The page as text; everything on it was paid for or is public, as a `version` is if a steward says so."""
    plan = release.plan
    name = escape(str(plan["dataset"]))
    title = escape(str(plan["title"])) if "title" in plan else "released statistics"
    read = "" if version is None else f" They were computed from {escape(str(version))}."
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>farthing: {name}</title>
<style>{_style()}</style>
</head>
<body>
<header>
<h1>{name}: {title}</h1>
<p class="lead">{_counted(len(release.answers))}, each with its margin of error.
{_protection(release)}{_about(release)}{read}</p>
{_numbers(release)}
</header>
<main>
<section><h2>The statistics</h2>
{"".join(_statistic(answer, release.counts.get(answer.name, ROWS)) for answer in release.answers.values())}
</section>
{_cost_section(release)}
{_risk_section(release)}
{_receipt(release)}
{_code(release)}
</main>
<footer>Made by farthing. This page loads nothing from elsewhere.</footer>
</body>
</html>
"""


def _style() -> str:
    return resources.files("farthing.study").joinpath("report.css").read_text(encoding="utf-8")


def _about(release: ReportedRelease) -> str:
    return f" The {escape(release.about)}." if release.about else ""


def _protection(release: ReportedRelease) -> str:
    """What the noise does for people, or that it does next to nothing."""
    protected = escape(whom(str(release.plan.get("unit", "row, add-remove")), str(release.plan.get("period", ""))))
    lifelong = str(release.plan.get("lifetime", ""))
    if lifelong:
        protected += f". Each period has a budget of its own: {escape(lifelong)}"
    if not release.warnings:
        return f"Noise was added so that nothing here depends noticeably on {protected}."
    warned = "".join(f"</p><p><b>Warning:</b> {escape(text)}" for text in release.warnings)
    return f"Noise was added, but so little that these numbers can depend noticeably on {protected}.{warned}"


def _numbers(release: ReportedRelease) -> str:
    plan = release.plan
    left = plan.get("budget", {}).get("left_after")
    facts = [
        ("epsilon spent", number_text(release.cost, 4)),
        ("delta", f"{plan['delta']:g}"),
        ("statistic" if len(release.answers) == 1 else "statistics", f"{len(release.answers):,}"),
    ]
    if left is not None:
        facts.append(("epsilon left", number_text(left, 4) if left > 1e-4 * release.cost else "none"))
    items = "".join(f"<li><b>{escape(value)}</b>{escape(label)}</li>" for label, value in facts)
    return f'<ul class="numbers">{items}</ul>'


def _statistic(answer: Answer, counts: str) -> str:
    rows = list(records_of(answer))
    level = f"{100 * answer.confidence:g}%"
    head, counted = f"<h3>{escape(answer.name)}</h3>", "" if counts == ROWS else escape(counts)
    note = f'<p class="soft">Note: {escape(answer.note)}.</p>' if answer.note else ""
    if not answer.labels:
        said = f"({level}); counts {counted}" if counted else f"({level})"
        return f"{head}<p><b>{_interval_text(rows[0])}</b> <span class='soft'>{said}</span></p>{note}"
    head += f'<p class="soft">counts {counted}</p>' if counted else ""
    chart = _chart(answer, [(row["cell"], row["value"], row["lower"], row["upper"]) for row in rows])
    own, head_of_own = (f"<td>{counted}</td>", "<th>counts</th>") if counted else ("", "")
    body = "".join(
        f"<tr><td>{escape(row['cell'])}</td><td>{_interval_text(row)}</td>{own}<td>{number_text(row['standard_error'])}</td></tr>"
        for row in rows[:_MOST_ROWS]
    )
    more = f'<p class="soft">... and {len(rows) - _MOST_ROWS:,} more cells.</p>' if len(rows) > _MOST_ROWS else ""
    unfolded = " open" if len(rows) <= 12 else ""
    return (
        f"{head}{chart}<details{unfolded}><summary>{len(rows):,} numbers</summary><div class='scroll'>"
        f"<table><thead><tr><th>cell</th><th>value ({level})</th>{head_of_own}<th>standard error</th></tr></thead>"
        f"<tbody>{body}</tbody></table></div>{more}</details>{_askable(answer)}{note}"
    )


def _chart(answer: Answer, rows: list[tuple[str, float, float, float]]) -> str:
    """Bars; for more neighbouring cells than there is room for, a curve, and for other cells the first ones."""
    if len(rows) <= MOST_BARS:
        return _responsive_chart(error_bars, rows)
    if are_neighbours(answer.labels):
        return _responsive_chart(curve, rows) + f'<p class="soft">The curve shows all {len(rows):,} cells.</p>'
    few = _responsive_chart(error_bars, rows[:MOST_BARS])
    return few + f'<p class="soft">The chart shows the first {MOST_BARS} of {len(rows):,} cells.</p>'


def _askable(answer: Answer) -> str:
    """How to ask further, where that is possible."""
    example = getattr(answer.asking, "example", None)
    if example is None:
        return ""
    asked = escape(f"release[{answer.name!r}].query({example!r})")
    return (
        f"<p class='soft'>It answers further questions about its cells, free of charge and with their errors: "
        f"<code>{asked}</code>.</p>"
    )


def _counted(statistics: int) -> str:
    return "1 statistic" if statistics == 1 else f"{statistics:,} statistics"


def _responsive_chart(chart: Callable[..., str], *data: Any) -> str:
    """A chart for wide screens and one for phones, where a scaled one could not be read."""
    return f'<div class="wide">{chart(*data)}</div><div class="narrow">{chart(*data, width=358)}</div>'


def _interval_text(row: Mapping[str, Any]) -> str:
    return escape(with_interval(row["value"], row["lower"], row["upper"]))


def _cost_section(release: ReportedRelease) -> str:
    plan = release.plan
    price = plan["price"]
    names = {theorem.key: theorem.name for theorem in COMPARED} | {"own": "exact curves (charged)"}
    bars = _responsive_chart(price_bars, [(name, _number(price.get(key))) for key, name in names.items()])
    budget = plan.get("budget")
    bar = ""
    if budget:
        bar = _responsive_chart(budget_bar, budget["spent_before"], release.cost, budget["total"]) + (
            f'<p class="soft">Budget {number_text(budget["total"], 4)}: {number_text(budget["spent_before"], 4)} '
            "spent before, "
            f"{number_text(release.cost, 4)} by this release.</p>"
        )
    # A release of an earlier version knows of none.
    several = len(plan["statistics"]) > 1 and all("even_share" in one for one in plan["statistics"])
    even = "<th>with an even share</th>" if several else ""
    rows = "".join(
        f"<tr><td>{escape(one['name'])}</td><td>{escape(one['mechanism'])}</td>"
        f"<td>±&nbsp;{number_text(_number(one['error']))}</td>{_even_share(one, several)}"
        f"<td>{number_text(_number(one['epsilon']))}</td></tr>"
        for one in plan["statistics"]
    )
    assumed = "".join(f"<li>{escape(text)}</li>" for text in plan.get("assumptions", ()))
    return f"""<section><h2>What was spent</h2>
{bar}
<h3>The price of the same plan under each theorem</h3>{bars}<p>{escape(str(price.get("sentence", "")))}</p>
<h3>What was predicted before anything was spent</h3>
<div class="scroll"><table>
<thead><tr><th>statistic</th><th>noise</th><th>95% error</th>{even}<th>epsilon alone</th></tr></thead>
<tbody>{rows}</tbody></table></div>
{f"<p class='soft'>Assumed when errors were predicted:</p><ul class='soft'>{assumed}</ul>" if assumed else ""}
</section>"""


def _even_share(one: Mapping[str, Any], several: bool) -> str:
    """The error with an even share of the budget, as a cell of the table; no cell where there is no such column."""
    return f"<td>±&nbsp;{number_text(_number(one['even_share']))}</td>" if several else ""


def _risk_section(release: ReportedRelease) -> str:
    risk = Risk(release.cost, release.plan["delta"])
    quotes = "".join(f"<blockquote>{escape(sentence)}</blockquote>" for sentence in risk.sentences)
    return (
        "<section><h2>What it means for somebody in the table</h2>"
        f"<p>Epsilon {number_text(release.cost, 4)} is a limit on what anybody can learn about one person from "
        "everything on "
        f"this page, whatever else they know.</p>{quotes}</section>"
    )


def _receipt(release: ReportedRelease) -> str:
    return (
        "<section><h2>The receipt</h2><p>The ledger must contain this entry forever. To check it: save the text as "
        "<code>receipt.json</code> and run <code>farthing ledger verify LEDGER --receipt receipt.json</code>.</p>"
        f"<pre>{escape(release.receipt.to_json())}</pre></section>"
    )


def _code(release: ReportedRelease) -> str:
    lines = release.plan.get("code")
    if not lines:
        return ""
    return f"<section><h2>The study that produced it</h2><pre>{escape(str(lines))}</pre></section>"


def _number(value: Any) -> float:
    return math.inf if value is None else float(np.asarray(value, dtype=float))

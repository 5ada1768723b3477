"""The quality of a synthetic table as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from farthing.adaptive.synthesis_validation import CheckedSynthesis
from farthing.ledger import Receipt
from farthing.numerics.bounds import number_text
from farthing.study.attacker_odds import Risk, budget_cautions
from farthing.study.reports.release_report import saved_page
from farthing.study.synthesis.synthetic_quality import (
    GOOD,
    GOOD_UP_TO,
    NOT_VOUCHED,
    ROUGH,
    ROUGH_UP_TO,
    Quality,
    percent,
    table_row,
)

_CELL = 40
_LETTERS = 16
_MOST_COLUMNS = 40
_TEXT_UP_TO = 24  # more columns than this leave no room for numbers in the cells
_CLASSES = {GOOD: "good", ROUGH: "rough"}


def pair_map(quality: Quality, columns: Sequence[str], width: int = 760) -> str:
    """A square for each pair of columns, and on the diagonal for each column: its error, coloured by its verdict.

    >>> from farthing.study.synthesis.synthetic_quality import MarginalQuality
    >>> "3.1%" in pair_map(Quality((MarginalQuality(("a", "b"), 0.02, 0.031, True),), (), 9.0, 1.0), ["a", "b"])
    True
    """
    names = list(columns)[:_MOST_COLUMNS]
    left = 16 + 7 * min(_LETTERS, max(len(name) for name in names))
    side = max(8, min(_CELL, (width - left) // max(len(names), 1)))
    qualities = {frozenset(one.columns): one for one in quality.marginals}
    height = side * len(names) + 8 + left
    parts = [_open(left + side * len(names) + 8, height, "the largest error of every pair of columns")]
    for row, name in enumerate(names):
        y = side * row + 4
        parts.append(f'<text x="{left - 8}" y="{y + side / 2 + 4:.0f}" text-anchor="end">{_cut(name)}</text>')
        x = left + side * row + side / 2 + 4
        at = side * len(names) + 14
        parts.append(
            f'<text x="{x:.0f}" y="{at}" text-anchor="end" transform="rotate(-60 {x:.0f} {at})">{_cut(name)}</text>'
        )
        for column, other in enumerate(names[: row + 1]):
            one = qualities.get(frozenset((name, other)))
            if one is None:
                continue
            kind = _CLASSES.get(one.verdict, "unvouched")
            title = f"{' and '.join(one.columns)}: at most {percent(one.at_most)}, {one.verdict}"
            place = left + side * column
            parts.append(
                f'<rect class="{kind}" x="{place + 1}" y="{y + 1}" width="{side - 2}" height="{side - 2}" rx="3">'
                f"<title>{escape(title)}</title></rect>"
            )
            if len(names) <= _TEXT_UP_TO and side >= 28:
                text = percent(one.at_most) if one.at_most < 0.0995 else f"{100 * one.at_most:.0f}%"
                parts.append(
                    f'<text class="in" x="{place + side / 2:.0f}" y="{y + side / 2 + 4:.0f}" '
                    f'text-anchor="middle">{text}</text>'
                )
    return "".join([*parts, "</svg>"])


def round_bars(rounds: Sequence[Mapping[str, Any]], width: int = 720) -> str:
    """For each round, how wrong the model was about the table it chose (bar), and the noise of that table (line).

    >>> "<rect" in round_bars([{"columns": ["a", "b"], "cells": 4, "error_before": 0.2, "noise": 0.01}])
    True
    """
    if not rounds:
        return ""
    left, step = min(330, width // 2), 24
    height = step * len(rounds) + 8
    largest = max(max(one["error_before"], one["noise"]) for one in rounds) or 1.0
    inner = width - left - 60
    parts = [_open(width, height, "the error before each round")]
    for place, one in enumerate(rounds):
        y, length = 4 + step * place, inner * one["error_before"] / largest
        name = escape(_cut_to(", ".join(one["columns"]), 45 if width > 500 else 24))
        parts.append(f'<text x="{left - 10}" y="{y + 14}" text-anchor="end">{place + 1}. {name}</text>')
        parts.append(f'<rect class="best" x="{left}" y="{y}" width="{max(length, 1):.1f}" height="18" rx="3"/>')
        mark = left + inner * one["noise"] / largest
        parts.append(f'<line class="mark" x1="{mark:.1f}" y1="{y - 2}" x2="{mark:.1f}" y2="{y + 20}"/>')
        end = max(left + length, mark) + 8
        parts.append(f'<text class="tick" x="{end:.1f}" y="{y + 14}">{percent(one["error_before"])}</text>')
    return "".join([*parts, "</svg>"])


def verdict_badge(verdict: str) -> str:
    """A verdict in its colour."""
    return f'<span class="verdict {_CLASSES.get(verdict, "unvouched")}">{escape(verdict)}</span>'


def _open(width: float, height: float, title: str) -> str:
    return (
        f'<svg role="img" aria-label="{title}" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" xmlns="http://www.w3.org/2000/svg">'
    )


def _cut(name: str) -> str:
    return escape(_cut_to(name, _LETTERS))


def _cut_to(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1] + "…"


_MOST_ROWS = 200


class SyntheticFacts(Protocol):
    """What the page needs of a synthetic table."""

    @property
    def name(self) -> str:
        """What the ledger calls the dataset."""

    @property
    def question(self) -> CheckedSynthesis:
        """What was measured, and at which price."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""

    @property
    def codes(self) -> Sized:
        """The rows as codes of cells."""

    @property
    def cost(self) -> float:
        """The epsilon that was charged."""

    @property
    def quality(self) -> Quality:
        """Which of its numbers are right, and by how much they may be off."""

    @property
    def rounds(self) -> Sequence[Mapping[str, Any]]:
        """What was chosen and measured, step by step."""

    @property
    def receipt(self) -> Receipt:
        """The receipt that proves the charge."""


def written_report(synthetic: SyntheticFacts, path: str) -> Path:
    """The page in a file."""
    return saved_page(report_page(synthetic), path)


def report_page(synthetic: SyntheticFacts) -> str:
    """The page as text; everything on it was paid for or is public."""
    name = escape(synthetic.name)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>farthing: synthetic {name}</title>
<style>{_style("report.css")}{_style("synthetic_report.css")}</style>
</head>
<body>
<header>
<h1>{name}: a synthetic table, and where it can be trusted</h1>
<p class="lead">{len(synthetic.codes):,} rows that belong to nobody, drawn from a model of noisy counts. Where the
verdict is <b>good</b>, counts of these columns are right to within 5% of all rows; elsewhere be careful.</p>
{_warnings(synthetic)}
{_numbers(synthetic)}
</header>
<main>
{_verdicts(synthetic)}
{_limits()}
{_measured(synthetic)}
{_risk_section(synthetic)}
<section><h2>The receipt</h2><p>The ledger must contain this entry forever. To check it: save the text as
<code>receipt.json</code> and run <code>farthing ledger verify LEDGER --receipt receipt.json</code>.</p>
<pre>{escape(synthetic.receipt.to_json())}</pre></section>
</main>
<footer>Made by farthing. This page loads nothing from elsewhere.</footer>
</body>
</html>
"""


def _style(file: str) -> str:
    return resources.files("farthing.study").joinpath(file).read_text(encoding="utf-8")


def _warnings(synthetic: SyntheticFacts) -> str:
    warnings = [f"{text}." for text in ("; ".join(synthetic.quality.warnings),) if text]
    warnings += budget_cautions(synthetic.cost, synthetic.question.delta)
    return "".join(f"<p><b>Warning:</b> {escape(text)}</p>" for text in warnings)


def _numbers(synthetic: SyntheticFacts) -> str:
    quality = synthetic.quality
    good = sum(one.verdict == GOOD for one in quality.of_size(2))
    facts = [
        ("epsilon spent", number_text(synthetic.cost, 4)),
        ("delta", f"{synthetic.question.delta:g}"),
        ("columns", f"{len(synthetic.columns):,}"),
    ]
    if quality.of_size(2):
        facts.append(("pairs of columns that are good", f"{good:,} of {len(quality.of_size(2)):,}"))
    items = "".join(f"<li><b>{escape(value)}</b>{escape(label)}</li>" for label, value in facts)
    return f'<ul class="numbers">{items}</ul>'


def _verdicts(synthetic: SyntheticFacts) -> str:
    quality = synthetic.quality
    chart = f'<div class="scroll">{pair_map(quality, synthetic.columns)}</div>'
    return f"""<section><h2>Which columns are right together</h2>
<p>Each square is a pair of columns (on the diagonal, a column by itself), and its number is the largest error that the
check does not contradict: the share of rows that would have to be moved to make the table of these columns right. No
count about these columns is further off than that share of all rows. {_compared(quality)}</p>
{_legend()}
{chart}
<p class="soft">{escape(quality.sentence)}.</p>
<details><summary>All {len(quality.marginals):,} numbers</summary>{_table(quality)}</details></section>"""


def _compared(quality: Quality) -> str:
    noisy = "and reported the distances with noise; one in a hundred such numbers may be too small."
    if quality.made is None:
        return f"The check compared this very table with the private rows {noisy}"
    return (
        f"The check compared the table of {quality.rows:,.0f} rows with the private rows {noisy} This table of "
        f"{quality.made:,} rows is another draw from the same model: by how much the two differ, up to "
        f"{percent(quality.chance)}, is added to each number."
    )


def _legend() -> str:
    """What the colours of the map and the verdicts stand for."""
    good, rough = f"{GOOD_UP_TO:.0%}", f"{ROUGH_UP_TO:.0%}"
    meanings = {
        GOOD: f"off by at most {good} of all rows",
        ROUGH: f"by more than {good}, at most {rough}: fit for a first look",
        NOT_VOUCHED: f"by more than {rough}, or nothing is known: do not rely on it",
    }
    items = "".join(f"<li>{verdict_badge(word)} {escape(meaning)}</li>" for word, meaning in meanings.items())
    return f'<ul class="legend">{items}</ul>'


def _table(quality: Quality) -> str:
    ordered = sorted(quality.marginals, key=lambda one: (len(one.columns), -one.at_most))
    rows = []
    for one in ordered[:_MOST_ROWS]:
        names, error, at_most, _ = table_row(one)
        measured = "yes" if one.measured else "no"
        rows.append(
            f"<tr><td>{escape(names)}</td><td>{error}</td><td>{at_most}</td><td>{measured}</td>"
            f"<td>{verdict_badge(one.verdict)}</td></tr>"
        )
    hidden = len(ordered) - len(rows)
    more = f'<p class="soft">... and {hidden:,} more, with less error.</p>' if hidden > 0 else ""
    return (
        "<div class='scroll'><table><thead><tr><th>columns</th><th>estimated</th><th>at most</th><th>measured</th>"
        f"<th>verdict</th></tr></thead><tbody>{''.join(rows)}</tbody></table></div>{more}"
    )


def _limits() -> str:
    return """<section><h2>What it is not good for</h2>
<ul>
<li>Three columns and more at once: nothing was checked there. The table may be right or not.</li>
<li>Rare groups: an error of 5% of all rows can be larger than a whole group of 1%.</li>
<li>Tests and intervals: software treats the rows as real and ignores the noise in them. Ask for the
statistic itself (<code>farthing release</code>) where a number matters: it comes with its own error.</li>
<li>Values within a cell of a column that was cut into cells: they are drawn uniformly.</li>
</ul></section>"""


def _measured(synthetic: SyntheticFacts) -> str:
    rows = "".join(
        f"<tr><td>{escape(', '.join(one.columns))}</td><td>{one.cells:,}</td><td>{number_text(one.noise)}</td>"
        f"<td>{percent(one.noise_error)}</td><td>{percent(one.fit_error)}</td></tr>"
        for one in synthetic.quality.measured[:_MOST_ROWS]
    )
    rounds = round_bars(synthetic.rounds)
    how = ""
    if rounds:
        how = f"""<h3>Round by round</h3>
<p>In each round the table was chosen, with noise, that the model got most wrong. The bar is how wrong it was there
before; the mark is the error of the noise that the table was then measured with.</p>
<div class="scroll">{rounds}</div>"""
    return f"""<section><h2>What was measured</h2>{how}
<h3>The noisy tables</h3>
<p>The model was fitted to these. A fit error near the error of the noise is as it should be.</p>
<details><summary>{len(synthetic.quality.measured):,} tables</summary><div class="scroll"><table>
<thead><tr><th>columns</th><th>cells</th><th>noise in a cell (rows)</th><th>error of the noise</th><th>fit error</th>
</tr></thead><tbody>{rows}</tbody></table></div></details></section>"""


def _risk_section(synthetic: SyntheticFacts) -> str:
    risk = Risk(synthetic.cost, synthetic.question.delta)
    quotes = "".join(f"<blockquote>{escape(sentence)}</blockquote>" for sentence in risk.sentences)
    return (
        "<section><h2>What it means for somebody in the table</h2>"
        f"<p>Epsilon {number_text(synthetic.cost, 4)} is a limit on what anybody can learn about one person from the "
        f"synthetic table and this page together, whatever else they know.</p>{quotes}</section>"
    )

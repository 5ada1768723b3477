"""Charts of a synthetic table's report as plain SVG text: pairs of columns as a map, rounds as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from farthing.study.quality import GOOD, ROUGH, Quality, percent

_CELL = 40
_LETTERS = 16
_MOST_COLUMNS = 40
_TEXT_UP_TO = 24  # more columns than this leave no room for numbers in the cells
_CLASSES = {GOOD: "good", ROUGH: "rough"}


def pair_map(quality: Quality, columns: Sequence[str], width: int = 760) -> str:
    """A square for each pair of columns, and on the diagonal for each column: its error, coloured by its verdict.

    >>> from farthing.study.quality import MarginalQuality
    >>> "3.1%" in pair_map(Quality((MarginalQuality(("a", "b"), 0.02, 0.031, True),), (), 9.0, 1.0), ["a", "b"])
    True
    """
    names = list(columns)[:_MOST_COLUMNS]
    left = 16 + 7 * min(_LETTERS, max(len(name) for name in names))
    side = max(8, min(_CELL, (width - left) // max(len(names), 1)))
    found = {frozenset(one.columns): one for one in quality.marginals}
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
            one = found.get(frozenset((name, other)))
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
                told = percent(one.at_most) if one.at_most < 0.0995 else f"{100 * one.at_most:.0f}%"
                parts.append(
                    f'<text class="in" x="{place + side / 2:.0f}" y="{y + side / 2 + 4:.0f}" '
                    f'text-anchor="middle">{told}</text>'
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
        parts.append(
            f'<rect class="best" x="{left}" y="{y}" width="{max(length, 1):.1f}" height="18" rx="3"/>'
        )
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

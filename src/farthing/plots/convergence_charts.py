"""A stream of online answers as it goes: how far each was corrected or promised, and what it used up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from farthing.errors import InvalidValue
from farthing.plots._style import BLUE, GREY, ORANGE, VERMILLION, Row, altair, data_of, finished

_BEFORE, _NOISE = "error before the round", "error of the noise"


def synthesis_rounds(rounds: Sequence[Mapping[str, Any]]) -> Any:
    """For each round of a synthesis, how wrong the model was about the table that was chosen, beside its noise.

    Where both lines meet, more rounds would find little but noise.

    Args:
        rounds: The rounds of `SynthesisPlan.rounds`: noisy numbers only.

    Returns:
        An Altair chart.

    Raises:
        InvalidValue: If there is no round.

    >>> first = {"columns": ["age", "sex"], "cells": 20, "error_before": 0.3, "noise": 0.01}
    >>> second = {"columns": ["age", "income"], "cells": 60, "error_before": 0.1, "noise": 0.02}
    >>> synthesis_rounds([first, second]).to_dict()["title"]["text"]
    'In 2 rounds the largest error found fell from 30% to 10%'
    """
    if not rounds:
        raise InvalidValue("rounds", [], "must hold at least one round", "a synthesis of one column has none")
    alt = altair()
    rows = [row for number, one in enumerate(rounds, start=1) for row in _lines(number, one)]
    encodings = {
        "x": alt.X("round:Q", title="round", axis=alt.Axis(tickMinStep=1, format="d"), scale=alt.Scale(nice=False)),
        "y": alt.Y("error:Q", title="total variation", axis=alt.Axis(format="%"), scale=alt.Scale(zero=True)),
        "color": alt.Color("what:N", title=None, scale=alt.Scale(domain=[_BEFORE, _NOISE], range=[BLUE, ORANGE])),
        "tooltip": [
            alt.Tooltip("round:Q", format="d"),
            alt.Tooltip("columns:N"),
            alt.Tooltip("cells:Q", format="d"),
            alt.Tooltip("what:N"),
            alt.Tooltip("error:Q", format=".2%"),
        ],
    }
    chart = alt.Chart(data_of(rows))
    layers = alt.layer(
        chart.mark_line(strokeWidth=2.2).encode(**encodings),
        chart.mark_point(filled=True, size=45, opacity=1).encode(**encodings),
    )
    count, first, last = len(rounds), rounds[0]["error_before"], rounds[-1]["error_before"]
    return finished(
        layers.properties(width=560, height=320),
        f"In {count} round{'s' * (count != 1)} the largest error found fell from {first:.0%} to {last:.0%}",
        ["Estimated from noisy tables: one point for each table that was chosen, before the model was fitted to it."],
    )


def _lines(number: int, one: Mapping[str, Any]) -> list[Row]:
    about = {"round": number, "columns": ", ".join(one["columns"]), "cells": one["cells"]}
    return [
        {"what": _BEFORE, "error": one["error_before"], **about},
        {"what": _NOISE, "error": one["noise"], **about},
    ]


MOST_POINTS = 2_000  # more cannot be distinguished on a screen
_FREE, _PAID = "free", "paid"


class Step(Protocol):
    """One answered question, as `QuerySession.history` holds it."""

    @property
    def question(self) -> int:
        """The number of the question, from 1 on."""

    @property
    def error(self) -> int:
        """The error that was stated with the answer."""

    @property
    def paid(self) -> bool:
        """Whether it used up an update."""

    @property
    def updates(self) -> int:
        """How many updates were used up after it."""

    @property
    def correction(self) -> int:
        """How far the answer is from what was expected: 0 if it was free."""


def convergence(history: Sequence[Step], *, updates: int | None = None, rows: int | None = None) -> Any:
    """The stated errors, how far paid answers were corrected, and the updates used up, against the questions.

    Args:
        history: The steps of a query session.
        updates: How many updates there are; it draws the line where paying ends.
        rows: How many rows there are, to show errors as a part of them.

    Returns:
        An Altair chart.

    Raises:
        InvalidValue: If the history is empty.

    >>> from farthing.adaptive.query_session import Step
    >>> steps = [Step(1, 500, 100, False, 0), Step(2, 90, 40, True, 1, 130), Step(3, 80, 100, False, 1)]
    >>> convergence(steps).to_dict()["title"]["text"]
    '3 questions used up 1 update'
    >>> convergence(steps, updates=4, rows=10_000).to_dict()["title"]["text"]
    '3 questions used up 1 of 4 updates'
    """
    if not history:
        raise InvalidValue("history", [], "must hold at least one answer", "ask a question first")
    alt = altair()
    used = history[-1].updates
    points = [_row(step, rows) for step in _thinned(history)]
    unit = "rows" if rows is None else "% of the rows"
    x = alt.X(
        "question:Q",
        title="questions",
        scale=alt.Scale(zero=False, nice=False),
        axis=alt.Axis(tickMinStep=1, format=",d"),
    )
    tooltip = [
        alt.Tooltip("question:Q", format=",d"),
        alt.Tooltip("kind:N"),
        alt.Tooltip("promised:Q", title=f"promised error, {unit}", format=".3~g"),
        alt.Tooltip("correction:Q", title=f"correction, {unit}", format=".3~g"),
        alt.Tooltip("updates:Q", format=",d"),
    ]
    errors = _errors(points, unit, x, tooltip)
    spent = _updates(data_of(points), used, updates, x, tooltip)
    number = f"{used:,} update{'s' * (used != 1)}" if updates is None else f"{used:,} of {updates:,} updates"
    return finished(
        alt.vconcat(errors.properties(width=560, height=160), spent, spacing=24),
        f"{len(history):,} question{'s' * (len(history) != 1)} used up {number}",
        "Points: promised errors, which hold for all answers at once. Bars: how far paid answers moved the guess."
        + ("" if updates is None else " Dashed: where paying ends."),
    )


def _errors(points: list[Row], unit: str, x: Any, tooltip: list[Any]) -> Any:
    """A point for each stated error, and a bar for each correction."""
    alt = altair()
    kinds = [_FREE, _PAID]
    stated = (
        # Hundreds of points read aloud would tell less than the title.
        alt.Chart(data_of(points))
        .mark_point(filled=True, size=28, aria=False)
        .encode(
            x=x,
            y=alt.Y("promised:Q", title=unit, scale=alt.Scale(zero=True)),
            color=alt.Color("kind:N", title=None, scale=alt.Scale(domain=kinds, range=[BLUE, VERMILLION])),
            shape=alt.Shape("kind:N", title=None, scale=alt.Scale(domain=kinds, range=["circle", "cross"])),
            tooltip=tooltip,
        )
    )
    corrections = (
        alt.Chart(data_of([row for row in points if row["kind"] == _PAID]))
        .mark_bar(width=2, color=VERMILLION, opacity=0.6, aria=False)
        .encode(x=x, y="correction:Q", tooltip=tooltip)
    )
    return alt.layer(corrections, stated)


def _updates(points: Any, used: int, updates: int | None, x: Any, tooltip: list[Any]) -> Any:
    """The updates used up, and the dashed line where paying ends."""
    alt = altair()
    spent = (
        alt.Chart(points)
        .mark_line(interpolate="step-after", strokeWidth=2.2, color=VERMILLION)
        .encode(
            x=x,
            y=alt.Y(
                "updates:Q",
                title="updates used up",
                axis=alt.Axis(tickMinStep=1, format="d"),
                scale=alt.Scale(domain=[0, max(used, updates or 0, 1)]),
            ),
            tooltip=tooltip,
        )
        .properties(width=560, height=140)
    )
    limit = (
        alt.Chart(data_of([] if updates is None else [{"updates": updates}]))
        .mark_rule(strokeDash=[6, 3], color=GREY)
        .encode(y="updates:Q")
    )
    return alt.layer(spent, limit)


def _row(step: Step, rows: int | None) -> Row:
    scale = 1 if rows is None else 100 / rows
    return {
        "question": step.question,
        "promised": scale * step.error,
        "correction": scale * step.correction,
        "updates": step.updates,
        "kind": _PAID if step.paid else _FREE,
    }


def _thinned(history: Sequence[Step]) -> list[Step]:
    """All paid answers, the ends, and of the others as many as can be distinguished."""
    every = -(-len(history) // MOST_POINTS)
    last = len(history) - 1
    return [step for place, step in enumerate(history) if step.paid or place % every == 0 or place == last]

"""A stream of online answers as it goes: how far each was corrected or promised, and what it used up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from farthing.errors import InvalidValue
from farthing.plots._style import BLUE, GREY, VERMILLION, Row, altair, data_of, finished

MOST_POINTS = 2_000  # more cannot be told apart on a screen
_FREE, _PAID = "free", "paid"


class Step(Protocol):
    """One answered question, as `OnlineAnswerer.history` holds it."""

    @property
    def question(self) -> int:
        """Its number."""

    @property
    def error(self) -> int:
        """The promised error."""

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
    """What was promised, how far paid answers were corrected, and the updates used up, against the questions.

    `history` is that of an answerer. `updates` is how many there are and draws the line where paying ends; `rows` how
    many rows, to show errors as a part of them.

    >>> from farthing.adaptive.online import Step
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
    shown = [_row(step, rows) for step in _thinned(history)]
    unit = "rows" if rows is None else "% of the rows"
    x = alt.X(
        "question:Q", title="questions", scale=alt.Scale(zero=False, nice=False),
        axis=alt.Axis(tickMinStep=1, format=",d"),
    )  # fmt: skip
    tooltip = [
        alt.Tooltip("question:Q", format=",d"), alt.Tooltip("kind:N"),
        alt.Tooltip("promised:Q", title=f"promised error, {unit}", format=".3~g"),
        alt.Tooltip("correction:Q", title=f"correction, {unit}", format=".3~g"),
        alt.Tooltip("updates:Q", format=",d"),
    ]  # fmt: skip
    kinds = [_FREE, _PAID]
    promised = (
        alt.Chart(data_of(shown))
        .mark_point(
            filled=True, size=28, aria=False
        )  # hundreds of points read aloud would tell less than the title
        .encode(
            x=x,
            y=alt.Y("promised:Q", title=unit, scale=alt.Scale(zero=True)),
            color=alt.Color("kind:N", title=None, scale=alt.Scale(domain=kinds, range=[BLUE, VERMILLION])),
            shape=alt.Shape("kind:N", title=None, scale=alt.Scale(domain=kinds, range=["circle", "cross"])),
            tooltip=tooltip,
        )
    )
    corrections = (
        alt.Chart(data_of([row for row in shown if row["kind"] == _PAID]))
        .mark_bar(width=2, color=VERMILLION, opacity=0.6, aria=False)
        .encode(x=x, y="correction:Q", tooltip=tooltip)
    )
    spent = (
        alt.Chart(data_of(shown))
        .mark_line(interpolate="step-after", strokeWidth=2.2, color=VERMILLION)
        .encode(
            x=x,
            y=alt.Y(
                "updates:Q", title="updates used up", axis=alt.Axis(tickMinStep=1, format="d"),
                scale=alt.Scale(domain=[0, max(used, updates or 0, 1)]),
            ),
            tooltip=tooltip,
        )
        .properties(width=560, height=140)
    )  # fmt: skip
    limit = (
        alt.Chart(data_of([] if updates is None else [{"updates": updates}]))
        .mark_rule(strokeDash=[6, 3], color=GREY)
        .encode(y="updates:Q")
    )
    number = f"{used:,} update{'s' * (used != 1)}" if updates is None else f"{used:,} of {updates:,} updates"
    return finished(
        alt.vconcat(
            alt.layer(corrections, promised).properties(width=560, height=160), alt.layer(spent, limit), spacing=24
        ),
        f"{len(history):,} question{'s' * (len(history) != 1)} used up {number}",
        "Points: promised errors, which hold for all answers at once. Bars: how far paid answers moved the guess."
        + ("" if updates is None else " Dashed: where paying ends."),
    )  # fmt: skip


def _row(step: Step, rows: int | None) -> Row:
    scale = 1 if rows is None else 100 / rows
    return {
        "question": step.question, "promised": scale * step.error, "correction": scale * step.correction,
        "updates": step.updates, "kind": _PAID if step.paid else _FREE,
    }  # fmt: skip


def _thinned(history: Sequence[Step]) -> list[Step]:
    """All paid answers, the ends, and of the others as many as can be told apart."""
    every = -(-len(history) // MOST_POINTS)
    last = len(history) - 1
    return [step for place, step in enumerate(history) if step.paid or place % every == 0 or place == last]

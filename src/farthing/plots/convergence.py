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


def convergence(history: Sequence[Step], *, updates: int, rows: int) -> Any:
    """Promised error and updates used up against the number of questions; `updates` is how many there are.

    >>> from farthing.adaptive.online import Step
    >>> steps = [Step(1, 500, 100, False, 0), Step(2, 90, 40, True, 1), Step(3, 80, 100, False, 1)]
    >>> chart = convergence(steps, updates=4, rows=10_000)
    >>> chart.to_dict()["title"]["text"]
    '3 questions used up 1 of 4 updates'
    """
    if not history:
        raise InvalidValue("history", [], "must hold at least one answer", "ask a question first")
    alt = altair()
    used = history[-1].updates
    shown = _thinned(history)
    rows_of = [_row(step, rows) for step in shown]
    x = alt.X("question:Q", title="questions", scale=alt.Scale(zero=False, nice=False))
    kinds = alt.Scale(domain=[_FREE, _PAID], range=[BLUE, VERMILLION])
    tooltip = [
        alt.Tooltip("question:Q", format=",d"), alt.Tooltip("kind:N"), alt.Tooltip("percent:Q", format=".3g"),
        alt.Tooltip("updates:Q", format=",d"),
    ]  # fmt: skip
    errors = (
        alt.Chart(data_of(rows_of))
        .mark_point(filled=True, size=28)
        .encode(
            x=x,
            y=alt.Y("percent:Q", title="promised error, % of the rows", scale=alt.Scale(zero=True)),
            color=alt.Color("kind:N", title=None, scale=kinds),
            shape=alt.Shape(
                "kind:N", title=None, scale=alt.Scale(domain=[_FREE, _PAID], range=["circle", "cross"])
            ),
            tooltip=tooltip,
        )
        .properties(width=560, height=160)
    )
    spent = (
        alt.Chart(data_of(rows_of))
        .mark_line(interpolate="step-after", strokeWidth=2.2, color=VERMILLION)
        .encode(
            x=x,
            y=alt.Y(
                "updates:Q", title="updates used up", axis=alt.Axis(tickMinStep=1, format="d"),
                scale=alt.Scale(domain=[0, max(updates, 1)]),
            ),
            tooltip=tooltip,
        )
        .properties(width=560, height=140)
    )  # fmt: skip
    limit = (
        alt.Chart(data_of([{"updates": updates}]))
        .mark_rule(strokeDash=[6, 3], color=GREY)
        .encode(y="updates:Q")
    )
    return finished(
        alt.vconcat(errors, alt.layer(spent, limit), spacing=24),
        f"{len(history):,} question{'s' * (len(history) != 1)} used up {used:,} of {updates:,} updates",
        "Errors hold for all answers at once. Free answers cost nothing; the dashed line is where paying ends.",
    )


def _row(step: Step, rows: int) -> Row:
    return {
        "question": step.question, "percent": 100 * step.error / rows, "updates": step.updates,
        "kind": _PAID if step.paid else _FREE,
    }  # fmt: skip


def _thinned(history: Sequence[Step]) -> list[Step]:
    """All paid answers, the ends, and of the others as many as can be told apart."""
    every = -(-len(history) // MOST_POINTS)
    last = len(history) - 1
    return [step for place, step in enumerate(history) if step.paid or place % every == 0 or place == last]

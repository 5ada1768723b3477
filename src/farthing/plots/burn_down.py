"""A budget as it is used up: what was spent after each entry of a ledger, below what may be spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from farthing.errors import InvalidValue
from farthing.plots._style import BLACK, BLUE, ORANGE, VERMILLION, Row, altair, data_of, finished

MOST_POINTS = 2_000  # more cannot be distinguished on a screen, and a page with a million points does not open

_SPENT, _BUDGET, _OPEN, _REFUSED = "spent", "budget", "budget less what is set aside", "refused"
_COLOURS = {_SPENT: BLUE, _BUDGET: BLACK, _OPEN: ORANGE, _REFUSED: VERMILLION}
_DASHES = {_SPENT: [1, 0], _BUDGET: [1, 0], _OPEN: [6, 3]}


@dataclass(frozen=True, slots=True)
class Moment:
    """One entry of a ledger, in epsilon: what was spent, allowed and set aside after it.

    Attributes:
        sequence: The number of the entry.
        kind: The kind of the entry, such as "budget" or "charge".
        spent: What was spent after it.
        budget: What was allowed after it.
        withheld: What was set aside after it.
        requested: What was asked for, in a refusal.
        who: Who asked.

    >>> Moment(3, "charge", spent=0.4, budget=1.0).withheld
    0.0
    """

    sequence: int
    kind: str
    spent: float
    budget: float
    withheld: float = 0.0
    requested: float | None = None
    who: str = ""


def burn_down(moments: Sequence[Moment], *, dataset: str, delta: float = 0.0) -> Any:
    """Steps of what was spent, the budget above it, what is set aside, and a cross for every refusal.

    Entries stand in their order, not at their time: clocks are not to be trusted with an account.

    Args:
        moments: The entries of the ledger, in their order.
        dataset: The name of the dataset, for the title.
        delta: The delta at which the epsilons hold.

    Returns:
        An Altair chart.

    Raises:
        InvalidValue: If there is no entry.

    >>> chart = burn_down([Moment(1, "budget", 0.0, 1.0), Moment(2, "charge", 0.25, 1.0)], dataset="survey")
    >>> chart.to_dict()["title"]["text"]
    "25% of the budget of 'survey' is spent"
    """
    if not moments:
        raise InvalidValue("moments", [], "must hold at least one entry", "set a budget first")
    alt = altair()
    points = _thinned(sorted(moments, key=lambda moment: moment.sequence))
    refusals = [moment for moment in points if moment.requested is not None]
    # The last step has a tread too.
    now = replace(points[-1], sequence=points[-1].sequence + 1, kind="now", who="")
    reserves = any(moment.withheld for moment in points)
    rows = [row for moment in [*points, now] for row in _lines_of(moment, reserves)]
    names = [name for name in _COLOURS if name != _REFUSED and any(row["what"] == name for row in rows)]
    encodings = _encodings(names + [_REFUSED] * bool(refusals))
    dashes = alt.StrokeDash(
        "what:N",
        sort=names,
        legend=None,
        scale=alt.Scale(domain=names, range=[_DASHES[name] for name in names]),
    )
    lines = alt.Chart(data_of(rows))
    layers = [
        lines.transform_filter(alt.datum.what == _SPENT)
        .mark_area(interpolate="step-after", opacity=0.15, color=BLUE)
        .encode(x=encodings["x"], y=encodings["y"]),
        lines.mark_line(interpolate="step-after", strokeWidth=2.2).encode(strokeDash=dashes, **encodings),
    ]
    if refusals:
        crosses = alt.Chart(data_of([_cross_of(moment) for moment in refusals]))
        layers.append(crosses.mark_point(shape="cross", angle=45, size=90, filled=True, opacity=1).encode(**encodings))
    return finished(
        alt.layer(*layers).properties(width=560, height=320),
        _claim(points[-1], dataset),
        _subtitle(moments, delta),
    )


def _encodings(legend: list[str]) -> dict[str, Any]:
    """Axes, colours and tooltips of lines and crosses alike."""
    alt = altair()
    tooltips = [
        alt.Tooltip("sequence:Q", title="entry", format="d"),
        *(alt.Tooltip(f"{name}:N") for name in ("kind", "who", "what")),
        alt.Tooltip("epsilon:Q", format=".4g"),
        alt.Tooltip("requested:N"),
    ]
    entries = alt.Axis(tickMinStep=1, format="d")
    colours = alt.Scale(domain=legend, range=[_COLOURS[name] for name in legend])
    return {
        "x": alt.X("sequence:Q", title="entry of the ledger", axis=entries, scale=alt.Scale(zero=False, nice=False)),
        "y": alt.Y("epsilon:Q", title="epsilon", scale=alt.Scale(zero=True)),
        "color": alt.Color("what:N", title=None, sort=legend, scale=colours),
        "tooltip": tooltips,
    }


def _lines_of(moment: Moment, reserves: bool) -> list[Row]:
    levels = {_SPENT: moment.spent, _BUDGET: moment.budget}
    if reserves:
        levels[_OPEN] = max(0.0, moment.budget - moment.withheld)
    about = {"sequence": moment.sequence, "kind": moment.kind, "who": moment.who, "requested": ""}
    return [{"what": what, "epsilon": level, **about} for what, level in levels.items() if math.isfinite(level)]


def _cross_of(moment: Moment) -> Row:
    """Where the charge would have led, but never so high that the rest of the picture becomes flat."""
    requested = moment.requested or 0.0
    height = min(moment.spent + requested, 1.1 * moment.budget)
    about = {"sequence": moment.sequence, "kind": moment.kind, "who": moment.who, "requested": f"{requested:.3g}"}
    return {"what": _REFUSED, "epsilon": height if math.isfinite(height) else moment.budget, **about}


def _thinned(moments: Sequence[Moment]) -> list[Moment]:
    """All of them when they are few; otherwise evenly chosen ones, both ends, and changes of the budget."""
    if len(moments) <= MOST_POINTS:
        return list(moments)
    stride = -(-len(moments) // (MOST_POINTS // 2))
    chosen = set(range(0, len(moments), stride)) | {len(moments) - 1}
    changes = [
        number
        for number in range(1, len(moments))
        if (moments[number].budget, moments[number].withheld)
        != (moments[number - 1].budget, moments[number - 1].withheld)
    ]
    chosen.update(changes[: MOST_POINTS // 2])
    return [moments[number] for number in sorted(chosen)]


def _claim(last: Moment, dataset: str) -> str:
    if not last.budget > 0:
        return f"{dataset!r} has no budget"
    share = 100 * last.spent / last.budget
    return f"{share:.3g}% of the budget of {dataset!r} is spent"


def _subtitle(moments: Sequence[Moment], delta: float) -> list[str]:
    last = moments[-1]
    refused = sum(moment.requested is not None for moment in moments)
    charges = sum(moment.kind == "charge" for moment in moments)
    aside = f", {last.withheld:.3g} of it set aside" if last.withheld else ""
    return [
        f"epsilon {last.spent:.3g} of {last.budget:.3g}{aside}, at delta = {delta:.3g}.",
        f"{charges:,} charge{'s' * (charges != 1)}, {refused or 'none'} refused"
        + (f"; {MOST_POINTS:,} points at most are drawn." if len(moments) > MOST_POINTS else "."),
    ]

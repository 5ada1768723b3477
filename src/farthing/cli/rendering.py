"""A comparison as a table for people and as JSON for programs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from farthing.numerics import Bounds
from farthing.numerics.digits import as_typed, interval, shown, shown_down, shown_up

if TYPE_CHECKING:
    from rich.console import Console

    from farthing.accounting.comparison import Comparison, Line


WIDE = 100  # columns from which on remarks are shown beside sources


def print_comparison(comparison: Comparison, console: Console) -> None:
    """The optimum with its interval, then every theorem and what it wastes."""

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False)

    mechanisms = "mechanism" if comparison.k == 1 else "mechanisms"
    default = " (the default; choose with --delta)" if comparison.delta_is_default else ""
    say(f"{comparison.k:,} {mechanisms} at delta = {as_typed(comparison.delta)}{default}")
    if comparison.reason:
        say(f"Optimum: epsilon = inf, no finite epsilon exists: {comparison.reason}.")
    else:
        say(f"Optimum: epsilon = {shown_up(comparison.optimal.upper, 7)}, {_interval(comparison.optimal)}")
    if comparison.at_epsilon is not None:
        epsilon, bounds = comparison.at_epsilon
        say(f"At epsilon = {as_typed(epsilon)}: delta = {shown_up(bounds.upper, 7)}, {_interval(bounds)}")
    if not comparison.k:
        say("Nothing is composed, so nothing is lost.")
    elif any(line.applies and math.isfinite(line.epsilon) for line in comparison.lines):
        console.print(_table(comparison, wide=console.width >= WIDE))
    else:
        say("No theorem gives a finite epsilon either.")
    for note in comparison.notes:
        say(note)
    say(f"Engine: {comparison.engine}, because {comparison.engine_reason}.")
    say(
        f"Time: {shown(comparison.seconds, 2)} s for the optimum, {shown(comparison.seconds_in_all, 2)} s in all."
    )


def json_of(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON-ready data; infinity is the string "inf", because JSON has no number for it."""
    answer: dict[str, Any] = {
        "k": comparison.k,
        "delta": comparison.delta,
        "optimal": _bounds_as_data(comparison.optimal),
        "engine": comparison.engine,
        "engine_reason": comparison.engine_reason,
        "theorems": [_line_as_data(line) for line in comparison.lines],
        "notes": list(comparison.notes),
        "seconds": comparison.seconds,
        "seconds_in_all": comparison.seconds_in_all,
    }
    if comparison.reason:
        answer["reason"] = comparison.reason
    if comparison.at_epsilon is not None:
        epsilon, bounds = comparison.at_epsilon
        answer["at_epsilon"] = {"epsilon": epsilon, "delta": _bounds_as_data(bounds)}
    return answer


def _table(comparison: Comparison, *, wide: bool) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("theorem", overflow="fold")
    table.add_column("epsilon", justify="right", no_wrap=True)
    table.add_column("waste", justify="right", no_wrap=True)
    table.add_column("waste %", justify="right", no_wrap=True)
    table.add_column("source or remark", overflow="fold", style="dim")
    best = comparison.optimal
    word = "proven" if best.proven else "not proven"
    table.add_row(
        Text("optimal", style="bold"), Text(shown_up(best.upper, 7), style="bold"), "", "", Text(word)
    )
    for line in comparison.lines:
        if line.applies:
            cells = (shown_up(line.epsilon, 7), _waste(line.waste), _percent(line.waste_percent))
        else:
            cells = ("-", "", "")
        # Where room is short, a source is enough for a theorem that applies; JSON has everything.
        note = line.note if wide or not line.applies or math.isinf(line.epsilon) else ""
        table.add_row(Text(line.name), *cells, Text("; ".join(filter(None, (line.source, note)))))
    return table


def _interval(bounds: Bounds) -> str:
    word = "proven" if bounds.proven else "estimated, not proven,"
    if bounds.lower == bounds.upper:
        return f"{word} exactly"
    if math.isinf(bounds.upper):
        return f"{word} to be at least {shown_down(bounds.lower, 7)}"
    return f"{word} in {interval(bounds.lower, bounds.upper)} ({shown(bounds.width, 2)} wide)"


def _waste(waste: float | None) -> str:
    if waste is None:
        return ""
    return f"+{_three_digits(waste)}" if 0 < waste < math.inf else shown(waste)


def _percent(percent: float | None) -> str:
    if percent is None or math.isinf(percent):
        return ""
    return f"+{_three_digits(percent)} %" if percent > 0 else "0 %"


def _three_digits(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= value < 1e9 else shown(value, 3)


def _bounds_as_data(bounds: Bounds) -> dict[str, Any]:
    return {
        "lower": _number(bounds.lower),
        "upper": _number(bounds.upper),
        "estimate": _number(bounds.estimate),
        "proven": bounds.proven,
    }


def _line_as_data(line: Line) -> dict[str, Any]:
    return {
        "name": line.name,
        "epsilon": _number(line.epsilon) if line.applies else None,
        "source": line.source,
        "applies": line.applies,
        "note": line.note,
        "waste": None if line.waste is None else _number(line.waste),
        "waste_percent": None if line.waste_percent is None else _number(line.waste_percent),
    }


def _number(value: float) -> float | str:
    # A string compares with no number, so a program that forgets the case stops instead of reading a low cost.
    return value if math.isfinite(value) else "inf"

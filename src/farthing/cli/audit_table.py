"""The outcomes of an examination as a table for people and as JSON for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from farthing.numerics.digits import shown, shown_down

if TYPE_CHECKING:
    from rich.console import Console

    from farthing.auditing import AuditReport
    from farthing.auditing.self_test import Outcome


WIDE = 110  # columns from which on samples, seconds and events are shown; JSON has them always


def print_outcomes(outcomes: Sequence[Outcome], confidence: float, seconds: float, console: Console) -> None:
    """One table for the mechanisms, one for the planted bugs, then what went wrong, then what it means."""

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False)

    for kind, title in (
        ("mechanism", "Mechanisms, each against its own event"),
        ("planted bug", "Planted bugs, which have to be caught"),
    ):
        rows = [outcome for outcome in outcomes if outcome.check.kind == kind]
        if rows:
            say(title)
            console.print(_table(rows, kind, wide=console.width >= WIDE))
    for outcome in outcomes:
        if not outcome.good:
            say(f"{outcome.check.name}: {outcome.verdict}\n{outcome.report}\n")
    say(_summary(outcomes))
    say(
        f"All bounds hold together with confidence {confidence:g}. "
        "An audit can contradict a claim; it never proves one."
    )
    say(f"Time: {seconds:.0f} s.")


def json_of(outcomes: Sequence[Outcome], confidence: float, seconds: float) -> dict[str, Any]:
    """The outcomes as JSON-ready data; infinity is the string "inf"."""
    return {
        "good": all(outcome.good for outcome in outcomes),
        "confidence": confidence,
        "seconds": seconds,
        "checks": [
            {
                "name": outcome.check.name,
                "kind": outcome.check.kind,
                "story": outcome.check.story,
                "verdict": outcome.verdict,
                "good": outcome.good,
                "judged": not outcome.wanting,
                **outcome.report.to_dict(),
            }
            for outcome in outcomes
        ],
    }


def _summary(outcomes: Sequence[Outcome]) -> str:
    ours = [outcome for outcome in outcomes if outcome.check.kind == "mechanism"]
    planted = [outcome for outcome in outcomes if outcome.check.kind == "planted bug"]
    parts = []
    if ours:
        bad = sum(not outcome.good for outcome in ours)
        parts.append(f"{len(ours)} mechanism{'s' * (len(ours) != 1)}: {bad or 'none'} contradicted.")
    if planted:
        parts.append(f"{len(planted)} planted bug{'s' * (len(planted) != 1)}: {_self_test(planted)}.")
    return " ".join(parts)


def _self_test(planted: Sequence[Outcome]) -> str:
    """How many were caught, missed, and left without what it takes to see them."""
    caught = sum(outcome.report.violation for outcome in planted)
    if caught == len(planted):
        return "all caught"
    missed = sum(not outcome.good for outcome in planted)
    parts = [f"{missed} MISSED"] if missed else []
    unjudged = [outcome for outcome in planted if outcome.wanting]
    short = [outcome for outcome in unjudged if outcome.report.samples < outcome.check.samples]
    if short:
        cap, most = (
            max(each) for each in zip(*((o.report.samples, o.check.samples) for o in short), strict=True)
        )
        needed = f"up to {most:,}" if len(short) > 1 else f"{most:,}"
        them = "them" if len(short) > 1 else "it"
        reason = f"--samples {cap:,} is too few to see {them} ({needed} needed)"
        parts.append(f"{len(short)} not judged, because {reason}")
    if len(unjudged) > len(short):
        parts.append(f"{len(unjudged) - len(short)} not judged, because --confidence asks for too much")
    return "; ".join([f"{caught or 'none'} caught", *parts])


def _table(outcomes: Sequence[Outcome], kind: str, *, wide: bool) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    planted = kind == "planted bug"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(kind, no_wrap=True)
    table.add_column("claimed", justify="right", no_wrap=True)
    table.add_column("at least", justify="right", no_wrap=True)
    table.add_column("verdict" if planted else "claim", no_wrap=True)
    if not planted:
        table.add_column("notices", justify="right", no_wrap=True)
    if wide:
        table.add_column("samples", justify="right", no_wrap=True)
        table.add_column("s", justify="right", no_wrap=True)
        table.add_column("event", overflow="fold", style="dim")
    for outcome in outcomes:
        report = outcome.report
        cells = [
            Text(outcome.check.name),
            Text(_claimed(report)),
            Text(shown_down(report.epsilon_lower, 3)),
            Text(outcome.verdict, style=_style(outcome)),
        ]
        if not planted:
            cells.append(Text(shown(report.detectable, 3) if math.isfinite(report.detectable) else "-"))
        if wide:
            cells += [Text(f"{report.samples:,}"), Text(shown(report.seconds, 2)), Text(report.event)]
        table.add_row(*cells)
    return table


def _style(outcome: Outcome) -> str:
    if outcome.wanting:
        return "yellow"
    return "green" if outcome.good else "bold red"


def _claimed(report: AuditReport) -> str:
    at = f", {shown(report.delta, 3)}" if report.delta else ""
    return f"{shown(report.claimed_epsilon, 3)}{at}"

"""Plans as tables of plain text, whose columns line up in any terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.inference.answers import with_interval
from farthing.study.documents.answer_codec import label_texts
from farthing.study.plan_text import shown

if TYPE_CHECKING:
    from farthing.inference import Answer
    from farthing.study.plan import Plan
    from farthing.study.release import Release

_MOST_CELLS = 40
_PRICES = ("basic", "advanced", "kov", "optimal", "own", "sentence")


def plan_table(plan: Plan) -> str:
    """statistic | mechanism | 95% error | epsilon; then the cost, what is mostly noise, and what was assumed."""
    rows = [("statistic", "mechanism", "95% error", "epsilon")]
    rows += [
        (statistic.name, statistic.mechanism, statistic.shown_error, shown(statistic.epsilon))
        for statistic in plan.statistics
    ]
    lines = [] if plan.opening is None else [*textwrap.wrap(plan.opening, 100, subsequent_indent="  "), ""]
    lines += [*aligned(rows, right=(2, 3)), ""]
    lines += textwrap.wrap(_cost(plan), 100, subsequent_indent="  ")
    lines.append(f"price: {plan.price.sentence}")
    if plan.at_once().sentence:
        lines += textwrap.wrap(f"at once: {plan.at_once().sentence}", 100, subsequent_indent="  ")
    for statistic in plan.statistics:
        if statistic.required:
            text = f"required: {statistic.name} {statistic.required}"
            lines += textwrap.wrap(text, 100, subsequent_indent="  ")
    for text in plan.warnings:
        lines += textwrap.wrap(f"warning: {text}", 100, subsequent_indent="  ")
    for text in plan.notes:
        lines += textwrap.wrap(f"note: {text}", 100, subsequent_indent="  ")
    for text in plan.assumptions:
        lines += textwrap.wrap(f"assumed: {text}", 100, subsequent_indent="  ")
    if plan.about is not None:
        lines += textwrap.wrap(f"about: {plan.about}", 100, subsequent_indent="  ")
    return "\n".join(lines)


def plan_data(plan: Plan, confidence: float) -> dict[str, Any]:
    """A plan as plain data."""
    price = plan.price
    return {
        "dataset": plan.study.name,
        "epsilon": plan.problem.epsilon,
        "delta": plan.problem.delta,
        "confidence": confidence,
        "statistics": [statistic.to_dict(confidence) for statistic in plan.statistics],
        "at_once": plan.at_once(confidence).to_dict(),
        "cost": {"lower": plan.cost.lower, "upper": plan.cost.upper},
        "price": {name: getattr(price, name) for name in _PRICES},
        "assumed_rows": plan.assumed_rows,
        "counting": plan.counting,
        "counted": None if plan.design.counted is None else asdict(plan.design.counted),
        "opening": plan.opening,
        "assumptions": list(plan.assumptions),
        "notes": list(plan.notes),
        "about": plan.about,
        "warnings": list(plan.warnings),
        "rows": plan.rows,
        "request_id": plan.request_id,
        "released": plan.earlier is not None and plan.earlier.exact,
    }


def _cost(plan: Plan) -> str:
    """What it will cost, or what was paid by the release that the ledger has."""
    cost = f"epsilon {shown(plan.cost.upper, 6)} of {_limit(plan)} at delta {plan.delta:g}"
    earlier = plan.earlier
    if earlier is None:
        return f"cost: {cost}; nothing is spent yet"
    if earlier.exact:
        again = "farthing release --fresh" if plan.from_file else "release(fresh=True)"
        paid = f"epsilon {shown(float(earlier.plan['cost']['upper']), 6)} at delta {plan.delta:g}"
        return (
            f"cost: nothing. It was released before, for {paid}, as {earlier.request_id}: releasing it returns those "
            f"answers. {again} draws new noise and is charged again."
        )
    return (
        f"cost: {cost}, as it was when {earlier.request_id} was planned; it no longer fits the budget. With the "
        "controls it had then, releasing it costs nothing."
    )


def _limit(plan: Plan) -> str:
    """What the plan may use, beside the budget where that is more."""
    limit, budget = plan.problem.epsilon - plan.problem.reserved, plan.study.epsilon
    if limit >= budget:
        return shown(limit, 6)
    return f"the {shown(limit, 6)} this plan may use (budget {shown(budget, 6)})"


def release_table(release: Release) -> str:
    """statistic | cell | answer; of a statistic with very many cells the first few."""
    levels = {answer.confidence for answer in release.answers.values()}
    level = f" ({100 * levels.pop():g}%)" if len(levels) == 1 else ""
    rows = [("statistic", "cell", f"answer{level}")]
    for answer in release.answers.values():
        rows += _answer_rows(answer)
    lines = aligned(rows)
    notes: dict[str, list[str]] = {}
    for answer in release.answers.values():
        if answer.note:
            notes.setdefault(answer.note, []).append(answer.name)
    for note, names in notes.items():  # several statistics of one column say the same: once is enough
        few = names if len(names) <= 4 else [*names[:3], f"{len(names) - 3:,} more"]
        told = f"{', '.join(few[:-1])} and {few[-1]}" if few[1:] else few[0]
        lines += ["", *textwrap.wrap(f"note: {told}: {note}", 100, subsequent_indent="  ")]
    for text in release.warnings:
        lines += ["", *textwrap.wrap(f"warning: {text}", 100, subsequent_indent="  ")]
    if release.about is not None:
        lines += ["", *textwrap.wrap(f"about: {release.about}", 100, subsequent_indent="  ")]
    return "\n".join(lines)


def _answer_rows(answer: Answer) -> list[tuple[str, str, str]]:
    few = slice(_MOST_CELLS)
    columns = (np.atleast_1d(column)[few] for column in (answer.values, answer.lower, answer.upper))
    texts = [with_interval(*map(float, cell)) for cell in zip(*columns, strict=True)]
    width = max(text.find(" ") if " " in text else len(text) for text in texts)
    texts = [" " * (width - len(text.split(" ")[0])) + text for text in texts]
    names = [answer.name, *[""] * (len(texts) - 1)]
    rows = list(zip(names, label_texts(answer.labels[few]) or [""], texts, strict=True))
    if len(answer) > _MOST_CELLS:
        return [*rows, ("", f"... and {len(answer) - _MOST_CELLS:,} more", "")]
    return rows


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows of text with a line below the first, columns two spaces apart.

    >>> print("\\n".join(aligned([("name", "n"), ("a", "10")], right=[1])))
    name   n
    ----  --
    a     10
    """
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    ruled = [rows[0], tuple("-" * width for width in widths), *rows[1:]]
    return [
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in ruled
    ]

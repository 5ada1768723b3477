"""Numbers and plans in plain words."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from farthing.numerics.bounds import shown_up
from farthing.statistics.public_facts import assumed_size

if TYPE_CHECKING:
    from farthing.study.plan import Plan
    from farthing.study.planned_statistic import PlannedStatistic


def shown(number: float, digits: int = 3) -> str:
    """A number with three significant digits, thousands apart; small ones keep their size.

    >>> shown(41234.5), shown(0.000123456), shown(12.0), shown(float("inf"))
    ('41,200', '0.000123', '12', 'unlimited')
    """
    if math.isnan(number):
        return "unknown"
    if math.isinf(number):
        return "unlimited"
    if number == 0:
        return "0"
    size = math.floor(math.log10(abs(number)))
    if size < -5:
        return f"{number:.{digits - 1}e}"
    places = max(0, digits - 1 - size)
    text = f"{round(number, digits - 1 - size):,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def shown_error(number: float) -> str:
    """An error with three significant digits, never rounded down: what is shown is what holds.

    >>> shown_error(0.2541), shown_error(41_201.0), shown_error(3.0)
    ('0.255', '41,300', '3')
    """
    return shown(float(shown_up(number, 3)))


def sentence_of(statistic: PlannedStatistic, confidence: float = 0.95) -> str:
    """The predicted error as a sentence; it is never rounded down."""
    times = f"{100 * confidence:g} times in 100"
    error = shown_error(statistic.error(confidence))
    if not statistic.noises:
        return "exact: its value is public"
    if statistic.error(confidence) == 0:
        return f"{times} {'exactly the true value' if statistic.cells == 1 else 'a cell has exactly its true value'}"
    if statistic.depends_on and math.isinf(statistic.error(confidence)):
        best = shown_error(statistic.at_best.error(confidence))
        return (
            f"no error can be predicted: from ±{best} at best to no limit, depending on {statistic.depends_on}; "
            "an expected value would tell"
        )
    condition = f", {statistic.output.condition}" if statistic.output.condition else ""
    if math.isinf(statistic.error(confidence)):
        return f"its interval is likely to have no end{condition}"
    found = f"{times} within ±{error} of the true value{condition}"
    if statistic.cells > 1:
        found = f"{times} a cell is within ±{error} of its true value{condition}"
    if statistic.depends_on:
        best = shown_error(statistic.at_best.error(confidence))
        found += f"; at best within ±{best}, depending on {statistic.depends_on}"
    return found


def required_sentence(statistic: PlannedStatistic) -> str:
    """What is required of a statistic, how often a release keeps it, and what that rests on: in one line."""
    asked = statistic.requirement
    if asked is None or not statistic.noises:
        return ""
    every = "every cell " if statistic.cells > 1 else ""
    found = f"{every}within ±{shown(asked.within, 6)} ({100 * asked.confidence:g}%) {statistic.output.holds}"
    clauses = statistic.rests_on
    if not clauses:
        return f"{found}, whatever the data"
    listed = f"{', '.join(clauses[:-1])} and {clauses[-1]}" if len(clauses) > 1 else clauses[0]
    return f"{found}, if {listed}"


def opening_line(
    assumed_rows: int | None,
    names: Sequence[str] | None = None,
    *,
    from_file: bool = False,
    counting: str = "",
) -> str | None:
    """What a plan says first where nobody said how many rows there are: which errors are for an assumed size.

    `names` are the statistics whose errors depend on it, None for all; `counting` says how to have the rows counted.

    >>> print(opening_line(10_000, from_file=True))
    every error here is for an assumed size: the table is assumed to have 10,000 rows; write rows = ... below [expected]
    >>> print(opening_line(10_000, ["std of age"]))
    the error of std of age is for an assumed size: the table is assumed to have 10,000 rows; say expected={'rows': ...}
    >>> opening_line(None)
    """
    if assumed_rows is None:
        return None
    size = assumed_size(assumed_rows)
    if names is None:
        which = "every error here is"
    elif len(names) == 1:
        which = f"the error of {names[0]} is"
    else:
        rest = f"{len(names) - _FEW_NAMES:,} more" if len(names) > _FEW_NAMES + 1 else names[-1]
        first = names[:_FEW_NAMES] if len(names) > _FEW_NAMES + 1 else names[:-1]
        which = f"the errors of {', '.join(first)} and {rest} are"
    return f"{which} for an assumed size: {in_toml(size) if from_file else size}{counting}"


def opening_of(plan: Plan) -> str | None:
    """What a plan says first, with the way to have the rows counted."""
    names = [output.name for output in plan.design.sized]
    counting = ""
    if plan.counting is not None:
        how = "farthing release --count-first" if plan.from_file else "study.count_rows()"
        counting = f", or have them counted first, for epsilon {shown(plan.counting)}: {how}"
    return opening_line(
        plan.assumed_rows,
        None if len(names) == len(plan.design.outputs) else names,
        from_file=plan.from_file,
        counting=counting,
    )


_FEW_NAMES = 3  # statistics that the first line names
_HINT = re.compile(r"say expected=\{(.+): (\.\.\.|\[.*\])\}$")


def in_toml(assumption: str) -> str:
    """An assumption whose hint is for a study.toml rather than for Python.

    >>> in_toml("the table is assumed to have 10,000 rows; say expected={'rows': ...}")
    'the table is assumed to have 10,000 rows; write rows = ... below [expected]'
    >>> in_toml("yearly income is assumed to be spread evenly; say expected={'yearly income': ...}")
    'yearly income is assumed to be spread evenly; write "yearly income" = ... below [expected]'
    """

    def written(hint: re.Match[str]) -> str:
        name = ast.literal_eval(hint[1])
        key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
        return f"write {key} = {hint[2]} below [expected]"

    return _HINT.sub(written, assumption)


def explained(plan: Plan) -> str:
    """What is measured, how each statistic comes out of it, and what it costs."""
    lines = [] if plan.opening is None else [plan.opening]
    lines += ["What is measured (each row is counted in one cell, or in the sums that hold its cell):"]
    design = plan.design
    for slot in design.slots:
        noise = plan.allocation.noises[slot.name]
        kind = {"laplace": "epsilon", "gaussian": "noise multiplier", "exponential": "epsilon"}[noise.kind]
        lines.append(
            f"  {slot.name}: {slot.told(noise)}, {noise.kind} noise of {kind} {shown(noise.parameter)}"
        )
    lines.append("What comes out of it:")
    for statistic in plan.statistics:
        sources = ", ".join(name for name, _ in statistic.noises) or "public facts"
        lines.append(f"  {statistic.name}: from {sources}; {statistic.sentence}")
        lines += [f"    {text}" for text in statistic.remarks]
        lines += [f"    required: {statistic.required}"] if statistic.required else []
    if plan.at_once().sentence:
        lines += ["How far off all numbers are at once:", f"  {plan.at_once().sentence}"]
    price = plan.price
    lines += [
        "What it costs:",
        f"  epsilon {shown(plan.cost.upper, 6)} at delta {plan.delta:g}, proven",
        f"  summed {shown(price.basic)}, advanced {shown(price.advanced)}, KOV {shown(price.kov)}, "
        f"optimal {shown(price.optimal)}, own curves {shown(price.own)}",
        f"  {price.sentence}",
    ]
    if plan.notes:
        lines += ["What is mostly noise:", *(f"  {text}" for text in plan.notes)]
    if plan.assumptions:
        lines += ["What is assumed:", *(f"  {text}" for text in plan.assumptions)]
    return "\n".join(lines)

"""Plans as tables of plain text, whose columns line up in any terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from farthing.study.words import shown

if TYPE_CHECKING:
    from farthing.study.plan import Plan


def plan_table(plan: Plan) -> str:
    """statistic | mechanism | 95% error | epsilon; then the cost, and what was assumed."""
    rows = [("statistic", "mechanism", "95% error", "epsilon")]
    rows += [
        (statistic.name, statistic.mechanism, f"± {shown(statistic.error())}", shown(statistic.epsilon))
        for statistic in plan.statistics
    ]
    cost, limit = plan.cost, plan.problem.epsilon
    lines = [*aligned(rows, right=(2, 3)), ""]
    lines.append(
        f"cost: epsilon {shown(cost.upper, 6)} of {shown(limit, 6)} at delta {plan.delta:g}; nothing is spent yet"
    )
    lines.append(f"price: {plan.price.sentence}")
    for text in plan.assumptions:
        lines += textwrap.wrap(f"assumed: {text}", 100, subsequent_indent="  ")
    return "\n".join(lines)


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

"""Plans and releases as charts: errors predicted, the price under each theorem, values with error bars."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from farthing.accounting.theorems import COMPARED
from farthing.errors import InvalidValue
from farthing.plots._style import BLUE, GREY, Row, altair, data_of, finished

_MOST_CELLS = 60


def plan_chart(plan: Mapping[str, Any]) -> Any:
    """What each statistic takes of the budget, and the price of the whole under each theorem.

    Args:
        plan: The plain data of `Plan.to_dict()`.

    Returns:
        An Altair chart.

    >>> one = {"name": "count", "epsilon": 0.5, "error": 6.0, "mechanism": "discrete Laplace", "sentence": ""}
    >>> plan = {"statistics": [one], "price": {"basic": 0.5, "own": 0.5}, "delta": 0.0, "cost": {"upper": 0.5}}
    >>> plan_chart(plan).to_dict()["title"]["text"]
    '1 statistic for epsilon 0.5'
    """
    alt = altair()
    rows: list[Row] = [
        {
            "statistic": one["name"],
            "epsilon": one["epsilon"],
            "error": f"± {one['error']:.4g}" if _finite(one["error"]) else "unlimited",
            "sentence": one["sentence"],
        }
        for one in plan["statistics"]
        if _finite(one["epsilon"])
    ]
    statistics = alt.Chart(data_of(rows))
    base = statistics.encode(
        x=alt.X("epsilon:Q", title="epsilon of the statistic alone"),
        y=alt.Y("statistic:N", title=None, sort=None, axis=alt.Axis(labelLimit=260)),
        tooltip=["statistic:N", "epsilon:Q", "error:N", "sentence:N"],
    )
    shares = alt.layer(
        base.mark_bar(color=BLUE), base.mark_text(align="left", dx=4, fontSize=11).encode(text="error:N")
    ).properties(width=420)
    prices = [
        {"theorem": theorem.name, "epsilon": plan["price"][theorem.key]}
        for theorem in COMPARED
        if _finite(plan["price"].get(theorem.key))
    ]
    price = (
        alt.Chart(data_of(prices))
        .mark_bar(color=GREY)
        .encode(
            x=alt.X("epsilon:Q", title="total epsilon of the plan"),
            y=alt.Y("theorem:N", title=None, sort=None),
            tooltip=["theorem:N", "epsilon:Q"],
        )
        .properties(width=420)
    )
    count = len(plan["statistics"])
    return finished(
        alt.vconcat(shares, price),
        f"{count} statistic{'s' * (count != 1)} for epsilon {plan['cost']['upper']:.4g}",
        [f"at delta = {plan['delta']:.3g}; the numbers beside the bars are errors at 95%."],
    )


def release_chart(answers: Sequence[Mapping[str, Any]]) -> Any:
    """Every value with its interval, a panel for each statistic.

    Args:
        answers: Records with "statistic", "cell", "value", "lower", "upper" and "confidence", as `Release.records()`
            returns them.

    Returns:
        An Altair chart.

    Raises:
        InvalidValue: If there is no record.

    >>> record = {"statistic": "count", "cell": "", "value": 12.0, "lower": 9.0, "upper": 15.0, "confidence": 0.9}
    >>> release_chart([record]).to_dict()["title"]["text"]
    'count, with 90% intervals'
    """
    alt = altair()
    if not answers:
        raise InvalidValue("answers", [], "must hold at least one")
    names = list(dict.fromkeys(record["statistic"] for record in answers))
    confidence = 100 * float(answers[0].get("confidence", 0.95))
    panels = []
    for name in names:
        rows = [
            {**record, "cell": record["cell"] or name}
            for record in answers
            if record["statistic"] == name and all(_finite(record[key]) for key in ("value", "lower", "upper"))
        ]
        base = alt.Chart(data_of(rows[:_MOST_CELLS])).encode(
            y=alt.Y("cell:N", title=None, sort=None, axis=alt.Axis(labelLimit=220)),
            tooltip=["cell:N", "value:Q", "lower:Q", "upper:Q"],
        )
        counts = {str(row["counts"]) for row in rows if row.get("counts", "rows") != "rows"}
        title = [name, *(f"counts {words}" for words in counts)] if counts else name
        lines = base.mark_rule(color=BLUE, strokeWidth=2).encode(
            x=alt.X("lower:Q", title=title, scale=alt.Scale(zero=False)), x2="upper:Q"
        )
        panels.append(alt.layer(lines, base.mark_point(filled=True, color=BLUE, size=50).encode(x="value:Q")))
    return finished(
        alt.vconcat(*(panel.properties(width=460) for panel in panels)),
        f"{names[0] if len(names) == 1 else f'{len(names)} statistics'}, with {confidence:g}% intervals",
    )


def _finite(value: Any) -> bool:
    return value is not None and math.isfinite(value)

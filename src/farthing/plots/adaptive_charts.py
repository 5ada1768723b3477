"""What deciding as you go costs: the largest charge that fits k times, under every filter, beside the optimum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from farthing.accounting import compose
from farthing.accounting.filters import BasicFilter, ClockFilter, FullyAdaptiveFilter, RenyiFilter
from farthing.errors import InvalidValue
from farthing.numerics.bounds import as_typed
from farthing.plots._style import BLACK, BLUE, GREEN, GREY, VERMILLION, Row, altair, data_of, finished
from farthing.privacy.events import checked_count, checked_delta, checked_epsilon

BUDGETS = ((1.0, 1e-9), (1.0, 1e-6), (3.0, 1e-6))
KS = (2, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 100, 160, 250, 400, 1000, 3000, 10_000)
FIXED = "fixed in advance (optimum)"
_STYLES = {
    FIXED: (BLACK, [1, 0]),
    "clock": (BLUE, [7, 3]),
    "Renyi": (GREEN, [4, 2]),
    "fully adaptive (Whitehouse et al.)": (VERMILLION, [8, 3, 2, 3]),
    "plain sums": (GREY, [2, 3]),
}
_MAKERS: dict[str, Callable[..., Any]] = {
    "clock": partial(ClockFilter, leak=0, equal_charges=False),
    "Renyi": partial(RenyiFilter, leak=0),
    "fully adaptive (Whitehouse et al.)": partial(FullyAdaptiveFilter, leak=0),
    "plain sums": BasicFilter,
}


def largest_charges(budgets: Sequence[tuple[float, float]] = BUDGETS, ks: Sequence[int] = KS) -> list[Row]:
    """The largest pure charge that fits k times into each budget: fixed in advance, and under every filter.

    Args:
        budgets: Pairs of epsilon and delta > 0.
        ks: How many charges there are.

    Returns:
        One row for each budget, k and account: the charge, and its share of the largest one fixed in advance.

    Raises:
        InvalidValue: If an argument is out of its range.

    >>> rows = largest_charges(budgets=[(1.0, 1e-6)], ks=[100])
    >>> for row in rows:
    ...     print(f"{row['account'][:16]:16} {row['charge']:.4f} {row['share']:3.0f}%")
    fixed in advance 0.0240 100%
    clock            0.0235  98%
    Renyi            0.0225  94%
    fully adaptive ( 0.0187  78%
    plain sums       0.0100  42%
    """
    rows: list[Row] = []
    for epsilon, delta in budgets:
        checked_epsilon(epsilon)
        if not checked_delta(delta) > 0:
            raise InvalidValue("delta", delta, "must be > 0", "at delta 0 every account is the plain sum")
        for k in ks:
            if not checked_count(k, "k") >= 1:
                raise InvalidValue("k", k, "must be at least 1")
            fixed = _largest(partial(_fits_in_advance, k, epsilon, delta), epsilon / k, epsilon)
            charges = {FIXED: fixed}
            for name, make in _MAKERS.items():
                charges[name] = _largest(partial(make(epsilon, delta).admits, count=k), epsilon / k, fixed)
            budget = f"epsilon {as_typed(epsilon)}, delta {as_typed(delta)}"
            rows += [
                {"budget": budget, "k": k, "account": name, "charge": charge, "share": round(100 * charge / fixed, 2)}
                for name, charge in charges.items()
            ]
    return rows


def adaptive_charges(rows: Sequence[Row] | None = None) -> Any:
    """How large k equal charges may be when they are chosen as you go, as a share of what could be fixed in advance.

    Args:
        rows: The rows of `largest_charges`; computed by default, which takes a quarter of a minute.

    Returns:
        An Altair chart, one panel for each budget.

    >>> chart = adaptive_charges(largest_charges(budgets=[(1.0, 1e-6)], ks=[10, 100]))
    >>> len(chart.to_dict()["hconcat"])
    1
    """
    alt = altair()
    rows = largest_charges() if rows is None else rows
    names = list(_STYLES)
    legend = alt.Legend(title=None, orient="bottom", columns=5)
    panels = []
    for place, budget in enumerate(dict.fromkeys(row["budget"] for row in rows)):
        own = [row for row in rows if row["budget"] == budget]
        panels.append(
            alt.Chart(data_of(own))
            .mark_line(strokeWidth=2.2)
            .encode(
                x=alt.X(
                    "k:Q",
                    title="charges k (log scale)",
                    scale=alt.Scale(type="log", nice=False),
                    axis=alt.Axis(values=[10, 100, 1000, 10_000]),
                ),
                y=alt.Y(
                    "share:Q",
                    title="charge, % of what could be fixed in advance" if not place else None,
                    scale=alt.Scale(domain=[0, 102]),
                ),
                color=alt.Color(
                    "account:N",
                    sort=names,
                    legend=legend,
                    scale=alt.Scale(domain=names, range=[colour for colour, _ in _STYLES.values()]),
                ),
                strokeDash=alt.StrokeDash(
                    "account:N",
                    sort=names,
                    legend=legend,
                    scale=alt.Scale(domain=names, range=[dash for _, dash in _STYLES.values()]),
                ),
                tooltip=["account:N", "k:Q", alt.Tooltip("charge:Q", format=".4g"), "share:Q"],
            )
            .properties(width=250, height=270, title=str(budget))
        )
    return finished(
        alt.hconcat(*panels),
        "Deciding as you go costs next to nothing once charges are many",
        "The largest charge that fits k times into a budget, as a share of the largest one fixed in advance.",
    )


def _fits_in_advance(k: int, epsilon: float, delta: float, charge: float) -> bool:
    return compose([charge], counts=[k]).delta_at(epsilon).upper <= delta


def _largest(fits: Callable[[float], bool], low: float, high: float) -> float:
    """The largest charge between two, to a few ten-thousandths; the lower one fits, because it adds up."""
    while high - low > 3e-4 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low

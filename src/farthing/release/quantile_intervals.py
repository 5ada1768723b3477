"""Intervals of released quantiles: what is known of a rank whatever the data, read as values with what was expected."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from farthing.mechanisms.base import rounded_up
from farthing.mechanisms.counted_quantiles import CountedQuantiles
from farthing.mechanisms.scores import checked_confidence, least_gap
from farthing.release.expectations import ColumnModel
from farthing.release.facts import ASSUMED_ROWS, Facts
from farthing.release.quantile_grids import QuantileGrid
from farthing.release.quantile_laws import QuantileLaw
from farthing.release.statistic import Statistic

Floats = NDArray[np.float64]


def rank_error(mechanism: CountedQuantiles, confidence: float) -> float:
    """With this probability all answers of a group are within so many rows of the ranks asked for, whatever the data.

    Each choice is given its share of the probability to miss, so that answers put into rising order keep it: if the
    k-th of them lay too high, so would one of the first k choices, whose ranks lie no higher; and likewise too low.
    """
    level = 1 - (1 - checked_confidence(confidence)) / len(mechanism.choices)
    return max(rounded_up(least_gap(one.rate, one.points - 1, level)) for one in mechanism.choices)


def ends_by_rank(
    grid: QuantileGrid, law: QuantileLaw, places: NDArray[np.int64], reach: Floats
) -> tuple[Floats, Floats]:
    """Values that lie a share `reach` of the rows below and above the chosen points, spread as expected.

    The expected distribution is read at the answer and not at its own quantile, which may be far from the true one.
    Beyond the last rows it says nothing, so an end is a bound of the column there.
    """
    blur = 0.0 if law.whole else law.step / 2
    slack = 1e-12  # of sums of shares: outward
    low = law.below[places] - reach - slack
    high = law.upto[places] + reach + slack
    last = len(law.values) - 1
    lower = law.values[np.minimum(np.searchsorted(law.upto, low), last)] - blur
    upper = law.values[np.minimum(np.searchsorted(law.upto, high, "right"), last)] + blur
    return np.where(low <= 0, grid.lower, lower), np.where(high >= 1, grid.upper, upper)


def in_order(lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Ends that rise along the last axis, moved outward where they do not."""
    return (
        np.minimum.accumulate(lower[:, ::-1], axis=1)[:, ::-1],
        np.maximum.accumulate(upper, axis=1),
    )


def note_of(rows: float, choices: int, groups: int, confidence: float, rests_on: str) -> str:
    """What holds of an answer whatever the data, and what its interval rests on.

    >>> note_of(42.3, 1, 1, 0.95, "what was expected of cost")
    "95 times in 100 the answer's rank is within 43 rows of the rank asked for, whatever the data; the interval in \
values rests on what was expected of cost"
    """
    often, whole = f"{100 * confidence:.6g} times in 100", math.ceil(rows)
    far = f"within {whole:,} row{'' if whole == 1 else 's'}"
    if choices == 1:
        known = f"{often} the answer's rank is {far} of the rank asked for"
    else:
        each = " of a group" if groups > 1 else ""
        known = f"{often} the ranks of all answers{each} are {far} of those asked for"
    return f"{known}, whatever the data; the interval in values rests on {rests_on}"


def ground_of(statistic: Statistic, facts: Facts, model: ColumnModel) -> str:
    """What the interval of a quantile rests on, in words: what was expected, and what was only assumed."""
    column = statistic.column
    stated = [] if model.assumed else [f"what was expected of {column}"]
    if is_bell_curve(facts, column):
        stated = [f"what was expected of {column}, taken for a bell curve"]
    assumed = []
    if model.assumed:
        assumed.append(f"{column} is spread evenly between its bounds")
    if not facts.rows_known:
        assumed.append(f"the table has {ASSUMED_ROWS:,} rows")
    if statistic.where is not None:
        assumed.append("the rows that meet the condition are as many and as spread as foretold")
    if statistic.by:
        assumed.append("the groups are as large and as spread as foretold")
    if assumed:
        stated.append(f"the assumption that {' and that '.join(assumed)}")
    return " and on ".join(stated)


def is_bell_curve(facts: Facts, column: str) -> bool:
    """Whether a mean and a standard deviation are all that was said of a column."""
    return isinstance(facts.expected.get(column), tuple)


def spread_assumptions(statistics: Sequence[Statistic], facts: Facts) -> list[str]:
    """Of which quantiles the foretold error rests on a crude guess at the distribution."""
    crude = [
        each.column
        for each in statistics
        if facts.column(each.column).assumed or is_bell_curve(facts, each.column)
    ]
    return [
        f"the error of quantiles of {column} rests on how {column} is spread; "
        "a list of public values foretells it better"
        for column in dict.fromkeys(crude)
    ]

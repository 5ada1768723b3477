"""Cells of few people: withheld where a released count of them is small. It looks at released numbers, never at rows.

A curator may want no number about fewer than so many people to be shown. A true count would say by a refusal, or by a
gap, what a cell holds. So the released count decides, with its noise: a function of what was paid for, which costs
nothing and protects nothing further.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from farthing.inference import Answer
from farthing.statistics.measurements import Output
from farthing.statistics.statistic import Statistic

if TYPE_CHECKING:
    from farthing.data import Dataset

_COUNTS = ("count", "histogram", "top")  # each number of theirs is a count of its own cell
_OF_CELLS = ("sum", "mean", "variance", "std", "median", "quantile")  # one number a cell, in the order of a count's

CONFIDENCE = 0.95


def companion(statistic: Statistic, outputs: Sequence[Output]) -> int | None:
    """The place of the statistic whose counts decide about the cells of another; None where the plan has none.

    Of a count it is the count itself; else a count by the same columns, under the same condition.
    """
    if statistic.kind in _COUNTS:
        return next(place for place, each in enumerate(outputs) if each.statistic == statistic)
    own = next(each for each in outputs if each.statistic == statistic)
    for place, each in enumerate(outputs):
        same = (each.statistic.by, each.statistic.where, each.labels) == (statistic.by, statistic.where, own.labels)
        if statistic.kind in _OF_CELLS and each.statistic.kind == "count" and same:
            return place
    return None


def people_in(statistic: Statistic, dataset: Dataset) -> int:
    """The most that one person adds to a cell of a count: a count over this is at most the number of people."""
    if not dataset.unit or statistic.counts_people:
        return 1
    return max(1, dataset.rows_per_unit if statistic.bound is None else statistic.bound.most_in_cell)


def withheld(
    answers: Sequence[Answer], outputs: Sequence[Output], least: int, rows_of_one: Sequence[int]
) -> list[Answer]:
    """The answers without cells that a released count shows to hold fewer than so many people.

    Args:
        answers: The answers of a plan, in the order of its outputs.
        outputs: What they are answers to; each has a `companion`.
        least: How many people a cell must hold: at the low end of the 95% interval of its count.
        rows_of_one: What one person can add to a cell of each, see `people_in`.

    Returns:
        The same answers; what is withheld has no value and no interval.
    """
    kept = []
    for answer, output in zip(answers, outputs, strict=True):
        place = companion(output.statistic, outputs)
        size = len(np.atleast_1d(answer.values))
        large = np.zeros(size, dtype=bool)  # a number without a count is not shown
        if place is not None:
            low = np.atleast_1d(answers[place].interval_at(CONFIDENCE)[0]) / rows_of_one[place]
            large = np.broadcast_to(low >= least, (size,))  # NaN fails
        kept.append(answer if large.all() else _without(answer, large, least))
    return kept


def _without(answer: Answer, large: NDArray[np.bool_], least: int) -> Answer:
    """An answer of which the cells that are not large are withheld."""

    def interval_at(confidence: float) -> tuple[Any, Any]:
        lower, upper = answer.interval_at(confidence)
        return np.where(large, lower, -math.inf), np.where(large, upper, math.inf)

    cells, gone = len(large), int((~large).sum())
    which = "the number is" if cells == 1 else f"{gone:,} of {cells:,} cells {'is' if gone == 1 else 'are'}"
    said = f"{which} withheld: the low end of the 95% interval of its released count is below {least:,} people"
    hidden = Answer.within(
        answer.name,
        np.where(large, answer.values, math.nan),
        np.where(large, answer.standard_errors, math.inf),
        interval_at,
        answer.labels,
        confidence=answer.confidence,
        note="; ".join(filter(None, [answer.note, said])),
        raw=np.where(large, answer.raw, math.nan),
    )
    return replace(hidden, asking=None)

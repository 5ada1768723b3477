"""The most frequent values: all are counted with noise, and those with the largest noisy counts are shown, in order.

Whichever values come out on top, their noise helped them there: the interval of one count by itself would be too
optimistic for them. So every interval is made to hold for all counted values at once, and hence for those shown.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from farthing.inference import Answer
from farthing.inference.answers import level_at_once


def ranked(answer: Answer, most: int, *, independent: bool) -> Answer:
    """The largest numbers of an answer, in order, with intervals that hold however they were chosen.

    Args:
        answer: One number for each value.
        most: How many to show.
        independent: Whether the errors of the numbers are independent.

    Returns:
        An answer of at most so many numbers, the largest first; equal ones stay in the order of the values.

    >>> from farthing.inference import ErrorDistribution, Term
    >>> noise = ErrorDistribution([Term("laplace", 2.0)])
    >>> counts = Answer.around("top 2", [7, 510, 90], noise, ("a", "b", "c"), least=0)
    >>> print(counts["b"], ranked(counts, 2, independent=True), sep="\\n")
    510 ± 6 (95%)
    top 2 (95%)
      b  510 ± 8
      c   90 ± 8
    note: each interval holds for all 3 values together, whichever are shown
    """
    values, cells = np.atleast_1d(np.asarray(answer.values, dtype=float)), max(1, len(answer.labels))
    order = np.argsort(-values, kind="stable")[:most]

    def interval_at(confidence: float) -> tuple[Any, Any]:
        ends = answer.interval_at(level_at_once(confidence, cells, independent=independent))
        lower, upper = (np.broadcast_to(end, values.shape)[order] for end in ends)
        return lower, upper

    said = [answer.note] if answer.note else []
    if cells > 1:
        said.append(f"each interval holds for all {cells:,} values together, whichever are shown")
    return Answer.within(
        answer.name,
        values[order],
        np.broadcast_to(answer.standard_errors, values.shape)[order],
        interval_at,
        tuple(answer.labels[place] for place in order),
        confidence=answer.confidence,
        note="; ".join(said),
        raw=np.broadcast_to(answer.raw, values.shape)[order],
    )

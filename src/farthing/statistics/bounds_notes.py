"""What declared bounds do to a released number, in words: from public facts and that number alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from farthing.data import Integers, Reals
from farthing.data.schema import Dates, Schema
from farthing.inference import Answer
from farthing.statistics.statistic import MOMENTS, QUANTILES, Statistic

Floats = NDArray[np.float64]
Limits = tuple[Floats | float, Floats | float]
CHECK = "check the bounds with farthing check"
_CLIPPED = (*MOMENTS, "cdf", "linear_regression")  # quantiles say it beside what their interval rests on
_NEAR = 1e-9  # of the distance of the limits


def clipped_columns(statistic: Statistic, schema: Schema) -> tuple[str, ...]:
    """The columns of a statistic whose values outside declared bounds count as the nearer one."""
    if statistic.kind not in (*_CLIPPED, *QUANTILES):
        return ()
    return tuple(name for name in statistic.columns if isinstance(schema[name], Integers | Reals | Dates))


def outside(lower: object, upper: object) -> str:
    """Which values count as a bound; in full, since 1,234,567 is not 1.23457e+06.

    >>> outside(0, 1_234_567.0), outside(10.5, 60.0)
    ('outside 0 to 1234567', 'outside 10.5 to 60')
    """
    texts = (f"{bound:.15g}" if isinstance(bound, int | float) else str(bound) for bound in (lower, upper))
    return "outside " + " to ".join(texts)


def too_few_rows(statistic: Statistic, whole: int, cells: int) -> str:
    """That intervals are all that the bounds allow: the number beside such a one says nothing.

    >>> from farthing.statistics import median
    >>> too_few_rows(median("age"), 1, 1)
    'the interval is as wide as the bounds: there are too few rows for this epsilon'
    >>> too_few_rows(median("age", by="sex"), 1, 2).rpartition("or ")[2]
    'the categories of sex do not match the file: farthing check'
    """
    which = (
        "the interval is"
        if cells == 1
        else f"{whole:,} of {cells:,} intervals {'is' if whole == 1 else 'are'}"
    )
    text = f"{which} as wide as the bounds: there are too few rows for this epsilon"
    if not statistic.by:
        return text
    named = " and ".join(statistic.by)
    return f"{text}, or the categories of {named} do not match the file: farthing check"


def with_bounds(answer: Answer, statistic: Statistic, schema: Schema, limits: Limits | None) -> Answer:
    """The answer with a note of what its bounds do; `limits` are the least and the most that they allow each cell.

    The note is a function of the declaration and of the released interval, so that it costs nothing.
    """
    columns = clipped_columns(statistic, schema)
    if not columns:
        return answer
    said = [answer.note] if answer.note else []
    if statistic.kind in _CLIPPED:
        said.insert(0, _clipped(columns, schema))
    if limits is not None:
        said += _reached(answer, statistic, limits)
    return replace(answer, note="; ".join(said))


def _clipped(columns: Sequence[str], schema: Schema) -> str:
    spans = []
    for name in columns:
        domain = schema[name]
        assert isinstance(domain, Integers | Reals | Dates)
        spans.append(outside(domain.lower, domain.upper))
    if len(columns) > 1:
        spans = [f"of {name} {span}" for name, span in zip(columns, spans, strict=True)]
    return f"values {', '.join(spans[:-1])}{' and ' if len(spans) > 1 else ''}{spans[-1]} count as the nearer bound"


def _reached(answer: Answer, statistic: Statistic, limits: Limits) -> list[str]:
    """That an interval reaches a limit; not of one that reaches both, which says nothing at all."""
    least, most = (np.asarray(limit, dtype=float) for limit in limits)
    room = _NEAR * np.abs(most - least)
    below = np.atleast_1d(answer.lower) <= least + room
    above = np.atleast_1d(answer.upper) >= most - room
    one_sided = below ^ above
    if not one_sided.any():
        return []
    cells, reached = len(one_sided), int(one_sided.sum())
    which = "the interval reaches"
    if cells > 1:
        which = f"{reached:,} of {cells:,} intervals {'reaches' if reached == 1 else 'reach'}"
    if statistic.kind not in ("variance", "std"):
        return [f"{which} the declared bound: {CHECK}"]
    at_least, at_most = (below & one_sided).any(), (above & one_sided).any()
    where = {
        (True, False): "0, as if all values were the same, or beyond one bound",
        (False, True): "the most that the declared bounds allow",
        (True, True): "0 or the most that the declared bounds allow",
    }[bool(at_least), bool(at_most)]
    return [f"{which} {where}: {CHECK}"]

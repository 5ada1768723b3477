"""What a monitor watches: counts of rows, one for each condition and each public cell."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.data import Count, Dataset
from farthing.data.stability import ADD_REMOVE
from farthing.errors import InvalidValue
from farthing.privacy.events import checked_real
from farthing.statistics.constructors import Statistic, count

MOST_SERIES = 2**17
_LARGEST_THRESHOLD = 2**62


@dataclass(frozen=True)
class Series:
    """One count that is looked at again and again.

    Attributes:
        name: The name of the series.
        statistic: The name of the count that it belongs to.
        labels: The values of the `by` columns that it is the count of; empty for a count of all rows that meet the
            condition.

    >>> Series("count by region: north", "count by region", ("north",)).name
    'count by region: north'
    """

    name: str
    statistic: str
    labels: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Watched:
    """The series of a monitor, the counts they are read from, and how far one unit moves any single one of them.

    Attributes:
        series: The series, in their order.
        counts: The aggregates that they are read from, by statistic.
        l1_sensitivity: The most that one unit moves any single series.
        monotone: Whether one unit moves all series in the same direction.

    Statement:
        A monitor reads a stream of tables D_1, D_2, ..., one at each look. Two streams are neighbours if one unit is
        the whole difference: D'_t is D_t with the rows of that unit added, removed or replaced, at every t, however
        many rows and looks that is. Then at every t the two tables are neighbours in the sense of the dataset, so
        that every count differs by at most s, the largest linf sensitivity of the counts. If units are added or
        removed, one at a time, all counts of all looks move in the same direction or not at all. This is all that
        the proof at `SparseVector` asks for: nothing is said about how many counts move, nor at how many looks.
    Source: immediate from the sensitivity of a count; the monotone case is that of `SparseVector`.
    Assumes: each table is read with the dataset's own bound on rows of a unit (by any choice among the unit's own
        rows, drawn again at each look); conditions and thresholds may depend on earlier answers.
    Direction: s is an upper bound; `monotone` is claimed for single units that are added or removed, and for no other.
    Checked by: tests/theorems/test_streams_of_counts.py

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> visits = pyarrow.table({"person": [1, 1], "region": ["n", "s"]})
    >>> cases = dataset(visits, unit="person", max_rows=3, schema={"region": ["n", "s"]})
    >>> seen = watched([], cases, by="region")
    >>> seen.l1_sensitivity, seen.monotone, seen.values(cases.exact(seen.counts))
    (3, True, [1, 1])
    """

    series: tuple[Series, ...]
    counts: Mapping[str, Count]
    l1_sensitivity: int
    monotone: bool

    def values(self, exact: Mapping[str, Any]) -> list[int]:
        """The private counts in the order of the series, from those of `Dataset.exact`.

        Args:
            exact: What `Dataset.exact` returned.

        Returns:
            One count for each series.
        """
        return [int(value) for name in self.counts for value in np.asarray(exact[name]).reshape(-1)]


def watched(asked: Sequence[Any], dataset: Dataset, by: str | Sequence[str] | None = None) -> Watched:
    """The series of some counts: statistics, or conditions as text; with `by`, one for each cell of each.

    Args:
        asked: Counts, or conditions as text.
        dataset: The table.
        by: Columns; there is one series for each of their cells.

    Returns:
        The series.

    Raises:
        InvalidValue: If something is not a count, or there are too many series.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> cases = dataset(pyarrow.table({"region": ["n"], "age": [3]}), schema={"region": ["n", "s"], "age": (0, 110)})
    >>> [series.name for series in watched(["age < 18"], cases, by="region").series]
    ['count where age < 18 by region: n', 'count where age < 18 by region: s']
    """
    if len(asked) == 1 and isinstance(asked[0], list | tuple):
        asked = asked[0]
    statistics = [_counted(one, by) for one in asked] or [count(by=by)]
    counts = {one.name: Count(by=one.by, where=one.where) for one in statistics}
    if len(counts) < len(statistics):
        raise InvalidValue("series", [one.name for one in statistics], "must have different names", "give name=")
    cells = sum(one.cell_count(dataset.schema) for one in counts.values())
    if not cells <= MOST_SERIES:
        raise InvalidValue("series", cells, f"must be at most {MOST_SERIES:,}", "use fewer or wider cells")
    reach = max(dataset.sensitivity(one).linf for one in counts.values())
    if reach == 0:
        raise InvalidValue("series", statistics[0].name, "is public already", "it needs no monitor")
    every_series = [series for name, one in counts.items() for series in _cells(name, one, dataset)]
    single = dataset.neighbours == ADD_REMOVE and dataset.stability().group == 1
    return Watched(tuple(every_series), counts, reach, single)


def thresholds_of(threshold: Any, series: Sequence[Series]) -> tuple[int, ...]:
    """The threshold of every series: one for all, or a mapping from series, statistics or cells to theirs.

    Args:
        threshold: One number for all, or a mapping; in a mapping, None stands for all that are not named.
        series: The series.

    Returns:
        One threshold for each series.

    Raises:
        InvalidValue: If a series has no threshold, or a name is not one of theirs.

    >>> north, whole = Series("count by region: n", "count by region", ("n",)), Series("all", "all")
    >>> thresholds_of(500, [north, whole]), thresholds_of({"n": 20, None: 99.5}, [north, whole])
    ((500, 500), (20, 100))
    """
    if not isinstance(threshold, Mapping):
        return (_whole(threshold),) * len(series)
    unused = set(threshold)
    thresholds = []
    for one in series:
        names = [key for key in _names(one) if key in threshold]
        if not names:
            raise InvalidValue("threshold", one.name, "must have a threshold", f"add {one.name!r}: ...")
        unused -= {*names, None}
        thresholds.append(_whole(threshold[names[0]]))
    if unused:
        known = ", ".join(one.name for one in series[:5])
        raise InvalidValue("threshold", next(iter(unused)), "must name series", f"there are: {known}")
    return tuple(thresholds)


def _names(series: Series) -> list[Any]:
    """All that a series may be called, the most special first."""
    bare = [series.labels[0]] if len(series.labels) == 1 else []
    cell = [_text(series.labels), series.labels, *bare] if series.labels else []
    return [series.name, *cell, series.statistic, None]


def _whole(threshold: Any) -> int:
    number = checked_real(threshold, "threshold")
    if not -_LARGEST_THRESHOLD <= number <= _LARGEST_THRESHOLD:
        raise InvalidValue("threshold", threshold, "must be a finite number", "give the count at which to alert")
    return math.ceil(number)  # a count reaches 99.5 when it reaches 100


def _counted(series: Any, by: str | Sequence[str] | None) -> Statistic:
    if isinstance(series, str):
        return count(where=series, by=by)
    if not isinstance(series, Statistic) or series.kind != "count":
        raise InvalidValue(
            "series", series, "must be counts", 'for example "age >= 65", or ft.count(where="age >= 65", by="region")'
        )
    if by is not None and series.by:
        raise InvalidValue("by", by, "must be left out for counts that have their own")
    named = None if series.name == series.default_name else series.name
    return series if by is None else count(where=series.where, by=by, name=named)


def _cells(name: str, counted: Count, dataset: Dataset) -> list[Series]:
    axes = [axis.labels for axis in counted.axes(dataset.schema)]
    if not axes:
        return [Series(name, name)]
    return [Series(f"{name}: {_text(labels)}", name, labels) for labels in itertools.product(*axes)]


def _text(labels: Sequence[Any]) -> str:
    return ", ".join(one.isoformat() if isinstance(one, datetime.date) else str(one) for one in labels)
